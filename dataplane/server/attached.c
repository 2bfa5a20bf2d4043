/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program is not trusted: a message is copied once, by the kernel, and checked
 * whole before it is used. A program that does not take its answers loses the
 * connection, because the server waits for none.
 */
#include "server/attached.h"

#include "abi/agree.h"
#include "abi/clock.h"
#include "abi/fd.h"
#include "abi/socket.h"
#include "control/client.h"
#include "control/ctl.h"
#include "control/lock.h"
#include "log/who.h"
#include "server/owner.h"
#include "server/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

_Static_assert(sizeof(((struct urn_adapter_config *)0)->name) ==
		       sizeof(((struct urn_sock_device *)0)->name), "names of adapters");

/* ---- messages */

enum {
	MESSAGE_FDS = 2,
	NO_SPACE = sizeof(((struct urn_client_who *)0)->no_space), /* bytes of a sentence */
};

struct message {
	struct urn_sock_ask ask;
	int fd[MESSAGE_FDS]; /* descriptors that came along; the message's until a handler takes them */
	unsigned int fds;    /* descriptors in fd[]; 0 once taken */
};

/* Fail the question: errno value and a sentence. */
static void __attribute__((format(printf, 3, 4)))
refuse(struct urn_sock_answer *a, int err, const char *fmt, ...)
{
	va_list ap;

	a->err = err;
	va_start(ap, fmt);
	vsnprintf(a->why, sizeof(a->why), fmt, ap);
	va_end(ap);
}

/* Receive a message. returns: its bytes; 0: the end; -1: no message yet; -2: the connection must end */
static ssize_t
receive(struct urn_attached *s, struct message *m)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(2 * MESSAGE_FDS * sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = &m->ask, .iov_len = sizeof(m->ask)};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	memset(m, 0, sizeof(*m));
	do
		n = recvmsg(s->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? -1 : -2;
	if (urn_fd_take(&msg, m->fd, MESSAGE_FDS, &m->fds)) {
		s->truncated = true;
		return -2;
	}
	return msg.msg_flags & MSG_TRUNC ? -2 : n;
}

/* Descriptors and events that go along with an answer. */
struct more {
	int fd[URN_SOCK_FDS];
	unsigned int fds;
	struct urn_abi_cm_event ev[URN_SOCK_EVENTS_MAX];
	unsigned int events;
};

/* Send an answer. returns: true when it was sent */
static bool
answer(const struct urn_attached *s, struct urn_sock_answer *a, struct more *more)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(URN_SOCK_FDS * sizeof(int))];
	} control;
	struct iovec iov[2] = {
		{.iov_base = a, .iov_len = sizeof(*a)},
		{.iov_base = more->ev, .iov_len = more->events * sizeof(more->ev[0])},
	};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = more->events ? 2 : 1};
	ssize_t sent;

	a->head.bytes = (uint32_t)(iov[0].iov_len + iov[1].iov_len);
	urn_fd_put(&msg, &control, more->fd, more->fds);
	do
		sent = sendmsg(s->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent == (ssize_t)a->head.bytes;
}

/*
 * True when the program has not taken an answer yet. The system counts descriptors that are on
 * their way against this process's user, for all clients together: a client that asks for
 * more and takes none would leave none for others.
 */
static bool
answer_waits(const struct urn_attached *s)
{
	int bytes = 0;

	return ioctl(s->fd, SIOCOUTQ, &bytes) != 0 || bytes > 0;
}

static bool
needs_client(uint16_t kind)
{
	return kind == URN_SOCK_CALL || kind == URN_SOCK_EVENTS || kind == URN_SOCK_MEMORY;
}

static bool
takes_memory(uint16_t kind)
{
	return kind == URN_SOCK_OPEN || kind == URN_SOCK_MEMORY;
}

/* The reason why a message makes no sense; NULL: the message is valid. */
static const char *
complaint(const struct urn_attached *s, const struct message *m, ssize_t n)
{
	const struct urn_sock_head *h = &m->ask.head;

	if (n < (ssize_t)sizeof(*h) || h->magic != URN_SOCK_MAGIC)
		return "the message is none of urnic's library";
	if (h->version != URN_SOCK_VERSION)
		return "the library speaks another version of the socket's protocol: use library and "
		       "dataplane of one release";
	if (!urn_sock_ask_bytes(h->kind))
		return "no question has this number";
	/* A newer library may have more to say in its HELLO. */
	if (h->bytes != n || h->bytes < urn_sock_ask_bytes(h->kind) ||
	    (h->kind != URN_SOCK_HELLO && h->bytes != urn_sock_ask_bytes(h->kind)))
		return "the message has not the length of its kind";
	if (!s->version && h->kind != URN_SOCK_HELLO)
		return "the first message says which versions the library speaks";
	if (s->client ? h->kind == URN_SOCK_OPEN : needs_client(h->kind))
		return s->client ? "the connection has opened an adapter already"
				 : "no adapter is open on the connection";
	if (answer_waits(s))
		return "the answer before was not taken: one question at a time";
	if (m->fds && h->kind != URN_SOCK_CALL && !(takes_memory(h->kind) && m->fds == 2))
		return "a descriptor came that nothing asked for";
	return NULL;
}

/* ---- questions */

static void
on_hello(struct urn_attached *s, const struct urn_sock_ask *q, struct urn_sock_answer *a)
{
	const struct urn_abi_offer library = {.oldest = q->hello.oldest, .newest = q->hello.newest};
	struct urn_abi_agreed agreed = {.version = s->dp->speaks.newest};

	a->err = urn_abi_agree(&library, &s->dp->speaks, &agreed, a->why, sizeof(a->why));
	if (a->err == 0)
		s->version = agreed.version;
	a->can = URN_SOCK_CAN_MEMORY;
	a->hello.abi = agreed.version;
	a->hello.adapters = s->dp->adapters_n;
	snprintf(a->hello.version, sizeof(a->hello.version), "%s", URN_VERSION);
}

/* The adapter at this place of the list: adapters of the first node, then the others. NULL: there are no more */
static const struct urn_adapter *
listed(const struct urn_attached *s, uint32_t index)
{
	for (unsigned int others = 0; others < 2; others++)
		for (unsigned int i = 0; i < s->dp->adapters_n; i++) {
			const struct urn_adapter *ad = s->dp->adapter[i];

			if ((strncmp(ad->cfg.node, s->node, sizeof(ad->cfg.node)) != 0) == others && index-- == 0)
				return ad;
		}
	return NULL;
}

static void
on_list(struct urn_attached *s, const struct urn_sock_ask *q, struct urn_sock_answer *a)
{
	const struct urn_adapter *ad = listed(s, q->list.index);

	if (!ad) {
		refuse(a, ENOENT, "there are %u adapters", s->dp->adapters_n);
		return;
	}
	memcpy(a->device.name, ad->cfg.name, sizeof(a->device.name));
	memcpy(a->device.node, ad->cfg.node, sizeof(a->device.node));
	a->device.guid = urn_adapter_guid(ad);
}

static struct urn_adapter *
find_adapter(const struct urn_dp *dp, const char name[32])
{
	for (unsigned int i = 0; i < dp->adapters_n; i++)
		if (strncmp(dp->adapter[i]->cfg.name, name, 32) == 0)
			return dp->adapter[i];
	return NULL;
}

/*
 * Open the space by which any memory of the client can be reached, by the descriptors of a message.
 * why: room for NO_SPACE bytes, "" or the reason why there is none. returns: the space, or NULL
 * with errno
 */
static struct urn_space *
open_space(const struct urn_attached *s, struct message *m, char *why)
{
	struct urn_space_fds fds = {.mem = m->fd[0], .maps = m->fd[1], .pid = s->peer.pid, .pidfd = -1};
	struct urn_space *space;
	int rc;

	why[0] = '\0';
	errno = EOPNOTSUPP;
	if (m->fds != 2) {
		snprintf(why, NO_SPACE, "the program has not handed over its /proc/self/mem");
		return NULL;
	}
	fds.pidfd = s->owner_fd >= 0 ? fcntl(s->owner_fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (fds.pidfd < 0) {
		rc = s->owner_fd < 0 ? -s->owner_fd : errno;
		snprintf(why, NO_SPACE, "the program's process can't be watched: %s", strerror(rc));
		errno = rc;
		return NULL;
	}
	rc = urn_space_create(&fds, &space, why, NO_SPACE);
	if (rc != 0) {
		close(fds.pidfd);
		errno = rc;
		return NULL;
	}
	urn_space_set_user(space, s->peer.uid);
	m->fds = 0; /* the space has the descriptors now */
	return space;
}

/* Get the name of the program, which it may change later. */
static void
name_program(const struct urn_attached *s, char name[sizeof(((struct urn_log_who *)0)->program)])
{
	struct urn_log_who who = {.pid = s->peer.pid};

	urn_log_who_program(&who);
	memcpy(name, who.program, sizeof(who.program));
}

/* Make the program's client. returns 0, or an errno value with *err */
static int
make_client(struct urn_attached *s, struct urn_adapter *ad, struct message *m, struct urn_err *err)
{
	struct urn_client_who who = {
		.pid = s->peer.pid,
		.uid = s->peer.uid,
		.conn_fd = s->fd,
		.account = s->account,
		.limits = s->limits,
	};
	uint32_t fds = URN_QUOTA_FDS_CLIENT + URN_QUOTA_FDS_ENGINE * ad->vectors;
	int rc;

	if (!urn_account_take_own(s->account, URN_QUOTA_FD, fds)) {
		urn_err_set(err, "%s: the dataplane has no descriptors left for a program more (RLIMIT_NOFILE of "
			    "its process)", ad->cfg.name);
		return EMFILE;
	}
	s->fds = fds;
	who.space = open_space(s, m, who.no_space);
	name_program(s, who.program);
	s->client = urn_client_create(ad, &who, err);
	if (s->client) {
		s->client->agreed.version = s->version;
		return 0;
	}
	rc = errno;
	urn_account_give(s->account, URN_QUOTA_FD, s->fds);
	s->fds = 0;
	return rc;
}

/* returns: descriptors to hand over, in fds[] */
static unsigned int
on_open(struct urn_attached *s, struct message *m, struct urn_sock_answer *a, int *fds)
{
	const struct urn_sock_ask *q = &m->ask;
	struct urn_adapter *ad = find_adapter(s->dp, q->open.name);
	struct urn_err err = {""};
	unsigned int n = 0;
	int rc;

	if (!ad) {
		refuse(a, ENODEV, "no adapter has the name '%.32s'", q->open.name);
		return 0;
	}
	rc = make_client(s, ad, m, &err);
	if (rc != 0) {
		refuse(a, rc, "%s", err.text);
		return 0;
	}
	a->open.foreign = s->client->space != NULL;
	a->open.area_size = s->client->area.size;
	a->open.engines = ad->vectors;
	fds[n++] = s->client->area.fd;
	for (uint32_t v = 0; v < ad->vectors; v++)
		fds[n++] = s->client->wake_fd[v];
	return n;
}

/* The program hands its memory over; its client has started. */
static void
on_memory(struct urn_attached *s, struct message *m, struct urn_sock_answer *a)
{
	char why[NO_SPACE];
	struct urn_space *space;
	int rc;

	if (s->client->space) {
		refuse(a, EALREADY, "the program has handed over its memory before");
		return;
	}
	space = open_space(s, m, why);
	rc = errno;
	urn_client_reach(s->client, space, why);
	/* The program asks again after a lack that may pass. A connection's process is looked for
	 * once, so the lack of its pidfd stays. */
	if (rc != ENOMEM && rc != EMFILE && rc != ENFILE)
		rc = EOPNOTSUPP;
	if (!space)
		refuse(a, s->owner_fd >= 0 ? rc : EOPNOTSUPP, "%s", why);
}

/* returns: descriptors to hand over, in fds[]; the first is closed after that */
static unsigned int
on_call(struct urn_attached *s, struct message *m, struct urn_sock_answer *a, int *fds)
{
	struct urn_ctl_call call = {
		.req = &m->ask.call,
		.bytes = m->ask.head.bytes - offsetof(struct urn_sock_ask, call),
		.fd = m->fd,
		.fds = m->fds,
	};

	s->calls++;
	urn_ctl_run(&urn_ctl_table, s->client, &call, &a->call);
	urn_record_call(s, a->call.err, a->call.why);
	m->fds = call.fds;
	fds[0] = s->client->reply_fd;
	fds[1] = s->client->reply_write_fd;
	s->client->reply_fd = -1;
	return fds[0] >= 0 ? URN_CTL_REPLY_FDS : 0;
}

/*
 * Start the client at its first call or question for events: the program has mapped its area by
 * then, or never will. returns: true when engines know the client; false: see the answer
 */
static bool
start_client(struct urn_attached *s, uint16_t kind, struct urn_sock_answer *a)
{
	struct urn_err err = {""};
	bool new = !s->client->started;
	int rc = urn_client_start(s->client, &err);

	if (rc == 0 && new) {
		s->since = urn_clock_ns();
		urn_record_attach(s);
	}
	if (rc == 0)
		return true;
	if (kind == URN_SOCK_CALL)
		a->call.err = urn_ctl_fail(&a->call, rc, "%s", err.text);
	refuse(a, rc, "%s", err.text);
	return false;
}

/* Make a control call for each event, so that other clients' calls run in between. */
static void
on_events(struct urn_attached *s, const struct urn_sock_ask *q, struct urn_sock_answer *a, struct more *more)
{
	const struct urn_abi_req req = {.op = URN_CTL_CM_EVENT};
	const uint32_t many = URN_ABI_FEATURE_CM_EVENTS;
	uint32_t max = q->events.max < URN_SOCK_EVENTS_MAX ? q->events.max : URN_SOCK_EVENTS_MAX;
	struct urn_abi_rep rep;

	s->calls++;
	a->err = urn_ctl_need(s->client, many, a->why, sizeof(a->why));
	if (a->err)
		return;
	while (more->events < max) {
		urn_ctl_call(s->client, &req, &rep);
		if (rep.err)
			break;
		more->ev[more->events++] = rep.cm_event;
	}
	a->events.n = more->events;
	if (max && !more->events && rep.err != EAGAIN)
		refuse(a, rep.err, "%s", rep.why);
}

/* Let the log know that the program does not get an adapter. started: its client has, or has none
 */
static void
tell_refusal(const struct urn_attached *s, const struct urn_sock_answer *a, bool started)
{
	if (a->err && (a->head.kind == URN_SOCK_HELLO || a->head.kind == URN_SOCK_OPEN || !started))
		urn_record_refuse(s, a->why);
}

/* returns: true when the connection goes on */
static bool
handle(struct urn_attached *s, struct message *m, ssize_t n)
{
	const char *text = complaint(s, m, n);
	struct urn_sock_answer a = {
		.head = {
			.magic = URN_SOCK_MAGIC,
			.version = URN_SOCK_VERSION,
			.kind = m->ask.head.kind,
			.serial = m->ask.head.serial,
		},
	};
	struct more more;
	bool started = true, on;

	more.fds = more.events = 0;
	if (text) {
		s->bad = true;
		urn_record_nonsense(s, text);
		refuse(&a, EPROTO, "%s", text);
		(void)answer(s, &a, &more);
		return false;
	}
	switch (m->ask.head.kind) {
	case URN_SOCK_HELLO:
		on_hello(s, &m->ask, &a);
		break;
	case URN_SOCK_LIST:
		on_list(s, &m->ask, &a);
		break;
	case URN_SOCK_OPEN:
		more.fds = on_open(s, m, &a, more.fd);
		break;
	case URN_SOCK_CALL:
	case URN_SOCK_EVENTS:
	case URN_SOCK_MEMORY:
		started = start_client(s, m->ask.head.kind, &a);
		if (started && m->ask.head.kind == URN_SOCK_CALL)
			more.fds = on_call(s, m, &a, more.fd);
		else if (started && m->ask.head.kind == URN_SOCK_EVENTS)
			on_events(s, &m->ask, &a, &more);
		else if (started)
			on_memory(s, m, &a);
		break;
	}
	tell_refusal(s, &a, started);
	on = answer(s, &a, &more);
	if (m->ask.head.kind == URN_SOCK_CALL && more.fds)
		close(more.fd[0]);
	return on && started;
}

void
urn_attached_begin(struct urn_attached *s)
{
	s->owner_fd = urn_owner_watch(s->fd, s->peer.pid);
}

bool
urn_attached_left(const struct urn_attached *s)
{
	return s->client && s->client->space && !urn_space_alive(s->client->space);
}

bool
urn_attached_input(struct urn_attached *s)
{
	struct message m;
	ssize_t n = receive(s, &m);
	bool on;

	if (n == -1)
		return true;
	if (n <= 0)
		s->bad = n != 0;
	if (s->bad)
		urn_record_nonsense(s, s->truncated
					       ? "more descriptors came than a message may have"
					       : "its message can't be received");
	on = n > 0 && handle(s, &m, n);
	for (unsigned int i = 0; i < m.fds; i++)
		close(m.fd[i]);
	return on;
}

void
urn_attached_end(struct urn_attached *s)
{
	if (s->client)
		urn_client_destroy(s->client);
	s->client = NULL;
	urn_account_give(s->account, URN_QUOTA_FD, s->fds);
	s->fds = 0;
	close(s->fd);
	s->fd = -1;
	if (s->owner_fd >= 0)
		close(s->owner_fd);
	s->owner_fd = -ESRCH;
}
