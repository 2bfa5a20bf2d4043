/* SPDX-License-Identifier: BSD-3-Clause */
#include "lossless_bench.h"

#include "switch/impair.h"

enum { AT_NUMBER = 40 }; /* bytes: the frame's number */

struct urn_lossless_config
bench_config(void)
{
	struct urn_lossless_config cfg = {.priorities = 1u << BENCH_PRIORITY};

	urn_lossless_preset(&cfg);
	cfg.share = 4096;
	cfg.xoff = 16384;
	cfg.xon = 12288;
	cfg.headroom = 16384;
	return cfg;
}

static void
mac_of(uint8_t *mac, unsigned int i)
{
	memcpy(mac, (const uint8_t[]){2, 0, 0, 0, 1, (uint8_t)i}, 6);
}

void
bench_fix(struct urn_switch *sw, unsigned int i, uint16_t port)
{
	uint8_t mac[6];

	mac_of(mac, i);
	assert_int_equal(urn_fdb_set(urn_switch_fdb(sw), urn_mac(mac), port), 0);
}

uint16_t
bench_add_port(struct urn_switch *sw, uint64_t bps, bool credits)
{
	struct urn_switch_port_config c = {.credits = credits, .speed = BENCH_BPS};
	int port;

	c.impair[URN_SWITCH_OUT].rate_bps = bps;
	port = urn_switch_add_port(sw, &c);
	assert_true(port >= 0);
	return (uint16_t)port;
}

void
bench_open(struct bench *b, unsigned int ports, const struct urn_lossless_config *lossless)
{
	struct urn_switch_config cfg = {.copies = test_eal_pool(), .no_learning = true};

	memset(b, 0, sizeof(*b));
	cfg.lossless = *lossless;
	b->sw = urn_switch_create(&cfg);
	assert_non_null(b->sw);
	b->ports = ports;
	for (unsigned int i = 0; i < ports; i++)
		bench_fix(b->sw, i, bench_add_port(b->sw, BENCH_BPS, false));
}

void
bench_close(struct bench *b)
{
	urn_switch_destroy(b->sw);
}

struct rte_mbuf *
bench_frame(unsigned int dst, unsigned int src, unsigned int dscp, uint32_t number)
{
	struct rte_mbuf *m = frame_make(0, BENCH_LEN);
	uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);

	mac_of(f, dst);
	mac_of(f + 6, src);
	f[14] = 0x45;
	f[15] = (uint8_t)(dscp << 2);
	memcpy(f + AT_NUMBER, &number, sizeof(number));
	return m;
}

void
bench_input(struct bench *b, unsigned int port, struct rte_mbuf *m)
{
	urn_switch_input(b->sw, (uint16_t)port, &m, 1, b->now);
}

bool
bench_send(struct bench *b, unsigned int src, unsigned int dst)
{
	struct bench_station *s = &b->st[src];

	if (s->until[BENCH_PRIORITY] > b->now && !s->deaf)
		return false;
	bench_input(b, src, bench_frame(dst, src, BENCH_DSCP, ++s->out[dst]));
	s->sent++;
	return true;
}

void
bench_send_lossy(struct bench *b, unsigned int src, unsigned int dst)
{
	bench_input(b, src, bench_frame(dst, src, 0, 0));
	b->st[src].sent++;
}

void
bench_pfc(struct bench *b, unsigned int port, uint16_t quanta)
{
	struct urn_pfc pfc = {.enable = 1u << BENCH_PRIORITY};
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());
	uint8_t mac[6];

	assert_non_null(m);
	mac_of(mac, port);
	pfc.quanta[BENCH_PRIORITY] = quanta;
	assert_int_equal(urn_pfc_write(m, mac, &pfc), 0);
	bench_input(b, port, m);
}

/* Obey a flow control frame that came out at a port. */
static void
obey(struct bench *b, struct bench_station *s, const struct rte_mbuf *m)
{
	uint64_t quantum = urn_pfc_quantum(BENCH_BPS);

	assert_int_equal(urn_pfc_read(m, &s->last), 0);
	s->frames_pfc++;
	for (unsigned int p = 0; p < 8; p++)
		if (s->last.enable & 1u << p)
			s->until[p] = b->now + urn_pfc_ns(s->last.quanta[p], quantum);
}

void
bench_take(struct bench *b, unsigned int port, struct rte_mbuf *m)
{
	struct bench_station *s = &b->st[port];
	const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t number;

	if (urn_pfc_is_control(m)) {
		obey(b, s, m);
	} else {
		memcpy(&number, f + AT_NUMBER, sizeof(number));
		assert_true(number == 0 || number > s->next[f[11]]);
		if (number)
			s->next[f[11]] = number;
		s->from[f[11]]++;
		s->came++;
	}
	rte_pktmbuf_free(m);
}

uint64_t
bench_waiting(const struct urn_switch *sw)
{
	uint64_t bytes = 0;

	for (uint16_t i = 0; i < (uint16_t)urn_switch_ports(sw); i++)
		for (unsigned int p = 0; p < URN_SWQ_PRIORITIES; p++)
			bytes += urn_switch_queues(sw, i)->level[p].bytes;
	return bytes;
}

void
bench_step(struct bench *b)
{
	struct rte_mbuf *m[8];
	uint64_t waiting = bench_waiting(b->sw);

	b->most = waiting > b->most ? waiting : b->most;
	urn_switch_run(b->sw, b->now);
	b->now += BENCH_STEP;
	for (uint16_t i = 0; i < b->ports; i++) {
		unsigned int n;

		while ((n = urn_switch_output(b->sw, i, m, 8, b->now)) > 0)
			for (unsigned int k = 0; k < n; k++)
				bench_take(b, i, m[k]);
	}
}

uint64_t
bench_sum(const struct bench *b, enum urn_swq_counter c)
{
	uint64_t sum = 0;

	for (uint16_t i = 0; i < b->ports; i++)
		sum += urn_switch_queues(b->sw, i)->level[BENCH_PRIORITY].c.v[c];
	return sum;
}

uint64_t
bench_drops(const struct bench *b)
{
	uint64_t n = 0;

	for (uint16_t i = 0; i < b->ports; i++) {
		const uint64_t *c = urn_switch_counters(b->sw, i)->v;

		for (unsigned int k = URN_SWITCH_DROP_RUNT; k <= URN_SWITCH_DROP_COPY; k++)
			n += c[k];
		n += urn_impair_counters(urn_switch_impair(b->sw, i, URN_SWITCH_OUT))
			     ->v[URN_IMPAIR_QUEUE];
	}
	return n;
}
