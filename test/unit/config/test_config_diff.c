/* SPDX-License-Identifier: BSD-3-Clause */
/* Differences between two configurations (config/config_diff.h): each one once, and no other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "config/config_diff.h"

#include <stdio.h>
#include <string.h>

#define NODES                                         \
	"[adapter a0]\nswitch = w\nipv4 = 10.0.0.1\n" \
	"[adapter b0]\nswitch = w\nipv4 = 10.0.0.2\n"

static struct urn_config *
read_text(const char *text)
{
	struct urn_config_errors errors = {0};
	struct urn_config *cfg = urn_config_parse(text, strlen(text), "c.ini", &errors);

	if (!cfg)
		fail_msg("%s", errors.error[0].text);
	return cfg;
}

static void
add(void *ctx, const struct urn_config_change *c)
{
	char *out = ctx;
	size_t used = strlen(out);

	snprintf(out + used, 1000 - used, "%s.%s.%s:%s>%s;", c->kind, c->name,
		 c->key ? c->key : "*", c->from ? c->from : "-", c->to ? c->to : "-");
}

/* Compare two texts, and the differences with those that are expected. */
static void
check(const char *from, const char *to, const char *want)
{
	struct urn_config *a = read_text(from), *b = read_text(to);
	char got[1000] = "";

	urn_config_diff(a, b, add, got);
	assert_string_equal(got, want);
	urn_config_free(a);
	urn_config_free(b);
}

static void
differences(void **state)
{
	(void)state;
	check(NODES "[switch w]\n", NODES "[switch w]\n", "");
	/* The order of sections and keys, blanks and comments are no differences. */
	check(NODES "[switch w]\nage = 1s\nimpair a0.in = drop=1%\n",
	      "[switch w]\nimpair  a0.in = drop=1%  # some\nage=1s\n" NODES, "");
	check(NODES "[switch w]\nage = 1s\n", NODES "[switch w]\nage = 2s\n",
	      "switch.w.age:1s>2s;");
	check(NODES "[switch w]\nage = 1s\n", NODES "[switch w]\n", "switch.w.age:1s>-;");
	check(NODES "[switch w]\n", NODES "[switch w]\nage = 1s\nimpair a0 = drop=1%\n",
	      "switch.w.age:->1s;switch.w.impair a0:->drop=1%;");
	/* Sections without a name mean the same when they are not there; others are objects. */
	check("[urnicd]\nidle = spin\n" NODES "[switch w]\n", NODES "[switch w]\n",
	      "urnicd..idle:spin>-;");
	check(NODES "[switch w]\n",
	      "[limits]\nclients = 5\nclients_per_uid = 5\n" NODES "[switch w]\n",
	      "limits..clients:->5;limits..clients_per_uid:->5;");
	check(NODES "[switch w]\n", NODES "[switch w]\n[adapter c0]\nswitch = w\n",
	      "adapter.c0.*:->;");
	check(NODES "[switch w]\n[adapter c0]\nswitch = w\n", NODES "[switch w]\n",
	      "adapter.c0.*:>-;");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(differences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
