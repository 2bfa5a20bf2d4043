/* SPDX-License-Identifier: BSD-3-Clause */
/* The header of rsockets' datagrams, as rdma-core lays it out (RS-1). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dropin/rdmacm/rsocket/dgram.h"

#include <arpa/inet.h>
#include <string.h>

static void
test_v4(void **state)
{
	static const uint8_t wire[] = {4, 8, 0x1d, 0x2f, 10, 0, 0, 1};
	struct sockaddr_in a = {.sin_family = AF_INET};
	struct sockaddr_storage got;
	struct urn_rs_dgram_hdr h;

	(void)state;
	inet_pton(AF_INET, "10.0.0.1", &a.sin_addr);
	assert_int_equal(urn_rs_dgram_hdr_write((struct sockaddr *)&a, 7471, &h), sizeof(wire));
	assert_memory_equal(&h, wire, sizeof(wire));
	assert_int_equal(urn_rs_dgram_hdr_read(wire, sizeof(wire), &got), sizeof(wire));
	a.sin_port = htons(7471);
	assert_memory_equal(&got, &a, sizeof(a));
}

static void
test_v6(void **state)
{
	struct sockaddr_in6 a = {.sin6_family = AF_INET6}, got;
	struct sockaddr_storage s;
	struct urn_rs_dgram_hdr h;

	(void)state;
	inet_pton(AF_INET6, "fd00:7::1", &a.sin6_addr);
	assert_int_equal(urn_rs_dgram_hdr_write((struct sockaddr *)&a, 5, &h), 24);
	assert_int_equal(urn_rs_dgram_hdr_read((uint8_t *)&h, 24, &s), 24);
	memcpy(&got, &s, sizeof(got));
	a.sin6_port = htons(5);
	assert_memory_equal(&got, &a, sizeof(a));
}

/* No header: other versions, other lengths, ends that are missing. */
static void
test_bad(void **state)
{
	static const uint8_t bad[][8] = {{4, 24}, {6, 8}, {5, 8}, {4, 0}, {4, 255}, {0, 0}};
	const uint8_t v6[24] = {6, 24}, v4[8] = {4, 8};
	struct sockaddr_storage s;

	(void)state;
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(urn_rs_dgram_hdr_read(bad[i], 8, &s), 0);
	for (uint32_t n = 0; n < 24; n++)
		assert_int_equal(urn_rs_dgram_hdr_read(v6, n, &s), 0);
	for (uint32_t n = 0; n < 8; n++)
		assert_int_equal(urn_rs_dgram_hdr_read(v4, n, &s), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_v4),
		cmocka_unit_test(test_v6),
		cmocka_unit_test(test_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
