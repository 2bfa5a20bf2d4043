/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that take more than their share of what the dataplane has but once,
 * or try to hold it up through descriptors that they have in common with it. Whatever one does, the server
 * answers others, and the pair of the rig goes on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "abi/socket.h"
#include "control/adapter.h"
#include "control/server.h"
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct rig rig;

static int
setup(void **state)
{
	const struct rig_config cfg = {.remote = true};

	rig_open(&rig, &cfg, NULL);
	*state = &rig;
	return 0;
}

static int
teardown(void **state)
{
	rig_close(*state);
	return 0;
}

/* The pair of the rig still works: bytes go over. */
static void
others_go_on(struct rig *r)
{
	static uint32_t seed = 1;

	rig_fill(r->end[0].buf, 4096, ++seed);
	rig_recv(r, 1, 8192, 4096, 7);
	rig_post(r, 0, IBV_WR_SEND, 0, 4096, 0, 8);
	assert_int_equal(rig_expect(r, 0, IBV_WC_SUCCESS).wr_id, 8);
	assert_int_equal(rig_expect(r, 1, IBV_WC_SUCCESS).wr_id, 7);
	assert_memory_equal(r->end[0].buf, r->end[1].buf + 8192, 4096);
}

/* ---- by hand */

static int
dial(const struct rig *r)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const struct timeval tv = {.tv_sec = 5};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", r->path);
	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	assert_int_equal(connect(fd, (void *)&addr, sizeof(addr)), 0);
	return fd;
}

static struct urn_sock_ask
question(uint16_t kind)
{
	return (struct urn_sock_ask){
		.head = {
			.magic = URN_SOCK_MAGIC,
			.version = URN_SOCK_VERSION,
			.kind = kind,
			.serial = 77,
			.bytes = urn_sock_ask_bytes(kind),
		},
	};
}

/* Send n bytes and so many copies of a descriptor. */
static void
post(int fd, const void *p, size_t n, int extra, unsigned int copies)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(8 * sizeof(int))];
	} control = {{0}};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)p, .iov_len = n};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (copies) {
		struct cmsghdr *c;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(copies * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(copies * sizeof(int));
		for (unsigned int i = 0; i < copies; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &extra, sizeof(int));
	}
	assert_int_equal(sendmsg(fd, &msg, MSG_NOSIGNAL), n);
}

static struct urn_sock_answer
ask(int fd, const struct urn_sock_ask *q)
{
	struct urn_sock_answer a;

	post(fd, q, q->head.bytes, -1, 0);
	assert_int_equal(recv(fd, &a, sizeof(a), 0), sizeof(a));
	assert_int_equal(a.head.serial, q->head.serial);
	return a;
}

static void
hello(int fd)
{
	struct urn_sock_ask q = question(URN_SOCK_HELLO);
	struct urn_sock_answer a;

	q.hello.abi = URN_ABI_VERSION;
	a = ask(fd, &q);
	assert_int_equal(a.err, 0);
	assert_int_equal(a.hello.abi, URN_ABI_VERSION);
	assert_int_equal(a.hello.adapters, 2);
}

static void
open_adapter(int fd, const char *name)
{
	struct urn_sock_ask q = question(URN_SOCK_OPEN);

	snprintf(q.open.name, sizeof(q.open.name), "%s", name);
	assert_int_equal(ask(fd, &q).err, 0);
}


/* The server answers somebody else. returns: it did, in five seconds */
static bool
serves(const struct rig *r)
{
	struct urn_sock_ask q = question(URN_SOCK_HELLO);
	struct urn_sock_answer a;
	int fd = dial(r);
	bool ok;

	q.hello.abi = URN_ABI_VERSION;
	post(fd, &q, q.head.bytes, -1, 0);
	ok = recv(fd, &a, sizeof(a), 0) == (ssize_t)sizeof(a);
	close(fd);
	return ok;
}

/* ---- memory that stalls */

/* A page that a userfaultfd supplies, that is, never. */
static void *
stalling(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register reg = {
		.range = {(uintptr_t)p, 4096}, .mode = UFFDIO_REGISTER_MODE_MISSING};

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0 || ioctl(fd, UFFDIO_REGISTER, &reg) != 0)
		_exit(9);
	return p;
}

struct reader {
	int fd;
	void *to;
};

static void *
read_slowly(void *arg)
{
	struct reader *rd = arg;

	return read(rd->fd, rd->to, 16) < 0 ? arg : NULL;
}

static void
start_reading(int fd)
{
	struct reader *rd = malloc(sizeof(*rd));
	pthread_t t;

	*rd = (struct reader){fd, stalling()};
	if (pthread_create(&t, NULL, read_slowly, rd) != 0)
		_exit(8);
	usleep(300000);
}

struct mine {
	struct rig rig;
	struct ibv_qp *qp[2];
	struct ibv_comp_channel *ch;
};

/* A program connected to itself. */
static struct mine *
attach_mine(struct rig *r)
{
	const struct rig_qp how = {.depth = 16};
	struct mine *m = calloc(1, sizeof(*m));
	struct rig_end *end = &m->rig.end[0];
	union ibv_gid gid;

	memcpy(m->rig.path, r->path, sizeof(r->path));
	m->rig.cfg.remote = true;
	end->ctx = urn_attach_connect(r->path, "a");
	end->pd = ibv_alloc_pd(end->ctx);
	m->ch = ibv_create_comp_channel(end->ctx);
	end->cq = ibv_create_cq(end->ctx, 256, NULL, m->ch, 0);
	end->buf = urn_alloc(1 << 20);
	end->mr = ibv_reg_mr(end->pd, end->buf, 1 << 20, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	rig_gid(&m->rig, 0, &gid);
	for (int i = 0; i < 2; i++)
		m->qp[i] = rig_make_qp(&m->rig, 0, &how);
	for (int i = 0; i < 2; i++)
		rig_connect_to(&m->rig, m->qp[i], 5, m->qp[!i]->qp_num, 5, &gid, &how);
	return m;
}

static void
write_mine(struct mine *m, uint64_t to, uint32_t rkey)
{
	struct rig_end *end = &m->rig.end[0];
	struct ibv_sge sge = {(uintptr_t)end->buf, 64, end->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;

	wr.wr.rdma.remote_addr = to;
	wr.wr.rdma.rkey = rkey;
	(void)ibv_post_send(m->qp[0], &wr, &bad);
}

/* Its own channel's events are being read into memory that stalls, and more are to come. */
static void
attack_channel(struct rig *r)
{
	struct mine *m = attach_mine(r);
	struct rig_end *end = &m->rig.end[0];

	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc;

		while (ibv_poll_cq(end->cq, 1, &wc) == 1)
			;
		(void)ibv_req_notify_cq(end->cq, 0);
		write_mine(m, (uintptr_t)end->buf + 65536, end->mr->rkey);
		usleep(200000);
		if (i == 0)
			start_reading(m->ch->fd);
	}
}

static void
attacked_by(struct rig *r, void (*attack)(struct rig *r))
{
	int p[2], status;
	pid_t pid;
	char c = 0;
	bool served;

	assert_int_equal(pipe(p), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		for (int fd = 3; fd < 1024; fd++)
			if (fd != p[1])
				close(fd);
		alarm(60);
		attack(r);
		if (write(p[1], &c, 1) == 1)
			pause();
		_exit(1);
	}
	close(p[1]);
	assert_int_equal(read(p[0], &c, 1), 1);
	close(p[0]);
	usleep(200000);
	served = serves(r);
	if (!served)
		print_message("the server does not answer\n");
	if (served)
		others_go_on(r);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(served);
	others_go_on(r);
}

static void
test_channel(void **state)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	/* Where ordinary users may not stall the kernel so, they can't attack so. */
	if (fd < 0 && geteuid() != 0) {
		print_message("no userfaultfd: %s\n", strerror(errno));
		skip();
	}
	if (fd >= 0)
		close(fd);
	attacked_by(*state, attack_channel);
}

/* ---- more than its share */

/* No descriptors are left: who comes is hung up on, and does not wait; then others attach again. */
static void
test_no_descriptors(void **state)
{
	struct rig *r = *state;
	int sock = dial(r), hog[4096], n = 0;
	struct rlimit was, few;
	char c;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	few.rlim_cur = few.rlim_max < 1024 ? few.rlim_max : 1024;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	while (n < 4096 && (hog[n] = dup(sock)) >= 0)
		n++;
	assert_true(n > 0 && n < 4096);
	close(hog[--n]);
	for (int i = 0; i < 3; i++) {
		int fd = dial(r);

		assert_int_equal(recv(fd, &c, 1, 0), 0);
		close(fd);
	}
	while (n)
		close(hog[--n]);
	close(sock);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_true(serves(r));
	others_go_on(r);
}

/* A program shares more than there is room for: others attach. */
static void
test_shares(void **state)
{
	struct rig *r = *state;
	struct urn_sock_ask q = question(URN_SOCK_CALL);
	int fd = dial(r), m = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING), n = 0;
	struct ibv_context *ctx;

	hello(fd);
	open_adapter(fd, r->dp->adapter[0]->cfg.name);
	assert_int_equal(ftruncate(m, (off_t)1 << 46), 0);
	assert_int_equal(fcntl(m, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	q.call.op = URN_CTL_SHARE;
	q.call.share.addr = 4096;
	for (int bits = 46; bits >= 20; bits--) {
		struct urn_sock_answer a;

		q.call.share.length = 1ull << bits;
		do {
			post(fd, &q, q.head.bytes, m, 1);
			assert_int_equal(recv(fd, &a, sizeof(a), 0), sizeof(a));
		} while (a.call.err == 0 && ++n < 100000);
	}
	ctx = urn_attach_connect(r->path, "a");
	close(m);
	close(fd);
	assert_non_null(ctx);
	assert_int_equal(ibv_close_device(ctx), 0);
	others_go_on(r);
}

/* Questions before the last answer was taken: descriptors would pile up on the way. */
static void
test_one_at_a_time(void **state)
{
	struct rig *r = *state;
	struct urn_sock_ask q = question(URN_SOCK_CALL);
	struct urn_server_counters c;
	int fd = dial(r), n = 0;

	hello(fd);
	open_adapter(fd, r->dp->adapter[0]->cfg.name);
	q.call.op = URN_CTL_CREATE_CHANNEL;
	while (n < 20 && send(fd, &q, q.head.bytes, MSG_NOSIGNAL) > 0)
		n++;
	/* Nothing is read until the server has hung up, which it does for that very reason. */
	for (time_t end = time(NULL) + 10; time(NULL) < end; sched_yield()) {
		urn_server_counters(r->server, &c);
		if (c.clients == 2)
			break;
	}
	assert_int_equal(c.clients, 2);
	close(fd);
	others_go_on(r);
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

	return cmocka_run_group_tests_name("hostile", tests, setup, teardown);
}
