/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two places where frames wait:
 *
 *   fifo   a ring of all that are not due yet, in due order; those that jitter
 *          would let overtake get their forerunner's time
 *   held   a short list of those that were due and let others pass, in the order
 *          they came, each with the number of frames still to pass it
 *
 * pop plays what happens in the order of time: a frame of the list that has
 * been passed often enough goes first (the passing was the event), then
 * whichever is earlier of the ring's head and the list's deadline. That order
 * does not depend on when, or for how many frames, pop is called. A frame
 * that goes out passes every frame of the list that came before it, whether it
 * was in the list or not.
 */
#include "switch/impair.h"

#include "switch/frame.h"
#include "switch/rnd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELD 64u /* beyond these a frame is not held back */
#define DEFAULT_QUEUE 4096u
#define DEFAULT_REORDER_NS 100000u
#define DEFAULT_PASS_MAX 8u
#define RATE_SHIFT 20 /* ns of a byte are kept in 1/2^20 */

/* What chance is asked about; a sequence of its own for each, and for copies. */
enum draw {
	DRAW_DROP,
	DRAW_DUP,
	DRAW_CORRUPT,
	DRAW_BIT,
	DRAW_REORDER,
	DRAW_PASS,
	DRAW_JITTER,
	DRAW_KINDS,
};

struct entry {
	struct rte_mbuf *m;
	uint64_t due;  /* ns; in the held list: to go at the latest */
	uint32_t pass; /* frames that are to pass it; 0: none */
};

struct urn_impair {
	/* Read for each frame. */
	bool plain;	     /* nothing configured */
	bool prompt;	     /* what is not lost or held back is due at once, one for one, unchanged */
	bool ready;	     /* of the held list, one has been passed often enough */
	bool keep;	     /* whoever pops is late: what comes is made ours */
	bool down;	     /* flap: as of the push under way */
	uint32_t mask;	     /* entries of the ring - 1 */
	uint64_t head, tail; /* of the ring: taken, put; free running */
	uint32_t held_n;
	struct entry *ring;
	uint64_t last_due;	      /* of the entry put last */
	uint64_t frames;	      /* frames ever pushed under this seed: where chance is */
	uint64_t tx_free;	      /* rate: when the wire is free again, ns */
	uint64_t ns_byte;	      /* rate: of a byte, << RATE_SHIFT; 0: any */
	uint64_t limit[DRAW_KINDS];   /* probability of an event, in 1/2^32 */
	uint64_t seed[2][DRAW_KINDS]; /* of frames, of copies */
	struct rte_mempool *copies;
	uint64_t flap_start; /* UINT64_MAX: at the next push */
	struct urn_impair_counters c;
	struct urn_impair_config cfg;
	struct entry held[HELD];
};

static const char *const names[] = {
#define X(id, name, text) name,
	URN_IMPAIR_COUNTERS(X)
#undef X
};

static const char *const texts[] = {
#define X(id, name, text) text,
	URN_IMPAIR_COUNTERS(X)
#undef X
};

const char *
urn_impair_counter_name(unsigned int id)
{
	return id < URN_IMPAIR_COUNTER_COUNT ? names[id] : NULL;
}

const char *
urn_impair_counter_text(unsigned int id)
{
	return id < URN_IMPAIR_COUNTER_COUNT ? texts[id] : NULL;
}

/* ---- configuration */

static bool
is_probability(double p)
{
	return p >= 0 && p <= 1; /* false for NaN */
}

/* What is wrong with a configuration; NULL: nothing. */
static const char *
complaint(const struct urn_impair_config *c)
{
	if (!is_probability(c->drop) || !is_probability(c->dup) || !is_probability(c->corrupt) ||
	    !is_probability(c->reorder))
		return "probabilities of drop, dup, corrupt and reorder go from 0 to 1";
	if (c->reorder_max > URN_IMPAIR_MAX_PASS || c->reorder_min > c->reorder_max ||
	    (c->reorder_max && !c->reorder_min))
		return "packets held back are let pass by 1 to 32 others, min not above max";
	if (c->delay_ns > URN_IMPAIR_MAX_NS || c->jitter_ns > URN_IMPAIR_MAX_NS ||
	    c->reorder_ns > URN_IMPAIR_MAX_NS)
		return "delay, jitter and the bound of reordering go up to 60 s";
	if (c->rate_bps && (c->rate_bps < URN_IMPAIR_MIN_BPS || c->rate_bps > URN_IMPAIR_MAX_BPS))
		return "the rate goes from 1 kb/s to 1 Tb/s, or 0 for any";
	if (!c->flap_up_ns != !c->flap_down_ns || c->flap_up_ns > INT64_MAX / 2 ||
	    c->flap_down_ns > INT64_MAX / 2)
		return "a flap wants both times, up and down";
	if (c->queue > URN_IMPAIR_MAX_QUEUE)
		return "the queue holds up to 1048576 packets";
	return NULL;
}

int
urn_impair_check(const struct urn_impair_config *cfg, char *why, size_t len)
{
	const char *text = complaint(cfg);

	if (text && why && len)
		snprintf(why, len, "%s", text);
	return text ? -EINVAL : 0;
}

static void
set_chance(struct urn_impair *imp, const struct urn_impair_config *c, bool restart)
{
	const double p[DRAW_KINDS] = {
		[DRAW_DROP] = c->drop,
		[DRAW_DUP] = c->dup,
		[DRAW_CORRUPT] = c->corrupt,
		[DRAW_REORDER] = c->reorder,
	};

	for (unsigned int k = 0; k < DRAW_KINDS; k++) {
		imp->limit[k] = (uint64_t)(p[k] * 4294967296.0);
		imp->seed[0][k] = urn_rnd_at(c->seed, 2 * k);
		imp->seed[1][k] = urn_rnd_at(c->seed, 2 * k + 1);
	}
	if (restart)
		imp->frames = 0;
}

/* A ring for as many frames as asked, holding those of the old one. returns 0 or -ENOMEM */
static int
resize(struct urn_impair *imp, uint32_t queue)
{
	uint32_t size = 64, n = imp->ring ? (uint32_t)(imp->tail - imp->head) : 0;
	struct entry *ring;

	while (size < queue || size < n)
		size *= 2;
	if (imp->ring && size <= imp->mask + 1)
		return 0;
	ring = calloc(size, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		ring[i] = imp->ring[(imp->head + i) & imp->mask];
	free(imp->ring);
	imp->ring = ring;
	imp->mask = size - 1;
	imp->head = 0;
	imp->tail = n;
	return 0;
}

static void
defaults(struct urn_impair_config *c)
{
	if (!c->queue)
		c->queue = DEFAULT_QUEUE;
	if (!c->reorder_ns)
		c->reorder_ns = DEFAULT_REORDER_NS;
	if (!c->reorder_max) {
		c->reorder_min = 1;
		c->reorder_max = DEFAULT_PASS_MAX;
	}
}

int
urn_impair_set(struct urn_impair *imp, const struct urn_impair_config *cfg)
{
	struct urn_impair_config c = *cfg;

	if (urn_impair_check(cfg, NULL, 0))
		return -EINVAL;
	defaults(&c);
	if (resize(imp, c.queue))
		return -ENOMEM;
	set_chance(imp, &c, c.seed != imp->cfg.seed);
	imp->ns_byte = c.rate_bps ? (8000000000ull << RATE_SHIFT) / c.rate_bps : 0;
	imp->flap_start = UINT64_MAX;
	imp->down = false;
	imp->prompt = !(c.dup > 0 || c.corrupt > 0 || c.delay_ns || c.jitter_ns || c.rate_bps ||
			c.blackhole || c.flap_up_ns);
	imp->plain = imp->prompt && !(c.drop > 0 || c.reorder > 0);
	imp->cfg = c;
	return 0;
}

const struct urn_impair_config *
urn_impair_config(const struct urn_impair *imp)
{
	return &imp->cfg;
}

struct urn_impair *
urn_impair_create(const struct urn_impair_config *cfg, struct rte_mempool *copies)
{
	struct urn_impair *imp = calloc(1, sizeof(*imp));

	if (!imp)
		return NULL;
	imp->copies = copies;
	if (urn_impair_set(imp, cfg)) {
		free(imp);
		return NULL;
	}
	return imp;
}

void
urn_impair_destroy(struct urn_impair *imp)
{
	if (!imp)
		return;
	for (; imp->head != imp->tail; imp->head++)
		rte_pktmbuf_free(imp->ring[imp->head & imp->mask].m);
	for (uint32_t i = 0; i < imp->held_n; i++)
		rte_pktmbuf_free(imp->held[i].m);
	free(imp->ring);
	free(imp);
}

/* ---- frames in */

static void
drop(struct urn_impair *imp, struct rte_mbuf *m, enum urn_impair_counter reason)
{
	imp->c.v[reason]++;
	rte_pktmbuf_free(m);
}

/* The frame's random word for one kind of impairment. copy: 1 for a duplicate */
static inline uint64_t
draw(const struct urn_impair *imp, enum draw kind, unsigned int copy)
{
	return urn_rnd_at(imp->seed[copy][kind], imp->frames);
}

static inline bool
happens(const struct urn_impair *imp, enum draw kind, unsigned int copy)
{
	return imp->limit[kind] && draw(imp, kind, copy) >> 32 < imp->limit[kind];
}

/* A frame that may be kept and changed, in place of m. NULL: counted and gone. */
static struct rte_mbuf *
own(struct urn_impair *imp, struct rte_mbuf *m)
{
	struct rte_mbuf *copy;

	if (urn_frame_is_ours(m))
		return m;
	copy = urn_frame_copy(m, imp->copies);
	if (!copy) {
		drop(imp, m, URN_IMPAIR_NO_MBUF);
		return NULL;
	}
	imp->c.v[URN_IMPAIR_COPIED]++;
	rte_pktmbuf_free(m);
	return copy;
}

/* Turn over one bit, anywhere in the frame. returns: the frame or its copy, or NULL */
static struct rte_mbuf *
corrupt(struct urn_impair *imp, struct rte_mbuf *m, unsigned int copy)
{
	uint64_t bit = urn_rnd_below(draw(imp, DRAW_BIT, copy), 8ull * m->pkt_len);
	uint32_t off = (uint32_t)(bit / 8);
	struct rte_mbuf *s;

	if (m->pkt_len == 0)
		return m;
	m = own(imp, m);
	if (!m)
		return NULL;
	for (s = m; off >= s->data_len; s = s->next)
		off -= s->data_len;
	*rte_pktmbuf_mtod_offset(s, uint8_t *, off) ^= (uint8_t)(1u << (bit & 7));
	imp->c.v[URN_IMPAIR_CORRUPTED]++;
	return m;
}

/* When a frame that comes now is due. */
static uint64_t
due_time(struct urn_impair *imp, const struct rte_mbuf *m, unsigned int copy, uint64_t now)
{
	uint64_t due = now;

	if (imp->ns_byte) {
		uint32_t len = RTE_MAX(m->pkt_len, URN_IMPAIR_WIRE_MIN) + URN_IMPAIR_WIRE_EXTRA;

		if (imp->tx_free > due)
			due = imp->tx_free;
		/* Rounded up to whole ns. */
		due += (len * imp->ns_byte + (1u << RATE_SHIFT) - 1) >> RATE_SHIFT;
		imp->tx_free = due;
	}
	due += imp->cfg.delay_ns;
	if (imp->cfg.jitter_ns)
		due += urn_rnd_below(draw(imp, DRAW_JITTER, copy), imp->cfg.jitter_ns + 1);
	return due > imp->last_due ? due : imp->last_due;
}

unsigned int
urn_impair_queued(const struct urn_impair *imp)
{
	return (unsigned int)(imp->tail - imp->head) + imp->held_n;
}

/* How many frames are to pass this one; 0: it is not held back. */
static inline uint32_t
draw_pass(const struct urn_impair *imp, unsigned int copy)
{
	if (!happens(imp, DRAW_REORDER, copy))
		return 0;
	return imp->cfg.reorder_min +
	       (uint32_t)urn_rnd_below(draw(imp, DRAW_PASS, copy),
				       imp->cfg.reorder_max - imp->cfg.reorder_min + 1);
}

/* Put a frame into the ring; whoever is kept beyond this moment is made ours first. */
static void
enqueue(struct urn_impair *imp, struct rte_mbuf *m, unsigned int copy, uint64_t now)
{
	struct entry *e;
	uint64_t due;
	uint32_t pass;

	/* Before it has taken time of the wire. */
	if (urn_impair_queued(imp) >= imp->cfg.queue) {
		drop(imp, m, URN_IMPAIR_QUEUE);
		return;
	}
	pass = draw_pass(imp, copy);
	due = due_time(imp, m, copy, now);
	if (due > now || pass || imp->keep) {
		m = own(imp, m);
		if (!m)
			return;
		imp->c.v[URN_IMPAIR_DELAYED] += due > now;
	}
	e = &imp->ring[imp->tail++ & imp->mask];
	*e = (struct entry){.m = m, .due = due, .pass = pass};
	imp->last_due = due;
}

/* One frame, or its copy, that was neither cut off nor dropped. */
static void
admit(struct urn_impair *imp, struct rte_mbuf *m, unsigned int copy, uint64_t now)
{
	if (happens(imp, DRAW_CORRUPT, copy)) {
		m = corrupt(imp, m, copy);
		if (!m)
			return;
	}
	enqueue(imp, m, copy, now);
}

static void
push_one(struct urn_impair *imp, struct rte_mbuf *m, uint64_t now)
{
	struct rte_mbuf *twin = NULL;

	if (imp->cfg.blackhole) {
		drop(imp, m, URN_IMPAIR_BLACKHOLE);
		return;
	}
	if (imp->down) {
		drop(imp, m, URN_IMPAIR_FLAP);
		return;
	}
	if (happens(imp, DRAW_DROP, 0)) {
		drop(imp, m, URN_IMPAIR_DROPPED);
		return;
	}
	if (happens(imp, DRAW_DUP, 0)) {
		twin = urn_frame_copy(m, imp->copies);
		imp->c.v[twin ? URN_IMPAIR_DUPLICATED : URN_IMPAIR_DUP_NO_MBUF]++;
	}
	admit(imp, m, 0, now);
	if (twin)
		admit(imp, twin, 1, now);
}

/* Where in its cycle the flap is; once a burst, for the division. */
static bool
is_down(struct urn_impair *imp, uint64_t now)
{
	uint64_t up = imp->cfg.flap_up_ns;

	if (!up)
		return false;
	if (imp->flap_start == UINT64_MAX)
		imp->flap_start = now;
	return (now - imp->flap_start) % (up + imp->cfg.flap_down_ns) >= up;
}

/*
 * Chance alone, and no time: what push_one() does, for a burst, without asking
 * about what is not configured. Nobody inside is due later than now.
 */
static void
push_prompt(struct urn_impair *imp, struct rte_mbuf **m, unsigned int n, uint64_t now)
{
	uint32_t inside = urn_impair_queued(imp);
	uint64_t tail = imp->tail;

	for (unsigned int i = 0; i < n; i++, imp->frames++) {
		struct rte_mbuf *frame = m[i];
		uint32_t pass;

		if (happens(imp, DRAW_DROP, 0)) {
			drop(imp, frame, URN_IMPAIR_DROPPED);
			continue;
		}
		if (unlikely(inside >= imp->cfg.queue)) {
			drop(imp, frame, URN_IMPAIR_QUEUE);
			continue;
		}
		pass = draw_pass(imp, 0);
		if (pass) {
			frame = own(imp, frame);
			if (unlikely(!frame))
				continue;
		}
		imp->ring[tail++ & imp->mask] = (struct entry){.m = frame, .due = now, .pass = pass};
		inside++;
	}
	imp->tail = tail;
	imp->last_due = now;
}

void
urn_impair_push(struct urn_impair *imp, struct rte_mbuf **m, unsigned int n, uint64_t now)
{
	imp->c.v[URN_IMPAIR_PUSHED] += n;
	if (imp->prompt && !imp->keep && imp->last_due <= now) {
		push_prompt(imp, m, n, now);
		return;
	}
	if (imp->plain) {
		for (unsigned int i = 0; i < n; i++)
			enqueue(imp, m[i], 0, now);
		imp->frames += n;
		return;
	}
	imp->down = is_down(imp, now);
	for (unsigned int i = 0; i < n; i++) {
		push_one(imp, m[i], now);
		imp->frames++;
	}
}

void
urn_impair_keep(struct urn_impair *imp, bool keep)
{
	uint64_t to = imp->head;

	if (keep && !imp->keep) {
		for (uint64_t i = imp->head; i != imp->tail; i++) {
			struct entry e = imp->ring[i & imp->mask];

			e.m = own(imp, e.m);
			if (e.m)
				imp->ring[to++ & imp->mask] = e;
		}
		imp->tail = to;
	}
	imp->keep = keep;
}

/* ---- frames out */

/* Take an entry out of the held list; it and its like stay in order. */
static struct rte_mbuf *
release(struct urn_impair *imp, uint32_t i)
{
	struct rte_mbuf *m = imp->held[i].m;

	imp->held_n--;
	for (; i < imp->held_n; i++) /* a few at most: no call */
		imp->held[i] = imp->held[i + 1];
	return m;
}

/* A frame went out that came after the first n of the held list: it passed them. */
static void
passed(struct urn_impair *imp, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (imp->held[i].pass && --imp->held[i].pass == 0)
			imp->ready = true;
	}
}

/* The first of the held list that enough frames have passed, or held_n. */
static uint32_t
find_passed(const struct urn_impair *imp)
{
	uint32_t i = 0;

	while (i < imp->held_n && imp->held[i].pass)
		i++;
	return i;
}

/* Handle the ring's head, which is due. returns: it, or NULL when it is held back */
static struct rte_mbuf *
arrive(struct urn_impair *imp)
{
	struct entry *e = &imp->ring[imp->head++ & imp->mask];
	uint64_t last = imp->held_n ? imp->held[imp->held_n - 1].due : 0;

	if (e->pass && imp->held_n < HELD) {
		/* In order even when the bound was made shorter meanwhile. */
		e->due = RTE_MAX(e->due + imp->cfg.reorder_ns, last);
		imp->held[imp->held_n++] = *e;
		imp->c.v[URN_IMPAIR_REORDERED]++;
		return NULL;
	}
	passed(imp, imp->held_n);
	return e->m;
}

/* The next event up to now. returns: a frame that goes out, or NULL when there is none */
static struct rte_mbuf *
next_frame(struct urn_impair *imp, uint64_t now)
{
	struct rte_mbuf *m;

	for (;;) {
		uint64_t due = UINT64_MAX, late = UINT64_MAX;

		if (imp->ready) {
			uint32_t i = find_passed(imp);

			if (i < imp->held_n) {
				m = release(imp, i);
				passed(imp, i);
				return m;
			}
			imp->ready = false;
		}
		if (imp->head != imp->tail)
			due = imp->ring[imp->head & imp->mask].due;
		if (imp->held_n)
			late = imp->held[0].due;
		if (due > now && late > now)
			return NULL;
		if (late <= due) {
			imp->c.v[URN_IMPAIR_REORDER_LATE]++;
			return release(imp, 0);
		}
		m = arrive(imp);
		if (m)
			return m;
	}
}

unsigned int
urn_impair_pop(struct urn_impair *imp, struct rte_mbuf **m, unsigned int max, uint64_t now)
{
	unsigned int n = 0;

	while (n < max) {
		const struct entry *e = &imp->ring[imp->head & imp->mask];

		if (imp->head != imp->tail && e->due <= now && !e->pass && !imp->ready &&
		    (!imp->held_n || e->due < imp->held[0].due)) {
			passed(imp, imp->held_n);
			m[n++] = e->m;
			imp->head++;
			continue;
		}
		m[n] = next_frame(imp, now);
		if (!m[n])
			break;
		n++;
	}
	imp->c.v[URN_IMPAIR_POPPED] += n;
	if (imp->head == imp->tail)
		imp->head = imp->tail = 0; /* the same few lines of the ring again */
	return n;
}

uint64_t
urn_impair_next(const struct urn_impair *imp)
{
	uint64_t t = UINT64_MAX;

	if (imp->head != imp->tail)
		t = imp->ring[imp->head & imp->mask].due;
	if (imp->held_n && imp->held[0].due < t)
		t = imp->held[0].due;
	return find_passed(imp) < imp->held_n ? 0 : t;
}

bool
urn_impair_clear(const struct urn_impair *imp)
{
	return imp->plain && imp->head == imp->tail && !imp->held_n;
}

const struct urn_impair_counters *
urn_impair_counters(const struct urn_impair *imp)
{
	return &imp->c;
}
