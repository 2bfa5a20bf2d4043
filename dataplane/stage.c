/* SPDX-License-Identifier: BSD-3-Clause */
#include "stage.h"

#include <string.h>

#ifdef URN_STAGES_ON

/* Switches that the measurement of one switch makes. */
#define TRIES 4096u

__thread struct urn_stages urn_stages_self;

/* Cycles that a switch takes, including its TSC read. */
static double
cost_of_switch(void)
{
	struct urn_stages st;
	uint64_t begin = rte_rdtsc();

	memset(&st, 0, sizeof(st));
	for (unsigned int i = 0; i < TRIES; i++)
		urn_stages_switch(&st, (enum urn_stage)(i % URN_STAGE_COUNT), rte_rdtsc());
	return (double)(rte_rdtsc() - begin) / TRIES;
}

bool
urn_stages_get(struct urn_stages *out)
{
	*out = urn_stages_self;
	urn_stages_finish(out, cost_of_switch());
	return true;
}

#else

bool
urn_stages_get(struct urn_stages *out)
{
	memset(out, 0, sizeof(*out));
	return false;
}

#endif
