/* SPDX-License-Identifier: BSD-3-Clause */
/* urnic-switch: an Ethernet switch between ports, with impairments by seed. */
#include "rig.h"

#include "common/clock.h"
#include "common/text.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_pause.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_SIGNAL = 128 };

#define IDLE_AFTER 1024u /* empty polls before the idle policy begins */
#define IDLE_YIELD_EVERY 64u
#define IDLE_SLEEP_NS 100000u

static volatile sig_atomic_t report_wanted;

static void
want_report(int sig)
{
	(void)sig;
	report_wanted = 1;
}

static int
set_signals(void)
{
	struct sigaction sa = {.sa_handler = want_report, .sa_flags = SA_RESTART};

	sigemptyset(&sa.sa_mask);
	return urn_stop_install() || sigaction(SIGUSR1, &sa, NULL) ||
	       signal(SIGPIPE, SIG_IGN) == SIG_ERR;
}

/* Idle after `empty` empty polls: yield, or sleep until a frame is due, at most 100 us. */
static void
idle_turn(const struct sw_rig *rig, unsigned int empty, uint64_t now)
{
	struct timespec ts = {.tv_nsec = IDLE_SLEEP_NS};
	uint64_t due;

	if (rig->o->idle == URN_IDLE_SPIN || empty < IDLE_AFTER)
		return;
	if (rig->o->idle == URN_IDLE_PAUSE) {
		rte_pause();
		if (empty % IDLE_YIELD_EVERY == 0)
			sched_yield();
		return;
	}
	due = urn_fabric_next(rig->fabric);
	if (due <= now)
		return;
	if (due - now < IDLE_SLEEP_NS)
		ts.tv_nsec = (long)(due - now);
	nanosleep(&ts, NULL);
}

/* Poll until a signal or the end of the time. returns: time at which polling began, ns */
static uint64_t
loop(const struct sw_rig *rig)
{
	const volatile bool *stop = urn_stop_flag();
	uint64_t start = urn_clock_ns(), now = start;
	uint64_t end = rig->o->duration_ns ? start + rig->o->duration_ns : UINT64_MAX;
	uint64_t next = rig->o->interval_ns ? start + rig->o->interval_ns : UINT64_MAX;
	unsigned int empty = 0;

	while (!*stop && now < end) {
		now = urn_clock_ns();
		empty = urn_fabric_poll(rig->fabric, now) ? 0 : empty + 1;
		if (report_wanted || now >= next) {
			report_wanted = 0;
			if (now >= next)
				next += rig->o->interval_ns;
			sw_report(rig, (double)(now - start) / 1e9);
		}
		if (empty)
			idle_turn(rig, empty, now);
	}
	return start;
}

static int
pin(int core, struct urn_err *err)
{
	cpu_set_t set;

	if (core < 0)
		return 0;
	CPU_ZERO(&set);
	CPU_SET((size_t)core, &set);
	if (sched_setaffinity(0, sizeof(set), &set) == 0)
		return 0;
	urn_err_set(err, "cannot run on core %d; give another --core", core);
	return -1;
}

static int
fail(const struct urn_err *err)
{
	fprintf(stderr, "urnic-switch: %s\n", err->text);
	return urn_stop_requested() ? EXIT_SIGNAL + urn_stop_requested() : EXIT_FAILED;
}

static int
run(const struct sw_opts *o, struct sw_rig *rig)
{
	struct urn_err err = {""};
	int rc = sw_rig_open(rig, o, &err);
	uint64_t start;

	if (rc == 0)
		rc = pin(o->core, &err);
	if (rc == 0) {
		fprintf(stderr, "urnic-switch: %u ports are up\n", o->devices);
		start = loop(rig);
		sw_report(rig, (double)(urn_clock_ns() - start) / 1e9);
		if (ferror(stdout)) {
			urn_err_set(&err, "the counters could not be written");
			rc = -1;
		}
	}
	sw_rig_close(rig);
	if (rc != 0)
		return fail(&err);
	return urn_stop_requested() ? EXIT_SIGNAL + urn_stop_requested() : EXIT_SUCCESS;
}

int
main(int argc, char **argv)
{
	static struct sw_opts opts;
	static struct sw_rig rig;
	struct urn_err err = {""};

	switch (sw_opts_parse(argc, argv, &opts, &err)) {
	case SW_EXIT_OK:
		return EXIT_SUCCESS;
	case SW_EXIT_USAGE:
		fprintf(stderr, "urnic-switch: %s\n", err.text);
		return EXIT_USAGE;
	case SW_RUN:
		break;
	}
	if (set_signals()) {
		urn_err_set(&err, "cannot catch signals");
		return fail(&err);
	}
	return run(&opts, &rig);
}
