/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote memory access (AM-2 to AM-11; lib/abi/am.h, doc/inside/active-messages.md): endpoints of
 * one adapter on one engine. An endpoint is a source of work. The commands of an endpoint become
 * messages of flows; messages that come for an endpoint are carried out here, on the engine's
 * lcore, without the target's program.
 *
 *   ep.c         endpoints come and go; slots and generations; the endpoint as a source
 *   space.c      regions, and the check of a packet: key, rights, ranges
 *   out.c        packets that this engine sends: a pool
 *   initiator.c  command ─► packets ─► replies ─► event
 *   target.c     packet ─► check ─► copy ─► reply
 *   cancel.c     targets that are told that an operation was given up
 *   atomic.c     atomic operations, on both sides
 *   tell.c       events of ARM INTR
 *   tagged.h     transfers with a tag: RMA queue and RMA progress module
 *   route.c      flows ─► register sets or endpoints
 *
 * The client's lines are never trusted: a command is copied once and then checked. All calls in the
 * engine's thread, unless they say otherwise. An idle endpoint is in no list.
 */
#ifndef URN_AM_AM_H
#define URN_AM_AM_H

#include "abi/am.h"
#include "abi/control.h"
#include "transport/flow.h"
#include "transport/source.h"

struct urn_am;
struct urn_am_ep;

/* The user of flows: messages to endpoints go to them, all others to register sets (msg/msg.h). */
extern const struct urn_flow_user urn_am_flow_user;
/* The operations of endpoints as sources. */
extern const struct urn_source_ops urn_am_ep_ops;

/*
 * Make the endpoints of an adapter on an engine, none yet.
 *
 * engine: its index; seed: random, different at each start of the dataplane; unregistered:
 * endpoints may declare memory that peers reach without a key
 *
 * returns: NULL: no memory
 */
struct urn_am *urn_am_create(unsigned int engine, uint64_t seed, bool unregistered);
enum {
	URN_AM_TAGGED_FROM = 262144, /* bytes from which AUTO is tagged, unless set otherwise:
					tagged is as fast from here on as a stream
					(doc/inside/performance.md) */
};
/*
 * Set the bytes from which the way AUTO is tagged (AM-8), 0: URN_AM_TAGGED_FROM, and those from
 * which it is pipelined, 0: more than one packet holds. AUTO is direct below both, if one packet
 * holds all bytes. Endpoints may have their own.
 */
void urn_am_tagged_from(struct urn_am *am, uint64_t bytes);
void urn_am_pipelined_from(struct urn_am *am, uint64_t bytes);
/* All endpoints have ended, and the transport is gone. NULL is taken */
void urn_am_destroy(struct urn_am *am);
/* Endpoints that there are now. In any thread */
uint32_t urn_am_count(const struct urn_am *am);

/* Bytes of memory that one packet moves, at most (AM-4). */
uint32_t urn_am_chunk(const struct urn_tp *tp);

/* Properties of an endpoint that control decides before the endpoint is made. */
struct urn_am_config {
	struct urn_tp_share *share; /* share of the client on this engine; never NULL */
	struct urn_abi_am_ep *regs; /* in the client's area, urn_am_ep_bytes() long, all zero */
	uint32_t db;		    /* doorbell id, taken */
	uint32_t entries;	    /* slots of a ring; a power of two up to URN_AM_ENTRIES_MAX */
	uint32_t ranges;	    /* room for ranges, up to URN_AM_RANGES_MAX */
	uint32_t pd;	  /* protection domain of the client, which outlives the endpoint */
	int channel_fd;	  /* events are written there; -1: none */
	uint32_t channel; /* control's: handle of a remote client's channel; 0: none */
	uint64_t cookie;  /* the client's, for events */
	uint32_t pipelined_from, tagged_from; /* bytes from which AUTO is pipelined, and tagged; 0:
						 those of all endpoints */
};

/* Make an endpoint. returns: 0; ENOSPC: no slot is left; ENOMEM. ep: valid on success */
int urn_am_ep_open(struct urn_am *am, const struct urn_am_config *cfg, struct urn_am_ep **ep);
/* End an endpoint, with its operations and regions; struct urn_source_ops.end. returns: true,
 * always */
bool urn_am_ep_end(struct urn_tp *tp, struct urn_source *src);

/* A view of an endpoint, for control and reports. */
struct urn_am_view {
	uint64_t qid;		    /* number of the endpoint */
	struct urn_tp_share *share; /* share of the client */
	struct urn_abi_am_ep *regs; /* in the client's area */
	uint32_t entries, ranges;   /* like those of struct urn_am_config */
	uint32_t pd;		    /* protection domain */
	uint32_t slot;
	uint64_t commands;     /* commands taken */
	uint64_t done, failed; /* operations that ended: without an error, with one */
	uint32_t waiting;      /* commands that were not taken yet, by the client's word */
	uint32_t unread;       /* events that the client has not read yet, by its word */
	uint32_t under;	       /* operations under way */
	uint32_t packets;      /* packets of these: made, and not finished */
	uint32_t regions;      /* regions, the memory without a key included */
	uint32_t ranges_used;  /* ranges of all of them */
	bool space;	       /* peers reach memory without a key */
	uint8_t code; /* enum urn_am_code of the last error, perhaps with URN_AM_MAY_BE_THERE; 0:
			 none yet */
	uint8_t refused_code; /* enum urn_am_code of the last refusal; 0: none yet */
	uint64_t refused;     /* operations of peers, or packets of them, that were refused */
	uint32_t channel;     /* like that of struct urn_am_config */
};

/* The endpoint in a slot; slot: any number; NULL: none. In any thread that keeps endpoints from
 * coming and going */
struct urn_am_ep *urn_am_ep_at(const struct urn_am *am, uint32_t slot);
/* One more than the highest slot that ever had an endpoint; in any thread, as urn_am_ep_at(). */
uint32_t urn_am_slots(const struct urn_am *am);
/* Look at an endpoint; in any thread, as urn_am_ep_at(). */
void urn_am_ep_look(const struct urn_am *am, const struct urn_am_ep *ep, struct urn_am_view *v);
/* The endpoint of a source with urn_am_ep_ops. */
struct urn_am_ep *urn_am_ep_of(struct urn_source *src);
/* The source of an endpoint. */
struct urn_source *urn_am_ep_source(struct urn_am_ep *ep);

/* ---- events of ARM INTR (tell.c) */

/* Write an event to a channel without blocking. returns: true: done, or nobody will ever read
 * there; false: no room */
typedef bool urn_am_tell_fn(void *ctx, int fd, const struct urn_abi_event *ev);

/* returns: where the number of endpoints stands that are to be looked at, for a look each turn;
 * valid as long as am */
const uint32_t *urn_am_untold_at(const struct urn_am *am);
/*
 * Look at endpoints whose operations ended since the last call, and try again those whose event
 * found no room at least 1 ms ago, a few of them. now: ns, of the turn
 */
void urn_am_tell(struct urn_am *am, uint64_t now, urn_am_tell_fn *tell, void *ctx);

/* ---- regions */

/* A region to be made. */
struct urn_am_region_config {
	uint32_t access; /* enum urn_am_access */
	bool space;	 /* the memory that peers reach without a key */
	uint32_t n;	 /* ranges in the endpoint's list, at least 1 */
	uint64_t random; /* a number that nobody can foresee: the key is made of it */
	uint64_t key;	 /* out: the access key; 0 for the space */
	uint32_t bad;	 /* out: index of the range that was refused; valid with EINVAL, EFAULT and
			    EOPNOTSUPP */
};

/*
 * Make a region of the first n ranges of the endpoint's list, which is read once.
 *
 * returns: 0; EINVAL: a range is empty, wraps around, or is not behind the one before; EFAULT: a
 * range is not memory of its lkey, or that may not be written; EOPNOTSUPP: that memory is foreign
 * (memory/foreign.h); EPERM: the node allows no memory without a key; EEXIST: there is one; ENOSPC:
 * too many regions or ranges; ENOMEM
 */
int urn_am_region_add(struct urn_tp *tp, struct urn_am_ep *ep, struct urn_am_region_config *c);
/* Take a region away; key: 0: the space. No packet reaches it from here on. returns: 0; ENOENT: no
 * such region */
int urn_am_region_remove(struct urn_am_ep *ep, uint64_t key);

#endif
