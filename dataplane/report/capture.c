/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/capture.h"

#include "control/objects.h"
#include "log/log.h"
#include "near.h"
#include "pmd_glue/capture.h"
#include "report/capture_qp.h"
#include "wire/hdr.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READER_MS 1000 /* for a slow reader of a pipe, when a capture is stopped */

/* Totals of captures. */
struct totals {
	uint64_t frames, bytes, dropped;
};

struct urn_captures {
	int dir;	   /* O_PATH; owned */
	struct urn_dp *dp; /* NULL: no engine polls */
	unsigned int ports;
	struct urn_port *port[RTE_MAX_ETHPORTS]; /* owner: the caller */
	char name[RTE_MAX_ETHPORTS][32];
	pthread_mutex_t lock;		/* protects the fields below */
	struct urn_capture *running;	/* NULL: none */
	struct urn_capture_qps qps;	/* filter of the running capture, if it has one */
	struct urn_capture_status last; /* status of the running capture, or of the last one */
	bool end_told;			/* the log has the end of that capture */
	bool at_limit; /* it ended at its limit, or its reader left; valid with last.ended */
	struct totals sum;		/* all captures before the running one */
	struct totals told;		/* totals that were given last; atomic */
};

struct urn_captures *
urn_captures_create(const char *dir, struct urn_dp *dp, struct urn_err *err)
{
	struct urn_captures *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		urn_err_set(err, "no memory for captures");
		return NULL;
	}
	c->dp = dp;
	c->dir = open(dir[0] != '\0' ? dir : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (c->dir < 0) {
		urn_err_set(err, "capture_dir %.150s: %s%s", dir[0] != '\0' ? dir : ".",
			    strerror(errno),
			    errno == EMFILE || errno == ENFILE
				    ? ""
				    : "; make that folder, or name another");
		free(c);
		return NULL;
	}
	pthread_mutex_init(&c->lock, NULL);
	return c;
}

void
urn_captures_destroy(struct urn_captures *c)
{
	struct urn_err err;

	if (c == NULL)
		return;
	(void)urn_capture_stop(c, NULL, &err);
	pthread_mutex_destroy(&c->lock);
	close(c->dir);
	free(c);
}

int
urn_captures_add(struct urn_captures *c, const char *name, struct urn_port *port,
		 struct urn_err *err)
{
	if (c->ports == RTE_MAX_ETHPORTS || strlen(name) >= sizeof(c->name[0])) {
		urn_err_set(err, "%.32s can't be captured: too many ports, or too long a name",
			    name);
		return -1;
	}
	snprintf(c->name[c->ports], sizeof(c->name[0]), "%s", name);
	c->port[c->ports++] = port;
	return 0;
}

uint64_t
urn_captures_mbufs(void)
{
	return urn_capture_mbufs();
}

/* ---- names */

/* Check that a name stays in the folder, and can be typed and printed. */
static int
check_name(const char *file, struct urn_err *err)
{
	static const char good[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.+";
	size_t n = strlen(file);

	if (n > 0 && n < URN_CAPTURE_FILE && file[0] != '.' && strspn(file, good) == n &&
	    strcmp(file, URN_CAPTURE_PIPE) != 0)
		return 0;
	urn_err_set(err,
		    "'%.100s' is no name for a capture: give 1 to %d letters, digits, '_', '-', "
		    "'+' and '.', no '.' first; it goes to capture_dir",
		    file, URN_CAPTURE_FILE - 1);
	return -1;
}

/* Find a port by name. returns: its index; -1: all; -2 with *err: there is no port with that name */
static int
find_port(const struct urn_captures *c, const char *name, struct urn_err *err)
{
	char all[128] = "", mean[URN_NEAR_HINT];
	struct urn_near near;

	if (name == NULL || name[0] == '\0')
		return -1;
	urn_near_begin(&near, name);
	for (unsigned int i = 0; i < c->ports; i++) {
		size_t used = strlen(all);

		if (strcmp(c->name[i], name) == 0)
			return (int)i;
		urn_near_try(&near, c->name[i]);
		if (used + strlen(c->name[i]) + 8 < sizeof(all))
			snprintf(all + used, sizeof(all) - used, "%s%s", i > 0 ? ", " : "", c->name[i]);
	}
	urn_err_set(err, "'%.31s' is no port that can be captured; %sthere are: %s", name,
		    urn_near_mean(&near, mean), all);
	return -2;
}

static void
nothing(void *arg)
{
	(void)arg;
}

void
urn_captures_quiesce(void *dp)
{
	const struct urn_dp *d = dp;

	for (unsigned int i = 0; i < d->engines_n; i++)
		urn_engine_call(d->engine[i], nothing, NULL);
}

/* Update the status of the running capture. c->lock is held. */
static void
look(struct urn_captures *c)
{
	struct urn_capture_info info;

	if (c->running == NULL)
		return;
	urn_capture_info(c->running, &info);
	c->last.frames = info.frames;
	c->last.bytes = info.bytes;
	c->last.dropped = info.dropped;
	c->last.ended = info.full || info.error != 0;
	c->at_limit = info.full;
	if (info.error != 0)
		snprintf(c->last.failure, sizeof(c->last.failure), "%s can't be written: %s",
			 c->last.file, urn_capture_why(info.error));
}

/* The log of events. NULL: none */
static struct urn_log *
log_of(const struct urn_captures *c)
{
	return c->dp ? c->dp->log : NULL;
}

/* Name of the place that the last capture was written to. */
static const char *
place_of(const struct urn_captures *c)
{
	return strcmp(c->last.file, URN_CAPTURE_PIPE) == 0 ? "the standard output of urnicctl"
							   : c->last.file;
}

/* Let the log know that a capture has begun. c->lock is held. */
static void
tell_begin(struct urn_captures *c)
{
	char at[40], where[256];
	ssize_t n;

	c->end_told = false;
	snprintf(at, sizeof(at), "/proc/self/fd/%d", c->dir);
	n = strcmp(c->last.file, URN_CAPTURE_PIPE) != 0 ? readlink(at, where, sizeof(where) - 1)
							: 0;
	where[n > 0 ? n : 0] = '\0';
	urn_log_say(log_of(c), URN_LOG_CAPTURE_BEGAN, NULL, "frames of %s%s go to %s%s%s",
		    c->last.port[0] ? "port " : "all ports", c->last.port, place_of(c),
		    n > 0 ? " in " : "", where);
}

/* The reason why the capture ended. */
static const char *
why_ended(const struct urn_captures *c)
{
	if (c->last.failure[0] != '\0')
		return c->last.failure;
	if (!c->at_limit)
		return "stopped by a command, or with urnicd";
	return strcmp(c->last.file, URN_CAPTURE_PIPE) == 0
		       ? "its reader left, or its limit is reached"
		       : "its limit is reached";
}

/* Let the log know that the capture has ended, once. c->lock is held. */
static void
tell_end(struct urn_captures *c)
{
	const struct urn_capture_status *st = &c->last;
	bool failed = st->failure[0] != '\0';

	if (!st->ended || c->end_told)
		return;
	c->end_told = true;
	urn_log_say(
		log_of(c), failed ? URN_LOG_CAPTURE_FAILED : URN_LOG_CAPTURE_ENDED, NULL,
		"the capture of %s%s to %s ended with %llu frames, %llu bytes; %llu frames were "
		"dropped: %s",
		st->port[0] ? "port " : "all ports", st->port, place_of(c),
		(unsigned long long)st->frames, (unsigned long long)st->bytes,
		(unsigned long long)st->dropped, why_ended(c));
}

/* True when a pipe is the file, and the caller takes its other end. */
static bool
wants_pipe(const struct urn_capture_order *o)
{
	return o->pipe && strcmp(o->file, URN_CAPTURE_PIPE) == 0;
}

/* Make the file, or the pipe. returns: the end for the writer, or -1 with *err */
static int
make(struct urn_captures *c, const struct urn_capture_order *o, struct urn_err *err)
{
	int fd, ends[2];

	if (wants_pipe(o)) {
		/* Readers may be anybody: the end that stays here must never wait. */
		if (pipe2(ends, O_CLOEXEC) != 0) {
			urn_err_set(err, "no pipe for the capture: %s", strerror(errno));
			return -1;
		}
		(void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
		*o->pipe = ends[0];
		return ends[1];
	}
	/* Never a file that exists: no link is followed, nothing is overwritten. */
	fd = openat(c->dir, o->file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		urn_err_set(err, "%s can't be made in capture_dir: %s%s", o->file, strerror(errno),
			    errno == EEXIST ? "; choose another name" : "");
	return fd;
}

/* Undo make(). */
static void
unmake(struct urn_captures *c, const struct urn_capture_order *o)
{
	if (!wants_pipe(o)) {
		(void)unlinkat(c->dir, o->file, 0);
		return;
	}
	close(*o->pipe);
	*o->pipe = -1;
}

static int
begin(struct urn_captures *c, int port, const struct urn_capture_order *o, struct urn_err *err)
{
	struct urn_capture_config cfg = {
		.path = o->file,
		.ports = port < 0 ? c->port : &c->port[port],
		.n = port < 0 ? c->ports : 1,
		.max_frames = o->max_frames,
		.max_bytes = o->max_bytes,
		.snap = o->snap,
		.filter = o->by_qpn ? urn_capture_qps_want : NULL,
		.filter_arg = &c->qps,
		.quiesce = c->dp != NULL ? urn_captures_quiesce : NULL,
		.quiesce_arg = c->dp,
		/* The thread that stops a capture holds the lock meanwhile. */
		.patience_ms = READER_MS,
	};

	cfg.fd = make(c, o, err);
	if (cfg.fd < 0)
		return -1;
	c->running = urn_capture_begin(&cfg, err);
	if (c->running == NULL) {
		unmake(c, o);
		return -1;
	}
	memset(&c->last, 0, sizeof(c->last));
	snprintf(c->last.file, sizeof(c->last.file), "%s", o->file);
	if (port >= 0)
		snprintf(c->last.port, sizeof(c->last.port), "%s", c->name[port]);
	tell_begin(c);
	return 0;
}

/* ---- start and stop */

static void
add(struct totals *t, const struct urn_capture_info *info)
{
	t->frames += info->frames;
	t->bytes += info->bytes;
	t->dropped += info->dropped;
}

/* End the running capture. c->lock is held. returns: 0, or -1 with *err: its file is not whole */
static int
finish(struct urn_captures *c, struct urn_err *err)
{
	struct urn_capture_info info;
	int rc = urn_capture_finish(c->running, &info, err);

	c->running = NULL;
	c->last.frames = info.frames;
	c->last.bytes = info.bytes;
	c->last.dropped = info.dropped;
	c->last.ended = true;
	c->at_limit = info.full;
	add(&c->sum, &info);
	if (rc != 0)
		memcpy(c->last.failure, err->text, sizeof(c->last.failure));
	tell_end(c);
	return rc;
}

/* returns: 0, or -1 with *err: a bound is broken */
static int
check_bounds(const struct urn_capture_order *o, struct urn_err *err)
{
	if (o->snap != 0 && (o->snap < URN_CAPTURE_SNAP_LEAST || o->snap > URN_CAPTURE_SNAP_MOST)) {
		urn_err_set(err, "snap is from %d to %d bytes of a frame, not %u",
			    URN_CAPTURE_SNAP_LEAST, URN_CAPTURE_SNAP_MOST, o->snap);
		return -1;
	}
	if (o->by_qpn && (o->qpn == 0 || o->qpn >= URN_QPN_MULTICAST)) {
		urn_err_set(err,
			    "queue pairs have the numbers 1 to %u, not %u; 'show qp' lists them",
			    URN_QPN_MULTICAST - 1, o->qpn);
		return -1;
	}
	return 0;
}

/* returns: 0, or -1 with *err: another capture is in the way. c->lock is held */
static int
give_way(struct urn_captures *c, struct urn_err *err)
{
	look(c);
	/* A capture that ended by itself gives way; one that failed waits until its failure is asked for. */
	if (c->running != NULL && c->last.ended && c->last.failure[0] == '\0')
		(void)finish(c, err);
	if (c->running == NULL)
		return 0;
	if (c->last.ended)
		urn_err_set(err, "%s; stop that capture first", c->last.failure);
	else if (strcmp(c->last.file, URN_CAPTURE_PIPE) == 0)
		urn_err_set(err, "another urnicctl reads a capture; stop that first");
	else
		urn_err_set(err, "%s is being captured; stop that first", c->last.file);
	return -1;
}

int
urn_capture_start_order(struct urn_captures *c, const struct urn_capture_order *o,
			struct urn_err *err)
{
	int which = find_port(c, o->port, err), rc = -1;
	struct urn_capture_qps qps = {0};

	if (which < -1 || check_bounds(o, err) != 0 ||
	    (strcmp(o->file, URN_CAPTURE_PIPE) != 0 && check_name(o->file, err) != 0))
		return -1;
	/* Adapters' locks may be waited for, so not under c->lock. */
	if (o->by_qpn && urn_capture_qps_find(&qps, c->dp, o->qpn, err) != 0)
		return -1;
	pthread_mutex_lock(&c->lock);
	if (c->ports == 0) {
		urn_err_set(err, "there is no port to capture");
	} else if (give_way(c, err) == 0) {
		c->qps = qps;
		rc = begin(c, which, o, err);
	}
	pthread_mutex_unlock(&c->lock);
	return rc;
}

int
urn_capture_start(struct urn_captures *c, const char *port, const char *file, uint64_t max_frames,
		  uint64_t max_bytes, struct urn_err *err)
{
	const struct urn_capture_order o = {
		.port = port, .file = file, .max_frames = max_frames, .max_bytes = max_bytes};

	/* This call has no place for a pipe: "-" is no name. */
	if (check_name(file, err) != 0)
		return -1;
	return urn_capture_start_order(c, &o, err);
}

int
urn_capture_stop(struct urn_captures *c, struct urn_capture_status *last, struct urn_err *err)
{
	int rc = -1;

	pthread_mutex_lock(&c->lock);
	if (c->running == NULL)
		urn_err_set(err, "no capture is running");
	else
		rc = finish(c, err);
	if (last != NULL)
		*last = c->last;
	pthread_mutex_unlock(&c->lock);
	return rc;
}

void
urn_capture_status(struct urn_captures *c, struct urn_capture_status *st)
{
	pthread_mutex_lock(&c->lock);
	look(c);
	*st = c->last;
	st->running = c->running != NULL;
	pthread_mutex_unlock(&c->lock);
}

void
urn_captures_watch(struct urn_captures *c)
{
	if (pthread_mutex_trylock(&c->lock) != 0)
		return;
	look(c);
	tell_end(c);
	pthread_mutex_unlock(&c->lock);
}

void
urn_capture_totals(struct urn_captures *c, struct urn_capture_status *sum)
{
	struct urn_capture_info info = {0};
	struct totals now;

	/* A capture that is being ended may wait for its disk: never wait for that. */
	if (pthread_mutex_trylock(&c->lock) == 0) {
		if (c->running != NULL)
			urn_capture_info(c->running, &info);
		now = c->sum;
		add(&now, &info);
		__atomic_store(&c->told.frames, &now.frames, __ATOMIC_RELAXED);
		__atomic_store(&c->told.bytes, &now.bytes, __ATOMIC_RELAXED);
		__atomic_store(&c->told.dropped, &now.dropped, __ATOMIC_RELAXED);
		pthread_mutex_unlock(&c->lock);
	}
	memset(sum, 0, sizeof(*sum));
	sum->frames = __atomic_load_n(&c->told.frames, __ATOMIC_RELAXED);
	sum->bytes = __atomic_load_n(&c->told.bytes, __ATOMIC_RELAXED);
	sum->dropped = __atomic_load_n(&c->told.dropped, __ATOMIC_RELAXED);
}
