/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One run: make the cluster, let events happen in the order of their times,
 * take it down. Objects that take long to make stay from run to run: the EAL, the
 * packet pools, memory.
 */
#include "call.h"

#include "packet/bare.h"
#include "pmd_glue/eal.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdlib.h>

#define STALL_NS 10000000000ull    /* time without a completion that counts as a stall */
#define STALL_CM_NS 300000000000ull /* the same where programs ask each other to wait: 69 s a time */
#define STALL_EVENTS 4000000ull    /* number of events without a completion that counts as a stall */
#define START_NS 1000000000ull

/* Faults that can make all retries fail. */
#define WIRE_FAILS                                                                           \
	(SIM_BIT(DROP) | SIM_BIT(CORRUPT) | SIM_BIT(RATE) | SIM_BIT(BLACKHOLE) | SIM_BIT(CUT) | \
	 SIM_BIT(FLAP) | SIM_BIT(PAUSE) | SIM_BIT(NEIGH) | SIM_BIT(EXHAUST) | SIM_BIT(STALL))

/* Faults that lose each frame independently. */
#define LOSES (SIM_BIT(DROP) | SIM_BIT(CORRUPT))

static struct rte_mempool *pools[SIM_NODES], *copies;

/* ---- failures and the trace */

void
sim_fail(struct sim *s, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (s->why[0])
		return;
	n = snprintf(s->why, sizeof(s->why), "at %.3f us: ", (double)(s->now - s->start) / 1000.0);
	va_start(ap, fmt);
	vsnprintf(s->why + n, sizeof(s->why) - (size_t)n, fmt, ap);
	va_end(ap);
	if (s->trace)
		fprintf(s->trace, "%s\n", s->why);
}

static void
mix(struct sim *s, uint64_t v)
{
	s->hash = (s->hash ^ v) * 0x100000001b3u;
	s->hash ^= s->hash >> 29;
}

void
sim_note(struct sim *s, int node, const char *what, uint64_t a, uint64_t b, uint64_t c)
{
	mix(s, s->now);
	mix(s, (uint64_t)node << 32 ^ (uint8_t)what[0] ^ a);
	mix(s, b);
	mix(s, c);
	if (s->trace)
		fprintf(s->trace, "%12.3f us  node %2d  %-9s %llx %llx %llx\n",
			(double)(s->now - s->start) / 1000.0, node, what, (unsigned long long)a,
			(unsigned long long)b, (unsigned long long)c);
}

void
sim_note_frame(struct sim *s, unsigned int node, const char *what, const struct rte_mbuf *m)
{
	const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t bth = f[12] == 0x86 ? 62 : 42, w[3];

	if (m->data_len < bth + 12)
		return;
	memcpy(w, f + bth, 12);
	mix(s, s->now);
	mix(s, (uint64_t)node << 32 ^ (uint8_t)what[0]);
	mix(s, (uint64_t)w[0] << 32 | w[1]);
	mix(s, (uint64_t)w[2] << 32 | m->data_len);
	if (s->trace)
		fprintf(s->trace,
			"%12.3f us  node %2u  %-9s to %u QP 0x%06x opcode 0x%02x%s PSN 0x%06x, %u bytes\n",
			(double)(s->now - s->start) / 1000.0, node, what, f[5] - 1u,
			rte_be_to_cpu_32(w[1]) & 0xffffff, f[bth],
			rte_be_to_cpu_32(w[2]) >> 31 ? " A" : "", rte_be_to_cpu_32(w[2]) & 0xffffff,
			m->data_len);
}

/* ---- once a process */

int
sim_init(const char *program)
{
	struct urn_eal_config c = {.program = program, .memory_mb = 160, .lcores = 1};
	struct urn_err err = {{0}};
	enum { ROOM = RTE_PKTMBUF_HEADROOM + 4352 };

	/* Memory that a run frees serves the next run, page for page. */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	if (urn_eal_start(&c, &err) != 0) {
		fprintf(stderr, "%s: %s\n", program, err.text);
		return -1;
	}
	atexit(urn_eal_stop);
	for (int i = 0; i <= SIM_NODES; i++) {
		char name[16];
		struct rte_mempool *p;

		snprintf(name, sizeof(name), "sim%d", i);
		p = rte_pktmbuf_pool_create(name, SIM_MBUFS, 256, URN_PKT_PRIV, ROOM, SOCKET_ID_ANY);
		if (!p) {
			fprintf(stderr, "%s: no memory for packets\n", program);
			return -1;
		}
		*(i < SIM_NODES ? &pools[i] : &copies) = p;
	}
	return 0;
}

struct sim *
sim_new(void)
{
	struct sim *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->model = model_new();
	for (unsigned int i = 0; i < SIM_NODES; i++) {
		s->node[i].s = s;
		s->node[i].id = i;
		s->node[i].bare_pool = pools[i];
		s->node[i].db = aligned_alloc(64, (sizeof(*s->node[i].db) + 63) & ~63ul);
		if (s->node[i].db)
			memset(s->node[i].db, 0, sizeof(*s->node[i].db));
	}
	s->net.copies = copies;
	return s;
}

void
sim_free(struct sim *s)
{
	for (unsigned int i = 0; i < SIM_NODES; i++) {
		free(s->node[i].db);
		free(s->node[i].bare_ram);
	}
	model_free(s->model);
	free(s);
}

/* ---- making */

static uint32_t
bytes_of_end(const struct sim_plan *p)
{
	uint32_t each = p->max_len + 2 * SIM_GUARD + 16;

	return (p->slots + p->bufs + 2) * each + SIM_WORDS * 8 + 8 * SIM_GUARD;
}

static uint32_t
bytes_of_node(const struct sim_plan *p, uint32_t ends)
{
	return ends * bytes_of_end(p) + (SIM_BUFS + SIM_SLOTS) * (4096 + 40 + 2 * SIM_GUARD) * !!p->datagrams +
	       SIM_BUFS * (p->max_len + 2 * SIM_GUARD) + 4096;
}

/* Put the shared queue and its receives into another protection domain than most QPs that use the queue. */
static void
open_domain(struct sim_node *n)
{
	n->s->stats.fired[SIM_APART]++;
	n->srq_q.wrong_key = n->key_all;
	if (n->srq_space)
		return;
	if (urn_mem_alloc_pd(n->mem, &n->srq_pd) != 0 ||
	    urn_mem_reg_mr(n->mem, n->srq_pd, n->ram, n->ram_size, SIM_VA, URN_ACCESS_LOCAL_WRITE,
			   &n->srq_key) != 0) {
		sim_fail(n->s, "node %u: no domain for a shared queue", n->id);
		return;
	}
	n->srq.pd = n->srq_pd;
	n->srq_q.key = n->srq_key;
	n->srq_q.m_key = sim_model_key(n, 0, n->ram_size, URN_ACCESS_LOCAL_WRITE);
}

static void
open_srq(struct sim_node *n)
{
	struct sim *s = n->s;
	uint32_t bufs = s->plan.bufs * 2;

	if (!s->plan.srq[n->id] || n->host)
		return;
	sim_rq_open(n, &n->srq_q, bufs, s->plan.max_len, true);
	n->srq_q.shared = true;
	n->srq_q.m = model_srq(s->model, n->id);
	n->srq.rq = bare_rq(n->srq_q.hdr, n->srq_q.mask + 1, SIM_SGES);
	n->srq.pd = n->pd;
	n->srq_space = sim_space_draw(n, 3200 + n->id);
	if (n->srq_space) {
		n->srq.pd = n->srq_space->pd;
		n->srq_q.key = n->srq_space->key_all;
		n->srq_q.m_key = n->srq_space->m_all;
	}
	if (sim_on(s, SIM_APART))
		open_domain(n);
}

static void
give_memory(struct sim_node *n, uint32_t bytes)
{
	if (n->s->plan.clients) {
		n->ram = sim_host_ram(n, bytes);
		return;
	}
	if (bytes > n->ram_cap) {
		free(n->bare_ram);
		n->ram_cap = (bytes + 4095) & ~4095u;
		n->bare_ram = aligned_alloc(4096, n->ram_cap);
	}
	n->ram = n->bare_ram;
	if (!n->ram) {
		fputs("urnic-sim: no memory\n", stderr);
		exit(1);
	}
}

/*
 * Tell the model which failures the wire may cause: the model knows how often only for frames lost at
 * random. Where gates close before foreign memory, more is dropped than wires lose.
 */
static void
wire_fails(struct sim *s)
{
	const struct sim_plan *p = &s->plan;
	double loss = 1 - (1 - (sim_on(s, SIM_DROP) ? p->drop : 0)) * (1 - (sim_on(s, SIM_CORRUPT) ? p->corrupt : 0));

	if (p->faults & (WIRE_FAILS & ~LOSES))
		model_wire_fails(s->model);
	else if ((sim_on(s, SIM_HANG) && p->hang_fails) || (sim_on(s, SIM_VANISH) && p->away_fails))
		model_wire_fails(s->model);
	else if ((p->faults & LOSES) && sim_on(s, SIM_FOREIGN))
		model_wire_fails(s->model);
	else if (p->faults & LOSES)
		model_wire_loses(s->model, loss, p->retry_cnt + 1u);
}

static void
open_cluster(struct sim *s)
{
	struct sim_plan *p = &s->plan;
	uint8_t from[SIM_ENDS / 2], to[SIM_ENDS / 2];
	uint32_t ends[SIM_NODES] = {0};

	if (p->clients)
		s->fds = sim_host_ready(p->nodes);
	for (uint32_t i = 0; i < p->pairs; i++) {
		from[i] = (uint8_t)sim_rnd(&s->rng, p->nodes);
		to[i] = (uint8_t)sim_rnd(&s->rng, p->nodes);
		if (from[i] == to[i] && !sim_one_in(&s->rng, 4))
			to[i] = (uint8_t)((to[i] + 1) % p->nodes);
		ends[from[i]]++;
		ends[to[i]]++;
	}
	for (unsigned int i = 0; i < p->nodes; i++) {
		uint32_t most = p->cm ? SIM_CALL_PAIRS : 1;
		uint32_t bytes = (bytes_of_node(p, ends[i] * most) + 63) & ~63u;

		give_memory(&s->node[i], bytes);
		sim_node_open(s, i, bytes);
		open_srq(&s->node[i]);
	}
	sim_net_open(s);
	for (unsigned int i = 0; i < p->nodes; i++)
		sim_ud_open(&s->node[i]);
	if (p->cm)
		sim_calls_open(s, from, to);
	for (uint32_t i = 0; !p->cm && i < p->pairs; i++)
		sim_pair_open(s, &s->node[from[i]], &s->node[to[i]]);
	wire_fails(s);
	sim_faults_open(s);
}

/* ---- the course of it */

static bool
all_posted(const struct sim *s)
{
	for (unsigned int i = 0; i < s->ends; i++)
		if (s->end[i].left || (s->end[i].posted != s->end[i].done && !s->end[i].deaf))
			return false;
	for (unsigned int i = 0; i < s->plan.nodes; i++)
		if (s->node[i].ud.qp && (s->node[i].ud.left || s->node[i].ud.posted != s->node[i].ud.done))
			return false;
	return sim_host_settled(s) && sim_cqs_settled(s) && model_open(s->model, -1) == 0;
}

static bool
all_flushed(struct sim *s)
{
	for (unsigned int i = 0; i < s->plan.nodes; i++) {
		const struct sim_rq *rq = &s->node[i].srq_q;

		if (s->node[i].ud.qp && s->node[i].ud.rq.busy)
			return false;
		/* QPs flush only receives that they took from a shared queue; the rest stays there. */
		if (rq->hdr && atomic_load(&rq->hdr->cons) != model_srq_done(s->model, rq->m))
			return false;
	}
	return model_open_recvs(s->model, -1) == 0 && sim_cqs_settled(s) && sim_calls_gone(s) && sim_events_came(s);
}

/* After programs are done: they end their QPs, and get back the receives they posted. */
static void
wind_up(struct sim *s)
{
	s->winding_up = true;
	sim_calls_end(s);
	for (unsigned int i = 0; i < s->ends; i++) {
		sim_overrun_judge(&s->end[i]);
		s->end[i].rq.over = true;
		sim_end_ended(&s->end[i]);
	}
	for (unsigned int i = 0; i < s->plan.nodes; i++) {
		struct sim_node *n = &s->node[i];

		n->asleep_until = 0;
		n->srq_q.over = n->ud.rq.over = true;
		if (n->ud.qp && n->ud.qp->state != URN_QPS_ERR)
			sim_modify(n, n->ud.qp, URN_QPS_ERR, 0, NULL);
		n->due = n->prog_due = s->now;
	}
	s->moved = s->now;
}

static uint64_t
next_event(const struct sim *s)
{
	uint64_t at = sim_net_next(s);

	sim_soonest(&at, sim_faults_next(s));
	for (unsigned int i = 0; i < s->plan.nodes; i++) {
		sim_soonest(&at, s->node[i].due);
		sim_soonest(&at, s->node[i].prog_due);
	}
	return at;
}

static void
check_srqs(struct sim *s)
{
	for (unsigned int i = 0; i < s->plan.nodes; i++) {
		struct sim_rq *rq = &s->node[i].srq_q;

		if (rq->hdr && atomic_load(&rq->hdr->cons) != model_srq_done(s->model, rq->m))
			sim_fail(s, "node %u: %u receives were taken from the shared queue, and %u completed",
				 i, atomic_load(&rq->hdr->cons), model_srq_done(s->model, rq->m));
	}
}

static void
stalled(struct sim *s, const char *how)
{
	for (unsigned int i = 0; i < s->ends; i++) {
		const struct sim_end *e = &s->end[i];

		if (model_open(s->model, e->m) || (s->winding_up && model_open_recvs(s->model, e->m))) {
			sim_fail(s, "stalled (%s): node %u QP 0x%x, state %s, has %u requests and %u receives to complete, %u to post",
				 how, e->node->id, e->qp->qpn, urn_qp_state_name(e->qp->state),
				 model_open(s->model, e->m), model_open_recvs(s->model, e->m), e->left);
			return;
		}
	}
	check_srqs(s);
	if (s->winding_up && !sim_events_came(s))
		sim_fail(s, "a QP has ended, and was not told that it takes no more of its shared queue");
	sim_fail(s, "stalled (%s)%s%s", how, s->plan.cm ? ": " : "",
		 !s->plan.cm ? "" : sim_calls_open_line(s) ? sim_calls_open_line(s) : "an id is left");
}

static void
judge_late(struct sim_node *n)
{
	const char *why = n->s->why[0] ? NULL : model_late(n->s->model, n->id);

	if (why)
		sim_fail(n->s, "node %u: %s", n->id, why);
}

static void
turn(struct sim_node *n)
{
	sim_node_turn(n);
	judge_late(n);
	sim_windows_judge(n);
}

static void
loop(struct sim *s)
{
	while (!s->why[0]) {
		uint64_t at = next_event(s);

		if (s->winding_up ? all_flushed(s) : all_posted(s)) {
			if (s->winding_up)
				return;
			wind_up(s);
			continue;
		}
		if (at == UINT64_MAX || at > s->moved + s->stall_ns || ++s->idle_events > STALL_EVENTS) {
			stalled(s, at == UINT64_MAX ? "nothing is to happen any more"
				   : at > s->moved + s->stall_ns ? "nothing completes for long"
							      : "much happens and nothing completes");
			return;
		}
		s->stats.events++;
		if (at > s->now)
			s->now = at;
		sim_faults_step(s);
		sim_net_step(s);
		for (unsigned int i = 0; i < s->plan.nodes && !s->why[0]; i++) {
			if (s->node[i].prog_due <= s->now)
				sim_programs_run(&s->node[i]);
			if (s->node[i].due <= s->now)
				turn(&s->node[i]);
		}
	}
}

/* ---- taking down */

static void
check_good_wire(struct sim *s)
{
	for (unsigned int i = 0; i < s->plan.nodes; i++) {
		const uint64_t *c = s->node[i].tp ? s->node[i].tp->c.v : NULL;

		if (c && !(s->plan.faults & ~SIM_BIT(LATE)) && (c[URN_C_TIMEOUTS] || c[URN_C_DROP_ICRC]))
			sim_fail(s, "node %u: timeouts or bad frames, and the wires are good", i);
	}
}

/* Count packets that requesters sent again, and reasons for doing so. */
static void
count_repeats(struct sim *s)
{
	struct sim_stats *st = &s->stats;

	for (unsigned int i = 0; i < s->plan.nodes; i++) {
		const uint64_t *c = s->node[i].tp ? s->node[i].tp->c.v : NULL;

		if (!c)
			continue;
		st->sent += c[URN_C_TX_REQUESTS];
		st->repeats += c[URN_C_RETRANSMITS] + c[URN_C_REFETCHES];
		st->refused += c[URN_C_OUT_OF_ORDER] + c[URN_C_DROP_ICRC] + c[URN_C_TX_RNR_NAKS];
		if (s->plan.faults & ~SIM_BIT(SERVICE))
			continue;
		st->good_sent += c[URN_C_TX_REQUESTS];
		st->good_repeats += c[URN_C_RETRANSMITS] + c[URN_C_REFETCHES];
	}
}

static void
close_cluster(struct sim *s)
{
	struct sim_node *n;
	const char *why;

	for (unsigned int i = 0; s->why[0] && s->plan.clients && i < s->plan.nodes; i++)
		sim_host_dump(&s->node[i]);
	if (!s->why[0] && !s->plan.clients)
		check_good_wire(s);
	count_repeats(s);
	for (unsigned int i = 0; i < s->ends; i++)
		sim_end_close(&s->end[i]);
	for (unsigned int i = 0; i < s->plan.nodes; i++) {
		n = &s->node[i];
		if (n->ud.qp) {
			if (sim_qp_stop(n, n->ud.qp))
				urn_qp_destroy(n->tp, n->ud.qp);
			else
				sim_fail(s, "node %u: datagrams wait for memory for ever", i);
		}
	}
	for (unsigned int i = 0; i < s->plan.nodes; i++)
		judge_late(&s->node[i]);
	why = s->why[0] || s->plan.clients ? NULL : model_unheard(s->model);
	if (!why && !s->why[0])
		why = model_end(s->model);
	if (why)
		sim_fail(s, "at the end: %s", why);
	for (unsigned int i = 0; i < s->plan.nodes; i++)
		sim_node_close(&s->node[i]);
	sim_net_close(s);
	for (unsigned int i = 0; i <= s->plan.nodes; i++) {
		struct rte_mempool *p = i < s->plan.nodes ? s->node[i].pool : copies;

		if (rte_mempool_avail_count(p) != p->size)
			sim_fail(s, "%u packets of pool %s are lost", p->size - rte_mempool_avail_count(p),
				 p->name);
	}
	if (s->plan.clients && sim_host_fds() != s->fds)
		sim_fail(s, "%u descriptors were open and pieces of memory mapped before, and now %u are",
			 s->fds, sim_host_fds());
}

bool
sim_run(struct sim *s, const struct sim_scenario *sc, uint64_t seed, FILE *trace)
{
	s->sc = sc;
	s->seed = seed;
	s->rng = sim_rng_of(seed, 2);
	s->now = s->start = s->moved = START_NS;
	s->idle_events = 0;
	s->ends = 0;
	s->winding_up = s->broken = s->away = false;
	s->trace = trace;
	s->hash = 0xcbf29ce484222325u;
	s->why[0] = '\0';
	memset(&s->stats, 0, sizeof(s->stats));
	if (s->sabotage == SIM_BREAK_ANSWER)
		memset(s->answered, 0, sizeof(s->answered));
	model_reset(s->model);
	if (s->sc->aligned)
		model_aligned(s->model);
	sim_plan_make(&s->plan, sc, seed, s->without);
	s->stall_ns = s->plan.cm ? STALL_CM_NS : STALL_NS;
	open_cluster(s);
	loop(s);
	s->stats.requests = model_requests(s->model);
	s->stats.ns = s->now - s->start;
	s->stats.lost_pairs = model_lost(s->model);
	s->stats.lost_ppm = (uint64_t)(model_lost_expected(s->model) * 1e6);
	close_cluster(s);
	rte_pktmbuf_free(s->leaked);
	s->leaked = NULL;
	mix(s, s->stats.completions);
	return !s->why[0];
}
