/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the cores that the two nodes run on. */
#include "options.h"

#include "common/text.h"

#include <sched.h>
#include <string.h>

/* True when this process may run on a core. */
static bool
core_allowed(uint64_t core)
{
	cpu_set_t set;

	return core < CPU_SETSIZE && sched_getaffinity(0, sizeof(set), &set) == 0 &&
	       CPU_ISSET((int)core, &set);
}

int
perf_cores_take(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct perf_opts *o = to;
	char first[16];
	size_t n = strcspn(arg, ",");
	const char *second = arg[n] == ',' ? arg + n + 1 : NULL;
	uint64_t a, b;

	(void)row;
	if (n < sizeof(first)) {
		memcpy(first, arg, n);
		first[n] = '\0';
		b = 0;
		if (urn_text_parse_uint(first, &a) == 0 &&
		    (second == NULL || urn_text_parse_uint(second, &b) == 0)) {
			if (second == NULL)
				b = a;
			if (core_allowed(a) && core_allowed(b)) {
				o->core[0] = (int)a;
				o->core[1] = (int)b;
				return 0;
			}
			urn_err_set(err, "--lcores %.32s: this process may not run there; see "
					 "taskset -p $$ for the cores it may use", arg);
			return -1;
		}
	}
	urn_err_set(err, "--lcores %.32s: give one core or two, such as 0,1", arg);
	return -1;
}

int
perf_cores_default(struct perf_opts *o, struct urn_err *err)
{
	int found = 0;

	for (int c = 0; c < CPU_SETSIZE && found < 2; c++) {
		if (core_allowed((uint64_t)c))
			o->core[found++] = c;
	}
	if (found == 0) {
		urn_err_set(err, "cannot tell which cores this process may use; give --lcores A,B");
		return -1;
	}
	if (found == 1)
		o->core[1] = o->core[0];
	return 0;
}
