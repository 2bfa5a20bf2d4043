/* SPDX-License-Identifier: BSD-3-Clause */
/* The main function of simulations: run seeds, in one process or several that share the seeds. */
#include "nodes.h"

#include "seeds.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FAILED = 10, EXIT_USAGE = 2, RUN = 0, DONE, WRONG };

struct options {
	struct seeds seeds;
	const struct ms_scenario *sc; /* NULL: all */
	uint32_t jobs;
	unsigned int sabotage; /* 0: nothing */
	bool trace, list, keep_going;
};

static const struct ms_load *load; /* set once, at the start */

/* Totals of a worker, written to a pipe in one piece. */
struct ms_totals {
	uint64_t seeds, failed;
	struct ms_stats stats;
};

static const char help_end[] =
	"\nExits 0 when every seed passed, 1 when one failed, 2 when the command line is wrong.\n";

static const struct ms_scenario *
find(const char *name)
{
	for (unsigned int i = 0; i < load->scenario_count; i++)
		if (strcmp(load->scenarios[i].name, name) == 0)
			return &load->scenarios[i];
	return NULL;
}

static int
take_scenario(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct options *o = to;

	(void)row;
	o->sc = find(arg);
	return seeds_scenario(o->sc, arg, err);
}

static int
take_sabotage(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct options *o = to;
	const char *name, *text;

	for (unsigned int i = 1; load->sabotage && (name = load->sabotage(i, &text)); i++)
		if (strcmp(arg, name) == 0) {
			o->sabotage = i;
			return 0;
		}
	urn_err_set(err, "--%s %.64s: there is no such thing to break; --list has them", row->name,
		    arg);
	return -1;
}

#define O(field) offsetof(struct options, field)
static const struct urn_option rows[] = {
	SEEDS_OPTION(struct options, seeds),
	{"scenario", "NAME", "scenario to run, or all (all); --list has the names", take_scenario},
	{"sabotage", "NAME", "break something on purpose: every run must fail. For tests",
	 take_sabotage},
	{"trace", NULL, "print all that happens", urn_take_flag, O(trace)},
	SEEDS_OPTION_KEEP_GOING(struct options, keep_going),
	SEEDS_OPTION_JOBS(struct options, jobs),
	{"list", NULL, "print the scenarios", urn_take_flag, O(list)},
};

static const struct urn_options table = {rows, RTE_DIM(rows), 20, "--help"};

static void
print_list(void)
{
	const char *name, *text;

	puts("scenarios:");
	for (unsigned int i = 0; i < load->scenario_count; i++)
		printf("  %-10s %s\n", load->scenarios[i].name, load->scenarios[i].text);
	if (load->sabotage)
		puts("sabotages:");
	for (unsigned int i = 1; load->sabotage && (name = load->sabotage(i, &text)); i++)
		printf("  %-10s %s\n", name, text);
}

static int
parse(int argc, char **argv, struct options *o)
{
	struct urn_err err;
	uint64_t given;

	*o = (struct options){.seeds = {1, 100}, .jobs = 1};
	switch (urn_options_parse(&table, argc, argv, o, &given, &err)) {
	case URN_OPTIONS_HELP:
		fputs(load->help, stdout);
		urn_options_help(&table, stdout);
		fputs(help_end, stdout);
		return DONE;
	case URN_OPTIONS_VERSION:
		printf("%s %s\n", load->program, URN_VERSION);
		return DONE;
	case URN_OPTIONS_BAD:
		seeds_refuse(load->program, &err);
		return WRONG;
	case URN_OPTIONS_RUN:
		break;
	}
	if (optind < argc) {
		fprintf(stderr, "%s: '%s' is not an option; see --help\n", load->program,
			argv[optind]);
		return WRONG;
	}
	if (!o->list)
		return RUN;
	print_list();
	return DONE;
}

/* Hashes are added up, so that the order of the seeds does not matter. */
static void
add(struct ms_totals *t, const struct ms_totals *more)
{
	uint64_t *to = (uint64_t *)t;
	const uint64_t *from = (const uint64_t *)more;

	uint64_t p99 = RTE_MAX(t->stats.p99_ppm, more->stats.p99_ppm);

	for (size_t i = 0; i < sizeof(*t) / sizeof(uint64_t); i++)
		to[i] += from[i];
	t->stats.p99_ppm = p99;
}

static void
run_seed(struct ms_world *w, const struct options *o, const struct ms_scenario *sc, uint64_t seed,
	 struct ms_totals *t)
{
	bool ok = ms_run(w, sc, seed, o->trace ? stdout : NULL);
	struct ms_totals one = {.seeds = 1, .failed = !ok, .stats = w->stats};

	add(t, &one);
	if (ok)
		return;
	fflush(stdout);
	fprintf(stderr,
		"%s: %s, seed %llu failed: %s\n  again: %s --scenario %s --seeds %llu --trace\n",
		load->program, sc->name, (unsigned long long)seed, w->why, load->program, sc->name,
		(unsigned long long)seed);
}

/* Run the seeds of one worker. */
static int
work(const struct options *o, unsigned int worker, struct ms_totals *t)
{
	struct ms_world *w = ms_world_new(load);

	if (!w)
		return EXIT_FAILURE;
	w->sabotage = o->sabotage;
	for (uint64_t seed = o->seeds.first + worker; seed <= o->seeds.last; seed += o->jobs)
		for (unsigned int i = 0; i < load->scenario_count; i++) {
			if (o->sc && o->sc != &load->scenarios[i])
				continue;
			run_seed(w, o, &load->scenarios[i], seed, t);
			/* Packets of a run that failed are not given back. */
			if (t->failed && (!o->keep_going || t->failed >= MOST_FAILED))
				goto out;
		}
out:
	ms_world_free(w);
	return EXIT_SUCCESS;
}

static int
run_jobs(const struct options *o, struct ms_totals *t)
{
	struct ms_totals one;
	int fd[2], bad = 0, status;

	if (o->jobs == 1)
		return work(o, 0, t);
	if (pipe(fd) != 0)
		return EXIT_FAILURE;
	for (unsigned int i = 0; i < o->jobs; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return EXIT_FAILURE;
		if (pid)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		memset(&one, 0, sizeof(one));
		status = work(o, i, &one);
		if (write(fd[1], &one, sizeof(one)) != sizeof(one))
			status = EXIT_FAILURE;
		exit(status);
	}
	close(fd[1]);
	while (read(fd[0], &one, sizeof(one)) == sizeof(one))
		add(t, &one);
	while (wait(&status) > 0)
		bad |= status;
	close(fd[0]);
	return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void
print(const struct options *o, const struct ms_totals *t, double seconds)
{
	const struct ms_stats *s = &t->stats;

	printf("%s: %llu runs in %.1f s, %llu messages, %llu done, %llu errors (%llu may be "
	       "there), %llu frames (%llu lost, %llu marked), "
	       "%llu stops, %llu closes, %llu restarts (%llu frames held), %llu rests of flows;",
	       o->sc ? o->sc->name : "all", (unsigned long long)t->seeds, seconds,
	       (unsigned long long)s->messages, (unsigned long long)s->done,
	       (unsigned long long)s->errors, (unsigned long long)s->may_be,
	       (unsigned long long)s->frames, (unsigned long long)s->lost,
	       (unsigned long long)s->marked, (unsigned long long)s->pauses,
	       (unsigned long long)s->closes, (unsigned long long)s->restarts,
	       (unsigned long long)s->held, (unsigned long long)s->rests);
	for (uint8_t c = URN_MSG_DONE + 1; c < URN_MSG_CODES && !load->more; c++)
		printf(" %s %llu", urn_msg_code_word(c), (unsigned long long)s->code[c]);
	for (unsigned int i = 0; load->more && load->more[i]; i++)
		printf(", %s %llu", load->more[i], (unsigned long long)s->more[i]);
	if (s->p99_ppm)
		printf("; p99 %.2f of the wire's time at most", (double)s->p99_ppm / 1e6);
	printf(", hash %016llx\n%llu passed, %llu failed\n", (unsigned long long)s->hash,
	       (unsigned long long)(t->seeds - t->failed), (unsigned long long)t->failed);
}

int
ms_main(const struct ms_load *l, int argc, char **argv)
{
	struct ms_totals t = {0};
	struct timespec from, to;
	struct options o;
	int rc;

	load = l;
	rc = parse(argc, argv, &o);
	if (rc != RUN)
		return rc == DONE ? EXIT_SUCCESS : EXIT_USAGE;
	timespec_get(&from, TIME_UTC); /* a load may stand in for other clocks */
	rc = run_jobs(&o, &t);
	timespec_get(&to, TIME_UTC);
	if (rc == EXIT_SUCCESS)
		print(&o, &t,
		      (double)(to.tv_sec - from.tv_sec) +
			      (double)(to.tv_nsec - from.tv_nsec) / 1e9);
	return rc == EXIT_SUCCESS && !t.failed ? EXIT_SUCCESS : EXIT_FAILURE;
}
