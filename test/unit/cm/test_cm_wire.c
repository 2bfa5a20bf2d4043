/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two connection managers and a wire that loses, duplicates and reorders their messages,
 * under a virtual clock, from seeds. Programs on both connect to each other, accept or
 * refuse, slowly or at once, end what they have, or die. In the end every connection is
 * up on both sides or on neither, private data arrived unchanged, and nothing is left.
 *
 * usage: test_cm_wire [SEED | -COUNT | FIRST LAST]
 */
#include "cm/cm.h"
#include "common/test_cm_look.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS 1000000ull

enum { PAIRS = 24, WIRE = 512, TASKS = 512, SERVICE = 0x01061000 };

/* A side's view of its connection. */
enum view { NOTHING, ASKED, UP, FAILED, ENDED };

struct side {
	uint32_t id;
	enum view view;
	bool was_up;
};

/* The plan of the programs of a pair. */
struct pair {
	unsigned int from;      /* the node that asks */
	bool sidr, refuse, abrupt;
	bool ends;              /* the node that ends the connection is the one that asked */
	struct side s[2];       /* sides, by node */
};

struct frame {
	uint64_t at;            /* ns: time of arrival; 0: free */
	unsigned int to;
	uint8_t mad[URN_MAD_BYTES];
};

struct todo {
	uint64_t at;            /* ns; 0: free */
	unsigned int node;
	struct urn_abi_cm_event ev;
};

static struct world {
	struct urn_cm *cm[2];
	struct urn_cm_owner owner[2];
	bool dead[2];
	struct pair pair[PAIRS];
	struct frame wire[WIRE];
	struct todo todo[TASKS];
	uint64_t now, rng, seed;
	unsigned int lose, twice;  /* messages, of a hundred */
	uint64_t slow;          /* ns: longest delay of a program */
	uint64_t up, failed;    /* pairs */
} w;

static const uint8_t gid[2][16] = {{[10] = 0xff, [11] = 0xff, [15] = 1},
				   {[10] = 0xff, [11] = 0xff, [15] = 2}};

static uint64_t
rnd(uint64_t n)
{
	uint64_t z = w.rng += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (z ^ z >> 31) % n;
}

/* Fail the test when a condition does not hold. */
#define must(cond)                                                                             \
	do {                                                                                   \
		if (!(cond))                                                                   \
			fail_msg("seed %llu: %s does not hold", (unsigned long long)w.seed, #cond); \
	} while (0)

/* ---- the wire */

static void
put_on_wire(unsigned int to, const uint8_t *mad)
{
	for (unsigned int i = 0; i < WIRE; i++) {
		if (w.wire[i].at)
			continue;
		w.wire[i].at = w.now + 1 + rnd(rnd(4) ? MS / 10 : 20 * MS);
		w.wire[i].to = to;
		memcpy(w.wire[i].mad, mad, URN_MAD_BYTES);
		return;
	}
	fail_msg("seed %llu: the wire is full", (unsigned long long)w.seed);
}

static enum urn_cm_sending
send_mad(void *ctx, uint32_t id, const uint8_t own[16], const uint8_t peer[16], const uint8_t *mad,
	 bool wait)
{
	unsigned int me = (unsigned int)(uintptr_t)ctx;

	(void)id, (void)wait;
	must(memcmp(own, gid[me], 16) == 0 && memcmp(peer, gid[!me], 16) == 0);
	if (rnd(50) == 0)
		return URN_CM_NO_ROOM; /* refused at random */
	if (rnd(100) >= w.lose)
		put_on_wire(!me, mad);
	if (rnd(100) < w.twice)
		put_on_wire(!me, mad);
	return URN_CM_SENDS;
}

static bool
take_event(void *ctx, struct urn_cm_owner *o, int32_t channel, const struct urn_abi_cm_event *ev)
{
	unsigned int me = (unsigned int)(uintptr_t)ctx;

	(void)channel;
	must(o == &w.owner[me] && !w.dead[me]);
	if (rnd(50) == 0)
		return false;
	for (unsigned int i = 0; i < TASKS; i++) {
		if (w.todo[i].at)
			continue;
		w.todo[i].at = w.now + 1 + rnd(w.slow);
		/* Events of an id stay in order. */
		for (unsigned int k = 0; k < TASKS; k++)
			if (w.todo[k].at && w.todo[k].node == me && w.todo[k].ev.id == ev->id &&
			    w.todo[k].at >= w.todo[i].at && k != i)
				w.todo[i].at = w.todo[k].at + 1;
		w.todo[i].node = me;
		w.todo[i].ev = *ev;
		return true;
	}
	return false;
}

/* ---- programs */

/* Private data of pair `p`, by kind of message. */
static void
data_of(uint8_t *d, unsigned int n, unsigned int p, uint8_t kind)
{
	d[0] = (uint8_t)p;
	for (unsigned int i = 1; i < n; i++)
		d[i] = (uint8_t)(p * 31 + kind * 7 + i);
}

static void
check_data(const struct urn_abi_cm_event *ev, unsigned int p, uint8_t kind, unsigned int n)
{
	uint8_t want[URN_CM_DATA_MAX] = {0};

	data_of(want, n, p, kind);
	must(ev->data_len == n && memcmp(ev->data, want, n) == 0);
}

static void
ask(unsigned int p)
{
	struct pair *pr = &w.pair[p];
	unsigned int me = pr->from;
	struct urn_abi_cm_connect c = {
		.service_id = SERVICE + p % 2,
		.cookie = p,
		.qpn = 100 + p,
		.psn = p,
		.mtu = 5,
		.timeout = 12, /* 17 ms */
		.max_retries = 15,
		.ack_timeout = 14,
		.data_len = pr->sidr ? URN_CM_SIDR_REQ_DATA : URN_CM_REQ_DATA,
	};

	memcpy(c.dgid, gid[!me], 16);
	data_of(c.data, c.data_len, p, pr->sidr ? URN_CM_SIDR_REQ : URN_CM_REQ);
	if (pr->sidr)
		must(urn_cm_resolve(w.cm[me], &w.owner[me], &c, gid[me], w.now, &pr->s[me].id) == 0);
	else
		must(urn_cm_connect(w.cm[me], &w.owner[me], &c, gid[me], w.now, &pr->s[me].id) == 0);
	pr->s[me].view = ASKED;
}

static void
answer(unsigned int me, const struct urn_abi_cm_event *ev)
{
	unsigned int p = ev->data[0];
	struct pair *pr = &w.pair[p];
	struct urn_abi_cm_accept a = {.qpn = 200 + p, .psn = p + 1};
	struct urn_abi_cm_reject r = {.reason = URN_CM_REJ_CONSUMER, .data_len = URN_CM_REJ_DATA};
	bool sidr = ev->type == URN_CM_EVENT_SIDR_REQUEST;

	must(p < PAIRS && pr->from != me && pr->sidr == sidr);
	check_data(ev, p, sidr ? URN_CM_SIDR_REQ : URN_CM_REQ,
		   sidr ? URN_CM_SIDR_REQ_DATA : URN_CM_REQ_DATA);
	if (pr->s[me].id) /* a copy that came after the connection was forgotten */
		urn_cm_release(w.cm[me], &w.owner[me], pr->s[me].id, w.now);
	pr->s[me].id = ev->id;
	a.data_len = sidr ? URN_CM_SIDR_REP_DATA : URN_CM_REP_DATA;
	a.status = sidr && pr->refuse ? URN_CM_SIDR_REJECT : URN_CM_SIDR_VALID;
	data_of(a.data, a.data_len, p, sidr ? URN_CM_SIDR_REP : URN_CM_REP);
	data_of(r.data, r.data_len, p, URN_CM_REJ);
	/* The peer may have given up by now: ENOTCONN. */
	if (pr->refuse && !sidr) {
		urn_cm_reject(w.cm[me], &w.owner[me], ev->id, &r, w.now);
		pr->s[me].view = FAILED;
	} else {
		urn_cm_accept(w.cm[me], &w.owner[me], ev->id, &a, w.now);
		pr->s[me].view = ASKED;
	}
}

static unsigned int
pair_of(unsigned int me, uint32_t id)
{
	unsigned int p = 0;

	while (p < PAIRS && w.pair[p].s[me].id != id)
		p++;
	return p;
}

static void
end_it(unsigned int me, unsigned int p)
{
	struct urn_abi_cm_data d = {.data_len = URN_CM_DREQ_DATA};
	struct side *s = &w.pair[p].s[me];

	data_of(d.data, d.data_len, p, URN_CM_DREQ);
	if (w.pair[p].abrupt) {
		must(urn_cm_release(w.cm[me], &w.owner[me], s->id, w.now) == 0);
		s->id = 0;
		s->view = ENDED;
	} else {
		urn_cm_disconnect(w.cm[me], &w.owner[me], s->id, &d, w.now);
	}
}

static void
on_reply(unsigned int me, unsigned int p, struct side *s, const struct urn_abi_cm_event *ev)
{
	struct urn_abi_cm_data d = {.data_len = URN_CM_RTU_DATA};

	check_data(ev, p, URN_CM_REP, URN_CM_REP_DATA);
	must(ev->qpn == 200 + p && ev->psn == p + 1);
	data_of(d.data, d.data_len, p, URN_CM_RTU);
	/* The connection may have been rejected since. */
	if (urn_cm_establish(w.cm[me], &w.owner[me], s->id, &d, w.now) == 0) {
		s->view = UP;
		s->was_up = true;
	}
}

static void
on_event(unsigned int me, const struct urn_abi_cm_event *ev)
{
	struct urn_abi_cm_data d = {.data_len = URN_CM_DREP_DATA};
	unsigned int p;
	struct side *s;

	if (ev->type == URN_CM_EVENT_REQUEST || ev->type == URN_CM_EVENT_SIDR_REQUEST) {
		answer(me, ev);
		return;
	}
	p = pair_of(me, ev->id);
	if (p == PAIRS)
		return; /* released meanwhile */
	s = &w.pair[p].s[me];
	switch (ev->type) {
	case URN_CM_EVENT_REPLY:
		on_reply(me, p, s, ev);
		break;
	case URN_CM_EVENT_ESTABLISHED:
		check_data(ev, p, URN_CM_RTU, URN_CM_RTU_DATA);
		s->view = UP;
		s->was_up = true;
		break;
	case URN_CM_EVENT_REJECTED:
		if (ev->reason == URN_CM_REJ_CONSUMER && !w.dead[!me])
			check_data(ev, p, URN_CM_REJ, URN_CM_REJ_DATA);
		s->view = FAILED;
		break;
	case URN_CM_EVENT_UNREACHABLE:
		s->view = FAILED;
		break;
	case URN_CM_EVENT_DISCONNECT:
		data_of(d.data, d.data_len, p, URN_CM_DREP);
		urn_cm_disconnect(w.cm[me], &w.owner[me], ev->id, &d, w.now);
		s->view = ENDED;
		break;
	case URN_CM_EVENT_DISCONNECTED:
		s->view = ENDED;
		break;
	case URN_CM_EVENT_SIDR_REPLY:
		s->view = UP;
		if (w.dead[!me]) /* the dataplane's answer, perhaps */
			break;
		must((ev->reason == 0) == !w.pair[p].refuse);
		check_data(ev, p, URN_CM_SIDR_REP, URN_CM_SIDR_REP_DATA);
		break;
	default:
		must(ev->type == URN_CM_EVENT_TIMEWAIT);
	}
}

/* ---- time */

static uint64_t
earlier(uint64_t a, uint64_t b)
{
	return b && b < a ? b : a;
}

static void
deliver(struct frame *f)
{
	enum urn_counter c;

	c = urn_cm_input(w.cm[f->to], gid[!f->to], gid[f->to], 1, f->mad, w.now);
	must(c < URN_COUNTER_COUNT && c != URN_C_DROP_CM_FIELD && c != URN_C_DROP_CM_VERSION);
	f->at = 0;
}

/* Run until that time, or until nothing more can happen. */
static void
run(uint64_t end)
{
	for (;;) {
		uint64_t next = UINT64_MAX;

		for (unsigned int i = 0; i < WIRE; i++)
			next = earlier(next, w.wire[i].at);
		for (unsigned int i = 0; i < TASKS; i++)
			next = earlier(next, w.todo[i].at);
		for (unsigned int n = 0; n < 2; n++)
			next = earlier(next, urn_cm_due(w.cm[n]));
		if (next > end || next == UINT64_MAX)
			break;
		w.now = next > w.now ? next : w.now;
		for (unsigned int i = 0; i < WIRE; i++)
			if (w.wire[i].at && w.wire[i].at <= w.now)
				deliver(&w.wire[i]);
		for (unsigned int i = 0; i < TASKS; i++) {
			struct todo t = w.todo[i];

			if (!t.at || t.at > w.now)
				continue;
			w.todo[i].at = 0;
			on_event(t.node, &t.ev);
		}
		for (unsigned int n = 0; n < 2; n++)
			urn_cm_tick(w.cm[n], w.now);
	}
	must(test_cm_sound(w.cm[0]) && test_cm_sound(w.cm[1]));
	if (end != UINT64_MAX)
		w.now = end;
}

/* A program dies, with all its tasks. */
static void
die(unsigned int n)
{
	while (urn_cm_owner_goes(w.cm[n], &w.owner[n], w.now))
		;
	w.dead[n] = true;
	for (unsigned int i = 0; i < TASKS; i++)
		if (w.todo[i].node == n)
			w.todo[i].at = 0;
}

static void
make(uint64_t seed)
{
	memset(&w, 0, sizeof(w));
	w.seed = w.rng = seed;
	w.now = 1000000000;
	w.lose = (unsigned int)rnd(26);
	w.twice = (unsigned int)rnd(26);
	w.slow = rnd(2) ? 100 * MS : MS / 10;
	for (unsigned int n = 0; n < 2; n++) {
		struct urn_cm_config cfg = {.max_ids = 256, .seed = rnd(UINT64_MAX), .send = send_mad,
					    .event = take_event, .ctx = (void *)(uintptr_t)n};
		uint32_t id;

		w.cm[n] = urn_cm_create(&cfg);
		must(w.cm[n]);
		urn_cm_owner_init(&w.owner[n], 0, NULL);
		for (unsigned int k = 0; k < 2; k++) {
			struct urn_abi_cm_listen l = {.service_id = SERVICE + k, .backlog = k ? 2 : 0};

			must(urn_cm_listen(w.cm[n], &w.owner[n], &l, &id) == 0);
		}
	}
	for (unsigned int p = 0; p < PAIRS; p++) {
		struct pair *pr = &w.pair[p];

		pr->from = (unsigned int)rnd(2);
		pr->sidr = rnd(6) == 0;
		pr->refuse = rnd(5) == 0;
		pr->abrupt = rnd(4) == 0;
		pr->ends = rnd(2);
	}
}

/* Up on both sides, or on neither. */
static void
check_agreement(void)
{
	for (unsigned int p = 0; p < PAIRS; p++) {
		const struct pair *pr = &w.pair[p];
		const struct side *a = &pr->s[pr->from], *b = &pr->s[!pr->from];

		if (pr->sidr) {
			must(a->view == UP || a->view == FAILED);
			continue;
		}
		must(a->view == UP || a->view == FAILED);
		must((a->view == UP) == (b->view == UP));
		must(!pr->refuse || a->view == FAILED);
		w.up += a->view == UP;
		w.failed += a->view == FAILED;
	}
}

static void
one(uint64_t seed)
{
	bool death;

	make(seed);
	death = rnd(4) == 0;
	for (unsigned int p = 0; p < PAIRS; p++) {
		ask(p);
		run(w.now + rnd(10 * MS));
	}
	if (death) {
		run(w.now + rnd(100 * MS));
		die((unsigned int)rnd(2));
	}
	/* Longer than any timer of connection management. */
	run(w.now + 300000 * MS);
	if (!death)
		check_agreement();
	for (unsigned int p = 0; p < PAIRS; p++) {
		unsigned int me = w.pair[p].ends ? w.pair[p].from : !w.pair[p].from;

		if (!w.dead[me] && w.pair[p].s[me].id && w.pair[p].s[me].view == UP && !w.pair[p].sidr)
			end_it(me, p);
		if (rnd(3) == 0) /* both at once */
			run(w.now + rnd(MS));
	}
	run(UINT64_MAX);
	for (unsigned int p = 0; p < PAIRS && !death; p++)
		for (unsigned int n = 0; n < 2; n++)
			must(!w.pair[p].s[n].was_up || w.pair[p].s[n].view == ENDED);
	for (unsigned int n = 0; n < 2; n++)
		if (!w.dead[n])
			die(n);
	run(UINT64_MAX);
	for (unsigned int n = 0; n < 2; n++) {
		must(test_cm_count(w.cm[n]) == 0);
		urn_cm_destroy(w.cm[n]);
	}
}

static uint64_t first = 1, last = 400;

static void
test_seeds(void **state)
{
	uint64_t up = 0, failed = 0;

	(void)state;
	for (uint64_t s = first; s <= last; s++) {
		one(s);
		up += w.up;
		failed += w.failed;
	}
	printf("seeds %llu to %llu: %llu connections came up, %llu failed on both sides\n",
	       (unsigned long long)first, (unsigned long long)last, (unsigned long long)up,
	       (unsigned long long)failed);
	assert_true(first == last || up > failed);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_seeds)};

	if (argc > 1) {
		long long n = atoll(argv[1]);

		first = n < 0 ? 1 : (uint64_t)n;
		last = (uint64_t)(n < 0 ? -n : n);
	}
	if (argc > 2)
		last = (uint64_t)atoll(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
