/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of the log about calls of programs (server/record.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/client.h"
#include "log/log.h"
#include "log/writer.h"
#include "server/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char text[4096];

/* The whole log after calls that ended with these errno values. */
static const char *
logged(const int *errs, unsigned int n)
{
	struct urn_log_out out = {.name = "urnicd"};
	struct urn_log *log = urn_log_create(1);
	static struct urn_client client;
	static struct urn_dp dp;
	struct urn_attached s = {.dp = &dp, .client = &client};
	char why[200] = "", sentence[32];
	size_t got;
	FILE *f;
	int fd;

	snprintf(out.file, sizeof(out.file), P_tmpdir "/urnic-record.XXXXXX");
	fd = mkstemp(out.file);
	assert_true(fd >= 0);
	close(fd);
	assert_non_null(log);
	assert_int_equal(urn_log_start(log, &out, why, sizeof(why)), 0);
	dp.log = log;
	client.engine.who.client = 7;
	for (unsigned int i = 0; i < n; i++) {
		snprintf(sentence, sizeof(sentence), "errno %d", errs[i]);
		urn_record_call(&s, errs[i], sentence);
	}
	urn_log_stop(log);
	urn_log_free(log);
	f = fopen(out.file, "re");
	assert_non_null(f);
	got = fread(text, 1, sizeof(text) - 1, f);
	text[got] = '\0';
	fclose(f);
	unlink(out.file);
	return text;
}

/* Each way in which a limit answers is a line: a quota, descriptors, and places that an adapter has
 * no more of. Calls that are wrong, or have no memory, are none. */
static void
limits(void **state)
{
	static const int all[] = {EDQUOT, EMFILE, ENOSPC, 0, EINVAL, ENOMEM};
	unsigned int lines = 0;
	char want[96];

	(void)state;
	(void)logged(all, 6);
	for (const char *at = text; (at = strchr(at, '\n')); at++)
		lines++;
	assert_int_equal(lines, 3);
	for (unsigned int i = 0; i < 3; i++) {
		snprintf(want, sizeof(want),
			 " warning limit limit: client 7 reached a limit: errno %d\n", all[i]);
		if (!strstr(text, want))
			fail_msg("no '%s' in '%s'", want, text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(limits)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
