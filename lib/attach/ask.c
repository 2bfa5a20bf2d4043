/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/ask.h"

#include "abi/clock.h"
#include "abi/fd.h"
#include "attach/dev.h"
#include "attach/patience.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* extra: descriptors to hand over, count of them. returns: 0 or an errno value, ETIMEDOUT: patience
 * is at an end */
static int
urn_remote_send(int fd, const struct urn_sock_ask *q, const int *extra, unsigned int count)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = (void *)(uintptr_t)q, .iov_len = q->head.bytes};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	const uint64_t start = urn_clock_ms();
	ssize_t n;

	urn_fd_put(&msg, &control, extra, count);
	do
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR && !urn_patience_over(fd, start, 1));
	if (n == (ssize_t)q->head.bytes)
		return 0;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return ETIMEDOUT;
	/* The dataplane hung up; an answer that says why may still be there to read. */
	return n >= 0 || errno == EPIPE || errno == ECONNRESET ? ENODEV : errno;
}

/* True when an answer of `got` bytes is whole, with the events that it announces; takes those events. */
static bool
urn_remote_whole(const struct urn_sock_answer *a, size_t got, struct urn_remote_more *more)
{
	uint32_t n = got >= sizeof(*a) && a->err == 0 && more->max_ev > 0 ? a->events.n : 0;

	if (n > more->max_ev || got != sizeof(*a) + n * sizeof(more->ev[0]))
		return false;
	more->n_ev = n;
	return true;
}

/* Bounds that a wait lasts at most, when patience begins anew because the dataplane waits for this
 * program's memory: that may never be there, as when a program of the user's supplies it. */
enum { URN_REMOTE_BOUNDS = 4 };

/* The wait for an answer. */
struct urn_remote_wait {
	uint64_t begin; /* ms: when the wait began; constant */
	uint64_t start; /* ms: when patience began, the last time */
	uint32_t waits; /* the dataplane's word then; valid when it has one */
	bool reset;	/* the connection was reset, and was read once more */
};

/*
 * True when the wait goes on after recvmsg() failed: a signal came, the dataplane hung up before it
 * had read all (its answer comes after, once), or it has been waiting for this program's memory,
 * and not for long.
 */
static bool
urn_remote_goes_on(int fd, const struct urn_remote_more *more, struct urn_remote_wait *w)
{
	uint32_t waits = more->waits != NULL ? atomic_load(more->waits) : 0;

	if (errno == ECONNRESET && !w->reset)
		return w->reset = true;
	if ((errno != EINTR && errno != EAGAIN) ||
	    urn_patience_over(fd, w->begin, URN_REMOTE_BOUNDS))
		return false;
	if (errno == EINTR && !urn_patience_over(fd, w->start, 1))
		return true;
	if (more->waits == NULL || waits == w->waits)
		return false;
	w->waits = waits;
	w->start = urn_clock_ms();
	return true;
}

/*
 * returns: 0 or an errno value, EMFILE: the message is there, but this program has no room for
 * its descriptors; ETIMEDOUT: patience is at an end; *got: bytes of the message
 */
static int
urn_remote_receive(int fd, struct urn_sock_answer *a, struct urn_remote_more *more, ssize_t *got)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(URN_SOCK_FDS * sizeof(int))];
	} control;
	struct iovec iov[2] = {
		{.iov_base = a, .iov_len = sizeof(*a)},
		{.iov_base = more->ev, .iov_len = more->max_ev * sizeof(more->ev[0])},
	};
	struct msghdr msg = {
		.msg_iov = iov,
		.msg_iovlen = more->max_ev > 0 ? 2 : 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.buf),
	};
	uint64_t now = urn_clock_ms();
	struct urn_remote_wait w = {
		.begin = now,
		.start = now,
		.waits = more->waits != NULL ? atomic_load(more->waits) : 0,
	};

	do
		*got = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	while (*got < 0 && urn_remote_goes_on(fd, more, &w));
	if (*got < 0 && (errno == EAGAIN || errno == EINTR))
		return ETIMEDOUT;
	if (*got > 0)
		(void)urn_fd_take(&msg, more->fds, more->max_fds, &more->n_fds);
	if (*got <= 0 || msg.msg_flags & MSG_TRUNC || !urn_remote_whole(a, (size_t)*got, more))
		return ENODEV;
	if (!(msg.msg_flags & MSG_CTRUNC))
		return 0;
	while (more->n_fds > 0)
		close(more->fds[--more->n_fds]);
	return EMFILE;
}

int
urn_remote_ask(int fd, struct urn_sock_ask *q, uint16_t kind, const int *extra, unsigned int count,
	struct urn_sock_answer *a, struct urn_remote_more *more)
{
	struct urn_remote_more none = {0};
	ssize_t got;
	int err;

	q->head.magic = URN_SOCK_MAGIC;
	q->head.version = URN_SOCK_VERSION;
	q->head.kind = kind;
	q->head.bytes = urn_sock_ask_bytes(kind);
	err = urn_remote_send(fd, q, extra, count);
	if (err == ETIMEDOUT)
		return urn_patience_lost(fd, NULL);
	if (err != 0 && err != ENODEV)
		return urn_fail(err, "the dataplane can't be asked: %s", strerror(err));
	switch (urn_remote_receive(fd, a, more != NULL ? more : &none, &got)) {
	case 0:
		break;
	case EMFILE:
		return urn_fail(EMFILE,
				"this program has no descriptors left for those that the dataplane "
				"hands over: raise RLIMIT_NOFILE (ulimit -n)");
	case ETIMEDOUT:
		return urn_patience_lost(fd, NULL);
	default:
		return urn_fail(err ? err : ENODEV, URN_GONE);
	}
	if (a->head.magic != URN_SOCK_MAGIC || a->head.bytes != (size_t)got)
		return urn_fail(EPROTO,
				"the socket belongs to another program, not to a urnic dataplane");
	a->why[sizeof(a->why) - 1] = '\0';
	if (a->err != 0)
		return urn_fail(a->err, "%s", a->why);
	return 0;
}

const _Atomic uint32_t *
urn_remote_waits(const void *area, uint64_t size, const struct urn_abi_device *d)
{
	const struct urn_abi_db *db;

	if (!(d->features & URN_ABI_FEATURE_LEAVE) || d->engines == 0 ||
	    d->db_off[0] % sizeof(uint64_t) != 0 || d->db_off[0] >= size ||
	    size - d->db_off[0] < sizeof(*db))
		return NULL;
	db = (const void *)((const uint8_t *)area + d->db_off[0]);
	return &db->waits;
}
