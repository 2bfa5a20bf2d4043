/* SPDX-License-Identifier: BSD-3-Clause */
/* Every field of the messages between the peers of urnic-cp is checked (architecture rules 3 and 4). */
#include "cp_test.h"

#include "proto.h"

static struct cp_msg
sample(enum cp_msg_type type)
{
	struct cp_msg msg;

	memset(&msg, 0, sizeof(msg));
	msg.type = type;
	msg.file = type == CP_MSG_CREDIT ? 0 : 0x01020304;
	switch (type) {
	case CP_MSG_FILE:
		msg.announce.size = 0x1122334455667788;
		msg.announce.mode = 0754;
		strcpy(msg.announce.name, "a file");
		break;
	case CP_MSG_END:
		msg.end.ok = true;
		for (unsigned int i = 0; i < CP_DIGEST; i++)
			msg.end.digest[i] = (uint8_t)(i + 1);
		break;
	case CP_MSG_CREDIT:
		msg.credit.done = 0x0102030405060708;
		break;
	case CP_MSG_VERDICT:
		msg.verdict.verdict = CP_MISMATCH;
		msg.verdict.store_ns = 77;
		strcpy(msg.verdict.text, "why not");
		break;
	}
	return msg;
}

/* Messages of every kind are decoded as they were encoded. */
static void
test_round_trip(void **state)
{
	uint8_t buf[CP_MSG_MAX];
	const char *why;

	(void)state;
	for (int type = CP_MSG_FILE; type <= CP_MSG_VERDICT; type++) {
		struct cp_msg in = sample((enum cp_msg_type)type), out;
		size_t len = cp_msg_encode(&in, buf);

		assert_in_range(len, 16, CP_MSG_MAX);
		/* The first bytes do not look like RPC over RDMA to tshark. */
		assert_true((buf[12] | buf[13]) != 0 || buf[14] != 0 || buf[15] > 4);
		assert_int_equal(cp_msg_decode(buf, len, &out, &why), 0);
		assert_memory_equal(&in, &out, sizeof(in));
	}
}

/* Fields travel in network order. */
static void
test_network_order(void **state)
{
	struct cp_msg msg = sample(CP_MSG_CREDIT);
	static const uint8_t done[] = {1, 2, 3, 4, 5, 6, 7, 8};
	uint8_t buf[CP_MSG_MAX];

	(void)state;
	assert_int_equal(cp_msg_encode(&msg, buf), 24);
	assert_memory_equal(buf, "ucp1", 4);
	assert_memory_equal(buf + 16, done, sizeof(done));
}

/* A message that is a byte shorter or longer is refused. */
static void
test_lengths(void **state)
{
	uint8_t buf[CP_MSG_MAX + 1] = {0};
	struct cp_msg out;
	const char *why;

	(void)state;
	for (int type = CP_MSG_FILE; type <= CP_MSG_VERDICT; type++) {
		struct cp_msg in = sample((enum cp_msg_type)type);
		size_t len = cp_msg_encode(&in, buf);

		for (size_t n = 0; n <= CP_MSG_MAX; n++) {
			if (n == len)
				continue;
			assert_int_equal(cp_msg_decode(buf, n, &out, &why), -1);
			assert_non_null(why);
		}
	}
}

/* Damage the bytes at `at` of a message: it must be refused, with a phrase. */
static void
refuse(enum cp_msg_type type, size_t at, const void *bytes, size_t n, const char *phrase)
{
	struct cp_msg in = sample(type), out;
	uint8_t buf[CP_MSG_MAX];
	size_t len = cp_msg_encode(&in, buf);
	const char *why = NULL;

	memcpy(buf + at, bytes, n);
	assert_int_equal(cp_msg_decode(buf, len, &out, &why), -1);
	assert_says(why, phrase);
}

/* Each field with a false value is detected. */
static void
test_lies(void **state)
{
	(void)state;
	refuse(CP_MSG_END, 0, "x", 1, "not urnic-cp's");
	refuse(CP_MSG_END, 12, "\0\0", 2, "unknown kind");
	refuse(CP_MSG_END, 12, "\0\5", 2, "unknown kind");
	refuse(CP_MSG_END, 12, "\377\377", 2, "unknown kind");
	refuse(CP_MSG_END, 12, "\0\1", 2, "wrong length");
	refuse(CP_MSG_END, 14, "\0\0", 2, "wrong length");
	refuse(CP_MSG_END, 16, "\0\0\0\2", 4, "neither complete nor given up");
	refuse(CP_MSG_FILE, 16, "\100\0\0\0\0\0\0\1", 8, "2^62");
	refuse(CP_MSG_FILE, 24, "\0\0\2\0", 4, "0777");
	refuse(CP_MSG_FILE, 28, "\0\0\1\0", 4, "too long");
	refuse(CP_MSG_FILE, 28, "\377\377\377\377", 4, "too long");
	refuse(CP_MSG_FILE, 28, "\0\0\0\0", 4, "empty");
	refuse(CP_MSG_FILE, 28, "\0\0\0\7", 4, "zero byte");
	refuse(CP_MSG_FILE, 32, "..\0\0\0\0", 6, "zero byte");
	refuse(CP_MSG_FILE, 32, "../../", 6, "'/'");
	refuse(CP_MSG_VERDICT, 24, "\0\0\0\5", 4, "unknown verdict");
	refuse(CP_MSG_VERDICT, 28, "\0\0\1\0", 4, "longer than");
}

/* Names that would leave the folder or hide in it. */
static void
test_names(void **state)
{
	char longest[CP_NAME_MAX + 2];

	(void)state;
	memset(longest, 'x', sizeof(longest));
	assert_null(cp_name_check("a", 1));
	assert_null(cp_name_check("...", 3));
	assert_null(cp_name_check("..a", 3));
	assert_null(cp_name_check(".hidden", 7));
	assert_null(cp_name_check("\xff\xfe\n", 3));
	assert_null(cp_name_check(longest, CP_NAME_MAX));
	assert_non_null(cp_name_check(longest, CP_NAME_MAX + 1));
	assert_non_null(cp_name_check("", 0));
	assert_non_null(cp_name_check(".", 1));
	assert_non_null(cp_name_check("..", 2));
	assert_non_null(cp_name_check("/", 1));
	assert_non_null(cp_name_check("a/b", 3));
	assert_non_null(cp_name_check("a\0b", 3));
	assert_non_null(cp_name_check(".urnic-cp-7.part", 16));
}

/* Random damage never gives a message that breaks the rules, nor a read out of bounds. */
static void
test_mutations(void **state)
{
	uint8_t *buf = malloc(CP_MSG_MAX);
	struct cp_msg out;
	const char *why;

	(void)state;
	srand(7);
	for (int i = 0; i < 200000; i++) {
		struct cp_msg in = sample((enum cp_msg_type)(1 + i % 4));
		size_t len = cp_msg_encode(&in, buf);
		uint8_t *exact;

		for (int k = rand() % 4; k >= 0; k--)
			buf[(size_t)rand() % len] = (uint8_t)rand();
		if (i % 10 == 0)
			len = (size_t)rand() % CP_MSG_MAX;
		/* Memory of exactly this size, so that sanitizers see a read beyond it. */
		exact = malloc(len + 1);
		memcpy(exact + 1, buf, len);
		if (cp_msg_decode(exact + 1, len, &out, &why) == 0 && out.type == CP_MSG_FILE) {
			assert_null(cp_name_check(out.announce.name, strlen(out.announce.name)));
			assert_true(out.announce.mode <= 0777);
			assert_true(out.announce.size <= CP_SIZE_MAX);
		}
		free(exact);
	}
	free(buf);
}

/* A stranger's text can't steer the terminal, and keeps its UTF-8. */
static void
test_clean(void **state)
{
	char buf[16];

	(void)state;
	assert_string_equal(cp_text_clean(buf, sizeof(buf), "a\x1b[2J\n\x7f"), "a?[2J??");
	assert_string_equal(cp_text_clean(buf, sizeof(buf), "gr\xc3\xbc"), "gr\xc3\xbc");
	assert_string_equal(cp_text_clean(buf, 4, "abcdef"), "abc");
	assert_string_equal(cp_text_clean(buf, 1, "abcdef"), "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_network_order),
		cmocka_unit_test(test_lengths),	   cmocka_unit_test(test_lies),
		cmocka_unit_test(test_names),	   cmocka_unit_test(test_mutations),
		cmocka_unit_test(test_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
