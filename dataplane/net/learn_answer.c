/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of peers: requests are answered, and the features that a request or a response
 * tells are believed, or not. All under the table's lock.
 */
#include "net/learn_table.h"
#include "net/l3.h"

#include <string.h>

static void
take_request(struct urn_learn *lk, const uint8_t src[16], const struct urn_link_info *info)
{
	struct urn_learn_entry *e = urn_learn_find(lk, src);
	bool anew;

	if (!e)
		e = urn_learn_add(lk, src, URN_LEARN_ON_LEARNT);
	if (!e)
		return; /* no room; the request is answered all the same */
	anew = e->state == URN_LEARN_KNOWN && e->info.epoch != info->epoch;
	urn_learn_set_known(lk, e, info, false);
	if (anew && e->wanted && e->state == URN_LEARN_KNOWN)
		urn_learn_start_asking(lk, e);
}

static enum urn_counter
take_response(struct urn_learn *lk, const uint8_t src[16], const uint8_t dst[16], uint64_t tid,
	      const struct urn_link_info *info)
{
	struct urn_learn_entry *e = urn_learn_find(lk, src);

	if (!e || e->tries == 0 || e->tid != tid || memcmp(e->own, dst, 16) != 0)
		return URN_C_DROP_LINK_UNASKED;
	if (e->answered)
		return URN_C_LINK_DUPLICATE;
	e->answered = true;
	if (!info) {
		urn_learn_set_plain(lk, e);
		return URN_C_LINK_REFUSED;
	}
	urn_learn_set_known(lk, e, info, true);
	return URN_C_LINK_RESP_RX;
}

/*
 * Take a message that was read. returns: the counter that applies;
 * *reply: m is now a response
 */
static enum urn_counter
take(struct urn_learn *lk, struct rte_mbuf *m, enum urn_counter c, struct urn_link_msg *msg,
     bool *reply)
{
	uint8_t src[16], dst[16], mac[6];

	urn_l3_addresses(m, src, dst);
	memcpy(mac, rte_pktmbuf_mtod(m, const struct urn_eth *)->src, 6);
	/* No peer has an address of ours. */
	if (urn_neigh_is_own(lk->cfg.neigh, src) || !urn_neigh_unicast(src) || !urn_l3_mac_ok(mac))
		return URN_C_DROP_ADDRESS;
	if (c == URN_C_LINK_REFUSED)
		return take_response(lk, src, dst, msg->tid, NULL);
	if (c == URN_C_LINK_RESP_RX) {
		c = take_response(lk, src, dst, msg->tid, &msg->info);
	} else {
		take_request(lk, src, &msg->info);
		msg->response = true;
		*reply = urn_learn_frame(lk, m, msg, dst, src, mac) == 0;
		if (!*reply)
			return URN_C_NO_MBUF;
	}
	if (c != URN_C_DROP_LINK_UNASKED && msg->info.major != URN_LINK_MAJOR)
		return URN_C_LINK_VERSION;
	return c;
}

int
urn_learn_input(struct urn_learn *lk, struct rte_mbuf *m, uint64_t now)
{
	struct urn_link_msg msg = {.response = false};
	bool reply = false;
	const uint8_t *mad;
	uint32_t sqpn;
	enum urn_counter c = (enum urn_counter)urn_mad_find(m, &mad, &sqpn);

	if (c == 0)
		c = urn_link_read(mad, sqpn, &msg);
	if (c == URN_C_LINK_REQ_RX || c == URN_C_LINK_RESP_RX || c == URN_C_LINK_REFUSED) {
		rte_spinlock_lock(&lk->lock);
		urn_learn_set_time(lk, now);
		c = take(lk, m, c, &msg, &reply);
		rte_spinlock_unlock(&lk->lock);
	}
	urn_pkt(m)->drop = (uint8_t)c;
	return reply;
}
