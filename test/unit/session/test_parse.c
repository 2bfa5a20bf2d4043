/* SPDX-License-Identifier: BSD-3-Clause */
/* URNIC_SESSION. */
#include "verbs/session/parse.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct urn_sv_place place[URN_SV_ADAPTERS];
static const char *why;

static void
good(const char *text, const char *const want[4])
{
	memset(place, 0xff, sizeof(place));
	assert_int_equal(urn_sv_parse(text, 0, place, &why), 0);
	assert_null(why);
	for (int i = 0; i < URN_SV_ADAPTERS; i++) {
		assert_string_equal(place[i].socket, want[2 * i]);
		assert_string_equal(place[i].adapter, want[2 * i + 1]);
	}
}

static void
bad(const char *text, const char *because)
{
	assert_int_equal(urn_sv_parse(text, 0, place, &why), EINVAL);
	assert_non_null(strstr(why, because));
}

static void
places(void **state)
{
	(void)state;
	good("/run/a.sock,/run/b.sock", (const char *[]){"/run/a.sock", "", "/run/b.sock", ""});
	good("/run/a.sock:a0,/run/a.sock:a1",
	     (const char *[]){"/run/a.sock", "a0", "/run/a.sock", "a1"});
	/* A colon in a folder's name. */
	good("/run:1/a.sock,/run:1/b:2.sock:x",
	     (const char *[]){"/run:1/a.sock", "", "/run:1/b:2.sock", "x"});
}

/* Instances are spread over pairs, each of which gets as many (FO-6). */
static void
pairs(void **state)
{
	static const char *const text = "/0:a,/0:b;/1,/2;/3,/0:a;/4,/5";
	static const char *const first[] = {"/0", "/1", "/3", "/4"};
	static const char *const second[] = {"/2", "/0"};
	uint32_t got[4] = {0};

	(void)state;
	for (uint64_t n = 0; n < 16; n++) {
		assert_int_equal(urn_sv_parse(text, n, place, &why), 0);
		assert_string_equal(place[0].socket, first[n % 4]);
		for (uint32_t i = 0; i < 4; i++)
			got[i] += strcmp(place[0].socket, first[i]) == 0;
	}
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(got[i], 4);
	for (uint64_t n = 1; n < 3; n++) {
		assert_int_equal(urn_sv_parse(text, n, place, &why), 0);
		assert_string_equal(place[1].socket, second[n - 1]);
		assert_string_equal(place[1].adapter, n == 2 ? "a" : "");
	}
	assert_int_equal(urn_sv_parse(text, UINT64_MAX, place, &why), 0);
	assert_string_equal(place[0].socket, "/4");
}

static void
mistakes(void **state)
{
	char longest[2 * URN_SV_SOCKET];

	(void)state;
	bad("", "two adapters");
	bad("/a.sock", "two adapters");
	bad("/a,/b,/c", "two adapters");
	bad("a.sock,/b.sock", "whole path");
	bad("/a.sock,", "whole path");
	bad(",/a.sock", "whole path");
	bad("/a.sock:,/b.sock", "missing");
	bad("/a.sock:0123456789012345678901234567890123456789,/b", "name of an adapter is too");
	bad("/a.sock:x,/a.sock:x", "same");
	bad("/a.sock,/a.sock", "same");
	/* In any pair, whichever is chosen. */
	bad("/a,/b;", "two adapters");
	bad(";/a,/b", "two adapters");
	bad("/a,/b;/c", "two adapters");
	bad("/a,/b;/c,/d,/e", "two adapters");
	bad("/a,/b;/c,d", "whole path");
	bad("/a,/b;/c,/c", "same");
	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	memcpy(longest + URN_SV_SOCKET, ",/b", 4);
	bad(longest, "path of a socket is too long");
	memcpy(longest + URN_SV_SOCKET - 1, ",/b", 4);
	assert_int_equal(urn_sv_parse(longest, 0, place, &why), 0);
}

/* The same socket by another name. */
static void
sockets(void **state)
{
	char folder[] = P_tmpdir "/urnic-parse.XXXXXX", one[64], two[64], link[64];

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(one, sizeof(one), "%s/one", folder);
	snprintf(two, sizeof(two), "%s/two", folder);
	snprintf(link, sizeof(link), "%s/link", folder);
	assert_int_equal(mkfifo(one, 0600), 0);
	assert_int_equal(mkfifo(two, 0600), 0);
	assert_int_equal(symlink(one, link), 0);
	assert_true(urn_sv_same_socket(one, one));
	assert_true(urn_sv_same_socket(one, link));
	assert_false(urn_sv_same_socket(two, link));
	assert_int_equal(unlink(one), 0);
	assert_false(urn_sv_same_socket(one, link)); /* both lead nowhere */
	assert_int_equal(unlink(two), 0);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(rmdir(folder), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places),
		cmocka_unit_test(pairs),
		cmocka_unit_test(mistakes),
		cmocka_unit_test(sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
