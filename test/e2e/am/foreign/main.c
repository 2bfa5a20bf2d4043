/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: am-foreign CASE, with URNIC_SOCKET in the environment */
#include "foreign.h"

#include <unistd.h>

static const struct {
	const char *name;
	void (*run)(void);
	bool wakes; /* the endpoints may have threads */
} cases[] = {
	{"ways", case_ways, false},	  {"requests", case_requests, false},
	{"bad", case_bad, false},	  {"overlap", case_overlap, false},
	{"again", case_again, false},	  {"free", case_free, false},
	{"remap", case_remap, false},	  {"left", case_left, false},
	{"fork", case_fork, false},	  {"forks", case_forks, false},
	{"writers", case_writers, false}, {"helper", case_helper, true},
	{"dead", case_dead, false},	  {"plain", case_plain, false},
	{"bound", case_bound, false},
};

int
main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(argv[1], cases[i].name) != 0)
			continue;
		alarm(250);
		ends_open(cases[i].wakes);
		cases[i].run();
		ends_close();
		puts("good");
		return 0;
	}
	fprintf(stderr, "usage: am-foreign CASE\n");
	return 2;
}
