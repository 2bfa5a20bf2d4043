/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions of the rogues (rogue.c explains what a rogue is): each function
 * does one thing that a rogue may do in a turn.
 */
#ifndef URN_SIM_ROGUE_H
#define URN_SIM_ROGUE_H

#include "call.h"

static inline uint32_t
sim_rogue_u32(struct sim_rogue *r)
{
	return (uint32_t)sim_rng_next(&r->rng);
}

static inline int
sim_rogue_call(struct sim_rogue *r, struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	return sim_client_call(&r->client, req, rep, NULL);
}

/* ---- rogue.c */

void sim_rogue_make_cq(struct sim_rogue *r, unsigned int i);
void sim_rogue_make_region(struct sim_rogue *r);

/* ---- rogue_post.c */

void sim_rogue_make_qp(struct sim_rogue *r);
void sim_rogue_drop_qp(struct sim_rogue *r);
/* Connect a QP; both ends when another QP is not connected: then their messages arrive. */
void sim_rogue_connect_qp(struct sim_node *n, struct sim_rogue *r);
/* Make an address handle. */
void sim_rogue_make_handle(struct sim_node *n, struct sim_rogue *r);
void sim_rogue_post(struct sim_node *n, struct sim_rogue *r);

/* ---- rogue_mischief.c */

/* Write random bytes over memory shared with the dataplane: doorbells, queues, completions, all. */
void sim_rogue_scribble(struct sim_node *n, struct sim_rogue *r);
/* Ring all doorbells. */
void sim_rogue_flood(struct sim_node *n, struct sim_rogue *r);
/* Ask for more than the quota, and for nonsense. */
void sim_rogue_be_greedy(struct sim_node *n, struct sim_rogue *r);

/* ---- rogue_cm.c */

/* Ask for a connection, listen for one, or answer a request. */
void sim_rogue_be_sociable(struct sim_node *n, struct sim_rogue *r);

#endif
