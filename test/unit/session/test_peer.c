/* SPDX-License-Identifier: BSD-3-Clause */
/* The answer of a look-up, whole and forged. */
#include "verbs/session/peer.h"

#include "abi/cm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

_Static_assert((int)URN_SV_PEER_BYTES <= (int)URN_CM_SIDR_REP_DATA, "fits an answer");

enum { AT_PATHS = 72, PATH_BYTES = 16 };

static struct urn_sv_peer
whole(void)
{
	struct urn_sv_peer p = {
		.number = 0x010203, .key = {0x11121314, 0x21222324}, .addr = 0x3132333435363738};

	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		p.path[i] = (struct urn_sv_ends){0x010203 + i, 0x40 + i, 0x50 + i, 0x60 + i};
	memset(p.gid[0], 0xa0, sizeof(p.gid[0]));
	memset(p.gid[1], 0xb0, sizeof(p.gid[1]));
	memset(p.asked, 0xc0, sizeof(p.asked));
	return p;
}

/* Read an answer from memory that ends with it, so that a sanitizer sees each byte too many. */
static bool
get(const uint8_t *from, uint32_t bytes, struct urn_sv_peer *p)
{
	const struct urn_sv_peer none = {0};
	uint8_t *copy = malloc(bytes ? bytes : 1);
	bool ok;

	assert_non_null(copy);
	memcpy(copy, from, bytes);
	memset(p, 0xff, sizeof(*p));
	ok = urn_sv_peer_get(copy, bytes, p);
	free(copy);
	if (!ok)
		assert_memory_equal(p, &none, sizeof(none));
	return ok;
}

/* Each field comes back, in network byte order, also from a message with more room. */
static void
same(void **state)
{
	uint8_t bytes[URN_CM_SIDR_REP_DATA] = {0};
	struct urn_sv_peer p = whole(), q;

	(void)state;
	urn_sv_peer_put(bytes, &p);
	assert_memory_equal(bytes, "USP4\0\1\2\3\xa0", 9);
	assert_int_equal(bytes[24], 0xb0);
	assert_memory_equal(bytes + 40, "\x11\x12\x13\x14\x21\x22\x23\x24\x31\x32", 10);
	assert_int_equal(bytes[56], 0xc0);
	assert_int_equal(bytes[71], 0xc0);
	assert_memory_equal(bytes + AT_PATHS, "\0\1\2\3\0\0\0\x40\0\0\0\x50\0\0\0\x60", 16);
	assert_true(get(bytes, URN_SV_PEER_BYTES, &q));
	assert_memory_equal(&p, &q, sizeof(p));
	assert_true(get(bytes, sizeof(bytes), &q));
	assert_memory_equal(&p, &q, sizeof(p));
}

static void
lengths(void **state)
{
	uint8_t bytes[URN_SV_PEER_BYTES];
	struct urn_sv_peer p = whole();

	(void)state;
	urn_sv_peer_put(bytes, &p);
	for (uint32_t n = 0; n < sizeof(bytes); n++)
		assert_false(get(bytes, n, &p));
}

/* Change one byte of an answer and read it. */
static bool
forged(uint32_t at, uint8_t value)
{
	uint8_t bytes[URN_SV_PEER_BYTES];
	struct urn_sv_peer p = whole();

	urn_sv_peer_put(bytes, &p);
	bytes[at] = value;
	return get(bytes, sizeof(bytes), &p);
}

/* Numbers of queue pairs and PSNs have 24 bits, and the number is that of P-P. */
static void
forgeries(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		assert_false(forged(i, 0));
	assert_false(forged(7, 4));
	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		for (uint32_t field = 0; field < 4; field++)
			assert_false(forged(AT_PATHS + i * PATH_BYTES + field * 4, 1));
	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		assert_false(forged(AT_PATHS + i * PATH_BYTES + 11, 0)); /* control alone is 0 */
}

/* A path whose adapter is away has no numbers; P-P has them always. */
static void
away(void **state)
{
	uint8_t bytes[URN_SV_PEER_BYTES];
	struct urn_sv_peer p = whole(), q;

	(void)state;
	p.path[2] = (struct urn_sv_ends){0};
	urn_sv_peer_put(bytes, &p);
	assert_true(get(bytes, sizeof(bytes), &q));
	assert_memory_equal(&p, &q, sizeof(p));
	p = whole();
	p.number = p.path[0].qpn = p.path[0].ctl_qpn = 0;
	urn_sv_peer_put(bytes, &p);
	assert_false(get(bytes, sizeof(bytes), &q));
}

/* The other end's place of a path is the same path, and twice the other end is this end. */
static void
mirrors(void **state)
{
	(void)state;
	assert_int_equal(urn_sv_mirror(0), 0);
	assert_int_equal(urn_sv_mirror(1), 2);
	assert_int_equal(urn_sv_mirror(2), 1);
	assert_int_equal(urn_sv_mirror(3), 3);
}

/* The event of a right answer. */
static struct urn_abi_cm_event
right(void)
{
	struct urn_abi_cm_event ev = {.type = URN_CM_EVENT_SIDR_REPLY,
				      .reason = URN_CM_SIDR_VALID,
				      .qpn = 0x010203,
				      .data_len = URN_CM_SIDR_REP_DATA};
	struct urn_sv_peer p = whole();

	urn_sv_peer_put(ev.data, &p);
	return ev;
}

static enum urn_sv_asked
judged(const struct urn_abi_cm_event *ev)
{
	const struct urn_sv_peer p = whole();
	struct urn_sv_peer got;

	return urn_sv_judge(ev, p.number, p.asked, &got);
}

/* Only an answer of the queue pair and of the adapter that were asked is used. */
static void
answers(void **state)
{
	struct urn_abi_cm_event ev = right();
	struct urn_sv_peer other = whole();

	(void)state;
	assert_int_equal(judged(&ev), URN_SV_FOUND);
	ev.qpn++; /* the program that answered owns another queue pair */
	assert_int_equal(judged(&ev), URN_SV_REFUSED);
	ev = right();
	ev.data[3] = '1'; /* another version */
	assert_int_equal(judged(&ev), URN_SV_REFUSED);
	other.number = other.path[0].qpn = 0x010209;
	urn_sv_peer_put(ev.data, &other);
	assert_int_equal(judged(&ev), URN_SV_REFUSED);
	other = whole();
	other.asked[15]++; /* another adapter */
	urn_sv_peer_put(ev.data, &other);
	assert_int_equal(judged(&ev), URN_SV_REFUSED);
}

/* Only the word of the peer's adapter that nobody listens means that there is no session layer. */
static void
no_answers(void **state)
{
	struct urn_abi_cm_event ev = right();

	(void)state;
	for (int status = 1; status < URN_CM_SIDR_STATUSES + 3; status++) {
		ev.reason = (uint16_t)status;
		assert_int_equal(judged(&ev),
				 status == URN_CM_SIDR_UNSUPPORTED ? URN_SV_NONE : URN_SV_BUSY);
	}
	ev = right();
	ev.type = URN_CM_EVENT_UNREACHABLE;
	assert_int_equal(judged(&ev), URN_SV_SILENT);
}

static void
decisions(void **state)
{
	static const struct {
		enum urn_sv_asked asked;
		bool promised, session;
		int err;
	} table[] = {
		{URN_SV_FOUND, false, true, 0},		{URN_SV_FOUND, true, true, 0},
		{URN_SV_NONE, false, false, 0},		{URN_SV_NONE, true, false, 0},
		{URN_SV_SILENT, false, false, 0},	{URN_SV_SILENT, true, false, ETIMEDOUT},
		{URN_SV_BUSY, false, false, EAGAIN},	{URN_SV_BUSY, true, false, EAGAIN},
		{URN_SV_REFUSED, false, false, EPROTO}, {URN_SV_REFUSED, true, false, EPROTO},
	};
	bool session;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(urn_sv_decide(table[i].asked, table[i].promised, &session),
				 table[i].err);
		assert_int_equal(session, table[i].session);
	}
}

/* The fate of one question. */
struct fate {
	bool arrives; /* at the peer */
	bool returns; /* the answer to this end */
};

struct end {
	bool listens, promised, decided, session;
	int err;
};

/* One end asks the other, and decides: the rules of connect.c on two ends of a model. */
static void
asks(struct end *from, struct end *to, struct fate f)
{
	enum urn_sv_asked asked = URN_SV_SILENT;

	if (f.arrives && to->listens)
		to->promised = true;
	if (f.arrives && f.returns)
		asked = to->listens ? URN_SV_FOUND : URN_SV_NONE;
	from->err = urn_sv_decide(asked, from->promised, &from->session);
	from->decided = from->err == 0;
	if (from->decided && !from->session)
		from->listens = false;
}

/* No end has a session with a plain end, in any order of questions, losses and repeats of RTR. */
static void
ends_agree(void **state)
{
	enum { STEPS = 4, CHOICES = 6 };
	unsigned int runs = 1, mixed = 0;

	(void)state;
	for (int i = 0; i < STEPS; i++)
		runs *= CHOICES;
	for (unsigned int run = 0; run < runs; run++) {
		struct end e[2] = {{.listens = true}, {.listens = true}};
		unsigned int left = run;

		for (int i = 0; i < STEPS; i++, left /= CHOICES) {
			unsigned int who = left % 2, lost = left % CHOICES / 2;

			if (!e[who].decided)
				asks(&e[who], &e[!who],
				     (struct fate){.arrives = lost != 1, .returns = lost == 0});
			if (e[0].decided && e[1].decided)
				assert_int_equal(e[0].session, e[1].session);
			mixed += e[who].err != 0;
		}
	}
	assert_true(mixed > 0); /* errors are seen, too */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same),	     cmocka_unit_test(lengths),
		cmocka_unit_test(forgeries), cmocka_unit_test(mirrors),
		cmocka_unit_test(answers),   cmocka_unit_test(no_answers),
		cmocka_unit_test(decisions), cmocka_unit_test(ends_agree),
		cmocka_unit_test(away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
