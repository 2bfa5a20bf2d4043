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
	LINES_MAX = 100, /* lines of a process, which may repeat a mistake for ever */
};

/* A completion queue that is polled in the extended way. */
struct urn_polled_cq {
	LIST_ENTRY(urn_polled_cq) link;
	const struct ibv_cq_ex *cq;
	/* The provider's functions. */
	int (*start_poll)(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);
	int (*next_poll)(struct ibv_cq_ex *cq);
};

/* polled_lock guards the list. */
static pthread_mutex_t polled_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, urn_polled_cq) polled_cqs = LIST_HEAD_INITIALIZER(polled_cqs);
static bool polled_wanted; /* set once */

static void
polled_start(void)
{
	const char *v = secure_getenv("URNIC_EXPLAIN_ERRORS");

	polled_wanted = v != NULL && strcmp(v, "1") == 0;
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

/* ---- extended polling */

/* The provider's functions of a queue; NULL: it was never added. Nobody polls a queue while it is
 * destroyed. */
static const struct urn_polled_cq *
polled_of(const struct ibv_cq_ex *cq)
{
	const struct urn_polled_cq *p;

	pthread_mutex_lock(&polled_lock);
	LIST_FOREACH(p, &polled_cqs, link)
		if (p->cq == cq)
			break;
	pthread_mutex_unlock(&polled_lock);
	return p;
}

static int
tell_ex(struct ibv_cq_ex *cq, int err)
{
	struct ibv_wc wc;

	if (err != 0 || cq->status == IBV_WC_SUCCESS)
		return err;
	wc = (struct ibv_wc){
		.status = cq->status,
		.qp_num = ibv_wc_read_qp_num(cq),
		.vendor_err = ibv_wc_read_vendor_err(cq),
	};
	tell(cq->context, &wc);
	return 0;
}

static int
start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	const struct urn_polled_cq *p = polled_of(cq);

	return p != NULL ? tell_ex(cq, p->start_poll(cq, attr)) : EINVAL;
}

static int
next_poll(struct ibv_cq_ex *cq)
{
	const struct urn_polled_cq *p = polled_of(cq);

	return p != NULL ? tell_ex(cq, p->next_poll(cq)) : EINVAL;
}

void
urn_polled_errors_add(struct ibv_cq_ex *cq)
{
	struct urn_polled_cq *p = malloc(sizeof(*p));

	if (p == NULL)
		return; /* errors of this queue are not explained */
	*p = (struct urn_polled_cq){
		.cq = cq, .start_poll = cq->start_poll, .next_poll = cq->next_poll};
	pthread_mutex_lock(&polled_lock);
	LIST_INSERT_HEAD(&polled_cqs, p, link);
	pthread_mutex_unlock(&polled_lock);
	cq->start_poll = start_poll;
	cq->next_poll = next_poll;
}

void
urn_polled_errors_remove(const struct ibv_cq_ex *cq)
{
	struct urn_polled_cq *p;

	pthread_mutex_lock(&polled_lock);
	LIST_FOREACH(p, &polled_cqs, link)
		if (p->cq == cq)
			break;
	if (p != NULL)
		LIST_REMOVE(p, link);
	pthread_mutex_unlock(&polled_lock);
	free(p);
}
