/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin_server.h"

#include "common/clock.h"

#include "admin_proto.h"

#include "dataplane/server/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_MS = 10000, REST_MS = 100 };

/* A process that asks. */
struct asker {
	int fd;		       /* -1: a free place */
	bool asked;	       /* the question is there, and run has begun */
	bool more;	       /* the run has more steps */
	bool ended;	       /* the last piece was sent */
	size_t sent;	       /* bytes of run.out that were sent */
	uint64_t until;	       /* time limit of the asker, ns */
	char line[ADMIN_LINE]; /* bytes of the words */
	char *words[ADMIN_WORDS];
	struct nicd_run run;
};

struct nicd_admin_server {
	struct nicd_admin *admin;
	struct nicd_admin_server_config cfg;
	struct urn_listen listen; /* the socket and its lock file */
	int stop_fd;
	bool running;
	pthread_t thread;
	uint64_t rest_until; /* no descriptor was left: do not accept before, ns */
	struct asker asker[NICD_ADMIN_ASKERS];
};

/* ---- one asker */

static void
be_patient(const struct nicd_admin_server *s, struct asker *who)
{
	who->until = urn_clock_ns() + s->cfg.patience_ms * 1000000ull;
}

static void
hang_up(struct asker *who)
{
	if (who->asked)
		nicd_run_end(&who->run);
	close(who->fd);
	who->fd = -1;
	who->asked = false;
}

/* Cut a question into words, each of which ends with a NUL. returns: how many; -1: malformed */
static int
cut(struct asker *who, size_t len)
{
	int n = 0;

	if (len == 0)
		return 0;
	if (who->line[len - 1] != '\0')
		return -1;
	for (size_t i = 0; i < len; i += strlen(who->line + i) + 1) {
		if (n == ADMIN_WORDS)
			return -1;
		who->words[n++] = who->line + i;
	}
	return n;
}

/* Let the run know whose question it is. */
static void
introduce(struct asker *who)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(who->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0)
		who->run.by = (struct urn_log_who){.pid = cred.pid, .uid = cred.uid};
}

/* Read the question. returns: false when the server must hang up */
static bool
take_question(const struct nicd_admin_server *s, struct asker *who)
{
	struct admin_ask ask = {0};
	struct iovec iov[2] = {{&ask, sizeof(ask)}, {who->line, sizeof(who->line)}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	ssize_t got = recvmsg(who->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int n;

	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	if (got < (ssize_t)sizeof(ask) || (msg.msg_flags & MSG_TRUNC) || ask.magic != ADMIN_MAGIC ||
	    ask.json > 1)
		return false;
	n = cut(who, (size_t)got - sizeof(ask));
	if (n < 0)
		return false;
	nicd_run_begin(&who->run, s->admin, ask.json, false, who->words, (unsigned int)n);
	introduce(who);
	who->asked = who->more = true;
	who->ended = false;
	who->sent = 0;
	if (ask.version != ADMIN_VERSION) {
		who->run.status = NICD_RUN_FAILED;
		urn_err_set(&who->run.err,
			    "urnicctl and urnicd are of different releases: use the two of one");
	}
	be_patient(s, who);
	return true;
}

/* Let a message carry a descriptor. room: for one */
static void
attach_fd(struct msghdr *msg, char *room, size_t size, int fd)
{
	struct cmsghdr *c;

	msg->msg_control = room;
	msg->msg_controllen = size;
	c = CMSG_FIRSTHDR(msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
}

/* Send one piece, with a descriptor unless fd is -1. returns: 1: sent; 0: no room now; -1: hang up
 */
static int
give(struct asker *who, enum admin_kind kind, int status, const char *text, size_t len, int fd)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {0};
	struct admin_answer a = {
		.magic = ADMIN_MAGIC, .kind = (uint16_t)kind, .status = (uint16_t)status};
	struct iovec iov[2] = {{&a, sizeof(a)}, {(char *)(uintptr_t)text, len}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

	if (fd >= 0)
		attach_fd(&msg, room, sizeof(room), fd);
	if (sendmsg(who->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 1;
	return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

/* Send the next piece, or run the command's next step when all pieces are sent. returns: as give() */
static int
give_next(struct asker *who)
{
	struct nicd_run *r = &who->run;
	size_t left = r->out.len - who->sent;
	int rc;

	if (left) {
		left = left < ADMIN_PIECE ? left : ADMIN_PIECE;
		rc = give(who, ADMIN_OUT, 0, r->out.data + who->sent, left, -1);
		who->sent += rc > 0 ? left : 0;
		return rc;
	}
	urn_report_buf_clear(&r->out);
	who->sent = 0;
	if (who->more) {
		who->more = nicd_run_step(r);
		return 1;
	}
	rc = give(who, ADMIN_END, (int)r->status, r->err.text, r->status ? strlen(r->err.text) : 0,
		  r->status ? -1 : r->fd);
	who->ended = rc > 0;
	return rc;
}

/* Serve one asker that has room: at most a few pieces, for other askers wait as well. */
static void
serve(const struct nicd_admin_server *s, struct asker *who)
{
	for (unsigned int i = 0; i < 4; i++) {
		int rc = give_next(who);

		if (rc < 0 || who->ended) {
			hang_up(who);
			return;
		}
		if (rc == 0)
			return;
		be_patient(s, who);
	}
}

/* ---- all of them */

/* True when the process at the other end of a connection may ask. */
static bool
is_allowed(const struct nicd_admin_server *s, int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		return false;
	/* With a group, the socket's mode lets in only the group's members. */
	return cred.uid == 0 || cred.uid == geteuid() || s->cfg.gid != (gid_t)-1;
}

static struct asker *
free_place(struct nicd_admin_server *s)
{
	for (unsigned int i = 0; i < NICD_ADMIN_ASKERS; i++)
		if (s->asker[i].fd < 0)
			return &s->asker[i];
	return NULL;
}

static void
turn_away(struct asker *who, const char *why)
{
	(void)give(who, ADMIN_END, NICD_RUN_FAILED, why, strlen(why), -1);
	close(who->fd);
	who->fd = -1;
}

static void
accept_one(struct nicd_admin_server *s)
{
	struct asker *who = free_place(s), nobody;
	int fd = accept4(s->listen.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		/* No descriptor or memory: the asker waits to be accepted; retry after REST_MS. */
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			s->rest_until = urn_clock_ns() + REST_MS * 1000000ull;
		return;
	}
	nobody.fd = fd;
	if (who == NULL) {
		turn_away(&nobody, "too many ask at this time; try again");
	} else if (!is_allowed(s, fd)) {
		turn_away(&nobody, "only root and the user of the dataplane may control it; "
				   "control_group of [urnicd] names a group that may, too");
	} else {
		who->fd = fd;
		who->asked = false;
		be_patient(s, who);
	}
}

/* Fill in the descriptors to wait for. returns: longest wait, ms; -1: for ever */
static int
prepare(struct nicd_admin_server *s, struct pollfd *fds)
{
	uint64_t now = urn_clock_ns(), next = UINT64_MAX;

	fds[0] = (struct pollfd){.fd = s->stop_fd, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = s->listen.fd, .events = POLLIN};
	if (s->rest_until > now) {
		fds[1].fd = -1;
		next = s->rest_until;
	}
	for (unsigned int i = 0; i < NICD_ADMIN_ASKERS; i++) {
		struct asker *who = &s->asker[i];

		if (who->fd >= 0 && who->until <= now)
			hang_up(who);
		fds[2 + i] =
			(struct pollfd){.fd = who->fd, .events = who->asked ? POLLOUT : POLLIN};
		if (who->fd >= 0 && who->until < next)
			next = who->until;
	}
	return next == UINT64_MAX ? -1 : (int)((next - now) / 1000000) + 1;
}

static void *
server_thread(void *arg)
{
	struct nicd_admin_server *s = arg;
	struct pollfd fds[2 + NICD_ADMIN_ASKERS];

	for (;;) {
		int timeout = prepare(s, fds);

		if (poll(fds, 2 + NICD_ADMIN_ASKERS, timeout) < 0 && errno != EINTR)
			return NULL;
		if (fds[0].revents)
			return NULL;
		for (unsigned int i = 0; i < NICD_ADMIN_ASKERS; i++) {
			struct asker *who = &s->asker[i];

			if (fds[2 + i].fd < 0 || !fds[2 + i].revents)
				continue;
			if (fds[2 + i].revents & (POLLERR | POLLHUP | POLLNVAL))
				hang_up(who);
			else if (who->asked)
				serve(s, who);
			else if (!take_question(s, who))
				hang_up(who);
		}
		if (fds[1].revents)
			accept_one(s);
	}
}

/* ---- from beginning to end */

struct nicd_admin_server *
nicd_admin_server_open(struct nicd_admin *a, const struct nicd_admin_server_config *cfg,
		       struct urn_err *err)
{
	struct nicd_admin_server *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		urn_err_set(err, "no memory for the control socket");
		return NULL;
	}
	s->admin = a;
	s->cfg = *cfg;
	if (s->cfg.patience_ms == 0)
		s->cfg.patience_ms = PATIENCE_MS;
	for (unsigned int i = 0; i < NICD_ADMIN_ASKERS; i++)
		s->asker[i].fd = -1;
	s->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (urn_listen_open(&s->listen, cfg->path, cfg->gid == (gid_t)-1 ? 0600 : 0660, cfg->gid,
			    err) != 0) {
		nicd_admin_server_close(s);
		return NULL;
	}
	if (s->stop_fd < 0 || pthread_create(&s->thread, NULL, server_thread, s) != 0) {
		urn_err_set(err, "the control socket's thread can't be started: %s",
			    strerror(errno));
		nicd_admin_server_close(s);
		return NULL;
	}
	s->running = true;
	(void)pthread_setname_np(s->thread, "urnic-control");
	return s;
}

void
nicd_admin_server_close(struct nicd_admin_server *s)
{
	uint64_t one = 1;

	if (s == NULL)
		return;
	if (s->running && write(s->stop_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
		pthread_join(s->thread, NULL);
	for (unsigned int i = 0; i < NICD_ADMIN_ASKERS; i++)
		if (s->asker[i].fd >= 0)
			hang_up(&s->asker[i]);
	urn_listen_close(&s->listen);
	if (s->stop_fd >= 0)
		close(s->stop_fd);
	free(s);
}
