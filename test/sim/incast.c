/* SPDX-License-Identifier: BSD-3-Clause */
#include "incast_priv.h"

#include "base/rnd.h"
#include "common/test_eal.h"
#include "packet/bare.h"
#include "wire/link.h"

#include <stdlib.h>
#include <string.h>

enum {
	SLOTS = 16, /* entries of a send queue */
	CQES = 64,
	SQ_SGES = 1,
	TIMEOUT = 14, /* code: 67 ms; losses are repeated by the measured round trip before */
	MTU_256 = 1,  /* code of the path MTU of 256 bytes */
	PSN = 0x1000,
	NS = 1000000000,
};

#define VA 0x7000001000ull
#define RTO_FLOOR 1000000ull /* ns: nodes of a simulation are served at once */

bool
incast_fail(struct incast *s, const char *what, unsigned int i)
{
	if (!s->r->why[0])
		snprintf(s->r->why, sizeof(s->r->why), "at %llu us: %s (%u)",
			 (unsigned long long)(s->now - INCAST_START) / 1000, what, i);
	return false;
}

/* ---- making */

static int
neigh(void *ctx, const uint8_t gid[16], uint8_t mac[6])
{
	(void)ctx;
	memset(mac, 0, 6);
	mac[0] = 2;
	mac[5] = gid[15];
	return 0;
}

static uint32_t
learn(void *ctx, const uint8_t gid[16])
{
	(void)ctx;
	(void)gid;
	return URN_LINK_F_SACK;
}

static struct urn_ah *
no_ah(void *ctx, uint32_t id)
{
	(void)ctx;
	(void)id;
	return NULL;
}

static bool
open_node(struct incast *s, unsigned int i)
{
	static const uint8_t gid[16] = {[10] = 0xff, 0xff, 10, 0, 0, 0};
	const struct incast_config *c = s->c;
	struct node *n = &s->node[i];
	const struct urn_memx_config x = {.pending = 64};
	struct urn_tp_config t = {
		.pool = test_eal_pool(),
		.gids = 1,
		.mtu = c->over_msg ? (uint16_t)c->mtu : 4096,
		.icrc = true,
		.max_qp = INCAST_SENDERS,
		.work = 1024,
		.window = c->window,
		.kept = 2048,
		.repairs = INCAST_SENDERS,
		.rto_floor = RTO_FLOOR,
		.line = c->dcqcn ? c->rate_bps / 8 : 0,
		.dcqcn = c->param,
		.delay_limit = c->delay_limit,
		.features = URN_LINK_F_SACK,
		.gsi = true,
		.learn = learn,
		.neigh = neigh,
		.ah = no_ah,
	};

	memcpy(n->gid, gid, 16);
	n->mac[0] = 2;
	n->mac[5] = n->gid[15] = (uint8_t)(i + 1);
	memcpy(t.mac, n->mac, 6);
	memcpy(t.gid[0], n->gid, 16);
	if (c->over_msg)
		incast_msg_config(&t, i);
	t.mem = n->mem = urn_mem_create(4, 2);
	t.memx = n->memx = urn_memx_create(&x);
	n->ram = calloc(1, c->message);
	n->tp = n->mem && n->memx && n->ram ? urn_tp_create(&t, s->now) : NULL;
	return n->tp && urn_mem_alloc_pd(n->mem, &n->pd) == 0 &&
	       urn_mem_reg_mr(n->mem, n->pd, n->ram, c->message, VA,
			      URN_ACCESS_LOCAL_WRITE | URN_ACCESS_REMOTE_WRITE, &n->key) == 0;
}

static bool
connect_qp(struct incast *s, struct node *n, struct urn_qp *qp, const struct node *to, uint32_t qpn)
{
	struct urn_abi_qp_attr a = {
		.port_num = 1,
		.access = URN_ACCESS_REMOTE_WRITE,
		.dest_qpn = qpn,
		.rq_psn = PSN,
		.sq_psn = PSN,
		.timeout = TIMEOUT,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.path_mtu = (uint8_t)(__builtin_ctz(s->c->mtu) - 8 + MTU_256),
	};
	char why[160];

	memcpy(a.av.dgid, to->gid, 16);
	for (a.state = URN_QPS_INIT; a.state <= URN_QPS_RTS; a.state++)
		if (urn_qp_modify(n->tp, qp, bare_qp_mask(URN_QPT_RC, a.state) | URN_QPM_STATE, &a,
				  why, sizeof(why)) != 0)
			return false;
	return true;
}

static bool
open_qps(struct incast *s, unsigned int i)
{
	struct node *n = &s->node[i + 1], *to = &s->node[0];
	struct flow *f = &s->flow[i];
	struct urn_qp_config c = {.type = URN_QPT_RC};

	f->sq = bare_wq(SLOTS, urn_abi_sq_stride(SQ_SGES, 0));
	for (int k = 0; k < 3; k++)
		f->none[k] = bare_wq(SLOTS, k ? urn_abi_rq_stride(SQ_SGES)
					      : urn_abi_sq_stride(SQ_SGES, 0));
	if (!f->sq || !f->none[0] || !f->none[1] || !f->none[2] || !bare_cq(&f->cq, CQES) ||
	    !bare_cq(&f->none_cq, CQES))
		return false;
	c.pd = n->pd;
	c.send_cq = c.recv_cq = &f->cq;
	c.sq = bare_sq(f->sq, SLOTS, SQ_SGES, 0);
	c.rq = bare_rq(f->none[1], SLOTS, SQ_SGES);
	if (urn_qp_create(n->tp, &c, &f->qp) != 0)
		return false;
	c.pd = to->pd;
	c.send_cq = c.recv_cq = &f->none_cq;
	c.sq = bare_sq(f->none[0], SLOTS, SQ_SGES, 0);
	c.rq = bare_rq(f->none[2], SLOTS, SQ_SGES);
	if (urn_qp_create(to->tp, &c, &f->peer) != 0)
		return false;
	return connect_qp(s, n, f->qp, to, f->peer->qpn) &&
	       connect_qp(s, to, f->peer, n, f->qp->qpn);
}

static bool
open_sender(struct incast *s, unsigned int i)
{
	const struct incast_config *c = s->c;

	s->flow[i].begins =
		s->now + (c->start_ns ? urn_rnd_below(urn_rnd_at(c->seed, i), c->start_ns) : 0);
	if (!c->over_msg)
		return open_qps(s, i) || incast_fail(s, "a queue pair could not be made", i);
	incast_msg_open(s, i);
	return true;
}

static bool
open_switch(struct incast *s)
{
	const struct incast_config *c = s->c;
	struct urn_switch_config w = {
		.name = "sw", .copies = test_eal_pool(), .no_learning = true, .mark = c->mark};
	const struct urn_impair_config wire = {
		.rate_bps = c->rate_bps, .delay_ns = c->delay_ns, .queue = c->queue};
	/* A sender's own port has room for all that its window allows. */
	const struct urn_impair_config own = {
		.rate_bps = c->rate_bps, .delay_ns = c->delay_ns, .queue = 1 << 16};
	struct urn_switch_port_config p = {
		.impair = {[URN_SWITCH_IN] = own, [URN_SWITCH_OUT] = wire}};

	w.mark.seed = c->seed;
	s->sw = urn_switch_create(&w);
	for (unsigned int i = 0; s->sw && i <= c->senders; i++)
		if (urn_switch_add_port(s->sw, &p) != (int)i ||
		    urn_fdb_set(urn_switch_fdb(s->sw), urn_mac(s->node[i].mac), (uint16_t)i) != 0)
			return false;
	return s->sw != NULL;
}

static bool
open_all(struct incast *s)
{
	s->sample = calloc(INCAST_SAMPLES, sizeof(*s->sample));
	if (!s->sample)
		return incast_fail(s, "no memory", 0);
	for (unsigned int i = 0; i <= s->c->senders; i++)
		if (!open_node(s, i))
			return incast_fail(s, "a node could not be made", i);
	if (!open_switch(s))
		return incast_fail(s, "the switch could not be made", 0);
	for (unsigned int i = 0; i < s->c->senders; i++)
		if (!open_sender(s, i))
			return false;
	return true;
}

static void
close_qps(struct incast *s, unsigned int i)
{
	struct flow *f = &s->flow[i];

	for (int k = 0; k < 2; k++) {
		struct urn_qp *qp = k ? f->peer : f->qp;
		struct urn_tp *tp = s->node[k ? 0 : i + 1].tp;

		if (qp && bare_qp_stop(tp, qp))
			urn_qp_destroy(tp, qp);
	}
	free(f->sq);
	for (int k = 0; k < 3; k++)
		free(f->none[k]);
	free(f->cq.hdr);
	free(f->none_cq.hdr);
}

static void
close_all(struct incast *s)
{
	urn_switch_destroy(s->sw);
	for (unsigned int i = 0; i < s->c->senders; i++)
		if (s->c->over_msg)
			incast_msg_close(s, i);
		else
			close_qps(s, i);
	for (unsigned int i = 0; i <= s->c->senders; i++) {
		struct node *n = &s->node[i];

		if (n->tp)
			urn_tp_destroy(n->tp);
		urn_memx_destroy(n->memx);
		urn_mem_destroy(n->mem);
		free(n->ram);
	}
	free(s->sample);
}

/* ---- the course of it */

static void
post(struct incast *s, unsigned int i)
{
	struct flow *f = &s->flow[i];
	struct urn_abi_swqe *w = bare_slot(f->sq, f->posted, SLOTS, urn_abi_sq_stride(SQ_SGES, 0));
	struct urn_abi_sge *sge = (void *)(w + 1);

	memset(w, 0, sizeof(*w));
	w->opcode = URN_WR_RDMA_WRITE;
	w->flags = URN_WRF_SIGNALED;
	w->num_sge = 1;
	w->rdma.remote_addr = VA;
	w->rdma.rkey = s->node[0].key;
	*sge = (struct urn_abi_sge){VA, s->node[i + 1].key, s->c->message};
	atomic_store(&f->sq->prod, ++f->posted);
}

static bool
run_writes(struct incast *s, unsigned int i)
{
	struct flow *f = &s->flow[i];
	uint32_t before = f->posted;

	for (; f->done != f->cq.prod; f->done++) {
		const struct urn_abi_cqe *e =
			(const struct urn_abi_cqe *)((uint8_t *)f->cq.hdr + URN_ABI_CQ_SLOTS) +
			(f->done & f->cq.mask);

		if (e->status != URN_WC_SUCCESS)
			return incast_fail(s, "a WRITE failed", i);
	}
	atomic_store(&f->cq.hdr->cons, f->done);
	while (f->posted - f->done < INCAST_DEPTH)
		post(s, i);
	if (f->posted != before)
		urn_tp_doorbell(s->node[i + 1].tp, f->qp);
	return true;
}

static bool
run_program(struct incast *s, unsigned int i)
{
	if (s->now < s->flow[i].begins)
		return true;
	return s->c->over_msg ? incast_msg_run(s, i) : run_writes(s, i);
}

/* A turn of a poll loop. */
static void
turn(struct incast *s, unsigned int i)
{
	struct urn_tp *tp = s->node[i].tp;
	struct rte_mbuf *m[URN_TP_BURST];
	unsigned int k;

	urn_tp_turn(tp, s->now);
	k = urn_switch_output(s->sw, (uint16_t)i, m, URN_TP_BURST, s->now);
	if (k)
		urn_tp_rx(tp, m, k, false);
	rte_pktmbuf_free_bulk(tp->other, tp->other_n);
	tp->other_n = 0;
	tp->quiet = !k;
	if (tp->sched.head)
		urn_tp_tx(tp);
	if (tp->tx_n)
		urn_switch_input(s->sw, (uint16_t)i, tp->tx, tp->tx_n, s->now);
	tp->tx_n = 0;
	tp->event_n = 0;
}

static uint64_t
waiting(const struct incast *s)
{
	return urn_switch_queues(s->sw, 0)->level[0].bytes;
}

static void
plot(struct incast *s)
{
	if (!s->c->plot || (s->now - INCAST_START) % s->c->sample_ns)
		return;
	fprintf(s->c->plot, "%llu %llu", (unsigned long long)(s->now - INCAST_START) / 1000,
		(unsigned long long)waiting(s));
	for (unsigned int i = 0; i < s->c->senders; i++) {
		uint64_t bytes =
			urn_switch_counters(s->sw, (uint16_t)(i + 1))->v[URN_SWITCH_RX_BYTES];

		fprintf(s->c->plot, " %.1f",
			(double)(bytes - s->flow[i].rx_bytes) * 8000 / (double)s->c->sample_ns);
		s->flow[i].rx_bytes = bytes;
	}
	fputc('\n', s->c->plot);
}

static bool
run_until(struct incast *s, uint64_t until, uint64_t sample_ns)
{
	uint64_t sample = s->now;

	for (; s->now < until; s->now += s->c->turn_ns) {
		for (unsigned int i = 0; i < s->c->senders; i++)
			if (!run_program(s, i))
				return false;
		for (unsigned int i = 0; i <= s->c->senders; i++)
			turn(s, i);
		urn_switch_run(s->sw, s->now);
		plot(s);
		if (sample_ns && s->now >= sample && s->samples < INCAST_SAMPLES) {
			s->sample[s->samples++] = (uint32_t)waiting(s);
			sample += sample_ns;
		}
	}
	return true;
}

/* ---- judging */

static int
by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void
judge_queue(struct incast *s)
{
	uint64_t sum = 0;

	if (!s->samples)
		return;
	qsort(s->sample, s->samples, sizeof(s->sample[0]), by_size);
	for (uint32_t i = 0; i < s->samples; i++)
		sum += s->sample[i];
	s->r->queue_mean = sum / s->samples;
	s->r->queue_p99 = s->sample[(uint64_t)s->samples * 99 / 100];
	s->r->queue_max = s->sample[s->samples - 1];
}

static void
judge(struct incast *s)
{
	struct incast_result *r = s->r;
	const struct incast_config *c = s->c;
	double sum = 0, squares = 0, fair;

	fair = (double)c->rate_bps / 8 * (double)c->run_ns / NS / c->senders;
	r->least = 1e9;
	for (unsigned int i = 0; i < c->senders; i++) {
		const struct urn_tp *tp = s->node[i + 1].tp;
		double x = (double)(s->flow[i].done - s->flow[i].before) * c->message;

		sum += x;
		squares += x * x;
		r->least = x / fair < r->least ? x / fair : r->least;
		r->most = x / fair > r->most ? x / fair : r->most;
		r->cnps += tp->c.v[URN_C_CNP_RX];
		r->repeats += tp->c.v[URN_C_RETRANSMITS] + tp->c.v[URN_C_REFETCHES] +
			      tp->c.v[URN_C_FLOW_RETRANSMITS];
	}
	r->jain = squares > 0 ? sum * sum / (c->senders * squares) : 0;
	r->goodput = sum / (fair * c->senders);
	r->marks = urn_switch_marks(s->sw, 0)->c.v[URN_MARK_C_MARKED];
	r->drops = urn_impair_counters(urn_switch_impair(s->sw, 0, URN_SWITCH_OUT))
			   ->v[URN_IMPAIR_QUEUE];
	r->frames = urn_switch_counters(s->sw, 0)->v[URN_SWITCH_TX_PACKETS];
	judge_queue(s);
}

void
incast_defaults(struct incast_config *c)
{
	*c = (struct incast_config){
		.senders = 16,
		.rate_bps = 10000000000,
		.delay_ns = 1000,
		.mtu = 1024,
		.window = 256,
		.queue = 512,
		.message = 16384,
		.mark = {.kmin = URN_MARK_KMIN, .kmax = URN_MARK_KMAX, .pmax = URN_MARK_PMAX},
		.dcqcn = true,
		.turn_ns = 1000,
		.warm_ns = 20000000,
		.run_ns = 100000000,
		.start_ns = 100000,
		.seed = 1,
		.sample_ns = 50000,
	};
}

bool
incast_run(const struct incast_config *c, struct incast_result *r)
{
	struct incast *s = calloc(1, sizeof(*s));
	bool ok;

	memset(r, 0, sizeof(*r));
	if (!s)
		return false;
	s->c = c;
	s->r = r;
	s->now = INCAST_START;
	ok = open_all(s) && run_until(s, INCAST_START + c->warm_ns, 0);
	for (unsigned int i = 0; ok && i < c->senders; i++)
		s->flow[i].before = s->flow[i].done;
	ok = ok && run_until(s, INCAST_START + c->warm_ns + c->run_ns, c->run_ns / 10000 + 1);
	if (ok)
		judge(s);
	close_all(s);
	free(s);
	return ok;
}
