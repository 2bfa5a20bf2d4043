/* SPDX-License-Identifier: BSD-3-Clause */
/* The independent peer's frames: the judge itself is tested, too. */
#include "peer.h"
#include "rnd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static const struct pw_addr v4[2] = {
	{.mac = {2, 0, 0, 0, 0, 1}, .ip = {10, 0, 0, 1}},
	{.mac = {2, 0, 0, 0, 0, 2}, .ip = {10, 0, 0, 2}},
};
static const struct pw_addr v6[2] = {
	{.mac = {2, 0, 0, 0, 0, 1}, .ip = {0xfe, 0x80, [15] = 1}, .v6 = true},
	{.mac = {2, 0, 0, 0, 0, 2}, .ip = {0xfe, 0x80, [15] = 2}, .v6 = true},
};

/* A packet that a ConnectX-4 Lx sent (a congestion notification): its ICRC is 82 fd 00 2a. */
static void
icrc_of_hardware(void **state)
{
	static const uint8_t packet[40 + 16] = {
		0x45, 0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, 0x0a, 0x00,
		0x11, 0x01, 0x0a, 0x00, 0x12, 0x01, 0x00, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00,
		0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x01, 0x18, 0x00, 0x00, 0x00, 0x00};

	(void)state;
	assert_int_equal(pw_icrc(packet, sizeof(packet)), 0x2a00fd82);
}

static void
psns_wrap(void **state)
{
	(void)state;
	assert_int_equal(pw_diff(0, 0xffffff), 1);
	assert_int_equal(pw_diff(0xffffff, 0), -1);
	assert_int_equal(pw_diff(0x7fffff, 0), 0x7fffff);
	assert_int_equal(pw_diff(0x800000, 0), -0x800000);
	assert_int_equal(pw_add(0xfffffe, 5), 3);
}

static void
same(const struct pw *a, const struct pw *b, unsigned int is)
{
	assert_true(a->op == b->op && a->se == b->se && a->mig == b->mig && a->ack == b->ack);
	assert_true(a->qpn == b->qpn && a->psn == b->psn && a->len == b->len);
	assert_int_equal(b->va, is & (PWI_RETH | PWI_ATOMIC) ? a->va : 0);
	assert_int_equal(b->rkey, is & (PWI_RETH | PWI_ATOMIC) ? a->rkey : 0);
	assert_int_equal(b->dmalen, is & PWI_RETH ? a->dmalen : 0);
	assert_int_equal(b->compare, is & PWI_ATOMIC ? a->compare : 0);
	assert_int_equal(b->swap_add, is & PWI_ATOMIC ? a->swap_add : 0);
	assert_int_equal(b->orig, is & PWI_ORIG ? a->orig : 0);
	assert_int_equal(b->msn, is & PWI_AETH ? a->msn : 0);
	assert_int_equal(b->syn, is & PWI_AETH ? a->syn : 0);
	assert_int_equal(b->imm, is & (PWI_IMM | PWI_INV) ? a->imm : 0);
	if (a->len)
		assert_memory_equal(a->data, b->data, a->len);
}

/* A written frame is read back, for each opcode; and no flipped bit that counts is accepted. */
static void
each_opcode(void **state)
{
	struct rnd rng = rnd_of(1, 1);
	uint8_t data[64], frame[PW_ROOM];
	struct pw f, g;

	(void)state;
	for (unsigned int op = 0; op < 256; op++)
		for (unsigned int n = 0; pw_is((uint8_t)op) && n < 40; n++) {
			const struct pw_addr *a = n & 1 ? v6 : v4;
			unsigned int is = pw_is((uint8_t)op);
			size_t len;

			for (unsigned int i = 0; i < sizeof(data); i++)
				data[i] = (uint8_t)rnd(&rng, 256);
			f = (struct pw){.op = (uint8_t)op, .se = n & 2, .mig = n & 4,
					.ack = !(is & PWI_RESPONSE), .qpn = rnd(&rng, 1 << 24),
					.psn = rnd(&rng, 1 << 24), .va = rnd_next(&rng),
					.rkey = (uint32_t)rnd_next(&rng), .dmalen = rnd(&rng, 1000),
					.swap_add = rnd_next(&rng), .compare = rnd_next(&rng),
					.syn = (uint8_t)rnd(&rng, 32), .msn = rnd(&rng, 1 << 24),
					.orig = rnd_next(&rng), .imm = (uint32_t)rnd_next(&rng),
					.data = data, .len = is & PWI_DATA ? rnd(&rng, 64) : 0};
			len = pw_write(&f, &a[0], &a[1], 0xc123, frame);
			assert_null(pw_read(frame, len, &a[0], &a[1], &g));
			assert_int_equal(g.sport, 0xc123);
			same(&f, &g, is);
			assert_non_null(pw_read(frame, len, &a[1], &a[0], &g));
			assert_non_null(pw_read(frame, len - 1, &a[0], &a[1], &g));
			/* After the BTH's sixth byte each bit counts. */
			frame[len - 1 - rnd(&rng, 10)] ^= (uint8_t)(1 << rnd(&rng, 8));
			assert_non_null(pw_read(frame, len, &a[0], &a[1], &g));
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(icrc_of_hardware),
		cmocka_unit_test(psns_wrap),
		cmocka_unit_test(each_opcode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
