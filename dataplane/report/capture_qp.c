/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/capture_qp.h"

#include "report/report_priv.h"
#include "wire/hdr.h"
#include "wire/opcode.h"

#include <netinet/in.h>

#include <rte_ether.h>

enum {
	TAGS = 2, /* VLAN tags of a frame, at most */
	TAG_BYTES = 4,
};

/* ---- which queue pairs */

static void
add(struct urn_capture_qps *q, uint32_t qpn)
{
	if (q->n < URN_CAPTURE_QPS)
		q->qpn[q->n++] = qpn;
}

/* Add the peer of an adapter's queue pair. The adapter is locked: the queue pair stays, and its
 * peer. */
static void
add_peer(struct urn_capture_qps *q, struct urn_adapter *a, uint32_t qpn)
{
	unsigned int engine = urn_qpn_engine(qpn);
	struct urn_shard *shard = engine < URN_ABI_MAX_ENGINES ? a->shard[engine] : NULL;
	const struct urn_qp *qp = shard ? urn_tp_qp(shard->tp, qpn) : NULL;
	uint32_t peer = qp && qp->type != URN_QPT_UD ? LOOK(qp->dest_qpn) : 0;

	if (peer > URN_QPN_GSI)
		add(q, peer);
}

int
urn_capture_qps_find(struct urn_capture_qps *q, struct urn_dp *dp, uint32_t qpn,
		     struct urn_err *err)
{
	q->n = 0;
	add(q, qpn);
	for (unsigned int i = 0; dp != NULL && i < dp->adapters_n; i++) {
		if (urn_report_lock(dp->adapter[i], err) != 0)
			return -1;
		add_peer(q, dp->adapter[i], qpn);
		urn_report_unlock(dp->adapter[i]);
	}
	return 0;
}

/* ---- which frames */

/* Offset of the BTH. returns: 0: the frame is no RoCEv2 */
static uint32_t
find_bth(const struct rte_mbuf *m)
{
	uint32_t at = URN_ETH_BYTES;
	union {
		struct urn_ipv4 v4;
		struct urn_ipv6 v6;
		struct urn_udp udp;
		uint16_t type;
	} room;
	const uint16_t *type = rte_pktmbuf_read(m, at - 2, 2, &room);
	const struct urn_udp *udp;

	for (unsigned int i = 0; type && *type == RTE_BE16(RTE_ETHER_TYPE_VLAN) && i < TAGS; i++) {
		at += TAG_BYTES;
		type = rte_pktmbuf_read(m, at - 2, 2, &room);
	}
	if (type && *type == RTE_BE16(RTE_ETHER_TYPE_IPV4)) {
		const struct urn_ipv4 *ip = rte_pktmbuf_read(m, at, sizeof(*ip), &room);

		if (ip == NULL || ip->proto != IPPROTO_UDP)
			return 0;
		at += (ip->ver_ihl & 0xfu) * 4;
	} else if (type && *type == RTE_BE16(RTE_ETHER_TYPE_IPV6)) {
		const struct urn_ipv6 *ip = rte_pktmbuf_read(m, at, sizeof(*ip), &room);

		if (ip == NULL || ip->next != IPPROTO_UDP)
			return 0;
		at += sizeof(*ip);
	} else {
		return 0;
	}
	udp = rte_pktmbuf_read(m, at, sizeof(*udp), &room);
	return udp && udp->dport == RTE_BE16(URN_ROCE_PORT) ? at + (uint32_t)sizeof(*udp) : 0;
}

/* The queue pair that sent a datagram. returns: 0: the frame is none, or too short */
static uint32_t
sender(const struct rte_mbuf *m, uint32_t bth_at, uint8_t opcode)
{
	const struct urn_opcode *op = &urn_opcodes[opcode];
	struct urn_deth room;
	const struct urn_deth *deth;

	if (!(op->flags & URN_OPF_UD))
		return 0;
	deth = rte_pktmbuf_read(m, bth_at + op->off[URN_EXT_DETH], sizeof(room), &room);
	return deth ? rte_be_to_cpu_32(deth->sqpn) & URN_QPN_MASK : 0;
}

bool
urn_capture_qps_want(const void *qps, const struct rte_mbuf *m)
{
	const struct urn_capture_qps *q = qps;
	uint32_t at = find_bth(m), dqpn;
	struct urn_bth room;
	const struct urn_bth *bth = at ? rte_pktmbuf_read(m, at, sizeof(room), &room) : NULL;

	if (bth == NULL || (urn_opcodes[bth->opcode].flags & URN_OPF_FLOW))
		return false;
	dqpn = rte_be_to_cpu_32(bth->dqpn) & URN_QPN_MASK;
	for (unsigned int i = 0; i < q->n; i++)
		if (q->qpn[i] == dqpn)
			return true;
	return q->n > 0 && sender(m, at, bth->opcode) == q->qpn[0];
}
