/* SPDX-License-Identifier: BSD-3-Clause */
/* urnic-stream-sim: options, seeds and parallel processes. */
#include "stsim.h"

#include <getopt.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const sabotage_name[ST_BREAKS][2] = {{"", ""},
#define X(name, word, text) {word, text},
							ST_SABOTAGES(X)
#undef X
};

static const char *const mischief_name[ST_BADS][2] = {{"", ""},
#define X(name, word, text) {word, text},
						      ST_MISCHIEFS(X)
#undef X
};

static const char *const decision_name[URN_ST_D_COUNT] = {
#define X(name, text) #name,
	URN_ST_DECISIONS(X)
#undef X
};

/* Figures of the seeds that one process ran; children write them to the parent. */
struct st_sum {
	uint64_t passed, failed, broken, hash;
	uint64_t decided[URN_ST_D_COUNT];
	uint64_t bad[ST_BADS], bad_died[ST_BADS];
};

/* Options. */
struct st_options {
	const struct st_scenario *sc; /* NULL: all */
	uint64_t first, last;
	unsigned int jobs;
	enum st_sabotage sabotage;
	bool keep_going, trace, points;
};

static const char help[] =
	"usage: urnic-stream-sim [option...]\n"
	"\n"
	"Simulates two ends of byte streams over RDMA, in one thread, all choices from a\n"
	"seed: writers and readers, sizes, thresholds, order of events, migrations, deaths,\n"
	"peers that break the protocol. Bytes received are compared with those sent.\n"
	"\n"
	"  --scenario NAME  one scenario, or all (default)\n"
	"  --seeds A..B     range of seeds (default 1..100)\n"
	"  --jobs N         parallel processes (default 1)\n"
	"  --keep-going     go on after a seed that fails\n"
	"  --points         fail when a decision or a mischief never took place\n"
	"  --sabotage NAME  imitate a bug; exit code 1 shows that it was noticed\n"
	"  --trace          print each message and decision\n"
	"  --list           names of scenarios, sabotages, mischiefs and decisions\n"
	"  --help           this text\n";

static void
list(void)
{
	puts("scenarios:");
	for (unsigned int i = 0; i < st_scenario_count; i++)
		printf("  %-11s %s\n", st_scenarios[i].name, st_scenarios[i].text);
	puts("sabotages:");
	for (unsigned int i = 1; i < ST_BREAKS; i++)
		printf("  %-11s %s\n", sabotage_name[i][0], sabotage_name[i][1]);
	puts("mischiefs:");
	for (unsigned int i = 1; i < ST_BADS; i++)
		printf("  %-11s %s\n", mischief_name[i][0], mischief_name[i][1]);
	puts("decisions:");
	for (unsigned int i = 0; i < URN_ST_D_COUNT; i++)
		printf("  %-11s %s\n", decision_name[i], urn_st_decision_text(i));
}

static void
one(const struct st_options *o, struct st_world *w, const struct st_scenario *sc, uint64_t seed,
    struct st_sum *sum)
{
	bool good = st_run(w, sc, seed);

	sum->passed += good;
	sum->failed += !good;
	sum->broken += w->broken;
	sum->hash += (w->hash + seed) * 0x9e3779b97f4a7c15u ^ w->step;
	for (unsigned int i = 0; i < URN_ST_D_COUNT; i++)
		sum->decided[i] += w->decided[i];
	for (unsigned int i = 0; i < ST_BADS; i++) {
		sum->bad[i] += w->bad[i];
		sum->bad_died[i] += w->bad_died[i];
	}
	if (good)
		return;
	fflush(stdout);
	fprintf(stderr,
		"urnic-stream-sim: %s, seed %llu failed: at step %llu: %s\n"
		"  again: urnic-stream-sim --scenario %s --seeds %llu --trace%s%s\n",
		sc->name, (unsigned long long)seed, (unsigned long long)w->step, w->error, sc->name,
		(unsigned long long)seed, o->sabotage ? " --sabotage " : "",
		sabotage_name[o->sabotage][0]);
}

/* Run every jobs-th seed, from the k-th on. */
static void
share(const struct st_options *o, unsigned int k, struct st_sum *sum)
{
	struct st_world *w = calloc(1, sizeof(*w));

	if (!w)
		exit(3);
	w->sabotage = o->sabotage;
	w->trace = o->trace;
	for (uint64_t seed = o->first + k; seed <= o->last; seed += o->jobs)
		for (unsigned int i = 0; i < st_scenario_count; i++) {
			if (o->sc && o->sc != &st_scenarios[i])
				continue;
			one(o, w, &st_scenarios[i], seed, sum);
			if (sum->failed && !o->keep_going)
				goto out;
		}
out:
	free(w);
}

static void
add(struct st_sum *to, const struct st_sum *s)
{
	to->passed += s->passed;
	to->failed += s->failed;
	to->broken += s->broken;
	to->hash += s->hash;
	for (unsigned int i = 0; i < URN_ST_D_COUNT; i++)
		to->decided[i] += s->decided[i];
	for (unsigned int i = 0; i < ST_BADS; i++) {
		to->bad[i] += s->bad[i];
		to->bad_died[i] += s->bad_died[i];
	}
}

static void
all(const struct st_options *o, struct st_sum *sum)
{
	int fd[2];

	if (o->jobs == 1) {
		share(o, 0, sum);
		return;
	}
	if (pipe(fd))
		exit(3);
	for (unsigned int k = 0; k < o->jobs; k++) {
		struct st_sum part = {0};
		pid_t pid = fork();

		if (pid < 0)
			exit(3);
		if (pid)
			continue;
		share(o, k, &part);
		_exit(write(fd[1], &part, sizeof(part)) != (ssize_t)sizeof(part));
	}
	close(fd[1]);
	for (unsigned int k = 0; k < o->jobs; k++) {
		struct st_sum part;

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
	fprintf(stderr, "urnic-stream-sim: %s; --help lists the options\n", what);
	return 2;
}

static const struct st_scenario *
scenario(const char *name)
{
	for (unsigned int i = 0; i < st_scenario_count; i++)
		if (!strcmp(st_scenarios[i].name, name))
			return &st_scenarios[i];
	return NULL;
}

static enum st_sabotage
sabotage(const char *name)
{
	for (unsigned int i = 1; i < ST_BREAKS; i++)
		if (!strcmp(sabotage_name[i][0], name))
			return (enum st_sabotage)i;
	return ST_BREAK_NOTHING;
}

/* returns: false: not a range of seeds */
static bool
seeds(struct st_options *o, const char *text)
{
	char *end;

	o->first = o->last = strtoull(text, &end, 10);
	if (end != text && !strncmp(end, "..", 2)) {
		text = end + 2;
		o->last = strtoull(text, &end, 10);
	}
	return end != text && !*end && o->first <= o->last;
}

/* Print a figure that must not be 0. returns: true when it is */
static bool
point(const char *name, uint64_t times)
{
	printf("  %-11s %llu\n", name, (unsigned long long)times);
	if (times)
		return false;
	fprintf(stderr, "urnic-stream-sim: %s never took place\n", name);
	return true;
}

static int
report(const struct st_options *o, const struct st_sum *sum)
{
	bool bad = sum->failed != 0;

	printf("%s: sabotages %llu, hash %016llx\n", o->sc ? o->sc->name : "all",
	       (unsigned long long)sum->broken, (unsigned long long)sum->hash);
	for (unsigned int i = 0; o->points && i < URN_ST_D_COUNT; i++)
		bad |= point(decision_name[i], sum->decided[i]);
	/* A mischief counts when the other end broke the connection because of it. */
	for (unsigned int i = 1; o->points && i < ST_BADS; i++)
		bad |= point(mischief_name[i][0], sum->bad_died[i]);
	printf("%llu passed, %llu failed\n", (unsigned long long)sum->passed,
	       (unsigned long long)sum->failed);
	return bad;
}

/* Take the options. returns: -1: go on; else the exit code */
static int
options(struct st_options *o, int argc, char **argv)
{
	static const struct option names[] = {
		{"scenario", required_argument, NULL, 's'},
		{"seeds", required_argument, NULL, 'n'},
		{"jobs", required_argument, NULL, 'j'},
		{"keep-going", no_argument, NULL, 'k'},
		{"points", no_argument, NULL, 'p'},
		{"sabotage", required_argument, NULL, 'b'},
		{"trace", no_argument, NULL, 't'},
		{"list", no_argument, NULL, 'l'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	bool listed = false;
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == 's' && strcmp(optarg, "all") != 0 && !(o->sc = scenario(optarg)))
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
	struct st_options o = {.first = 1, .last = 100, .jobs = 1};
	struct st_sum sum = {0};
	int code = options(&o, argc, argv);

	if (code >= 0)
		return code;
	all(&o, &sum);
	return report(&o, &sum);
}
