/* SPDX-License-Identifier: BSD-3-Clause */
#include "log/writer.h"

#include "log/log_priv.h"

#include "abi/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	TICK_MS = 100, /* between looks at engines' rings */
	PATIENCE_S = 3 /* for a disk, when the log stops */
};

/* ---- the file */

/* Open the file of the log. returns: a descriptor, or -1 with errno */
static int
open_file(const char *path)
{
	const int how =
		O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	int fd = open(path, how, 0640);
	struct stat st;

	if (fd < 0)
		return -1;
	/* Another user's file, or one with a second name, is not the log's to write. */
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
	    (st.st_uid == 0 || st.st_uid == geteuid()))
		return fd;
	close(fd);
	errno = EINVAL;
	return -1;
}

static const char *
why_not(int err)
{
	return err == ELOOP || err == EINVAL || err == ENXIO ? "a link, or no file of urnicd's"
							     : strerror(err);
}

/* True when two descriptors are of one file. */
static bool
same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/* Open the file again; the old one stays in use when that fails. */
static void
reopen(struct urn_log_writer *w)
{
	int fd = w->out.file[0] ? open_file(w->out.file) : -1;

	if (fd >= 0) {
		w->torn = w->torn && same_file(w->fd, fd);
		if (w->fd >= 0)
			close(w->fd);
		w->fd = fd;
		w->failed = false;
	} else if (w->out.file[0]) {
		fprintf(stderr, "%s: the log %s can't be opened again: %s; the old file goes on\n",
			w->out.name, w->out.file, why_not(errno));
	}
}

/* Write text to the file, whole. *torn: set when some of it is there. returns: false: errno says
 * why not */
static bool
put_text(int fd, const char *text, size_t n, bool *torn)
{
	while (n) {
		ssize_t done = write(fd, text, n);

		if (done < 0 && errno != EINTR)
			return false;
		*torn |= done > 0;
		text += done > 0 ? done : 0;
		n -= done > 0 ? (size_t)done : 0;
	}
	*torn = false;
	return true;
}

/* Write a line to the file, whole. A full disk may have cut the line before: then this one begins
 * on a new line all the same. returns: false: errno says why not */
static bool
put_file(struct urn_log_writer *w, const char *line, size_t n)
{
	return (!w->torn || put_text(w->fd, "\n", 1, &w->torn)) &&
	       put_text(w->fd, line, n, &w->torn);
}

static void
put_line(struct urn_log *log, const struct urn_log_entry *e)
{
	struct urn_log_writer *w = &log->w;
	char line[URN_LOG_LINE];
	size_t n = urn_log_line(e, w->out.priorities, w->out.name, &w->users, line);
	bool done = true;

	if (w->fd < 0)
		fputs(line, stderr);
	else
		done = put_file(w, line, n);
	if (done)
		atomic_fetch_add_explicit(&log->lines, 1, memory_order_relaxed);
	else
		atomic_fetch_add_explicit(&log->lost, 1, memory_order_relaxed);
	if (!done && !w->failed)
		fprintf(stderr, "%s: the log %s can't be written: %s; lines are lost\n",
			w->out.name, w->out.file, strerror(errno));
	w->failed = !done;
}

/* ---- records of engines */

/* Ask for a line of a program's. */
static bool
may(struct urn_log *log, enum urn_log_event event, const struct urn_log_who *who)
{
	bool pass;

	pthread_mutex_lock(&log->lock);
	pass = urn_log_limit_pass(&log->limit, event, who, urn_clock_ns());
	pthread_mutex_unlock(&log->lock);
	if (!pass)
		atomic_fetch_add_explicit(&log->more, 1, memory_order_relaxed);
	return pass;
}

static void
put_failure(struct urn_log *log, const struct urn_log_failure *f)
{
	struct urn_log_entry e = {
		.at = f->at, .event = URN_LOG_QP_ERROR, .has_who = true, .who = f->who};
	int n = snprintf(e.text, sizeof(e.text), "has an error on adapter %s: ", f->adapter);

	urn_failure_text(&f->f, f->port, false, e.text + n, sizeof(e.text) - (size_t)n);
	put_line(log, &e);
}

static void
put_left(struct urn_log *log, const struct urn_log_failure *f)
{
	struct urn_log_entry e = {
		.at = f->at, .event = URN_LOG_SESSION_LEFT, .has_who = true, .who = f->who};

	snprintf(e.text, sizeof(e.text),
		 "gave up %u queue pair%s of adapter %s, because urnicd was silent for too long: "
		 "its session goes on at its other adapter",
		 f->left, f->left == 1 ? "" : "s", f->adapter);
	put_line(log, &e);
}

/* Write a record, if the levels and the limits have room for it. */
static void
put_record(struct urn_log *log, const struct urn_log_failure *f)
{
	enum urn_log_event event = f->left ? URN_LOG_SESSION_LEFT : URN_LOG_QP_ERROR;

	if (!urn_log_shows(log, event) || !may(log, event, &f->who))
		return;
	if (f->left)
		put_left(log, f);
	else
		put_failure(log, f);
}

/* Count errors of a client for which its engine made no record. */
static void
add_more(struct urn_log *log, uint32_t client, uint32_t n)
{
	const struct urn_log_who *known = &log->w.known[client % URN_LOG_KNOWN];
	const struct urn_log_who *who = known->client == client ? known : NULL;

	pthread_mutex_lock(&log->lock);
	urn_log_limit_add(&log->limit, URN_LOG_QP_ERROR, who, n, urn_clock_ns());
	pthread_mutex_unlock(&log->lock);
	atomic_fetch_add_explicit(&log->more, n, memory_order_relaxed);
}

/* Write the records of an engine, at most as many as its ring has room for. */
static void
drain(struct urn_log *log, struct urn_log_ring *r)
{
	bool shown = urn_log_shows(log, URN_LOG_QP_ERROR);
	struct urn_log_failure f;
	uint32_t lost;

	for (unsigned int i = 0; i < URN_LOG_RING && urn_log_ring_take(r, &f); i++) {
		log->w.known[f.who.client % URN_LOG_KNOWN] = f.who;
		put_record(log, &f);
	}
	for (unsigned int i = 0; i < URN_LOG_FLOODS; i++) {
		uint32_t client, n = urn_log_ring_take_more(r, i, &client);

		if (n && shown)
			add_more(log, client, n);
	}
	lost = urn_log_ring_take_lost(r);
	if (shown)
		atomic_fetch_add_explicit(&log->lost, lost, memory_order_relaxed);
}

/* ---- the thread */

/* Write the numbers of events that were only counted, whose second is over. now: ns; UINT64_MAX:
 * all of them */
static void
put_more(struct urn_log *log, uint64_t now)
{
	struct urn_log_more more;
	struct urn_log_entry e;
	bool due;

	for (unsigned int i = 0; i < URN_LOG_NUMBERS; i++) {
		pthread_mutex_lock(&log->lock);
		due = urn_log_limit_due(&log->limit, now, &more);
		pthread_mutex_unlock(&log->lock);
		if (!due)
			return;
		urn_log_line_more(&more, &log->w.users, &e);
		put_line(log, &e);
	}
}

/* Say how many events found no room since this was said last. */
static void
put_lost(struct urn_log *log)
{
	uint64_t lost = atomic_load_explicit(&log->lost, memory_order_relaxed);
	struct urn_log_entry e = {.event = URN_LOG_LOST};

	if (lost == log->w.told_lost || log->w.failed || !urn_log_shows(log, URN_LOG_LOST))
		return;
	(void)clock_gettime(CLOCK_REALTIME, &e.at);
	snprintf(e.text, sizeof(e.text), "%llu events found no room and are missing here",
		 (unsigned long long)(lost - log->w.told_lost));
	log->w.told_lost = lost;
	put_line(log, &e);
}

/* Write all that has come. last: the log stops */
static void
write_all(struct urn_log *log, bool last)
{
	struct urn_log_entry e;

	if (atomic_exchange(&log->reopen, false))
		reopen(&log->w);
	pthread_mutex_lock(&log->tick_lock);
	if (log->tick)
		log->tick(log->tick_arg);
	pthread_mutex_unlock(&log->tick_lock);
	for (unsigned int i = 0; i < URN_LOG_QUEUE && urn_log_next(log, &e); i++)
		put_line(log, &e);
	for (unsigned int i = 0; i < log->rings; i++)
		drain(log, &log->ring[i]);
	put_more(log, last ? UINT64_MAX : urn_clock_ns());
	put_lost(log);
}

/* Wait until something is said, or for a tick. returns: true: the log stops */
static bool
await(struct urn_log *log)
{
	struct timespec until;
	bool stop;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += TICK_MS * 1000000l;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&log->lock);
	while (log->n == 0 && !log->stop &&
	       pthread_cond_timedwait(&log->some, &log->lock, &until) == 0)
		;
	stop = log->stop;
	pthread_mutex_unlock(&log->lock);
	return stop;
}

static void *
writer_thread(void *arg)
{
	struct urn_log *log = arg;

	while (!await(log))
		write_all(log, false);
	write_all(log, true);
	return NULL;
}

int
urn_log_start(struct urn_log *log, const struct urn_log_out *out, char *why, size_t size)
{
	struct urn_log_writer *w = &log->w;
	sigset_t every, before;
	int rc;

	w->out = *out;
	if (out->file[0]) {
		w->fd = open_file(out->file);
		if (w->fd < 0) {
			snprintf(why, size, "the log %s can't be opened: %s", out->file,
				 why_not(errno));
			return -1;
		}
	}
	sigfillset(&every);
	pthread_sigmask(SIG_SETMASK, &every, &before);
	rc = pthread_create(&w->thread, NULL, writer_thread, log);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0) {
		snprintf(why, size, "no thread for the log: %s", strerror(rc));
		if (w->fd >= 0)
			close(w->fd);
		w->fd = -1;
		return -1;
	}
	w->running = true;
	(void)pthread_setname_np(w->thread, "urnic-log");
	return 0;
}

void
urn_log_stop(struct urn_log *log)
{
	struct timespec until;

	if (!log || !log->w.running)
		return;
	pthread_mutex_lock(&log->lock);
	log->stop = true;
	pthread_cond_signal(&log->some);
	pthread_mutex_unlock(&log->lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	if (pthread_timedjoin_np(log->w.thread, NULL, &until) != 0) {
		pthread_detach(log->w.thread);
		return; /* the thread goes on using the log, which must not be freed */
	}
	log->w.running = false;
	if (log->w.fd >= 0)
		close(log->w.fd);
	log->w.fd = -1;
}

void
urn_log_set_tick(struct urn_log *log, urn_log_tick_fn *tick, void *arg)
{
	if (!log)
		return;
	pthread_mutex_lock(&log->tick_lock);
	log->tick = tick;
	log->tick_arg = arg;
	pthread_mutex_unlock(&log->tick_lock);
}

void
urn_log_reopen(struct urn_log *log)
{
	if (log)
		atomic_store(&log->reopen, true);
}
