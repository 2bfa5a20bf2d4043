/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames whose ICRC is missing, until somebody looks (wire/unsealed.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/test_eal.h"
#include "frames.h"
#include "wire/opcode.h"
#include "wire/unsealed.h"
#include "wire/vlan.h"

#include <string.h>

/* A frame of the builder, with a VLAN tag or without; its last four bytes are wrong. */
static struct rte_mbuf *
make(const uint8_t *frame, uint32_t len, bool tag)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(test_eal_pool());

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	memset(rte_pktmbuf_mtod_offset(m, uint8_t *, len - URN_ICRC_BYTES), 0x55, URN_ICRC_BYTES);
	assert_true(!tag || urn_vlan_push(m, 0x6005));
	return m;
}

/* Check that a sealed frame is the builder's, byte by byte, and has no mark. */
static void
check(const struct frame_spec *spec, bool tag)
{
	uint8_t frame[FRAME_ROOM];
	uint32_t len = frame_make(frame, spec);
	struct rte_mbuf *m = make(frame, len, tag);

	m->ol_flags |= urn_unsealed_bit();
	urn_wire_seal(m);
	assert_int_equal(m->ol_flags, 0);
	if (tag)
		urn_vlan_pop(m);
	assert_int_equal(m->data_len, len);
	assert_memory_equal(rte_pktmbuf_mtod(m, uint8_t *), frame, len);
	rte_pktmbuf_free(m);
}

/* Each opcode and family, with a tag and without: the ICRC that the builder writes. */
static void
test_seal(void **state)
{
	uint8_t op[256];
	unsigned int n = frame_opcodes(op);

	(void)state;
	(void)test_eal_pool();
	assert_int_not_equal(urn_unsealed_bit(), 0);
	assert_int_equal(urn_unsealed_bit(), urn_unsealed_bit());
	for (unsigned int i = 0; i < n; i++)
		for (unsigned int way = 0; way < 4; way++) {
			struct frame_spec spec = {
				.opcode = op[i],
				.ipv6 = way & 1,
				.payload = urn_opcodes[op[i]].flags & URN_OPF_PAYLOAD
						   ? 37 * i % 1025
						   : 0,
				.dqpn = 17,
				.psn = i,
				.tos = 2,
				.ttl = 64,
			};

			check(&spec, way & 2);
		}
}

/* A frame without the mark stays as it is, whatever its ICRC. */
static void
test_whole(void **state)
{
	struct frame_spec spec = {.opcode = 0x04, .payload = 100, .ttl = 64};
	uint8_t frame[FRAME_ROOM];
	uint32_t len = frame_make(frame, &spec);
	struct rte_mbuf *m = make(frame, len, false);

	(void)state;
	(void)urn_unsealed_bit();
	urn_wire_seal(m);
	memset(frame + len - URN_ICRC_BYTES, 0x55, URN_ICRC_BYTES);
	assert_memory_equal(rte_pktmbuf_mtod(m, uint8_t *), frame, len);
	rte_pktmbuf_free(m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seal),
		cmocka_unit_test(test_whole),
	};

	return cmocka_run_group_tests_name("wire_unsealed", tests, NULL, NULL);
}
