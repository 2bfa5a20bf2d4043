/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors that are explained when they are polled (verbs/polled_errors.h; doc/reference/errors.md).
 */
#include "test.h"

#include "verbs/front.h"
#include "verbs/polled_errors.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A queue whose polls find one failed completion and one that was flushed behind it. */
static struct {
	struct ibv_cq_ex cq;
	bool locked;		/* between start_poll() and end_poll() */
	int left;		/* completions that next_poll() still finds */
	unsigned int explained; /* control calls */
} fake;

static int
fake_explain(struct ibv_context *c, uint32_t qpn, uint32_t status, char *text, size_t size)
{
	(void)c;
	assert_false(fake.locked);
	assert_int_equal(qpn, 7);
	assert_int_equal(status, IBV_WC_RETRY_EXC_ERR);
	snprintf(text, size, "because");
	fake.explained++;
	return 0;
}

static uint32_t
fake_qp_num(struct ibv_cq_ex *cq)
{
	(void)cq;
	return 7;
}

static uint32_t
fake_vendor_err(struct ibv_cq_ex *cq)
{
	(void)cq;
	return 6;
}

static int
fake_start(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	(void)attr;
	fake.locked = true;
	fake.left = 1;
	cq->status = IBV_WC_RETRY_EXC_ERR;
	return 0;
}

static int
fake_next(struct ibv_cq_ex *cq)
{
	cq->status = IBV_WC_WR_FLUSH_ERR;
	return fake.left-- > 0 ? 0 : ENOENT;
}

static void
fake_end(struct ibv_cq_ex *cq)
{
	(void)cq;
	fake.locked = false;
}

static void
fill(struct ibv_cq_ex *cq)
{
	static const struct urn_verbs_ops ops = {.explain = fake_explain};
	static struct urn_verbs_ctx ctx = {.ops = &ops};

	*cq = (struct ibv_cq_ex){.context = &ctx.vctx.context,
				 .start_poll = fake_start,
				 .next_poll = fake_next,
				 .end_poll = fake_end,
				 .read_qp_num = fake_qp_num,
				 .read_vendor_err = fake_vendor_err};
}

/* The dataplane is asked when the queue's lock is free, once for all that failed together. */
static void
asks_after_the_end(void **state)
{
	struct ibv_poll_cq_attr attr = {0};

	(void)state;
	fill(&fake.cq);
	urn_polled_errors_add(&fake.cq);
	assert_int_equal(ibv_start_poll(&fake.cq, &attr), 0);
	assert_int_equal(ibv_next_poll(&fake.cq), 0);
	assert_int_equal(ibv_next_poll(&fake.cq), ENOENT);
	assert_int_equal(fake.explained, 0);
	ibv_end_poll(&fake.cq);
	assert_int_equal(fake.explained, 1);
	urn_polled_errors_remove(&fake.cq);
}

/* ---- fork() */

enum {
	FORKS = 200, /* most find the list locked: without the handlers few children can poll */
};

static atomic_bool stop;

/* Hold the list's lock most of the time. */
static void *
churn(void *arg)
{
	static struct ibv_cq_ex cq;

	while (!stop) {
		fill(&cq);
		urn_polled_errors_add(&cq);
		urn_polled_errors_remove(&cq);
	}
	return arg;
}

/* A child can poll, whatever other threads did when it was made. */
static void
forks(void **state)
{
	struct ibv_poll_cq_attr attr = {0};
	pthread_t thread;

	(void)state;
	fill(&fake.cq);
	urn_polled_errors_add(&fake.cq);
	assert_int_equal(pthread_create(&thread, NULL, churn, NULL), 0);
	for (unsigned int i = 0; i < FORKS; i++) {
		pid_t pid = fork();
		int status;

		assert_true(pid >= 0);
		if (pid == 0) {
			alarm(60);
			_exit(ibv_start_poll(&fake.cq, &attr));
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	stop = true;
	pthread_join(thread, NULL);
	urn_polled_errors_remove(&fake.cq);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asks_after_the_end),
		cmocka_unit_test(forks),
	};

	setenv("URNIC_EXPLAIN_ERRORS", "1", 1);
	if (!urn_polled_errors_wanted())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
