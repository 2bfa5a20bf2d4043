/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/server.h"

#include "control/session.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { DEFAULT_CLIENTS = 4096, BACKLOG = 128, EVENTS = 32, NO_MORE_US = 10000 };

struct peer {
	struct peer *next, *prev;
	struct urn_session session;
};

struct urn_server {
	struct urn_dp *dp;
	struct urn_server_config cfg;
	struct sockaddr_un addr;
	struct stat made;   /* the socket's file as we made it: only that one is taken away */
	int listen_fd, epoll_fd, stop_fd;
	int spare_fd;       /* given up for a moment to turn away whom no descriptor is left for */
	bool bound;         /* the path is ours */
	bool running;       /* the thread is there */
	pthread_t thread;
	struct peer *peers; /* the thread's */
	struct urn_account *accounts; /* the thread's; each stays until the end */
	_Atomic uint64_t accepted, refused, opened, calls, bad, clients;
};

/* ---- peers */

/* The account of a user, made if need be. NULL: no memory */
static struct urn_account *
account_of(struct urn_server *s, uid_t uid)
{
	struct urn_account *a = s->accounts;

	while (a && a->uid != uid)
		a = a->next;
	if (a)
		return a;
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->uid = uid;
	a->limits = s->cfg.per_uid;
	a->next = s->accounts;
	s->accounts = a;
	return a;
}

static void
end_peer(struct urn_server *s, struct peer *p)
{
	if (p->prev)
		p->prev->next = p->next;
	else
		s->peers = p->next;
	if (p->next)
		p->next->prev = p->prev;
	atomic_fetch_add(&s->bad, p->session.bad);
	urn_session_end(&p->session);
	p->session.account->clients--;
	free(p);
	atomic_fetch_sub(&s->clients, 1);
}

/* May its user have one client more? */
static bool
join(struct urn_server *s, struct peer *p)
{
	p->session.account = account_of(s, p->session.peer.uid);
	return p->session.account && p->session.account->clients < s->cfg.clients_per_uid;
}

static int
spare(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/*
 * No descriptors, or no memory: hang up on whoever calls, who would wait for ever
 * otherwise, and keep the server busy with asking again.
 */
static void
turn_away(struct urn_server *s)
{
	int fd = -1;

	if (s->spare_fd >= 0) {
		close(s->spare_fd);
		fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			close(fd);
		s->spare_fd = spare();
	}
	atomic_fetch_add(&s->refused, 1);
	if (fd < 0) {
		usleep(NO_MORE_US);
		s->spare_fd = s->spare_fd < 0 ? spare() : s->spare_fd;
	}
}

static void
accept_one(struct urn_server *s)
{
	int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct epoll_event ev = {.events = EPOLLIN};
	socklen_t len = sizeof(struct ucred);
	struct peer *p;

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			turn_away(s);
		return;
	}
	atomic_fetch_add(&s->accepted, 1);
	p = calloc(1, sizeof(*p));
	ev.data.ptr = p;
	if (!p || atomic_load(&s->clients) >= s->cfg.clients ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &p->session.peer, &len) != 0 || !join(s, p) ||
	    epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0) {
		atomic_fetch_add(&s->refused, 1);
		close(fd);
		free(p);
		return;
	}
	p->session.account->clients++;
	p->session.limits = &s->cfg.per_client;
	p->session.dp = s->dp;
	p->session.fd = fd;
	p->next = s->peers;
	if (p->next)
		p->next->prev = p;
	s->peers = p;
	atomic_fetch_add(&s->clients, 1);
}

static void
serve(struct urn_server *s, struct peer *p)
{
	bool open = p->session.client != NULL;
	uint64_t calls = p->session.calls;
	bool on = urn_session_input(&p->session);

	atomic_fetch_add(&s->calls, p->session.calls - calls);
	atomic_fetch_add(&s->opened, !open && p->session.client);
	if (!on)
		end_peer(s, p);
}

static void *
server_thread(void *arg)
{
	struct epoll_event ev[EVENTS];
	struct urn_server *s = arg;

	for (;;) {
		int n = epoll_wait(s->epoll_fd, ev, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			if (ev[i].data.ptr == &s->stop_fd)
				return NULL;
			if (ev[i].data.ptr == s)
				accept_one(s);
			else
				serve(s, ev[i].data.ptr);
		}
	}
}

/* ---- the socket */

/* Does somebody listen at the address? */
static bool
is_alive(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool alive = fd >= 0 && (connect(fd, (const void *)addr, sizeof(*addr)) == 0 || errno == EAGAIN);

	if (fd >= 0)
		close(fd);
	return alive;
}

/* A socket that nobody listens at any more is in the way: not a file of another kind. */
static int
bind_path(struct urn_server *s, struct urn_err *err)
{
	const char *path = s->addr.sun_path;
	struct stat st;

	if (bind(s->listen_fd, (const void *)&s->addr, sizeof(s->addr)) == 0)
		return 0;
	if (errno == EADDRINUSE && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode)) {
		if (is_alive(&s->addr)) {
			urn_err_set(err, "%s: another dataplane listens here; stop it or give another path",
				    path);
			return -1;
		}
		if (unlink(path) == 0 &&
		    bind(s->listen_fd, (const void *)&s->addr, sizeof(s->addr)) == 0)
			return 0;
	}
	urn_err_set(err, "%s: the socket can't be made: %s", path, strerror(errno));
	return -1;
}

static int
listen_at(struct urn_server *s, const char *path, struct urn_err *err)
{
	s->addr.sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(s->addr.sun_path)) {
		urn_err_set(err, "%s: a socket's path has at most %zu bytes", path,
			    sizeof(s->addr.sun_path) - 1);
		return -1;
	}
	memcpy(s->addr.sun_path, path, strlen(path) + 1);
	s->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->listen_fd < 0) {
		urn_err_set(err, "no socket to listen with: %s", strerror(errno));
		return -1;
	}
	if (bind_path(s, err) != 0)
		return -1;
	s->bound = lstat(path, &s->made) == 0;
	/* Before anybody can connect, for that takes listen(). */
	if (chmod(path, s->cfg.mode ? s->cfg.mode : 0600) != 0 ||
	    (s->cfg.gid != (gid_t)-1 && chown(path, (uid_t)-1, s->cfg.gid) != 0) ||
	    listen(s->listen_fd, BACKLOG) != 0) {
		urn_err_set(err, "%s: mode and group can't be set, or not listened at: %s", path,
			    strerror(errno));
		return -1;
	}
	return 0;
}

static int
watch(struct urn_server *s, int fd, void *ptr)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = ptr};

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

/* What is not said is not limited. */
static void
no_limit(struct urn_limits *l)
{
	for (unsigned int q = 0; q < URN_QUOTAS; q++)
		if (!l->max[q])
			l->max[q] = UINT64_MAX;
}

struct urn_server *
urn_server_open(struct urn_dp *dp, const struct urn_server_config *cfg, struct urn_err *err)
{
	struct urn_server *s = calloc(1, sizeof(*s));

	if (!s) {
		urn_err_set(err, "no memory for the server");
		return NULL;
	}
	s->dp = dp;
	s->cfg = *cfg;
	if (!s->cfg.clients)
		s->cfg.clients = DEFAULT_CLIENTS;
	if (!s->cfg.clients_per_uid)
		s->cfg.clients_per_uid = s->cfg.clients;
	no_limit(&s->cfg.per_client);
	no_limit(&s->cfg.per_uid);
	s->listen_fd = s->stop_fd = -1;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	s->stop_fd = eventfd(0, EFD_CLOEXEC);
	s->spare_fd = spare();
	if (listen_at(s, cfg->path, err) != 0) {
		urn_server_close(s);
		return NULL;
	}
	if (s->epoll_fd < 0 || s->stop_fd < 0 || watch(s, s->stop_fd, &s->stop_fd) != 0 ||
	    watch(s, s->listen_fd, s) != 0 || pthread_create(&s->thread, NULL, server_thread, s) != 0) {
		urn_err_set(err, "the server's thread can't be started: %s", strerror(errno));
		urn_server_close(s);
		return NULL;
	}
	s->running = true;
	(void)pthread_setname_np(s->thread, "urnic-server");
	return s;
}

/* The path, if what is there is still the socket that we made. */
static void
remove_path(struct urn_server *s)
{
	struct stat st;

	if (s->bound && lstat(s->addr.sun_path, &st) == 0 && st.st_ino == s->made.st_ino &&
	    st.st_dev == s->made.st_dev)
		(void)unlink(s->addr.sun_path);
}

void
urn_server_close(struct urn_server *s)
{
	uint64_t one = 1;

	if (!s)
		return;
	if (s->running && write(s->stop_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
		pthread_join(s->thread, NULL);
	remove_path(s);
	while (s->peers)
		end_peer(s, s->peers);
	while (s->accounts) {
		struct urn_account *next = s->accounts->next;

		free(s->accounts);
		s->accounts = next;
	}
	if (s->listen_fd >= 0)
		close(s->listen_fd);
	if (s->stop_fd >= 0)
		close(s->stop_fd);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	if (s->spare_fd >= 0)
		close(s->spare_fd);
	free(s);
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
		.clients = s->clients,
	};
}
