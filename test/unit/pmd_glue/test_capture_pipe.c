/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures into a pipe, whose reader sleeps, is slow, or leaves. */
#include "test/unit/pmd_glue/harness.h"
#include "pmd_glue/capture.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static void
pair_up(struct urn_port *p[2], uint16_t queues)
{
	struct urn_port_config cfg[2] = {port_cfg("left", ""), port_cfg("right", "")};
	struct urn_err err = {""};

	cfg[0].queues = cfg[1].queues = queues;
	check_ok(urn_port_open_ring_pair(cfg, p, &err), &err);
}

/*
 * A pipe: a reader that takes nothing stops neither the ports nor the end of the capture; a reader
 * that leaves ends the capture, with frames or without, and is no failure.
 */
static void
readers(void *arg)
{
	struct urn_capture_info info;
	struct urn_err err = {""};
	struct urn_port *p[2];

	(void)arg;
	eal_up();
	pair_up(p, 1);
	for (int leaves = 0; leaves < 3; leaves++) {
		struct urn_capture_config cfg = {
			.path = "-", .ports = p, .n = 2, .patience_ms = 1000};
		struct urn_capture *cap;
		int ends[2];

		check(pipe(ends) == 0); /* waits: the capture must not rely on the other kind */
		cfg.fd = ends[1];
		cap = urn_capture_begin(&cfg, &err);
		check_ok(cap == NULL, &err);
		if (leaves == 1)
			close(ends[0]);
		for (int i = 0; i < 40 && leaves < 2; i++)
			frames_cross(p[0], p[1], 0, 4000);
		if (leaves == 2)
			close(ends[0]);
		do
			urn_capture_info(cap, &info);
		while (leaves > 0 && !info.full);
		check(urn_capture_finish(cap, &info, &err) == (leaves == 0 ? -1 : 0));
		if (leaves == 0)
			check_says(&err, "its reader takes nothing");
		check(info.error == (leaves == 0 ? ETIMEDOUT : 0) && (leaves != 0) == info.full);
		check((leaves == 0) == (info.dropped > 0));
		if (leaves == 0)
			close(ends[0]);
	}
	urn_port_close(p[0]);
	urn_port_close(p[1]);
}

/* A reader that takes a page, and sleeps. */
struct sleeper {
	int fd;	   /* end of the pipe, owned by the test */
	bool done; /* tells it to end; atomic */
};

static void *
sleeper_run(void *arg)
{
	struct sleeper *s = arg;
	char page[4096];

	while (!__atomic_load_n(&s->done, __ATOMIC_RELAXED) && read(s->fd, page, sizeof(page)) > 0)
		usleep(300000);
	return NULL;
}

/*
 * A reader that is slow, but takes something again and again, does not hold the end of a capture:
 * all it is given is one time in total. At its pace the end would take over a minute. The frames
 * that are not written are all counted.
 */
static void
slow_reader(void *arg)
{
	struct urn_capture_config cfg = {.path = "-", .n = 2, .patience_ms = 1000};
	struct urn_capture_info info;
	struct urn_capture *cap;
	struct sleeper s = {0};
	struct urn_err err = {""};
	struct urn_port *p[2];
	pthread_t reader;
	int ends[2];
	time_t start;

	(void)arg;
	eal_up();
	pair_up(p, 1);
	check(pipe(ends) == 0);
	cfg.ports = p;
	cfg.fd = ends[1];
	s.fd = ends[0];
	check(pthread_create(&reader, NULL, sleeper_run, &s) == 0);
	cap = urn_capture_begin(&cfg, &err);
	check_ok(cap == NULL, &err);
	for (int i = 0; i < 60; i++)
		frames_cross(p[0], p[1], 0, 4000);
	start = time(NULL);
	check(urn_capture_finish(cap, &info, &err) == -1);
	check(time(NULL) - start < 30);
	check_says(&err, "its reader takes nothing");
	check(info.error == ETIMEDOUT && info.dropped > 0);
	check(info.frames + info.dropped == 60 * 16);
	__atomic_store_n(&s.done, true, __ATOMIC_RELAXED);
	check(pthread_join(reader, NULL) == 0);
	close(ends[0]);
	urn_port_close(p[0]);
	urn_port_close(p[1]);
}

static volatile bool hurry; /* set while a capture ends */

/* Set the flag, and take nothing. */
static void *
hurry_run(void *arg)
{
	(void)arg;
	sleep(1);
	hurry = true;
	return NULL;
}

/* Take nothing for long, then all. arg: end of the pipe. */
static void *
late_run(void *arg)
{
	char page[4096];

	sleep(2);
	while (read(*(int *)arg, page, sizeof(page)) > 0)
		;
	return NULL;
}

/* A capture with a flag waits for a reader beyond its patience, until the flag is set. */
static void
patient(void *arg)
{
	struct urn_capture_info info;
	struct urn_err err = {""};
	struct urn_port *p[2];

	(void)arg;
	eal_up();
	pair_up(p, 1);
	for (int silent = 0; silent < 2; silent++) {
		struct urn_capture_config cfg = {
			.path = "-", .ports = p, .n = 2, .patience_ms = 100, .hurry = &hurry};
		struct urn_capture *cap;
		pthread_t other;
		int ends[2];

		check(pipe(ends) == 0);
		cfg.fd = ends[1];
		cap = urn_capture_begin(&cfg, &err);
		check_ok(cap == NULL, &err);
		for (int i = 0; i < 40; i++)
			frames_cross(p[0], p[1], 0, 4000);
		check(pthread_create(&other, NULL, silent ? hurry_run : late_run, ends) == 0);
		check(urn_capture_finish(cap, &info, &err) == (silent ? -1 : 0));
		check(info.error == (silent ? ETIMEDOUT : 0));
		check(silent ? hurry : info.frames == 40 * 16);
		check(pthread_join(other, NULL) == 0);
		close(ends[0]);
	}
	urn_port_close(p[0]);
	urn_port_close(p[1]);
}

CHILD_TEST(readers)
CHILD_TEST(slow_reader)
CHILD_TEST(patient)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_readers),
		cmocka_unit_test(test_slow_reader),
		cmocka_unit_test(test_patient),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
