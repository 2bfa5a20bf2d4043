/* SPDX-License-Identifier: BSD-3-Clause */
/* Command line of urnic-sim. */
#ifndef URN_SIM_OPTIONS_H
#define URN_SIM_OPTIONS_H

#include "seeds.h"
#include "sim.h"

enum { OPTIONS_RUN, OPTIONS_DONE, OPTIONS_WRONG };

struct options {
	struct seeds seeds;
	const struct sim_scenario *sc; /* NULL: all scenarios */
	uint64_t without;              /* bits of enum sim_fault */
	enum sim_recovery recovery;
	enum sim_sabotage sabotage;
	uint32_t jobs; /* processes */
	bool trace, json, keep_going;
	bool list;	     /* print scenarios and more, and end */
	const char *capture; /* file; NULL: none; owner: argv */
};

/*
 * returns: OPTIONS_RUN; OPTIONS_DONE when only a text was asked for and printed;
 * OPTIONS_WRONG with a message on stderr
 */
int options_parse(int argc, char **argv, struct options *o);
/*
 * The command that runs one seed again from the same folder, leaving out the same faults.
 * buf: at least 1,200 bytes
 */
void options_replay(const struct options *o, const char *scenario, uint64_t seed, char *buf,
		    size_t len);

#endif
