/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cases of programs that do nothing wrong, or harm only themselves: the adapter of a
 * program that names none, descriptors that are used up, rights that are given up, events
 * that nobody wants any more.
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
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rig rig;

/* ---- programs that name no node */

/* first: NULL, or a node's name; the list must begin with the node of the letter `begin` */
static void
begins_with(const char *first, char begin)
{
	const struct rig_config cfg = {.remote = true, .node = first};
	struct urn_sock_ask q = hostile_question(URN_SOCK_LIST);
	struct ibv_context *ctx;
	int fd;

	rig_open(&rig, &cfg, NULL);
	fd = hostile_dial(&rig);
	hostile_hello(fd);
	assert_int_equal(hostile_ask(fd, &q).device.node[0], begin);
	q.list.index = 1;
	assert_int_equal(hostile_ask(fd, &q).device.node[0], begin == 'a' ? 'b' : 'a');
	q.list.index = 2;
	assert_int_equal(hostile_ask(fd, &q).err, ENOENT);
	q.list.index = UINT32_MAX;
	assert_int_equal(hostile_ask(fd, &q).err, ENOENT);
	close(fd);
	ctx = urn_attach_connect(rig.path, NULL);
	assert_non_null(ctx);
	assert_string_equal(ctx->device->name, rig.dp->adapter[begin - 'a']->cfg.name);
	assert_int_equal(ibv_close_device(ctx), 0);
	rig_close(&rig);
}

static void
test_first_node(void **state)
{
	(void)state;
	begins_with(NULL, 'a');
	begins_with("a", 'a');
	begins_with("b", 'b');
}

/* ---- one table of an adapter, for all programs */

static void
test_tables(void **state)
{
	struct rig_config cfg = {.remote = true};
	struct ibv_context *ctx[2];
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}};
	struct ibv_pd *pd[3];
	struct ibv_ah *ah[3];

	(void)state;
	/* The rig's own two clients have a PD each. */
	cfg.per_client.max[URN_QUOTA_PD] = 2;
	cfg.per_client.max[URN_QUOTA_AH] = 2;
	cfg.per_uid.max[URN_QUOTA_PD] = 5;
	cfg.per_uid.max[URN_QUOTA_AH] = 3;
	rig_open(&rig, &cfg, NULL);
	for (int i = 0; i < 2; i++)
		ctx[i] = rig_attach(&rig, 0);
	assert_int_equal(ibv_query_gid(ctx[0], 1, 1, &to.grh.dgid), 0);
	for (int i = 0; i < 2; i++) {
		assert_non_null(pd[i] = ibv_alloc_pd(ctx[0]));
		assert_non_null(ah[i] = ibv_create_ah(pd[i], &to));
	}
	assert_null(ibv_alloc_pd(ctx[0]));
	assert_int_equal(errno, EDQUOT);
	assert_non_null(strstr(urn_attach_error(), "a program may have at most 2 protection domains"));
	assert_null(ibv_create_ah(pd[0], &to));
	assert_int_equal(errno, EDQUOT);
	assert_non_null(strstr(urn_attach_error(), "a program may have at most 2 address handles"));
	assert_non_null(pd[2] = ibv_alloc_pd(ctx[1]));
	assert_null(ibv_alloc_pd(ctx[1]));
	assert_non_null(strstr(urn_attach_error(), "a user may have at most 5 protection domains"));
	assert_non_null(ah[2] = ibv_create_ah(pd[2], &to));
	assert_null(ibv_create_ah(pd[2], &to));
	assert_non_null(strstr(urn_attach_error(), "a user may have at most 3 address handles"));
	/* Objects that are not given back stay counted; room that is given back can be had again. */
	assert_int_equal(ibv_dealloc_pd(pd[0]), EBUSY);
	assert_null(ibv_alloc_pd(ctx[1]));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ibv_destroy_ah(ah[i]), 0);
		assert_int_equal(ibv_dealloc_pd(pd[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		assert_non_null(pd[i] = ibv_alloc_pd(ctx[1]));
	assert_null(ibv_alloc_pd(ctx[1]));
	/* A client that goes gives all of its objects back. */
	assert_int_equal(ibv_close_device(ctx[1]), 0);
	free(pd[0]);
	free(pd[1]);
	assert_int_equal(hostile_clients(&rig, 3), 3);
	for (int i = 0; i < 2; i++) {
		assert_non_null(pd[i] = ibv_alloc_pd(ctx[0]));
		assert_int_equal(ibv_dealloc_pd(pd[i]), 0);
	}
	assert_int_equal(ibv_close_device(ctx[0]), 0);
	rig_close(&rig);
}

/* ---- a client that goes with many objects */

static _Atomic unsigned int let_in;

void __real_urn_ctl_unlock(struct urn_client *c);
void __wrap_urn_ctl_unlock(struct urn_client *c);

void
__wrap_urn_ctl_unlock(struct urn_client *c)
{
	atomic_fetch_add(&let_in, 1);
	__real_urn_ctl_unlock(c);
}

enum { MUCH = 320 };

/* Make so many objects of the kind, and go without giving one back. */
static void
goes_with(const char *kind)
{
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1}};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
	struct ibv_context *ctx = rig_attach(&rig, 0);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
	void *buf = urn_alloc(4096), *made[MUCH];

	init.send_cq = init.recv_cq = cq;
	assert_int_equal(ibv_query_gid(ctx, 1, 1, &to.grh.dgid), 0);
	for (int i = 0; i < MUCH; i++) {
		made[i] = kind[0] == 'a' ? ibv_create_ah(pd, &to)
			: kind[0] == 'q' ? (void *)ibv_create_qp(pd, &init)
			: kind[0] == 'c' ? (void *)ibv_create_cq(ctx, 1, NULL, NULL, 0)
			: kind[0] == 'w' ? (void *)ibv_alloc_mw(pd, IBV_MW_TYPE_2)
			: kind[0] == 'r' ? (void *)ibv_reg_mr(pd, buf, 64, IBV_ACCESS_LOCAL_WRITE)
					 : (void *)ibv_alloc_pd(ctx);
		assert_non_null(made[i]);
	}
	atomic_store(&let_in, 0);
	assert_int_equal(ibv_close_device(ctx), 0);
	assert_int_equal(hostile_clients(&rig, 2), 2);
	if (atomic_load(&let_in) < MUCH / 64)
		fail_msg("others were let in %u times while %d of %s were taken back", atomic_load(&let_in), MUCH, kind);
	for (int i = 0; i < MUCH; i++)
		free(made[i]);
	free(pd);
	free(cq);
	urn_free(buf);
}

/* Others' calls do not wait until all objects of a client are taken back. */
static void
test_much(void **state)
{
	static const char *const kinds[] = {"address handles", "queue pairs", "completion queues", "windows", "regions",
					    "protection domains"};
	const struct rig_config cfg = {.remote = true};

	(void)state;
	rig_open(&rig, &cfg, NULL);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		goes_with(kinds[i]);
	hostile_others_go_on(&rig);
	rig_close(&rig);
}

/* ---- descriptors */

/* The descriptor that the kernel gives out next. */
static int
next_fd(void)
{
	int fd = dup(STDIN_FILENO);

	close(fd);
	return fd;
}

static void
allow_fds(int n)
{
	struct rlimit l;

	getrlimit(RLIMIT_NOFILE, &l);
	l.rlim_cur = (rlim_t)n;
	setrlimit(RLIMIT_NOFILE, &l);
}

/* True when the call failed for want of descriptors, said so, and left none behind. */
static bool
no_descriptors(const void *made, int next)
{
	int err = errno;

	if (!made && err == EMFILE && strstr(urn_attach_error(), "descriptor") && next_fd() == next)
		return true;
	fprintf(stderr, "errno %d, next descriptor %d and not %d: %s\n", err, next_fd(), next, urn_attach_error());
	return false;
}

/* returns: an exit code */
static int
with_few_descriptors(const struct rig *r)
{
	struct ibv_context *ctx = urn_attach_connect(r->path, "a"), *other;
	struct ibv_comp_channel *ch;
	int next = next_fd(), most = 2 * next, few;

	for (few = 0; few < 2; few++) {
		allow_fds(next + few);
		ch = ibv_create_comp_channel(ctx);
		allow_fds(most);
		if (!no_descriptors(ch, next))
			return 1;
	}
	/* The program can have its one channel: the failed calls left nothing. */
	ch = ibv_create_comp_channel(ctx);
	if (!ch || ibv_destroy_comp_channel(ch) != 0) {
		fprintf(stderr, "a channel: %s\n", urn_attach_error());
		return 1;
	}
	for (few = 0, other = NULL; !other; few++) {
		allow_fds(next + few);
		other = urn_attach_connect(r->path, "b");
		allow_fds(most);
		if (!other && !no_descriptors(other, next))
			return 1;
	}
	return few > 3 && ibv_close_device(other) == 0 && ibv_close_device(ctx) == 0 && next_fd() < next ? 0 : 1;
}

static void
test_no_descriptors_left(void **state)
{
	struct rig_config cfg = {.remote = true};
	int status;
	pid_t pid;

	(void)state;
	cfg.per_client.max[URN_QUOTA_CHANNEL] = 1;
	rig_open(&rig, &cfg, NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(with_few_descriptors(&rig));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	hostile_others_go_on(&rig);
	rig_close(&rig);
}

/* ---- rights that are given up */

/* Become nobody, as far as the user may, and no one whose memory others look at. returns: true when
 * /proc/self/mem can't be opened any more */
static bool
give_up_rights(void)
{
	enum { NOBODY = 65534 };

	if (geteuid() == 0 &&
	    (setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0))
		return false;
	return prctl(PR_SET_DUMPABLE, 0) == 0 && open("/proc/self/mem", O_RDWR | O_CLOEXEC) < 0;
}

/* Register foreign memory after the right to open it is gone, and write there. returns: an exit
 * code */
static int
after_giving_up(const struct rig *r)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct hostile_loop *m = hostile_attach(r);
	struct rig_end *end = &m->rig.end[0];
	uint8_t *own = calloc(1, 4096);
	struct ibv_mr *mr;
	struct ibv_wc wc;

	if (!give_up_rights())
		return 2;
	mr = ibv_reg_mr(end->pd, own, 4096, access);
	if (!mr) {
		fprintf(stderr, "a region: %s\n", urn_attach_error());
		return 3;
	}
	rig_fill(end->buf, 64, 9);
	hostile_write(m, (uintptr_t)own, mr->rkey);
	while (ibv_poll_cq(end->cq, 1, &wc) == 0)
		;
	return wc.status == IBV_WC_SUCCESS && memcmp(own, end->buf, 64) == 0 ? 0 : 4;
}

/*
 * A program that opens its adapter and gives up its rights after that, as a server does, registers
 * any memory of its own: the library has opened the way there before.
 */
static void
test_rights_given_up(void **state)
{
	const struct rig_config cfg = {.remote = true};
	int status;
	pid_t pid;

	(void)state;
	rig_open(&rig, &cfg, NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(after_giving_up(&rig));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	hostile_others_go_on(&rig);
	rig_close(&rig);
}

/* ---- events that nobody wants */

/* Events that were lost: by the engine, or by the program's teller, whichever finds out first that
 * nobody reads. */
static uint64_t
lost_events(void)
{
	return rig_counter(&rig, 0, URN_C_EVENT_LOST) + rig_counter(&rig, 0, URN_C_TELLER_LOST);
}

static void
test_nobody_reads(void **state)
{
	const struct rig_config cfg = {.remote = true};
	struct hostile_loop *m;
	struct rig_end *end;
	struct ibv_wc wc;

	(void)state;
	rig_open(&rig, &cfg, NULL);
	m = hostile_attach(&rig);
	end = &m->rig.end[0];
	assert_int_equal(shutdown(m->ch->fd, SHUT_RDWR), 0);
	assert_int_equal(ibv_req_notify_cq(end->cq, 0), 0);
	hostile_write(m, (uintptr_t)end->buf + 4096, end->mr->rkey);
	while (ibv_poll_cq(end->cq, 1, &wc) == 0)
		;
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	while (lost_events() == 0)
		poll(NULL, 0, 1);
	/* The engine tries once, and not again each time that a full pipe would be retried. */
	poll(NULL, 0, 50);
	assert_int_equal(lost_events(), 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_destroy_qp(m->qp[i]), 0);
	assert_int_equal(ibv_destroy_cq(end->cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(m->ch), 0);
	assert_int_equal(ibv_dereg_mr(end->mr), 0);
	assert_int_equal(ibv_dealloc_pd(end->pd), 0);
	assert_int_equal(ibv_close_device(end->ctx), 0);
	urn_free(end->buf);
	free(m);
	rig_close(&rig);
}

/* ---- each case in a process of its own */

enum { CASE_S = 110 }; /* generous: a case takes a second */

/* returns: true when the case passed */
static bool
in_a_process(const struct CMUnitTest *test)
{
	int status = -1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		const struct CMUnitTest one[] = {*test};

		alarm(CASE_S);
		exit(cmocka_run_group_tests_name(test->name, one, NULL, NULL));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		perror(test->name);
	else if (status != 0)
		fprintf(stderr, "%s: %s\n", test->name, WIFEXITED(status) ? "failed" : strsignal(WTERMSIG(status)));
	return status == 0;
}

/*
 * A case that fails leaves its dataplane and the threads that turn it; without a process
 * of its own, they would turn the next case's, too.
 */
int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_node),
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_much),
		cmocka_unit_test(test_no_descriptors_left),
		cmocka_unit_test(test_rights_given_up),
		cmocka_unit_test(test_nobody_reads),
	};
	int failed = 0;

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		failed += !in_a_process(&tests[i]);
	return failed;
}
