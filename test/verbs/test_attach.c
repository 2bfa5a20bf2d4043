/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dataplane's socket (lib/abi/socket.h): attaching, sharing memory, and what
 * becomes of those who send rubbish, die, or outlive the dataplane. Whatever one
 * does, the pair of the rig goes on.
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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

static uint64_t
counter(const struct rig *r, size_t off)
{
	struct urn_server_counters c;

	urn_server_counters(r->server, &c);
	return *(const uint64_t *)((const uint8_t *)&c + off);
}

#define COUNTER(r, name) counter(r, offsetof(struct urn_server_counters, name))

/* Wait, ten seconds at most, until so many connections are left. */
static void
wait_clients(const struct rig *r, uint64_t n)
{
	for (time_t end = time(NULL) + 10; COUNTER(r, clients) != n && time(NULL) < end;)
		sched_yield();
	assert_int_equal(COUNTER(r, clients), n);
}

/* ---- by hand */

static int
dial(const struct rig *r)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const struct timeval tv = {.tv_sec = 10};
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

/* The other side hung up, whatever it said before. */
static void
hung_up(int fd)
{
	char buf[1024];
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0)
		;
	assert_true(n == 0 || errno == ECONNRESET);
	close(fd);
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

/* ---- who speaks what */

static void
test_versions(void **state)
{
	struct rig *r = *state;
	struct urn_sock_ask q = question(URN_SOCK_HELLO);
	struct urn_sock_answer a;
	int fd = dial(r);

	q.hello.abi = URN_ABI_VERSION + 1;
	a = ask(fd, &q);
	assert_int_equal(a.err, EPROTO);
	assert_non_null(strstr(a.why, "version"));
	close(fd);

	fd = dial(r);
	q.head.version = URN_SOCK_VERSION + 1;
	a = ask(fd, &q);
	assert_int_equal(a.err, EPROTO);
	assert_non_null(strstr(a.why, "version"));
	hung_up(fd);
	others_go_on(r);
}

static void
test_list(void **state)
{
	struct rig *r = *state;
	struct urn_sock_ask q = question(URN_SOCK_LIST);
	struct urn_sock_answer a;
	int fd = dial(r);

	hello(fd);
	for (q.list.index = 0; q.list.index < 2; q.list.index++) {
		a = ask(fd, &q);
		assert_int_equal(a.err, 0);
		assert_int_equal(a.device.node[0], 'a' + (int)q.list.index);
		assert_int_equal(a.device.guid, urn_adapter_guid(r->dp->adapter[q.list.index]));
	}
	assert_int_equal(ask(fd, &q).err, ENOENT);
	q = question(URN_SOCK_OPEN);
	snprintf(q.open.name, sizeof(q.open.name), "nobody");
	a = ask(fd, &q);
	assert_int_equal(a.err, ENODEV);
	assert_non_null(strstr(a.why, "nobody"));
	close(fd);
}

/* Unmodified programs find the adapters in the list of devices. */
static void
test_device_list(void **state)
{
	struct rig *r = *state;
	struct ibv_device **list;
	struct ibv_context *ctx;
	int n;

	setenv("URNIC_SOCKET", r->path, 1);
	setenv("URNIC_NODE", "b", 1);
	list = ibv_get_device_list(&n);
	assert_int_equal(n, 1);
	assert_string_equal(ibv_get_device_name(list[0]), r->dp->adapter[1]->cfg.name);
	ctx = ibv_open_device(list[0]);
	assert_non_null(ctx);
	ibv_free_device_list(list);
	assert_int_equal(ibv_close_device(ctx), 0);
	ctx = urn_attach_connect(NULL, NULL);
	assert_non_null(ctx);
	assert_string_equal(ctx->device->name, r->dp->adapter[1]->cfg.name);
	assert_int_equal(ibv_close_device(ctx), 0);
	setenv("URNIC_NODE", "c", 1);
	assert_null(urn_attach_connect(NULL, NULL));
	assert_int_equal(errno, ENODEV);
	assert_non_null(strstr(urn_attach_error(), "'c'"));
	setenv("URNIC_SOCKET", "/nowhere/at.all", 1);
	assert_null(urn_attach_connect(NULL, NULL));
	assert_int_equal(errno, ENOENT);
	unsetenv("URNIC_SOCKET");
	unsetenv("URNIC_NODE");
}

/* ---- rubbish */

static void
test_rubbish(void **state)
{
	struct rig *r = *state;
	uint64_t bad = COUNTER(r, bad);
	struct urn_sock_ask q;
	uint8_t noise[300];
	int fd;

	rig_fill(noise, sizeof(noise), 99);
	/* Lengths from nothing to more than any message has. */
	for (size_t n = 1; n < sizeof(noise); n += 37, bad++) {
		fd = dial(r);
		post(fd, noise, n, -1, 0);
		hung_up(fd);
	}
	for (uint16_t kind = 0; kind < 7; kind++, bad++) { /* all but HELLO before HELLO */
		if (kind == URN_SOCK_HELLO)
			kind++;
		fd = dial(r);
		q = question(kind);
		q.head.bytes = q.head.bytes ? q.head.bytes : sizeof(q.head);
		post(fd, &q, q.head.bytes, -1, 0);
		hung_up(fd);
	}
	for (int i = 0; i < 5; i++, bad++) {
		fd = dial(r);
		hello(fd);
		q = question(i < 2 ? URN_SOCK_LIST : i < 4 ? URN_SOCK_CALL : URN_SOCK_OPEN);
		if (i == 0)
			q.head.bytes += 8; /* says more than it is */
		if (i == 1)
			q.head.magic ^= 1;
		if (i == 4)
			open_adapter(fd, r->dp->adapter[0]->cfg.name); /* and then again */
		post(fd, &q, urn_sock_ask_bytes(q.head.kind), i == 3 ? fd : -1, i == 3);
		hung_up(fd);
	}
	/* Descriptors that nobody asked for, and too many. */
	for (unsigned int copies = 1; copies < 8; copies += 3, bad++) {
		fd = dial(r);
		q = question(URN_SOCK_HELLO);
		post(fd, &q, q.head.bytes, fd, copies);
		hung_up(fd);
	}
	wait_clients(r, 2);
	assert_int_equal(COUNTER(r, bad), bad);
	others_go_on(r);
}

/* Control calls of every number, with noise behind: each is answered. */
static void
test_calls_of_noise(void **state)
{
	struct rig *r = *state;
	struct urn_sock_ask q = question(URN_SOCK_CALL);
	int fd = dial(r);

	hello(fd);
	open_adapter(fd, r->dp->adapter[0]->cfg.name);
	for (uint32_t op = 0; op < URN_CTL_OPS + 3; op++) {
		struct urn_sock_answer a;

		rig_fill((uint8_t *)&q.call, sizeof(q.call), op);
		q.call.op = op;
		a = ask(fd, &q);
		assert_true(a.call.err >= 0);
		assert_true(a.call.err == 0 || a.call.why[0]);
	}
	/* A descriptor with a request that takes none. */
	q.call.op = URN_CTL_ALLOC_PD;
	post(fd, &q, q.head.bytes, fd, 1);
	{
		struct urn_sock_answer a;

		assert_int_equal(recv(fd, &a, sizeof(a), 0), sizeof(a));
		assert_int_equal(a.call.err, EBADF);
	}
	close(fd);
	others_go_on(r);
}

/* A peer that asks and never takes its answers loses the connection, and holds nobody up. */
static void
test_answers_not_taken(void **state)
{
	struct rig *r = *state;
	struct urn_sock_ask q = question(URN_SOCK_LIST);
	int fd = dial(r), n;

	hello(fd);
	for (n = 0; n < 100000; n++)
		if (send(fd, &q, q.head.bytes, MSG_NOSIGNAL) < 0)
			break;
	assert_true(n < 100000);
	wait_clients(r, 2);
	close(fd);
	others_go_on(r);
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
	struct urn_sock_ask q = question(URN_SOCK_CALL);
	struct urn_sock_answer a;

	q.call.op = URN_CTL_SHARE;
	q.call.share.addr = addr;
	q.call.share.length = length;
	post(sock, &q, q.head.bytes, fd, fd >= 0);
	assert_int_equal(recv(sock, &a, sizeof(a), 0), sizeof(a));
	assert_true(a.call.err == 0 || a.call.why[0]);
	return a.call.err;
}

static void
test_share_refused(void **state)
{
	struct rig *r = *state;
	int sock = dial(r), fd, p[2];

	hello(sock);
	open_adapter(sock, r->dp->adapter[0]->cfg.name);
	assert_int_equal(share(sock, -1, 4096, 4096), EBADF);
	assert_int_equal(pipe(p), 0);
	assert_int_equal(share(sock, p[0], 4096, 4096), EINVAL);
	close(p[0]);
	close(p[1]);
	fd = open("/proc/self/exe", O_RDONLY);
	assert_int_equal(share(sock, fd, 4096, 4096), EINVAL);
	close(fd);
	fd = memfd(8192, F_SEAL_GROW); /* may shrink */
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
	others_go_on(r);
}

/* Bytes go from `from` of end 0 to `to` of end 1, and are the same. */
static void
move(struct rig *r, uint8_t *from, uint8_t *to, uint32_t n)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct ibv_mr *src = ibv_reg_mr(r->end[0].pd, from, n, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *dst = ibv_reg_mr(r->end[1].pd, to, n, access);
	struct ibv_sge sge = {(uintptr_t)from, n, src ? src->lkey : 0};
	struct ibv_send_wr wr = {.wr_id = 5, .sg_list = &sge, .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};

	assert_true(src && dst);
	rig_fill(from, n, n);
	wr.wr.rdma.remote_addr = (uintptr_t)to;
	wr.wr.rdma.rkey = dst->rkey;
	rig_send_on(r->end[0].qp, &wr);
	assert_int_equal(rig_expect(r, 0, IBV_WC_SUCCESS).wr_id, 5);
	assert_memory_equal(from, to, n);
	assert_int_equal(ibv_dereg_mr(src), 0);
	assert_int_equal(ibv_dereg_mr(dst), 0);
}

/* Regions lie in memory to share, of the heap, or on the stack; not in what is not there. */
static void
test_regions(void **state)
{
	enum { N = 100000 };
	struct rig *r = *state;
	struct rig_end *end = &r->end[0];
	size_t bytes = 40 << 20; /* more than a segment */
	uint8_t *big = urn_alloc(bytes), *heap = malloc(N), stack[5000];
	struct ibv_mr *mr;
	void *hole;

	assert_non_null(big);
	mr = ibv_reg_mr(end->pd, big + 1, bytes - 1, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	move(r, big + 7, heap, N);
	move(r, heap, big + (35 << 20) + 3, N);
	move(r, stack, heap + 77, sizeof(stack));
	hole = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(mprotect(hole, 4096, PROT_READ), 0);
	assert_int_equal(munmap((uint8_t *)hole + 8192, 4096), 0);
	assert_null(ibv_reg_mr(end->pd, hole, 8192, IBV_ACCESS_LOCAL_WRITE));
	assert_null(ibv_reg_mr(end->pd, (uint8_t *)hole + 4096, 8192, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(munmap(hole, 8192), 0);
	urn_free(big);
	free(heap);
	others_go_on(r);
}

/* Without its /proc/self/mem a program registers only what it shares; with another's it opens nothing of that. */
static void
test_no_space(void **state)
{
	struct rig *r = *state;

	for (int other = 0; other < 2; other++) {
		struct urn_sock_ask q = question(URN_SOCK_OPEN);
		struct urn_sock_answer a;
		int fd = dial(r), file = open("/proc/self/exe", O_RDONLY);

		hello(fd);
		snprintf(q.open.name, sizeof(q.open.name), "%s", r->dp->adapter[0]->cfg.name);
		post(fd, &q, q.head.bytes, file, other ? 2 : 0);
		assert_int_equal(recv(fd, &a, sizeof(a), 0), sizeof(a));
		assert_int_equal(a.err, 0);
		assert_int_equal(a.open.foreign, 0);
		q = question(URN_SOCK_CALL);
		q.call.op = URN_CTL_ALLOC_PD;
		a = ask(fd, &q);
		assert_int_equal(a.call.err, 0);
		q.call.op = URN_CTL_REG_MR;
		q.call.reg_mr.pd = a.call.handle;
		q.call.reg_mr.access = URN_ACCESS_LOCAL_WRITE;
		q.call.reg_mr.addr = q.call.reg_mr.iova = (uintptr_t)r;
		q.call.reg_mr.length = 8;
		a = ask(fd, &q);
		assert_int_equal(a.call.err, EOPNOTSUPP);
		assert_non_null(strstr(a.call.why, "urn_alloc"));
		close(file);
		close(fd);
	}
	others_go_on(r);
}

/* ---- slots */

/* Who sees a completion may post into its slot at once. */
static void
test_slots(void **state)
{
	const struct rig_qp how = {.depth = 64};
	struct rig *r = *state;
	struct rig_end *end = &r->end[0];
	struct ibv_qp *qp = rig_make_qp(r, 0, &how);
	uint32_t out = 0, cap;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	union ibv_gid gid;
	struct ibv_wc wc;

	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_CAP, &init), 0);
	cap = attr.cap.max_send_wr;
	rig_gid(r, 0, &gid);
	rig_connect_to(r, qp, 9, qp->qp_num, 9, &gid, &how); /* to itself */
	for (uint32_t n = 0; n < 300000;) {
		struct ibv_sge sge = {(uintptr_t)end->buf, 8, end->mr->lkey};
		struct ibv_send_wr wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};

		wr.wr.rdma.remote_addr = (uintptr_t)end->buf + 64;
		wr.wr.rdma.rkey = end->mr->rkey;
		while (out < cap) {
			rig_send_on(qp, &wr); /* fails the test when there is no room */
			out++;
			n++;
		}
		while (ibv_poll_cq(end->cq, 1, &wc) == 1) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			out--;
		}
	}
	while (out) {
		assert_int_equal(rig_wait(r, 0).status, IBV_WC_SUCCESS);
		out--;
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* ---- those who die */

/* A program that attaches, connects to itself and writes as fast as it can, until it is killed. */
static void __attribute__((noreturn))
busy_client(struct rig *r, int tell)
{
	const struct rig_qp how = {.depth = 16};
	struct rig mine = {.cfg = {.remote = true}};
	struct rig_end *end = &mine.end[0];
	struct ibv_qp *qp[2];
	union ibv_gid gid;
	char c = 1;

	alarm(60);
	memcpy(mine.path, r->path, sizeof(mine.path));
	end->ctx = urn_attach_connect(r->path, "a");
	end->pd = ibv_alloc_pd(end->ctx);
	end->cq = ibv_create_cq(end->ctx, 256, NULL, ibv_create_comp_channel(end->ctx), 0);
	end->buf = urn_alloc(1 << 20);
	end->mr = ibv_reg_mr(end->pd, end->buf, 1 << 20, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	rig_gid(&mine, 0, &gid);
	for (int i = 0; i < 2; i++)
		qp[i] = rig_make_qp(&mine, 0, &how);
	for (int i = 0; i < 2; i++)
		rig_connect_to(&mine, qp[i], 5, qp[!i]->qp_num, 5, &gid, &how);
	for (uint64_t n = 0;; n++) {
		struct ibv_sge sge = {(uintptr_t)end->buf, 65536, end->mr->lkey};
		struct ibv_send_wr wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED},
				   *bad;
		struct ibv_wc wc[16];

		wr.wr.rdma.remote_addr = (uintptr_t)end->buf + 65536;
		wr.wr.rdma.rkey = end->mr->rkey;
		(void)ibv_post_send(qp[0], &wr, &bad);
		(void)ibv_poll_cq(end->cq, 16, wc);
		if (n == 100 && write(tell, &c, 1) != 1)
			_exit(1);
		if (n > 100)
			sched_yield();
	}
}

static unsigned int
clients_of(const struct urn_adapter *a)
{
	unsigned int n = 0;

	for (const struct urn_client *c = a->clients; c; c = c->next)
		n++;
	return n;
}

/* Nothing of it is left: neither keys nor protection domains that other clients do not own. */
static unsigned int
keys_of(const struct urn_adapter *a)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i <= a->cfg.max_mr; i++)
		n += a->key_owner[i] != NULL;
	for (uint32_t i = 0; i <= URN_ADAPTER_MAX_PD; i++)
		n += a->pd_owner[i] != NULL;
	return n;
}

static void
test_killed(void **state)
{
	struct rig *r = *state;
	unsigned int keys;

	wait_clients(r, 2);
	keys = keys_of(r->dp->adapter[0]);
	for (int i = 0; i < 10; i++) {
		int p[2], status;
		pid_t pid;
		char c;

		assert_int_equal(pipe(p), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			/* What the parent has open it must not hold open. */
			for (int fd = 3; fd < 1024; fd++)
				if (fd != p[1])
					close(fd);
			busy_client(r, p[1]);
		}
		close(p[1]);
		assert_int_equal(read(p[0], &c, 1), 1);
		close(p[0]);
		others_go_on(r);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		others_go_on(r);
		wait_clients(r, 2);
		assert_int_equal(clients_of(r->dp->adapter[0]), 1);
		assert_int_equal(keys_of(r->dp->adapter[0]), keys);
	}
}

/* The server goes: calls fail with a sentence, and nothing hangs or crashes. */
static void
test_dataplane_gone(void **state)
{
	struct rig *r = *state;
	struct ibv_context *ctx = rig_attach(r, 0);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	struct rig_config cfg = r->cfg;
	struct ibv_wc wc;

	assert_non_null(pd);
	assert_non_null(cq);
	urn_server_close(r->server);
	r->server = NULL;
	assert_int_not_equal(access(r->path, F_OK), 0);
	assert_null(ibv_alloc_pd(ctx));
	assert_int_equal(errno, EIO);
	assert_non_null(strstr(urn_attach_error(), "gone"));
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
	rig_close(r);
	rig_open(r, &cfg, NULL);
}

/* ---- the path */

static struct urn_server *
serve_at(struct rig *r, const char *path, struct urn_err *err)
{
	const struct urn_server_config cfg = {.path = path, .mode = 0640, .gid = (gid_t)-1, .clients = 1};

	return urn_server_open(r->dp, &cfg, err);
}

static void
test_path(void **state)
{
	struct rig *r = *state;
	struct urn_err err = {{0}};
	struct urn_server *s;
	char path[108], text[200];
	struct stat st;
	int fd;

	assert_null(serve_at(r, r->path, &err)); /* somebody listens there */
	assert_non_null(strstr(err.text, "another dataplane"));
	assert_int_equal(access(r->path, F_OK), 0);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_null(serve_at(r, text, &err));
	assert_non_null(strstr(err.text, "at most"));
	snprintf(path, sizeof(path), "%.90s/other.sock", urn_eal_dir());
	/* A file that is no socket stays. */
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_null(serve_at(r, path, &err));
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(unlink(path), 0);
	/* One that nobody listens at any more is replaced. */
	{
		struct sockaddr_un addr = {.sun_family = AF_UNIX};

		fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		memcpy(addr.sun_path, path, strlen(path) + 1);
		assert_int_equal(bind(fd, (void *)&addr, sizeof(addr)), 0);
		close(fd);
	}
	s = serve_at(r, path, &err);
	assert_non_null(s);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	{
		/* One client at a time: the second is hung up on. */
		struct ibv_context *one = urn_attach_connect(path, "a");

		assert_non_null(one);
		assert_null(urn_attach_connect(path, "a"));
		assert_int_equal(ibv_close_device(one), 0);
	}
	urn_server_close(s);
	assert_int_not_equal(access(path, F_OK), 0);
	others_go_on(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),       cmocka_unit_test(test_list),
		cmocka_unit_test(test_device_list),    cmocka_unit_test(test_rubbish),
		cmocka_unit_test(test_calls_of_noise), cmocka_unit_test(test_answers_not_taken),
		cmocka_unit_test(test_share_refused),  cmocka_unit_test(test_regions), cmocka_unit_test(test_no_space),
		cmocka_unit_test(test_slots), cmocka_unit_test(test_killed),
		cmocka_unit_test(test_dataplane_gone), cmocka_unit_test(test_path),
	};

	return cmocka_run_group_tests_name("attach", tests, setup, teardown);
}
