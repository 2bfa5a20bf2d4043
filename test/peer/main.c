/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * urnic-peer-sim: the product's transport against an independent peer, over seeds, in one
 * process or in several that share the seeds.
 */
#include "run.h"

#include "seeds.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FAILED = 10, EXIT_USAGE = 2, EXIT_SIGNAL = 128, FEW = 50 };

static const char help[] =
	"usage: urnic-peer-sim [option...]\n"
	"\n"
	"Joins urnic's transport with an independent peer - requester and responder as the\n"
	"standard has them, going back N, sharing no line with urnic - by a wire with faults,\n"
	"under a virtual clock, all of it from a seed. Everything is checked: memory to the\n"
	"byte, every completion, each frame, and how often urnic repeats.\n"
	"\n";

static const char help_end[] =
	"\n"
	"Exits 0 when every seed passed, 1 when one failed, 2 when the command line is\n"
	"wrong, 128 + N after signal N.\n";

struct options {
	struct seeds seeds;
	uint32_t jobs; /* processes */
	int sc;	       /* enum run_scenario; -1: all */
	bool trace, keep_going;
	bool list; /* print scenarios, and end */
};

/* Result of a worker; small enough for one atomic write to a pipe. */
struct report {
	uint64_t seed;
	int sc;
	bool failed;
	struct run_stats st;
	char why[RUN_WHY];
};

static int __attribute__((format(printf, 1, 2)))
usage(const char *fmt, ...)
{
	va_list ap;

	fputs("urnic-peer-sim: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs("; see --help\n", stderr);
	return EXIT_USAGE;
}

static int
take_scenario(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct options *o = to;

	(void)row;
	for (o->sc = 0; o->sc < RUN_COUNT; o->sc++)
		if (strcmp(arg, run_scenario_name((unsigned int)o->sc)) == 0)
			return 0;
	o->sc = -1;
	if (strcmp(arg, "all") == 0)
		return 0;
	urn_err_set(err, "there is no scenario '%.64s'; --list has them", arg);
	return -1;
}

#define O(field) offsetof(struct options, field)
static const struct urn_option rows[] = {
	SEEDS_OPTION(struct options, seeds),
	{"scenario", "NAME", "the scenario, or all (all); --list has the names", take_scenario},
	SEEDS_OPTION_JOBS(struct options, jobs),
	{"trace", NULL, "print every frame", urn_take_flag, O(trace)},
	SEEDS_OPTION_KEEP_GOING(struct options, keep_going),
	{"list", NULL, "print the scenarios", urn_take_flag, O(list)},
};

static const struct urn_options table = {rows, RTE_DIM(rows), 20, "--help"};

/* Check that options fit each other, and print lists. returns: as parse() */
static int
check(const struct options *o)
{
	for (unsigned int i = 0; o->list && i < RUN_COUNT; i++)
		printf("%-10s %s\n", run_scenario_name(i), run_scenario_text(i));
	if (o->list)
		return EXIT_SUCCESS;
	return o->trace && o->jobs > 1 ? usage("--trace does not go with --jobs") : -1;
}

/* returns: -1: run; otherwise the exit code */
static int
parse(int argc, char **argv, struct options *o)
{
	struct urn_err err;
	uint64_t given;

	*o = (struct options){.seeds = {1, 100}, .sc = -1, .jobs = 1};
	switch (urn_options_parse(&table, argc, argv, o, &given, &err)) {
	case URN_OPTIONS_HELP:
		fputs(help, stdout);
		urn_options_help(&table, stdout);
		fputs(help_end, stdout);
		return EXIT_SUCCESS;
	case URN_OPTIONS_VERSION:
		puts("urnic-peer-sim " URN_VERSION);
		return EXIT_SUCCESS;
	case URN_OPTIONS_BAD:
		seeds_refuse("urnic-peer-sim", &err);
		return EXIT_USAGE;
	case URN_OPTIONS_RUN:
		break;
	}
	return optind < argc ? usage("'%s' is not an option", argv[optind]) : check(o);
}

/* ---- running */

/* Totals of all runs, by scenario. */
struct peer_totals {
	struct run_stats of[RUN_COUNT];
	uint64_t failed;
};

static void
take(struct peer_totals *t, const struct report *p)
{
	uint64_t *to = (uint64_t *)&t->of[p->sc];
	const uint64_t *from = (const uint64_t *)&p->st;
	const char *name = run_scenario_name((unsigned int)p->sc);
	unsigned long long seed = p->seed;

	for (size_t i = 0; i < sizeof(p->st) / sizeof(uint64_t); i++)
		to[i] += from[i];
	t->failed += p->failed;
	if (p->failed)
		fprintf(stderr, "urnic-peer-sim: %s, seed %llu failed: %s\n"
			"  again: urnic-peer-sim --scenario %s --seeds %llu --trace\n",
			name, seed, p->why, name, seed);
}

static bool
enough(const struct options *o, const struct peer_totals *t)
{
	return urn_stop_requested() || (!o->keep_going && t->failed >= MOST_FAILED);
}

/* Run one worker's share of the seeds. fd: where to report; -1: to t */
static int
work(const struct options *o, unsigned int worker, int fd, struct peer_totals *t)
{
	struct run *r = run_new();
	struct report p;

	if (!r)
		return EXIT_FAILURE;
	for (uint64_t seed = o->seeds.first + worker; seed <= o->seeds.last && !enough(o, t);
	     seed += o->jobs)
		for (int sc = 0; sc < RUN_COUNT && !enough(o, t); sc++) {
			if (o->sc >= 0 && sc != o->sc)
				continue;
			memset(&p, 0, sizeof(p));
			p.seed = seed;
			p.sc = sc;
			p.failed = !run_seed(r, (enum run_scenario)sc, seed, o->trace ? stdout : NULL, &p.st,
					     p.why);
			if (fd < 0)
				take(t, &p);
			else if (write(fd, &p, sizeof(p)) != sizeof(p))
				return EXIT_FAILURE; /* the reader has gone */
		}
	run_free(r);
	return EXIT_SUCCESS;
}

static pid_t
start_worker(const struct options *o, unsigned int worker, const int fd[2], struct peer_totals *t)
{
	pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	close(fd[0]);
	signal(SIGPIPE, SIG_IGN);
	exit(work(o, worker, fd[1], t));
}

static int
listen_to(const struct options *o, int fd, const pid_t *pid, unsigned int n, struct peer_totals *t)
{
	bool told = false;
	struct report p;
	ssize_t got;
	int rc = EXIT_SUCCESS;

	while ((got = read(fd, &p, sizeof(p))) != 0) {
		if (got == sizeof(p))
			take(t, &p);
		else if (got > 0 || errno != EINTR)
			break;
		for (unsigned int i = 0; enough(o, t) && !told && i < n; i++)
			kill(pid[i], SIGTERM);
		told = told || enough(o, t);
	}
	for (unsigned int i = 0; i < n; i++) {
		int status;

		while (waitpid(pid[i], &status, 0) < 0 && errno == EINTR)
			;
		if (status != 0 && !told) {
			fputs("urnic-peer-sim: a worker ended before its time\n", stderr);
			rc = EXIT_FAILURE;
		}
	}
	return rc;
}

static int
run_jobs(const struct options *o, struct peer_totals *t)
{
	pid_t pid[SEEDS_MOST_JOBS];
	unsigned int n;
	int fd[2], rc;

	if (o->jobs == 1)
		return work(o, 0, -1, t);
	if (pipe(fd) != 0) {
		perror("urnic-peer-sim: pipe");
		return EXIT_FAILURE;
	}
	for (n = 0; n < o->jobs; n++) {
		pid[n] = start_worker(o, n, fd, t);
		if (pid[n] < 0) {
			perror("urnic-peer-sim: fork");
			while (n--)
				kill(pid[n], SIGTERM);
			return EXIT_FAILURE;
		}
	}
	close(fd[1]);
	rc = listen_to(o, fd[0], pid, n, t);
	close(fd[0]);
	return rc;
}

/* ---- results */

static double
seconds_since(const struct timespec *t)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - t->tv_sec) + (double)(now.tv_nsec - t->tv_nsec) / 1e9;
}

static void
print(const struct run_stats *s, const char *name)
{
#define N(x) ((unsigned long long)s->x)
	printf("%-8s %llu runs, %llu requests, %llu messages, %llu errors, %llu frames (%llu lost); asked %llu, "
	       "repeated %llu, refused %llu; peer's: %llu gaps, %llu not ready, %llu timeouts; %.1f s\n",
	       name, N(runs), N(requests), N(messages), N(errors), N(frames), N(lost), N(asked), N(repeated),
	       N(refused), N(seq_naks), N(rnr_naks), N(timeouts), (double)s->ns / 1e9);
#undef N
}

/*
 * Over many runs: the product repeats at most twice the packets that wires lost and peers refused,
 * and next to none on a wire that loses nothing to a peer with enough room. Not judged: late
 * memory, for which the product drops arrivals; errors, which are retried until retries run out.
 * returns: scenarios with too many repeats
 */
static uint64_t
judge_repeats(const struct peer_totals *t)
{
	uint64_t bad = 0;

	for (unsigned int i = 0; i < RUN_COUNT; i++) {
		const struct run_stats *s = &t->of[i];
		bool calm = i == RUN_SLOW && s->calm_repeated * 100 > s->calm_asked;

		if (s->runs < FEW || i == RUN_LATE || i == RUN_ERRORS)
			continue;
		if (s->repeated <= 2 * (s->lost + s->refused) && !calm)
			continue;
		bad++;
		fprintf(stderr, "urnic-peer-sim: %s: %llu of %llu requests were repeated, %llu frames were lost and "
			"%llu refused; where none were lost %llu of %llu\n", run_scenario_name(i),
			(unsigned long long)s->repeated, (unsigned long long)s->asked,
			(unsigned long long)s->lost, (unsigned long long)s->refused,
			(unsigned long long)s->calm_repeated, (unsigned long long)s->calm_asked);
	}
	return bad;
}

int
main(int argc, char **argv)
{
	static struct peer_totals t;
	struct timespec start;
	uint64_t runs = 0;
	struct options o;
	int rc = parse(argc, argv, &o);

	if (rc != -1)
		return rc;
	urn_stop_install();
	clock_gettime(CLOCK_MONOTONIC, &start);
	rc = run_jobs(&o, &t);
	for (unsigned int i = 0; i < RUN_COUNT; i++)
		if (t.of[i].runs) {
			print(&t.of[i], run_scenario_name(i));
			runs += t.of[i].runs;
		}
	printf("%llu passed, %llu failed, in %.1f s\n", (unsigned long long)(runs - t.failed),
	       (unsigned long long)t.failed, seconds_since(&start));
	if (rc != EXIT_SUCCESS || t.failed || judge_repeats(&t))
		return EXIT_FAILURE;
	return urn_stop_requested() ? EXIT_SIGNAL + urn_stop_requested() : EXIT_SUCCESS;
}
