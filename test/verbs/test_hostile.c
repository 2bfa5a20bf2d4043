/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that take more than their share of what the dataplane has only once, or try to hold up
 * the dataplane through descriptors that both have. The server answers others at all times, and the
 * pair of the rig goes on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hostile.h"

#include "control/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- memory that stalls */

/* The program reads its own channel's events into memory that stalls, and more are to come. */
static void
attack_channel(const struct rig *r, int say)
{
	struct hostile_loop *m = hostile_attach(r);
	struct rig_end *end = &m->rig.end[0];

	(void)say;
	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc;

		while (ibv_poll_cq(end->cq, 1, &wc) == 1)
			;
		(void)ibv_req_notify_cq(end->cq, 0);
		hostile_write(m, (uintptr_t)end->buf + 65536, end->mr->rkey);
		usleep(200000);
		if (i == 0)
			hostile_read(m->ch->fd);
	}
}

static void
test_channel(void **state)
{
	/* Where ordinary users may not stall the kernel so, they can't attack this way. */
	if (!hostile_has_userfaultfd())
		skip();
	hostile_attacked_by(*state, attack_channel);
}

/* ---- more than its share */

/*
 * No descriptors are left: the server hangs up on a new client, which does not wait; then others
 * attach again.
 */
static void
test_no_descriptors(void **state)
{
	struct rig *r = *state;
	int sock, hog[4096], n = 0;
	struct rlimit was, few;
	struct urn_sock_answer a;

	/*
	 * The server lives in this process: before the check it must have closed, and
	 * taken, all its descriptors.
	 */
	assert_int_equal(hostile_clients(r, 2), 2);
	sock = hostile_dial(r);
	hostile_hello(sock);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	few.rlim_cur = few.rlim_max < 1024 ? few.rlim_max : 1024;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	while (n < 4096 && (hog[n] = dup(sock)) >= 0)
		n++;
	assert_true(n > 0 && n < 4096);
	close(hog[--n]);
	for (int i = 0; i < 3; i++) {
		int fd = hostile_dial(r);

		assert_int_equal(recv(fd, &a, sizeof(a), 0), sizeof(a));
		assert_int_equal(a.err, EMFILE);
		assert_non_null(strstr(a.why, "descriptors"));
		assert_int_equal(recv(fd, &a, sizeof(a), 0), 0);
		close(fd);
	}
	while (n)
		close(hog[--n]);
	close(sock);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_true(hostile_serves(r));
	hostile_others_go_on(r);
}

/* A program shares more pieces than there is room for: others attach. */
static void
test_shares(void **state)
{
	struct rig *r = *state;
	struct urn_sock_ask q = hostile_question(URN_SOCK_CALL);
	int fd = hostile_dial(r), m = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING), n = 0;
	struct ibv_context *ctx;

	hostile_hello(fd);
	(void)hostile_open(fd, r->dp->adapter[0]->cfg.name, NULL, 0);
	assert_int_equal(ftruncate(m, (off_t)1 << 46), 0);
	assert_int_equal(fcntl(m, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	q.call.op = URN_CTL_SHARE;
	q.call.share.addr = 4096;
	for (int bits = 46; bits >= 20; bits--) {
		struct urn_sock_answer a;

		q.call.share.length = 1ull << bits;
		do {
			hostile_post(fd, &q, q.head.bytes, &m, 1);
			assert_int_equal(recv(fd, &a, sizeof(a), 0), sizeof(a));
		} while (a.call.err == 0 && ++n < 100000);
	}
	ctx = urn_attach_connect(r->path, "a");
	close(m);
	close(fd);
	assert_non_null(ctx);
	assert_int_equal(ibv_close_device(ctx), 0);
	hostile_others_go_on(r);
}

/* Questions before the last answer was taken: descriptors would pile up on the way. */
static void
test_one_at_a_time(void **state)
{
	struct rig *r = *state;
	struct urn_sock_ask q = hostile_question(URN_SOCK_CALL);
	int fd = hostile_dial(r), n = 0;

	hostile_hello(fd);
	(void)hostile_open(fd, r->dp->adapter[0]->cfg.name, NULL, 0);
	q.call.op = URN_CTL_CREATE_CHANNEL;
	while (n < 20 && send(fd, &q, q.head.bytes, MSG_NOSIGNAL) > 0)
		n++;
	/* The program reads nothing until the server has hung up, which happens for that very reason. */
	assert_int_equal(hostile_clients(r, 2), 2);
	close(fd);
	hostile_others_go_on(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_at_a_time),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_no_descriptors),
		cmocka_unit_test(test_channel),
	};

	return cmocka_run_group_tests_name("hostile", tests, hostile_setup, hostile_teardown);
}
