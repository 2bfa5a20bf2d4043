/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of steps, read after a loss (FO-10): detection and migration are told apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/moves.h"

enum { PID = 4711 };
#define SINCE 1000000500ull /* us */

static struct urn_moves m;

static int
begin(void **state)
{
	(void)state;
	urn_moves_begin(&m, PID, SINCE);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	urn_moves_end(&m);
	return 0;
}

/* Begin of a line, 1000 s and so many microseconds after 1970. */
#define AT(us, pid) "1970-01-01T00:16:40." us "Z session[" pid ".1] warning session word: "

/* A line of a connection, so many microseconds after 1000 s. */
static void
conn(unsigned int us, int pid, unsigned int number, const char *text)
{
	char line[256];

	snprintf(line, sizeof(line),
		 AT("%06u", "%d") "connection %u moves | conn=%u peer=33 epoch=1 path=P-P %s", us,
		 pid, number, number, text);
	urn_moves_line(&m, line);
}

#define LEAVES "step CONNECTED -> SLEEPING sent=1 received=2 next=3 pending=4 because it is gone"
#define MOVES(us) "step REPORTED -> MIGRATED sent=1 received=2 next=3 pending=4 took us=" us

/* Two connections of a lost adapter. */
static void
two(void **state)
{
	(void)state;
	urn_moves_line(&m, AT("000800", "4711") "adapter ap is lost");
	conn(810, PID, 17, "lost path=P-P because the primary adapter is gone");
	conn(820, PID, 17, LEAVES);
	conn(830, PID, 18, LEAVES);
	conn(1500, PID, 17, MOVES("680"));
	conn(1510, PID, 17, "step MIGRATED -> CONNECTED sent=1 received=2 next=3 pending=0");
	conn(2830, PID, 18, MOVES("2000"));
	assert_string_equal(m.cause, "adapter ap is lost");
	assert_int_equal(m.noticed_us - SINCE, 300);
	assert_int_equal(m.moved_us - m.noticed_us, 2030);
	assert_int_equal(m.slowest_us, 2000);
	assert_int_equal(m.left, 2);
	assert_int_equal(m.moved, 2);
}

/* A link that is down; its line has more behind a comma. */
static void
link_down(void **state)
{
	(void)state;
	urn_moves_line(&m, AT("000700", "4711") "adapter ap has its link up, noticed");
	assert_int_equal(m.noticed_us, 0);
	urn_moves_line(&m, AT("000900", "4711") "adapter ap has its link down, noticed after us=9");
	assert_string_equal(m.cause, "adapter ap has its link down");
	assert_int_equal(m.noticed_us - SINCE, 400);
}

/* An end that hears of the loss by its peer's REPORT, or by retries. */
static void
by_others(void **state)
{
	(void)state;
	conn(700, PID, 5,
	     "step CONNECTED -> SLEEPING sent=1 because the peer told of its migration");
	assert_string_equal(m.cause, "the peer told of its migration");
	urn_moves_end(&m);
	urn_moves_begin(&m, PID, SINCE);
	conn(700, PID, 5, "lost path=P-S because its queue pair does not answer");
	assert_string_equal(m.cause, "its queue pair does not answer");
	assert_int_equal(m.left, 0);
}

/* Lines of before, of other programs, and later migrations do not count. */
static void
others(void **state)
{
	(void)state;
	conn(400, PID, 1, LEAVES);
	conn(600, PID + 1, 1, LEAVES);
	conn(650, PID, 2, MOVES("77")); /* it left its path before */
	assert_int_equal(m.noticed_us, 0);
	assert_int_equal(m.moved, 0);
	conn(700, PID, 1, LEAVES);
	conn(800, PID, 1, MOVES("100"));
	conn(5000, PID, 1, LEAVES);
	conn(9000, PID, 1, MOVES("4000"));
	assert_int_equal(m.left, 1);
	assert_int_equal(m.moved, 1);
	assert_int_equal(m.slowest_us, 100);
	assert_int_equal(m.moved_us - SINCE, 300);
}

/* Connections of any number, and one that does not arrive. */
static void
many(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 100; i++)
		conn(700, PID, i, LEAVES);
	for (unsigned int i = 0; i < 99; i++)
		conn(800, PID, i, MOVES("100"));
	assert_int_equal(m.left, 100);
	assert_int_equal(m.moved, 99);
}

/* Lines that are cut off, or of another kind, are left out. */
static void
bad(void **state)
{
	static const char whole[] =
		AT("000700", "4711") "c | conn=1 peer=33 epoch=1 path=P-P " LEAVES;
	char line[sizeof(whole)];

	(void)state;
	for (size_t n = 0; n < strlen(whole) - strlen(LEAVES) + strlen("step CONNECTED -> "); n++) {
		memcpy(line, whole, n);
		line[n] = '\0';
		urn_moves_line(&m, line);
	}
	urn_moves_line(&m, AT("000700", "4711") "adapter");
	urn_moves_line(&m, AT("000700", "4711") "adapter as is back");
	conn(700, PID, 1, "tell REPORT of=1 sent=120");
	assert_int_equal(m.noticed_us, 0);
	assert_int_equal(m.left, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(two, begin, end),
		cmocka_unit_test_setup_teardown(link_down, begin, end),
		cmocka_unit_test_setup_teardown(by_others, begin, end),
		cmocka_unit_test_setup_teardown(others, begin, end),
		cmocka_unit_test_setup_teardown(many, begin, end),
		cmocka_unit_test_setup_teardown(bad, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
