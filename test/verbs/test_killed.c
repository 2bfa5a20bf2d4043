/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that are killed while they work: nothing of theirs is left, and nobody
 * notices. And a dataplane that goes while programs are attached.
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
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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

	for (const struct urn_client *c = LIST_FIRST(&a->clients); c; c = LIST_NEXT(c, link))
		n++;
	return n;
}

/* Keys and protection domains of an adapter that have an owner: a killed program leaves none. */
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

	assert_int_equal(hostile_clients(r, 2), 2);
	keys = keys_of(r->dp->adapter[0]);
	for (int i = 0; i < 10; i++) {
		int p[2], status;
		pid_t pid;
		char c;

		assert_int_equal(pipe(p), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			/* The child must not hold open any descriptor of its parent. */
			for (int fd = 3; fd < 1024; fd++)
				if (fd != p[1])
					close(fd);
			busy_client(r, p[1]);
		}
		close(p[1]);
		assert_int_equal(read(p[0], &c, 1), 1);
		close(p[0]);
		hostile_others_go_on(r);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		hostile_others_go_on(r);
		assert_int_equal(hostile_clients(r, 2), 2);
		assert_int_equal(clients_of(r->dp->adapter[0]), 1);
		assert_int_equal(keys_of(r->dp->adapter[0]), keys);
	}
}

/*
 * A program forks a child behind the library's back, so that the child has its connection and
 * its area, too. The program writes the child's number to `say` and becomes another program,
 * or waits. The child waits until nobody has the other end of `go` any more.
 */
static void __attribute__((noreturn))
parent_of_a_keeper(const struct rig *r, int say, int go, bool becomes_another)
{
	struct hostile_loop *m;
	pid_t child;
	char c;

	for (int fd = 3; fd < 1024; fd++)
		if (fd != say && fd != go)
			close(fd);
	alarm(60);
	m = hostile_attach(r);
	/* The dataplane sees the address space go with the memory that it has got. */
	if (!ibv_reg_mr(m->rig.end[0].pd, m, sizeof(*m), IBV_ACCESS_LOCAL_WRITE))
		_exit(1);
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (child == 0) {
		alarm(60);
		(void)!read(go, &c, 1);
		_exit(0);
	}
	if (write(say, &child, sizeof(child)) != sizeof(child))
		_exit(1);
	if (becomes_another)
		execl("/bin/sleep", "sleep", "60", (char *)NULL);
	pause();
	_exit(1);
}

/* Nothing of the program stays, though another process has its connection. */
static void
leaves_a_keeper(struct rig *r, bool becomes_another)
{
	unsigned int keys = keys_of(r->dp->adapter[0]);
	int say[2], go[2], status;
	pid_t pid, child;

	assert_int_equal(pipe2(say, 0) | pipe2(go, 0), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		parent_of_a_keeper(r, say[1], go[0], becomes_another);
	close(say[1]);
	close(go[0]);
	assert_int_equal(read(say[0], &child, sizeof(child)), sizeof(child));
	assert_true(child > 0);
	if (!becomes_another) {
		assert_int_equal(hostile_clients(r, 3), 3);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	assert_int_equal(hostile_clients(r, 2), 2);
	assert_int_equal(clients_of(r->dp->adapter[0]), 1);
	assert_int_equal(keys_of(r->dp->adapter[0]), keys);
	assert_int_equal(kill(child, 0), 0); /* the child lives all the while */
	hostile_others_go_on(r);
	close(go[1]);
	close(say[0]);
	if (becomes_another) {
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
}

/* look_ms: milliseconds between two checks whether a program has become another. */
static void
with_looks(struct rig *r, unsigned int look_ms, bool becomes_another)
{
	struct rig_config cfg = r->cfg, other = r->cfg;

	rig_close(r);
	other.look_ms = look_ms;
	rig_open(r, &other, NULL);
	leaves_a_keeper(r, becomes_another);
	rig_close(r);
	rig_open(r, &cfg, NULL);
}

/* The server sees the death at once. */
static void
test_killed_with_a_keeper(void **state)
{
	with_looks(*state, 1000000, false);
}

/* The server finds a program that has become another while nothing else happens. */
static void
test_became_another(void **state)
{
	with_looks(*state, 100, true);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_killed_with_a_keeper),
		cmocka_unit_test(test_became_another),
		cmocka_unit_test(test_dataplane_gone),
	};

	return cmocka_run_group_tests_name("killed", tests, hostile_setup, hostile_teardown);
}
