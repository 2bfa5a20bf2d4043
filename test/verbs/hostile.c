/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hostile.h"

#include "server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	CALL_S = 5,    /* a control call of a good program, on a busy machine */
	PROGRAM_S = 30 /* the whole life of a good program */
};

/* ---- the dataplane */

static struct rig rig;

int
hostile_setup(void **state)
{
	const struct rig_config cfg = {.remote = true};

	rig_open(&rig, &cfg, NULL);
	*state = &rig;
	return 0;
}

int
hostile_teardown(void **state)
{
	rig_close(*state);
	return 0;
}

/* ---- programs */

struct hostile_loop *
hostile_attach(const struct rig *r)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	const struct rig_qp how = {.depth = 16};
	struct hostile_loop *m = calloc(1, sizeof(*m));
	struct rig_end *end = &m->rig.end[0];
	union ibv_gid gid;

	memcpy(m->rig.path, r->path, sizeof(r->path));
	m->rig.cfg.remote = true;
	end->ctx = urn_attach_connect(r->path, "a");
	end->pd = ibv_alloc_pd(end->ctx);
	m->ch = ibv_create_comp_channel(end->ctx);
	end->cq = ibv_create_cq(end->ctx, 256, NULL, m->ch, 0);
	end->buf = urn_alloc(1 << 20);
	end->mr = ibv_reg_mr(end->pd, end->buf, 1 << 20, access);
	rig_gid(&m->rig, 0, &gid);
	for (int i = 0; i < 2; i++)
		m->qp[i] = rig_make_qp(&m->rig, 0, &how);
	for (int i = 0; i < 2; i++)
		rig_connect_to(&m->rig, m->qp[i], 5, m->qp[!i]->qp_num, 5, &gid, &how);
	return m;
}

void
hostile_write(struct hostile_loop *m, uint64_t to, uint32_t rkey)
{
	struct rig_end *end = &m->rig.end[0];
	struct ibv_sge sge = {(uintptr_t)end->buf, 64, end->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;

	wr.wr.rdma.remote_addr = to;
	wr.wr.rdma.rkey = rkey;
	(void)ibv_post_send(m->qp[0], &wr, &bad);
}

void
hostile_others_go_on(struct rig *r)
{
	static uint32_t seed = 1;

	rig_fill(r->end[0].buf, 4096, ++seed);
	rig_recv(r, 1, 8192, 4096, 7);
	rig_post(r, 0, IBV_WR_SEND, 0, 4096, 0, 8);
	assert_int_equal(rig_expect(r, 0, IBV_WC_SUCCESS).wr_id, 8);
	assert_int_equal(rig_expect(r, 1, IBV_WC_SUCCESS).wr_id, 7);
	assert_memory_equal(r->end[0].buf, r->end[1].buf + 8192, 4096);
}

/* ok: the call worked. Ends the program when it did not, or when CALL_S have passed since the last check. */
static void
in_time(bool ok, const char *what)
{
	static time_t last;
	time_t now = time(NULL);

	if (!ok || (last && now - last > CALL_S)) {
		fprintf(stderr, "a good program: %s %s after %lld s: %s\n", what, ok ? "came" : "failed",
			(long long)(last ? now - last : 0), urn_attach_error());
		_exit(1);
	}
	last = now;
}

static void
good_program(const struct rig *r)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
	static uint8_t any[8192];
	struct ibv_context *ctx;
	struct ibv_mr *mr[2];
	struct ibv_pd *pd;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	void *shared;

	in_time(true, "start");
	in_time((ctx = urn_attach_connect(r->path, "a")) != NULL, "attach");
	in_time((pd = ibv_alloc_pd(ctx)) != NULL, "alloc_pd");
	in_time((cq = ibv_create_cq(ctx, 16, NULL, NULL, 0)) != NULL, "create_cq");
	init.send_cq = init.recv_cq = cq;
	in_time((qp = ibv_create_qp(pd, &init)) != NULL, "create_qp");
	shared = urn_alloc(65536);
	in_time((mr[0] = ibv_reg_mr(pd, shared, 65536, IBV_ACCESS_LOCAL_WRITE)) != NULL, "reg_mr, shared");
	in_time((mr[1] = ibv_reg_mr(pd, any, sizeof(any), IBV_ACCESS_LOCAL_WRITE)) != NULL, "reg_mr");
	in_time(ibv_dereg_mr(mr[1]) == 0, "dereg_mr");
	in_time(ibv_dereg_mr(mr[0]) == 0, "dereg_mr, shared");
	in_time(ibv_destroy_qp(qp) == 0, "destroy_qp");
	in_time(ibv_destroy_cq(cq) == 0, "destroy_cq");
	in_time(ibv_dealloc_pd(pd) == 0, "dealloc_pd");
	in_time(ibv_close_device(ctx) == 0, "close_device");
}

/*
 * A good program that waits to be let go. The program is made before the attack begins: the server
 * lives in the test's process, and a process forked later would inherit the descriptors
 * that the attack gave the server, and close them when it ends.
 */
struct good {
	pid_t pid;
	int go;
};

static struct good
good_start(const struct rig *r)
{
	struct good g;
	int p[2];
	char c;

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	g = (struct good){.pid = fork(), .go = p[1]};
	assert_true(g.pid >= 0);
	if (g.pid == 0) {
		close(p[1]);
		if (read(p[0], &c, 1) != 1)
			_exit(1);
		alarm(PROGRAM_S);
		good_program(r);
		_exit(0);
	}
	close(p[0]);
	return g;
}

/* returns: true when the good program was not held up */
static bool
good_go(const struct good *g)
{
	int status = -1;
	char c = 0;

	assert_int_equal(write(g->go, &c, 1), 1);
	close(g->go);
	assert_int_equal(waitpid(g->pid, &status, 0), g->pid);
	if (status != 0)
		print_message("a good program was held up (status 0x%x)\n", (unsigned int)status);
	return status == 0;
}

bool
hostile_good_program(const struct rig *r)
{
	struct good g = good_start(r);

	return good_go(&g);
}

uint64_t
hostile_clients(const struct rig *r, uint64_t n)
{
	struct urn_server_counters c;
	time_t end = time(NULL) + 20;

	do {
		urn_server_counters(r->server, &c);
		sched_yield();
	} while (c.clients != n && time(NULL) < end);
	return c.clients;
}

unsigned int
hostile_attach_many(const struct rig *r)
{
	struct ibv_context *ctx[64];
	unsigned int n = 0, i;

	while (n < 64 && (ctx[n] = urn_attach_connect(r->path, "a")) != NULL)
		n++;
	assert_in_range(n, 0, 63);
	assert_int_equal(errno, EMFILE);
	assert_non_null(strstr(urn_attach_error(), "the dataplane has no descriptors left"));
	for (i = 0; i < n; i++)
		assert_int_equal(ibv_close_device(ctx[i]), 0);
	return n;
}

static void
attacker(const struct rig *r, void (*attack)(const struct rig *r, int say), int say)
{
	char c = 0;

	hostile_attacking = true;
	setpgid(0, 0);
	for (int fd = 3; fd < 1024; fd++)
		if (fd != say)
			close(fd);
	alarm(4 * PROGRAM_S);
	attack(r, say);
	if (write(say, &c, 1) == 1)
		pause();
	_exit(1);
}

void
hostile_attacked_by(struct rig *r, void (*attack)(const struct rig *r, int say))
{
	struct good good = good_start(r);
	int p[2], status;
	pid_t pid;
	char c = 0;
	bool served;

	assert_int_equal(pipe(p), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		attacker(r, attack, p[1]);
	close(p[1]);
	assert_int_equal(read(p[0], &c, 1), 1);
	close(p[0]);
	usleep(300000); /* the attacked operation is under way, and stalls */
	served = good_go(&good);
	if (served)
		hostile_others_go_on(r);
	/* The attacker dies with the processes that it waits for. */
	assert_int_equal(kill(-pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(served);
	assert_int_equal(hostile_clients(r, 2), 2);
	hostile_others_go_on(r);
}
