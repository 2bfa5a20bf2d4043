/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include "common/text.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>

static const char help[] =
	"usage: urnic-sim [option...]\n"
	"\n"
	"Simulates clusters: nodes, switches and wires in one thread under a virtual\n"
	"clock, all chance from a seed. After each run everything is checked: memory to\n"
	"the byte, every completion, and that nothing is left.\n"
	"\n"
	"  --seeds A..B      seeds to run, or one (1..100)\n"
	"  --scenario NAME   what to run, or all (small); --list has the names\n"
	"  --without F,F...  faults to leave out, by name; all else stays as it is\n"
	"  --recovery R      gbn, selective or mixed: how lost packets are repeated\n"
	"                    where both adapters can choose (mixed)\n"
	"  --sabotage NAME   break something on purpose: every run must fail. For tests\n"
	"  --trace           print all that happens\n"
	"  --capture FILE    write what nodes send as pcap, as it was before any wire; times\n"
	"                    are of the virtual clock, which starts anew with each run\n"
	"  --keep-going      go on after ten seeds have failed\n"
	"  --jobs N          processes that share the seeds, 1..64 (1)\n"
	"  --json            print figures as JSON\n"
	"  --list            print scenarios, faults and sabotages\n"
	"  --help            print this\n"
	"  --version         print the version\n"
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
parse_seeds(const char *arg, struct options *o)
{
	char buf[48];
	char *dots;

	snprintf(buf, sizeof(buf), "%s", arg);
	dots = strstr(buf, "..");
	if (dots)
		*dots = '\0';
	if (strlen(arg) >= sizeof(buf) || urn_text_parse_uint(buf, &o->first) != 0 ||
	    urn_text_parse_uint(dots ? dots + 2 : buf, &o->last) != 0 || o->last < o->first ||
	    o->last == UINT64_MAX)
		return wrong("--seeds %s: seeds are a number, or two and '..' between them", arg);
	return OPTIONS_RUN;
}

static int
parse_without(const char *arg, struct options *o)
{
	char buf[512], *save = NULL;

	if (strlen(arg) >= sizeof(buf))
		return wrong("--without: that is too long");
	snprintf(buf, sizeof(buf), "%s", arg);
	for (char *name = strtok_r(buf, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		unsigned int f = 0;

		while (f < SIM_FAULT_COUNT && strcmp(name, sim_fault_name(f)) != 0)
			f++;
		if (f == SIM_FAULT_COUNT)
			return wrong("--without: there is no fault '%s'; --list has them", name);
		o->without |= UINT64_C(1) << f;
	}
	return OPTIONS_RUN;
}

static int
parse_recovery(const char *arg, struct options *o)
{
	for (unsigned int r = 0; sim_recovery_name(r); r++)
		if (strcmp(arg, sim_recovery_name(r)) == 0) {
			o->recovery = r;
			return OPTIONS_RUN;
		}
	return wrong("--recovery %s: gbn, selective or mixed", arg);
}

static int
parse_sabotage(const char *arg, struct options *o)
{
	for (unsigned int i = 1; sim_sabotage_name(i); i++)
		if (strcmp(arg, sim_sabotage_name(i)) == 0) {
			o->sabotage = i;
			return OPTIONS_RUN;
		}
	return wrong("--sabotage %s: there is no such thing to break; --list has them", arg);
}

static int
parse_scenario(const char *arg, struct options *o)
{
	o->sc = sim_scenario_find(arg);
	if (!o->sc && strcmp(arg, "all") != 0)
		return wrong("there is no scenario '%s'; --list has them", arg);
	return OPTIONS_RUN;
}

static int
parse_jobs(const char *arg, struct options *o)
{
	uint64_t n;

	if (urn_text_parse_uint(arg, &n) != 0 || n < 1 || n > 64)
		return wrong("--jobs %s: 1 to 64", arg);
	o->jobs = (unsigned int)n;
	return OPTIONS_RUN;
}

static int
parse_one(int c, struct options *o)
{
	switch (c) {
	case 's':
		return parse_seeds(optarg, o);
	case 'c':
		return parse_scenario(optarg, o);
	case 'w':
		return parse_without(optarg, o);
	case 'r':
		return parse_recovery(optarg, o);
	case 'b':
		return parse_sabotage(optarg, o);
	case 'j':
		return parse_jobs(optarg, o);
	case 'C':
		o->capture = optarg;
		return OPTIONS_RUN;
	case 't':
		o->trace = true;
		return OPTIONS_RUN;
	case 'k':
		o->keep_going = true;
		return OPTIONS_RUN;
	case 'J':
		o->json = true;
		return OPTIONS_RUN;
	case 'l':
		print_list();
		return OPTIONS_DONE;
	case 'h':
		fputs(help, stdout);
		return OPTIONS_DONE;
	case 'V':
		puts("urnic-sim " URN_VERSION);
		return OPTIONS_DONE;
	default:
		fputs("urnic-sim: see --help\n", stderr);
		return OPTIONS_WRONG;
	}
}

int
options_parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{"seeds", required_argument, NULL, 's'},
		{"scenario", required_argument, NULL, 'c'},
		{"without", required_argument, NULL, 'w'},
		{"recovery", required_argument, NULL, 'r'},
		{"sabotage", required_argument, NULL, 'b'},
		{"capture", required_argument, NULL, 'C'},
		{"jobs", required_argument, NULL, 'j'},
		{"trace", no_argument, NULL, 't'},
		{"keep-going", no_argument, NULL, 'k'},
		{"json", no_argument, NULL, 'J'},
		{"list", no_argument, NULL, 'l'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	int c, rc;

	*o = (struct options){.first = 1, .last = 100, .sc = sim_scenario_find("small"),
			      .recovery = SIM_MIXED, .jobs = 1};
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		rc = parse_one(c, o);
		if (rc != OPTIONS_RUN)
			return rc;
	}
	if (optind < argc)
		return wrong("'%s' is not an option", argv[optind]);
	if (o->trace && (o->json || o->jobs > 1))
		return wrong("--trace goes with neither --json nor --jobs");
	if (o->capture && !*o->capture)
		return wrong("--capture: the name of the file is empty");
	if (o->capture && o->jobs > 1)
		return wrong("--capture does not go with --jobs");
	return OPTIONS_RUN;
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
