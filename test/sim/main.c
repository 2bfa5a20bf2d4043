/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * urnic-sim: run seeds, in one process or several that share them. Each worker
 * starts an EAL of its own and tells the first process by a pipe.
 */
#include "options.h"

#include "common/json.h"
#include "common/text.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FAILED = 10, EXIT_USAGE = 2, EXIT_SIGNAL = 128 };

/* Totals of one seed or of many. */
struct sim_totals {
	uint64_t seeds, failed, hash;
	struct sim_stats stats;
};

/* A message from a worker; small enough for an atomic write to a pipe. */
struct report {
	uint64_t seed;
	unsigned int scenario;
	bool failed;
	struct sim_totals t;
	char why[SIM_WHY];
};
_Static_assert(sizeof(struct report) < 4096, "written to a pipe in one piece");

struct run {
	const struct options *o;
	struct sim_totals t;
	struct urn_progress progress;
	struct timespec start;
	FILE *capture; /* NULL: none */
};

static void
add(struct sim_totals *t, const struct sim_totals *more)
{
	uint64_t *to = (uint64_t *)&t->stats;
	const uint64_t *from = (const uint64_t *)&more->stats;

	t->seeds += more->seeds;
	t->failed += more->failed;
	t->hash += more->hash; /* the same in any order */
	for (size_t i = 0; i < sizeof(t->stats) / sizeof(uint64_t); i++)
		to[i] += from[i];
}

/* Take a report. */
static void
take(struct run *r, const struct report *p)
{
	char again[1200];

	add(&r->t, &p->t);
	if (p->failed) {
		urn_progress_end(&r->progress);
		options_replay(r->o, sim_scenarios[p->scenario].name, p->seed, again, sizeof(again));
		fprintf(stderr, "urnic-sim: %s, seed %llu failed: %s\n  again: %s\n",
			sim_scenarios[p->scenario].name, (unsigned long long)p->seed, p->why, again);
	}
	urn_progress_update(&r->progress, r->t.seeds);
}

static bool
enough(const struct run *r)
{
	return urn_stop_requested() || (!r->o->keep_going && r->t.failed >= MOST_FAILED) ||
	       (r->capture && ferror(r->capture));
}

static void
run_seed(struct sim *s, const struct run *r, unsigned int scenario, uint64_t seed, struct report *p)
{
	const struct options *o = r->o;

	memset(p, 0, sizeof(*p));
	p->seed = seed;
	p->scenario = scenario;
	s->without = o->without;
	s->recovery = o->recovery;
	s->sabotage = o->sabotage;
	s->capture = r->capture;
	p->failed = !sim_run(s, &sim_scenarios[scenario], seed, o->trace ? stdout : NULL);
	p->t = (struct sim_totals){
		.seeds = 1, .failed = p->failed, .hash = s->hash, .stats = s->stats};
	memcpy(p->why, s->why, sizeof(p->why));
}

/* The scenarios to run: from, to (excluded). */
static void
which(const struct options *o, unsigned int *from, unsigned int *to)
{
	*from = o->sc ? (unsigned int)(o->sc - sim_scenarios) : 0;
	*to = o->sc ? *from + 1 : sim_scenario_count;
}

/* Run the seeds of one worker. fd: descriptor for reports; -1: report in this process */
static int
work(struct run *r, unsigned int worker, int fd)
{
	const struct options *o = r->o;
	unsigned int from, to;
	struct report p;
	struct sim *s;

	if (sim_init("urnic-sim") != 0 || !(s = sim_new()))
		return EXIT_FAILURE;
	which(o, &from, &to);
	for (uint64_t seed = o->seeds.first + worker; seed <= o->seeds.last && !enough(r);
	     seed += o->jobs)
		for (unsigned int c = from; c < to && !enough(r); c++) {
			run_seed(s, r, c, seed, &p);
			if (fd < 0)
				take(r, &p);
			else if (write(fd, &p, sizeof(p)) != sizeof(p))
				_exit(EXIT_FAILURE); /* the reader is gone */
		}
	sim_free(s);
	return EXIT_SUCCESS;
}

static pid_t
start_worker(struct run *r, unsigned int worker, const int fd[2])
{
	pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	close(fd[0]);
	exit(work(r, worker, fd[1]));
}

/* Read the workers' reports until all workers are gone. returns: 0 or -1 */
static int
listen_to(struct run *r, int fd, const pid_t *pid)
{
	bool told = false;
	struct report p;
	ssize_t n;
	int rc = 0;

	while ((n = read(fd, &p, sizeof(p))) != 0) {
		if (n == sizeof(p))
			take(r, &p);
		else if (n > 0 || errno != EINTR)
			break;
		if (enough(r) && !told) {
			told = true;
			for (unsigned int i = 0; i < r->o->jobs; i++)
				kill(pid[i], SIGTERM);
		}
	}
	for (unsigned int i = 0; i < r->o->jobs; i++) {
		int status;

		while (waitpid(pid[i], &status, 0) < 0 && errno == EINTR)
			;
		if (status != 0 && !told)
			rc = -1;
	}
	return rc;
}

static int
run_jobs(struct run *r)
{
	pid_t pid[64];
	int fd[2], rc;

	if (r->o->jobs == 1)
		return work(r, 0, -1);
	if (pipe(fd) != 0) {
		perror("urnic-sim: pipe");
		return EXIT_FAILURE;
	}
	for (unsigned int i = 0; i < r->o->jobs; i++) {
		pid[i] = start_worker(r, i, fd);
		if (pid[i] < 0) {
			perror("urnic-sim: fork");
			while (i--)
				kill(pid[i], SIGTERM);
			return EXIT_FAILURE;
		}
	}
	close(fd[1]);
	rc = listen_to(r, fd[0], pid);
	close(fd[0]);
	if (rc != 0)
		fputs("urnic-sim: a worker ended before its time\n", stderr);
	return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- the capture */

static int
capture_open(struct run *r)
{
	if (!r->o->capture)
		return 0;
	r->capture = sim_capture_open(r->o->capture);
	if (r->capture)
		return 0;
	fprintf(stderr, "urnic-sim: cannot write the capture %s: %s\n", r->o->capture,
		strerror(errno));
	return -1;
}

/* returns 0, or -1 when not all of it was written */
static int
capture_close(struct run *r)
{
	bool bad;

	if (!r->capture)
		return 0;
	errno = 0;
	bad = ferror(r->capture);
	if (fclose(r->capture) == 0 && !bad)
		return 0;
	fprintf(stderr, "urnic-sim: the capture %s is not whole%s%s\n", r->o->capture,
		errno ? ": " : "", errno ? strerror(errno) : "");
	return -1;
}

/* ---- judged of all runs together */

/*
 * True when too many pairs failed because wires that lose at random lost all tries: `expected` is an upper
 * bound of their mean (model_lost.c), and pairs fail almost independently. A correct product exceeds the
 * bound of four standard deviations and four pairs less than once in ten thousand calls.
 */
static bool
too_many_lost(const struct sim_stats *st)
{
	double expected = (double)st->lost_ppm / 1e6, most = expected + 4 * sqrt(expected) + 4;

	if ((double)st->lost_pairs <= most)
		return false;
	fprintf(stderr,
		"urnic-sim: %llu pairs failed because nobody answered; losses of wires and numbers "
		"of tries "
		"explain %.1f at most, and up to %.1f are within random variation\n",
		(unsigned long long)st->lost_pairs, expected, most);
	return true;
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
print_json(const struct run *r, double seconds)
{
	const struct sim_stats *st = &r->t.stats;
	struct urn_json j;
	char hash[20];

	snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)r->t.hash);
	urn_json_init(&j, stdout);
	urn_json_object(&j, NULL);
	urn_json_str(&j, "scenario", r->o->sc ? r->o->sc->name : "all");
	urn_json_u64(&j, "runs", r->t.seeds);
	urn_json_u64(&j, "failed", r->t.failed);
	urn_json_num(&j, "seconds", seconds, 3);
	urn_json_num(&j, "runs_per_second", seconds > 0 ? (double)r->t.seeds / seconds : 0, 1);
	urn_json_num(&j, "virtual_seconds", (double)st->ns / 1e9, 6);
	urn_json_u64(&j, "requests", st->requests);
	urn_json_u64(&j, "completions", st->completions);
	urn_json_u64(&j, "completions_error", st->errors);
	urn_json_u64(&j, "datagrams", st->datagrams);
	urn_json_u64(&j, "frames", st->frames);
	urn_json_u64(&j, "frames_lost", st->dropped);
	urn_json_u64(&j, "pairs_lost", st->lost_pairs);
	urn_json_num(&j, "pairs_lost_expected", (double)st->lost_ppm / 1e6, 3);
	urn_json_u64(&j, "request_packets", st->sent);
	urn_json_u64(&j, "repeats", st->repeats);
	urn_json_u64(&j, "refused", st->refused);
	urn_json_u64(&j, "events", st->events);
	urn_json_u64(&j, "others_windows", st->others);
	urn_json_str(&j, "hash", hash);
	urn_json_object(&j, "faults");
	for (unsigned int f = 0; f < SIM_FAULT_COUNT; f++)
		urn_json_u64(&j, sim_fault_name(f), st->fired[f]);
	urn_json_end(&j);
	urn_json_end(&j);
}

static void
print_text(const struct run *r, double seconds)
{
	const struct sim_stats *st = &r->t.stats;

	printf("%s: %llu runs in %.1f s (%.0f a second), %llu requests, %llu frames (%llu lost), %llu errors, hash %016llx\n",
	       r->o->sc ? r->o->sc->name : "all", (unsigned long long)r->t.seeds, seconds,
	       seconds > 0 ? (double)r->t.seeds / seconds : 0, (unsigned long long)st->requests,
	       (unsigned long long)st->frames, (unsigned long long)st->dropped,
	       (unsigned long long)st->errors, (unsigned long long)r->t.hash);
	printf("%llu passed, %llu failed\n", (unsigned long long)(r->t.seeds - r->t.failed),
	       (unsigned long long)r->t.failed);
}

/*
 * True when too much was sent again. Where all nodes follow the standard only, all runs together repeat
 * at most twice the packets that were lost or of no use, and slow nodes behind good wires repeat nearly none.
 */
static bool
repeated_too_much(const struct run *r)
{
	enum { FEW = 64, ONE_IN = 50 };
	const struct sim_stats *st = &r->t.stats;
	uint64_t most = 2 * (st->dropped + st->refused) + FEW, good = st->good_sent / ONE_IN + FEW;
	uint64_t bad = st->repeats - st->good_repeats;

	if (!r->o->sc || !r->o->sc->plain)
		return false;
	if (bad <= most && st->good_repeats <= good)
		return false;
	fprintf(stderr, "urnic-sim: %llu of %llu request packets are repeats, and %llu were lost or did no good;"
			" where wires are good, %llu of %llu\n",
		(unsigned long long)st->repeats, (unsigned long long)st->sent,
		(unsigned long long)(st->dropped + st->refused), (unsigned long long)st->good_repeats,
		(unsigned long long)st->good_sent);
	return true;
}

int
main(int argc, char **argv)
{
	struct options o;
	struct run r = {.o = &o};
	unsigned int from, to;
	double seconds;
	int rc = options_parse(argc, argv, &o);

	if (rc != OPTIONS_RUN)
		return rc == OPTIONS_DONE ? EXIT_SUCCESS : EXIT_USAGE;
	if (capture_open(&r) != 0)
		return EXIT_FAILURE;
	urn_stop_install();
	which(&o, &from, &to);
	clock_gettime(CLOCK_MONOTONIC, &r.start);
	urn_progress_begin(&r.progress, o.sc ? o.sc->name : "all",
			   (o.seeds.last - o.seeds.first + 1) * (to - from));
	rc = run_jobs(&r);
	urn_progress_end(&r.progress);
	if (capture_close(&r) != 0)
		rc = EXIT_FAILURE;
	if (rc != EXIT_SUCCESS)
		return rc;
	seconds = seconds_since(&r.start);
	o.json ? print_json(&r, seconds) : print_text(&r, seconds);
	if (fflush(stdout) != 0) {
		fputs("urnic-sim: the results could not be written\n", stderr);
		return EXIT_FAILURE;
	}
	if (too_many_lost(&r.t.stats) || repeated_too_much(&r) || r.t.failed)
		return EXIT_FAILURE;
	return urn_stop_requested() ? EXIT_SIGNAL + urn_stop_requested() : EXIT_SUCCESS;
}
