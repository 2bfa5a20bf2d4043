/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two places where frames wait:
 *
 *   fifo   a ring of all frames that are not due yet, in due order; a frame that
 *          jitter would let overtake gets its predecessor's time
 *   held   a short list of frames that were due and let others pass, in order of
 *          arrival, each with the number of frames still to pass it
 *
 * pop takes events in order of time: a frame of the list that has
 * been passed often enough goes first (the passing was the event), then
 * the earlier of the ring's head and the list's deadline. That order
 * does not depend on when, or for how many frames, pop is called. A frame
 * that goes out passes every frame of the list that came before it, even if
 * the frame was in the list itself.
 */
#include "switch/impair_state.h"

#include "switch/frame.h"
#include "base/rnd.h"
#include "wire/unsealed.h"

static const struct urn_counter_row counter_rows[] = {URN_IMPAIR_COUNTERS(URN_COUNTER_ROW)};
static const struct urn_counter_block counter_block = {
	"switch", counter_rows, sizeof(counter_rows) / sizeof(counter_rows[0])};
const struct urn_counter_scope urn_impair_scope = {"switch_impair", &counter_block, 1};

const char *
urn_impair_counter_name(unsigned int id)
{
	return urn_counter_name_in(&urn_impair_scope, id);
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
draw(const struct urn_impair *imp, enum urn_impair_draw kind, unsigned int copy)
{
	return urn_rnd_at(imp->seed[copy][kind], imp->frames);
}

static inline bool
happens(const struct urn_impair *imp, enum urn_impair_draw kind, unsigned int copy)
{
	return imp->limit[kind] && draw(imp, kind, copy) >> 32 < imp->limit[kind];
}

/* m, or a copy of m, which may be kept and changed. NULL: no copy; m was counted and freed. */
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

/* True when the frame is IPv4 or IPv6, VLAN tag or not: receivers of these notice a flipped bit. */
static bool
is_ip(const struct rte_mbuf *m)
{
	uint8_t room[6];
	const uint8_t *type = rte_pktmbuf_read(m, 12, sizeof(room), room);

	if (type && type[0] == 0x81 && type[1] == 0x00)
		type += 4;
	return type &&
	       ((type[0] == 0x08 && type[1] == 0x00) || (type[0] == 0x86 && type[1] == 0xdd));
}

/* Flip one random bit of the frame. returns: the frame or its copy, or NULL */
static struct rte_mbuf *
corrupt(struct urn_impair *imp, struct rte_mbuf *m, unsigned int copy)
{
	uint64_t bit = urn_rnd_below(draw(imp, URN_IMPAIR_DRAW_BIT, copy), 8ull * m->pkt_len);
	uint32_t off = (uint32_t)(bit / 8);
	struct rte_mbuf *s;

	if (!is_ip(m)) {
		drop(imp, m, URN_IMPAIR_FCS);
		return NULL;
	}
	m = own(imp, m);
	if (!m)
		return NULL;
	urn_wire_seal(m); /* so that its receiver notices */
	for (s = m; off >= s->data_len; s = s->next)
		off -= s->data_len;
	*rte_pktmbuf_mtod_offset(s, uint8_t *, off) ^= (uint8_t)(1u << (bit & 7));
	imp->c.v[URN_IMPAIR_CORRUPTED]++;
	return m;
}

/* Due time of a frame that comes now, ns. */
static uint64_t
due_time(struct urn_impair *imp, const struct rte_mbuf *m, unsigned int copy, uint64_t now)
{
	uint64_t due = now;

	if (imp->ns_byte) {
		uint32_t len = RTE_MAX(m->pkt_len, URN_IMPAIR_WIRE_MIN) + URN_IMPAIR_WIRE_EXTRA;

		if (imp->tx_free > due)
			due = imp->tx_free;
		/* Rounded up to whole ns. */
		due += (len * imp->ns_byte + (1u << URN_IMPAIR_RATE_SHIFT) - 1) >>
		       URN_IMPAIR_RATE_SHIFT;
		imp->tx_free = due;
	}
	due += imp->cfg.delay_ns;
	if (imp->cfg.jitter_ns)
		due += urn_rnd_below(draw(imp, URN_IMPAIR_DRAW_JITTER, copy),
				     imp->cfg.jitter_ns + 1);
	return due > imp->last_due ? due : imp->last_due;
}

unsigned int
urn_impair_queued(const struct urn_impair *imp)
{
	return (unsigned int)(imp->tail - imp->head) + imp->held_n;
}

/* Number of frames that are to pass this one; 0: the frame is not held back. */
static inline uint32_t
draw_pass(const struct urn_impair *imp, unsigned int copy)
{
	if (!happens(imp, URN_IMPAIR_DRAW_REORDER, copy))
		return 0;
	return imp->cfg.reorder_min +
	       (uint32_t)urn_rnd_below(draw(imp, URN_IMPAIR_DRAW_PASS, copy),
				       imp->cfg.reorder_max - imp->cfg.reorder_min + 1);
}

/* Put a frame into the ring; a frame that stays longer than this moment is copied into memory of
 * our own if need be. */
static void
enqueue(struct urn_impair *imp, struct rte_mbuf *m, unsigned int copy, uint64_t now)
{
	struct urn_impair_entry *e;
	uint64_t due;
	uint32_t pass;

	/* A frame is dropped before it takes time of the wire. */
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
	*e = (struct urn_impair_entry){.m = m, .due = due, .pass = pass};
	imp->last_due = due;
}

/* Admit a frame, or its copy, that was not dropped. */
static void
admit(struct urn_impair *imp, struct rte_mbuf *m, unsigned int copy, uint64_t now)
{
	if (happens(imp, URN_IMPAIR_DRAW_CORRUPT, copy)) {
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
	if (happens(imp, URN_IMPAIR_DRAW_DROP, 0)) {
		drop(imp, m, URN_IMPAIR_DROPPED);
		return;
	}
	if (happens(imp, URN_IMPAIR_DRAW_DUP, 0)) {
		twin = urn_frame_copy(m, imp->copies);
		imp->c.v[twin ? URN_IMPAIR_DUPLICATED : URN_IMPAIR_DUP_NO_MBUF]++;
	}
	admit(imp, m, 0, now);
	if (twin)
		admit(imp, twin, 1, now);
}

/* True when the flap is down; called once a burst, because it divides. */
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
 * push_one() for a burst, without delays and without checks of impairments that are not
 * configured. No frame inside is due later than now.
 */
static void
push_prompt(struct urn_impair *imp, struct rte_mbuf **m, unsigned int n, uint64_t now)
{
	uint32_t inside = urn_impair_queued(imp);
	uint64_t tail = imp->tail;

	for (unsigned int i = 0; i < n; i++, imp->frames++) {
		struct rte_mbuf *frame = m[i];
		uint32_t pass;

		if (happens(imp, URN_IMPAIR_DRAW_DROP, 0)) {
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
		imp->ring[tail++ & imp->mask] =
			(struct urn_impair_entry){.m = frame, .due = now, .pass = pass};
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

struct rte_mbuf *
urn_impair_own(struct urn_impair *imp, struct rte_mbuf *m)
{
	m = own(imp, m);
	if (!m)
		imp->c.v[URN_IMPAIR_PUSHED]++;
	return m;
}

void
urn_impair_refuse(struct urn_impair *imp, struct rte_mbuf *m)
{
	imp->c.v[URN_IMPAIR_PUSHED]++;
	imp->frames++;
	drop(imp, m, URN_IMPAIR_QUEUE);
}

bool
urn_impair_paced(const struct urn_impair *imp)
{
	return imp->ns_byte != 0;
}

uint64_t
urn_impair_wire_free(const struct urn_impair *imp)
{
	return imp->ns_byte ? imp->tx_free : 0;
}

void
urn_impair_keep(struct urn_impair *imp, bool keep)
{
	uint64_t to = imp->head;

	if (keep && !imp->keep) {
		for (uint64_t i = imp->head; i != imp->tail; i++) {
			struct urn_impair_entry e = imp->ring[i & imp->mask];

			e.m = own(imp, e.m);
			if (e.m)
				imp->ring[to++ & imp->mask] = e;
		}
		imp->tail = to;
	}
	imp->keep = keep;
}

/* ---- frames out */

/* Take an entry out of the held list, whose other entries stay in order. */
static struct rte_mbuf *
release(struct urn_impair *imp, uint32_t i)
{
	struct rte_mbuf *m = imp->held[i].m;

	imp->held_n--;
	for (; i < imp->held_n; i++) /* a few at most: cheaper than memmove() */
		imp->held[i] = imp->held[i + 1];
	return m;
}

/* A frame goes out that came after the first n of the held list, and so passes them. */
static void
passed(struct urn_impair *imp, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (imp->held[i].pass && --imp->held[i].pass == 0)
			imp->ready = true;
	}
}

/* Index of the first frame of the held list that enough frames have passed, or held_n. */
static uint32_t
find_passed(const struct urn_impair *imp)
{
	uint32_t i = 0;

	while (i < imp->held_n && imp->held[i].pass)
		i++;
	return i;
}

/* Handle the ring's head, which is due. returns: the frame, or NULL when it is held back */
static struct rte_mbuf *
arrive(struct urn_impair *imp)
{
	struct urn_impair_entry *e = &imp->ring[imp->head++ & imp->mask];
	uint64_t last = imp->held_n ? imp->held[imp->held_n - 1].due : 0;

	if (e->pass && imp->held_n < URN_IMPAIR_HELD) {
		/* The list stays in order even when the bound was made shorter meanwhile. */
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
		const struct urn_impair_entry *e = &imp->ring[imp->head & imp->mask];

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
		imp->head = imp->tail = 0; /* use the same few cache lines of the ring again */
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
