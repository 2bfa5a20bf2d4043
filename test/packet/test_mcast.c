/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast on one engine: a datagram to a group comes to each attached UD queue pair once, not to
 * its sender; attachments and groups have limits.
 */
#include "mcast_bench.h"

enum { ROOM = 128 };

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
		assert_int_equal(c->byte_len, MCAST_LEN + 40);
		assert_int_equal(c->wc_flags & ~URN_WCF_IPV4, URN_WCF_GRH);
		assert_false(came >> c->wr_id & 1);
		came |= 1u << c->wr_id;
		check_fill(probe_at(p, (uint32_t)c->wr_id * ROOM + 40), MCAST_LEN, 3, 0);
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
		struct frame_addr g = mcast_group(v6, 7), other = mcast_group(v6, 8);
		struct frame f = mcast_datagram();
		struct probe p;

		probe_open(&p, &(struct probe_config){.type = URN_QPT_UD,
						      .ipv6 = v6,
						      .qps = PROBE_QPS,
						      .delay_seed = how >> 1});
		receives(&p);
		mcast_put(&p, &f, &g);
		expect_at(&p, 0);
		expect_count(&p, DROP_MCAST_GROUP, 1);
		mcast_attach(&p, p.q[0].qp, &g);
		mcast_attach(&p, p.q[1].qp, &g);
		mcast_attach(&p, p.q[1].qp, &g);
		mcast_attach(&p, p.q[3].qp, &g);
		mcast_attach(&p, p.q[2].qp, &other);
		mcast_put(&p, &f, &g);
		expect_at(&p, 1 | 2 | 8);
		expect_count(&p, MCAST_COPIES, 2);
		/* The header in front names the group. */
		assert_memory_equal(probe_at(&p, v6 ? 24 : 36), v6 ? g.gid : g.gid + 12,
				    v6 ? 16 : 4);
		receives(&p);
		mcast_detach(&p, p.q[1].qp, &g);
		assert_int_equal(urn_mcast_detach(p.tp, p.q[1].qp, g.gid, &last), EINVAL);
		mcast_put(&p, &f, &g);
		expect_at(&p, 1 | 8);
		mcast_put(&p, &f, &other);
		expect_at(&p, 4);
		/* The queue pairs go attached, as when their client is killed. */
		probe_close(&p);
	}
}

/* Frames that are not to a group of ours, or no datagrams to one, are dropped and counted. */
static void
others(void **state)
{
	struct frame_addr g = mcast_group(false, 7), bad = g, own;
	struct frame f = mcast_datagram();
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.type = URN_QPT_UD, .qps = PROBE_QPS});
	receives(&p);
	mcast_attach(&p, p.q[0].qp, &g);
	bad.mac[5] ^= 1;
	mcast_put(&p, &f, &bad);
	expect_at(&p, 0);
	expect_count(&p, DROP_ADDRESS, 1);
	f.dqpn = p.q[0].qp->qpn;
	mcast_put(&p, &f, &g);
	expect_at(&p, 0);
	expect_count(&p, DROP_NO_QP, 1);
	f = frame_of(SEND_ONLY, 0);
	f.dqpn = URN_QPN_MULTICAST;
	mcast_put(&p, &f, &g);
	expect_at(&p, 0);
	expect_count(&p, DROP_QP_TYPE, 1);
	f = mcast_datagram();
	f.qkey ^= 1;
	mcast_put(&p, &f, &g);
	expect_at(&p, 0);
	expect_count(&p, DROP_QKEY, 1);
	f = mcast_datagram();
	f.pkey = 0x1234;
	mcast_put(&p, &f, &g);
	expect_at(&p, 0);
	expect_count(&p, DROP_PKEY, 1);
	/* A frame of our own does not come from the wire. */
	f = mcast_datagram();
	own = p.peer;
	p.peer = p.node;
	mcast_put(&p, &f, &g);
	p.peer = own;
	expect_at(&p, 0);
	expect_count(&p, DROP_ADDRESS, 2);
	mcast_put(&p, &f, &g);
	expect_at(&p, 1);
	probe_close(&p);
}

/* The sender's frame goes out, and to those of its node that are attached, but not to itself. */
static void
own_node(void **state)
{
	struct frame_addr g = mcast_group(false, 7), peer;
	const struct frame *f;
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.type = URN_QPT_UD, .qps = PROBE_QPS});
	peer = p.peer;
	bare_ah(&p.ah, &p.node, &g, p.pd);
	p.ah.group = true;
	probe_fill(probe_at(&p, 4096), MCAST_LEN, 3, 0);
	for (unsigned int attached = 0; attached < 3; attached++) {
		/* Nobody; the sender alone; the sender and two others. */
		static const unsigned int who[] = {0, 0, 2 | 4};

		if (attached == 1)
			mcast_attach(&p, p.q[0].qp, &g);
		if (attached == 2) {
			mcast_attach(&p, p.q[1].qp, &g);
			mcast_attach(&p, p.q[2].qp, &g);
		}
		receives(&p);
		p.peer = g;
		probe_prepare(&p, URN_WR_SEND, URN_WRF_SIGNALED, 4096, MCAST_LEN, 0, 9);
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

/* Attachments of a client, and groups of an adapter, are so many and no more; each comes back. */
static void
limits(void **state)
{
	struct frame_addr g = mcast_group(true, 0);
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
		g.gid[14] = (uint8_t)(i >> 8);
		g.gid[15] = (uint8_t)i;
		assert_int_equal(urn_mcast_tell(p.tp, g.gid, 3, true), 0);
	}
	g.gid[14]++;
	assert_int_equal(urn_mcast_tell(p.tp, g.gid, 3, true), ENOMEM);
	assert_int_equal(urn_mcast_attach(p.tp, p.qp, g.gid, &first), ENOMEM);
	g.gid[14]--;
	assert_int_equal(urn_mcast_attach(p.tp, p.qp, g.gid, &first), 0);
	assert_true(first);
	assert_int_equal(urn_mcast_detach(p.tp, p.qp, g.gid, &last), 0);
	assert_true(last);
	assert_int_equal(urn_mcast_tell(p.tp, g.gid, 3, false), 0);
	g.gid[14]++;
	assert_int_equal(urn_mcast_attach(p.tp, p.qp, g.gid, &first), 0);
	probe_close(&p);
}

/* Other engines with queue pairs in the group get one copy each, and this engine's get theirs. */
static void
engines(void **state)
{
	struct frame_addr g = mcast_group(false, 7);
	struct frame f = mcast_datagram();
	struct rte_mbuf *m[1];
	struct probe p;

	(void)state;
	probe_open(&p, &(struct probe_config){.type = URN_QPT_UD, .qps = PROBE_QPS});
	receives(&p);
	mcast_attach(&p, p.q[0].qp, &g);
	assert_int_equal(urn_mcast_tell(p.tp, g.gid, 3, true), 0);
	assert_int_equal(urn_mcast_tell(p.tp, g.gid, 5, true), 0);
	mcast_put(&p, &f, &g);
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
		cmocka_unit_test(members), cmocka_unit_test(others),  cmocka_unit_test(own_node),
		cmocka_unit_test(limits),  cmocka_unit_test(engines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
