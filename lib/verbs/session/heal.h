/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Healing (FO-19): adapters that were lost come back, and their paths with them.
 *
 *   adapter lost ─► again.c attaches to its socket, for ever ─► anew.c makes the objects
 *   ─► heal.c offers the peer the queue pairs of each path, connects, probes, and trusts them
 */
#ifndef URN_VERBS_SESSION_HEAL_H
#define URN_VERBS_SESSION_HEAL_H

#include "verbs/session/cq.h"
#include "verbs/session/ops.h"

/* ---- memory.c, cq.c, channel.c: one adapter's part of objects */

/* The program's region of a domain's list. */
static inline struct urn_sv_mr *
urn_sv_mr_of(struct urn_sv_region *r)
{
	return (struct urn_sv_mr *)((uint8_t *)r - offsetof(struct urn_sv_mr, region));
}

/* Make a domain on an adapter. returns: 0 or an errno value with its text */
int urn_sv_pd_make(struct urn_sv_pd *pd, struct urn_sv_ctx *ctx, uint32_t adapter);
/* Deallocate that. returns: like urn_sv_pd_make() */
int urn_sv_pd_end(struct urn_sv_pd *pd, uint32_t adapter);
/* True when a domain and all its regions are on an adapter, in constant time; the lock is held. */
bool urn_sv_pd_whole(const struct urn_sv_pd *pd, uint32_t adapter);
/* Register a region on an adapter. returns: like urn_sv_pd_make() */
int urn_sv_mr_below(struct urn_sv_mr *mr, uint32_t adapter);
/* A region, which is in its domain's list, is not on an adapter any more; the lock is held. */
void urn_sv_mr_lost(struct urn_sv_mr *mr, uint32_t adapter);
/*
 * Choose the name of memory in a domain, which is its lkey for the program, and of no other memory
 * of the device; the lock is held.
 *
 * first: its region on the primary adapter; NULL: none
 */
uint32_t urn_sv_name(struct urn_sv_pd *pd, const struct ibv_mr *first);
/* Make a completion queue's queue on an adapter. returns: 0 or an errno value with its text */
int urn_sv_cq_below(struct urn_sv_cq *cq, struct urn_sv_ctx *ctx, uint32_t adapter);
/* Make a channel's channel of an adapter; the lock is held. returns: like urn_sv_cq_below() */
int urn_sv_channel_below(struct urn_sv_channel *ch, struct urn_sv_ctx *ctx, uint32_t adapter);
/* Take that away, to be destroyed later; the lock is held. returns: NULL: there is none */
struct ibv_comp_channel *urn_sv_channel_take(struct urn_sv_channel *ch, struct urn_sv_ctx *ctx,
					     uint32_t adapter);
/* Destroy that; the lock is held. */
void urn_sv_channel_end(struct urn_sv_channel *ch, struct urn_sv_ctx *ctx, uint32_t adapter);

/*
 * Translate the elements of a request that goes to the primary adapter as it is, after that came
 * back.
 *
 * to: URN_SV_SGES + 1 elements
 * returns: the elements to post
 */
struct ibv_sge *urn_sv_translated(const struct urn_sv_pd *pd, struct ibv_sge *to,
				  struct ibv_sge *from, int n);

/* ---- qp.c, paths.c, room.c, connect.c, control.c: parts of paths; the lock is held */

/* True when an adapter has all that a queue pair that may have a session needs there: its domain
 * with each region, its completion queues, its memory. */
bool urn_sv_ready(const struct urn_sv_qp *q, uint32_t adapter);
/* Make the queue pair of a path for the program's traffic. attr: as for the adapter. returns: 0 or
 * an errno value with its text; EIO: the adapter is away, or lacks something of the program */
int urn_sv_real_make(struct urn_sv_qp *q, struct urn_sv_path *p,
		     const struct ibv_qp_init_attr_ex *attr);
/* The queue pair of a path's traffic is gone: its shared receive queue has one less. */
void urn_sv_shared_leave(struct urn_sv_path *p);
/* Make the queue pair of a path, which has none, for the program's traffic. returns: 0 or an errno
 * value with its text */
int urn_sv_real_anew(struct urn_sv_path *p);
/* Make the control queue pair of a path, which has none. returns: like urn_sv_real_anew() */
int urn_sv_ctl_make(struct urn_sv_qp *q, struct urn_sv_path *p);
/* Make the rings and the memory of a queue pair. returns: like urn_sv_real_anew() */
int urn_sv_rings(struct urn_sv_qp *q);
/* Free them, as far as they were made. */
void urn_sv_rings_free(struct urn_sv_qp *q);
/* Register the memory of a queue pair on an adapter. returns: like urn_sv_real_anew() */
int urn_sv_room_below(struct urn_sv_qp *q, uint32_t adapter);
/* Draw the first PSNs of a path. */
void urn_sv_path_psns(struct urn_sv_path *p);
/* returns: EIO with its text: a queue pair's number was the primary adapter's, which was lost */
int urn_sv_gone(const struct urn_sv_qp *q);
/* Change a path's queue pairs to INIT. returns: 0 or an errno value with its text */
int urn_sv_path_init(struct urn_sv_path *p);
/* Destroy a path's control queue pair; real: and that of the program's traffic. */
void urn_sv_path_end(struct urn_sv_path *p, bool real);
/* Connect a path's queue pair, up to RTR. returns: 0 or an errno value with its text */
int urn_sv_path_rtr(struct urn_sv_qp *q, const struct urn_sv_path *p, const struct urn_sv_ends *to);
/* Connect a control path, up to RTS. returns: like urn_sv_path_rtr() */
int urn_sv_ctl_connect(struct urn_sv_qp *q, struct urn_sv_path *p, const struct urn_sv_ends *to);
/* Read something of the peer's over a control path, to see that the path carries it. returns:
 * false: it can't be posted */
bool urn_sv_control_probe(struct urn_sv_path *p);

/* ---- control.c */

/* Post all receives of a control path. returns: 0 or an errno value */
int urn_sv_control_open(struct urn_sv_path *p);
/* Send a message over all paths alive. */
void urn_sv_control_send(struct urn_sv_qp *q, const void *bytes, uint32_t length);
/* Read the peer's table of keys over a control path. returns: false: it can't */
bool urn_sv_control_keys(struct urn_sv_path *p);
/* Take the completions of an adapter's control paths; the lock is held. */
void urn_sv_control_poll(struct urn_sv_ctx *ctx, uint32_t adapter);
/* Tell the peer that the queue pair goes, and wait until the peer knows. */
void urn_sv_leave(struct urn_sv_qp *q);

/* ---- thread.c, context.c, query.c */

/* Milliseconds of the monotonic clock. */
uint64_t urn_sv_now_ms(void);
/* Time between turns of the thread, ms: the program gets the lock. */
enum { URN_SV_TURN_MS = 1 };
/* Make what the thread needs of an adapter. returns: 0 or an errno value with its text */
int urn_sv_thread_make(struct urn_sv_ctx *ctx, uint32_t adapter);
/* Destroy that. */
void urn_sv_thread_unmake(struct urn_sv_ctx *ctx, uint32_t adapter);

/* The device's own things of an adapter; the owner is whoever has the struct. */
struct urn_sv_part {
	struct ibv_context *c;		  /* NULL: not taken */
	struct ibv_comp_channel *channel; /* for control paths; NULL: none */
	struct ibv_cq *cq;		  /* for control paths; NULL: none */
	struct urn_cm_end *cm;		  /* NULL: none, as on a backup */
};

/* Take that away from the device, but for the context, to be destroyed later; the lock is held. */
struct urn_sv_part urn_sv_thread_take(struct urn_sv_ctx *ctx, uint32_t adapter);
/* Destroy what was taken, and close the context. */
void urn_sv_part_close(const struct urn_sv_part *part);
/* Open an adapter. returns: NULL with errno and text set */
struct ibv_context *urn_sv_open_below(const struct urn_sv_place *p, uint32_t silence);
/* Choose the address of an adapter's paths; the same as before if the adapter has it still, in
 * whatever place of its table. returns: 0 or an errno value with its text */
int urn_sv_choose(struct urn_sv_ctx *ctx, uint32_t adapter);

/* ---- again.c */

/*
 * A thread that attaches to one adapter again, and outlives the device: an attempt may wait for a
 * dataplane that does not answer.
 */
struct urn_sv_again;

/* Let an adapter be attached to again; the thread of the context is woken when it is. */
void urn_sv_again_want(struct urn_sv_ctx *ctx, uint32_t adapter);
/* The adapter that was taken can be used: the next loss is followed by an attempt without a pause.
 */
void urn_sv_again_well(struct urn_sv_ctx *ctx, uint32_t adapter);
/* True when the adapter came back, and was not taken. */
bool urn_sv_again_there(struct urn_sv_ctx *ctx, uint32_t adapter);
/* Take the adapter that came back. returns: NULL: it has not */
struct ibv_context *urn_sv_again_take(struct urn_sv_ctx *ctx, uint32_t adapter);
/* The adapter that was taken can't be used: its thread closes it, before the next attempt. A living
 * adapter takes its time for each call. The lock of the context is held. */
void urn_sv_again_reject(struct urn_sv_ctx *ctx, uint32_t adapter, const struct urn_sv_part *part);
/* End the attempts, without waiting for the one in progress. */
void urn_sv_again_end(struct urn_sv_ctx *ctx);

/* ---- wreck.c */

/* Objects of the program that are the primary adapter's alone, in one life of that. */
struct urn_sv_life;

/* Begin a life. returns: NULL with its text: there is no memory */
struct urn_sv_life *urn_sv_life_begin(void);
/* An object begins, in the life that the adapter has now; the lock is not held. */
struct urn_sv_life *urn_sv_life_use(struct urn_sv_ctx *ctx);
/* The same with the lock held. */
struct urn_sv_life *urn_sv_life_more(struct urn_sv_ctx *ctx);
/* That object ends; or the device, or wreck, of the life. */
void urn_sv_life_leave(struct urn_sv_life *life);

/* An adapter that was lost, kept for the objects that are its alone. */
struct urn_sv_wreck;

/* True when the program has objects that are a lost adapter's alone; the lock is held, as below. */
bool urn_sv_needed(const struct urn_sv_ctx *ctx, uint32_t adapter);
/* Keep a lost adapter as a wreck, with its queues. returns: 0 or ENOMEM */
int urn_sv_wreck_make(struct urn_sv_ctx *ctx, uint32_t adapter);
/* Close the wrecks whose objects are gone; for the thread. now: ms. returns: ms: when to call
 * again; UINT64_MAX: there are no wrecks */
uint64_t urn_sv_wrecks_tick(struct urn_sv_ctx *ctx, uint64_t now);
/* True when the primary adapter can't be replaced, because there are too many wrecks already. */
bool urn_sv_crowded(struct urn_sv_ctx *ctx);
/* Close all wrecks, when the device is closed. */
void urn_sv_wrecks_close(struct urn_sv_ctx *ctx);

/* ---- anew.c, rest.c */

/*
 * Make the objects of adapters that came back, and later those that could not be made then; for
 * the thread, with the lock.
 *
 * now: ms
 * returns: ms: when to call again at the latest; UINT64_MAX: no need to
 */
uint64_t urn_sv_anew(struct urn_sv_ctx *ctx, uint64_t now);
/*
 * For an object that is not on an adapter: true when it is to be tried in this turn, and counts as
 * tried then.
 *
 * tried: the round of its last try
 */
bool urn_sv_rest_due(struct urn_sv_ctx *ctx, uint32_t adapter, uint32_t *tried);
/*
 * Note how a try ended: an object that can't be made is left out for now.
 *
 * err: 0 or an errno value with its text
 * returns: EIO: the adapter is likely to be lost again, the turn ends; 0
 */
int urn_sv_rest_left_out(struct urn_sv_ctx *ctx, uint32_t adapter, const char *what, uint32_t name,
			 int err);
/* The adapter came back: all objects of the program are to be made there. */
void urn_sv_rest_begin(struct urn_sv_ctx *ctx, uint32_t adapter);
/* For an object of the primary adapter alone, in a call of the program. returns: EIO with its text:
 * regions of the program are still to be tried there; 0 */
int urn_sv_rest_early(const struct urn_sv_ctx *ctx);
/*
 * Make some of them, if that is due.
 *
 * now: ms
 * wait: set when calls that make or end objects must end first, or begin later
 * returns: ms: when to call again; UINT64_MAX: no need to, or a call is waited for
 */
uint64_t urn_sv_rest_tick(struct urn_sv_ctx *ctx, uint32_t adapter, uint64_t now, bool *wait);

/* ---- cm_life.c; the lock is held */

/* The primary adapter was lost: ids have no part there any more. */
void urn_sv_ends_lost(struct urn_sv_ctx *ctx);
/* Close the ends of a lost primary adapter. */
void urn_sv_ends_strip(struct urn_sv_ctx *ctx);
/* Make ends and listeners on the primary adapter, as far as they are due. returns: 0; EIO: like
 * urn_sv_rest_left_out() */
int urn_sv_ends_anew(struct urn_sv_ctx *ctx);
/* The connection of a queue pair has ended, and not by the program's will. */
void urn_sv_ends_over(struct urn_sv_qp *q);
/* The device is closed, before ends of it are. */
void urn_sv_ends_closed(struct urn_sv_ctx *ctx);
/* In a child of fork(): nobody holds a lock of an end. */
void urn_sv_ends_forked(struct urn_sv_ctx *ctx);

/* ---- link.c; the lock is held */

/* True when the link of an adapter's port is up, or nobody knows. The adapter is asked: a program
 * that attaches is told of changes alone. */
bool urn_sv_link_up(const struct urn_sv_ctx *ctx, uint32_t adapter);
/* The port of an adapter went down, or up: connections leave the adapter, or may come back. */
void urn_sv_link(struct urn_sv_ctx *ctx, uint32_t adapter, bool up);
/* The connection has begun, or another path is trusted: leave the paths whose link is down. */
void urn_sv_link_leave(struct urn_sv_qp *q);

/* ---- heal.c; the lock is held */

/* The connection begins: all paths are as the look-up says. */
void urn_sv_heal_begin(struct urn_sv_qp *q);
/* Offers and probes that are due. now: ms. returns: ms: when the next one is due, UINT64_MAX: none
 */
uint64_t urn_sv_heal_tick(struct urn_sv_ctx *ctx, uint64_t now);
/* The peer told of its end of a path. */
void urn_sv_heal_heard(struct urn_sv_qp *q, const struct urn_sess_offer *o);
/* A path is not alive any more: tell the peer, which may not notice by itself. */
void urn_sv_heal_lost(struct urn_sv_path *p);
/* The peer told in a REPORT which paths are alive for it. paths: bits by path */
void urn_sv_heal_reported(struct urn_sv_qp *q, uint32_t paths);
/* A probe was carried. */
void urn_sv_heal_carried(struct urn_sv_path *p);
/* Remember attributes that a connected queue pair got, for paths that are made anew. */
void urn_sv_heal_keep(struct urn_sv_qp *q, const struct ibv_qp_attr *attr, int mask);

#endif
