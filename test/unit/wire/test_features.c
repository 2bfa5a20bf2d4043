/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of features (architecture.md, seam 9): each has a bit, a word and a text, each found by
 * its word.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/link.h"

#include <ctype.h>
#include <string.h>

static void
rows_are_whole(void **state)
{
	uint32_t all = 0;

	(void)state;
	assert_true(urn_link_features.n > 0);
	for (unsigned int i = 0; i < urn_link_features.n; i++) {
		const struct urn_feature *f = &urn_link_features.at[i];

		assert_int_equal(__builtin_popcount(f->mask), 1);
		assert_true(f->mask > all); /* by bit, each once */
		all |= f->mask;
		assert_true(strlen(f->text) > 0);
		assert_true(strlen(f->word) > 0);
		for (const char *s = f->word; *s; s++) /* a key of reports, and a word of a list */
			assert_true(islower(*s) || isdigit(*s) || *s == '_');
		assert_ptr_equal(urn_feature_find(&urn_link_features, f->word, strlen(f->word)), f);
	}
	assert_int_equal(all, URN_LINK_F_ALL);
	assert_int_equal(URN_LINK_F_SACK, 1); /* the bit that peers of other releases send */
}

static void
other_words(void **state)
{
	(void)state;
	assert_null(urn_feature_find(&urn_link_features, "", 0));
	assert_null(urn_feature_find(&urn_link_features, "sac", 3));
	assert_null(urn_feature_find(&urn_link_features, "sacks", 5));
	assert_null(urn_feature_find(&urn_link_features, "SACK", 4));
	assert_non_null(urn_feature_find(&urn_link_features, "sack, more", 4));
	assert_null(urn_feature_find(&(struct urn_features){0}, "sack", 4));
}

/* Every feature, and bits that have no row, travel as they are. */
static void
on_the_wire(void **state)
{
	uint8_t mad[URN_MAD_BYTES];

	(void)state;
	for (unsigned int bit = 0; bit < 32; bit++) {
		struct urn_link_msg out = {.info.features = 1u << bit}, in;

		urn_link_write(mad, &out);
		assert_int_equal(urn_link_read(mad, 1, &in), URN_C_LINK_REQ_RX);
		assert_int_equal(in.info.features, 1u << bit);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_whole),
		cmocka_unit_test(other_words),
		cmocka_unit_test(on_the_wire),
	};

	return cmocka_run_group_tests_name("features", tests, NULL, NULL);
}
