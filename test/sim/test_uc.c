/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scenario uc: two nodes with one UC queue pair each, over a wire that loses, duplicates and
 * reorders frames, with memory that answers late, and is shut at times for too much. The oracle
 * asks that each receive that completes holds one whole message that was sent, with its length,
 * bytes and immediate; that messages come in the order in which they were sent, none twice; that
 * each send completes, in order; and that once the wire is sound again every message comes: nothing
 * has stalled. All random choices come from the seed.
 */
#include "rng.h"

#include "common/test_eal.h"
#include "packet/bare.h"
#include "transport/tp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

enum {
	MESSAGES = 48, /* a node's, over the bad wire */
	LAST = 6,      /* ... and then over the sound one */
	ALL = MESSAGES + LAST,
	SLOTS = 16,  /* entries of a work queue */
	BUFS = 8,    /* buffers to receive into */
	ROOM = 5000, /* bytes of the longest message */
	WIRE = 4096, /* frames on the wire, at most */
	HELD = 1024, /* packets that may wait for memory: all that can be under way */
	PDS = 2,
	TURNS = 20000, /* turns until a run counts as stalled */
	TURN_NS = 1000,
	BTH = 42, /* its place in a frame over IPv4 */
	SEND_OFF = 0,
	RECV_OFF = SLOTS * ROOM,
	WRITE_OFF = RECV_OFF + BUFS * ROOM,
	RAM = WRITE_OFF + ALL * ROOM,
	SEEDS = 200,
};

#define VA 0x7000000000ull

/* Bugs of a broken product, put in by hand, that the oracle must notice. */
enum sabotage { NONE, HIDES_GAPS, REPEATS, SPOILS };

struct uc_message {
	uint32_t len, seed;
	bool write;
};

struct uc_node {
	struct urn_tp *tp;
	struct urn_mem *mem;
	struct urn_memx *memx;
	struct frame_addr addr;
	uint32_t pd, key;
	struct urn_memx_gate gate; /* in place of memx's, which closes for foreign memory only */
	uint8_t shut[PDS + 1];
	uint8_t *ram;
	struct urn_qp *qp;
	struct urn_abi_wq *sq, *rq;
	struct urn_cq scq, rcq;
	uint32_t scq_seen, rcq_seen;
	struct uc_message sent[ALL];
	uint32_t posted, done; /* sends */
	uint32_t last;	       /* posted over the sound wire */
	uint32_t recvs, got;   /* receives posted, and completed */
	uint32_t next;	       /* number that the peer's next message has at least */
	uint32_t came;
	uint32_t shift; /* sabotage: added to the PSNs of frames that the node sends */
};

struct uc {
	struct sim_rng rng;
	uint64_t now;
	struct uc_node node[2];
	uint32_t mtu;
	uint32_t loss, dup, delay_ns; /* one in so many frames; the longest delay */
	bool few;		      /* receives come late, too */
	uint32_t shuts; /* one turn in so many changes whether a node's memory is shut; 0: never */
	enum sabotage sabotage;
	struct {
		struct rte_mbuf *m;
		uint64_t due; /* ns */
		unsigned int to;
	} wire[WIRE];
	unsigned int wire_n;
	char why[160]; /* the oracle's first complaint; "": none */
};

static void
complain(struct uc *u, const char *what, uint32_t number)
{
	if (!u->why[0])
		snprintf(u->why, sizeof(u->why), "%s (%u)", what, number);
}

/* ---- making */

static bool
open_node(struct uc *u, unsigned int i)
{
	struct uc_node *n = &u->node[i];
	const struct urn_memx_config x = {
		.pending = 4096,
		.delay_seed = sim_one_in(&u->rng, 2) ? 0 : sim_rng_next(&u->rng) | 1,
		.delay_percent = 70,
		.delay_polls = 6,
	};
	struct urn_tp_config t = {.pool = test_eal_pool(),
				  .gids = 1,
				  .mtu = 4096,
				  .icrc = true,
				  .max_qp = 4,
				  .work = 256,
				  .window = 64,
				  .kept = HELD};
	struct urn_qp_config c = {.type = URN_QPT_UC, .send_cq = &n->scq, .recv_cq = &n->rcq};

	n->addr = (struct frame_addr){{2, 0, 0, 0, 0, (uint8_t)(i + 1)},
				      {[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(i + 1)}};
	memcpy(t.mac, n->addr.mac, 6);
	memcpy(t.gid[0], n->addr.gid, 16);
	t.mem = n->mem = urn_mem_create(4, PDS);
	t.memx = n->memx = urn_memx_create(&x);
	n->ram = calloc(1, RAM);
	n->tp = urn_tp_create(&t, u->now);
	n->sq = bare_wq(SLOTS, urn_abi_sq_stride(1, 0));
	n->rq = bare_wq(SLOTS, urn_abi_rq_stride(1));
	if (!n->tp || !n->ram || !n->sq || !n->rq || !bare_cq(&n->scq, 64) ||
	    !bare_cq(&n->rcq, 64) || urn_mem_alloc_pd(n->mem, &n->pd) != 0 ||
	    urn_mem_reg_mr(n->mem, n->pd, n->ram, RAM, VA,
			   URN_ACCESS_LOCAL_WRITE | URN_ACCESS_REMOTE_WRITE, &n->key) != 0)
		return false;
	c.pd = n->pd;
	c.sq = bare_sq(n->sq, SLOTS, 1, 0);
	c.rq = bare_rq(n->rq, SLOTS, 1);
	n->gate = (struct urn_memx_gate){.pds = PDS, .few = 1, .pd = n->shut};
	n->tp->gate = &n->gate;
	return urn_qp_create(n->tp, &c, &n->qp) == 0;
}

static bool
connect_node(struct uc *u, unsigned int i)
{
	struct uc_node *n = &u->node[i], *to = &u->node[!i];
	struct urn_abi_qp_attr a = {
		.port_num = 1,
		.access = URN_ACCESS_REMOTE_WRITE,
		.dest_qpn = to->qp->qpn,
		.rq_psn = 0xffffe0, /* wraps soon */
		.sq_psn = 0xffffe0,
		.path_mtu = (uint8_t)(__builtin_ctz(u->mtu) - 7),
	};
	char why[160];

	memcpy(a.av.dgid, to->addr.gid, 16);
	for (a.state = URN_QPS_INIT; a.state <= URN_QPS_RTS; a.state++)
		if (urn_qp_modify(n->tp, n->qp, bare_qp_mask(URN_QPT_UC, a.state) | URN_QPM_STATE,
				  &a, why, sizeof(why)) != 0)
			return false;
	/* No neighbour table: the template's MAC is our own until it is set. */
	memcpy(n->qp->tmpl.bytes, to->addr.mac, 6);
	return true;
}

/* ---- the wire */

/* True when a frame carries a packet that is neither the first nor the last of its message. */
static bool
is_middle(const struct rte_mbuf *m)
{
	uint8_t op = rte_pktmbuf_mtod(m, const uint8_t *)[BTH];

	return op == (URN_UC | URN_RC_SEND_MIDDLE) || op == (URN_UC | URN_RC_WRITE_MIDDLE);
}

/* Number a frame anew, if a sabotage has left frames out or put some in. */
static void
renumber(const struct uc_node *from, struct rte_mbuf *m)
{
	uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *), *p = f + BTH + 9;
	uint32_t psn =
		(((uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2]) + from->shift) & URN_PSN_MASK;

	p[0] = (uint8_t)(psn >> 16);
	p[1] = (uint8_t)(psn >> 8);
	p[2] = (uint8_t)psn;
	frame_seal(f, m->data_len);
}

static void
put(struct uc *u, unsigned int to, struct rte_mbuf *m)
{
	assert_true(u->wire_n < WIRE);
	u->wire[u->wire_n].m = m;
	u->wire[u->wire_n].to = to;
	u->wire[u->wire_n++].due = u->now + TURN_NS + sim_rnd(&u->rng, u->delay_ns + 1);
}

static struct rte_mbuf *
copy_of(struct rte_mbuf *m)
{
	struct rte_mbuf *c = rte_pktmbuf_copy(m, m->pool, 0, UINT32_MAX);

	assert_non_null(c);
	return c;
}

static void
carry(struct uc *u, unsigned int from, struct rte_mbuf *m)
{
	struct uc_node *n = &u->node[from];

	if (u->sabotage == HIDES_GAPS && is_middle(m)) {
		n->shift--;
		rte_pktmbuf_free(m);
		return;
	}
	if (u->sabotage)
		renumber(n, m);
	if (u->sabotage == SPOILS && m->data_len > 100) {
		rte_pktmbuf_mtod(m, uint8_t *)[m->data_len - 20] ^= 1;
		renumber(n, m); /* also seals */
	}
	if (u->sabotage == REPEATS && sim_one_in(&u->rng, 4) && !is_middle(m)) {
		put(u, !from, copy_of(m));
		n->shift++;
		renumber(&(struct uc_node){.shift = 1}, m);
	}
	if (u->loss && sim_one_in(&u->rng, u->loss)) {
		rte_pktmbuf_free(m);
		return;
	}
	if (u->dup && sim_one_in(&u->rng, u->dup))
		put(u, !from, copy_of(m));
	put(u, !from, m);
}

/* Give a node the frames that are due, in the order of their times. */
static void
deliver(struct uc *u, unsigned int to)
{
	struct rte_mbuf *m[URN_TP_BURST];
	unsigned int n = 0;

	while (n < URN_TP_BURST) {
		unsigned int best = WIRE;

		for (unsigned int i = 0; i < u->wire_n; i++)
			if (u->wire[i].to == to && u->wire[i].due <= u->now &&
			    (best == WIRE || u->wire[i].due < u->wire[best].due))
				best = i;
		if (best == WIRE)
			break;
		m[n++] = u->wire[best].m;
		memmove(&u->wire[best], &u->wire[best + 1],
			(--u->wire_n - best) * sizeof(u->wire[0]));
	}
	if (n)
		urn_tp_rx(u->node[to].tp, m, n, false);
}

/* ---- programs */

static void
post_send(struct uc *u, struct uc_node *n)
{
	uint32_t no = n->posted, slot = SEND_OFF + no % SLOTS * ROOM;
	struct urn_abi_swqe *w = bare_slot(n->sq, no, SLOTS, urn_abi_sq_stride(1, 0));
	struct urn_abi_sge *sge = (void *)(w + 1);
	struct uc_message *g = &n->sent[no];

	g->len = sim_one_in(&u->rng, 3) ? sim_rnd(&u->rng, u->mtu + 1) : sim_rnd(&u->rng, ROOM + 1);
	g->seed = (uint32_t)sim_rng_next(&u->rng);
	g->write = sim_one_in(&u->rng, 3);
	sim_fill(n->ram + slot, g->seed, 0, g->len);
	memset(w, 0, sizeof(*w));
	w->wr_id = no;
	w->opcode = g->write ? URN_WR_RDMA_WRITE_IMM : URN_WR_SEND_IMM;
	w->flags = URN_WRF_SIGNALED;
	w->num_sge = 1;
	w->imm = no;
	w->rdma.remote_addr = VA + WRITE_OFF + no * ROOM;
	w->rdma.rkey = u->node[n == &u->node[0]].key;
	*sge = (struct urn_abi_sge){VA + slot, n->key, g->len};
	n->posted++;
	atomic_store(&n->sq->prod, n->posted);
	urn_tp_doorbell(n->tp, n->qp);
}

static void
post_recv(struct uc_node *n)
{
	struct urn_abi_rwqe *w = bare_slot(n->rq, n->recvs, SLOTS, urn_abi_rq_stride(1));
	struct urn_abi_sge *sge = (void *)(w + 1);

	w->wr_id = n->recvs;
	w->num_sge = 1;
	*sge = (struct urn_abi_sge){VA + RECV_OFF + n->recvs % BUFS * ROOM, n->key, ROOM};
	atomic_store(&n->rq->prod, ++n->recvs);
}

/* A completion of a node; false: none came. */
static bool
next_cqe(struct urn_cq *cq, uint32_t *seen, struct urn_abi_cqe *out)
{
	if (*seen == cq->prod)
		return false;
	*out = ((const struct urn_abi_cqe *)(const void *)((uint8_t *)cq->hdr +
							   URN_ABI_CQ_SLOTS))[*seen & cq->mask];
	atomic_store(&cq->hdr->cons, ++*seen);
	return true;
}

/* The oracle on a receive. */
static void
judge(struct uc *u, struct uc_node *n, const struct urn_abi_cqe *c)
{
	const struct uc_node *peer = &u->node[n == &u->node[0]];
	const struct uc_message *g = &peer->sent[c->imm % ALL];
	static uint8_t want[ROOM];

	if (c->status != URN_WC_SUCCESS || c->wr_id != n->got++)
		complain(u, "a receive failed, or came out of turn", c->status);
	else if (c->imm >= peer->posted || c->imm < n->next)
		complain(u, "a message came twice, behind a later one, or was never sent", c->imm);
	else if (c->byte_len != g->len)
		complain(u, "a message has another length", c->imm);
	else if (c->opcode != (g->write ? URN_WCO_RECV_RDMA_WITH_IMM : URN_WCO_RECV))
		complain(u, "a message is of another kind", c->imm);
	if (u->why[0])
		return;
	n->next = c->imm + 1;
	n->came++;
	sim_fill(want, g->seed, 0, g->len);
	if (memcmp(want,
		   n->ram + (g->write ? WRITE_OFF + c->imm * ROOM
				      : RECV_OFF + c->wr_id % BUFS * ROOM),
		   g->len) != 0)
		complain(u, "a message has other bytes", c->imm);
}

static void
look(struct uc *u, struct uc_node *n)
{
	struct urn_abi_cqe c;

	while (next_cqe(&n->scq, &n->scq_seen, &c))
		if (c.status != URN_WC_SUCCESS || c.wr_id != n->done++)
			complain(u, "a send failed, or came out of turn", (uint32_t)c.wr_id);
	while (next_cqe(&n->rcq, &n->rcq_seen, &c))
		judge(u, n, &c);
}

/* One turn of a node. limit: messages that it may have posted */
static void
turn(struct uc *u, unsigned int i, uint32_t limit)
{
	struct uc_node *n = &u->node[i];

	look(u, n);
	while (n->recvs - n->got < BUFS && !(u->few && !sim_one_in(&u->rng, 3)))
		post_recv(n);
	while (n->posted < limit && n->posted - n->done < SLOTS && sim_one_in(&u->rng, 3))
		post_send(u, n);
	if (u->shuts && sim_one_in(&u->rng, u->shuts))
		n->shut[n->pd] = n->gate.closed = !n->gate.closed;
	urn_tp_turn(n->tp, u->now);
	deliver(u, i);
	urn_tp_tx(n->tp);
	for (unsigned int k = 0; k < n->tp->tx_n; k++)
		carry(u, i, n->tp->tx[k]);
	n->tp->tx_n = 0;
	n->tp->event_n = 0;
}

/* Run until all sends up to the limit are complete and the wire is empty. */
static void
run_until(struct uc *u, uint32_t limit)
{
	unsigned int quiet = 0;

	for (unsigned int t = 0; t < TURNS && !u->why[0]; t++) {
		bool over = u->wire_n == 0;

		u->now += TURN_NS;
		for (unsigned int i = 0; i < 2; i++) {
			turn(u, i, limit);
			over = over && u->node[i].done == limit && u->node[i].tp->left.held == HELD;
		}
		quiet = over ? quiet + 1 : 0;
		if (quiet == 40) /* memory has answered, too */
			return;
	}
	complain(u, "stalled", limit);
}

static void
close_node(struct uc_node *n)
{
	assert_true(bare_qp_stop(n->tp, n->qp));
	urn_qp_destroy(n->tp, n->qp);
	urn_tp_destroy(n->tp);
	urn_memx_destroy(n->memx);
	urn_mem_destroy(n->mem);
	free(n->scq.hdr);
	free(n->rcq.hdr);
	free(n->sq);
	free(n->rq);
	free(n->ram);
}

/* Run a seed. returns: messages that came over the bad wire */
static uint32_t
run(struct uc *u, uint64_t seed, enum sabotage sabotage)
{
	unsigned int buffers = rte_mempool_avail_count(test_eal_pool());
	uint32_t came[2];

	memset(u, 0, sizeof(*u));
	u->rng = sim_rng_of(seed, 1);
	u->now = 1000000000;
	u->sabotage = sabotage;
	u->mtu = 256u << sim_rnd(&u->rng, 3);
	if (!sabotage) {
		u->loss = sim_one_in(&u->rng, 4) ? 0 : sim_between(&u->rng, 3, 60);
		u->dup = sim_one_in(&u->rng, 3) ? 0 : sim_between(&u->rng, 3, 30);
		u->delay_ns = sim_one_in(&u->rng, 3) ? 0 : sim_rnd(&u->rng, 20 * TURN_NS);
		u->shuts = sim_one_in(&u->rng, 2) ? 0 : sim_between(&u->rng, 2, 200);
		u->few = sim_one_in(&u->rng, 3);
	}
	for (unsigned int i = 0; i < 2; i++)
		assert_true(open_node(u, i));
	for (unsigned int i = 0; i < 2; i++)
		assert_true(connect_node(u, i));
	run_until(u, MESSAGES);
	u->loss = u->dup = u->delay_ns = 0;
	u->few = false;
	for (unsigned int i = 0; i < 2; i++)
		came[i] = u->node[i].came;
	for (unsigned int i = 0; i < 2; i++)
		while (u->node[i].recvs - u->node[i].got < BUFS)
			post_recv(&u->node[i]);
	run_until(u, ALL);
	for (unsigned int i = 0; i < 2; i++)
		if (u->node[i].came - came[i] != LAST)
			complain(u, "messages over the sound wire did not come",
				 u->node[i].came - came[i]);
	while (u->wire_n)
		rte_pktmbuf_free(u->wire[--u->wire_n].m);
	for (unsigned int i = 0; i < 2; i++)
		close_node(&u->node[i]);
	assert_int_equal(rte_mempool_avail_count(test_eal_pool()), buffers);
	return came[0] + came[1];
}

static struct uc cluster;

/* Whole, in order, at most once; and the wire was bad enough to lose messages, and good enough to
 * leave some. */
static void
oracle(void **state)
{
	uint64_t came = 0, all = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		came += run(&cluster, seed, NONE);
		all += 2 * MESSAGES;
		if (cluster.why[0])
			fail_msg("seed %llu: %s", (unsigned long long)seed, cluster.why);
	}
	assert_in_range(came, all / 10, all - all / 10);
}

/* A broken product is found out. */
static void
sabotages(void **state)
{
	static const char *const says[] = {
		[HIDES_GAPS] = "length|did not come", [REPEATS] = "twice", [SPOILS] = "bytes"};

	(void)state;
	for (int s = HIDES_GAPS; s <= SPOILS; s++) {
		unsigned int found = 0;

		for (uint64_t seed = 1; seed <= 10; seed++) {
			run(&cluster, seed, (enum sabotage)s);
			found += cluster.why[0] != 0;
			if (s != HIDES_GAPS && cluster.why[0] && !strstr(cluster.why, says[s]))
				fail_msg("sabotage %d, seed %llu: %s", s, (unsigned long long)seed,
					 cluster.why);
		}
		assert_true(found >= 9);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(oracle), cmocka_unit_test(sabotages)};

	return cmocka_run_group_tests_name("uc", tests, NULL, NULL);
}
