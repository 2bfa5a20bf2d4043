/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two connected queue pairs of one program, on two devices, by the system's headers alone: programs
 * of this folder know nothing of urnic, and run on whatever libibverbs.so.1 they find.
 */
#ifndef DROPIN_RIG_H
#define DROPIN_RIG_H

#include "../check.h"

#include <infiniband/verbs.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct end {
	struct ibv_context *c;
	struct ibv_pd *pd;
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	union ibv_gid gid;
};

struct rig {
	struct end a, b;
};

/* Sizes and kind of the queues; 0: 16, 64, RC. */
struct rig_options {
	uint32_t wr, cqe;
	enum ibv_qp_type type;
	struct ibv_srq *srq; /* end b's */
	bool idle;	     /* the queue pairs stay in RESET */
};

/* Open both devices, each with a PD, a completion channel and nothing else. */
void rig_open(struct rig *r);
/* Make queues and connect them. */
void rig_make(struct rig *r, const struct rig_options *o);
/* Make the queues of one end. */
void end_make(struct end *e, const struct rig_options *o, struct ibv_srq *srq);
/* Destroy the queues, and close the devices. */
void rig_unmake(struct rig *r);
void rig_close(struct rig *r);
/* Make a CQ and a queue pair, on srq if there is one, besides those that the end has. */
void end_make(struct end *e, const struct rig_options *o, struct ibv_srq *srq);
/* Connect the queue pairs anew, after an error. */
void rig_connect(struct rig *r);
/* Bring one end's queue pair to a state, up to RTS; the other end is its peer. returns: as
 * ibv_modify_qp() */
int end_move(struct end *e, const struct end *peer, enum ibv_qp_state state);
int end_modify(struct end *e, enum ibv_qp_state state);

/* Register memory with all rights, or end the program. */
struct ibv_mr *reg(struct end *e, void *addr, size_t length);
#define REG_ALL                                                                            \
	((int)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	       IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND))

/* Post one request with one element; remote: address and key of the peer. returns: as
 * ibv_post_send() */
int end_send(struct end *e, enum ibv_wr_opcode op, uint64_t addr, uint32_t length, uint32_t lkey,
	     uint64_t remote, uint32_t rkey);
int end_recv(struct end *e, uint64_t addr, uint32_t length, uint32_t lkey);
/* Wait for a completion. returns: its status */
enum ibv_wc_status end_wait(struct end *e, struct ibv_wc *wc);
/* Wait for an asynchronous event, and acknowledge it. returns: its type */
enum ibv_event_type end_event(struct end *e);

#endif
