/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way of a queue pair's packets: the router of their route, and the traffic class and hop limit
 * of the address vector (doc/reference/wire.md "Addresses", doc/reference/urnicd.md "Routes").
 */
#include "probe.h"

#include "../unit/net/l3_frames.h"
#include "net/router.h"
#include "transport/failure.h"
#include "wire/ecn.h"

static const uint8_t router_mac[2][6] = {{2, 0, 0, 0, 1, 1}, {2, 0, 0, 0, 1, 2}};
/* 10.0.0.0/31 has the node, 10.0.0.1, and this router; the peer is 10.0.0.2. */
static const uint8_t router4[16] = {[10] = 0xff, [11] = 0xff, [12] = 10};
static const uint8_t router6[2][16] = {{0xfe, 0x80, [15] = 0xa}, {0xfe, 0x80, [15] = 0xb}};

static struct urn_neigh *table;
static uint32_t seen; /* the generation of the table that the transport knows */

static int
lookup(void *ctx, const uint8_t gid[16], uint8_t mac[6])
{
	return urn_neigh_lookup(ctx, gid, mac);
}

static bool
hop(void *ctx, const uint8_t gid[16], uint8_t out[16])
{
	return urn_neigh_hop(ctx, gid, out);
}

/* A probe that looks addresses up in a table of neighbours, with routers whose MACs are known. */
static void
open_probe(struct probe *p, const struct probe_config *cfg)
{
	probe_open(p, cfg);
	table = urn_neigh_create(p->node.mac, (const uint8_t(*)[16])p->node.gid, 1);
	assert_non_null(table);
	assert_int_equal(urn_neigh_add_static(table, router4, router_mac[0]), 0);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(urn_neigh_add_static(table, router6[i], router_mac[i]), 0);
	p->tp->cfg.neigh = lookup;
	p->tp->cfg.neigh_doubt = NULL;
	p->tp->cfg.neigh_hop = hop;
	p->tp->cfg.neigh_ctx = table;
}

static void
close_probe(struct probe *p)
{
	probe_close(p);
	urn_neigh_destroy(table);
}

/* Set the prefix of the node's own address, and a router for all else; NULL: none. */
static void
set_routes(struct probe *p, uint8_t bits, const uint8_t *router)
{
	struct urn_neigh_route r[2] = {{.len = bits, .kind = URN_NEIGH_ROUTE_LINK},
				       {.kind = URN_NEIGH_ROUTE_GATEWAY}};

	memcpy(r[0].prefix, p->node.gid, 16);
	(void)urn_neigh_mask(r[0].prefix, bits);
	if (!p->cfg.ipv6) {
		r[1].prefix[10] = r[1].prefix[11] = 0xff;
		r[1].len = 96;
	}
	if (router)
		memcpy(r[1].via, router, 16);
	assert_int_equal(urn_neigh_set_routes(table, r, router ? 2 : 1), 0);
}

/* The engine tells the transport of the table's changes. */
static void
tell(struct probe *p)
{
	if (seen != urn_neigh_generation(table))
		urn_tp_neigh_changed(p->tp);
	seen = urn_neigh_generation(table);
}

static void
post_one(struct probe *p, uint64_t wr_id)
{
	probe_post(p, URN_WR_SEND, 0, 0, 32, 0, wr_id);
}

/* A request, and an answer owed by the responder, go to the router's MAC; the IP destination, which
 * the probe judges, is the peer. */
static void
by_router(void **state)
{
	struct probe p;

	(void)state;
	for (unsigned int ipv6 = 0; ipv6 < 2; ipv6++) {
		open_probe(&p, &(struct probe_config){.ipv6 = ipv6});
		set_routes(&p, ipv6 ? 128 : 96 + 31, ipv6 ? router6[0] : router4);
		memcpy(p.peer.mac, router_mac[0], 6);
		post_one(&p, 1);
		expect_frame(&p, SEND_ONLY, SQ(0));
		probe_write(&p, WRITE_ONLY, RQ(0), 0, 8, 8, 1);
		expect_frame(&p, ACK, RQ(0));
		probe_ack(&p, SQ(0), SYN_ACK, 1);
		expect_sent(&p, 1, SUCCESS);
		close_probe(&p);
	}
}

/* Another router, while the queue pair is up: its packets go there from then on. */
static void
other_router(void **state)
{
	struct probe p;

	(void)state;
	open_probe(&p, &(struct probe_config){.ipv6 = true});
	set_routes(&p, 128, router6[0]);
	tell(&p);
	memcpy(p.peer.mac, router_mac[0], 6);
	post_one(&p, 1);
	expect_frame(&p, SEND_ONLY, SQ(0));
	set_routes(&p, 128, router6[1]);
	tell(&p);
	memcpy(p.peer.mac, router_mac[1], 6);
	post_one(&p, 2);
	expect_frame(&p, SEND_ONLY, SQ(1));
	probe_ack(&p, SQ(1), SYN_ACK, 2);
	expect_sent(&p, 1, SUCCESS);
	expect_sent(&p, 2, SUCCESS);
	close_probe(&p);
}

/* Without a route nothing is sent, nobody is asked, and the error says so; with one all goes on. */
static void
no_route(void **state)
{
	enum { CODE = 14 };
	const uint64_t span = 4096ull << CODE;
	const struct urn_failure *f;
	struct probe p;

	(void)state;
	open_probe(&p, &(struct probe_config){.ipv6 = true, .timeout = CODE, .retry_cnt = 1});
	set_routes(&p, 128, NULL);
	tell(&p);
	post_one(&p, 1);
	probe_pass(&p, 4 * span, span / 8);
	expect_silence(&p);
	assert_int_equal(urn_neigh_count(table), 3); /* the routers; the peer is not asked for */
	expect_sent(&p, 1, RETRY_EXC_ERR);
	f = urn_failure_find(p.tp, p.qp->share, p.qp->qpn, URN_WC_RETRY_EXC_ERR);
	assert_non_null(f);
	assert_int_equal(f->obstacle, URN_OBSTACLE_NO_ROUTE);
	probe_reconnect(&p);
	set_routes(&p, 128, router6[1]);
	tell(&p);
	memcpy(p.peer.mac, router_mac[1], 6);
	post_one(&p, 2);
	expect_frame(&p, SEND_ONLY, SQ(0));
	close_probe(&p);
}

/* The error of a silent router names the router. */
static void
silent_router(void **state)
{
	static const uint8_t quiet[16] = {0xfe, 0x80, [15] = 0xc};
	enum { CODE = 14 };
	const uint64_t span = 4096ull << CODE;
	const struct urn_failure *f;
	struct probe p;
	char text[512];

	(void)state;
	open_probe(&p, &(struct probe_config){.ipv6 = true, .timeout = CODE, .retry_cnt = 0});
	set_routes(&p, 128, quiet);
	tell(&p);
	post_one(&p, 1);
	expect_silence(&p);
	f = NULL;
	/* Nobody answers: the table gives up on the router. */
	for (unsigned int i = 0; i < 4000; i++) {
		struct rte_mbuf *m[4];
		unsigned int n;

		probe_turn(&p, 1000000);
		n = urn_neigh_poll(table, p.now, p.pool, m, 4);
		rte_pktmbuf_free_bulk(m, n);
		tell(&p);
	}
	probe_pass(&p, 2 * span, span / 8);
	expect_sent(&p, 1, RETRY_EXC_ERR);
	f = urn_failure_find(p.tp, p.qp->share, p.qp->qpn, URN_WC_RETRY_EXC_ERR);
	assert_non_null(f);
	assert_int_equal(f->obstacle, URN_OBSTACLE_NO_MAC);
	assert_memory_equal(f->hop, quiet, 16);
	urn_failure_text(f, "p0", false, text, sizeof(text));
	assert_non_null(strstr(text, "from the router"));
	close_probe(&p);
}

/* Let a time pass, a millisecond at a time: the table is polled, and the transport told. */
static void
pass_with_table(struct probe *p, unsigned int ms)
{
	for (unsigned int i = 0; i < ms; i++) {
		struct rte_mbuf *m[4];

		probe_turn(p, 1000000);
		rte_pktmbuf_free_bulk(m, urn_neigh_poll(table, p->now, p->pool, m, 4));
		tell(p);
	}
}

/* A router advertises itself for some seconds. */
static void
put_ra(struct probe *p, const uint8_t router[16], uint32_t seconds)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(p->pool);
	uint8_t f[L3_ROOM];
	uint32_t len = l3_ra(f, router, seconds, 0);

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), f, len);
	urn_wire_parse(m);
	assert_int_equal(urn_neigh_input(table, m, p->now), 0);
	assert_int_equal(urn_pkt(m)->drop, URN_C_RA_RX);
	rte_pktmbuf_free(m);
}

/* A queue pair's packets go by the router that advertises itself, and by the next one when its
 * lifetime is over; between the two there is no way (RFC 4861, 6.3.4, 6.3.5). */
static void
advertised_router(void **state)
{
	struct probe p;

	(void)state;
	open_probe(&p, &(struct probe_config){.ipv6 = true, .timeout = 20});
	urn_neigh_accept_ra(table);
	set_routes(&p, 128, NULL);
	put_ra(&p, router6[0], 2);
	pass_with_table(&p, 1);
	memcpy(p.peer.mac, router_mac[0], 6);
	post_one(&p, 1);
	expect_frame(&p, SEND_ONLY, SQ(0));
	probe_ack(&p, SQ(0), SYN_ACK, 1);
	expect_sent(&p, 1, SUCCESS);
	pass_with_table(&p, 2500);
	post_one(&p, 2);
	expect_silence(&p);
	memcpy(p.peer.mac, router_mac[1], 6);
	put_ra(&p, router6[1], 1800);
	pass_with_table(&p, 300);
	expect_frame(&p, SEND_ONLY, SQ(1));
	probe_ack(&p, SQ(1), SYN_ACK, 2);
	expect_sent(&p, 2, SUCCESS);
	close_probe(&p);
}

/* Traffic class and hop limit of requests and answers are those of the address vector; a hop limit
 * of 0 is 64. The bits of congestion marks are the transport's where it obeys them. */
static void
traffic_class(void **state)
{
	static const struct {
		uint8_t type, tclass, hops, want, want_hops;
		uint64_t line;
	} cases[] = {
		{URN_QPT_RC, 0, 0, 0, 64, 0},
		{URN_QPT_RC, 0xb8, 1, 0xb8, 1, 0},
		{URN_QPT_RC, 0xff, 255, 0xff, 255, 0},
		{URN_QPT_RC, 0xbb, 7, 0xb8 | URN_ECN_ECT0, 7, 1000000000},
		{URN_QPT_UC, 0x68, 3, 0x68, 3, 0},
	};
	const struct frame *f;
	struct probe p;

	(void)state;
	for (unsigned int i = 0; i < 2 * RTE_DIM(cases); i++) {
		unsigned int k = i / 2;
		bool rc = cases[k].type == URN_QPT_RC;

		probe_open(&p, &(struct probe_config){.type = cases[k].type,
						      .ipv6 = i % 2,
						      .line = cases[k].line,
						      .traffic_class = cases[k].tclass,
						      .hop_limit = cases[k].hops});
		post_one(&p, 1);
		f = expect_frame(&p, rc ? SEND_ONLY : UC_SEND_ONLY, SQ(0));
		assert_int_equal(f->tclass, cases[k].want);
		assert_int_equal(f->hops, cases[k].want_hops);
		if (rc) {
			probe_write(&p, WRITE_ONLY, RQ(0), 0, 8, 8, 1);
			f = expect_frame(&p, ACK, RQ(0));
			assert_int_equal(f->tclass, cases[k].want);
			assert_int_equal(f->hops, cases[k].want_hops);
		}
		probe_close(&p);
	}
}

/* Put a SEND in with a tag (IEEE 802.1Q), or two. */
static void
put_tagged(struct probe *p, uint32_t psn, uint16_t tci, unsigned int tags)
{
	struct frame f = frame_of(SEND_ONLY, psn);
	uint8_t plain[FRAME_ROOM], bytes[FRAME_ROOM];
	uint32_t len;

	f.len = 16;
	f.ack = true;
	f.dqpn = p->qp->qpn;
	len = frame_write(&f, &p->peer, &p->node, plain);
	memcpy(bytes, plain, 12);
	for (unsigned int i = 0; i < tags; i++)
		memcpy(bytes + 12 + 4 * i,
		       (const uint8_t[]){0x81, 0, (uint8_t)(tci >> 8), (uint8_t)tci}, 4);
	memcpy(bytes + 12 + 4 * tags, plain + 12, len - 12);
	probe_put_raw(p, bytes, len + 4 * tags);
}

/* A tag with a priority alone is as none; frames of a VLAN, and with two tags, are dropped. */
static void
priority_tags(void **state)
{
	struct probe p;

	(void)state;
	for (unsigned int ipv6 = 0; ipv6 < 2; ipv6++) {
		probe_open(&p, &(struct probe_config){.ipv6 = ipv6});
		for (unsigned int i = 0; i < 2; i++)
			probe_recv(&p, 0, 64, i);
		put_tagged(&p, RQ(0), 0x6000, 1);
		expect_aeth(&p, RQ(0), SYN_ACK, 1);
		expect_recv(&p, 0, SUCCESS);
		put_tagged(&p, RQ(1), 0x0000, 1);
		expect_aeth(&p, RQ(1), SYN_ACK, 2);
		expect_recv(&p, 1, SUCCESS);
		expect_count(&p, DROP_VLAN, 0);
		put_tagged(&p, RQ(2), 0x6001, 1);
		put_tagged(&p, RQ(2), 0x0fff, 1);
		expect_silence(&p);
		expect_count(&p, DROP_VLAN, 2);
		put_tagged(&p, RQ(2), 0x0000, 2);
		expect_silence(&p);
		expect_count(&p, DROP_NOT_ROCE, 1);
		expect_no_cqe(&p);
		/* Cut off behind the tag's type: no tag. */
		probe_put_raw(&p, (const uint8_t[16]){2, 0, 0, 0, 0, 1, [12] = 0x81}, 16);
		expect_silence(&p);
		expect_count(&p, DROP_NOT_ROCE, 2);
		probe_close(&p);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_router),	     cmocka_unit_test(other_router),
		cmocka_unit_test(no_route),	     cmocka_unit_test(silent_router),
		cmocka_unit_test(traffic_class),     cmocka_unit_test(priority_tags),
		cmocka_unit_test(advertised_router),
	};

	return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
