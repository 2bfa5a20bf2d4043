/* SPDX-License-Identifier: BSD-3-Clause */
/* urnic-session-sim: options, seeds and parallel processes. */
#include "sess.h"

#include <getopt.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const point_name[SS_POINT_COUNT][2] = {
#define X(name, text) {#name, text},
	SS_POINTS(X)
#undef X
};

static const char *const sabotage_name[SS_BREAKS][2] = {{"", ""},
#define X(name, word, text) {word, text},
							SS_SABOTAGES(X)
#undef X
};

/* Figures of the seeds that one process ran; children write them to the parent. */
struct ss_sum {
	uint64_t passed, failed, faults, broken, hash;
	uint64_t again, lost, known, unknown; /* sums of a run's (sess.h) */
	uint64_t fired[SS_POINT_COUNT];
};

/* Options. */
struct ss_options {
	const struct ss_scenario *sc; /* NULL: all */
	uint64_t first, last;
	unsigned int jobs;
	enum ss_sabotage sabotage;
	bool keep_going, trace, points, json;
};

static const char help[] =
	"usage: urnic-session-sim [option...]\n"
	"\n"
	"Simulates two ends of a session over adapters that die at named points, in one\n"
	"thread, all choices from a seed. Each Send must come once and in order, writes\n"
	"before the Send behind them, atomics once, and each request completes once.\n"
	"\n"
	"  --scenario NAME  one scenario, or all (default)\n"
	"  --seeds A..B     range of seeds (default 1..100)\n"
	"  --jobs N         parallel processes (default 1)\n"
	"  --keep-going     go on after a seed that fails\n"
	"  --points         fail when a fault point was never reached\n"
	"  --sabotage NAME  imitate a bug; exit code 1 shows that it was noticed\n"
	"  --json           print the figures as an object of JSON\n"
	"  --trace          print each action and fault\n"
	"  --list           names of scenarios, points and sabotages\n"
	"  --help           this text\n";

static void
list(void)
{
	puts("scenarios:");
	for (unsigned int i = 0; i < ss_scenario_count; i++)
		printf("  %-10s %s\n", ss_scenarios[i].name, ss_scenarios[i].text);
	puts("sabotages:");
	for (unsigned int i = 1; i < SS_BREAKS; i++)
		printf("  %-10s %s\n", sabotage_name[i][0], sabotage_name[i][1]);
	puts("points:");
	for (unsigned int i = 0; i < SS_POINT_COUNT; i++)
		printf("  %-10s %s\n", point_name[i][0], point_name[i][1]);
}

static void
one(const struct ss_options *o, struct ss_world *w, const struct ss_scenario *sc, uint64_t seed,
    struct ss_sum *sum)
{
	bool good = ss_run(w, sc, seed);

	sum->passed += good;
	sum->failed += !good;
	sum->faults += w->next_fault;
	sum->broken += w->broken;
	sum->again += w->again;
	sum->lost += w->lost;
	sum->known += w->known;
	sum->unknown += w->unknown;
	sum->hash += (w->hash + seed) * 0x9e3779b97f4a7c15u ^ w->step;
	for (unsigned int i = 0; i < SS_POINT_COUNT; i++)
		sum->fired[i] += w->fired[i];
	if (good)
		return;
	fflush(stdout);
	fprintf(stderr,
		"urnic-session-sim: %s, seed %llu failed: at step %llu: %s\n"
		"  again: urnic-session-sim --scenario %s --seeds %llu --trace%s%s\n",
		sc->name, (unsigned long long)seed, (unsigned long long)w->step, w->error, sc->name,
		(unsigned long long)seed, o->sabotage ? " --sabotage " : "",
		sabotage_name[o->sabotage][0]);
}

/* Run every jobs-th seed, from the k-th on. */
static void
share(const struct ss_options *o, unsigned int k, struct ss_sum *sum)
{
	struct ss_world *w = calloc(1, sizeof(*w));

	if (!w)
		exit(3);
	w->sabotage = o->sabotage;
	w->trace = o->trace;
	for (uint64_t seed = o->first + k; seed <= o->last; seed += o->jobs)
		for (unsigned int i = 0; i < ss_scenario_count; i++) {
			if (o->sc && o->sc != &ss_scenarios[i])
				continue;
			one(o, w, &ss_scenarios[i], seed, sum);
			if (sum->failed && !o->keep_going)
				goto out;
		}
out:
	free(w);
}

static void
add(struct ss_sum *to, const struct ss_sum *s)
{
	to->passed += s->passed;
	to->failed += s->failed;
	to->faults += s->faults;
	to->broken += s->broken;
	to->again += s->again;
	to->lost += s->lost;
	to->known += s->known;
	to->unknown += s->unknown;
	to->hash += s->hash;
	for (unsigned int i = 0; i < SS_POINT_COUNT; i++)
		to->fired[i] += s->fired[i];
}

static void
all(const struct ss_options *o, struct ss_sum *sum)
{
	int fd[2];

	if (o->jobs == 1) {
		share(o, 0, sum);
		return;
	}
	if (pipe(fd))
		exit(3);
	for (unsigned int k = 0; k < o->jobs; k++) {
		struct ss_sum part = {0};

		if (fork())
			continue;
		share(o, k, &part);
		_exit(write(fd[1], &part, sizeof(part)) != (ssize_t)sizeof(part));
	}
	close(fd[1]);
	for (unsigned int k = 0; k < o->jobs; k++) {
		struct ss_sum part;

		if (read(fd[0], &part, sizeof(part)) != (ssize_t)sizeof(part))
			exit(3);
		add(sum, &part);
	}
	while (wait(NULL) > 0)
		;
}

static int
usage(const char *what)
{
	fprintf(stderr, "urnic-session-sim: %s; --help lists the options\n", what);
	return 2;
}

static const struct ss_scenario *
scenario(const char *name)
{
	for (unsigned int i = 0; i < ss_scenario_count; i++)
		if (!strcmp(ss_scenarios[i].name, name))
			return &ss_scenarios[i];
	return NULL;
}

static enum ss_sabotage
sabotage(const char *name)
{
	for (unsigned int i = 1; i < SS_BREAKS; i++)
		if (!strcmp(sabotage_name[i][0], name))
			return (enum ss_sabotage)i;
	return SS_BREAK_NOTHING;
}

/* returns: false: not a range of seeds */
static bool
seeds(struct ss_options *o, const char *text)
{
	char *end;

	o->first = o->last = strtoull(text, &end, 10);
	if (end != text && !strncmp(end, "..", 2)) {
		text = end + 2;
		o->last = strtoull(text, &end, 10);
	}
	return end != text && !*end && o->first <= o->last;
}

static void
report_json(const struct ss_options *o, const struct ss_sum *sum)
{
	printf("{\"scenario\": \"%s\", \"passed\": %llu, \"failed\": %llu, \"faults\": %llu, "
	       "\"sent_again\": %llu, \"lost\": %llu, \"atomics_known\": %llu, "
	       "\"atomics_unknown\": %llu, \"hash\": \"%016llx\"}\n",
	       o->sc ? o->sc->name : "all", (unsigned long long)sum->passed,
	       (unsigned long long)sum->failed, (unsigned long long)sum->faults,
	       (unsigned long long)sum->again, (unsigned long long)sum->lost,
	       (unsigned long long)sum->known, (unsigned long long)sum->unknown,
	       (unsigned long long)sum->hash);
}

static int
report(const struct ss_options *o, const struct ss_sum *sum)
{
	int bad = sum->failed != 0;

	if (o->json) {
		report_json(o, sum);
		return bad;
	}
	printf("%s: %llu faults, sabotages %llu, hash %016llx\n", o->sc ? o->sc->name : "all",
	       (unsigned long long)sum->faults, (unsigned long long)sum->broken,
	       (unsigned long long)sum->hash);
	printf("%llu Sends and writes were sent again, of which %llu had not arrived\n"
	       "%llu atomics completed with an outcome, %llu without\n",
	       (unsigned long long)sum->again, (unsigned long long)sum->lost,
	       (unsigned long long)sum->known, (unsigned long long)sum->unknown);
	for (unsigned int i = 0; o->points && i < SS_POINT_COUNT; i++) {
		printf("  %-10s %llu\n", point_name[i][0], (unsigned long long)sum->fired[i]);
		if (!sum->fired[i]) {
			fprintf(stderr, "urnic-session-sim: no fault happened at %s\n",
				point_name[i][0]);
			bad = 1;
		}
	}
	printf("%llu passed, %llu failed\n", (unsigned long long)sum->passed,
	       (unsigned long long)sum->failed);
	return bad;
}

/* Take the options. returns: -1: go on; else the exit code */
static int
options(struct ss_options *o, int argc, char **argv)
{
	static const struct option names[] = {
		{"scenario", required_argument, NULL, 's'},
		{"seeds", required_argument, NULL, 'n'},
		{"jobs", required_argument, NULL, 'j'},
		{"keep-going", no_argument, NULL, 'k'},
		{"points", no_argument, NULL, 'p'},
		{"sabotage", required_argument, NULL, 'b'},
		{"json", no_argument, NULL, 'o'},
		{"trace", no_argument, NULL, 't'},
		{"list", no_argument, NULL, 'l'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c, listed = 0;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == 's' && strcmp(optarg, "all") && !(o->sc = scenario(optarg)))
			return usage("there is no such scenario");
		if (c == 'n' && !seeds(o, optarg))
			return usage("--seeds wants a number, or two and '..' between them");
		if (c == 'j' && (o->jobs = (unsigned int)atoi(optarg)) - 1 > 255)
			return usage("--jobs wants a number from 1 to 256");
		if (c == 'b' && !(o->sabotage = sabotage(optarg)))
			return usage("there is no such sabotage");
		o->keep_going |= c == 'k';
		o->points |= c == 'p';
		o->trace |= c == 't';
		o->json |= c == 'o';
		listed |= c == 'l';
		if (c == 'h')
			fputs(help, stdout);
		if (c == 'h' || c == '?')
			return c == 'h' ? 0 : 2;
	}
	if (optind != argc)
		return usage("there is an argument too many");
	if (listed)
		list();
	return listed ? 0 : -1;
}

int
main(int argc, char **argv)
{
	struct ss_options o = {.first = 1, .last = 100, .jobs = 1};
	struct ss_sum sum = {0};
	int code = options(&o, argc, argv);

	if (code >= 0)
		return code;
	all(&o, &sum);
	return report(&o, &sum);
}
