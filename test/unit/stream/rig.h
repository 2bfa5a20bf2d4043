/* SPDX-License-Identifier: BSD-3-Clause */
/* One stream machine, whose peer and shell is the test. */
#ifndef URN_TEST_STREAM_RIG_H
#define URN_TEST_STREAM_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "stream/stream.h"

#include <errno.h>
#include <string.h>

enum {
	BUFFERS = 4,	  /* BCopy buffers of each end */
	SIZE = 100,	  /* bytes of each */
	INLINED = 10,	  /* bytes that a SrcAvail brings */
	FLOOR = 250,	  /* thresholds of both halves */
	THRESHOLD = 1000, /* ... */
	CEILING = 4000,	  /* ... */
	KEY = 77,	  /* the peer's key */
	ACTIONS = 256,
};

struct rig {
	struct urn_st st;
	struct urn_st_config cfg;
	struct urn_st_piece pieces[BUFFERS];
	struct urn_st_action act[ACTIONS]; /* all actions so far */
	struct urn_st_msg msg[ACTIONS];	   /* SEND: the message */
	uint32_t acts, seen;		   /* actions; those that the test has looked at */
	uint32_t credit, adverts;	   /* counts in messages of the peer */
	uint32_t slot;			   /* number of the next receive */
	uint64_t posted, freed;		   /* receives posted; given back */
};

static inline void
rig_act(void *arg, const struct urn_st_action *a)
{
	struct rig *r = arg;

	assert_true(r->acts < ACTIONS);
	r->posted += a->act == URN_ST_A_POST ? a->bytes : 0;
	r->freed += a->act == URN_ST_A_FREE;
	if (a->message)
		r->msg[r->acts] = *a->message;
	r->act[r->acts++] = *a;
}

/* A rig whose configuration may be changed before rig_open(). */
static inline void
rig_init(struct rig *r)
{
	const struct urn_st_hello h = {BUFFERS, SIZE, URN_ST_CAN_READ};
	const struct urn_st_threshold t = {THRESHOLD, FLOOR, CEILING, false, 0};

	memset(r, 0, sizeof(*r));
	r->credit = BUFFERS;
	r->cfg = (struct urn_st_config){.self = h,
					.peer = h,
					.pieces = r->pieces,
					.send_slot = URN_ST_WIRE_MAX + SIZE,
					.recv_slot = URN_ST_WIRE_MAX + SIZE,
					.slots = 32,
					.inlined = INLINED,
					.patience = 3,
					.tx = t,
					.rx = t,
					.act = rig_act,
					.arg = r};
}

static inline void
rig_open(struct rig *r)
{
	assert_int_equal(urn_st_init(&r->st, &r->cfg), 0);
}

/* The next action that a test looks at: those for receives are counted only. NULL: none */
static inline const struct urn_st_action *
rig_peek(struct rig *r)
{
	while (r->seen < r->acts &&
	       (r->act[r->seen].act == URN_ST_A_POST || r->act[r->seen].act == URN_ST_A_FREE ||
		r->act[r->seen].act == URN_ST_A_READABLE ||
		r->act[r->seen].act == URN_ST_A_OFFERED))
		r->seen++;
	return r->seen < r->acts ? &r->act[r->seen] : NULL;
}

static inline const struct urn_st_action *
rig_next(struct rig *r, enum urn_st_act act)
{
	const struct urn_st_action *a = rig_peek(r);

	assert_non_null(a);
	assert_int_equal(a->act, act);
	r->seen++;
	return a;
}

static inline void
rig_nothing(struct rig *r)
{
	assert_null(rig_peek(r));
}

/* The next action sends a message of this kind, for this place. */
static inline const struct urn_st_msg *
rig_sends(struct rig *r, uint8_t kind, uint64_t offset, uint64_t bytes)
{
	const struct urn_st_action *a = rig_next(r, URN_ST_A_SEND);
	const struct urn_st_msg *m = &r->msg[a - r->act];

	assert_int_equal(m->kind, kind);
	assert_int_equal(m->offset, offset);
	assert_int_equal(m->bytes, bytes);
	return m;
}

static inline void
rig_sent(struct rig *r, uint64_t id, uint64_t bytes, enum urn_st_status status)
{
	const struct urn_st_action *a = rig_next(r, URN_ST_A_SENT);

	assert_int_equal(a->id, id);
	assert_int_equal(a->bytes, bytes);
	assert_int_equal(a->status, status);
}

static inline void
rig_received(struct rig *r, uint64_t id, uint64_t bytes, enum urn_st_status status)
{
	const struct urn_st_action *a = rig_next(r, URN_ST_A_RECEIVED);

	assert_int_equal(a->id, id);
	assert_int_equal(a->bytes, bytes);
	assert_int_equal(a->status, status);
}

/* A message of the peer arrives, with the counts of the rig. */
static inline void
rig_feed(struct rig *r, struct urn_st_msg m)
{
	uint8_t bytes[URN_ST_WIRE_MAX + 4 * SIZE] = {0};

	m.credit = r->credit;
	m.seen = r->adverts;
	urn_st_arrived(&r->st, r->slot++, bytes, urn_st_wire_put(bytes, &m) + m.length);
}

static inline void
rig_data(struct rig *r, uint64_t offset, uint32_t length)
{
	rig_feed(r, (struct urn_st_msg){.kind = URN_ST_DATA, .offset = offset, .length = length});
}

static inline void
rig_kind(struct rig *r, uint8_t kind, uint64_t offset, uint64_t bytes)
{
	rig_feed(r, (struct urn_st_msg){.kind = kind, .offset = offset, .bytes = bytes});
}

static inline void
rig_offer(struct rig *r, uint16_t flags, uint64_t offset, uint64_t bytes, uint32_t inlined)
{
	rig_feed(r, (struct urn_st_msg){.kind = URN_ST_SRC_AVAIL,
					.flags = flags,
					.offset = offset,
					.bytes = bytes,
					.addr = 0x9000,
					.key = KEY,
					.length = inlined});
}

static inline void
rig_advert(struct rig *r, uint64_t offset, uint64_t bytes)
{
	rig_feed(r, (struct urn_st_msg){.kind = URN_ST_SINK_AVAIL,
					.offset = offset,
					.bytes = bytes,
					.addr = 0x7000,
					.key = KEY});
}

static inline struct urn_st_area
rig_area(uint64_t id, uint64_t bytes)
{
	return (struct urn_st_area){
		.id = id, .addr = id << 20, .bytes = bytes, .lkey = 1, .rkey = (uint32_t)id + 100};
}

static inline void
rig_send(struct rig *r, uint64_t id, uint64_t bytes)
{
	const struct urn_st_area a = rig_area(id, bytes);

	assert_int_equal(urn_st_send(&r->st, &a), 0);
}

static inline void
rig_receive(struct rig *r, uint64_t id, uint64_t bytes, uint32_t how)
{
	const struct urn_st_area a = rig_area(id, bytes);

	assert_int_equal(urn_st_receive(&r->st, &a, how), 0);
}

/* The connection ends, with Abort or without, and says why; then sends and receives may be looked
 * at. */
static inline void
rig_dies(struct rig *r, enum urn_st_reason reason, bool abort)
{
	assert_int_equal(r->st.state, URN_ST_S_DYING);
	assert_int_equal(r->st.reason, reason);
	if (abort)
		assert_int_equal(r->msg[rig_next(r, URN_ST_A_SEND) - r->act].kind, URN_ST_ABORT);
	rig_next(r, URN_ST_A_DIED);
	rig_nothing(r);
	urn_st_fenced(&r->st);
	assert_int_equal(r->st.state, URN_ST_S_DEAD);
}

#endif
