/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives: posted in batches, from each QP's own queue or from a shared one. */
#include "perf.h"

#include "stage.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Hash table with open addressing, at most half full; QPN 0 marks an empty entry. */
struct qpn_map {
	uint32_t mask;
	struct {
		uint32_t qpn, number;
	} slot[];
};

static uint32_t
qpn_hash(uint32_t qpn)
{
	return (qpn * 2654435761u) >> 7;
}

struct qpn_map *
qpn_map_make(const struct perf_qp *qp, uint32_t n)
{
	uint32_t size = 64, at;
	struct qpn_map *map;

	while (size < 2 * n)
		size *= 2;
	map = calloc(1, sizeof(*map) + size * sizeof(map->slot[0]));
	if (map == NULL)
		return NULL;
	map->mask = size - 1;
	for (uint32_t i = 0; i < n; i++) {
		at = qpn_hash(qp[i].qp->qp_num) & map->mask;
		while (map->slot[at].qpn != 0)
			at = (at + 1) & map->mask;
		map->slot[at].qpn = qp[i].qp->qp_num;
		map->slot[at].number = i;
	}
	return map;
}

void
qpn_map_free(struct qpn_map *map)
{
	free(map);
}

/* Number of the QP with a QPN; UINT32_MAX: not one of ours. */
static uint32_t
qpn_find(const struct qpn_map *map, uint32_t qpn)
{
	uint32_t at = qpn_hash(qpn) & map->mask;

	while (map->slot[at].qpn != 0) {
		if (map->slot[at].qpn == qpn)
			return map->slot[at].number;
		at = (at + 1) & map->mask;
	}
	return UINT32_MAX;
}

static void
fill_receive(struct side *s, struct ibv_recv_wr *wr, uint32_t qp, uint32_t slot)
{
	wr->wr_id = (uint64_t)qp << 32 | slot;
	wr->sg_list->addr = (uintptr_t)s->mem.dst + layout_dst_off(s->l, qp, slot);
}

/* Post the first n receives of the batch. returns: 0 or an errno value */
static int
post_batch(struct side *s, struct ibv_qp *qp, uint32_t n)
{
	struct ibv_recv_wr *last = &s->wr->recv[n - 1], *bad = NULL, *next = last->next;
	int rc;

	last->next = NULL;
	URN_STAGE(LIBRARY);
	if (s->srq != NULL)
		rc = ibv_post_srq_recv(s->srq, s->wr->recv, &bad);
	else
		rc = ibv_post_recv(qp, s->wr->recv, &bad);
	URN_STAGE(PROGRAM);
	last->next = next;
	return rc;
}

/* Post n receives of one QP's own queue. returns: 0 or an errno value */
static int
post_own(struct side *s, uint32_t qp, uint32_t n)
{
	struct perf_qp *q = &s->qp[qp];

	for (uint32_t i = 0; i < n; i++) {
		fill_receive(s, &s->wr->recv[i], qp, q->rx_next);
		if (++q->rx_next == s->l->dst_slots)
			q->rx_next = 0;
	}
	return post_batch(s, q->qp, n);
}

static int
start_own(struct side *s)
{
	uint32_t left, n;
	int rc;

	for (uint32_t qp = 0; qp < s->l->qps; qp++) {
		for (left = s->l->rx_slots; left > 0; left -= n) {
			n = left < PERF_BATCH ? left : PERF_BATCH;
			rc = post_own(s, qp, n);
			if (rc != 0)
				return rc;
		}
	}
	return 0;
}

static int
start_shared(struct side *s)
{
	uint32_t slot = 0, n;
	int rc;

	while (slot < s->l->srq_slots) {
		n = s->l->srq_slots - slot < PERF_BATCH ? s->l->srq_slots - slot : PERF_BATCH;
		for (uint32_t i = 0; i < n; i++)
			fill_receive(s, &s->wr->recv[i], 0, slot++);
		rc = post_batch(s, NULL, n);
		if (rc != 0)
			return rc;
	}
	return 0;
}

int
receive_start(struct side *s, struct urn_err *err)
{
	int rc = s->srq != NULL ? start_shared(s) : start_own(s);

	if (rc == 0)
		return 0;
	urn_err_set(err, "node %c: posting the first receives failed: %s", 'A' + (int)s->index,
		    strerror(rc));
	return -1;
}

static inline __attribute__((always_inline)) bool
take(struct side *s, const struct ibv_wc *wc, struct arrival *a)
{
	a->slot = (uint32_t)wc->wr_id;
	a->qp = s->srq != NULL ? qpn_find(s->map, wc->qp_num) : (uint32_t)(wc->wr_id >> 32);
	if (a->qp >= s->l->qps || s->qp[a->qp].qp->qp_num != wc->qp_num) {
		run_fail(s->run, "%s: a receive completed for QP 0x%06x, which is none of node %c's "
				 "or not the one it was posted to",
			 perf_op_name(s->o->op), wc->qp_num, 'A' + (int)s->index);
		return false;
	}
	if (wc->byte_len != (s->l->tells ? 0 : s->l->size + s->l->grh)) {
		run_fail(s->run, "%s: QP 0x%06x received a message of %u bytes instead of %llu",
			 perf_op_name(s->o->op), wc->qp_num, wc->byte_len,
			 (unsigned long long)s->l->size);
		return false;
	}
	if (s->l->tells) /* the WRITE went to the slot of its number */
		a->slot = (uint32_t)(s->qp[a->qp].last % s->l->dst_slots);
	a->data =
		s->mem.dst + layout_dst_off(s->l, s->srq != NULL ? 0 : a->qp, a->slot) + s->l->grh;
	return true;
}

bool
receive_take(struct side *s, const struct ibv_wc *wc, struct arrival *a)
{
	return take(s, wc, a);
}

/* Collect slots of the shared queue and post them together. returns: 0 or an errno value */
static int
again_shared(struct side *s, uint32_t slot)
{
	s->owed[s->owed_n++] = slot;
	if (s->owed_n < s->l->rx_batch)
		return 0;
	for (uint32_t i = 0; i < s->owed_n; i++)
		fill_receive(s, &s->wr->recv[i], 0, s->owed[i]);
	s->owed_n = 0;
	return post_batch(s, NULL, s->l->rx_batch);
}

int
receive_again(struct side *s, const struct arrival *a)
{
	struct perf_qp *q = &s->qp[a->qp];
	int rc = 0;

	if (s->srq != NULL) {
		rc = again_shared(s, a->slot);
	} else if (++q->rx_owed == s->l->rx_batch) {
		q->rx_owed = 0;
		rc = post_own(s, a->qp, s->l->rx_batch);
	}
	if (rc == 0)
		return 0;
	run_fail(s->run, "%s: QP 0x%06x of node %c does not take a receive: %s",
		 perf_op_name(s->o->op), q->qp->qp_num, 'A' + (int)s->index, strerror(rc));
	return -1;
}

/* Take one message of a stream: whole, and the next of its QP; a datagram is the one its stamp names. */
static bool
take_message(struct side *s, const struct ibv_wc *wc)
{
	struct message_id id;
	struct arrival a;

	if (!take(s, wc, &a))
		return false;
	id.qp = a.qp;
	id.seq = ++s->qp[a.qp].last;
	if (s->l->grh != 0)
		id.seq = pattern_number(a.data, s->l->size);
	id.stamp = id.seq;
	id.slot = (uint32_t)(id.seq - 1) & (s->l->src_slots - 1);
	if (s->o->check != PERF_CHECK_NONE && !check_message(s, a.data, &id, check_most(s)))
		return false;
	return receive_again(s, &a) == 0;
}

/* Batches polled in one step, so that a step ends. */
#define RECEIVER_POLLS 8u

unsigned int
receiver_step(struct side *s, uint64_t now)
{
	struct ibv_wc wc[PERF_BATCH];
	unsigned int work = 0;
	int n = PERF_BATCH;

	(void)now;
	for (unsigned int k = 0; k < RECEIVER_POLLS && n == PERF_BATCH; k++) {
		URN_STAGE(LIBRARY);
		n = ibv_poll_cq(s->cq, PERF_BATCH, wc);
		URN_STAGE(PROGRAM);
		for (int i = 0; i < n; i++) {
			if (wc[i].status != IBV_WC_SUCCESS) {
				fail_completion(s, &wc[i]);
				return work;
			}
			if (!take_message(s, &wc[i]))
				return work;
		}
		if (n < 0) {
			run_fail(s->run, "node %c: the completion queue cannot be polled",
				 'A' + (int)s->index);
			return work;
		}
		work += (unsigned int)n;
	}
	s->received += work;
	if (s->l->grh != 0
		    ? datagram_over(s, work)
		    : s->received == atomic_load_explicit(&s->run->final, memory_order_relaxed))
		side_done(s);
	return work;
}

unsigned int
bystander_step(struct side *s, uint64_t now)
{
	static const struct timespec nap = {.tv_nsec = 1000000};

	(void)now;
	/* In a process of its own, stay until the other side says that it has finished. */
	if (!s->done && (s->peer != NULL || atomic_load(&s->run->final) != UINT64_MAX))
		side_done(s);
	/* When the adapter is another process's, and this thread has only this side, sleep. */
	if (s->engine == NULL && (s->peer == NULL || s->o->core[0] != s->o->core[1]))
		nanosleep(&nap, NULL);
	return 0;
}
