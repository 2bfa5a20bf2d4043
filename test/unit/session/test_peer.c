/* SPDX-License-Identifier: BSD-3-Clause */
/* The answer of a look-up, whole and forged. */
#include "verbs/session/peer.h"

#include "abi/cm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>

_Static_assert((int)URN_SV_PEER_BYTES <= (int)URN_CM_SIDR_REP_DATA, "fits an answer");

enum { AT_PATHS = 64, PATH_BYTES = 16 };

static struct urn_sv_peer
whole(void)
{
	struct urn_sv_peer p = {
		.number = 0x010203, .key = {0x11121314, 0x21222324}, .addr = 0x3132333435363738};

	for (uint32_t i = 0; i < URN_SV_PATHS; i++)
		p.path[i] = (struct urn_sv_ends){0x010203 + i, 0x40 + i, 0x50 + i, 0x60 + i};
	memset(p.gid[0], 0xa0, sizeof(p.gid[0]));
	memset(p.gid[1], 0xb0, sizeof(p.gid[1]));
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
	assert_memory_equal(bytes, "USP1\0\1\2\3\xa0", 9);
	assert_int_equal(bytes[24], 0xb0);
	assert_memory_equal(bytes + 40, "\x11\x12\x13\x14\x21\x22\x23\x24\x31\x32", 10);
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
		assert_false(forged(AT_PATHS + i * PATH_BYTES + 11, 0)); /* control, number 0 */
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same),
		cmocka_unit_test(lengths),
		cmocka_unit_test(forgeries),
		cmocka_unit_test(mirrors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
