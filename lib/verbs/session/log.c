/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log of steps (doc/reference/sessions.md): a line for each step of a connection, with its
 * numbers. A line is written by one call, so lines of several programs in one file stay whole. All
 * is written with the context's lock held; without a log nothing but a descriptor is looked at. A
 * connection's lines are bounded (lines.h), and the next one that is written tells how many were
 * left out.
 */
#include "verbs/session/log.h"

#include "abi/clock.h"
#include "verbs/front.h"
#include "verbs/session/heal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { URN_SV_LINE = 1024 }; /* bytes of a line, at most */

/* A line that is being put together. */
struct urn_sv_line {
	char text[URN_SV_LINE];
	size_t length; /* characters in text, below URN_SV_LINE */
};

static const char *const urn_sv_counters[URN_SESS_COUNTER_COUNT] = {
#define X(name, text) #name,
	URN_SESS_COUNTERS(X)
#undef X
};

static const char *const urn_sv_verdicts[URN_SESS_V_COUNT] = {
#define X(name, text) #name,
	URN_SESS_VERDICTS(X)
#undef X
};

int
urn_sv_log_open(const char *text, int *fd)
{
	*fd = -1;
	if (text == NULL || text[0] == '\0')
		return 0;
	if (strcmp(text, "yes") == 0 || strcmp(text, "no") == 0)
		return urn_fail(EINVAL, "URNIC_SESSION_LOG: %s: give stderr, or the path of a file",
				text);
	/* The program may close its standard error, and open something else in its place. */
	*fd = strcmp(text, "stderr") == 0
		      ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
		      : open(text,
			     O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
			     0600);
	return *fd >= 0 ? 0
			: urn_fail(errno, "URNIC_SESSION_LOG: can't write to '%.200s': %s", text,
				   strerror(errno));
}

/* ---- lines */

__attribute__((format(printf, 2, 3))) static void
urn_sv_put(struct urn_sv_line *l, const char *format, ...)
{
	size_t room = sizeof(l->text) - 1 - l->length; /* one byte is the end of the line */
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(l->text + l->length, room, format, args);
	va_end(args);
	if (n > 0)
		l->length += (size_t)n < room ? (size_t)n : room - 1;
}

/* Name of a path, our adapter first. */
static const char *
urn_sv_path_name(struct urn_sv_qp *q, uint32_t bit)
{
	static const char *const names[URN_SV_PATHS] = {"P-P", "P-S", "S-P", "S-S"};

	return names[(urn_sv_at(q, bit) - q->path) % URN_SV_PATHS];
}

/* Begin a line with the time and the device. */
static void
urn_sv_line_of(struct urn_sv_line *l, const struct urn_sv_ctx *ctx)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	l->length = 0;
	urn_sv_put(l, "%lld.%06ld session=%d.%u", (long long)now.tv_sec, now.tv_nsec / 1000,
		   (int)getpid(), ctx->log_number);
}

/* Begin a line with all that names the connection and its state. */
static void
urn_sv_line_conn(struct urn_sv_line *l, struct urn_sv_qp *q)
{
	urn_sv_line_of(l, q->ctx);
	urn_sv_put(l, " conn=%u peer=%u epoch=%u path=%s", q->ibv.qp_num, q->peer.number,
		   q->c.epoch, urn_sv_path_name(q, q->c.path));
}

/*
 * Write a line. A log that takes no more is no reason for the program to fail, or to wait: a pipe
 * that is full loses the line, and one that nobody reads any more sends the program no SIGPIPE.
 */
static void
urn_sv_write(int fd, const char *line, size_t length)
{
	struct pollfd room = {.fd = fd, .events = POLLOUT};
	const struct timespec none = {0};
	sigset_t pipe, before, pending;

	if (poll(&room, 1, 0) != 1 || !(room.revents & POLLOUT) || sigpending(&pending) != 0)
		return;
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	if (pthread_sigmask(SIG_BLOCK, &pipe, &before) != 0)
		return;
	if (write(fd, line, length) < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE))
		(void)sigtimedwait(&pipe, NULL, &none);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void
urn_sv_line_end(struct urn_sv_line *l, const struct urn_sv_ctx *ctx)
{
	l->text[l->length++] = '\n';
	urn_sv_write(ctx->log_fd, l->text, l->length);
}

bool
urn_sv_logs(const struct urn_sv_qp *q)
{
	return q->ctx->log_fd >= 0 && !q->ctx->forked;
}

/* Write how many lines of a connection were left out since the last one. */
static void
urn_sv_log_out(struct urn_sv_qp *q)
{
	struct urn_sv_line l;

	if (q->lines.out == 0)
		return;
	urn_sv_line_conn(&l, q);
	urn_sv_put(&l, " left-out lines=%llu because there were too many",
		   (unsigned long long)q->lines.out);
	urn_sv_line_end(&l, q->ctx);
	q->lines.out = 0;
}

/* Begin a line of a connection, if the log takes one. last: one of the two lines of its death and
 * its end, for which there is always room. returns: false: the log takes none */
static bool
urn_sv_line_begin(struct urn_sv_line *l, struct urn_sv_qp *q, bool last)
{
	if (!last && !urn_sv_lines_take(&q->lines, urn_sv_now_ms()))
		return false;
	urn_sv_log_out(q);
	urn_sv_line_conn(l, q);
	return true;
}

void
urn_sv_log_device(const struct urn_sv_ctx *ctx, const char *format, ...)
{
	struct urn_sv_line l;
	char text[512];
	va_list args;

	if (ctx->log_fd < 0 || ctx->forked)
		return;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	urn_sv_line_of(&l, ctx);
	urn_sv_put(&l, " %s", text);
	urn_sv_line_end(&l, ctx);
}

void
urn_sv_log(struct urn_sv_qp *q, const char *format, ...)
{
	struct urn_sv_line l;
	char text[512];
	va_list args;

	if (!urn_sv_logs(q) || !urn_sv_line_begin(&l, q, false))
		return;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	urn_sv_put(&l, " %s", text);
	urn_sv_line_end(&l, q->ctx);
}

/* ---- lines of the machine */

/* Counters that are not 0, and control messages that were refused. */
static void
urn_sv_put_counts(struct urn_sv_line *l, const struct urn_sv_qp *q)
{
	for (uint32_t i = 0; i < URN_SESS_COUNTER_COUNT; i++)
		if (q->c.counter[i] != 0)
			urn_sv_put(l, " %s=%llu", urn_sv_counters[i],
				   (unsigned long long)q->c.counter[i]);
	for (uint32_t i = URN_SESS_V_OK + 1; i < URN_SESS_V_COUNT; i++)
		if (q->verdicts[i] != 0)
			urn_sv_put(l, " REFUSED_%s=%llu", urn_sv_verdicts[i],
				   (unsigned long long)q->verdicts[i]);
	if (q->unreadable != 0)
		urn_sv_put(l, " UNREADABLE=%llu", (unsigned long long)q->unreadable);
}

/* Write the counters of a connection. what: the line's first word; last: like urn_sv_line_begin()'s
 */
static void
urn_sv_log_counts(struct urn_sv_qp *q, const char *what, bool last)
{
	struct urn_sv_line l;

	if (!urn_sv_logs(q) || !urn_sv_line_begin(&l, q, last))
		return;
	urn_sv_put(&l, " %s", what);
	urn_sv_put_counts(&l, q);
	urn_sv_line_end(&l, q->ctx);
}

void
urn_sv_log_end(struct urn_sv_qp *q)
{
	urn_sv_log_counts(q, "end", true);
}

/* A step of the machine. arg: struct urn_sv_qp */
static void
urn_sv_log_step(void *arg, enum urn_sess_state from)
{
	struct urn_sv_qp *q = arg;
	const struct urn_sess_conn *c = &q->c;
	struct urn_sv_line l;

	/* A migration that begins anew before its end is counted from its first beginning. */
	if (from == URN_SESS_CONNECTED)
		q->left_ns = urn_clock_ns();
	if (!urn_sv_line_begin(&l, q, c->state == URN_SESS_DEAD)) {
		q->why = NULL;
		return;
	}
	urn_sv_put(&l, " step %s -> %s sent=%llu received=%llu next=%llu pending=%llu",
		   urn_sess_state_name(from), urn_sess_state_name(c->state),
		   (unsigned long long)c->sent, (unsigned long long)c->received,
		   (unsigned long long)c->next_id, (unsigned long long)(c->tail - c->head));
	if (c->state == URN_SESS_DEAD && c->reason != URN_SESS_ALIVE)
		urn_sv_put(&l, " because %s", urn_sess_reason_text(c->reason));
	else if (q->why != NULL)
		urn_sv_put(&l, " because %s", q->why);
	if (c->state == URN_SESS_MIGRATED)
		urn_sv_put(&l, " took us=%llu",
			   (unsigned long long)(urn_clock_ns() - q->left_ns) / 1000);
	urn_sv_line_end(&l, q->ctx);
	q->why = NULL;
	if (c->state == URN_SESS_CONNECTED)
		urn_sv_log_counts(q, "counts", false);
}

void
urn_sv_log_begin(struct urn_sv_qp *q)
{
	if (!urn_sv_logs(q))
		return;
	q->c.cfg.step = urn_sv_log_step;
	urn_sv_log(q, "begin paths=0x%x", q->c.alive);
}

static const char *
urn_sv_kind_name(uint32_t kind)
{
	switch (kind) {
	case URN_SESS_WIRE_REPORT:
		return "REPORT";
	case URN_SESS_WIRE_MIGRATED:
		return "MIGRATED";
	default:
		return "LEAVE";
	}
}

void
urn_sv_log_message(struct urn_sv_qp *q, const char *way, uint32_t kind,
		   const struct urn_sess_report *r)
{
	struct urn_sv_line l;

	if (!urn_sv_logs(q) || !urn_sv_line_begin(&l, q, false))
		return;
	urn_sv_put(&l, " %s %s of=%u", way, urn_sv_kind_name(kind), r->epoch);
	if (kind != URN_SESS_WIRE_MIGRATED)
		urn_sv_put(&l, " sent=%llu received=%llu sends=%llu", (unsigned long long)r->sent,
			   (unsigned long long)r->received, (unsigned long long)r->sends);
	if (kind == URN_SESS_WIRE_REPORT)
		urn_sv_put(&l, " paths=0x%x atomics=%llu%s%s%s%s", r->paths,
			   (unsigned long long)r->atomics,
			   r->flags & URN_SESS_R_READY ? " ready" : "",
			   r->flags & URN_SESS_R_LOG ? "" : " unrecorded",
			   r->flags & URN_SESS_R_UNSURE ? " unsure" : "",
			   r->flags & URN_SESS_R_DEAD ? " dead" : "");
	urn_sv_line_end(&l, q->ctx);
}

void
urn_sv_log_offer(struct urn_sv_qp *q, const char *way, uint32_t epoch,
		 const struct urn_sess_offer *o)
{
	/* Both ends know a path by its bit; names would begin with the adapter of the reader. */
	urn_sv_log(q, "%s OFFER of=%u paths=0x%x round=%u to=%u%s%s%s", way, epoch, 1u << o->path,
		   o->round, o->to, o->flags & URN_SESS_O_TRUSTED ? " trusted" : "",
		   o->flags & URN_SESS_O_KNOWN ? " known" : "",
		   o->flags & URN_SESS_O_LOST ? " lost" : "");
}

void
urn_sv_log_down(struct urn_sv_qp *q, uint32_t bit)
{
	if (urn_sv_logs(q) && (q->c.alive & 1u << bit))
		urn_sv_log(q, "lost path=%s because %s", urn_sv_path_name(q, bit),
			   q->why != NULL ? q->why : "its queue pair does not answer");
}

void
urn_sv_log_up(struct urn_sv_qp *q, uint32_t bit)
{
	if (urn_sv_logs(q))
		urn_sv_log(q, "trusted path=%s alive=%d", urn_sv_path_name(q, bit),
			   __builtin_popcount(q->c.alive));
}
