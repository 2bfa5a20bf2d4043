/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounds of the ends of a path, and OFFER as it travels (FO-19). */
#include "session/heal.h"
#include "session/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

enum { CONN = 7, SEEDS = 2000, STEPS = 60, WIRE = 64 };

/* An end that was made `own` times. */
static struct urn_sess_heal
end(uint32_t own, uint32_t to, uint32_t seen)
{
	return (struct urn_sess_heal){.own = own, .to = to, .seen = seen};
}

/* The step that an offer asks of an end, which stays as it is. */
static enum urn_sess_heal_step
step(struct urn_sess_heal h, uint32_t round, uint32_t to)
{
	return urn_sess_heal_judge(&h, round, to);
}

/* Each rule alone. */
static void
rules(void **state)
{
	struct urn_sess_heal whole = end(2, 3, 3), bare = end(2, 0, 3);

	(void)state;
	assert_int_equal(step(whole, 2, 2), URN_SESS_HEAL_OLD);
	assert_int_equal(step(bare, 2, 0), URN_SESS_HEAL_OLD);
	assert_int_equal(step(whole, 0, 2), URN_SESS_HEAL_FORGED);
	assert_int_equal(step(whole, 3, 3), URN_SESS_HEAL_FORGED);
	assert_int_equal(step(whole, 4 + URN_SESS_HEAL_AHEAD, 0), URN_SESS_HEAL_FORGED);
	assert_int_equal(step(whole, 3, 2), URN_SESS_HEAL_AGREED);
	assert_int_equal(step(whole, 3, 0), URN_SESS_HEAL_TELL);
	assert_int_equal(step(whole, 3, 1), URN_SESS_HEAL_TELL);
	assert_int_equal(step(whole, 4, 0), URN_SESS_HEAL_REMAKE_CONNECT);
	assert_int_equal(step(whole, 4, 2), URN_SESS_HEAL_REMAKE);
	assert_int_equal(step(bare, 3, 0), URN_SESS_HEAL_CONNECT);
	assert_int_equal(step(bare, 4, 2), URN_SESS_HEAL_CONNECT);
	assert_int_equal(step(bare, 3, 1), URN_SESS_HEAL_TELL);
	/* A round that an earlier end was connected to is the least that counts. */
	urn_sess_heal_connected(&bare, 5, false);
	urn_sess_heal_made(&bare);
	assert_int_equal(step(bare, 4, 0), URN_SESS_HEAL_OLD);
}

/* An offer of before the peer's end was connected comes behind a later one: it is too late to
 * connect to that end. Nor does an end that was heard of come back. */
static void
overtaken(void **state)
{
	struct urn_sess_heal h = end(2, 2, 2);

	(void)state;
	assert_int_equal(urn_sess_heal_judge(&h, 3, 2), URN_SESS_HEAL_REMAKE);
	urn_sess_heal_made(&h);
	assert_int_equal(urn_sess_heal_judge(&h, 3, 0), URN_SESS_HEAL_OLD);
	assert_int_equal(urn_sess_heal_judge(&h, 3, 2), URN_SESS_HEAL_TELL);
	assert_int_equal(urn_sess_heal_judge(&h, 2, 2), URN_SESS_HEAL_OLD);
	/* The next one is free. */
	assert_int_equal(urn_sess_heal_judge(&h, 4, 0), URN_SESS_HEAL_CONNECT);
	urn_sess_heal_connected(&h, 4, false);
	assert_int_equal(urn_sess_heal_judge(&h, 4, 0), URN_SESS_HEAL_TELL);
	assert_int_equal(urn_sess_heal_judge(&h, 4, 3), URN_SESS_HEAL_AGREED);
	assert_int_equal(urn_sess_heal_judge(&h, 4, 0), URN_SESS_HEAL_OLD);
	/* A forged offer leaves nothing behind. */
	assert_int_equal(urn_sess_heal_judge(&h, 5, 4), URN_SESS_HEAL_FORGED);
	assert_int_equal(urn_sess_heal_judge(&h, 4, 3), URN_SESS_HEAL_AGREED);
}

/* ---- two ends and a wire that loses, repeats and reorders */

static uint32_t seed;

static uint32_t
draw(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

struct offer {
	uint32_t round, to; /* see urn_sess_heal_judge() */
	int from;	    /* which end sent it */
};

static struct urn_sess_heal ends[2];
static struct offer wire[WIRE]; /* the newest offers: each may come, more than once, or never */
static uint32_t sent;

static void
tell(int who)
{
	wire[sent++ % WIRE] = (struct offer){ends[who].own, ends[who].to, who};
}

static void
hear(int who, const struct offer *o)
{
	struct urn_sess_heal *h = &ends[who];
	enum urn_sess_heal_step s = urn_sess_heal_judge(h, o->round, o->to);

	assert_int_not_equal(s, URN_SESS_HEAL_FORGED);
	if (s == URN_SESS_HEAL_OLD)
		return;
	if (s == URN_SESS_HEAL_AGREED) {
		h->agreed = true;
		return;
	}
	if (s == URN_SESS_HEAL_REMAKE || s == URN_SESS_HEAL_REMAKE_CONNECT)
		urn_sess_heal_made(h);
	if (s == URN_SESS_HEAL_CONNECT || s == URN_SESS_HEAL_REMAKE_CONNECT) {
		assert_int_equal(h->to, 0); /* an end is connected once */
		urn_sess_heal_connected(h, o->round, o->to == h->own);
	}
	tell(who);
}

/* An end that believes in the other one is right, unless that one was made anew since. */
static void
sound(void)
{
	for (int who = 0; who < 2; who++) {
		const struct urn_sess_heal *h = &ends[who], *other = &ends[!who];

		assert_true(h->to <= other->own);
		if (h->agreed && h->to == other->own)
			assert_int_equal(other->to, h->own);
	}
}

/* The ends agree soon after offers are no longer lost and ends no longer made anew. */
static void
converges(void **state)
{
	(void)state;
	for (uint32_t s = 1; s <= SEEDS; s++) {
		uint32_t i;

		seed = s;
		sent = 0;
		urn_sess_heal_begin(&ends[0]);
		urn_sess_heal_begin(&ends[1]);
		for (i = 0; i < STEPS; i++) {
			int who = (int)draw(2);
			uint32_t at = draw(WIRE);

			if (draw(8) == 0)
				urn_sess_heal_made(&ends[who]);
			else if (draw(3) == 0)
				tell(who);
			else if (at < sent)
				hear(!wire[at].from, &wire[at]);
			sound();
		}
		for (i = 0; i < 10 && !(ends[0].agreed && ends[1].agreed); i++)
			for (int who = 0; who < 2; who++) {
				struct offer o = {ends[who].own, ends[who].to, who};

				hear(!who, &o);
				sound();
			}
		assert_true(ends[0].agreed && ends[1].agreed);
		assert_int_equal(ends[0].to, ends[1].own);
		assert_int_equal(ends[1].to, ends[0].own);
	}
}

/* ---- on the wire */

static struct urn_sess_offer
full(void)
{
	struct urn_sess_offer o = {.path = 3,
				   .flags = URN_SESS_O_TRUSTED | URN_SESS_O_KNOWN,
				   .round = 0x11121314,
				   .to = 0x21222324,
				   .qpn = 0x313233,
				   .psn = 0x414243,
				   .ctl_qpn = 0x515253,
				   .ctl_psn = 0x616263,
				   .key = 0x71727374};

	memset(o.gid, 0xa1, sizeof(o.gid));
	return o;
}

/* Each field comes back, at any alignment; the epoch may be 0. */
static void
travels(void **state)
{
	uint8_t area[URN_SESS_WIRE_OFFER_BYTES + 1], *bytes = area + 1;
	struct urn_sess_offer o = full();
	struct urn_sess_msg m;

	(void)state;
	assert_int_equal(urn_sess_wire_offer(bytes, CONN, 0, &o), URN_SESS_WIRE_OFFER_BYTES);
	assert_memory_equal(bytes, "USES\1\4\0\110\0\0\0\7\0\0\0\0\0\0\0\3\0\0\0\3\x11", 25);
	assert_int_equal(bytes[28], 0x21);
	assert_memory_equal(bytes + 32, "\0\x31\x32\x33\0\x41\x42\x43\0\x51\x52\x53\0\x61", 14);
	assert_int_equal(bytes[48], 0x71);
	assert_int_equal(bytes[56], 0xa1);
	assert_int_equal(bytes[71], 0xa1);
	assert_int_equal(urn_sess_wire_get(bytes, URN_SESS_WIRE_OFFER_BYTES, CONN, &m),
			 URN_SESS_V_OK);
	assert_int_equal(m.kind, URN_SESS_WIRE_OFFER);
	assert_int_equal(m.epoch, 0);
	assert_memory_equal(&m.offer, &o, sizeof(o));
	for (uint32_t n = URN_SESS_WIRE_HEAD; n < URN_SESS_WIRE_OFFER_BYTES; n++)
		assert_int_equal(urn_sess_wire_get(bytes, n, CONN, &m), URN_SESS_V_LENGTH);
}

/* The verdict on an offer. */
static enum urn_sess_verdict
verdict(const struct urn_sess_offer *o)
{
	uint8_t bytes[URN_SESS_WIRE_OFFER_BYTES];
	struct urn_sess_msg m;

	urn_sess_wire_offer(bytes, CONN, 1, o);
	return urn_sess_wire_get(bytes, sizeof(bytes), CONN, &m);
}

static void
forgeries(void **state)
{
	struct urn_sess_offer o = full();

	(void)state;
	o.path = URN_SESS_PATHS;
	assert_int_equal(verdict(&o), URN_SESS_V_PATHS);
	o = full();
	o.flags = URN_SESS_O_LOST;
	assert_int_equal(verdict(&o), URN_SESS_V_OK);
	o.flags = 8;
	assert_int_equal(verdict(&o), URN_SESS_V_FLAGS);
	o = full();
	o.round = 0;
	assert_int_equal(verdict(&o), URN_SESS_V_ENDS);
	for (uint32_t i = 0; i < 4; i++) {
		o = full();
		*(uint32_t *[]){&o.qpn, &o.psn, &o.ctl_qpn, &o.ctl_psn}[i] |= 1u << 24;
		assert_int_equal(verdict(&o), URN_SESS_V_ENDS);
	}
	o = full();
	o.qpn = 0;
	assert_int_equal(verdict(&o), URN_SESS_V_ENDS);
	o = full();
	o.ctl_qpn = 0;
	assert_int_equal(verdict(&o), URN_SESS_V_ENDS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules),   cmocka_unit_test(overtaken), cmocka_unit_test(converges),
		cmocka_unit_test(travels), cmocka_unit_test(forgeries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
