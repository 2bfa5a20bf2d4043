/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ids of connection management, as the program knows them: they outlive the primary adapter, whose
 * own ids they stand for. An end of the program has one set of them. The set is pure: it calls no
 * adapter, and its user holds the lock of the end.
 *
 *   connect, resolve ─► ASKED ──► UP ──► ENDS (this side asked, or the peer: TOLD) ──► OVER
 *   REQUEST ─► CAME ─► ANSWERED ──┘
 */
#ifndef URN_VERBS_SESSION_CM_IDS_H
#define URN_VERBS_SESSION_CM_IDS_H

#include "abi/cm.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

enum { URN_SV_CM_BUCKETS = 256 };

enum urn_sv_cm_state {
	URN_SV_CM_LISTENER, /* takes requests */
	URN_SV_CM_ASKED,    /* has asked for a connection, or for a datagram service */
	URN_SV_CM_CAME,	    /* a request that the program has not answered */
	URN_SV_CM_ANSWERED, /* accepted, and the peer has not said that it is ready */
	URN_SV_CM_UP,	    /* a connection */
	URN_SV_CM_ENDS,	    /* the program has asked for its end, and waits for DISCONNECTED */
	URN_SV_CM_TOLD,	    /* the program was told that the peer wants its end */
	URN_SV_CM_OVER,	    /* nothing more comes of it, but TIMEWAIT perhaps */
};

/* An id. The end owns it. */
struct urn_sv_cm_id {
	LIST_ENTRY(urn_sv_cm_id)
	by_front, by_below, by_qpn;	/* in buckets, as far as these are set */
	TAILQ_ENTRY(urn_sv_cm_id) link; /* with events of our own; valid with due */
	uint32_t front;			/* number that the program knows; not 0 */
	uint32_t below;	  /* the adapter's number; 0: the adapter that gave it was lost */
	uint32_t qpn;	  /* the program's queue pair; 0: none yet, or none at all */
	uint32_t tried;	  /* round of objects (rest.c) in which a listener was last tried again */
	uint32_t due;	  /* types of events of our own that wait, bits by enum urn_cm_event_type */
	uint32_t backlog; /* a listener's */
	uint64_t service; /* a listener's */
	uint64_t cookie;  /* the program's; of a request its listener's */
	enum urn_sv_cm_state state;
	bool datagrams; /* a request for a datagram service: nothing comes after its answer */
	bool lives;	/* the connection outlives the adapter; urn_sv_cm_lost() clears it */
};

LIST_HEAD(urn_sv_cm_bucket, urn_sv_cm_id);
TAILQ_HEAD(urn_sv_cm_queue, urn_sv_cm_id);

/* All ids of an end; its lock protects them. */
struct urn_sv_cm_ids {
	struct urn_sv_cm_bucket front[URN_SV_CM_BUCKETS], below[URN_SV_CM_BUCKETS],
		qpn[URN_SV_CM_BUCKETS];
	struct urn_sv_cm_queue due; /* ids with events of our own, oldest first */
	uint32_t next;		    /* number given last */
};

/* Begin with no ids. */
void urn_sv_cm_begin(struct urn_sv_cm_ids *ids);
/* Free all ids. */
void urn_sv_cm_end(struct urn_sv_cm_ids *ids);
/* Make an id for one of the adapter's. returns: NULL with errno and text set: there is no memory */
struct urn_sv_cm_id *urn_sv_cm_make(struct urn_sv_cm_ids *ids, uint32_t below,
				    enum urn_sv_cm_state state);
/* Find an id by the program's number. returns: NULL: there is none */
struct urn_sv_cm_id *urn_sv_cm_find(struct urn_sv_cm_ids *ids, uint32_t front);
/* Take an id away, and free it. */
void urn_sv_cm_drop(struct urn_sv_cm_id *id, struct urn_sv_cm_ids *ids);
/* Set the adapter's number of an id that has none. */
void urn_sv_cm_below(struct urn_sv_cm_ids *ids, struct urn_sv_cm_id *id, uint32_t below);
/* Set the queue pair of an id. */
void urn_sv_cm_of(struct urn_sv_cm_ids *ids, struct urn_sv_cm_id *id, uint32_t qpn);

/* The program accepts a request, of which it may hear before the adapter's call returns. returns:
 * false: the id is no request that waits for an answer */
bool urn_sv_cm_accepts(struct urn_sv_cm_id *id);
/* ... in vain: the request waits for an answer again, unless the adapter was lost. */
void urn_sv_cm_unaccepts(struct urn_sv_cm_id *id);

/*
 * An event of the adapter is to be given to the program: put our numbers in.
 *
 * returns: 0; EAGAIN: the event is of no id, or tells nothing new; ENOMEM with its text: a request
 * for whose id there is no memory, and which the caller is to refuse
 */
int urn_sv_cm_came(struct urn_sv_cm_ids *ids, struct urn_abi_cm_event *ev);
/* The oldest event of our own. returns: false: there is none */
bool urn_sv_cm_own(struct urn_sv_cm_ids *ids, struct urn_abi_cm_event *ev);

/* The program ends a connection whose adapter was lost: nobody can ask the peer. An id that has its
 * number there still is told when the loss is noticed. returns: 0; ENOTCONN with its text: the id
 * is no connection */
int urn_sv_cm_quit(struct urn_sv_cm_ids *ids, struct urn_sv_cm_id *id);
/* The connection of a queue pair has ended without a message of connection management. always: also
 * if the adapter of its id is there */
void urn_sv_cm_ended(struct urn_sv_cm_ids *ids, uint32_t qpn, bool always);
/*
 * The adapter was lost: the ids have no number there any more. Ids that wait for an
 * answer get UNREACHABLE or DISCONNECTED, and connections that do not live on get DISCONNECT.
 * urn_sv_cm_lives() names the others before, with the lock held all the while.
 */
void urn_sv_cm_lost(struct urn_sv_cm_ids *ids);
/* The connection of a queue pair outlives the adapter. */
void urn_sv_cm_lives(struct urn_sv_cm_ids *ids, uint32_t qpn);

#endif
