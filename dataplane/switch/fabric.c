/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/fabric.h"

#include "switch/frame.h"
#include "switch/park.h"
#include "wire/unsealed.h"

#include <errno.h>
#include <stdlib.h>

/* A port that is plugged in. */
struct plug {
	struct urn_switch *sw;
	struct urn_port *ethdev;
	uint16_t port;
	bool follow_link;
	bool link_up; /* state that the switch was told last */
	uint16_t waiting_n,
		waiting_at;	/* frames in waiting[], and those the port has taken of them */
	uint64_t waiting_since; /* ns: when the port last took one */
	struct urn_port *far;	/* other end of a wire with frames without ICRC; owner: the
				   program; NULL: all frames are whole */
	struct urn_park *park;	/* received frames whose priority has no room; the plug's; NULL:
				   none ever had to wait */
	struct rte_mbuf
		*waiting[URN_SWITCH_BURST]; /* in memory of our own, so valid after the poll */
	struct urn_fabric_counters c;
};

struct urn_fabric {
	struct plug *plug;
	unsigned int plugs;
	unsigned int switches;
	struct urn_switch *sw[URN_FABRIC_MAX_SWITCHES];
	struct rte_mempool *copies;
	uint64_t unsealed; /* mark of frames without ICRC; 0: no port has such frames */
	uint64_t link_at; /* ns: next check of the ports' links */
};

static const struct urn_counter_row counter_rows[] = {URN_FABRIC_COUNTERS(URN_COUNTER_ROW)};
static const struct urn_counter_block counter_block = {
	"switch", counter_rows, sizeof(counter_rows) / sizeof(counter_rows[0])};
const struct urn_counter_scope urn_fabric_scope = {"switch_device", &counter_block, 1};

const char *
urn_fabric_counter_name(unsigned int id)
{
	return urn_counter_name_in(&urn_fabric_scope, id);
}

struct urn_fabric *
urn_fabric_create(struct rte_mempool *copies)
{
	struct urn_fabric *f = calloc(1, sizeof(*f));

	if (f)
		f->copies = copies;
	return f;
}

void
urn_fabric_destroy(struct urn_fabric *f)
{
	if (!f)
		return;
	for (unsigned int i = 0; i < f->plugs; i++) {
		struct plug *p = &f->plug[i];

		for (; p->waiting_at < p->waiting_n; p->waiting_at++)
			rte_pktmbuf_free(p->waiting[p->waiting_at]);
		urn_park_destroy(p->park);
	}
	for (unsigned int i = 0; i < f->switches; i++)
		urn_switch_destroy(f->sw[i]);
	free(f->plug);
	free(f);
}

int
urn_fabric_add(struct urn_fabric *f, struct urn_switch *sw)
{
	if (f->switches == URN_FABRIC_MAX_SWITCHES)
		return -ENOSPC;
	f->sw[f->switches] = sw;
	return (int)f->switches++;
}

static struct plug *
find_plug(const struct urn_fabric *f, const struct urn_switch *sw, uint16_t port)
{
	for (unsigned int i = 0; i < f->plugs; i++) {
		if (f->plug[i].sw == sw && f->plug[i].port == port)
			return &f->plug[i];
	}
	return NULL;
}

int
urn_fabric_plug(struct urn_fabric *f, struct urn_switch *sw, uint16_t port, struct urn_port *ethdev,
		bool follow_link)
{
	struct plug *more;

	if (port >= urn_switch_ports(sw) || urn_switch_port_is_linked(sw, port))
		return -EINVAL;
	if (find_plug(f, sw, port))
		return -EBUSY;
	more = realloc(f->plug, (f->plugs + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	f->plug = more;
	f->plug[f->plugs++] =
		(struct plug){.sw = sw, .port = port, .ethdev = ethdev, .follow_link = follow_link};
	/* An error is ignored: devices without promiscuous mode get no others' frames. */
	(void)rte_eth_promiscuous_enable(ethdev->id);
	urn_port_poll_link(ethdev);
	f->plug[f->plugs - 1].link_up = ethdev->link_up;
	urn_switch_port_set_up(sw, port, !follow_link || ethdev->link_up);
	return 0;
}

int
urn_fabric_unseal(struct urn_fabric *f, const struct urn_switch *sw, uint16_t port,
		  struct urn_port *far)
{
	struct plug *p = find_plug(f, sw, port);

	if (!p)
		return -EINVAL;
	p->far = NULL;
	if (!far)
		return 0; /* frames that are inside may have the mark still */
	f->unsealed = urn_unsealed_bit();
	if (!f->unsealed)
		return -ENOMEM;
	p->far = far;
	return 0;
}

uint32_t
urn_fabric_max_frame(const struct urn_port *ethdev)
{
	return ethdev->caps.mtu + (uint32_t)sizeof(struct rte_ether_hdr) +
	       (uint32_t)sizeof(struct rte_vlan_hdr);
}

static void
poll_links(struct urn_fabric *f)
{
	for (unsigned int i = 0; i < f->plugs; i++) {
		struct plug *p = &f->plug[i];

		urn_port_poll_link(p->ethdev);
		if (!p->follow_link || p->link_up == p->ethdev->link_up)
			continue;
		p->link_up = p->ethdev->link_up;
		p->c.v[URN_FABRIC_LINK_CHANGES]++;
		urn_switch_port_set_up(p->sw, p->port, p->ethdev->link_up);
	}
}

/* Receive a burst. Only adapters of this thread mark frames. */
static uint16_t
take(const struct urn_fabric *f, const struct plug *p, struct rte_mbuf **m)
{
	uint16_t n = urn_port_rx(p->ethdev, 0, m, URN_SWITCH_BURST);

	if (unlikely(f->unsealed && !p->far))
		for (uint16_t i = 0; i < n; i++)
			m[i]->ol_flags &= ~f->unsealed;
	return n;
}

/* Send a burst. Frames without ICRC get theirs if others than the adapter behind the port see them.
 * returns: frames that the port took */
static uint16_t
give(const struct urn_fabric *f, const struct plug *p, struct rte_mbuf **m, uint16_t n)
{
	if (unlikely(f->unsealed) &&
	    (!p->far || urn_port_tx_seen(p->ethdev, 0) || urn_port_rx_seen(p->far, 0)))
		for (uint16_t i = 0; i < n; i++)
			urn_wire_seal(m[i]);
	return urn_port_tx(p->ethdev, 0, m, n);
}

/* Let frames that wait go on, as far as their priorities have room. returns: frames */
static unsigned int
go_on(struct plug *p, uint64_t now)
{
	struct rte_mbuf *m[URN_SWITCH_BURST];
	unsigned int n, total = 0, set;

	while ((set = p->park->waiting & ~(unsigned int)urn_switch_full(p->sw, p->port)) != 0) {
		n = urn_park_take(p->park, 31u - (unsigned int)__builtin_clz(set), m,
				  URN_SWITCH_BURST);
		urn_switch_input(p->sw, p->port, m, n, now);
		total += n;
	}
	return total;
}

/* Let a received frame of a priority wait. */
static void
wait_for_room(struct urn_fabric *f, struct plug *p, unsigned int priority, struct rte_mbuf *m)
{
	struct rte_mbuf *keep = m;

	if (!urn_frame_is_ours(m)) {
		keep = urn_frame_copy(m, f->copies);
		rte_pktmbuf_free(m);
	}
	p->c.v[keep ? URN_FABRIC_RX_PARKED : URN_FABRIC_DROP_RX_NO_MBUF]++;
	if (keep)
		urn_park_put(p->park, priority, keep);
}

/*
 * Receive while a priority has no room: its frames wait beside the ring, where as many have room as
 * a ring has, and others pass. Beyond, all frames stay with their sender.
 */
static unsigned int
receive_some(struct urn_fabric *f, struct plug *p, uint64_t now)
{
	struct rte_mbuf *m[URN_SWITCH_BURST];
	unsigned int total, n, pass = 0, stop;

	if (!p->park)
		p->park = urn_park_create();
	total = p->park ? go_on(p, now) : 0;
	if (!p->park || p->park->frames + URN_SWITCH_BURST > URN_PARK_FRAMES) {
		p->c.v[URN_FABRIC_RX_HELD]++;
		return total;
	}
	n = take(f, p, m);
	stop = urn_switch_full(p->sw, p->port) | p->park->waiting;
	for (unsigned int i = 0; i < n; i++) {
		unsigned int priority = urn_switch_priority(p->sw, m[i]);

		if (stop & 1u << priority)
			wait_for_room(f, p, priority, m[i]);
		else
			m[pass++] = m[i];
	}
	if (pass)
		urn_switch_input(p->sw, p->port, m, pass, now);
	return total + n;
}

static unsigned int
receive(struct urn_fabric *f, struct plug *p, uint64_t now)
{
	struct rte_mbuf *m[URN_SWITCH_BURST];
	uint16_t n;

	if (unlikely(!urn_switch_takes(p->sw, p->port) || (p->park && p->park->frames)))
		return receive_some(f, p, now);
	n = take(f, p, m);
	if (n)
		urn_switch_input(p->sw, p->port, m, n, now);
	return n;
}

/* Keep frames that the port did not take; copied if need be, because the poll ends before they are
 * sent. */
static void
wait_for_port(struct urn_fabric *f, struct plug *p, struct rte_mbuf *const *m, uint16_t n,
	      uint64_t now)
{
	p->c.v[URN_FABRIC_TX_PARTIAL]++;
	p->waiting_n = p->waiting_at = 0;
	p->waiting_since = now;
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *keep = m[i];

		if (!urn_frame_is_ours(keep)) {
			keep = urn_frame_copy(m[i], f->copies);
			rte_pktmbuf_free(m[i]);
			p->c.v[keep ? URN_FABRIC_TX_COPIED : URN_FABRIC_DROP_TX_NO_MBUF]++;
		}
		if (keep)
			p->waiting[p->waiting_n++] = keep;
	}
}

/* Try to send the waiting frames again. returns: frames sent */
static unsigned int
retry(const struct urn_fabric *f, struct plug *p, uint64_t now)
{
	uint16_t n =
		give(f, p, p->waiting + p->waiting_at, (uint16_t)(p->waiting_n - p->waiting_at));

	p->waiting_at += n;
	if (n) {
		p->waiting_since = now;
	} else if (now - p->waiting_since > URN_FABRIC_STUCK_NS) {
		/* Perhaps the port refuses only this frame. */
		rte_pktmbuf_free(p->waiting[p->waiting_at++]);
		p->c.v[URN_FABRIC_DROP_TX_STUCK]++;
		p->waiting_since = now;
	}
	return n;
}

/* Send frames that are due. returns: frames sent */
static unsigned int
transmit(struct urn_fabric *f, struct plug *p, uint64_t now)
{
	struct rte_mbuf *m[URN_SWITCH_BURST];
	unsigned int total = 0;
	uint16_t n, sent;

	if (p->waiting_at < p->waiting_n) {
		total = retry(f, p, now);
		if (p->waiting_at < p->waiting_n)
			return total;
		urn_switch_hold(p->sw, p->port, false);
	}
	while ((n = (uint16_t)urn_switch_output(p->sw, p->port, m, URN_SWITCH_BURST, now)) > 0) {
		sent = give(f, p, m, n);
		total += sent;
		if (sent < n) {
			wait_for_port(f, p, m + sent, n - sent, now);
			urn_switch_hold(p->sw, p->port, true);
			break;
		}
	}
	return total;
}

unsigned int
urn_fabric_poll(struct urn_fabric *f, uint64_t now)
{
	unsigned int moved = 0;

	if (now >= f->link_at) {
		f->link_at = now + URN_FABRIC_LINK_NS;
		poll_links(f);
	}
	for (unsigned int i = 0; i < f->plugs; i++)
		moved += receive(f, &f->plug[i], now);
	urn_switch_run_all(f->sw, f->switches, now);
	for (unsigned int i = 0; i < f->plugs; i++)
		moved += transmit(f, &f->plug[i], now);
	return moved;
}

uint64_t
urn_fabric_next(const struct urn_fabric *f)
{
	uint64_t next = UINT64_MAX;

	for (unsigned int i = 0; i < f->switches; i++) {
		uint64_t t = urn_switch_next(f->sw[i]);

		if (t < next)
			next = t;
	}
	for (unsigned int i = 0; i < f->plugs; i++) {
		const struct plug *p = &f->plug[i];

		if (p->waiting_at < p->waiting_n ||
		    (p->park && p->park->waiting & ~urn_switch_full(p->sw, p->port)))
			return 0;
	}
	return next;
}

const struct urn_fabric_counters *
urn_fabric_counters(const struct urn_fabric *f, const struct urn_switch *sw, uint16_t port)
{
	const struct plug *p = find_plug(f, sw, port);

	return p ? &p->c : NULL;
}
