/* SPDX-License-Identifier: BSD-3-Clause */
/* Socket addresses, and the names of queues (DB-11). */
#include "test.h"

#include "msg/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

static void
v4(void **state)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(53)}, out;
	socklen_t len = sizeof(out);
	struct urn_addr a;
	char text[INET6_ADDRSTRLEN];

	(void)state;
	inet_pton(AF_INET, "10.1.2.3", &in.sin_addr);
	assert_int_equal(urn_addr_get(&a, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(a.port, 53);
	assert_true(urn_addr_is_v4(a.gid));
	assert_false(urn_addr_is_any(a.gid));
	assert_string_equal(inet_ntop(AF_INET6, a.gid, text, sizeof(text)), "::ffff:10.1.2.3");
	urn_addr_put(&a, AF_INET, (struct sockaddr *)&out, &len);
	assert_int_equal(len, sizeof(out));
	assert_memory_equal(&in, &out, sizeof(in));
	in.sin_addr.s_addr = 0;
	assert_int_equal(urn_addr_get(&a, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_true(urn_addr_is_any(a.gid));
	assert_int_equal(urn_addr_get(&a, (struct sockaddr *)&in, 8), EINVAL);
	assert_int_equal(urn_addr_get(&a, NULL, 0), EINVAL);
	in.sin_family = AF_UNIX;
	assert_int_equal(urn_addr_get(&a, (struct sockaddr *)&in, sizeof(in)), EAFNOSUPPORT);
}

static void
v6(void **state)
{
	struct sockaddr_in6 in = {.sin6_family = AF_INET6, .sin6_port = htons(9)}, out;
	socklen_t len = 4; /* cut */
	struct urn_addr a;

	(void)state;
	inet_pton(AF_INET6, "fd00::5", &in.sin6_addr);
	assert_int_equal(urn_addr_get(&a, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_false(urn_addr_is_v4(a.gid));
	memset(&out, 0x55, sizeof(out));
	urn_addr_put(&a, AF_INET6, (struct sockaddr *)&out, &len);
	assert_int_equal(len, sizeof(out));
	assert_int_equal(out.sin6_family, AF_INET6);
	assert_int_equal(out.sin6_addr.s6_addr[0], 0x55);
}

static void
ports(void **state)
{
	(void)state;
	assert_int_equal(urn_addr_name(53, 0), 0x80000035u);
	assert_int_equal(urn_addr_port(URN_MSG_NAME(urn_addr_name(53, 0))), 53);
	assert_int_equal(urn_addr_port(URN_MSG_NAME(urn_addr_name(60000, 3))), 60000);
	assert_int_equal(urn_addr_port(URN_MSG_NAME(53)), 0);
	assert_int_equal(urn_addr_port(URN_MSG_NAME(urn_addr_name(53, URN_PORT_OUTLETS))), 0);
	assert_int_equal(urn_addr_port(URN_MSG_QID(5, 0, 53)), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(v4), cmocka_unit_test(v6),
					   cmocka_unit_test(ports)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
