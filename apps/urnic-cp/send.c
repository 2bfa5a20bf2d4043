/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A chunk goes through its slot in this order:
 *
 *   free -> being read -> read -> posted -> hashed and written -> free
 *         (I/O thread)
 *
 * Sequence numbers run over the whole transfer; slot = number mod slots. Four
 * numbers separate the states:  freed <= hashed <= posted <= read.
 */
#include "send.h"

#include "common/clock.h"
#include "common/text.h"
#include "digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct chunk {
	struct cp_job job; /* first: the I/O thread gets it by this address */
	const struct cp_source *src;
	int fd;
	uint8_t *buf;       /* the slot */
	uint32_t len;       /* bytes */
	uint32_t hashed;    /* bytes hashed so far */
	uint64_t offset;    /* offset in the file */
	bool last;          /* the file's last chunk */
	bool written;       /* the chunk's WRITE completed */
	int rc;             /* result of reading; valid when the job is done */
	struct urn_err err; /* when rc is not 0 */
	uint64_t posted_ns;
};

struct sender {
	struct cp_ends *ends;
	const struct cp_opts *opts;
	struct cp_result *res;
	struct chunk *chunk;   /* one for each slot */
	uint64_t read, posted, hashed, freed; /* sequence numbers, see above */
	uint64_t written;      /* next WRITE to complete */
	uint64_t credit;       /* chunks that the receiver has finished */
	struct cp_digest digest;
	_Atomic uint64_t moved; /* bytes whose WRITEs are complete; read by the failover's thread */
	uint64_t total;		/* bytes of all files */
	uint64_t kill_at;	/* value of moved at which the adapter is to be lost */
	struct urn_progress bar;
	uint64_t before;       /* bytes of the files before this one */
	/* The file being sent. */
	struct cp_source *src;
	uint32_t number;
	int fd;
	uint64_t offset;       /* next byte to be read */
	bool stop;             /* send no more chunks: the file failed on one side */
	bool judged;           /* the verdict is in */
	struct cp_msg verdict; /* valid when judged */
};

static struct chunk *
chunk_of(struct sender *s, uint64_t seq)
{
	return &s->chunk[seq % s->opts->depth];
}

/* ---- messages of the receiver */

/* Count bytes that are at the receiver, and have the adapter lost at its point. */
static void
count(struct sender *s, uint32_t bytes)
{
	uint64_t moved = atomic_load_explicit(&s->moved, memory_order_relaxed) + bytes;

	atomic_store_explicit(&s->moved, moved, memory_order_relaxed);
	if (s->res->failover != NULL && moved >= s->kill_at)
		urn_failover_now(s->res->failover);
}

static int
on_written(struct sender *s, uint32_t seq, struct urn_err *err)
{
	struct chunk *c = chunk_of(s, s->written);

	if (s->written == s->posted || seq != (uint32_t)s->written) {
		urn_err_set(err, "chunk %u completed out of turn.", seq);
		return -1;
	}
	c->written = true;
	count(s, c->len);
	urn_hist_add(&s->res->latency, urn_clock_ns() - c->posted_ns);
	s->res->messages++;
	s->written++;
	return 0;
}

static int
on_msg(struct sender *s, const struct cp_msg *msg, struct urn_err *err)
{
	switch (msg->type) {
	case CP_MSG_CREDIT:
		if (msg->credit.done < s->credit || msg->credit.done > s->posted)
			break;
		s->credit = msg->credit.done;
		return 0;
	case CP_MSG_VERDICT:
		if (s->src == NULL || s->judged || msg->file != s->number)
			break;
		s->verdict = *msg;
		s->judged = true;
		return 0;
	default:
		break;
	}
	urn_err_set(err, "the receiver broke the protocol (message kind %d, file %u).", msg->type,
		    msg->file);
	return -1;
}

/* returns: number of events handled, or -1 with *err */
static int
drain(struct sender *s, struct urn_err *err)
{
	struct cp_event ev;
	int n, rc = 0;

	for (n = 0; n < 64; n++) {
		int got = cp_ends_event(s->ends, &ev, err);

		if (got <= 0)
			return got < 0 ? -1 : n;
		if (ev.type == CP_EV_WRITTEN) {
			rc = on_written(s, ev.seq, err);
		} else if (ev.type == CP_EV_MSG) {
			rc = on_msg(s, &ev.msg, err);
		} else {
			urn_err_set(err, "the receiver sent data to the sender.");
			rc = -1;
		}
		if (rc != 0)
			return -1;
	}
	return n;
}

/* ---- the way of a chunk */

static void
read_chunk(struct cp_job *job)
{
	struct chunk *c = (struct chunk *)job;

	c->rc = cp_source_read(c->src, c->fd, c->buf, c->len, c->offset, c->last, &c->err);
}

/* Start reading the next chunk, if there is one and a slot for it. */
static unsigned int
start_reading(struct sender *s)
{
	uint64_t left = s->src->size - s->offset;
	struct chunk *c = chunk_of(s, s->read);

	if (s->stop || left == 0 || s->read - s->freed >= s->opts->depth)
		return 0;
	c->src = s->src;
	c->fd = s->fd;
	c->buf = cp_rail_slot(s->ends->rail, s->read);
	c->len = left < s->opts->chunk ? (uint32_t)left : s->opts->chunk;
	c->offset = s->offset;
	c->last = c->len == left;
	c->hashed = 0;
	c->written = false;
	c->job.run = read_chunk;
	cp_io_submit(s->ends->io, &c->job);
	s->offset += c->len;
	s->read++;
	return 1;
}

/* True when the last chunk of all waits, because the adapter is to be lost before the end. */
static bool
held_back(struct sender *s, const struct chunk *c)
{
	struct urn_failover *f = s->res->failover;

	if (f == NULL || s->before + c->offset + c->len < s->total || urn_failover_past(f))
		return false;
	urn_failover_now(f);
	return true;
}

/* Send the next chunk that was read, if the receiver has room. */
static int
post(struct sender *s, struct urn_err *err)
{
	struct chunk *c = chunk_of(s, s->posted);

	if (s->stop || s->posted == s->read || s->posted - s->credit >= s->opts->depth ||
	    !cp_job_done(&c->job))
		return 0;
	if (c->rc != 0) {
		cp_source_fail(s->src, c->err.text);
		s->stop = true;
		return 0;
	}
	if (held_back(s, c))
		return 0;
	c->posted_ns = urn_clock_ns();
	if (cp_rail_write(s->ends->rail, s->posted, c->len, err) != 0)
		return -1;
	s->posted++;
	return 1;
}

/* Hash a piece of a posted chunk; the NIC reads the chunk at the same time. */
static int
hash(struct sender *s, struct urn_err *err)
{
	struct chunk *c = chunk_of(s, s->hashed);
	uint32_t piece;

	if (s->hashed == s->posted)
		return 0;
	if (s->opts->no_check || s->stop) {
		s->hashed++;
		return 1;
	}
	piece = c->len - c->hashed < CP_HASH_PIECE ? c->len - c->hashed : CP_HASH_PIECE;
	if (cp_digest_add(&s->digest, c->buf + c->hashed, piece, err) != 0)
		return -1;
	c->hashed += piece;
	if (c->hashed == c->len)
		s->hashed++;
	return 1;
}

/* Run one round: engine, events, chunks. returns: 0, or -1 with *err */
static int
round_trip(struct sender *s, struct urn_err *err)
{
	int turned = cp_ends_round(s->ends, err), events, posted, hashed;
	unsigned int busy;

	if (turned < 0 || (events = drain(s, err)) < 0)
		return -1;
	if (s->judged && s->verdict.verdict.verdict != CP_STORED)
		s->stop = true;
	busy = s->src != NULL ? start_reading(s) : 0;
	posted = post(s, err);
	hashed = posted < 0 ? -1 : hash(s, err);
	if (hashed < 0)
		return -1;
	while (s->freed < s->hashed && s->freed < s->written)
		s->freed++;
	urn_progress_update(&s->bar, s->before + (s->src != NULL ? s->offset : 0));
	cp_rail_idle(s->ends->rail, busy + (unsigned int)(turned + events + posted + hashed));
	return 0;
}

static int
say(struct sender *s, const struct cp_msg *msg, struct urn_err *err)
{
	int rc;

	while ((rc = cp_rail_send(s->ends->rail, msg, err)) == 0)
		if (round_trip(s, err) != 0)
			return -1;
	return rc < 0 ? -1 : 0;
}

/* ---- a file */

static int
announce(struct sender *s, struct urn_err *err)
{
	struct cp_msg msg = {.type = CP_MSG_FILE, .file = s->number};

	msg.announce.size = s->src->size;
	msg.announce.mode = s->src->mode;
	snprintf(msg.announce.name, sizeof(msg.announce.name), "%s", s->src->name);
	if (!s->opts->no_check && cp_digest_begin(&s->digest, err) != 0)
		return -1;
	return say(s, &msg, err);
}

/* True when the whole file is posted and hashed, or was given up. */
static bool
all_sent(const struct sender *s)
{
	return s->stop || (s->offset == s->src->size && s->hashed == s->read);
}

/* Take back chunks that were read but not posted: wait only until their reading is done. */
static int
take_back(struct sender *s, struct urn_err *err)
{
	for (uint64_t seq = s->posted; seq < s->read; seq++)
		while (!cp_job_done(&chunk_of(s, seq)->job))
			if (round_trip(s, err) != 0)
				return -1;
	s->read = s->posted;
	s->hashed = s->posted;
	return 0;
}

static int
conclude(struct sender *s, struct urn_err *err)
{
	struct cp_msg msg = {.type = CP_MSG_END, .file = s->number};

	if (s->stop && take_back(s, err) != 0)
		return -1;
	msg.end.ok = !s->stop;
	if (msg.end.ok && !s->opts->no_check &&
	    cp_digest_end(&s->digest, s->src->digest, err) != 0)
		return -1;
	memcpy(msg.end.digest, s->src->digest, CP_DIGEST);
	if (say(s, &msg, err) != 0)
		return -1;
	while (!s->judged)
		if (round_trip(s, err) != 0)
			return -1;
	return 0;
}

static void
judge(struct sender *s)
{
	char text[CP_TEXT_MAX + 1];
	struct urn_err why;

	if (s->src->state == CP_UNSENT)
		return;
	if (s->verdict.verdict.verdict == CP_STORED) {
		s->src->state = CP_SENT;
		s->res->ok++;
		s->res->bytes += s->src->size;
		s->res->store_ns += s->verdict.verdict.store_ns;
		return;
	}
	cp_text_clean(text, sizeof(text), s->verdict.verdict.text);
	urn_err_set(&why, "the receiver did not store '%.80s': %s", s->src->path, text);
	cp_source_fail(s->src, why.text);
}

static int
send_file(struct sender *s, struct cp_source *src, uint32_t number, struct urn_err *err)
{
	int rc;

	s->fd = cp_source_open(src);
	if (s->fd < 0) {
		cp_source_fail(src, src->why.text);
		return 0;
	}
	s->src = src;
	s->number = number;
	s->offset = 0;
	s->stop = s->judged = false;
	rc = announce(s, err);
	while (rc == 0 && !all_sent(s))
		rc = round_trip(s, err);
	if (rc == 0)
		rc = conclude(s, err);
	if (rc == 0)
		judge(s);
	s->before += src->size;
	return rc;
}

/* Wait for the I/O thread, which may still be reading into our memory, from our descriptor. */
static void
settle(struct sender *s)
{
	static const struct timespec ms = {0, 1000000};

	for (uint64_t seq = s->posted; seq < s->read; seq++)
		while (!cp_job_done(&chunk_of(s, seq)->job))
			nanosleep(&ms, NULL);
}

static int
send_all(struct sender *s, struct cp_source *src, unsigned int n, struct urn_err *err)
{
	uint64_t start = urn_clock_ns();
	uint32_t number = 0;
	int rc = 0;

	for (unsigned int i = 0; i < n && rc == 0; i++) {
		if (src[i].state != CP_TODO)
			continue;
		s->fd = -1;
		rc = send_file(s, &src[i], number++, err);
		s->res->ns = urn_clock_ns() - start;
		if (rc != 0)
			settle(s);
		if (s->fd >= 0)
			close(s->fd);
		s->src = NULL;
	}
	/* A verdict may overtake the last acknowledgement: wait for it, so that all latencies are counted. */
	while (rc == 0 && s->written < s->posted)
		rc = round_trip(s, err);
	return rc;
}

/* Tell the failover how far the files are. arg: struct sender */
static enum urn_run_state
look(void *arg, uint64_t *units)
{
	const struct sender *s = arg;

	*units = atomic_load_explicit(&s->moved, memory_order_relaxed);
	return *units < s->total ? URN_RUN_GOING : URN_RUN_OVER;
}

/* Send all, and have the adapter lost meanwhile if options say so. */
static int
send_watched(struct sender *s, struct cp_source *src, unsigned int n, struct urn_err *err)
{
	const struct urn_failover_run run = {
		.at_ns = UINT64_MAX, .unit = 1, .look = look, .arg = s};
	struct urn_failover *f = s->res->failover;
	int rc;

	if (f == NULL)
		return send_all(s, src, n, err);
	if (urn_failover_start(f, &run, err) != 0)
		return -1;
	rc = send_all(s, src, n, err);
	urn_failover_stop(f);
	return rc;
}

int
cp_send_files(struct cp_ends *e, const struct cp_opts *o, struct cp_source *src, unsigned int n,
	      struct cp_result *res, struct urn_err *err)
{
	struct sender s = {.ends = e, .opts = o, .res = res, .fd = -1};
	int rc;

	for (unsigned int i = 0; i < n; i++)
		s.total += src[i].state == CP_TODO ? src[i].size : 0;
	s.kill_at = s.total / 100 * o->kill_at + s.total % 100 * o->kill_at / 100;
	s.chunk = calloc(o->depth, sizeof(*s.chunk));
	if (s.chunk == NULL) {
		urn_err_set(err, "no memory for %u chunks; use a smaller --depth.", o->depth);
		return -1;
	}
	urn_progress_begin(&s.bar, "sending", s.total);
	cp_complain_over(&s.bar);
	rc = send_watched(&s, src, n, err);
	urn_progress_end(&s.bar);
	cp_complain_over(NULL);
	for (unsigned int i = 0; i < n; i++) {
		if (src[i].state == CP_TODO) {
			urn_err_set(&src[i].why, "'%.150s' was not sent: the connection was lost.",
				    src[i].path);
			src[i].state = CP_UNSENT;
		}
	}
	cp_digest_free(&s.digest);
	free(s.chunk);
	return rc;
}
