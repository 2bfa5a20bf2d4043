/* SPDX-License-Identifier: BSD-3-Clause */
/* The 52 bytes by which urnic-pingpong and its peer tell each other their queue pairs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "urnic-pingpong/pp.h"

/* A message written by ibv_rc_pingpong of rdma-core. */
static const char real[PP_MSG] = "0000:000011:8bb88a:00000000000000000000ffff0a4d000b";

static struct urn_err err;

static void
message_of_the_kernels_side(void **state)
{
	static const uint8_t gid[16] = {[10] = 0xff, 0xff, 10, 77, 0, 11};
	struct urn_ep_addr addr;
	char again[PP_MSG];

	(void)state;
	assert_int_equal(pp_msg_parse(real, &addr, &err), 0);
	assert_int_equal(addr.qpn, 0x11);
	assert_int_equal(addr.psn, 0x8bb88a);
	assert_int_equal(addr.mtu_code, 0);
	assert_memory_equal(addr.gid, gid, 16);
	memset(again, 'x', sizeof(again));
	pp_msg_make(again, &addr);
	assert_memory_equal(again, real, PP_MSG);
}

/* Every byte matters: a byte that does not belong makes the message invalid. */
static void
messages_that_are_none(void **state)
{
	struct urn_ep_addr addr;
	char msg[PP_MSG];

	(void)state;
	for (unsigned int i = 0; i < PP_MSG; i++) {
		memcpy(msg, real, PP_MSG);
		msg[i] = 'g';
		assert_int_equal(pp_msg_parse(msg, &addr, &err), -1);
		msg[i] = (char)0xff;
		assert_int_equal(pp_msg_parse(msg, &addr, &err), -1);
	}
	assert_non_null(strstr(err.text, "LID:QPN:PSN:GID"));
	/* Upper case is accepted, too. */
	memcpy(msg, real, PP_MSG);
	msg[12 + 1] = 'B';
	assert_int_equal(pp_msg_parse(msg, &addr, &err), 0);
	assert_int_equal(addr.psn, 0x8bb88a);
	/* ibv_rc_pingpong without -g */
	memset(msg + 19, '0', 32);
	assert_int_equal(pp_msg_parse(msg, &addr, &err), -1);
	assert_non_null(strstr(err.text, "-g"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_of_the_kernels_side),
		cmocka_unit_test(messages_that_are_none),
	};

	return cmocka_run_group_tests_name("pp_message", tests, NULL, NULL);
}
