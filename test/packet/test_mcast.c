/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast on one engine: a datagram to a group comes to each attached UD queue pair once, not to
 * its sender, and copies cost others no more than a bounded part of a turn.
 */
#include "probe.h"

#include "bare.h"
#include "transport/mcast.h"

#include <stdlib.h>

enum { LEN = 33, ROOM = 128 };

/* The address of a group: IPv4 or IPv6, and its MAC. */
static struct frame_addr
group_of(bool v6, uint8_t last)
{
	struct frame_addr a = {
		.mac = {0x01, 0x00, 0x5e, 0x01, 0x02, last},
		.gid = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 0x81, [14] = 2, [15] = last}};

	if (!v6)
		return a;
	return (struct frame_addr){.mac = {0x33, 0x33, 0x00, 0x00, 0x00, last},
				   .gid = {0xff, 0x0e, [15] = last}};
}

static void
attach(struct probe *p, unsigned int i, const struct frame_addr *group)
{
	bool first;

	assert_int_equal(urn_mcast_attach(p->tp, p->q[i].qp, group->gid, &first), 0);
}

static void
detach(struct probe *p, unsigned int i, const struct frame_addr *group)
{
	bool last;

	assert_int_equal(urn_mcast_detach(p->tp, p->q[i].qp, group->gid, &last), 0);
}

static struct frame
datagram(void)
{
	struct frame f = frame_of(UD_SEND, 5);

	f.dqpn = URN_QPN_MULTICAST;
	f.qkey = PROBE_QKEY;
	f.sqpn = 0x4711;
	f.len = LEN;
	probe_fill(f.data, LEN, 3, 0);
	return f;
}

/* Put a frame to a group. */
static void
put(struct probe *p, struct frame *f, const struct frame_addr *group)
{
	struct frame_addr node = p->node;

	p->node = *group;
	probe_put(p, f);
	p->node = node;
}

/* Post a receive on each queue pair; its wr_id is the queue pair's index. */
static void
receives(struct probe *p)
{
	for (unsigned int i = 0; i < PROBE_QPS; i++) {
		probe_use(p, i);
		probe_recv(p, i * ROOM, ROOM, i);
	}
	probe_use(p, 0);
}

/* The datagram came to these queue pairs (bit i: index i), once to each, and to no other. */
static void
expect_at(struct probe *p, unsigned int who)
{
	unsigned int came = 0;

	probe_settle(p);
	while (p->rcq_seen != p->rcq.prod) {
		const struct urn_abi_cqe *c;

		p->rcq_seen++;
		atomic_store(&p->rcq.hdr->cons, p->rcq_seen);
		c = probe_cqe(p, true);
		assert_int_equal(c->status, URN_WC_SUCCESS);
		assert_int_equal(c->byte_len, LEN + 40);
		assert_int_equal(c->wc_flags & ~URN_WCF_IPV4, URN_WCF_GRH);
		assert_false(came >> c->wr_id & 1);
		came |= 1u << c->wr_id;
		check_fill(probe_at(p, (uint32_t)c->wr_id * ROOM + 40), LEN, 3, 0);
	}
	assert_int_equal(came, who);
}

/* Each attached queue pair gets one, whatever the order; twice attached is attached once; detached
 * gets none. */
static void
members(void **state)
{
	(void)state;
	for (int how = 0; how < 4; how++) {
		bool v6 = how & 1, last;
		struct frame_addr g = group_of(v6, 7), other = group_of(v6, 8);
		struct frame f = datagram();
		struct probe p;

		probe_open(&p, &(struct probe_config){.type = URN_QPT_UD,
						      .ipv6 = v6,
						      .qps = PROBE_QPS,
						      .delay_seed = how >> 1});
		receives(&p);
		put(&p, &f, &g);
		expect_at(&p, 0);
		expect_count(&p, DROP_MCAST_GROUP, 1);
		attach(&p, 0, &g);
		attach(&p, 1, &g);
		attach(&p, 1, &g);
		attach(&p, 3, &g);
		attach(&p, 2, &other);
		put(&p, &f, &g);
		expect_at(&p, 1 | 2 | 8);
		expect_count(&p, MCAST_COPIES, 2);
		/* The header in front names the group. */
		assert_memory_equal(probe_at(&p, v6 ? 24 : 36), v6 ? g.gid : g.gid + 12,
				    v6 ? 16 : 4);
		receives(&p);
		detach(&p, 1, &g);
		assert_int_equal(urn_mcast_detach(p.tp, p.q[1].qp, g.gid, &last), EINVAL);
		put(&p, &f, &g);
		expect_at(&p, 1 | 8);
		put(&p, &f, &other);
		expect_at(&p, 4);
		/* The queue pairs go attached, as when their client is killed. */
		probe_close(&p);
	}
}

/* Frames that are not to a group of ours, or no datagrams to one, are dropped and counted. */
static void
others(void **state)
{
	struct frame_addr g = group_of(false, 7), bad = g, own;
	struct frame f = datagram();
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.type = URN_QPT_UD, .qps = PROBE_QPS});
	receives(&p);
	attach(&p, 0, &g);
	bad.mac[5] ^= 1;
	put(&p, &f, &bad);
	expect_at(&p, 0);
	expect_count(&p, DROP_ADDRESS, 1);
	f.dqpn = p.q[0].qp->qpn;
	put(&p, &f, &g);
	expect_at(&p, 0);
	expect_count(&p, DROP_NO_QP, 1);
	f = frame_of(SEND_ONLY, 0);
	f.dqpn = URN_QPN_MULTICAST;
	put(&p, &f, &g);
	expect_at(&p, 0);
	expect_count(&p, DROP_QP_TYPE, 1);
	f = datagram();
	f.qkey ^= 1;
	put(&p, &f, &g);
	expect_at(&p, 0);
	expect_count(&p, DROP_QKEY, 1);
	f = datagram();
	f.pkey = 0x1234;
	put(&p, &f, &g);
	expect_at(&p, 0);
	expect_count(&p, DROP_PKEY, 1);
	/* A frame of our own does not come from the wire. */
	f = datagram();
	own = p.peer;
	p.peer = p.node;
	put(&p, &f, &g);
	p.peer = own;
	expect_at(&p, 0);
	expect_count(&p, DROP_ADDRESS, 2);
	put(&p, &f, &g);
	expect_at(&p, 1);
	probe_close(&p);
}

/* The sender's frame goes out, and to those of its node that are attached, but not to itself. */
static void
own_node(void **state)
{
	struct frame_addr g = group_of(false, 7), peer;
	const struct frame *f;
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.type = URN_QPT_UD, .qps = PROBE_QPS});
	peer = p.peer;
	bare_ah(&p.ah, &p.node, &g, p.pd);
	p.ah.group = true;
	probe_fill(probe_at(&p, 4096), LEN, 3, 0);
	for (unsigned int attached = 0; attached < 3; attached++) {
		/* Nobody; the sender alone; the sender and two others. */
		static const unsigned int who[] = {0, 0, 2 | 4};

		if (attached == 1)
			attach(&p, 0, &g);
		if (attached == 2) {
			attach(&p, 1, &g);
			attach(&p, 2, &g);
		}
		receives(&p);
		p.peer = g;
		probe_prepare(&p, URN_WR_SEND, URN_WRF_SIGNALED, 4096, LEN, 0, 9);
		probe_slot(&p)->ud.remote_qpn = URN_QPN_MULTICAST;
		probe_ring(&p);
		f = expect_frame(&p, UD_SEND, SQ(attached));
		assert_int_equal(f->dqpn, URN_QPN_MULTICAST);
		expect_sent(&p, 9, SUCCESS);
		expect_at(&p, who[attached]);
		p.peer = peer;
		p.q[0].rq->prod = atomic_load(&p.q[0].rq->prod);
	}
	probe_close(&p);
}

/* ---- bounds */

enum { CROWD = 100 };

/* Queue pairs of a client with many attachments. */
struct crowd {
	struct urn_tp_share share;
	struct urn_qp *qp[CROWD];
	struct urn_abi_wq *sq[CROWD], *rq[CROWD];
};

static void
crowd_open(struct probe *p, struct crowd *c, const struct frame_addr *group)
{
	bool first;

	memset(c, 0, sizeof(*c));
	for (unsigned int i = 0; i < CROWD; i++) {
		struct urn_qp_config cfg = {.type = URN_QPT_UD,
					    .pd = p->pd,
					    .send_cq = &p->scq,
					    .recv_cq = &p->rcq,
					    .share = &c->share};
		struct urn_abi_qp_attr a;
		char why[160];

		c->sq[i] = bare_wq(4, urn_abi_sq_stride(1, 0));
		c->rq[i] = bare_wq(4, urn_abi_rq_stride(1));
		assert_true(c->sq[i] && c->rq[i]);
		cfg.sq = bare_sq(c->sq[i], 4, 1, 0);
		cfg.rq = bare_rq(c->rq[i], 4, 1);
		assert_int_equal(urn_qp_create(p->tp, &cfg, &c->qp[i]), 0);
		probe_attributes(p, &a);
		for (uint8_t s = URN_QPS_INIT; s <= URN_QPS_RTS; s++) {
			a.state = s;
			assert_int_equal(urn_qp_modify(p->tp, c->qp[i],
						       URN_QPM_STATE | bare_qp_mask(URN_QPT_UD, s),
						       &a, why, sizeof(why)),
					 0);
		}
		assert_int_equal(urn_mcast_attach(p->tp, c->qp[i], group->gid, &first), 0);
		assert_int_equal(first, i == 0);
	}
}

static void
crowd_close(struct probe *p, struct crowd *c)
{
	for (unsigned int i = 0; i < CROWD; i++) {
		assert_true(bare_qp_stop(p->tp, c->qp[i]));
		urn_qp_destroy(p->tp, c->qp[i]);
		free(c->sq[i]);
		free(c->rq[i]);
	}
	assert_int_equal(c->share.mcast, 0);
}

/*
 * A burst to a group in which a client has a hundred queue pairs: a turn makes no more copies than
 * it may, and another client with one queue pair there gets at least half of its datagrams; another
 * group all.
 */
static void
bounded(void **state)
{
	struct frame_addr crowded = group_of(false, 7), quiet = group_of(false, 8);
	struct frame f = datagram();
	struct crowd c;
	struct probe p;
	uint64_t came;

	(void)state;
	probe_open(&p, &(struct probe_config){.type = URN_QPT_UD, .qps = PROBE_QPS});
	p.tp->cfg.max_qp = 256;
	crowd_open(&p, &c, &crowded);
	attach(&p, 0, &crowded);
	attach(&p, 1, &quiet);
	for (unsigned int turn = 0; turn < 4; turn++) {
		uint64_t copies = p.tp->c.v[URN_C_MCAST_COPIES];

		for (unsigned int i = 0; i < URN_TP_BURST; i++) {
			probe_use(&p, 0);
			probe_recv(&p, 0, ROOM, 0);
			probe_use(&p, 1);
			probe_recv(&p, 0, ROOM, 1);
		}
		for (unsigned int i = 0; i < URN_TP_BURST; i++)
			put(&p, &f, i % 8 ? &crowded : &quiet);
		came = p.rcq.prod;
		probe_turn(&p, 1000);
		copies = p.tp->c.v[URN_C_MCAST_COPIES] - copies;
		came = p.rcq.prod - came;
		assert_in_range(copies, URN_MCAST_COPIES / 2, URN_MCAST_COPIES);
		assert_in_range(came, URN_TP_BURST / 8 + 14, URN_TP_BURST);
		assert_in_range(c.share.mcast_copies, 1, URN_MCAST_COPIES / 2);
	}
	assert_true(p.tp->c.v[URN_C_DROP_MCAST_COPY] > 0);
	p.rcq_seen = p.rcq.prod;
	crowd_close(&p, &c);
	probe_close(&p);
}

/* Attachments of a client, and groups of an adapter, are so many and no more; each comes back. */
static void
limits(void **state)
{
	struct frame_addr g = group_of(true, 0);
	struct urn_tp_share rich = {0};
	struct probe p;
	bool first, last;

	(void)state;
	probe_open(&p, &(struct probe_config){.type = URN_QPT_UD, .qps = PROBE_QPS});
	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i <= URN_MCAST_CLIENT; i++) {
			g.gid[15] = (uint8_t)i;
			assert_int_equal(urn_mcast_attach(p.tp, p.qp, g.gid, &first),
					 i < URN_MCAST_CLIENT ? 0 : ENOMEM);
		}
		urn_mcast_detach_all(p.tp, p.qp);
		assert_int_equal(p.qp->flags & URN_QPF_MCAST, 0);
	}
	/* Another engine's groups count, too. */
	for (unsigned int i = 0; i < URN_MCAST_GROUPS; i++) {
		g.gid[15] = (uint8_t)i;
		assert_int_equal(urn_mcast_tell(p.tp, g.gid, 3, true), 0);
	}
	g.gid[14] = 1;
	assert_int_equal(urn_mcast_tell(p.tp, g.gid, 3, true), ENOMEM);
	assert_int_equal(urn_mcast_attach(p.tp, p.qp, g.gid, &first), ENOMEM);
	g.gid[14] = 0;
	assert_int_equal(urn_mcast_attach(p.tp, p.qp, g.gid, &first), 0);
	assert_true(first);
	assert_int_equal(urn_mcast_detach(p.tp, p.qp, g.gid, &last), 0);
	assert_true(last);
	assert_int_equal(urn_mcast_tell(p.tp, g.gid, 3, false), 0);
	g.gid[14] = 1;
	assert_int_equal(urn_mcast_attach(p.tp, p.qp, g.gid, &first), 0);
	(void)rich;
	probe_close(&p);
}

/* Other engines with queue pairs in the group get one copy each, and this engine's get theirs. */
static void
engines(void **state)
{
	struct frame_addr g = group_of(false, 7);
	struct frame f = datagram();
	struct rte_mbuf *m[1];
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.type = URN_QPT_UD, .qps = PROBE_QPS});
	receives(&p);
	attach(&p, 0, &g);
	assert_int_equal(urn_mcast_tell(p.tp, g.gid, 3, true), 0);
	assert_int_equal(urn_mcast_tell(p.tp, g.gid, 5, true), 0);
	put(&p, &f, &g);
	urn_tp_turn(p.tp, p.now);
	urn_tp_rx(p.tp, p.in, p.in_n, false);
	p.in_n = 0;
	assert_int_equal(p.tp->handover_n, 2);
	assert_int_equal(urn_qpn_engine(urn_pkt(p.tp->handover[0])->dqpn), 3);
	assert_int_equal(urn_qpn_engine(urn_pkt(p.tp->handover[1])->dqpn), 5);
	/* The other engine gives the copy to its own queue pairs, and to no further engine. */
	m[0] = p.tp->handover[1];
	rte_pktmbuf_free(p.tp->handover[0]);
	p.tp->handover_n = 0;
	expect_at(&p, 1);
	probe_recv(&p, 0, ROOM, 0);
	urn_tp_rx(p.tp, m, 1, true);
	assert_int_equal(p.tp->handover_n, 0);
	expect_at(&p, 1);
	probe_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members), cmocka_unit_test(others), cmocka_unit_test(own_node),
		cmocka_unit_test(bounded), cmocka_unit_test(limits), cmocka_unit_test(engines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
