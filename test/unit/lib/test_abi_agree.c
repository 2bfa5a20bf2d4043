/* SPDX-License-Identifier: BSD-3-Clause */
/* Agreeing on a version and on features (architecture.md, seam 10). */
#include "test.h"

#include "abi/agree.h"

#include <string.h>

static char why[120];

/* returns: the version agreed on, or 0 with why[] */
static uint32_t
agree(struct urn_abi_offer library, struct urn_abi_offer dataplane, uint32_t *features)
{
	struct urn_abi_agreed agreed = {77, 77};

	why[0] = '\0';
	if (urn_abi_agree(&library, &dataplane, &agreed, why, sizeof(why)) == 0) {
		assert_string_equal(why, "");
		if (features)
			*features = agreed.features;
		return agreed.version;
	}
	/* A failure leaves the outcome alone. */
	assert_int_equal(agreed.version, 77);
	assert_int_equal(agreed.features, 77);
	assert_true(why[0] != '\0' && strlen(why) < sizeof(why));
	return 0;
}

static void
newest_common(void **state)
{
	struct urn_abi_offer a, b;

	(void)state;
	/* Every pair of small ranges, against a search. */
	for (a.oldest = 1; a.oldest < 6; a.oldest++)
		for (a.newest = a.oldest; a.newest < 6; a.newest++)
			for (b.oldest = 1; b.oldest < 6; b.oldest++)
				for (b.newest = b.oldest; b.newest < 6; b.newest++) {
					uint32_t best = 0;

					for (uint32_t v = 1; v < 6; v++)
						if (v >= a.oldest && v <= a.newest &&
						    v >= b.oldest && v <= b.newest)
							best = v;
					assert_int_equal(agree(a, b, NULL), best);
				}
	assert_int_equal(agree((struct urn_abi_offer){1, UINT32_MAX, 0},
			       (struct urn_abi_offer){UINT32_MAX, UINT32_MAX, 0}, NULL),
			 UINT32_MAX);
}

static void
refusals(void **state)
{
	const struct urn_abi_offer mid = {7, 9, 0};

	(void)state;
	assert_int_equal(agree((struct urn_abi_offer){5, 6, 0}, mid, NULL), 0);
	assert_string_equal(
		why, "the dataplane speaks versions 7 to 9 of the interface, the library 5 to 6: "
		     "upgrade the library");
	assert_int_equal(agree((struct urn_abi_offer){10, 10, 0}, mid, NULL), 0);
	assert_string_equal(
		why, "the dataplane speaks versions 7 to 9 of the interface, the library 10: "
		     "upgrade the dataplane");
	/* A library from before ranges is told what it always was told. */
	assert_int_equal(
		agree((struct urn_abi_offer){6, 0, 0}, (struct urn_abi_offer){7, 7, 0}, NULL), 0);
	assert_string_equal(why, "the dataplane speaks version 7 of the interface, the library 6: "
				 "use the two of one release");
	/* The longest sentence is cut, and ends. */
	assert_int_equal(agree((struct urn_abi_offer){4000000000u, 4000000001u, 0},
			       (struct urn_abi_offer){4000000002u, UINT32_MAX, 0}, NULL),
			 0);
}

/* Both ends may say anything. */
static void
nonsense(void **state)
{
	static const struct urn_abi_offer none[] = {
		{0, 0, 0}, {0, 9, 0}, {9, 8, 0}, {UINT32_MAX, 1, UINT32_MAX}, {2, 1, 1}};
	const struct urn_abi_offer good = URN_ABI_OFFER;

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		assert_int_equal(agree(none[i], good, NULL), 0);
		assert_non_null(strstr(why, "no range"));
		assert_int_equal(agree(good, none[i], NULL), 0);
		assert_non_null(strstr(why, "no range"));
	}
}

static void
features(void **state)
{
	uint32_t has = 0;

	(void)state;
	assert_int_equal(agree((struct urn_abi_offer){7, 8, 5},
			       (struct urn_abi_offer){7, 9, 1u << 31 | 4}, &has),
			 8);
	assert_int_equal(has, 4);
	/* An end of version 6 names none, and has those of its time. */
	assert_int_equal(agree((struct urn_abi_offer){6, 0, 0},
			       (struct urn_abi_offer){6, 9, UINT32_MAX}, &has),
			 6);
	assert_int_equal(has, URN_ABI_FEATURES_6);
	assert_int_equal(agree((struct urn_abi_offer){6, 9, URN_ABI_FEATURE_CM | 1u << 31},
			       (struct urn_abi_offer){6, 6, 0}, &has),
			 6);
	assert_int_equal(has, URN_ABI_FEATURE_CM);
}

/* Bits, words and texts of the list are there, once each. */
static void
list(void **state)
{
	static const struct {
		uint32_t bit;
		const char *word, *text;
	} all[] = {
#define X(name, bit, word, text) {1u << (bit), word, text},
		URN_ABI_FEATURE_LIST(X)
#undef X
	};
	uint32_t bits = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_int_equal(bits & all[i].bit, 0);
		bits |= all[i].bit;
		assert_string_equal(urn_abi_feature_text(all[i].bit), all[i].text);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(all[i].word, all[j].word);
	}
	assert_int_equal(bits, URN_ABI_FEATURES);
	assert_int_equal(URN_ABI_FEATURES_6, 15); /* for ever */
	assert_string_equal(urn_abi_feature_text(1u << 31), "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newest_common), cmocka_unit_test(refusals),
		cmocka_unit_test(nonsense),	 cmocka_unit_test(features),
		cmocka_unit_test(list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
