/* SPDX-License-Identifier: BSD-3-Clause */
/* A run that loses an adapter: how the loss is asked for, when it comes, and its figures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/clock.h"
#include "common/ctl.h"
#include "common/failover.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ull

static struct urn_err err;

/* ---- words */

static void
ways(void **state)
{
	static const char *const wrong[] = {
		"",	"ports", "kill=", "kill=1", "kill=x", "kill=-5", "kill=99999999999",
		"run=", "run",	 "KILL"};
	struct urn_loss_spec spec;

	(void)state;
	assert_int_equal(urn_loss_parse("o", NULL, &spec, &err), 0);
	assert_int_equal(spec.kind, URN_LOSS_PORT);
	assert_int_equal(urn_loss_parse("o", "port", &spec, &err), 0);
	assert_int_equal(spec.kind, URN_LOSS_PORT);
	assert_int_equal(urn_loss_parse("o", "kill", &spec, &err), 0);
	assert_int_equal(spec.kind, URN_LOSS_KILL);
	assert_int_equal(spec.pid, 0);
	assert_int_equal(urn_loss_parse("o", "kill=4711", &spec, &err), 0);
	assert_int_equal(spec.pid, 4711);
	assert_int_equal(urn_loss_parse("o", "run=kill -9 $(pidof x)", &spec, &err), 0);
	assert_int_equal(spec.kind, URN_LOSS_RUN);
	assert_string_equal(spec.command, "kill -9 $(pidof x)");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(urn_loss_parse("o", wrong[i], &spec, &err), -1);
}

static void
places(void **state)
{
	static const char *const wrong[] = {"",	      "/a",	"/a,",	      ",/b",
					    "/a:,/b", "/a,/b:", "/a,/b;/c,/d"};
	struct urn_session_place p[2];
	char longer[200];

	(void)state;
	assert_int_equal(urn_session_places("/run/a.sock:ap,/x:y/b.sock", p, &err), 0);
	assert_string_equal(p[0].socket, "/run/a.sock");
	assert_string_equal(p[0].adapter, "ap");
	assert_string_equal(p[1].socket, "/x:y/b.sock");
	assert_string_equal(p[1].adapter, "");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(urn_session_places(wrong[i], p, &err), -1);
	memset(longer, 'x', sizeof(longer));
	memcpy(longer + 110, ",/b", 4);
	assert_int_equal(urn_session_places(longer, p, &err), -1);
	snprintf(longer, sizeof(longer), "/a:%040d,/b", 1);
	assert_int_equal(urn_session_places(longer, p, &err), -1);
}

static void
ports(void **state)
{
	static const char table[] =
		"name  node  port  link\nap    a     p0    yes\nbp    b     p1    no\n";
	char name[32], port[32];

	(void)state;
	assert_int_equal(urn_ctl_port(table, "", name, port, &err), 0);
	assert_string_equal(port, "p0");
	assert_int_equal(urn_ctl_port(table, "bp", name, port, &err), 0);
	assert_string_equal(port, "p1");
	assert_int_equal(urn_ctl_port(table, "b", name, port, &err), 0);
	assert_string_equal(name, "bp");
	assert_int_equal(urn_ctl_port(table, "p0", name, port, &err), -1);
	assert_int_equal(urn_ctl_port("", "", name, port, &err), -1);
	assert_int_equal(urn_ctl_port("name node\nx y z\n", "", name, port, &err), -1);
	assert_int_equal(urn_ctl_port("name node port", "", name, port, &err), -1);
}

static void
pictures(void **state)
{
	(void)state;
	assert_int_equal(urn_plot_kind("a.png"), URN_PLOT_PNG);
	assert_int_equal(urn_plot_kind("/x/a.svg"), URN_PLOT_SVG);
	assert_int_equal(urn_plot_kind(".svg"), URN_PLOT_NONE);
	assert_int_equal(urn_plot_kind("a.jpg"), URN_PLOT_NONE);
	assert_int_equal(urn_plot_kind(""), URN_PLOT_NONE);
}

/* ---- a run */

static _Atomic uint64_t units;
static _Atomic int run_state;
static _Atomic unsigned int looks;
static pthread_t first; /* the thread that looked first; valid when looks > 0 */

static enum urn_run_state
look(void *arg, uint64_t *now)
{
	(void)arg;
	if (atomic_load(&looks) == 0)
		first = pthread_self();
	atomic_fetch_add(&looks, 1);
	*now = atomic_load(&units);
	return (enum urn_run_state)atomic_load(&run_state);
}

static void
sleep_ms(unsigned int ms)
{
	const struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	nanosleep(&ts, NULL);
}

/* Prepare a run that a command makes lose an adapter. */
static void
prepare_run(struct urn_failover *f, const char *command)
{
	const struct urn_loss_spec spec = {.kind = URN_LOSS_RUN, .command = command};

	setenv("URNIC_SESSION", "/a,/b", 1);
	unsetenv("URNIC_SESSION_LOG");
	setenv("URNIC_SESSION_LOG_LEVEL", "error", 1);
	atomic_store(&units, 0);
	atomic_store(&looks, 0);
	atomic_store(&run_state, URN_RUN_WARM);
	assert_int_equal(urn_failover_prepare(f, &spec, &err), 0);
	assert_non_null(getenv("URNIC_SESSION_LOG"));
	/* Steps are below the level that a user may have set. */
	assert_null(getenv("URNIC_SESSION_LOG_LEVEL"));
}

static void
start_run(struct urn_failover *f, uint64_t at_ns)
{
	const struct urn_failover_run run = {
		.at_ns = at_ns, .unit = 1000, .messages = true, .look = look};

	assert_int_equal(urn_failover_start(f, &run, &err), 0);
}

static void
begin_run(struct urn_failover *f, const char *command, uint64_t at_ns)
{
	prepare_run(f, command);
	start_run(f, at_ns);
}

/* Append a line to the log, as the library does. */
static void
log_line(const char *text)
{
	FILE *log = fopen(getenv("URNIC_SESSION_LOG"), "a");
	struct timespec ts;
	char at[32];
	struct tm tm;

	assert_non_null(log);
	clock_gettime(CLOCK_REALTIME, &ts);
	strftime(at, sizeof(at), "%FT%T", gmtime_r(&ts.tv_sec, &tm));
	fprintf(log, "%s.%06ldZ session[%d.1] notice session some: %s\n", at, ts.tv_nsec / 1000,
		(int)getpid(), text);
	fclose(log);
}

/* The loss comes when it is called for, and not while the run warms up; steps are found in the log.
 */
static void
when_asked(void **state)
{
	struct urn_failover f;

	(void)state;
	begin_run(&f, "true", UINT64_MAX);
	urn_failover_now(&f);
	sleep_ms(20);
	assert_false(urn_failover_past(&f));
	atomic_store(&run_state, URN_RUN_GOING);
	while (!urn_failover_past(&f))
		sleep_ms(1);
	log_line("adapter ap is lost");
	log_line("c stops | conn=1 peer=2 epoch=0 path=P-P step CONNECTED -> SLEEPING sent=1");
	sleep_ms(2);
	log_line("c moved | conn=1 peer=2 epoch=1 path=S-P step REPORTED -> MIGRATED sent=1 "
		 "took us=2000");
	urn_failover_stop(&f);
	assert_int_equal(urn_failover_judge(&f, &err), 0);
	assert_true(f.acted_ns > 0);
	assert_int_equal(f.moves.moved, 1);
	assert_true(f.moved_ns >= f.acted_ns + 2 * MS);
	urn_failover_close(&f);
	unsetenv("URNIC_SESSION_LOG");
}

/* The loss comes at its time. */
static void
when_due(void **state)
{
	struct urn_failover f;

	(void)state;
	begin_run(&f, "true", 30 * MS);
	atomic_store(&run_state, URN_RUN_GOING);
	while (!urn_failover_past(&f))
		sleep_ms(1);
	assert_true(f.acted_ns >= 30 * MS);
	urn_failover_close(&f);
}

/* A run that is over loses nothing, and is judged so. */
static void
too_late(void **state)
{
	struct urn_failover f;

	(void)state;
	begin_run(&f, "true", UINT64_MAX);
	atomic_store(&run_state, URN_RUN_OVER);
	sleep_ms(5);
	urn_failover_now(&f);
	sleep_ms(5);
	urn_failover_stop(&f);
	assert_int_equal(urn_failover_judge(&f, &err), -1);
	assert_non_null(strstr(err.text, "over before"));
	urn_failover_close(&f);
}

/* A command that fails is told, also when it ends after the run. */
static void
command_fails(void **state)
{
	struct urn_failover f;

	(void)state;
	begin_run(&f, "sleep 0.1; exit 3", 0);
	atomic_store(&run_state, URN_RUN_GOING);
	while (atomic_load(&f.state) == URN_FAILOVER_WAITS)
		sleep_ms(1);
	urn_failover_stop(&f);
	assert_int_equal(urn_failover_judge(&f, &err), -1);
	assert_non_null(strstr(err.text, "exit 3"));
	urn_failover_close(&f);
}

/* The figures have the begin and the end of a run, also when the thread gets no processor then. */
static void
first_and_last(void **state)
{
	struct urn_failover f;

	(void)state;
	prepare_run(&f, "true");
	atomic_store(&run_state, URN_RUN_GOING);
	start_run(&f, UINT64_MAX);
	assert_true(pthread_equal(first, pthread_self()));
	sleep_ms(5);
	atomic_store(&units, 77);
	urn_failover_stop(&f);
	assert_true(urn_samples_units(&f.samples, 0) == 0);
	assert_true(urn_samples_units(&f.samples, urn_samples_end(&f.samples)) == 77);
	urn_failover_close(&f);
}

/* A command that does not end has failed when its time is over: a sender waits for the loss. */
static void
command_hangs(void **state)
{
	struct urn_failover f;
	int status;

	(void)state;
	prepare_run(&f, "exec sleep 100 >/dev/null 2>&1");
	assert_true(f.patience_ns == 60000 * MS);
	f.patience_ns = 20 * MS;
	atomic_store(&run_state, URN_RUN_GOING);
	start_run(&f, 0);
	while (!urn_failover_past(&f))
		sleep_ms(1);
	urn_failover_stop(&f);
	assert_int_equal(urn_failover_judge(&f, &err), -1);
	assert_non_null(strstr(err.text, "still not lost"));
	assert_int_equal(kill(f.loss.child, SIGKILL), 0);
	assert_int_equal(waitpid(f.loss.child, &status, 0), f.loss.child);
	urn_failover_close(&f);
}

/* The standard error can't be read. */
static void
log_to_stderr(void **state)
{
	const struct urn_loss_spec spec = {.kind = URN_LOSS_RUN, .command = "true"};
	struct urn_failover f;

	(void)state;
	setenv("URNIC_SESSION", "/a,/b", 1);
	setenv("URNIC_SESSION_LOG", "stderr", 1);
	assert_int_equal(urn_failover_prepare(&f, &spec, &err), -1);
	assert_non_null(strstr(err.text, "stderr"));
	urn_failover_close(&f);
	unsetenv("URNIC_SESSION_LOG");
}

/* ---- figures */

/* 1000 messages of 1000 bytes a second for a second, nothing for 100 ms, 500 a second for another.
 */
static void
fill(struct urn_failover *f)
{
	memset(f, 0, sizeof(*f));
	f->loss.fd = -1;
	f->run.unit = 1000;
	f->run.messages = true;
	assert_int_equal(urn_samples_make(&f->samples, MS), 0);
	for (unsigned int i = 0; i <= 1000; i++)
		urn_samples_add(&f->samples, i * MS, i);
	for (unsigned int i = 1001; i <= 1100; i++)
		urn_samples_add(&f->samples, i * MS, 1000);
	for (unsigned int i = 1102; i <= 2100; i += 2)
		urn_samples_add(&f->samples, i * MS, 1000 + (i - 1100) / 2);
	snprintf(f->loss.what, sizeof(f->loss.what), "port p0 of adapter ap failed");
	f->acted_ns = 1000 * MS;
	f->moved_ns = 1100 * MS;
	urn_moves_begin(&f->moves, 1, 1000000);
	f->moves.noticed_us = 1000000 + 3000;
	f->moves.moved_us = f->moves.noticed_us + 97000;
	f->moves.slowest_us = 96000;
	f->moves.left = f->moves.moved = 2;
	snprintf(f->moves.cause, sizeof(f->moves.cause), "adapter ap has its link down");
	atomic_store(&f->state, URN_FAILOVER_DONE);
}

/* Print into *text, which free() takes. */
static void
printed(const struct urn_failover *f, char **text,
	void (*print)(const struct urn_failover *, FILE *))
{
	size_t size;
	FILE *out = open_memstream(text, &size);

	assert_non_null(out);
	print(f, out);
	fclose(out);
}

static void
words(const struct urn_failover *f, FILE *out)
{
	urn_failover_print(f, "> ", out);
}

static void
json(const struct urn_failover *f, FILE *out)
{
	struct urn_json j;

	urn_json_init(&j, out);
	urn_json_object(&j, NULL);
	urn_failover_json(f, &j);
	urn_json_end(&j);
}

static void
svg(const struct urn_failover *f, FILE *out)
{
	urn_failover_script(f, true, out);
}

static void
has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("'%s' is not in:\n%s", part, text);
}

static void
in_words(void **state)
{
	struct urn_failover f;
	char *text;

	(void)state;
	fill(&f);
	printed(&f, &text, words);
	has(text, "> loss:         after 1.00 s: port p0 of adapter ap failed\n");
	has(text, "> detection:    3.00 ms: adapter ap has its link down\n");
	has(text, "97.0 ms from detection on, 2 of 2 connections, the slowest in 96.0 ms\n");
	has(text, "no completion was seen for 102 ms\n");
	has(text, "> rate before   0.01 Gb/s, 1.00 k/s\n");
	has(text, "> rate during   0.00 Gb/s, 0.00 /s\n");
	has(text, "> rate after    0.00 Gb/s, 500 /s (50.0 % of the rate before)\n");
	free(text);
	f.moves.noticed_us = 0;
	f.moved_ns = 0;
	printed(&f, &text, words);
	has(text, "this side noticed no loss\n");
	has(text, "> rate after    -\n");
	free(text);
	atomic_store(&f.state, URN_FAILOVER_WAITS);
	printed(&f, &text, words);
	assert_string_equal(text, "> loss:         none\n");
	free(text);
	urn_failover_close(&f);
}

static void
in_json(void **state)
{
	struct urn_failover f;
	char *text;

	(void)state;
	fill(&f);
	printed(&f, &text, json);
	has(text, "\"detection_us\": 3000");
	has(text, "\"migration_us\": 97000");
	has(text, "\"slowest_us\": 96000");
	has(text, "\"pause_us\": 102000");
	has(text, "\"msg_rate\": 1000");
	has(text, "\"after_to_before\": 0.5");
	free(text);
	f.moved_ns = 0;
	printed(&f, &text, json);
	has(text, "\"after\": null");
	has(text, "\"after_to_before\": null");
	free(text);
	urn_failover_close(&f);
}

/* The plot has a bounded number of points, and marks of the loss and of its end. */
static void
in_a_plot(void **state)
{
	unsigned int lines = 0;
	struct urn_failover f;
	char *text;

	(void)state;
	fill(&f);
	printed(&f, &text, svg);
	has(text, "set terminal svg ");
	has(text, "'adapter lost' at 1.000000");
	has(text, "'connections moved' at 1.100000");
	for (const char *at = text; *at != '\0'; at++)
		lines += *at == '\n';
	assert_in_range(lines, 190, 230);
	free(text);
	urn_failover_close(&f);
}

/* The table of progress has a line for each sample, with the time of day and bytes. */
static void
in_a_table(void **state)
{
	char dir[] = P_tmpdir "/urnic-test.XXXXXX", path[64], line[80] = "";
	double begun = (double)time(NULL) - 1, begin = 0, at = 0;
	unsigned long long bytes = 0;
	unsigned int lines = 0;
	struct urn_failover f;
	FILE *in;

	(void)state;
	fill(&f);
	f.begun_ns = urn_clock_ns();
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/progress", dir);
	assert_int_equal(urn_failover_progress(&f, path, &err), 0);
	in = fopen(path, "r");
	assert_non_null(in);
	assert_non_null(fgets(line, sizeof(line), in));
	assert_string_equal(line, "seconds,bytes\n");
	for (; fgets(line, sizeof(line), in) != NULL; lines++) {
		assert_int_equal(sscanf(line, "%lf,%llu", &at, &bytes), 2);
		begin = lines == 0 ? at : begin;
	}
	fclose(in);
	assert_int_equal(lines, f.samples.n);
	assert_int_equal(bytes, 1500 * 1000);
	assert_true(begin > begun);
	assert_true(at - begin > 2.0999 && at - begin < 2.1001);
	unlink(path);
	rmdir(dir);
	assert_int_equal(urn_failover_progress(&f, path, &err), -1);
	has(err.text, "can't be written");
	urn_failover_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ways),		  cmocka_unit_test(places),
		cmocka_unit_test(ports),	  cmocka_unit_test(pictures),
		cmocka_unit_test(when_asked),	  cmocka_unit_test(when_due),
		cmocka_unit_test(too_late),	  cmocka_unit_test(command_fails),
		cmocka_unit_test(first_and_last), cmocka_unit_test(command_hangs),
		cmocka_unit_test(log_to_stderr),  cmocka_unit_test(in_words),
		cmocka_unit_test(in_json),	  cmocka_unit_test(in_a_plot),
		cmocka_unit_test(in_a_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
