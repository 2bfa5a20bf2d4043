/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults on demand (doc/reference/faults.md): checked here, and carried to the library by the
 * environment. */
#include "urnic-run/run.h"
#include "verbs/fault/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
run_fault(char **list, const char *fault)
{
	struct urn_fault_spec spec[URN_FAULT_MAX];
	struct urn_fault_error error;
	char *all;
	uint32_t n;

	if (fault[0] == '\0') {
		fputs("urnic-run: --fault '' names no fault\n", stderr);
		return false;
	}
	if (urn_fault_parse(fault, spec, &n, &error) != 0) {
		fprintf(stderr, "urnic-run: fault '%s', at character %u: %s\n", fault, error.at,
			error.why);
		return false;
	}
	if (asprintf(&all, "%s%s%s", *list != NULL ? *list : "", *list != NULL ? ";" : "", fault) <
	    0) {
		fputs("urnic-run: no memory for faults\n", stderr);
		return false;
	}
	free(*list);
	*list = all;
	if (urn_fault_parse(all, spec, &n, &error) == 0)
		return true;
	fprintf(stderr, "urnic-run: --fault: %s\n", error.why); /* too many */
	return false;
}

bool
run_seed(const char *seed)
{
	uint64_t value;

	if (urn_fault_seed(seed, &value) == 0)
		return true;
	fprintf(stderr, "urnic-run: --seed '%s' is no number\n", seed);
	return false;
}

bool
run_fault_variable(char **list)
{
	const char *told = getenv(URN_FAULT_ENV);
	bool ok;

	if (told == NULL || told[0] == '\0')
		return true;
	ok = run_fault(list, told);
	(void)unsetenv(URN_FAULT_ENV);
	return ok;
}

bool
run_faults(const char *list, const char *seed)
{
	struct urn_fault_spec spec[URN_FAULT_MAX];
	struct urn_fault_error error;
	uint32_t n;

	if (list == NULL)
		return true;
	if (urn_fault_parse(list, spec, &n, &error) != 0) {
		fprintf(stderr, "urnic-run: --fault: %s\n", error.why); /* too many */
		return false;
	}
	return run_tell(URN_FAULT_ENV, list) && run_tell(URN_FAULT_SEED_ENV, seed);
}
