/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch/switch_state.h"

#include "switch/frame.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_prefetch.h>

#define DEFAULT_FDB 4096u
#define DEFAULT_AGE_NS 300000000000ull
#define TEND_SLOTS 64u	    /* slots of the table looked at a time */
#define TEND_NS 10000000ull /* between two times */
#define NO_PORT UINT16_MAX

static const struct urn_counter_row counter_rows[] = {URN_SWITCH_COUNTERS(URN_COUNTER_ROW)};
static const struct urn_counter_block counter_block = {
	"switch", counter_rows, sizeof(counter_rows) / sizeof(counter_rows[0])};
const struct urn_counter_scope urn_switch_scope = {"switch", &counter_block, 1};

const char *
urn_switch_counter_name(unsigned int id)
{
	return urn_counter_name_in(&urn_switch_scope, id);
}

/* ---- making */

/* Make the parts that not every switch has. returns: 0 or -1 */
static int
make_options(struct urn_switch *sw, const struct urn_switch_config *cfg)
{
	if (cfg->routes) {
		sw->routes = urn_route_create(cfg->routes, (uint32_t)cfg->fdb.seed);
		if (!sw->routes)
			return -1;
	}
	if (!cfg->lossless.priorities)
		return 0;
	if (urn_lossless_check(&cfg->lossless))
		sw->ll = urn_lossless_create(&cfg->lossless, sw);
	return sw->ll ? 0 : -1;
}

struct urn_switch *
urn_switch_create(const struct urn_switch_config *cfg)
{
	struct urn_switch *sw = calloc(1, sizeof(*sw));
	struct urn_fdb_config fdb = cfg->fdb;

	if (!sw || urn_mark_check(&cfg->mark, NULL, 0) != 0) {
		free(sw);
		return NULL;
	}
	if (!fdb.max)
		fdb.max = DEFAULT_FDB;
	if (!fdb.age_ns)
		fdb.age_ns = DEFAULT_AGE_NS;
	sw->fdb = urn_fdb_create(&fdb);
	if (!sw->fdb || make_options(sw, cfg) != 0) {
		urn_switch_destroy(sw);
		return NULL;
	}
	sw->copies = cfg->copies;
	sw->mark = cfg->mark;
	sw->learning = !cfg->no_learning;
	sw->batch.port = NO_PORT;
	snprintf(sw->name, sizeof(sw->name), "%s", cfg->name);
	return sw;
}

static void
destroy_port(struct urn_switch_port *p)
{
	if (!p)
		return;
	urn_impair_destroy(p->impair[URN_SWITCH_IN]);
	urn_impair_destroy(p->impair[URN_SWITCH_OUT]);
	if (p->other)
		p->other->port[p->other_port]->other = NULL;
	urn_swq_finish(&p->queue);
	urn_lossless_remove_port(p->ll);
	free(p);
}

void
urn_switch_destroy(struct urn_switch *sw)
{
	if (!sw)
		return;
	for (uint16_t i = 0; i < sw->ports; i++)
		destroy_port(sw->port[i]);
	urn_fdb_destroy(sw->fdb);
	urn_route_destroy(sw->routes);
	free(sw->ll);
	free(sw);
}

const char *
urn_switch_name(const struct urn_switch *sw)
{
	return sw->name;
}

int
urn_switch_add_port(struct urn_switch *sw, const struct urn_switch_port_config *cfg)
{
	struct urn_switch_port *p;

	for (int dir = 0; dir < 2; dir++) {
		if (urn_impair_check(&cfg->impair[dir], NULL, 0))
			return -EINVAL;
	}
	if (sw->ports == URN_SWITCH_MAX_PORTS)
		return -ENOSPC;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	for (unsigned int dir = 0; dir < 2; dir++) {
		/*
		 * Directions must not lose the same frames: a request and its answer would be lost
		 * together, again and again, when two programs send in turn.
		 */
		p->impair[dir] =
			urn_impair_create(&cfg->impair[dir], 2u * sw->ports + dir, sw->copies);
		if (!p->impair[dir]) {
			destroy_port(p);
			return -ENOMEM;
		}
	}
	p->up = true;
	p->classify = cfg->classify;
	urn_swq_init(&p->queue, cfg->bound);
	urn_mark_init(&p->mark, &sw->mark, sw->ports);
	if (sw->ll) {
		p->ll = urn_lossless_add_port(sw->ll, cfg, sw->ports, &p->queue);
		if (!p->ll) {
			destroy_port(p);
			return -ENOMEM;
		}
	}
	p->sorts = p->classify || p->ll;
	p->waits = p->sorts;
	p->max_frame = cfg->max_frame ? cfg->max_frame : UINT32_MAX;
	snprintf(p->name, sizeof(p->name), "%s", cfg->name);
	sw->port[sw->ports] = p;
	return sw->ports++;
}

unsigned int
urn_switch_ports(const struct urn_switch *sw)
{
	return sw->ports;
}

const char *
urn_switch_port_name(const struct urn_switch *sw, uint16_t port)
{
	return port < sw->ports ? sw->port[port]->name : NULL;
}

void
urn_switch_port_set_up(struct urn_switch *sw, uint16_t port, bool up)
{
	if (port >= sw->ports || sw->port[port]->up == up)
		return;
	sw->port[port]->up = up;
	if (up)
		return;
	urn_fdb_flush(sw->fdb, port);
	if (sw->ll)
		urn_lossless_port_down(sw->port[port]);
}

bool
urn_switch_port_is_up(const struct urn_switch *sw, uint16_t port)
{
	return port < sw->ports && sw->port[port]->up;
}

struct urn_impair *
urn_switch_impair(struct urn_switch *sw, uint16_t port, enum urn_switch_dir dir)
{
	return port < sw->ports ? sw->port[port]->impair[dir] : NULL;
}

const struct urn_switch_counters *
urn_switch_counters(const struct urn_switch *sw, uint16_t port)
{
	return port < sw->ports ? &sw->port[port]->c : NULL;
}

const struct urn_mark *
urn_switch_marks(const struct urn_switch *sw, uint16_t port)
{
	return port < sw->ports ? &sw->port[port]->mark : NULL;
}

int
urn_switch_route(struct urn_switch *sw, const uint8_t gid[16], uint16_t port)
{
	if (port >= sw->ports)
		return -EINVAL;
	return sw->routes ? urn_route_set(sw->routes, gid, port) : -ENOSPC;
}

struct urn_fdb *
urn_switch_fdb(struct urn_switch *sw)
{
	return sw->fdb;
}

/* ---- forwarding */

/* Read the addresses of a frame as numbers (fdb.h). returns: false: the frame is too short */
static bool
addresses(const struct rte_mbuf *m, uint64_t *dst, uint64_t *src)
{
	struct rte_ether_hdr copy;
	const struct rte_ether_hdr *h = rte_pktmbuf_read(m, 0, sizeof(copy), &copy);

	if (!h)
		return false;
	*dst = urn_mac(h->dst_addr.addr_bytes);
	*src = urn_mac(h->src_addr.addr_bytes);
	return true;
}

/* Data that the frames of one call share. */
struct pass {
	struct urn_switch_port *in;
	uint64_t now;
	uint64_t src, dst; /* addresses of the frame before, likely those of the next frame, too */
	int out;	   /* port behind which dst is */
	uint16_t port;	   /* number of `in` */
	bool valid;	   /* src, dst and out are set, and the table has not changed since */
};

static void
drop(struct urn_switch_port *p, enum urn_switch_counter reason, struct rte_mbuf *m)
{
	p->c.v[reason]++;
	rte_pktmbuf_free(m);
}

static void
flush_batch(struct urn_switch *sw, uint64_t now)
{
	struct urn_switch_batch *b = &sw->batch;

	if (b->n) {
		struct urn_switch_port *p = sw->port[b->port];

		if (unlikely(p->waits || urn_impair_paced(p->impair[URN_SWITCH_OUT])))
			urn_switch_port_send(p, b->m, b->n, now);
		else
			urn_impair_push(p->impair[URN_SWITCH_OUT], b->m, b->n, now);
	}
	b->n = 0;
}

/* Put a frame into the queue of the port at which it goes out, by way of the batch. */
static void
send(struct urn_switch *sw, uint16_t out, struct rte_mbuf *m, uint64_t now)
{
	struct urn_switch_port *p = sw->port[out];
	struct urn_switch_batch *b = &sw->batch;

	if (!p->up) {
		drop(p, URN_SWITCH_DROP_PORT_DOWN, m);
		return;
	}
	if (m->pkt_len > p->max_frame) {
		drop(p, URN_SWITCH_DROP_TOO_LONG, m);
		return;
	}
	if (b->port != out || b->n == URN_SWITCH_BURST) {
		flush_batch(sw, now);
		b->port = out;
	}
	b->m[b->n++] = m;
}

/* Send a frame to all ports that are up except its own; the last port gets the frame, the others
 * copies. */
static void
flood(struct urn_switch *sw, const struct pass *ps, struct rte_mbuf *m)
{
	struct rte_mbuf *copy;
	int last = -1;

	for (uint16_t i = 0; i < sw->ports; i++) {
		if (i == ps->port || !sw->port[i]->up)
			continue;
		if (last >= 0) {
			copy = urn_frame_copy(m, sw->copies);
			if (copy) {
				ps->in->c.v[URN_SWITCH_COPIES]++;
				send(sw, (uint16_t)last, copy, ps->now);
			} else {
				sw->port[last]->c.v[URN_SWITCH_DROP_COPY]++;
			}
		}
		last = i;
	}
	if (last < 0)
		drop(ps->in, URN_SWITCH_DROP_NO_PORT, m);
	else
		send(sw, (uint16_t)last, m, ps->now);
}

static void
learn(struct urn_switch *sw, struct pass *ps, uint64_t src)
{
	struct urn_switch_counters *c = &ps->in->c;

	switch (urn_fdb_learn(sw->fdb, src, ps->port, ps->now)) {
	case URN_FDB_SAME:
		return;
	case URN_FDB_NEW:
		c->v[URN_SWITCH_LEARNED]++;
		break;
	case URN_FDB_MOVED:
		c->v[URN_SWITCH_MOVED]++;
		break;
	case URN_FDB_FULL:
		c->v[URN_SWITCH_LEARN_FULL]++;
		break;
	case URN_FDB_STATIC:
		c->v[URN_SWITCH_LEARN_STATIC]++;
		break;
	}
	ps->valid = false;
}

/*
 * True when the address is one of 01-80-C2-00-00-00 to -0F: pause, LACP, spanning tree, LLDP (IEEE
 * 802.1Q table 8-1).
 */
static bool
is_reserved(uint64_t dst)
{
	static const uint8_t first[6] = {0x01, 0x80, 0xc2, 0, 0, 0};
	uint8_t mac[6];

	memcpy(mac, &dst, 6);
	return memcmp(mac, first, 5) == 0 && mac[5] < 16;
}

/* Count a frame to a group address by its kind, and flood it unless the address is reserved. */
static void
to_group(struct urn_switch *sw, const struct pass *ps, struct rte_mbuf *m, uint64_t dst)
{
	if (dst == 0xffffffffffffu) {
		ps->in->c.v[URN_SWITCH_RX_BROADCAST]++;
	} else {
		ps->in->c.v[URN_SWITCH_RX_MULTICAST]++;
		if (is_reserved(dst)) {
			drop(ps->in, URN_SWITCH_DROP_RESERVED, m);
			return;
		}
	}
	flood(sw, ps, m);
}

/* Find the port of a frame to an unknown MAC address by its IP address. returns: the port, or -1 */
static int
by_route(const struct urn_switch *sw, struct pass *ps, const struct rte_mbuf *m)
{
	int out = urn_route_frame(sw->routes, m);

	/* The next frame to this MAC address may be for another IP address. */
	ps->valid = false;
	if (out >= 0) {
		ps->in->c.v[URN_SWITCH_RX_UNKNOWN]++;
		ps->in->c.v[URN_SWITCH_RX_ROUTED]++;
	}
	return out;
}

static void
forward(struct urn_switch *sw, struct pass *ps, struct rte_mbuf *m)
{
	uint64_t dst, src;

	if (!addresses(m, &dst, &src)) {
		drop(ps->in, URN_SWITCH_DROP_RUNT, m);
		return;
	}
	if (urn_mac_is_group(src)) {
		drop(ps->in, URN_SWITCH_DROP_SOURCE, m);
		return;
	}
	if (sw->learning && !(ps->valid && src == ps->src))
		learn(sw, ps, src);
	if (urn_mac_is_group(dst)) {
		to_group(sw, ps, m, dst);
		return;
	}
	if (!(ps->valid && dst == ps->dst))
		ps->out = urn_fdb_lookup(sw->fdb, dst, ps->now);
	ps->src = src;
	ps->dst = dst;
	ps->valid = true;
	if (unlikely(ps->out < 0 && sw->routes))
		ps->out = by_route(sw, ps, m);
	if (ps->out == ps->port) {
		drop(ps->in, URN_SWITCH_DROP_SAME_PORT, m);
	} else if (ps->out >= 0) {
		send(sw, (uint16_t)ps->out, m, ps->now);
	} else {
		ps->in->c.v[URN_SWITCH_RX_UNKNOWN]++;
		flood(sw, ps, m);
	}
}

static void
forward_all(struct urn_switch *sw, uint16_t port, struct rte_mbuf **m, unsigned int n, uint64_t now)
{
	struct pass ps = {.in = sw->port[port], .now = now, .port = port};

	if (unlikely(sw->ll)) {
		sw->ll->in = port;
		n = urn_lossless_control(sw, port, m, n, now);
	}
	for (unsigned int i = 0; i < n; i++)
		forward(sw, &ps, m[i]);
	flush_batch(sw, now);
}

/* ---- in, on, out */

static void
count_in(struct urn_switch_port *p, struct rte_mbuf *const *m, unsigned int n)
{
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < n; i++) {
		rte_prefetch0(rte_pktmbuf_mtod(m[i], void *));
		bytes += m[i]->pkt_len;
	}
	p->c.v[URN_SWITCH_RX_PACKETS] += n;
	p->c.v[URN_SWITCH_RX_BYTES] += bytes;
}

void
urn_switch_input(struct urn_switch *sw, uint16_t port, struct rte_mbuf **m, unsigned int n,
		 uint64_t now)
{
	struct urn_switch_port *p;

	if (port >= sw->ports) {
		rte_pktmbuf_free_bulk(m, n);
		return;
	}
	p = sw->port[port];
	count_in(p, m, n);
	if (!p->up) {
		p->c.v[URN_SWITCH_DROP_PORT_DOWN] += n;
		rte_pktmbuf_free_bulk(m, n);
		return;
	}
	if (urn_impair_clear(p->impair[URN_SWITCH_IN])) {
		forward_all(sw, port, m, n, now);
		return;
	}
	urn_impair_push(p->impair[URN_SWITCH_IN], m, n, now);
}

/* Move due frames from the port's impairment into the switch. returns: frames */
static unsigned int
run_in(struct urn_switch *sw, uint16_t port, uint64_t now)
{
	struct urn_impair *in = sw->port[port]->impair[URN_SWITCH_IN];
	struct rte_mbuf *m[URN_SWITCH_BURST];
	unsigned int total = 0, n;

	if (urn_impair_clear(in))
		return 0;
	while ((n = urn_impair_pop(in, m, URN_SWITCH_BURST, now)) > 0) {
		forward_all(sw, port, m, n, now);
		total += n;
	}
	return total;
}

/* Move due frames of a linked port into the other switch. returns: frames */
static unsigned int
run_link(struct urn_switch *sw, uint16_t port, uint64_t now)
{
	const struct urn_switch_port *p = sw->port[port];
	struct rte_mbuf *m[URN_SWITCH_BURST];
	unsigned int total = 0, n;

	while ((n = urn_switch_output(sw, port, m, URN_SWITCH_BURST, now)) > 0) {
		urn_switch_input(p->other, p->other_port, m, n, now);
		total += n;
	}
	return total;
}

unsigned int
urn_switch_run(struct urn_switch *sw, uint64_t now)
{
	unsigned int moved = 0;

	for (uint16_t i = 0; i < sw->ports; i++)
		moved += run_in(sw, i, now);
	if (unlikely(sw->ll))
		urn_lossless_run(sw, now);
	for (uint16_t i = 0; i < sw->ports; i++) {
		if (sw->port[i]->other)
			moved += run_link(sw, i, now);
	}
	if (now >= sw->tend_at) {
		sw->tend_at = now + TEND_NS;
		urn_fdb_tend(sw->fdb, TEND_SLOTS, now);
	}
	return moved;
}

/*
 * The loop ends: links form a tree, so a frame and its copies move away from the port
 * at which the frame came in, and pass each link at most once.
 */
unsigned int
urn_switch_run_all(struct urn_switch *const *sw, unsigned int n, uint64_t now)
{
	unsigned int total = 0, moved;

	do {
		moved = 0;
		for (unsigned int i = 0; i < n; i++)
			moved += urn_switch_run(sw[i], now);
		total += moved;
	} while (moved && n > 1);
	return total;
}

unsigned int
urn_switch_output(struct urn_switch *sw, uint16_t port, struct rte_mbuf **m, unsigned int max,
		  uint64_t now)
{
	struct urn_switch_port *p;
	uint64_t bytes = 0;
	unsigned int n;

	if (port >= sw->ports)
		return 0;
	p = sw->port[port];
	if (unlikely(p->ll != NULL)) {
		n = urn_switch_port_lossless(p, m, max, now);
	} else {
		if (unlikely(p->waits))
			urn_switch_port_drain(p, now);
		n = urn_impair_pop(p->impair[URN_SWITCH_OUT], m, max, now);
	}
	for (unsigned int i = 0; i < n; i++)
		bytes += m[i]->pkt_len;
	p->c.v[URN_SWITCH_TX_PACKETS] += n;
	p->c.v[URN_SWITCH_TX_BYTES] += bytes;
	return n;
}

uint64_t
urn_switch_next(const struct urn_switch *sw)
{
	uint64_t next = sw->ll ? urn_lossless_next(sw) : UINT64_MAX;

	for (uint16_t i = 0; i < sw->ports; i++) {
		if (unlikely(sw->port[i]->waits))
			next = RTE_MIN(next, urn_switch_port_next(sw->port[i]));
		for (int dir = 0; dir < 2; dir++) {
			uint64_t t = urn_impair_next(sw->port[i]->impair[dir]);

			if (t < next)
				next = t;
		}
	}
	return next;
}

unsigned int
urn_switch_queued(const struct urn_switch *sw)
{
	unsigned int n = 0;

	for (uint16_t i = 0; i < sw->ports; i++) {
		n += sw->port[i]->queue.frames;
		for (int dir = 0; dir < 2; dir++)
			n += urn_impair_queued(sw->port[i]->impair[dir]);
	}
	return n;
}
