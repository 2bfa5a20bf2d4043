/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/server.h"

#include "control/objects.h"
#include "server/listen.h"
#include "server/record.h"
#include "server/refuse.h"
#include "server/attached.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	DEFAULT_CLIENTS = 4096,
	NO_MORE_US = 10000,
	NO_MORE_MS = 10,
	PROGRAM_STACK = 256 << 10, /* bytes; a thread that waits has touched some 12 KiB of them */
	LOOK_MS = 10000,
	CLOSE_S = 2, /* seconds for all clients to go when the server closes */
};

/* A program that is attached, or about to be. */
struct program {
	LIST_ENTRY(program) link;     /* in the server's list; under the server's lock */
	struct urn_server *server;    /* constant */
	struct urn_attached attached; /* its thread's */
	struct urn_limits limits;     /* limits of one client when it attached; its thread's */
};

struct urn_server {
	struct urn_dp *dp;            /* constant, like all fields up to the lock */
	struct urn_server_config cfg; /* clients, clients_per_uid: atomic; per_client: under lock */
	struct urn_listen listen;
	struct urn_refuser *refuser;
	int stop_fd;                  /* an eventfd that ends the accepting thread */
	int bye_fd; /* an eventfd that ends all programs' threads; a hang-up would run callbacks of
		       all that watch a program's connection, under the server's lock */
	bool running;                 /* the accepting thread runs */
	pthread_t thread;
	int spare_fd;                 /* the accepting thread's: closed for a moment to turn a program away
	                               * when no descriptor is left; -1: none */
	struct urn_ledger ledger;     /* has a lock of its own */
	pthread_mutex_t lock;         /* protects the list of programs, and their fields that say so */
	pthread_cond_t gone;          /* signalled when a program has gone; with lock */
	LIST_HEAD(, program) programs; /* under lock */
	_Atomic bool stopping;        /* take no more messages */
	_Atomic uint64_t accepted, refused, opened, calls, bad, truncated, clients;
};

/* A number that another thread may change. */
#define LOOK(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

/* ---- programs: each in its own thread */

/* Take a program that has nothing any more off the list and the counts. The server's lock is held. */
static void
strike_out(struct urn_server *s, struct program *p)
{
	urn_account_give(p->attached.account, URN_QUOTA_FD, URN_QUOTA_FDS_CONNECTION);
	urn_account_leave(p->attached.account);
	LIST_REMOVE(p, link);
	atomic_fetch_sub(&s->clients, 1);
}

/* Free a program that has gone with all it had. The server may be gone when this returns. */
static void
leave(struct urn_server *s, struct program *p)
{
	pthread_mutex_lock(&s->lock);
	strike_out(s, p);
	free(p);
	pthread_cond_signal(&s->gone);
	pthread_mutex_unlock(&s->lock);
}

/*
 * Wait for a message. Messages that a program sent before it hung up are still taken; if the
 * program died and the connection is open, another process holds it, whose messages are not taken.
 * returns: true when the connection goes on; *heard: there is something to read
 */
static bool
await(const struct urn_server *s, const struct urn_attached *n, bool *heard)
{
	struct pollfd wait[3] = {
		{.fd = n->fd, .events = POLLIN | POLLRDHUP},
		{.fd = n->owner_fd, .events = POLLIN},
		{.fd = s->bye_fd, .events = POLLIN},
	};
	bool dead = n->owner_fd == -ESRCH;
	int got = poll(wait, 3, dead ? 0 : n->client ? (int)s->cfg.look_ms : -1);

	*heard = got > 0 && wait[0].revents;
	if (got < 0)
		return errno == EINTR;
	if (atomic_load(&s->stopping))
		return false;
	dead |= wait[1].revents != 0;
	if (got == 0)
		return !dead && !urn_attached_left(n);
	return !dead || (wait[0].revents & (POLLHUP | POLLRDHUP));
}

/* Serve one message, if there is any. returns: true when the connection goes on */
static bool
serve(struct urn_server *s, struct program *p)
{
	struct urn_attached *n = &p->attached;
	bool open = n->client != NULL, heard, on = await(s, n, &heard);
	uint64_t calls = n->calls;

	if (!on || !heard)
		return on;
	on = urn_attached_input(n);
	atomic_fetch_add(&s->calls, n->calls - calls);
	atomic_fetch_add(&s->opened, !open && n->client);
	return on;
}

static void *
program_thread(void *arg)
{
	struct program *p = arg;
	struct urn_server *s = p->server;

	(void)pthread_setname_np(pthread_self(), "urnic-client");
	urn_attached_begin(&p->attached);
	while (serve(s, p))
		;
	atomic_fetch_add(&s->bad, p->attached.bad);
	atomic_fetch_add(&s->truncated, p->attached.truncated);
	urn_record_leave(&p->attached, atomic_load(&s->stopping));
	urn_attached_end(&p->attached);
	leave(s, p);
	return NULL;
}

/* ---- accepting: in the accepting thread */

static const char no_fds[] =
	"the dataplane has no descriptors left for a program more (RLIMIT_NOFILE of its process)";

static int
spare(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Refuse a connection, with an errno value and a sentence. */
static void __attribute__((format(printf, 4, 5)))
turn_away(struct urn_server *s, int fd, int err, const char *fmt, ...)
{
	char why[120];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	atomic_fetch_add(&s->refused, 1);
	urn_record_turn_away(s->dp->log, fd, why);
	urn_refuser_put(s->refuser, fd, err, why);
}

/*
 * No descriptors, or no memory, to accept with: turn a waiting program away, which would
 * otherwise wait for ever, and keep the server busy with the same connection.
 */
static void
accept_none(struct urn_server *s)
{
	int fd = -1;

	if (s->spare_fd >= 0) {
		close(s->spare_fd);
		s->spare_fd = -1;
		fd = accept4(s->listen.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	}
	if (fd >= 0)
		turn_away(s, fd, EMFILE, "%s", no_fds);
	else
		usleep(NO_MORE_US);
}

/* Start a program's thread, with a small stack; it takes no signals. returns: 0 or an errno value */
static int
start_program(struct program *p)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, PROGRAM_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, &attr, program_thread, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return rc;
}

/* Admit a program, unless there are too many. returns: true when the program's thread has the connection */
static bool
admit(struct urn_server *s, struct program *p)
{
	struct urn_attached *n = &p->attached;
	unsigned int most = LOOK(s->cfg.clients_per_uid);
	bool full;
	int rc;

	n->account = urn_account_join(&s->ledger, n->peer.uid, &s->cfg.per_uid, most, &full);
	if (!n->account) {
		turn_away(s, n->fd, full ? EDQUOT : ENOMEM,
			  full ? "a user may have at most %u programs attached "
				 "([limits] of the dataplane)"
			       : "the dataplane has no memory (%u)",
			  most);
		return false;
	}
	if (!urn_account_take_own(n->account, URN_QUOTA_FD, URN_QUOTA_FDS_CONNECTION)) {
		urn_account_leave(n->account);
		turn_away(s, n->fd, EMFILE, "%s", no_fds);
		return false;
	}
	/* The program is its thread's from here on, and may end at once. */
	atomic_fetch_add(&s->clients, 1);
	pthread_mutex_lock(&s->lock);
	LIST_INSERT_HEAD(&s->programs, p, link);
	rc = start_program(p);
	if (rc != 0)
		strike_out(s, p);
	pthread_mutex_unlock(&s->lock);
	if (rc == 0)
		return true;
	turn_away(s, n->fd, EAGAIN, "the dataplane has no thread for a program more: %s", strerror(rc));
	return false;
}

static void
accept_one(struct urn_server *s)
{
	int fd = accept4(s->listen.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	socklen_t len = sizeof(struct ucred);
	unsigned int most;
	struct program *p;

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			accept_none(s);
		return;
	}
	atomic_fetch_add(&s->accepted, 1);
	if (s->spare_fd < 0 && (s->spare_fd = spare()) < 0) { /* fd was the last free descriptor */
		turn_away(s, fd, EMFILE, "%s", no_fds);
		return;
	}
	most = LOOK(s->cfg.clients);
	if (atomic_load(&s->clients) >= most) {
		turn_away(s, fd, EUSERS,
			  "at most %u programs may be attached ([limits] of the dataplane)", most);
		return;
	}
	p = calloc(1, sizeof(*p));
	if (!p || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &p->attached.peer, &len) != 0) {
		turn_away(s, fd, ENOMEM, "the dataplane has no memory for a program more");
		free(p);
		return;
	}
	p->server = s;
	pthread_mutex_lock(&s->lock);
	p->limits = s->cfg.per_client;
	pthread_mutex_unlock(&s->lock);
	p->attached.limits = &p->limits;
	p->attached.dp = s->dp;
	p->attached.node = s->cfg.node;
	p->attached.fd = fd;
	p->attached.owner_fd = -ESRCH;
	if (!admit(s, p))
		free(p);
}

static void *
server_thread(void *arg)
{
	struct urn_server *s = arg;
	struct pollfd wait[2] = {{.fd = s->stop_fd, .events = POLLIN}, {.fd = s->listen.fd}};

	for (;;) {
		int ms = urn_refuser_tend(s->refuser);
		bool room = urn_refuser_has_room(s->refuser);

		wait[1].events = room ? POLLIN : 0;
		if (s->spare_fd < 0)
			s->spare_fd = spare();
		if (poll(wait, 2, room ? ms : NO_MORE_MS) <= 0)
			continue;
		if (wait[0].revents)
			return NULL;
		if (wait[1].revents)
			accept_one(s);
	}
}

/* Let a limit of 0 be no limit. */
static void
no_limit(struct urn_limits *l)
{
	for (unsigned int q = 0; q < URN_QUOTAS; q++)
		if (!l->max[q])
			l->max[q] = UINT64_MAX;
}

/* Fill in what the caller left open. */
static void
fill(struct urn_server_config *cfg)
{
	if (!cfg->clients)
		cfg->clients = DEFAULT_CLIENTS;
	if (!cfg->clients_per_uid)
		cfg->clients_per_uid = cfg->clients;
	if (!cfg->look_ms)
		cfg->look_ms = LOOK_MS;
	no_limit(&cfg->per_client);
	no_limit(&cfg->per_uid);
}

/* returns: 0, or -1 with *err */
static int
start(struct urn_server *s, struct urn_err *err)
{
	s->stop_fd = eventfd(0, EFD_CLOEXEC);
	s->bye_fd = eventfd(0, EFD_CLOEXEC);
	s->spare_fd = spare();
	if (urn_listen_open(&s->listen, s->cfg.path, s->cfg.mode, s->cfg.gid, err) != 0)
		return -1;
	s->refuser = urn_refuser_start();
	if (s->stop_fd < 0 || s->bye_fd < 0 || !s->refuser ||
	    pthread_create(&s->thread, NULL, server_thread, s) != 0) {
		urn_err_set(err, "the server's threads can't be started: %s", strerror(errno));
		return -1;
	}
	s->running = true;
	(void)pthread_setname_np(s->thread, "urnic-server");
	return 0;
}

struct urn_server *
urn_server_open(struct urn_dp *dp, const struct urn_server_config *cfg, struct urn_err *err)
{
	struct urn_server *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;

	if (!s) {
		urn_err_set(err, "no memory for the server");
		return NULL;
	}
	s->dp = dp;
	s->cfg = *cfg;
	if (!s->cfg.node)
		s->cfg.node = "";
	fill(&s->cfg);
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->gone, &attr);
	pthread_condattr_destroy(&attr);
	urn_quota_ledger_init(&s->ledger, s->cfg.queues);
	if (s->cfg.shared)
		s->cfg.per_uid.max[URN_QUOTA_FD] = s->ledger.limits.max[URN_QUOTA_FD] / 2;
	if (start(s, err) == 0)
		return s;
	(void)urn_server_close(s);
	return NULL;
}

/* Tell all programs' threads to end, and wait for them to go. returns: how many did not */
static unsigned int
see_off(struct urn_server *s)
{
	struct program *p;
	struct timespec end;
	unsigned int left = 0;
	uint64_t one = 1;

	atomic_store(&s->stopping, true);
	(void)!write(s->bye_fd, &one, sizeof(one));
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += CLOSE_S;
	pthread_mutex_lock(&s->lock);
	while (!LIST_EMPTY(&s->programs) && pthread_cond_timedwait(&s->gone, &s->lock, &end) == 0)
		;
	LIST_FOREACH(p, &s->programs, link)
		left++;
	pthread_mutex_unlock(&s->lock);
	return left;
}

bool
urn_server_follows_death(const struct urn_server *s)
{
	return s->listen.left;
}

unsigned int
urn_server_close(struct urn_server *s)
{
	unsigned int left;
	uint64_t one = 1;

	if (!s)
		return 0;
	if (s->running && write(s->stop_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
		pthread_join(s->thread, NULL);
	urn_listen_remove(&s->listen);
	urn_refuser_stop(s->refuser);
	s->refuser = NULL;
	left = see_off(s);
	urn_listen_close(&s->listen);
	if (s->stop_fd >= 0)
		close(s->stop_fd);
	if (s->spare_fd >= 0)
		close(s->spare_fd);
	if (left) /* the threads that are left still use the server */
		return left;
	if (s->bye_fd >= 0)
		close(s->bye_fd);
	urn_ledger_fini(&s->ledger);
	pthread_cond_destroy(&s->gone);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return 0;
}

void
urn_server_set_limits(struct urn_server *s, const struct urn_server_config *cfg)
{
	struct urn_server_config now = *cfg;

	fill(&now);
	__atomic_store_n(&s->cfg.clients, now.clients, __ATOMIC_RELAXED);
	__atomic_store_n(&s->cfg.clients_per_uid, now.clients_per_uid, __ATOMIC_RELAXED);
	pthread_mutex_lock(&s->lock);
	s->cfg.per_client = now.per_client;
	pthread_mutex_unlock(&s->lock);
}

void
urn_server_counters(const struct urn_server *s, struct urn_server_counters *out)
{
	*out = (struct urn_server_counters){
		.accepted = s->accepted,
		.refused = s->refused,
		.opened = s->opened,
		.calls = s->calls,
		.bad = s->bad,
		.truncated = s->truncated,
		.clients = s->clients,
		.queue_memory_refused = urn_ledger_refused(&s->ledger, URN_QUOTA_QUEUE),
	};
}
