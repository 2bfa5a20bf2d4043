/* SPDX-License-Identifier: BSD-3-Clause */
/* The session header (FO-7). */
#include "rig.h"

static const struct urn_sess_header good = {
	.id = 0x0102030405060708,
	.acked = 9,
	.conn = 7,
	.length = 100,
	.word = 0x11223344,
	.epoch = 5,
	.flags = URN_SESS_H_IMM,
	.op = 128,
};

/* FO-7: all that a receive completion holds comes back, and the bytes are those of the wire. */
static void
whole(void **state)
{
	struct urn_sess_wire w;
	struct urn_sess_header h;
	const uint8_t *at = (const uint8_t *)&w;

	(void)state;
	urn_sess_header_put(&w, &good);
	assert_int_equal(at[0], 1);
	assert_int_equal(at[7], 8);
	assert_int_equal(at[23], 100);
	assert_int_equal(at[24], 0x11);
	assert_true(urn_sess_header_get(&w, 100, &h));
	assert_int_equal(h.flags, URN_SESS_H_IMM | URN_SESS_H_VALID);
	h.flags = good.flags;
	assert_memory_equal(&h, &good, sizeof(h));
}

/* FO-7, FO-9: a cleared header area, and headers that contradict themselves or their buffer, are
 * none. */
static void
none(void **state)
{
	struct urn_sess_wire w = {0};
	struct urn_sess_header h, bad = good;

	(void)state;
	assert_false(urn_sess_header_get(&w, 100, &h));
	urn_sess_header_put(&w, &good);
	assert_false(urn_sess_header_get(&w, 99, &h));
	w.flags &= (uint8_t)~URN_SESS_H_VALID;
	assert_false(urn_sess_header_get(&w, 100, &h));
	bad.id = 0;
	urn_sess_header_put(&w, &bad);
	assert_false(urn_sess_header_get(&w, 100, &h));
	bad = good;
	bad.flags = URN_SESS_H_IMM | URN_SESS_H_INV;
	urn_sess_header_put(&w, &bad);
	assert_false(urn_sess_header_get(&w, 100, &h));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole),
		cmocka_unit_test(none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
