/* SPDX-License-Identifier: BSD-3-Clause */
#include "report_bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct rig report_rig;
struct urn_report_source report_src;
struct report_notes report_notes;

static void __attribute__((format(printf, 1, 2))) note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	report_notes.len +=
		(size_t)vsnprintf(report_notes.text + report_notes.len,
				  sizeof(report_notes.text) - report_notes.len, fmt, ap);
	va_end(ap);
	assert_true(report_notes.len < sizeof(report_notes.text));
}

static void
on_begin(struct urn_report_sink *s, const char *kind, bool card)
{
	(void)s;
	assert_false(report_notes.inside);
	report_notes.inside = true;
	report_notes.objects++;
	report_notes.cards += card;
	note("%s ", kind);
}

static void
on_str(struct urn_report_sink *s, const char *key, const char *value)
{
	(void)s;
	assert_true(report_notes.inside);
	note("%s=%s ", key, value);
}

static void
on_u64(struct urn_report_sink *s, const char *key, uint64_t value)
{
	(void)s;
	assert_true(report_notes.inside);
	note("%s=%" PRIu64 " ", key, value);
}

static void
on_flag(struct urn_report_sink *s, const char *key, bool value)
{
	on_str(s, key, value ? "yes" : "no");
}

static void
on_end(struct urn_report_sink *s)
{
	(void)s;
	assert_true(report_notes.inside);
	report_notes.inside = false;
	note("\n");
}

void
report_forget(void)
{
	memset(&report_notes, 0, sizeof(report_notes));
	report_notes.sink = (struct urn_report_sink){on_begin, on_str, on_u64, on_flag, on_end};
}

unsigned int
report_ask(urn_report_fn *fn, struct urn_report_query *q, struct urn_err *err)
{
	unsigned int parts = 0;
	int rc;

	report_forget();
	do {
		rc = fn(&report_src, q, &report_notes.sink, err);
		parts++;
		assert_true(parts < 100000);
		assert_false(report_notes.inside);
	} while (rc == URN_REPORT_MORE);
	return rc == URN_REPORT_DONE ? parts : 0;
}

void
report_all_of(urn_report_fn *fn)
{
	struct urn_report_query q = {0};
	struct urn_err err = {{0}};

	if (report_ask(fn, &q, &err) == 0)
		fail_msg("%s", err.text);
}

void
report_has(const char *text)
{
	if (!strstr(report_notes.text, text))
		fail_msg("no '%s' in\n%s", text, report_notes.text);
}

void
report_fails(urn_report_fn *fn, struct urn_report_query q, const char *words)
{
	struct urn_err err = {{0}};

	assert_int_equal(report_ask(fn, &q, &err), 0);
	assert_int_equal(report_notes.objects, 0);
	if (!strstr(err.text, words))
		fail_msg("no '%s' in '%s'", words, err.text);
}

static void
begin(bool remote, unsigned int engines)
{
	const struct rig_config cfg = {.remote = remote, .engines = engines};

	rig_open(&report_rig, &cfg, NULL);
	report_src = (struct urn_report_source){
		.dp = report_rig.dp,
		.port = report_rig.port,
		.ports = RIG_NODES,
		.server = report_rig.server,
	};
}

int
report_setup(void **state)
{
	(void)state;
	begin(false, 0);
	return 0;
}

int
report_setup_remote(void **state)
{
	(void)state;
	begin(true, 0);
	return 0;
}

int
report_setup_engines(void **state)
{
	(void)state;
	begin(false, 4);
	return 0;
}

int
report_teardown(void **state)
{
	(void)state;
	rig_close(&report_rig);
	return 0;
}
