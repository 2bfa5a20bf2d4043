/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <errno.h>
#include <stdlib.h>

static const char help[] =
	"usage: urnic-sim [option...]\n"
	"\n"
	"Simulates clusters: nodes, switches and wires in one thread under a virtual\n"
	"clock, all random choices from a seed. After each run everything is checked:\n"
	"memory to the byte, every completion, and that nothing is left.\n"
	"\n";

static const char help_end[] =
	"\n"
	"Exits 0 when every seed passed, 1 when one failed, 2 when the command line is\n"
	"wrong, 128 + N after signal N.\n";

static int __attribute__((format(printf, 1, 2)))
wrong(const char *fmt, ...)
{
	va_list ap;

	fputs("urnic-sim: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs("; see --help\n", stderr);
	return OPTIONS_WRONG;
}

static void
print_list(void)
{
	puts("scenarios:");
	for (unsigned int i = 0; i < sim_scenario_count; i++)
		printf("  %-10s %s\n", sim_scenarios[i].name, sim_scenarios[i].text);
	puts("faults:");
	for (unsigned int f = 0; f < SIM_FAULT_COUNT; f++)
		printf("  %-10s %s\n", sim_fault_name(f), sim_fault_text(f));
	puts("sabotages:");
	for (unsigned int i = 1; sim_sabotage_name(i); i++)
		printf("  %-10s %s\n", sim_sabotage_name(i), sim_sabotage_text(i));
}

static int
take_without(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct options *o = to;
	char buf[512], *save = NULL;

	(void)row;
	if (strlen(arg) >= sizeof(buf)) {
		urn_err_set(err, "--without: that is too long");
		return -1;
	}
	snprintf(buf, sizeof(buf), "%s", arg);
	for (char *name = strtok_r(buf, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		unsigned int f = 0;

		while (f < SIM_FAULT_COUNT && strcmp(name, sim_fault_name(f)) != 0)
			f++;
		if (f == SIM_FAULT_COUNT) {
			urn_err_set(err, "--without: there is no fault '%.64s'; --list has them",
				    name);
			return -1;
		}
		o->without |= UINT64_C(1) << f;
	}
	return 0;
}

static int
take_recovery(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct options *o = to;

	for (unsigned int r = 0; sim_recovery_name(r); r++)
		if (strcmp(arg, sim_recovery_name(r)) == 0) {
			o->recovery = r;
			return 0;
		}
	urn_err_set(err, "--%s %.64s: gbn, selective or mixed", row->name, arg);
	return -1;
}

static int
take_sabotage(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct options *o = to;

	for (unsigned int i = 1; sim_sabotage_name(i); i++)
		if (strcmp(arg, sim_sabotage_name(i)) == 0) {
			o->sabotage = i;
			return 0;
		}
	urn_err_set(err, "--%s %.64s: there is no such thing to break; --list has them", row->name,
		    arg);
	return -1;
}

static int
take_scenario(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct options *o = to;

	(void)row;
	o->sc = sim_scenario_find(arg);
	return seeds_scenario(o->sc, arg, err);
}

#define O(field) offsetof(struct options, field)
static const struct urn_option rows[] = {
	SEEDS_OPTION(struct options, seeds),
	{"scenario", "NAME", "the scenario, or all (small); --list has the names", take_scenario},
	{"without", "F,F...", "faults to leave out, by name; all else stays as it is",
	 take_without},
	{"recovery", "R",
	 "gbn, selective or mixed: how lost packets are repeated\n"
	 "where both adapters can choose (mixed)",
	 take_recovery},
	{"sabotage", "NAME", "break something on purpose: every run must fail. For tests",
	 take_sabotage},
	{"trace", NULL, "print all that happens", urn_take_flag, O(trace)},
	{"capture", "FILE",
	 "write what nodes send as pcap, as it was before any wire; times\n"
	 "are of the virtual clock, which starts anew with each run",
	 urn_take_text, O(capture)},
	SEEDS_OPTION_KEEP_GOING(struct options, keep_going),
	SEEDS_OPTION_JOBS(struct options, jobs),
	{"json", NULL, "print figures as JSON", urn_take_flag, O(json)},
	{"list", NULL, "print scenarios, faults and sabotages", urn_take_flag, O(list)},
};

static const struct urn_options table = {rows, RTE_DIM(rows), 20, "--help"};

/* Check that options fit each other, and print lists. returns: as options_parse() */
static int
check(const struct options *o)
{
	if (o->list) {
		print_list();
		return OPTIONS_DONE;
	}
	if (o->trace && (o->json || o->jobs > 1))
		return wrong("--trace goes with neither --json nor --jobs");
	if (o->capture && !*o->capture)
		return wrong("--capture: the name of the file is empty");
	if (o->capture && o->jobs > 1)
		return wrong("--capture does not go with --jobs");
	return OPTIONS_RUN;
}

int
options_parse(int argc, char **argv, struct options *o)
{
	struct urn_err err;
	uint64_t given;

	*o = (struct options){.seeds = {1, 100},
			      .sc = sim_scenario_find("small"),
			      .recovery = SIM_MIXED,
			      .jobs = 1};
	switch (urn_options_parse(&table, argc, argv, o, &given, &err)) {
	case URN_OPTIONS_HELP:
		fputs(help, stdout);
		urn_options_help(&table, stdout);
		fputs(help_end, stdout);
		return OPTIONS_DONE;
	case URN_OPTIONS_VERSION:
		puts("urnic-sim " URN_VERSION);
		return OPTIONS_DONE;
	case URN_OPTIONS_BAD:
		seeds_refuse("urnic-sim", &err);
		return OPTIONS_WRONG;
	case URN_OPTIONS_RUN:
		break;
	}
	return optind < argc ? wrong("'%s' is not an option", argv[optind]) : check(o);
}

void
options_replay(const struct options *o, const char *scenario, uint64_t seed, char *buf, size_t len)
{
	/* The name by which the program was called; quoted, so that a shell reads it as one word. */
	const char *quote = strpbrk(program_invocation_name, " \t\"$&()*;<>?[`{|}~\\") ? "'" : "";
	int n = snprintf(buf, len, "%s%.512s%s --scenario %s --seeds %llu --trace", quote,
			 program_invocation_name, quote, scenario, (unsigned long long)seed);
	const char *sep = " --without ";

	if (o->recovery != SIM_MIXED)
		n += snprintf(buf + n, len - (size_t)n, " --recovery %s", sim_recovery_name(o->recovery));
	if (o->sabotage)
		n += snprintf(buf + n, len - (size_t)n, " --sabotage %s", sim_sabotage_name(o->sabotage));
	for (unsigned int f = 0; f < SIM_FAULT_COUNT; f++)
		if (o->without >> f & 1) {
			n += snprintf(buf + n, len - (size_t)n, "%s%s", sep, sim_fault_name(f));
			sep = ",";
		}
}
