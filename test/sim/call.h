/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that connect by connection management, and the rules that it must keep.
 *
 * A call is the wish of two programs: to be connected, to exchange messages that the
 * reference model judges, to part, and perhaps once more. Each request of a call is an
 * attempt, whose token is in its private data. Each id that a program has is a line.
 *
 * - A request comes to a listener once, whatever wires do; again only when it was
 *   refused and the refusal forgotten.
 * - The asking program hears its result once: a reply, a refusal, or that nobody
 *   answers; no event comes twice, none after the last.
 * - Private data is whole, and so are queue pair numbers and PSNs.
 * - The reason in an event is a real one. On a good wire nothing times out.
 * - All lines end, on both sides; when programs are done, no id and no timer is left.
 */
#ifndef URN_SIM_CALL_H
#define URN_SIM_CALL_H

#include "host.h"

enum {
	SIM_CALLS = 16,
	SIM_LINES = 512,
	SIM_TOKENS = 512,
	SIM_CALL_PAIRS = 4,      /* pairs of queue pairs that a call uses up at most */
	SIM_CALL_TRIES = 12,
	SIM_LISTENERS = 0x10000, /* service id of the first client's listener */
};

#define SIM_ROGUE_TOKEN 0x80000000u /* token of rogues, whose attempts nobody judges */

/* Make the calls of a run. from, to: nodes, by call */
void sim_calls_open(struct sim *s, const uint8_t *from, const uint8_t *to);
/* Make a client's listeners, and a queue pair for unexpected connections. */
void sim_client_listen(struct sim_client *c, unsigned int index);
/* Run the programs of a node; *due: time of the next run, ns. */
void sim_calls_turn(struct sim_node *n, uint64_t *due);
bool sim_calls_done(const struct sim *s);
/* Destroy the listeners once programs are done. */
void sim_calls_end(struct sim *s);
/* True when no id is left on any adapter. */
bool sim_calls_gone(struct sim *s);
/* A message on a call or line that has not ended; NULL: all have. */
const char *sim_calls_open_line(const struct sim *s);

/* Service of a client's listener, by node and index of the client. */
static inline uint64_t
sim_service(unsigned int node, unsigned int client)
{
	return SIM_LISTENERS + node * SIM_CLIENTS + client;
}

#endif
