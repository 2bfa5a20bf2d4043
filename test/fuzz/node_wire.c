/* SPDX-License-Identifier: BSD-3-Clause */
/* The node's turns: frames to it, frames that it sends, and those that other engines hand on. */
#include "node.h"
#include "node_check.h"

#include "common/test_asan.h"
#include "common/test_eal.h"
#include "common/test_sent.h"
#include "packet/worker.h"

#include <string.h>

static struct rte_mbuf *
buffer(const struct node *n)
{
	static const uint8_t old[] = {0x2e, 0xff, 0x00, 0xa5};
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());

	fuzz_check(m);
	/* The private area's old contents must not matter. */
	memset((uint8_t *)m->buf_addr - TEST_EAL_PRIV, old[n->frames_in % sizeof(old)],
	       TEST_EAL_PRIV);
	ASAN_UNPOISON_MEMORY_REGION(m->buf_addr, m->buf_len);
	return m;
}

/* The frame in two segments, as a port may deliver it. */
static struct rte_mbuf *
in_two(const struct node *n, const uint8_t *bytes, uint32_t len)
{
	struct rte_mbuf *m = buffer(n), *rest = buffer(n);
	uint32_t half = len / 2;

	memcpy(rte_pktmbuf_append(m, (uint16_t)half), bytes, half);
	memcpy(rte_pktmbuf_append(rest, (uint16_t)(len - half)), bytes + half, len - half);
	fuzz_check(rte_pktmbuf_chain(m, rest) == 0);
	return m;
}

void
node_put(struct node *n, const uint8_t *bytes, uint32_t len, bool split)
{
	struct rte_mbuf *m;
	uint8_t *at;

	if (n->in_n == URN_TP_BURST)
		node_turn(n, 100);
	fuzz_check(len <= TEST_EAL_ROOM);
	if (split) {
		m = in_two(n, bytes, len);
	} else {
		m = buffer(n);
		at = rte_pktmbuf_mtod(m, uint8_t *);
		memcpy(at, bytes, len);
		/* The bytes around the frame must not be accessed. */
		ASAN_POISON_MEMORY_REGION(m->buf_addr, RTE_PKTMBUF_HEADROOM);
		ASAN_POISON_MEMORY_REGION(at + len, m->buf_len - RTE_PKTMBUF_HEADROOM - len);
		m->data_len = (uint16_t)len;
		m->pkt_len = len;
	}
	n->in[n->in_n++] = m;
	n->frames_in++;
}

/* Act as the engine does: look at the queues that were written, take the events. */
static void
take_events(struct urn_tp *tp)
{
	while (tp->touched) {
		tp->touched->touched = false;
		tp->touched = tp->touched->next;
	}
	tp->event_n = 0;
}

static void
take_out(struct node *n)
{
	struct urn_tp *tp = n->tp;

	for (unsigned int i = 0; i < tp->tx_n; i++) {
		node_judge(n, tp->tx[i]);
		test_sent(tp->tx[i]);
		rte_pktmbuf_free(tp->tx[i]);
	}
	for (unsigned int i = 0; i < tp->other_n; i++)
		urn_pkt(tp->other[i])->kind == URN_FRAME_ROCE ? n->mads++ : n->others++;
	n->handovers += tp->handover_n;
	rte_pktmbuf_free_bulk(tp->other, tp->other_n);
	rte_pktmbuf_free_bulk(tp->handover, tp->handover_n);
	tp->tx_n = tp->other_n = tp->handover_n = 0;
	take_events(tp);
}

void
node_deliver(struct node *n)
{
	for (unsigned int i = 0; i < n->far_n; i++)
		urn_tp_cqe_handed(n->tp, &n->far[i]);
	n->far_n = 0;
}

bool
node_near(void *ctx, const uint8_t gid[16], unsigned int engine, struct urn_tp_near *near)
{
	const struct node *n = ctx;

	if (memcmp(gid, n->self.gid, 16) != 0 || engine != 0)
		return false;
	urn_tp_near(n->tp, near);
	return true;
}

void
node_turn(struct node *n, uint64_t ns)
{
	struct node_trace trace;

	n->now += ns;
	node_deliver(n);
	if (n->space)
		worker_do(n->space, n->pace, false);
	urn_tp_turn(n->tp, n->now);
	if (n->in_n) {
		node_trace_begin(n, &trace);
		urn_tp_rx(n->tp, n->in, n->in_n, false);
		node_trace_end(n, &trace, n->in_n);
		n->in_n = 0;
	}
	urn_tp_tx(n->tp);
	take_out(n);
	node_check(n);
}
