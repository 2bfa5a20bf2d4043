/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of the log (log/line.h): one line an event, whatever programs call themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rnd.h"
#include "log/line.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct urn_log_users users;
static char line[URN_LOG_LINE];

static struct urn_log_entry
event(void)
{
	struct urn_log_entry e = {
		.at = {.tv_sec = 1796013742, .tv_nsec = 123456789},
		.event = URN_LOG_ATTACHED,
		.has_who = true,
		.who = {.client = 3, .pid = 1234, .uid = 0, .program = "ib_send_bw"},
	};

	snprintf(e.text, sizeof(e.text), "attached to adapter a0");
	return e;
}

/* Time in UTC, level, area, event, program, process, user and client, in words. */
static void
whole(void **state)
{
	struct urn_log_entry e = event();
	char want[256];
	size_t n = urn_log_line(&e, false, "urnicd", &users, line);

	(void)state;
	snprintf(want, sizeof(want),
		 "2026-11-30T04:42:22.123Z urnicd[%d] info client attach: program ib_send_bw "
		 "(process 1234, user root, client 3) attached to adapter a0\n",
		 (int)getpid());
	assert_string_equal(line, want);
	assert_int_equal(n, strlen(line));
	(void)urn_log_line(&e, true, "urnicd", &users, line);
	assert_memory_equal(line, "<6>2026-", 8);
	e.event = URN_LOG_CAPTURE_FAILED;
	(void)urn_log_line(&e, true, "urnicd", &users, line);
	assert_memory_equal(line, "<3>2026-", 8);
}

/* A program is named as far as it is known; a user without a name by the number. */
static void
who(void **state)
{
	static const struct {
		struct urn_log_who who;
		const char *text;
	} some[] = {
		{{.pid = 7, .uid = 4123123123, .program = "x"},
		 ": program x (process 7, user 4123123123) attached"},
		{{.pid = 7, .client = 2}, ": process 7 (user root, client 2) attached"},
		{{.client = 2}, ": client 2 attached"},
	};

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct urn_log_entry e = event();

		e.who = some[i].who;
		(void)urn_log_line(&e, false, "urnicd", &users, line);
		if (!strstr(line, some[i].text))
			fail_msg("no '%s' in '%s'", some[i].text, line);
	}
}

/* No byte of a name or a text ends the line, moves a terminal's cursor, or makes the line longer
 * than it may be. */
static void
hostile(void **state)
{
	uint64_t seed = 3;

	(void)state;
	for (unsigned int i = 0; i < 2000; i++) {
		struct urn_log_entry e = event();
		size_t n, len = urn_rnd_below(urn_rnd_next(&seed), sizeof(e.text));

		for (size_t k = 0; k < len; k++)
			e.text[k] = (char)(1 + urn_rnd_below(urn_rnd_next(&seed), 255));
		e.text[len] = '\0';
		for (size_t k = 0; k + 1 < sizeof(e.who.program); k++)
			e.who.program[k] = (char)(1 + urn_rnd_below(urn_rnd_next(&seed), 255));
		n = urn_log_line(&e, true, "urnicd", &users, line);
		assert_int_equal(n, strlen(line));
		assert_true(n < URN_LOG_LINE);
		for (size_t k = 0; k < n; k++)
			if (line[k] < ' ' || line[k] > '~')
				assert_true(line[k] == '\n' && k == n - 1);
		assert_int_equal(line[n - 1], '\n');
		/* All of the text is there, byte for byte or a mark. */
		assert_true(n >= len + 60);
	}
}

/* The number of events that were not written: of a program, a user, or several sources. */
static void
more(void **state)
{
	struct urn_log_more m = {
		.event = URN_LOG_QP_ERROR,
		.has_who = true,
		.who = {.client = 3, .pid = 9, .program = "loud"},
		.n = 37,
	};
	struct urn_log_entry e;

	(void)state;
	urn_log_line_more(&m, &users, &e);
	(void)urn_log_line(&e, false, "urnicd", &users, line);
	assert_non_null(strstr(line,
			       "warning qp error: program loud (process 9, user root, client 3) "
			       "has 37 more like this within a second\n"));
	m.user = true;
	urn_log_line_more(&m, &users, &e);
	(void)urn_log_line(&e, false, "urnicd", &users, line);
	assert_non_null(
		strstr(line, ": programs of user root: 37 more like this within a second\n"));
	m.user = m.has_who = false;
	urn_log_line_more(&m, &users, &e);
	(void)urn_log_line(&e, false, "urnicd", &users, line);
	assert_non_null(strstr(line, ": 37 more like this within a second\n"));
}

/* The name of a process's program, and none of a process that is not there. */
static void
program(void **state)
{
	struct urn_log_who me = {.pid = getpid()}, nobody = {.pid = 0x7ffffff0, .program = "x"};

	(void)state;
	urn_log_who_program(&me);
	assert_string_equal(me.program, "test_log_line");
	urn_log_who_program(&nobody);
	assert_string_equal(nobody.program, "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole), cmocka_unit_test(who),	    cmocka_unit_test(hostile),
		cmocka_unit_test(more),	 cmocka_unit_test(program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
