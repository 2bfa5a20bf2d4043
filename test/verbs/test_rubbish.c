/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that send rubbish to the dataplane's socket (lib/abi/socket.h), share memory
 * that can't be shared, or take no answers. The pair of the rig goes on at all times.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hostile.h"

#include "control/objects.h"
#include "server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* Messages so far that the server found senseless. */
static uint64_t
bad_messages(const struct rig *r)
{
	struct urn_server_counters c;

	urn_server_counters(r->server, &c);
	return c.bad;
}

/* ---- messages */

static void
test_rubbish(void **state)
{
	struct rig *r = *state;
	uint64_t bad = bad_messages(r);
	struct urn_sock_ask q;
	uint8_t noise[300];
	int fd;

	rig_fill(noise, sizeof(noise), 99);
	/* Lengths from one byte to more than any message has. */
	for (size_t n = 1; n < sizeof(noise); n += 37, bad++) {
		fd = hostile_dial(r);
		hostile_post(fd, noise, n, NULL, 0);
		hostile_hung_up(fd);
	}
	for (uint16_t kind = 0; kind < 7; kind++, bad++) { /* all but HELLO before HELLO */
		if (kind == URN_SOCK_HELLO)
			kind++;
		fd = hostile_dial(r);
		q = hostile_question(kind);
		q.head.bytes = q.head.bytes ? q.head.bytes : sizeof(q.head);
		hostile_post(fd, &q, q.head.bytes, NULL, 0);
		hostile_hung_up(fd);
	}
	for (int i = 0; i < 8; i++, bad++) {
		fd = hostile_dial(r);
		hostile_hello(fd);
		q = hostile_question(i < 2 ? URN_SOCK_LIST : i < 4 ? URN_SOCK_CALL : i < 5 ? URN_SOCK_OPEN : URN_SOCK_EVENTS);
		if (i == 0 || i == 6)
			q.head.bytes += 8; /* the message claims more bytes than it has */
		if (i == 1)
			q.head.magic ^= 1;
		if (i >= 4 && i < 7) /* 7: before an adapter is open */
			assert_int_equal(hostile_open(fd, r->dp->adapter[0]->cfg.name, NULL, 0).err, 0); /* again */
		hostile_post(fd, &q, urn_sock_ask_bytes(q.head.kind), &fd, i == 3 || i == 5);
		hostile_hung_up(fd);
	}
	/* Descriptors that the question does not ask for, and too many of them. */
	for (unsigned int copies = 1; copies < 8; copies += 3, bad++) {
		int fds[8];

		fd = hostile_dial(r);
		for (unsigned int i = 0; i < copies; i++)
			fds[i] = fd;
		q = hostile_question(URN_SOCK_HELLO);
		hostile_post(fd, &q, q.head.bytes, fds, copies);
		hostile_hung_up(fd);
	}
	assert_int_equal(hostile_clients(r, 2), 2);
	assert_int_equal(bad_messages(r), bad);
	hostile_others_go_on(r);
}

/* Control calls of every number, with random bytes behind: each is answered. */
static void
test_calls_of_noise(void **state)
{
	struct rig *r = *state;
	struct urn_sock_ask q = hostile_question(URN_SOCK_CALL);
	int fd = hostile_dial(r);

	hostile_hello(fd);
	assert_int_equal(hostile_open(fd, r->dp->adapter[0]->cfg.name, NULL, 0).err, 0);
	for (uint32_t op = 0; op < URN_CTL_OPS + 3; op++) {
		struct urn_sock_answer a;

		rig_fill((uint8_t *)&q.call, sizeof(q.call), op);
		q.call.op = op;
		a = hostile_ask(fd, &q);
		assert_true(a.call.err >= 0);
		assert_true(a.call.err == 0 || a.call.why[0]);
	}
	/* A descriptor with a request that takes none. */
	q.call.op = URN_CTL_ALLOC_PD;
	hostile_post(fd, &q, q.head.bytes, &fd, 1);
	assert_int_equal(hostile_take(fd).call.err, EBADF);
	close(fd);
	hostile_others_go_on(r);
}

/* A program asks for any number of events: the answer has at most the limit, and here there are none. */
static void
test_numbers_of_events(void **state)
{
	static const uint32_t max[] = {0, 1, URN_SOCK_EVENTS_MAX, URN_SOCK_EVENTS_MAX + 1, UINT32_MAX};
	struct rig *r = *state;
	struct urn_sock_ask q = hostile_question(URN_SOCK_EVENTS);
	int fd = hostile_dial(r);

	hostile_hello(fd);
	assert_int_equal(hostile_open(fd, r->dp->adapter[0]->cfg.name, NULL, 0).err, 0);
	for (unsigned int i = 0; i < sizeof(max) / sizeof(max[0]); i++) {
		struct urn_sock_answer a;

		q.events.max = max[i];
		a = hostile_ask(fd, &q);
		assert_int_equal(a.err, 0);
		assert_int_equal(a.events.n, 0);
		assert_int_equal(a.head.bytes, sizeof(a));
	}
	close(fd);
	hostile_others_go_on(r);
}

/* A client that asks and never takes its answers loses the connection, and holds nobody up. */
static void
test_answers_not_taken(void **state)
{
	struct rig *r = *state;
	struct urn_sock_ask q = hostile_question(URN_SOCK_LIST);
	int fd = hostile_dial(r), n;

	hostile_hello(fd);
	for (n = 0; n < 100000; n++)
		if (send(fd, &q, q.head.bytes, MSG_NOSIGNAL) < 0)
			break;
	assert_true(n < 100000);
	assert_int_equal(hostile_clients(r, 2), 2);
	close(fd);
	hostile_others_go_on(r);
}

/* ---- shared memory */

static int
memfd(size_t bytes, unsigned int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* Share a descriptor by hand. returns: the reply's errno value */
static int
share(int sock, int fd, uint64_t addr, uint64_t length)
{
	struct urn_sock_ask q = hostile_question(URN_SOCK_CALL);
	struct urn_sock_answer a;

	q.call.op = URN_CTL_SHARE;
	q.call.share.addr = addr;
	q.call.share.length = length;
	hostile_post(sock, &q, q.head.bytes, &fd, fd >= 0);
	a = hostile_take(sock);
	assert_true(a.call.err == 0 || a.call.why[0]);
	return a.call.err;
}

static void
test_share_refused(void **state)
{
	struct rig *r = *state;
	int sock = hostile_dial(r), fd, p[2];

	hostile_hello(sock);
	assert_int_equal(hostile_open(sock, r->dp->adapter[0]->cfg.name, NULL, 0).err, 0);
	assert_int_equal(share(sock, -1, 4096, 4096), EBADF);
	assert_int_equal(pipe(p), 0);
	assert_int_equal(share(sock, p[0], 4096, 4096), EINVAL);
	close(p[0]);
	close(p[1]);
	fd = open("/proc/self/exe", O_RDONLY);
	assert_int_equal(share(sock, fd, 4096, 4096), EINVAL);
	close(fd);
	fd = memfd(8192, F_SEAL_GROW); /* the file may shrink */
	assert_int_equal(share(sock, fd, 4096, 4096), EINVAL);
	close(fd);
	fd = memfd(8192, F_SEAL_SHRINK | F_SEAL_WRITE);
	assert_int_equal(share(sock, fd, 4096, 4096), EINVAL);
	close(fd);
	fd = memfd(8192, F_SEAL_SHRINK);
	assert_int_equal(share(sock, fd, 4096, 8193), EINVAL);
	assert_int_equal(share(sock, fd, 4096, 0), EINVAL);
	assert_int_equal(share(sock, fd, UINT64_MAX - 4096, 8192), EINVAL);
	assert_int_equal(share(sock, fd, 4096, 8192), 0);
	close(fd);
	fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	if (fd >= 0 && ftruncate(fd, 2 << 20) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
		assert_int_equal(share(sock, fd, 1 << 30, 2 << 20), EINVAL);
	if (fd >= 0)
		close(fd);
	close(sock);
	hostile_others_go_on(r);
}

/* ---- objects of another program */

/* A control call on the object fails. */
static void
not_its_own(int fd, const struct urn_sock_ask *q)
{
	if (hostile_ask(fd, q).call.err == 0)
		fail_msg("control call %u, handle 0x%x, PD %u: carried out", q->call.op, q->call.handle, q->call.reg_mr.pd);
}

/*
 * A program can't name another's objects, whichever number it gives: those of the pair, and the
 * first numbers given out.
 */
static void
test_handles_of_others(void **state)
{
	static const uint32_t ops[] = {
		URN_CTL_DEALLOC_PD, URN_CTL_DEREG_MR, URN_CTL_DEALLOC_MW, URN_CTL_RESIZE_CQ, URN_CTL_DESTROY_CQ,
		URN_CTL_MODIFY_SRQ, URN_CTL_QUERY_SRQ, URN_CTL_DESTROY_SRQ, URN_CTL_MODIFY_QP, URN_CTL_QUERY_QP,
		URN_CTL_DESTROY_QP, URN_CTL_DESTROY_AH, URN_CTL_UNSHARE, URN_CTL_DESTROY_CHANNEL, URN_CTL_CM_ACCEPT,
		URN_CTL_CM_REJECT, URN_CTL_CM_ESTABLISH, URN_CTL_CM_DISCONNECT, URN_CTL_CM_DESTROY,
	};
	static const uint32_t in_pd[] = {URN_CTL_REG_MR, URN_CTL_ALLOC_MW, URN_CTL_CREATE_SRQ, URN_CTL_CREATE_QP,
					 URN_CTL_CREATE_AH};
	enum { FIRST = 40 };
	struct rig *r = *state;
	const struct rig_end *end = &r->end[0];
	struct urn_sock_ask q = hostile_question(URN_SOCK_CALL);
	int fd = hostile_dial(r);

	hostile_hello(fd);
	assert_int_equal(hostile_open(fd, r->dp->adapter[0]->cfg.name, NULL, 0).err, 0);
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		const uint32_t known[] = {end->qp->qp_num, end->mr->lkey, end->mr->rkey, end->mr->lkey >> 8};

		q.call.op = ops[i];
		q.call.resize_cq.cqe = 16;
		for (uint32_t k = 0; k < FIRST + sizeof(known) / sizeof(known[0]); k++) {
			q.call.handle = k < FIRST ? k : known[k - FIRST];
			not_its_own(fd, &q);
		}
	}
	for (size_t i = 0; i < sizeof(in_pd) / sizeof(in_pd[0]); i++) {
		q = hostile_question(URN_SOCK_CALL);
		q.call.op = in_pd[i];
		if (in_pd[i] == URN_CTL_ALLOC_MW)
			q.call.alloc_mw.type = 1;
		for (q.call.reg_mr.pd = 0; q.call.reg_mr.pd < FIRST; q.call.reg_mr.pd++)
			not_its_own(fd, &q);
	}
	close(fd);
	hostile_others_go_on(r);
}

/* Keys of others do not give its queue pairs access to their memory, from outside or from within. */
static void
test_keys_of_others(void **state)
{
	struct rig *r = *state;
	const struct rig_end *victim = &r->end[0];
	enum ibv_wc_status want[] = {IBV_WC_REM_ACCESS_ERR, IBV_WC_LOC_PROT_ERR};

	for (int i = 0; i < 2; i++) {
		struct hostile_loop *m = hostile_attach(r);
		struct rig_end *end = &m->rig.end[0];
		struct ibv_mr *own = end->mr;
		struct ibv_mr lie = *own;
		struct ibv_wc wc;

		memset(victim->buf, 0x5a, 128);
		lie.lkey = i ? victim->mr->lkey : own->lkey;
		end->mr = &lie;
		hostile_write(m, (uintptr_t)(i ? end->buf : victim->buf), i ? own->rkey : victim->mr->rkey);
		end->mr = own;
		wc = rig_wait(&m->rig, 0);
		assert_int_equal(wc.status, want[i]);
		for (int k = 0; k < 128; k++)
			assert_int_equal(victim->buf[k], 0x5a);
		for (int k = 0; k < 2; k++)
			assert_int_equal(ibv_destroy_qp(m->qp[k]), 0);
		assert_int_equal(ibv_destroy_cq(end->cq), 0);
		assert_int_equal(ibv_destroy_comp_channel(m->ch), 0);
		assert_int_equal(ibv_dereg_mr(own), 0);
		assert_int_equal(ibv_dealloc_pd(end->pd), 0);
		assert_int_equal(ibv_close_device(end->ctx), 0);
		urn_free(end->buf);
		free(m);
	}
	hostile_others_go_on(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rubbish),
		cmocka_unit_test(test_calls_of_noise),
		cmocka_unit_test(test_numbers_of_events),
		cmocka_unit_test(test_answers_not_taken),
		cmocka_unit_test(test_share_refused),
		cmocka_unit_test(test_handles_of_others),
		cmocka_unit_test(test_keys_of_others),
	};

	return cmocka_run_group_tests_name("rubbish", tests, hostile_setup, hostile_teardown);
}
