/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that are killed while they connect: their peers hear of it, and the dataplane
 * keeps nothing of the dead programs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "abi/socket.h"
#include "cm_rig.h"
#include "server/server.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Progress of the program, a client of node a, before it is killed. */
enum stage { ASKED, REPLIED, UP, LISTENS, HEARD, FETCHED, ACCEPTED };

/* ---- the program that is killed; it may not use cmocka or the rig */

static struct urn_dev *victim_dev;
static uint32_t victim_qpn;

static struct urn_abi_rep
victim_call(uint32_t op, struct urn_abi_req req)
{
	struct urn_abi_rep rep;

	req.op = op;
	if (urn_dev_call(victim_dev, &req, &rep) != 0 && rep.err != EAGAIN)
		_exit(1);
	return rep;
}

/* returns: the id that an event of this type came for */
static uint32_t
victim_event(uint32_t type)
{
	for (;;) {
		struct urn_abi_rep rep = victim_call(URN_CTL_CM_EVENT, (struct urn_abi_req){.handle = 0});

		if (rep.err == 0 && rep.cm_event.type == type)
			return rep.cm_event.id;
		sched_yield();
	}
}

static void
victim_asks(enum stage stage, const struct urn_abi_req *connect)
{
	struct urn_abi_req req = *connect;
	uint32_t id;

	req.cm_connect.qpn = victim_qpn;
	req.cm_connect.channel_fd = -1;
	victim_call(URN_CTL_CM_CONNECT, req);
	if (stage == ASKED)
		return;
	id = victim_event(URN_CM_EVENT_REPLY);
	if (stage == UP)
		victim_call(URN_CTL_CM_ESTABLISH, (struct urn_abi_req){.handle = id});
}

/* Like the function above, by the call that fetches several events. */
static uint32_t
victim_events(uint32_t type)
{
	struct urn_abi_cm_event ev[URN_SOCK_EVENTS_MAX];
	uint32_t n = 0;

	while (n == 0) {
		if (urn_dev_cm_events(victim_dev, ev, URN_SOCK_EVENTS_MAX, &n) != 0)
			_exit(1);
		sched_yield();
	}
	return ev[0].type == type ? ev[0].id : 0;
}

/* to: a descriptor; one byte is written when the program listens, and one when it got as far as `stage` */
static void
victim_listens(enum stage stage, int to)
{
	struct urn_abi_req req = {.cm_listen = {.service_id = SERVICE, .channel_fd = -1}};

	victim_call(URN_CTL_CM_LISTEN, req);
	if (write(to, "l", 1) != 1)
		_exit(1);
	if (stage == LISTENS)
		return;
	req = (struct urn_abi_req){.handle = stage == FETCHED ? victim_events(URN_CM_EVENT_REQUEST)
							      : victim_event(URN_CM_EVENT_REQUEST),
				   .cm_accept = {.qpn = victim_qpn, .psn = 1}};
	if (stage == ACCEPTED)
		victim_call(URN_CTL_CM_ACCEPT, req);
}

static void
victim(const char *path, enum stage stage, const struct urn_abi_req *connect, int to)
{
	struct ibv_context *ctx = urn_attach_connect(path, "a");
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct ibv_cq *cq = pd ? ibv_create_cq(ctx, 16, NULL, NULL, 0) : NULL;
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
					.cap = {1, 1, 1, 1, 0}};
	struct ibv_qp *qp = cq ? ibv_create_qp(pd, &init) : NULL;

	if (!qp)
		_exit(1);
	victim_dev = urn_ctx_dev(ctx);
	victim_qpn = qp->qp_num;
	if (stage >= LISTENS)
		victim_listens(stage, to);
	else
		victim_asks(stage, connect);
	if (write(to, "x", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* ---- */

struct started {
	pid_t pid;
	int from;   /* the read end of the program's `to` */
};

static struct started
start(struct rig *r, enum stage stage)
{
	struct urn_abi_req connect = rig_cm_request(r, 0, 2);
	struct started s;
	int p[2];

	assert_int_equal(pipe(p), 0);
	s.from = p[0];
	s.pid = fork();
	assert_true(s.pid >= 0);
	if (s.pid == 0) {
		/* The child must not hold open any descriptor of its parent. */
		for (int fd = 3; fd < 1024; fd++)
			if (fd != p[1])
				close(fd);
		victim(r->path, stage, &connect, p[1]);
	}
	close(p[1]);
	return s;
}

static void
hear(const struct started *s, char what)
{
	char c = 0;

	assert_int_equal(read(s->from, &c, 1), 1);
	assert_int_equal(c, what);
}

static void
end(const struct started *s)
{
	int status;

	assert_int_equal(kill(s->pid, SIGKILL), 0);
	assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
	assert_true(WIFSIGNALED(status));
	close(s->from);
}

static unsigned int
descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/*
 * Count the descriptors after the server's threads have closed those they hold only for a moment:
 * descriptors handed over, connections that only looked for adapters. returns: the fewest seen
 */
static unsigned int
descriptors_at_rest(struct rig *r)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	struct urn_server_counters c;
	unsigned int least = UINT_MAX;

	do {
		rig_turns(r, 1);
		urn_server_counters(r->server, &c);
	} while (c.clients != 2);
	for (unsigned int i = 0; i < 100; i++) {
		unsigned int n = descriptors();

		least = n < least ? n : least;
		nanosleep(&ms, NULL);
	}
	return least;
}

/* The program asks this end for a connection, and dies. */
static void
asks_and_dies(struct rig *r, enum stage stage)
{
	struct started s = start(r, stage);
	uint32_t id = rig_cm_expect(r, 1, URN_CM_EVENT_REQUEST).id;
	struct urn_abi_cm_event ev;

	if (stage != ASKED)
		rig_cm_accept(r, 1, id, r->end[1].qp->qp_num);
	if (stage == UP)
		rig_cm_expect(r, 1, URN_CM_EVENT_ESTABLISHED);
	hear(&s, 'x');
	end(&s);
	ev = rig_cm_expect(r, 1, stage == UP ? URN_CM_EVENT_DISCONNECT : URN_CM_EVENT_REJECTED);
	assert_int_equal(ev.id, id);
	assert_int_equal(ev.reason, stage == UP ? 0 : stage == ASKED ? URN_CM_REJ_TIMEOUT : URN_CM_REJ_CONSUMER);
	assert_int_equal(rig_cm_call(r, 1, URN_CTL_CM_DESTROY, id, 0), 0);
}

/* This end asks the program for a connection, and the program dies. */
static void
listens_and_dies(struct rig *r, enum stage stage)
{
	struct started s = start(r, stage);
	uint32_t id;

	hear(&s, 'l');
	id = rig_cm_connect(r, 1, r->end[1].qp->qp_num);
	hear(&s, 'x');
	if (stage == LISTENS)
		rig_cm_await_ids(r, 0, 2);
	if (stage == ACCEPTED)
		rig_cm_expect(r, 1, URN_CM_EVENT_REPLY);
	end(&s);
	assert_int_equal(rig_cm_expect(r, 1, URN_CM_EVENT_REJECTED).id, id);
	assert_int_equal(rig_cm_call(r, 1, URN_CTL_CM_DESTROY, id, 0), 0);
}

static void
test_killed(void **state)
{
	struct rig_config cfg = {.remote = true};
	unsigned int fds;
	uint32_t l;
	struct rig r;

	(void)state;
	rig_cm_open(&r, &cfg);
	l = rig_cm_listen(&r, 1, SERVICE, 0);
	fds = descriptors_at_rest(&r);
	for (enum stage stage = ASKED; stage <= UP; stage++)
		asks_and_dies(&r, stage);
	assert_int_equal(rig_cm_call(&r, 1, URN_CTL_CM_DESTROY, l, 0), 0);
	for (enum stage stage = LISTENS; stage <= ACCEPTED; stage++)
		listens_and_dies(&r, stage);
	rig_cm_nothing(&r, 1);
	/* Once the peers have been told, no id is left. */
	rig_cm_await_ids(&r, 0, 0);
	rig_cm_await_ids(&r, 1, 0);
	/* The server's threads close theirs when they have a processor. */
	for (time_t start = time(NULL); descriptors_at_rest(&r) != fds;)
		assert_true(time(NULL) - start < 60);
	rig_cm_close(&r);
}

/* The quotas of ids, of a program and of a user; ids made by peers' requests count, too. */
static void
test_quotas(void **state)
{
	struct rig_config cfg = {.remote = true};
	struct urn_abi_req req = {.cm_listen = {.channel_fd = -1}};
	struct urn_abi_rep rep;
	uint32_t id, l;
	struct rig r;

	(void)state;
	cfg.per_client.max[URN_QUOTA_CM] = 3;
	cfg.per_uid.max[URN_QUOTA_CM] = 5;
	rig_cm_open(&r, &cfg);
	for (req.cm_listen.service_id = 1; req.cm_listen.service_id <= 3; req.cm_listen.service_id++)
		assert_int_equal(rig_cm_ctl(&r, 0, URN_CTL_CM_LISTEN, &req, &rep), 0);
	id = rep.handle;
	assert_int_equal(rig_cm_ctl(&r, 0, URN_CTL_CM_LISTEN, &req, &rep), EDQUOT);
	assert_non_null(strstr(rep.why, "3 connection ids"));
	/* The other end has two of its user's five ids left: a listener, and one request. */
	l = rig_cm_listen(&r, 1, SERVICE, 0);
	assert_int_equal(rig_cm_call(&r, 0, URN_CTL_CM_DESTROY, id, 0), 0);
	id = rig_cm_connect(&r, 0, r.end[0].qp->qp_num);
	rig_cm_expect(&r, 1, URN_CM_EVENT_REQUEST);
	req.cm_listen.service_id = 9;
	assert_int_equal(rig_cm_ctl(&r, 1, URN_CTL_CM_LISTEN, &req, &rep), EDQUOT);
	assert_non_null(strstr(rep.why, "user"));
	/*
	 * An id that is given back can be had again. The refused request's id is the program's
	 * until it is destroyed.
	 */
	assert_int_equal(rig_cm_call(&r, 0, URN_CTL_CM_DESTROY, id, 0), 0);
	rig_cm_expect(&r, 1, URN_CM_EVENT_REJECTED);
	id = rig_cm_connect(&r, 0, r.end[0].qp->qp_num);
	assert_int_equal(rig_cm_expect(&r, 0, URN_CM_EVENT_REJECTED).reason, URN_CM_REJ_NO_RESOURCES);
	assert_int_equal(rig_cm_call(&r, 0, URN_CTL_CM_DESTROY, id, 0), 0);
	assert_int_equal(rig_cm_ctl(&r, 1, URN_CTL_CM_LISTEN, &req, &rep), 0);
	assert_int_equal(rig_cm_call(&r, 1, URN_CTL_CM_DESTROY, l, 0), 0);
	rig_cm_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_killed), cmocka_unit_test(test_quotas)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
