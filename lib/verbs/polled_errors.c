/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For programs that don't ask why (URNIC_EXPLAIN_ERRORS): each completion with an error that they
 * poll is explained on the standard error. Without the variable, polling goes straight to the
 * provider.
 */
#include <urnic/explain.h>

#include "verbs/front.h"
#include "verbs/polled_errors.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum {
	LINES_MAX = 100,	   /* lines of a process, which may repeat a mistake for ever */
	NOTES_MAX = LINES_MAX + 1, /* no more than these are told, and that there are more */
};

/* An error that is told when the queue's lock is free. */
struct polled_note {
	enum ibv_wc_status status;
	uint32_t qp_num, vendor_err;
};

/* A completion queue that is polled in the extended way. */
struct urn_polled_cq {
	LIST_ENTRY(urn_polled_cq) link;
	const struct ibv_cq_ex *cq;
	/* The provider's functions. */
	int (*start_poll)(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);
	int (*next_poll)(struct ibv_cq_ex *cq);
	void (*end_poll)(struct ibv_cq_ex *cq);
	/* Errors since start_poll(), of the thread that polls: it holds the queue's lock. */
	uint32_t notes;
	struct polled_note note[NOTES_MAX];
};

/* polled_lock guards the list; held across fork(), so that it is free in the child. */
static pthread_mutex_t polled_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, urn_polled_cq) polled_cqs = LIST_HEAD_INITIALIZER(polled_cqs);
static bool polled_wanted; /* set once */

static void
polled_hold(void)
{
	pthread_mutex_lock(&polled_lock);
}

static void
polled_parent(void)
{
	pthread_mutex_unlock(&polled_lock);
}

static void
polled_child(void)
{
	pthread_mutex_init(&polled_lock, NULL);
}

static void
polled_start(void)
{
	const char *v = secure_getenv("URNIC_EXPLAIN_ERRORS");

	polled_wanted = v != NULL && strcmp(v, "1") == 0;
	if (polled_wanted)
		(void)pthread_atfork(polled_hold, polled_parent, polled_child);
}

bool
urn_polled_errors_wanted(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, polled_start);
	return polled_wanted;
}

/*
 * Explain a completion on the standard error. Requests that were flushed behind the one that
 * failed have the same reason: the first of those that a thread polls in a row is told.
 */
static void
tell(struct ibv_context *ctx, const struct ibv_wc *wc)
{
	static _Atomic unsigned int lines;
	static _Thread_local uint32_t told_qp;
	static _Thread_local const struct ibv_context *told_ctx;
	char text[URN_EXPLAIN_TEXT];
	int before = errno;
	unsigned int n;

	if (wc->status == IBV_WC_SUCCESS)
		return;
	if (wc->status == IBV_WC_WR_FLUSH_ERR && told_ctx == ctx && told_qp == wc->qp_num)
		return;
	told_ctx = ctx;
	told_qp = wc->qp_num;
	n = atomic_fetch_add_explicit(&lines, 1, memory_order_relaxed);
	if (n < LINES_MAX) {
		(void)urn_wc_explain(ctx, wc, text, sizeof(text));
		fprintf(stderr, "urnic: %s (%s, vendor_err %u: %s)\n", text,
			ibv_wc_status_str(wc->status), wc->vendor_err,
			urn_vendor_err_name(wc->vendor_err));
	} else if (n == LINES_MAX) {
		fprintf(stderr, "urnic: more errors are not told\n");
	}
	errno = before;
}

int
urn_polled_errors_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int got = urn_ops(cq->context)->poll_cq(cq, n, wc);

	for (int i = 0; i < got; i++)
		tell(cq->context, &wc[i]);
	return got;
}

/* ---- extended polling: between start and end the queue's lock is held, so errors are told after
 * the end, which other threads' polls and control calls may need (fault/complete.c) */

/* Find a queue in the list; polled_lock is held. returns: NULL: the queue was never added */
static struct urn_polled_cq *
polled_find(const struct ibv_cq_ex *cq)
{
	struct urn_polled_cq *p;

	LIST_FOREACH(p, &polled_cqs, link)
		if (p->cq == cq)
			break;
	return p;
}

/* The provider's functions of a queue; NULL: it was never added. Nobody polls a queue while it is
 * destroyed. */
static struct urn_polled_cq *
polled_of(const struct ibv_cq_ex *cq)
{
	struct urn_polled_cq *p;

	pthread_mutex_lock(&polled_lock);
	p = polled_find(cq);
	pthread_mutex_unlock(&polled_lock);
	return p;
}

/* Note the completion that was polled, if it has an error that tell() would tell. */
static int
note_ex(struct urn_polled_cq *p, struct ibv_cq_ex *cq, int err)
{
	uint32_t qpn;

	if (err != 0 || cq->status == IBV_WC_SUCCESS || p->notes == NOTES_MAX)
		return err;
	qpn = ibv_wc_read_qp_num(cq);
	if (cq->status == IBV_WC_WR_FLUSH_ERR && p->notes != 0 &&
	    p->note[p->notes - 1].qp_num == qpn)
		return 0;
	p->note[p->notes++] = (struct polled_note){cq->status, qpn, ibv_wc_read_vendor_err(cq)};
	return 0;
}

static int
start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	struct urn_polled_cq *p = polled_of(cq);
	int err;

	if (p == NULL)
		return EINVAL;
	err = p->start_poll(cq, attr);
	if (err == 0)
		p->notes = 0;
	return note_ex(p, cq, err);
}

static int
next_poll(struct ibv_cq_ex *cq)
{
	struct urn_polled_cq *p = polled_of(cq);

	return p != NULL ? note_ex(p, cq, p->next_poll(cq)) : EINVAL;
}

static void
end_poll(struct ibv_cq_ex *cq)
{
	struct urn_polled_cq *p = polled_of(cq);
	struct ibv_context *ctx = cq->context;
	struct polled_note note[NOTES_MAX];
	uint32_t n;

	if (p == NULL)
		return;
	n = p->notes;
	memcpy(note, p->note, n * sizeof(note[0]));
	p->end_poll(cq);
	/* Another thread may poll the queue, or destroy it, by now. */
	for (uint32_t i = 0; i < n; i++) {
		const struct ibv_wc wc = {.status = note[i].status,
					  .qp_num = note[i].qp_num,
					  .vendor_err = note[i].vendor_err};

		tell(ctx, &wc);
	}
}

void
urn_polled_errors_add(struct ibv_cq_ex *cq)
{
	struct urn_polled_cq *p = malloc(sizeof(*p));

	if (p == NULL)
		return; /* errors of this queue are not explained */
	*p = (struct urn_polled_cq){.cq = cq,
				    .start_poll = cq->start_poll,
				    .next_poll = cq->next_poll,
				    .end_poll = cq->end_poll};
	pthread_mutex_lock(&polled_lock);
	LIST_INSERT_HEAD(&polled_cqs, p, link);
	pthread_mutex_unlock(&polled_lock);
	cq->start_poll = start_poll;
	cq->next_poll = next_poll;
	cq->end_poll = end_poll;
}

void
urn_polled_errors_remove(const struct ibv_cq_ex *cq)
{
	struct urn_polled_cq *p;

	pthread_mutex_lock(&polled_lock);
	p = polled_find(cq);
	if (p != NULL)
		LIST_REMOVE(p, link);
	pthread_mutex_unlock(&polled_lock);
	free(p);
}
