/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * urnic-peer-sim: the product's transport against an independent peer, over seeds, in one
 * process or in several that share the seeds.
 */
#include "run.h"

#include "common/text.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FAILED = 10, EXIT_USAGE = 2, EXIT_SIGNAL = 128, MOST_JOBS = 64, FEW = 50 };

static const char help[] =
	"usage: urnic-peer-sim [option...]\n"
	"\n"
	"Joins urnic's transport with an independent peer - requester and responder as the\n"
	"standard has them, going back N, sharing no line with urnic - by a wire with faults,\n"
	"under a virtual clock, all of it from a seed. Everything is checked: memory to the\n"
	"byte, every completion, each frame, and how often urnic repeats.\n"
	"\n"
	"  --seeds A..B      seeds to run, or one (1..100)\n"
	"  --scenario NAME   what to run, or all (all); --list has the names\n"
	"  --jobs N          processes that share the seeds, 1..64 (1)\n"
	"  --trace           print every frame\n"
	"  --keep-going      go on after ten seeds have failed\n"
	"  --list            print the scenarios\n"
	"  --help            print this\n"
	"\n"
	"Exits 0 when every seed passed, 1 when one failed, 2 when the command line is\n"
	"wrong, 128 + N after signal N.\n";

struct options {
	uint64_t first, last, jobs;
	int sc; /* enum run_scenario; -1: all */
	bool trace, keep_going;
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
parse_seeds(const char *arg, struct options *o)
{
	char buf[48], *dots;

	snprintf(buf, sizeof(buf), "%s", arg);
	dots = strstr(buf, "..");
	if (dots)
		*dots = '\0';
	if (strlen(arg) >= sizeof(buf) || urn_text_parse_uint(buf, &o->first) != 0 ||
	    urn_text_parse_uint(dots ? dots + 2 : buf, &o->last) != 0 || o->last < o->first ||
	    o->last == UINT64_MAX)
		return usage("--seeds %s: seeds are a number, or two and '..' between them", arg);
	return -1;
}

static int
parse_scenario(const char *arg, struct options *o)
{
	for (o->sc = 0; o->sc < RUN_COUNT; o->sc++)
		if (strcmp(arg, run_scenario_name((unsigned int)o->sc)) == 0)
			return -1;
	o->sc = -1;
	return strcmp(arg, "all") == 0 ? -1 : usage("there is no scenario '%s'; --list has them", arg);
}

static int
parse_one(int c, struct options *o)
{
	switch (c) {
	case 's':
		return parse_seeds(optarg, o);
	case 'c':
		return parse_scenario(optarg, o);
	case 'j':
		if (urn_text_parse_uint(optarg, &o->jobs) != 0 || o->jobs < 1 || o->jobs > MOST_JOBS)
			return usage("--jobs %s: 1 to %d", optarg, MOST_JOBS);
		return -1;
	case 't':
		o->trace = true;
		return -1;
	case 'k':
		o->keep_going = true;
		return -1;
	case 'l':
		for (unsigned int i = 0; i < RUN_COUNT; i++)
			printf("%-10s %s\n", run_scenario_name(i), run_scenario_text(i));
		return 0;
	case 'h':
		fputs(help, stdout);
		return 0;
	default:
		fputs("urnic-peer-sim: see --help\n", stderr);
		return EXIT_USAGE;
	}
}

/* returns: -1: run; otherwise the exit code */
static int
parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{"seeds", required_argument, NULL, 's'}, {"scenario", required_argument, NULL, 'c'},
		{"jobs", required_argument, NULL, 'j'},	 {"trace", no_argument, NULL, 't'},
		{"keep-going", no_argument, NULL, 'k'},	 {"list", no_argument, NULL, 'l'},
		{"help", no_argument, NULL, 'h'},	 {NULL, 0, NULL, 0},
	};
	int c, rc;

	*o = (struct options){.first = 1, .last = 100, .sc = -1, .jobs = 1};
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		rc = parse_one(c, o);
		if (rc != -1)
			return rc;
	}
	if (optind < argc)
		return usage("'%s' is not an option", argv[optind]);
	if (o->trace && o->jobs > 1)
		return usage("--trace does not go with --jobs");
	return -1;
}

/* ---- running */

/* Totals of all runs, by scenario. */
struct totals {
	struct run_stats of[RUN_COUNT];
	uint64_t failed;
};

static void
take(struct totals *t, const struct report *p)
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
enough(const struct options *o, const struct totals *t)
{
	return urn_stop_requested() || (!o->keep_going && t->failed >= MOST_FAILED);
}

/* Run one worker's share of the seeds. fd: where to report; -1: to t */
static int
work(const struct options *o, unsigned int worker, int fd, struct totals *t)
{
	struct run *r = run_new();
	struct report p;

	if (!r)
		return EXIT_FAILURE;
	for (uint64_t seed = o->first + worker; seed <= o->last && !enough(o, t); seed += o->jobs)
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
start_worker(const struct options *o, unsigned int worker, const int fd[2], struct totals *t)
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
listen_to(const struct options *o, int fd, const pid_t *pid, unsigned int n, struct totals *t)
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
run_jobs(const struct options *o, struct totals *t)
{
	pid_t pid[MOST_JOBS];
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
judge_repeats(const struct totals *t)
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
	static struct totals t;
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
