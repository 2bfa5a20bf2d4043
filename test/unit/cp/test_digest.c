/* SPDX-License-Identifier: BSD-3-Clause */
/* SHA-256 against the vectors of FIPS 180-4, whole and in pieces. */
#include "cp_test.h"

#include "digest.h"

static void
expect(const char *text, size_t piece, const char *hex)
{
	struct cp_digest d = {NULL};
	char got[2 * CP_DIGEST + 1];
	uint8_t digest[CP_DIGEST];
	size_t len = strlen(text);
	struct urn_err err;

	/* Twice: a context is used again for the next file. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cp_digest_begin(&d, &err), 0);
		for (size_t at = 0; at < len; at += piece) {
			size_t n = len - at < piece ? len - at : piece;

			assert_int_equal(cp_digest_add(&d, text + at, n, &err), 0);
		}
		assert_int_equal(cp_digest_end(&d, digest, &err), 0);
		assert_string_equal(cp_digest_text(got, digest), hex);
	}
	cp_digest_free(&d);
	cp_digest_free(&d);
}

static void
test_vectors(void **state)
{
	static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

	(void)state;
	expect("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	expect("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	expect("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	expect(two, 7, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
