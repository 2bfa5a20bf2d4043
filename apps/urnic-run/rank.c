/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes and pairs of adapters for the ranks of a parallel program, whose starter runs urnic-run
 * once for each rank. */
#include "urnic-run/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Variables by which starters tell a process its number, the best first: one among the processes of
 * this machine, then one among all. */
static const char *const ranks[] = {
	"OMPI_COMM_WORLD_LOCAL_RANK", /* Open MPI, OpenSHMEM */
	"MPI_LOCALRANKID",	      /* Hydra: MPICH, Intel MPI */
	"MV2_COMM_WORLD_LOCAL_RANK",  /* MVAPICH2 */
	"SLURM_LOCALID",	      /* srun */
	"PMI_LOCAL_RANK",	      /* other starters by their interfaces: PMI */
	"PMIX_LOCAL_RANK",
	"PMI_RANK",
	"PMIX_RANK",
	"SLURM_PROCID",
};

/* The process's number. returns: false: no starter tells one */
static bool
rank_of(unsigned long *rank)
{
	size_t i;

	for (i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
		const char *text = getenv(ranks[i]);
		char *end;

		if (text == NULL || text[0] < '0' || text[0] > '9')
			continue;
		errno = 0;
		*rank = strtoul(text, &end, 10);
		if (errno == 0 && *end == '\0')
			return true;
	}
	return false;
}

bool
run_pick_pair(void)
{
	const char *session = getenv("URNIC_SESSION"), *told = getenv("URNIC_SESSION_INSTANCE");
	unsigned long rank;
	char number[24];

	if (session == NULL || strchr(session, ';') == NULL || (told != NULL && told[0] != '\0') ||
	    !rank_of(&rank))
		return true;
	snprintf(number, sizeof(number), "%lu", rank);
	return run_tell("URNIC_SESSION_INSTANCE", number);
}

bool
run_pick_node(const char *list)
{
	unsigned long rank, n = 1;
	const char *p;
	char *node;
	bool ok;

	if (list == NULL || strchr(list, ',') == NULL)
		return run_tell("URNIC_NODE", list);
	if (list[0] == ',' || strstr(list, ",,") != NULL || list[strlen(list) - 1] == ',') {
		fprintf(stderr, "urnic-run: --node %s: one of the names is empty\n", list);
		return false;
	}
	if (!rank_of(&rank)) {
		fprintf(stderr,
			"urnic-run: --node %s names more than one node, and this process is no "
			"rank of "
			"a parallel program: let mpirun, oshrun or srun start urnic-run\n",
			list);
		return false;
	}
	for (p = list; *p != '\0'; p++)
		n += *p == ',';
	for (p = list, rank %= n; rank > 0; rank--)
		p = strchr(p, ',') + 1;
	node = strndup(p, strcspn(p, ","));
	ok = run_tell("URNIC_NODE", node);
	free(node);
	return ok;
}
