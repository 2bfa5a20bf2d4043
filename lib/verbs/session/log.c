/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log of steps (doc/reference/sessions.md): a line for each step of a connection, as the log of
 * events of urnicd has them: time, level, event and a sentence; the numbers stand behind a bar. A
 * line is written by one call, so lines of several programs in one file stay whole. All is written
 * with the context's lock held; without a log nothing but a descriptor is looked at. A connection's
 * lines are bounded (lines.h), and the next one that is written tells how many were left out.
 */
#include "verbs/session/log.h"

#include "abi/clock.h"
#include "verbs/front.h"
#include "verbs/session/heal.h"

#include <arpa/inet.h>
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

enum {
	URN_SV_LINE = 1536, /* bytes of a line, at most */
	URN_SV_TEXT = 640,  /* bytes of its sentence, or of its numbers, NUL included */
};

/* A line that is being put together. */
struct urn_sv_line {
	char text[URN_SV_LINE];
	size_t length; /* characters in text, below URN_SV_LINE */
};

static const struct {
	enum urn_log_level level;
	const char *word;
} urn_sv_events[URN_SV_EVENT_COUNT] = {
#define X(id, level, word, text) [URN_SV_E_##id] = {URN_LOG_##level, (word)},
	URN_SV_EVENTS(X)
#undef X
};

static const char *const urn_sv_states[URN_SESS_STATE_COUNT] = {
#define X(name, meaning) [URN_SESS_##name] = (meaning),
	URN_SESS_STATES(X)
#undef X
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
urn_sv_log_open(const char *text, int *fd, bool *journal)
{
	*fd = -1;
	*journal = false;
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
	*journal = *fd >= 0 && strcmp(text, "stderr") == 0 && urn_log_is_journal(*fd);
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

/* A path in words. */
static void
urn_sv_put_path(struct urn_sv_line *l, struct urn_sv_qp *q, uint32_t bit)
{
	const char *name = urn_sv_path_name(q, bit);

	urn_sv_put(l, "from the %s adapter here to the %s one of its peer",
		   name[0] == 'P' ? "primary" : "backup", name[2] == 'P' ? "primary" : "backup");
}

/* Begin a line with the time, the device, the level and the event. */
static void
urn_sv_line_of(struct urn_sv_line *l, const struct urn_sv_ctx *ctx, enum urn_sv_event event)
{
	enum urn_log_level level = urn_sv_events[event].level;
	struct timespec now;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	l->length = 0;
	if (ctx->log_journal)
		urn_sv_put(l, "<%d>", urn_log_level_priority(level));
	urn_sv_put(l, "%04d-%02d-%02dT%02d:%02d:%02d.%06ldZ session[%d.%u] %s session %s: ",
		   tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
		   now.tv_nsec / 1000, (int)getpid(), ctx->log_number, urn_log_level_word(level),
		   urn_sv_events[event].word);
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

/* True when the log takes lines of an event. */
static bool
urn_sv_shows(const struct urn_sv_ctx *ctx, enum urn_sv_event event)
{
	return ctx->log_fd >= 0 && !ctx->forked && urn_sv_events[event].level <= ctx->options.log;
}

bool
urn_sv_logs(const struct urn_sv_qp *q)
{
	return q->ctx->log_fd >= 0 && !q->ctx->forked;
}

/* Write a line of a connection: the sentence, then all that names the connection and its state,
 * then the numbers. */
static void
urn_sv_line(struct urn_sv_qp *q, enum urn_sv_event event, const char *sentence, const char *numbers)
{
	struct urn_sv_line l;

	urn_sv_line_of(&l, q->ctx, event);
	urn_sv_put(&l, "connection %u to %u %s | conn=%u peer=%u epoch=%u path=%s %s",
		   q->ibv.qp_num, q->peer.number, sentence, q->ibv.qp_num, q->peer.number,
		   q->c.epoch, urn_sv_path_name(q, q->c.path), numbers);
	urn_sv_line_end(&l, q->ctx);
}

/* Write how many lines of a connection were left out since the last one. */
static void
urn_sv_log_out(struct urn_sv_qp *q)
{
	unsigned long long n = q->lines.out;
	char sentence[80], numbers[80];

	if (n == 0 || !urn_sv_shows(q->ctx, URN_SV_E_LEFT_OUT))
		return;
	snprintf(sentence, sizeof(sentence), "had %llu lines more than may be: they are left out",
		 n);
	snprintf(numbers, sizeof(numbers), "left-out lines=%llu because there were too many", n);
	urn_sv_line(q, URN_SV_E_LEFT_OUT, sentence, numbers);
	q->lines.out = 0;
}

/* True when the log takes a line of a connection, which the caller then writes. For the two lines
 * of its death and its end there is always room. */
static bool
urn_sv_takes(struct urn_sv_qp *q, enum urn_sv_event event)
{
	bool last = event == URN_SV_E_DEAD || event == URN_SV_E_END;

	if (!urn_sv_shows(q->ctx, event) ||
	    (!last && !urn_sv_lines_take(&q->lines, urn_sv_now_ms())))
		return false;
	urn_sv_log_out(q);
	return true;
}

void
urn_sv_log_device(const struct urn_sv_ctx *ctx, enum urn_sv_event event, const char *format, ...)
{
	struct urn_sv_line l;
	char text[URN_SV_TEXT];
	va_list args;

	if (!urn_sv_shows(ctx, event))
		return;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	urn_sv_line_of(&l, ctx, event);
	urn_sv_put(&l, "%s", text);
	urn_sv_line_end(&l, ctx);
}

void
urn_sv_log(struct urn_sv_qp *q, enum urn_sv_event event, const char *format, ...)
{
	char text[URN_SV_TEXT], *numbers;
	va_list args;

	if (!urn_sv_takes(q, event))
		return;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	numbers = strchr(text, '\t');
	if (numbers != NULL)
		*numbers++ = '\0';
	urn_sv_line(q, event, text, numbers != NULL ? numbers : "");
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

/* Write the counters of a connection. */
static void
urn_sv_log_counts(struct urn_sv_qp *q, enum urn_sv_event event, const char *sentence)
{
	struct urn_sv_line l = {.length = 0};

	if (!urn_sv_takes(q, event))
		return;
	urn_sv_put(&l, "%s", urn_sv_events[event].word);
	urn_sv_put_counts(&l, q);
	urn_sv_line(q, event, sentence, l.text);
}

void
urn_sv_log_end(struct urn_sv_qp *q)
{
	urn_sv_log_counts(q, URN_SV_E_END, "ends");
}

/* The event that a change of state is. */
static enum urn_sv_event
urn_sv_event_of(enum urn_sess_state from, enum urn_sess_state to)
{
	if (to == URN_SESS_DEAD)
		return URN_SV_E_DEAD;
	if (to == URN_SESS_MIGRATED)
		return URN_SV_E_MOVED;
	return from == URN_SESS_CONNECTED ? URN_SV_E_STOPS : URN_SV_E_STEP;
}

/* Put the sentence of a change of state. us: since the connection left CONNECTED */
static void
urn_sv_put_step(struct urn_sv_line *l, struct urn_sv_qp *q, enum urn_sv_event event,
		const char *because, uint64_t us)
{
	if (event == URN_SV_E_MOVED) {
		urn_sv_put(l, "moved to its path ");
		urn_sv_put_path(l, q, q->c.path);
		urn_sv_put(l, " in %llu.%llu ms", (unsigned long long)us / 1000,
			   (unsigned long long)us % 1000 / 100);
		return;
	}
	if (event == URN_SV_E_STEP)
		urn_sv_put(l, "is %s: %s", urn_sess_state_name(q->c.state),
			   urn_sv_states[q->c.state]);
	else
		urn_sv_put(l, event == URN_SV_E_DEAD ? "is dead" : "stops, to move");
	if (because != NULL)
		urn_sv_put(l, ", because %s", because);
}

/* A step of the machine. arg: struct urn_sv_qp */
static void
urn_sv_log_step(void *arg, enum urn_sess_state from)
{
	struct urn_sv_qp *q = arg;
	const struct urn_sess_conn *c = &q->c;
	enum urn_sv_event event = urn_sv_event_of(from, c->state);
	struct urn_sv_line sentence = {.length = 0}, l = {.length = 0};
	const char *because = q->why;
	uint64_t us;

	/* A migration that begins anew before its end is counted from its first beginning. */
	if (from == URN_SESS_CONNECTED)
		q->left_ns = urn_clock_ns();
	q->why = NULL;
	if (!urn_sv_takes(q, event))
		return;
	us = (urn_clock_ns() - q->left_ns) / 1000;
	if (c->state == URN_SESS_DEAD && c->reason != URN_SESS_ALIVE)
		because = urn_sess_reason_text(c->reason);
	urn_sv_put_step(&sentence, q, event, because, us);
	urn_sv_put(&l, "step %s -> %s sent=%llu received=%llu next=%llu pending=%llu",
		   urn_sess_state_name(from), urn_sess_state_name(c->state),
		   (unsigned long long)c->sent, (unsigned long long)c->received,
		   (unsigned long long)c->next_id, (unsigned long long)(c->tail - c->head));
	if (because != NULL)
		urn_sv_put(&l, " because %s", because);
	if (c->state == URN_SESS_MIGRATED)
		urn_sv_put(&l, " took us=%llu", (unsigned long long)us);
	urn_sv_line(q, event, sentence.text, l.text);
	if (c->state == URN_SESS_CONNECTED)
		urn_sv_log_counts(q, URN_SV_E_COUNTS, "is whole again, and has counted");
}

void
urn_sv_log_begin(struct urn_sv_qp *q)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	const uint8_t *gid = q->path[0].gid; /* the peer's primary adapter */
	bool v4 = memcmp(gid, mapped, sizeof(mapped)) == 0;
	char peer[INET6_ADDRSTRLEN];

	if (!urn_sv_logs(q))
		return;
	q->c.cfg.step = urn_sv_log_step;
	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? gid + 12 : gid, peer, sizeof(peer));
	urn_sv_log(q, URN_SV_E_BEGIN, "has a session with %s\tbegin paths=0x%x", peer, q->c.alive);
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

/* Words for the way of a message. */
static const char *
urn_sv_way(const char *way)
{
	return strcmp(way, "tell") == 0 ? "tells its peer" : "hears of its peer";
}

void
urn_sv_log_message(struct urn_sv_qp *q, const char *way, uint32_t kind,
		   const struct urn_sess_report *r)
{
	struct urn_sv_line l = {.length = 0};
	char sentence[64];

	if (!urn_sv_takes(q, URN_SV_E_MESSAGE))
		return;
	snprintf(sentence, sizeof(sentence), "%s: %s", urn_sv_way(way), urn_sv_kind_name(kind));
	urn_sv_put(&l, "%s %s of=%u", way, urn_sv_kind_name(kind), r->epoch);
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
	urn_sv_line(q, URN_SV_E_MESSAGE, sentence, l.text);
}

void
urn_sv_log_offer(struct urn_sv_qp *q, const char *way, uint32_t epoch,
		 const struct urn_sess_offer *o)
{
	/* Both ends know a path by its bit; names would begin with the adapter of the reader. */
	urn_sv_log(q, URN_SV_E_MESSAGE, "%s: OFFER\t%s OFFER of=%u paths=0x%x round=%u to=%u%s%s%s",
		   urn_sv_way(way), way, epoch, 1u << o->path, o->round, o->to,
		   o->flags & URN_SESS_O_TRUSTED ? " trusted" : "",
		   o->flags & URN_SESS_O_KNOWN ? " known" : "",
		   o->flags & URN_SESS_O_LOST ? " lost" : "");
}

void
urn_sv_log_down(struct urn_sv_qp *q, uint32_t bit)
{
	const char *why = q->why != NULL ? q->why : "its queue pair does not answer";
	struct urn_sv_line l = {.length = 0};

	if (!urn_sv_logs(q) || !(q->c.alive & 1u << bit))
		return;
	urn_sv_put_path(&l, q, bit);
	urn_sv_log(q, URN_SV_E_LOST, "lost its path %s, because %s\tlost path=%s because %s",
		   l.text, why, urn_sv_path_name(q, bit), why);
}

void
urn_sv_log_up(struct urn_sv_qp *q, uint32_t bit)
{
	int alive = __builtin_popcount(q->c.alive);
	struct urn_sv_line l = {.length = 0};

	if (!urn_sv_logs(q))
		return;
	urn_sv_put_path(&l, q, bit);
	urn_sv_log(q, URN_SV_E_TRUSTED,
		   "trusts its path %s again, and has %d of 4\ttrusted path=%s alive=%d", l.text,
		   alive, urn_sv_path_name(q, bit), alive);
}
