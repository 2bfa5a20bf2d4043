/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The printed table, and doc/reference/urnicd.md, which must say the same. argv[1]: the project's
 * folder; without it, the reference for doc/reference/urnicd.md is printed.
 */
#include "config_test.h"

static const char *project;

static char *
printed(void (*print)(FILE *))
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	print(f);
	fclose(f);
	return text;
}

/* Each section and each key, with a value, a default and a line. */
static void
help_is_whole(void **state)
{
	char *text = printed(urn_config_help), *at = text;
	char want[64];

	(void)state;
	for (unsigned int i = 0; i < URN_CONFIG_KINDS; i++) {
		const struct urn_config_kind *kind = &urn_config_kinds[i];

		snprintf(want, sizeof(want), "[%s%s%s]\n", kind->name, kind->arg ? " " : "",
			 kind->arg ? kind->arg : "");
		at = strstr(at, want);
		assert_non_null(at);
		for (unsigned int k = 0; k < kind->keys; k++) {
			const struct urn_config_key *key = &kind->key[k];

			snprintf(want, sizeof(want), "\n  %s%s%s\n      ", key->name,
				 key->arg ? " " : "", key->arg ? key->arg : "");
			at = strstr(at, want);
			if (!at)
				fail_msg("%s is not in the help", key->name);
			assert_true(strlen(key->help) > 5 && strlen(key->preset) > 0);
		}
	}
	assert_null(strstr(text, "(null)"));
	free(text);
}

static void
help_reads_well(void **state)
{
	static const char *const parts[] = {
		"[engine N]\n  A thread that polls,",
		"\n  sleep\n      ... for so long at a time, up to 1ms when nothing comes for "
		"long\n      value: 1us to 1ms; default: "
		"100us\n",
		"\n  idle\n      spin, pause or sleep when there is nothing to do\n"
		"      value: spin, pause or sleep; default: the value in [urnicd]\n",
		"\n  impair WHO[.in|.out]\n",
	};
	char *text = printed(urn_config_help);

	(void)state;
	for (size_t i = 0; i < RTE_DIM(parts); i++) {
		if (!strstr(text, parts[i]))
			fail_msg("%s\n is not in\n%s", parts[i], text);
	}
	free(text);
}

/* No key twice in a section, defaults that are valid, offsets inside the object. */
static void
table_is_sound(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < URN_CONFIG_KINDS; i++) {
		const struct urn_config_kind *kind = &urn_config_kinds[i];
		struct urn_config_errors errors = {0};
		struct urn_config cfg = {.file = (char *)(uintptr_t) "table"};
		struct urn_config_ctx ctx = {.cfg = &cfg, .errors = &errors};
		void *obj = calloc(1, kind->size);

		assert_true(kind->keys <= 32);
		for (unsigned int k = 0; k < kind->keys; k++) {
			const struct urn_config_key *key = &kind->key[k];

			for (unsigned int other = 0; other < k; other++)
				assert_string_not_equal(key->name, kind->key[other].name);
			if (key->offset != URN_CONFIG_NO_FIELD)
				assert_true(key->offset + key->size <= kind->size);
		}
		urn_config_preset(&ctx, kind, obj);
		if (errors.n > 0)
			fail_msg("%s", errors.error[0].text);
		free(obj);
	}
}

static void
doc_says_the_same(void **state)
{
	char *want = printed(urn_config_reference), *text, path[512];
	FILE *f;
	size_t n;

	(void)state;
	snprintf(path, sizeof(path), "%s/doc/reference/urnicd.md", project);
	f = fopen(path, "r");
	text = calloc(1, 1 << 20);
	assert_true(f && text);
	n = fread(text, 1, (1 << 20) - 1, f);
	assert_true(n > 0);
	fclose(f);
	if (!strstr(text, want))
		fail_msg("doc/reference/urnicd.md does not have the sections and keys that there are; put "
			 "what "
			 "build/test/unit/config/test_config_help prints there");
	free(text);
	free(want);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(help_is_whole),
		cmocka_unit_test(help_reads_well),
		cmocka_unit_test(table_is_sound),
		cmocka_unit_test(doc_says_the_same),
	};

	if (argc != 2) {
		urn_config_reference(stdout);
		return 0;
	}
	project = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
