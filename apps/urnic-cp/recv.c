/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A chunk that arrived is hashed by this thread while the I/O thread writes it
 * to the file; when both threads are done, the chunk's slot goes back to the sender
 * by a CREDIT. Sequence numbers run over the whole transfer, slot = number mod
 * slots:  told <= done <= hashed <= arrived.
 *
 * A file goes through the states below. When the file can't be stored, the verdict
 * goes out at once and the rest of the file's chunks is received and dropped.
 */
#include "recv.h"

#include "common/clock.h"
#include "common/text.h"
#include "digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERDICT_BUFFERS 4u

enum state {
	ST_IDLE,    /* no file; a FILE or the end of the transfer may come */
	ST_DATA,    /* chunks or END may come */
	ST_ENDED,   /* END is in; chunks are still being hashed and written */
	ST_STORING, /* the I/O thread brings the file to disk, or removes it */
	ST_VERDICT, /* the verdict is to be sent */
	STATES,
};

struct slot {
	struct cp_job job; /* first: the I/O thread gets it by this address */
	struct cp_store_file *file;
	const uint8_t *data;
	uint64_t offset;   /* offset in the file */
	uint32_t len;      /* bytes */
	uint32_t hashed;   /* bytes hashed so far */
	bool discard;      /* the file was given up: neither hash nor write */
	int rc;            /* result of writing; valid when the job is done */
};

/* A job of the I/O thread for a whole file: begin or finish. */
struct file_job {
	struct cp_job job; /* first */
	struct receiver *r;
	int rc;            /* valid when the job is done */
	uint64_t ns;       /* duration */
};

struct receiver {
	struct cp_ends *ends;
	const struct cp_offer *offer;
	struct cp_store *store;
	struct cp_result *res;
	bool verbose;
	struct slot *slot;
	uint64_t arrived, hashed, done, told; /* sequence numbers, see above */
	uint64_t start_ns;      /* CLOCK_MONOTONIC of the first FILE */
	struct cp_digest digest;
	struct urn_progress bar;
	enum state state;
	uint32_t next_file;     /* number of the next FILE */
	struct cp_msg announce; /* FILE of the current file */
	struct cp_msg end;      /* END of the current file; valid in ST_ENDED */
	uint64_t got;           /* bytes of the file that arrived */
	bool given_up;          /* the file can't be stored: drop its chunks */
	bool verdict_out;       /* the file's verdict was sent */
	struct cp_msg verdict;
	struct file_job begin, finish;
	struct cp_store_file file; /* owner: the I/O thread while a job is not done */
};

static struct slot *
slot_of(struct receiver *r, uint64_t seq)
{
	return &r->slot[seq % r->offer->depth];
}

static int
broken(struct receiver *r, const char *what, struct urn_err *err)
{
	static const char *const names[STATES] = {"no file", "a file", "an ended file", "a file",
						  "a file"};

	urn_err_set(err, "the sender broke the protocol: a message that %s, with %s under way.",
		    what, names[r->state]);
	return -1;
}

/* ---- jobs; these run in the I/O thread */

static void
run_begin(struct cp_job *job)
{
	struct file_job *f = (struct file_job *)job;
	struct receiver *r = f->r;

	f->rc = cp_store_begin(r->store, &r->file, r->announce.announce.name,
			       r->announce.announce.size, r->announce.announce.mode);
}

static void
run_write(struct cp_job *job)
{
	struct slot *s = (struct slot *)job;

	s->rc = cp_store_write(s->file, s->data, s->len, s->offset);
}

static void
run_commit(struct cp_job *job)
{
	struct file_job *f = (struct file_job *)job;
	uint64_t start = urn_clock_ns();

	f->rc = cp_store_commit(&f->r->file);
	f->ns = urn_clock_ns() - start;
}

static void
run_abort(struct cp_job *job)
{
	struct file_job *f = (struct file_job *)job;

	cp_store_abort(&f->r->file);
	f->rc = 0;
	f->ns = 0;
}

static void
submit(struct receiver *r, struct file_job *f, void (*run)(struct cp_job *job))
{
	f->r = r;
	f->job.run = run;
	cp_io_submit(r->ends->io, &f->job);
}

/* ---- messages of the sender */

static int
on_file(struct receiver *r, const struct cp_msg *msg, struct urn_err *err)
{
	if (r->state != ST_IDLE || msg->file != r->next_file)
		return broken(r, "announces a file", err);
	if (!r->offer->no_check && cp_digest_begin(&r->digest, err) != 0)
		return -1;
	if (r->next_file++ == 0)
		r->start_ns = urn_clock_ns();
	r->announce = *msg;
	r->got = 0;
	r->given_up = r->verdict_out = false;
	r->state = ST_DATA;
	r->res->files++;
	submit(r, &r->begin, run_begin);
	return 0;
}

static int
on_end(struct receiver *r, const struct cp_msg *msg, struct urn_err *err)
{
	if (r->state != ST_DATA || msg->file != r->announce.file)
		return broken(r, "ends a file", err);
	if (msg->end.ok && r->got != r->announce.announce.size)
		return broken(r, "ends a file too early", err);
	r->end = *msg;
	r->state = ST_ENDED;
	return 0;
}

static int
on_chunk(struct receiver *r, const struct cp_event *ev, struct urn_err *err)
{
	struct slot *s = slot_of(r, r->arrived);
	uint64_t left = r->announce.announce.size - r->got;

	if (r->state != ST_DATA || ev->seq != (uint32_t)r->arrived ||
	    r->arrived - r->told >= r->offer->depth)
		return broken(r, "has data out of turn", err);
	if (ev->len == 0 || ev->len != (left < r->offer->chunk ? left : r->offer->chunk))
		return broken(r, "has a chunk of the wrong length", err);
	s->file = &r->file;
	s->data = cp_rail_slot(r->ends->rail, r->arrived);
	s->offset = r->got;
	s->len = ev->len;
	s->hashed = 0;
	s->discard = r->given_up;
	s->job.run = run_write;
	if (!s->discard)
		cp_io_submit(r->ends->io, &s->job);
	r->got += ev->len;
	r->arrived++;
	r->res->messages++;
	return 0;
}

/* returns: number of events handled, or -1 with *err */
static int
drain(struct receiver *r, struct urn_err *err)
{
	struct cp_event ev;
	int n;

	/*
	 * A sender that was told early that a file can't be stored goes on to the next
	 * file while this side still removes the old one: the next file has to wait.
	 */
	for (n = 0; n < 64 && r->state <= ST_DATA; n++) {
		int rc = cp_ends_event(r->ends, &ev, err);

		if (rc <= 0)
			return rc < 0 ? -1 : n;
		if (ev.type == CP_EV_CHUNK)
			rc = on_chunk(r, &ev, err);
		else if (ev.type == CP_EV_MSG && ev.msg.type == CP_MSG_FILE)
			rc = on_file(r, &ev.msg, err);
		else if (ev.type == CP_EV_MSG && ev.msg.type == CP_MSG_END)
			rc = on_end(r, &ev.msg, err);
		else
			rc = broken(r, "only a receiver sends", err);
		if (rc != 0)
			return -1;
	}
	return n;
}

/* ---- verdicts */

static void
set_verdict(struct receiver *r, enum cp_verdict verdict, const char *text)
{
	memset(&r->verdict, 0, sizeof(r->verdict));
	r->verdict.type = CP_MSG_VERDICT;
	r->verdict.file = r->announce.file;
	r->verdict.verdict.verdict = verdict;
	snprintf(r->verdict.verdict.text, sizeof(r->verdict.verdict.text), "%s", text);
}

/* returns: 1 when the verdict went out, 0 not yet, -1 with *err */
static int
say_verdict(struct receiver *r, struct urn_err *err)
{
	char name[CP_NAME_MAX + 1];
	int rc = cp_rail_send(r->ends->rail, &r->verdict, err);

	if (rc <= 0)
		return rc;
	r->verdict_out = true;
	if (r->verdict.verdict.verdict == CP_STORED) {
		r->res->ok++;
		r->res->bytes += r->announce.announce.size;
		r->res->store_ns += r->verdict.verdict.store_ns;
	} else if (r->verbose) {
		cp_complain("'%s' was not stored: %s",
			    cp_text_clean(name, sizeof(name), r->announce.announce.name),
			    r->verdict.verdict.text);
	}
	return 1;
}

/* Give up a file that can't be stored, and say so at once, once. returns: 0, or -1 with *err */
static int
give_up(struct receiver *r, struct urn_err *err)
{
	if (!r->given_up)
		set_verdict(r, r->file.refused ? CP_REFUSED : CP_FAILED, r->file.err.text);
	r->given_up = true;
	return !r->verdict_out && say_verdict(r, err) < 0 ? -1 : 0;
}

/* ---- the way of a chunk */

static int
hash(struct receiver *r, struct urn_err *err)
{
	struct slot *s = slot_of(r, r->hashed);
	uint32_t piece;

	if (r->hashed == r->arrived)
		return 0;
	if (r->offer->no_check || s->discard || r->given_up) {
		r->hashed++;
		return 1;
	}
	piece = s->len - s->hashed < CP_HASH_PIECE ? s->len - s->hashed : CP_HASH_PIECE;
	if (cp_digest_add(&r->digest, s->data + s->hashed, piece, err) != 0)
		return -1;
	s->hashed += piece;
	if (s->hashed == s->len)
		r->hashed++;
	return 1;
}

/* Count chunks that are hashed and written as done. returns: how many, or -1 with *err */
static int
retire(struct receiver *r, struct urn_err *err)
{
	int n = 0;

	while (r->done < r->hashed) {
		struct slot *s = slot_of(r, r->done);

		if (!s->discard && !cp_job_done(&s->job))
			break;
		if (!s->discard && s->rc != 0 && give_up(r, err) != 0)
			return -1;
		r->done++;
		n++;
	}
	return n;
}

/* Give slots back, some at a time; the last ones at once. */
static int
credit(struct receiver *r, struct urn_err *err)
{
	struct cp_msg msg = {.type = CP_MSG_CREDIT};
	uint64_t owed = r->done - r->told;
	int rc;

	/* The last buffers are for verdicts, which may not wait for completions. */
	if (r->ends->rail->n_free_send < VERDICT_BUFFERS)
		return 0;
	if (owed == 0 || (owed < r->offer->depth / 4 && r->done != r->arrived))
		return 0;
	msg.credit.done = r->done;
	rc = cp_rail_send(r->ends->rail, &msg, err);
	if (rc == 1)
		r->told = r->done;
	return rc < 0 ? -1 : 0;
}

/* ---- states */

/* Once all chunks are in and written, compare the file with the digest of the END. */
static int
conclude(struct receiver *r, struct urn_err *err)
{
	uint8_t digest[CP_DIGEST];

	if (r->done != r->arrived || !cp_job_done(&r->begin.job))
		return 0;
	if (r->begin.rc != 0 && give_up(r, err) != 0)
		return -1;
	if (r->given_up) {
		r->state = ST_VERDICT;
		return 1;
	}
	set_verdict(r, CP_STORED, "");
	if (r->end.end.ok && !r->offer->no_check) {
		if (cp_digest_end(&r->digest, digest, err) != 0)
			return -1;
		if (memcmp(digest, r->end.end.digest, CP_DIGEST) != 0)
			set_verdict(r, CP_MISMATCH,
				    "the SHA-256 differs from the sender's; send the file "
				    "again, and with --capture if it stays so.");
	}
	if (!r->end.end.ok)
		set_verdict(r, CP_GIVEN_UP, "the sender gave it up.");
	submit(r, &r->finish, r->verdict.verdict.verdict == CP_STORED ? run_commit : run_abort);
	r->state = ST_STORING;
	return 1;
}

static int
stored(struct receiver *r)
{
	if (!cp_job_done(&r->finish.job))
		return 0;
	if (r->finish.rc != 0)
		set_verdict(r, CP_FAILED, r->file.err.text);
	r->verdict.verdict.store_ns = r->finish.ns;
	r->state = ST_VERDICT;
	return 1;
}

static int
judged(struct receiver *r, struct urn_err *err)
{
	if (!r->verdict_out && say_verdict(r, err) < 0)
		return -1;
	if (!r->verdict_out)
		return 0;
	r->res->ns = urn_clock_ns() - r->start_ns;
	r->state = ST_IDLE;
	return 1;
}

/* Advance the file's state. returns: 1 when something happened, 0, or -1 with *err */
static int
advance(struct receiver *r, struct urn_err *err)
{
	switch (r->state) {
	case ST_DATA:
		/* A refusal is sent before the whole file has come. */
		if (cp_job_done(&r->begin.job) && r->begin.rc != 0)
			return give_up(r, err);
		return 0;
	case ST_ENDED:
		return conclude(r, err);
	case ST_STORING:
		return stored(r);
	case ST_VERDICT:
		return judged(r, err);
	default:
		return 0;
	}
}

/* Run one round: engine, events, chunks, states. returns: 0, or -1 with *err */
static int
round_trip(struct receiver *r, struct urn_err *err)
{
	int sum, n, rc = cp_ends_round(r->ends, err);
	int (*const steps[])(struct receiver *, struct urn_err *) = {drain, hash, retire, credit,
								     advance};

	if (rc < 0)
		return -1;
	sum = rc;
	for (n = 0; n < (int)(sizeof(steps) / sizeof(steps[0])); n++) {
		rc = steps[n](r, err);
		if (rc < 0)
			return -1;
		sum += rc;
	}
	urn_progress_update(&r->bar, r->res->bytes + (r->state != ST_IDLE ? r->got : 0));
	cp_rail_idle(r->ends->rail, (unsigned int)sum);
	return 0;
}

static int
take_all(struct receiver *r, struct urn_err *err)
{
	uint64_t limit;

	r->ends->due = CP_DONE;
	while (!r->ends->heard)
		if (round_trip(r, err) != 0)
			return -1;
	/* The END of a file that was refused early may come after DONE, which takes another path: wait for it. */
	limit = urn_clock_ns() + CP_STEP_SECONDS * 1000000000ull;
	while (r->state != ST_IDLE && r->verdict_out && urn_clock_ns() < limit)
		if (round_trip(r, err) != 0)
			return -1;
	if (r->state != ST_IDLE)
		return broken(r, "says that all is done", err);
	return 0;
}

int
cp_recv_files(struct cp_ends *e, const struct cp_offer *offer, struct cp_store *store, bool verbose,
	      struct cp_result *res, struct urn_err *err)
{
	struct receiver *r = calloc(1, sizeof(*r));
	int rc = -1;

	if (r != NULL)
		r->slot = calloc(offer->depth, sizeof(*r->slot));
	if (r == NULL || r->slot == NULL) {
		urn_err_set(err, "no memory for %u chunks.", offer->depth);
		goto out;
	}
	r->ends = e;
	r->offer = offer;
	r->store = store;
	r->res = res;
	r->verbose = verbose;
	r->file.fd = -1;
	urn_progress_begin(&r->bar, "receiving", 0);
	if (!verbose)
		r->bar.on = false;
	cp_complain_over(&r->bar);
	rc = take_all(r, err);
	/* The I/O thread may be writing from our memory: stop it first. An unfinished file is removed. */
	cp_io_stop(e->io);
	cp_store_abort(&r->file);
	urn_progress_end(&r->bar);
	cp_complain_over(NULL);
	cp_digest_free(&r->digest);
out:
	if (r != NULL)
		free(r->slot);
	free(r);
	return rc;
}
