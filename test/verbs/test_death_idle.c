/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A dataplane dies under programs that are idle: with requests that nothing completes, or
 * waiting for connections; and under programs that fork. argv[1]: urnicd.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "abi/queue.h"
#include "death.h"
#include <urnic/cm.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Requests that nothing completes while the dataplane lives, in queues of every kind. */
static void
test_quiet(void **state)
{
	struct ibv_recv_wr *bad_recv;
	struct ibv_wc wc[8];
	struct death_end e;
	pid_t pid;

	(void)state;
	pid = death_start(1);
	death_open(&e, "a");
	death_connect(&e, &e);
	for (uint64_t i = 0; i < 3; i++) {
		struct ibv_recv_wr wr = {.wr_id = 100 + i}, srq = {.wr_id = 200 + i};

		assert_int_equal(ibv_post_recv(e.qp[0], &wr, &bad_recv), 0);
		assert_int_equal(ibv_post_srq_recv(e.srq, &srq, &bad_recv), 0);
	}
	assert_int_equal(ibv_poll_cq(e.cq[1], 8, wc), 0);
	death_kill(pid, SIGKILL);
	for (uint64_t end = death_now_ms() + DEATH_SOON_MS; ibv_post_recv(e.qp[0], &(struct ibv_recv_wr){.wr_id = 103},
			&bad_recv) != EIO && death_now_ms() < end;)
		assert_true(ibv_poll_cq(e.cq[0], 8, wc) == 0);
	for (int i = 0, n = 0, got; n < 6 && i < 1000; i++, n += got) {
		got = ibv_poll_cq(e.cq[1], 2, wc);
		for (int k = 0; k < got; k++) {
			assert_int_equal(wc[k].status, IBV_WC_WR_FLUSH_ERR);
			assert_int_equal(wc[k].vendor_err, URN_VE_GONE);
			assert_true(wc[k].opcode & IBV_WC_RECV);
			if (wc[k].wr_id < 200)
				assert_int_equal(wc[k].qp_num, e.qp[0]->qp_num);
		}
		assert_true(i < 999);
	}
	death_close(&e);
}

/* A thread that waits for an event of connection management, in the call or in poll(), wakes up and is told. */
static void
test_cm(void **state)
{
	struct urn_cm_end *c, *late, *kept;
	struct urn_abi_cm_event ev;
	struct ibv_context *ctx;
	struct pollfd p;
	uint32_t id;
	pid_t pid = death_start(1), killer;
	int status;

	(void)state;
	ctx = urn_attach_connect(death_sock, "a");
	assert_non_null(ctx);
	assert_int_equal(urn_cm_end_open(&late, ctx), 0);
	urn_cm_end_close(late); /* a closed end is told nothing any more: its memory is gone */
	assert_int_equal(urn_cm_end_open(&c, ctx), 0);
	assert_int_equal(urn_cm_end_open(&kept, ctx), 0);
	assert_int_equal(urn_cm_end_listen(c, 77, 0, 0, &id), 0);
	assert_int_equal(urn_cm_end_event(c, &ev), EAGAIN);
	killer = fork();
	if (killer == 0) {
		bool ok = urn_cm_end_event(c, &ev) == EIO &&
			  strstr(urn_attach_error(), "fork") != NULL;

		urn_cm_end_close(c);
		death_nap_us(50000);
		kill(pid, SIGKILL);
		_exit(ok ? 0 : 1);
	}
	p = (struct pollfd){.fd = urn_cm_end_fd(c), .events = POLLIN};
	assert_int_equal(poll(&p, 1, DEATH_SOON_MS), 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(urn_cm_end_event(c, &ev), EIO);
	assert_non_null(strstr(urn_attach_error(), "gone"));
	assert_int_equal(urn_cm_end_destroy(c, id), 0);
	assert_int_equal(urn_cm_end_open(&late, ctx), EIO);
	urn_cm_end_close(c);
	assert_int_equal(ibv_close_device(ctx), 0);
	urn_cm_end_close(kept); /* after the context is allowed, too */
	assert_int_equal(waitpid(killer, &status, 0), killer);
	assert_int_equal(status, 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* A child of fork() is told that it is one, and its parent goes on. */
static void
test_fork(void **state)
{
	struct death_end e;
	pid_t pid = death_start(1), child;
	void *p = urn_alloc(4096);
	int status;

	(void)state;
	death_open(&e, "a");
	memset(p, 7, 4096);
	child = fork();
	if (child == 0) {
		struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad;
		struct ibv_recv_wr recv = {0}, *bad_recv;
		struct ibv_async_event ev;
		struct ibv_wc wc;
		struct death_end own;
		bool ok = ibv_post_send(e.qp[0], &send, &bad) == EIO &&
			ibv_post_recv(e.qp[0], &recv, &bad_recv) == EIO &&
			ibv_post_srq_recv(e.srq, &recv, &bad_recv) == EIO &&
			ibv_poll_cq(e.cq[0], 1, &wc) == -1 && ibv_alloc_pd(e.ctx) == NULL && errno == EIO &&
			strstr(urn_attach_error(), "fork") != NULL && ibv_get_async_event(e.ctx, &ev) == -1;

		atomic_store(&urn_qp(e.qp[0])->sq.hdr->prod, 77); /* the store does not reach the parent's queue */
		urn_free(p);
		death_close(&e);
		death_open(&own, "b"); /* a device of the child's own works */
		death_close(&own);
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(*(uint8_t *)p, 7);
	assert_int_equal(atomic_load(&urn_qp(e.qp[0])->sq.hdr->prod), 0);
	urn_free(p);
	death_connect(&e, &e);
	death_close(&e);
	death_kill(pid, SIGTERM);
}

/* ---- a dataplane that is stopped, and does not die */

static void
not_answered(int err)
{
	assert_int_equal(err, ETIMEDOUT);
	assert_non_null(strstr(urn_attach_error(), death_sock));
	assert_non_null(strstr(urn_attach_error(), "has not answered for 2 s"));
}

static _Atomic bool called;

static void *
call(void *arg)
{
	struct ibv_pd *pd = ibv_alloc_pd(arg);

	atomic_store(&called, true);
	return pd;
}

/*
 * A program that looks for devices, or opens one, gives up. A program with an open device waits
 * until the dataplane goes on: then the call is carried out, and the program notices nothing.
 */
static void
test_stopped(void **state)
{
	struct ibv_device **list, **again;
	pid_t pid = death_start(1);
	struct ibv_context *ctx;
	struct death_end e;
	pthread_t t;
	int n, status;
	void *pd;

	(void)state;
	setenv("URNIC_SOCKET", death_sock, 1);
	list = ibv_get_device_list(&n);
	assert_non_null(list);
	assert_int_equal(n, 2);
	/* The timeout is shorter than the wait below. */
	setenv("URNIC_TIMEOUT", "5", 1);
	death_open(&e, "a");
	setenv("URNIC_TIMEOUT", "2", 1);
	atomic_store(&called, false);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(pthread_create(&t, NULL, call, e.ctx), 0);
	errno = 0;
	again = ibv_get_device_list(&n); /* the devices that the program knows */
	not_answered(errno);
	assert_non_null(again);
	assert_int_equal(n, 2);
	errno = 0;
	assert_null(ibv_open_device(list[0]));
	not_answered(errno);
	errno = 0;
	assert_null(urn_attach_connect(death_sock, "a"));
	not_answered(errno);
	assert_false(atomic_load(&called));
	unsetenv("URNIC_TIMEOUT");
	assert_int_equal(kill(pid, SIGCONT), 0);
	assert_int_equal(pthread_join(t, &pd), 0);
	assert_non_null(pd);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	ctx = ibv_open_device(list[1]);
	assert_non_null(ctx);
	assert_int_equal(ibv_close_device(ctx), 0);
	ibv_free_device_list(list);
	ibv_free_device_list(again);
	death_connect(&e, &e);
	death_close(&e);
	unsetenv("URNIC_SOCKET");
	death_kill(pid, SIGTERM);
}

/* A thread that waits is released when the dataplane dies without going on first. */
static void
test_stopped_and_killed(void **state)
{
	pid_t pid = death_start(1);
	struct death_end e;
	int status;
	pthread_t t;
	void *pd;

	(void)state;
	death_open(&e, "a");
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_int_equal(pthread_create(&t, NULL, call, e.ctx), 0);
	death_nap_us(20000);
	death_kill(pid, SIGKILL);
	assert_int_equal(pthread_join(t, &pd), 0);
	assert_null(pd);
	death_close(&e);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_quiet, death_setup, death_teardown),
		cmocka_unit_test_setup_teardown(test_cm, death_setup, death_teardown),
		cmocka_unit_test_setup_teardown(test_fork, death_setup, death_teardown),
		cmocka_unit_test_setup_teardown(test_stopped_and_killed, death_setup, death_teardown),
		cmocka_unit_test_setup_teardown(test_stopped, death_setup, death_teardown),
	};
	int rc = death_begin(argc, argv);

	return rc != 0 ? rc : death_finish(cmocka_run_group_tests_name("death_idle", tests, NULL, NULL));
}
