/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: share CASE */
#include "share.h"

#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"writers", case_writers}, {"overlap", case_overlap}, {"heap", case_heap},
	{"fork", case_fork},	   {"forks", case_forks},     {"held", case_held},
	{"spawn", case_spawn},	   {"advise", case_advise},   {"remap", case_remap},
	{"unmap", case_unmap},	   {"kinds", case_kinds},     {"blocked", case_blocked},
	{"sigwait", case_sigwait}, {"threads", case_threads}, {"descriptors", case_descriptors},
	{"many", case_many},	   {"bound", case_bound},     {"time", case_time},
	{"clone", case_clone},	   {"rings", case_rings},
};

int
main(int argc, char **argv)
{
	size_t i;

	for (i = 0; argc == 2 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(argv[1], cases[i].name) != 0)
			continue;
		alarm(100);
		pair_open();
		cases[i].run();
		pair_close();
		puts("good");
		return 0;
	}
	fprintf(stderr, "usage: share CASE\n");
	return 2;
}
