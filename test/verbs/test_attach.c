/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dataplane's socket (lib/abi/socket.h): attaching, finding adapters, memory of
 * all kinds, and where the socket lies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hostile.h"

#include "control/objects.h"
#include "server/server.h"
#include <urnic/cm.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- versions of the protocol */

static void
test_versions(void **state)
{
	struct rig *r = *state;
	struct urn_sock_ask q = hostile_question(URN_SOCK_HELLO);
	struct urn_sock_answer a;
	int fd = hostile_dial(r);

	q.hello.oldest = URN_ABI_VERSION + 1;
	a = hostile_ask(fd, &q);
	assert_int_equal(a.err, EPROTO);
	assert_non_null(strstr(a.why, "version"));
	close(fd);

	fd = hostile_dial(r);
	q.head.version = URN_SOCK_VERSION + 1;
	a = hostile_ask(fd, &q);
	assert_int_equal(a.err, EPROTO);
	assert_non_null(strstr(a.why, "version"));
	hostile_hung_up(fd);
	hostile_others_go_on(r);
}

/* Connection management over this context. returns: 0, or the errno value of its opening */
static int
listen_over(struct ibv_context *ctx)
{
	struct urn_cm_end *cm;
	int err = urn_cm_end_open(&cm, ctx);
	uint32_t id;

	if (err == 0)
		assert_int_equal(urn_cm_end_listen(cm, 0x01064321, 0, 0, &id), 0);
	urn_cm_end_close(cm);
	return err;
}

/*
 * architecture.md, seam 10: the library attaches to a dataplane that is newer and has features that
 * nobody knows, to one that lacks a feature, and not to one that no longer speaks its versions.
 */
static void
test_ages(void **state)
{
	struct rig *r = *state;
	struct ibv_context *ctx;

	r->dp->speaks.newest = URN_ABI_VERSION + 3;
	r->dp->speaks.features = UINT32_MAX;
	ctx = urn_attach_connect(r->path, "a");
	assert_non_null(ctx);
	assert_int_equal(listen_over(ctx), 0);
	assert_int_equal(ibv_close_device(ctx), 0);

	r->dp->speaks.features = UINT32_MAX & ~URN_ABI_FEATURE_CM;
	ctx = urn_attach_connect(r->path, "a");
	assert_non_null(ctx);
	assert_int_equal(listen_over(ctx), EOPNOTSUPP);
	assert_non_null(strstr(urn_attach_error(), "connection management"));
	assert_int_equal(ibv_close_device(ctx), 0);

	r->dp->speaks.oldest = URN_ABI_VERSION + 1;
	assert_null(urn_attach_connect(r->path, "a"));
	assert_int_equal(errno, EPROTO);
	assert_non_null(strstr(urn_attach_error(), "upgrade the library"));
	r->dp->speaks.oldest = 1;
	r->dp->speaks.newest = URN_ABI_VERSION_OLDEST - 1;
	assert_null(urn_attach_connect(r->path, "a"));
	assert_int_equal(errno, EPROTO);
	assert_non_null(strstr(urn_attach_error(), "upgrade the dataplane"));
	r->dp->speaks = URN_ABI_OFFER;
	hostile_others_go_on(r);
}

/* Ask for events over an open connection. returns: 0, or the errno value */
static int
ask_events(int fd, struct urn_sock_answer *a)
{
	struct urn_sock_ask q = hostile_question(URN_SOCK_EVENTS);

	q.events.max = URN_SOCK_EVENTS_MAX;
	*a = hostile_ask(fd, &q);
	return a->err;
}

/* architecture.md, seam 10: the dataplane keeps to the agreement, also with programs that do not.
 */
static void
test_agreed(void **state)
{
	struct rig *r = *state;
	struct urn_sock_ask q = hostile_question(URN_SOCK_CALL), ev = q;
	struct urn_sock_answer a;
	int fd = hostile_dial(r);

	hostile_hello(fd);
	assert_int_equal(hostile_open(fd, r->dp->adapter[0]->cfg.name, NULL, 0).err, 0);
	/* Nothing is said about features yet. */
	ev.call.op = URN_CTL_CM_EVENT;
	assert_int_equal(hostile_ask(fd, &ev).call.err, EAGAIN);
	assert_int_equal(ask_events(fd, &a), 0);
	q.call.op = URN_CTL_HELLO;
	q.call.hello.oldest = URN_ABI_VERSION_OLDEST;
	q.call.hello.newest = URN_ABI_VERSION;
	q.call.hello.features = URN_ABI_FEATURE_CM;
	assert_int_equal(hostile_ask(fd, &q).call.err, 0);
	assert_int_equal(hostile_ask(fd, &ev).call.err, EAGAIN);
	assert_int_equal(ask_events(fd, &a), EOPNOTSUPP);
	assert_non_null(strstr(a.why, "the library lacks fetching several events"));
	q.call.hello.features = URN_ABI_FEATURE_CM_EVENTS;
	assert_int_equal(hostile_ask(fd, &q).call.err, 0);
	a = hostile_ask(fd, &ev);
	assert_int_equal(a.call.err, EOPNOTSUPP);
	assert_non_null(strstr(a.call.why, "the library lacks connection management"));
	q.call.hello.features |= URN_ABI_FEATURE_CM;
	assert_int_equal(hostile_ask(fd, &q).call.err, 0);
	assert_int_equal(ask_events(fd, &a), 0);
	close(fd);
	hostile_others_go_on(r);
}

static void
test_list(void **state)
{
	struct rig *r = *state;
	struct urn_sock_ask q = hostile_question(URN_SOCK_LIST);
	struct urn_sock_answer a;
	int fd = hostile_dial(r);

	hostile_hello(fd);
	for (q.list.index = 0; q.list.index < 2; q.list.index++) {
		a = hostile_ask(fd, &q);
		assert_int_equal(a.err, 0);
		assert_int_equal(a.device.node[0], 'a' + (int)q.list.index);
		assert_int_equal(a.device.guid, urn_adapter_guid(r->dp->adapter[q.list.index]));
	}
	assert_int_equal(hostile_ask(fd, &q).err, ENOENT);
	q = hostile_question(URN_SOCK_OPEN);
	snprintf(q.open.name, sizeof(q.open.name), "nobody");
	a = hostile_ask(fd, &q);
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

/* ---- memory */

/* Write n bytes from `from` of end 0 to `to` of end 1, and compare them. */
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

/* Regions may lie in shared memory, on the heap or on the stack; not at addresses without memory. */
static void
test_regions(void **state)
{
	enum { N = 100000 };
	struct rig *r = *state;
	struct rig_end *end = &r->end[0];
	size_t bytes = 40 << 20; /* more than a segment holds */
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
	hostile_others_go_on(r);
}

/*
 * A program without its /proc/self/mem, or with another file in its place, registers only
 * memory that it shares.
 */
static void
test_no_space(void **state)
{
	struct rig *r = *state;

	for (int other = 0; other < 2; other++) {
		struct urn_sock_ask q = hostile_question(URN_SOCK_OPEN);
		struct urn_sock_answer a;
		int fd = hostile_dial(r), file = open("/proc/self/exe", O_RDONLY), files[2] = {file, file};

		hostile_hello(fd);
		snprintf(q.open.name, sizeof(q.open.name), "%s", r->dp->adapter[0]->cfg.name);
		hostile_post(fd, &q, q.head.bytes, files, other ? 2 : 0);
		a = hostile_take(fd);
		assert_int_equal(a.err, 0);
		assert_int_equal(a.open.foreign, 0);
		q = hostile_question(URN_SOCK_CALL);
		q.call.op = URN_CTL_ALLOC_PD;
		a = hostile_ask(fd, &q);
		assert_int_equal(a.call.err, 0);
		q.call.op = URN_CTL_REG_MR;
		q.call.reg_mr.pd = a.call.handle;
		q.call.reg_mr.access = URN_ACCESS_LOCAL_WRITE;
		q.call.reg_mr.addr = q.call.reg_mr.iova = (uintptr_t)r;
		q.call.reg_mr.length = 8;
		a = hostile_ask(fd, &q);
		assert_int_equal(a.call.err, EOPNOTSUPP);
		assert_non_null(strstr(a.call.why, "urn_alloc"));
		close(file);
		close(fd);
	}
	hostile_others_go_on(r);
}

/* A program hands its memory over once, after it has opened an adapter, with both descriptors. */
static void
test_memory_messages(void **state)
{
	struct rig *r = *state;
	const char *name = r->dp->adapter[0]->cfg.name;
	struct urn_sock_ask q = hostile_question(URN_SOCK_MEMORY);
	int good[2] = {open("/proc/self/mem", O_RDWR), open("/proc/self/maps", O_RDONLY)};
	int bad[2] = {good[1], good[0]};

	for (unsigned int opened = 0; opened < 2; opened++) {
		int fd = hostile_dial(r);

		hostile_hello(fd);
		if (opened)
			assert_int_equal(hostile_open(fd, name, NULL, 0).err, 0);
		hostile_post(fd, &q, q.head.bytes, good, opened ? 1 : 2);
		hostile_hung_up(fd);
	}
	for (unsigned int early = 0; early < 2; early++) {
		int fd = hostile_dial(r);

		hostile_hello(fd);
		assert_int_equal(hostile_open(fd, name, good, early ? 2 : 0).err, 0);
		hostile_post(fd, &q, q.head.bytes, bad, 2);
		assert_int_equal(hostile_take(fd).err, early ? EALREADY : EOPNOTSUPP);
		hostile_post(fd, &q, q.head.bytes, good, 2);
		assert_int_equal(hostile_take(fd).err, early ? EALREADY : 0);
		hostile_post(fd, &q, q.head.bytes, good, 2);
		assert_int_equal(hostile_take(fd).err, EALREADY);
		close(fd);
	}
	close(good[0]);
	close(good[1]);
	hostile_others_go_on(r);
}

/* Hand over a client's memory while the process has room for the descriptors of the message, and
 * none more. returns: the answer's errno value */
static int
memory_without_room(int fd, const int own[2])
{
	struct urn_sock_ask q = hostile_question(URN_SOCK_MEMORY);
	struct rlimit was, few;
	int next[3], err;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	for (unsigned int i = 0; i < 3; i++)
		next[i] = dup(fd);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(close(next[i]), 0);
	few = (struct rlimit){(rlim_t)next[2], was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	hostile_post(fd, &q, q.head.bytes, own, 2);
	err = hostile_take(fd).err;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	return err;
}

/*
 * A dataplane that has no descriptor left for the moment says so, and takes the program's memory
 * when it has: no other errno value stands for that. Programs of tests before may still be ending:
 * descriptors that their threads close meanwhile are room, so a client may be lucky.
 */
static void
test_memory_later(void **state)
{
	struct rig *r = *state;
	struct urn_sock_ask q = hostile_question(URN_SOCK_MEMORY);
	int own[2] = {open("/proc/self/mem", O_RDWR), open("/proc/self/maps", O_RDONLY)};
	int fd[20], err = 0;
	unsigned int n;

	for (n = 0; n < 20 && err == 0; n++) {
		fd[n] = hostile_dial(r);
		hostile_hello(fd[n]);
		assert_int_equal(hostile_open(fd[n], r->dp->adapter[0]->cfg.name, NULL, 0).err, 0);
		err = memory_without_room(fd[n], own);
	}
	assert_int_equal(err, EMFILE);
	hostile_post(fd[n - 1], &q, q.head.bytes, own, 2);
	assert_int_equal(hostile_take(fd[n - 1]).err, 0);
	while (n > 0)
		close(fd[--n]);
	close(own[0]);
	close(own[1]);
	hostile_others_go_on(r);
}

/* The newest client of node a. */
static struct urn_client *
newest(struct rig *r)
{
	struct urn_client *c;

	pthread_mutex_lock(&r->dp->adapter[0]->lock);
	c = LIST_FIRST(&r->dp->adapter[0]->clients);
	pthread_mutex_unlock(&r->dp->adapter[0]->lock);
	return c;
}

/*
 * The dataplane has no descriptor of a program's memory before the program registers memory that it
 * does not share; then its queues, made before, know where short messages go.
 */
static void
test_late_space(void **state)
{
	struct rig *r = *state;
	struct ibv_context *ctx = rig_attach(r, 0);
	struct urn_client *c = newest(r);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 8, NULL, NULL, 0);
	char *shared = urn_alloc(4096), *own = calloc(1, 4096);
	struct ibv_mr *mr[3];
	struct urn_ctl_cq *q;

	assert_true(shared && own && pd && cq);
	mr[0] = ibv_reg_mr(pd, shared, 4096, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr[0]);
	assert_null(c->space);
	for (unsigned int i = 1; i < 3; i++) {
		mr[i] = ibv_reg_mr(pd, own, 4096, IBV_ACCESS_LOCAL_WRITE);
		assert_non_null(mr[i]);
		assert_non_null(c->space);
	}
	q = urn_handles_get(&c->cqs, 1);
	assert_non_null(q);
	assert_ptr_equal(q->cq.space, c->space);
	assert_true(c->mark_off != 0); /* larger reads go by process number */
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(ibv_dereg_mr(mr[i]), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
	urn_free(shared);
	free(own);
	hostile_others_go_on(r);
}

/* ---- slots */

/* A program that sees a completion may post into its slot at once. */
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
	rig_connect_to(r, qp, 9, qp->qp_num, 9, &gid, &how); /* the QP is its own peer */
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

	assert_null(serve_at(r, r->path, &err)); /* another dataplane listens there */
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
	/* A socket that nobody listens at any more is replaced. */
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
		/* One client at a time: the server hangs up on the second. */
		struct ibv_context *one = urn_attach_connect(path, "a");

		assert_non_null(one);
		assert_null(urn_attach_connect(path, "a"));
		assert_int_equal(ibv_close_device(one), 0);
	}
	urn_server_close(s);
	assert_int_not_equal(access(path, F_OK), 0);
	hostile_others_go_on(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),	cmocka_unit_test(test_ages),
		cmocka_unit_test(test_agreed),		cmocka_unit_test(test_list),
		cmocka_unit_test(test_device_list),	cmocka_unit_test(test_regions),
		cmocka_unit_test(test_no_space),	cmocka_unit_test(test_late_space),
		cmocka_unit_test(test_memory_messages), cmocka_unit_test(test_memory_later),
		cmocka_unit_test(test_slots),		cmocka_unit_test(test_path),
	};

	return cmocka_run_group_tests_name("attach", tests, hostile_setup, hostile_teardown);
}
