/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection management of an adapter: the state machine of IBTA 12.9 for RC
 * connections and of 12.11 for the look-up of datagram services (doc/reference/cm.md).
 * Pure: messages and time come in as arguments, messages and events go
 * out by calls. The machine reads no clock, knows no port, and allocates nothing after
 * its creation; the caller lets one thread in at a time.
 *
 * An id is a place in a table of fixed size and a count of how often the place was
 * used. Looking an id up costs O(1): by its number, and by a hash of the peer's name for
 * it. Timers are a heap, O(log of running timers); ids that wait for nothing
 * cost nothing.
 */
#ifndef URN_CM_CM_H
#define URN_CM_CM_H

#include "abi/cm.h"
#include "wire/cm.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* State of an id (IBTA 12.9.7, 12.11.1). Sent and received: by this side. */
enum urn_cm_state {
	URN_CM_IDLE,          /* new, over or failed: no connection, no listener */
	URN_CM_LISTEN,
	URN_CM_REQ_SENT,
	URN_CM_REQ_RCVD,      /* the program is to accept or reject it */
	URN_CM_MRA_REQ_SENT,  /* like REQ_RCVD, and this side has told the peer that the answer takes longer */
	URN_CM_MRA_REQ_RCVD,  /* like REQ_SENT, and the peer says that its answer takes longer */
	URN_CM_REP_SENT,
	URN_CM_REP_RCVD,      /* the program is to say that it is ready */
	URN_CM_MRA_REP_SENT,
	URN_CM_MRA_REP_RCVD,
	URN_CM_ESTABLISHED,
	URN_CM_DREQ_SENT,
	URN_CM_DREQ_RCVD,     /* the program is to agree */
	URN_CM_TIMEWAIT,      /* over; late messages are answered */
	URN_CM_SIDR_REQ_SENT,
	URN_CM_SIDR_REQ_RCVD,
	URN_CM_STATES,
};

enum {
	URN_CM_IDS_MAX = 1 << 20,     /* ids of an adapter */
	URN_CM_BACKLOG = 128,         /* requests that a listener keeps, unless told */
	URN_CM_TIMEOUT = 20,          /* code of the wait for a peer's answer, unless told */
	/* Bounds of codes from the wire and from programs: 4.096 us * 2^code. */
	URN_CM_TIMEOUT_MIN = 8,       /* 1 ms */
	URN_CM_TIMEOUT_MAX = 22,      /* 17 s */
	URN_CM_SERVICE_MAX = 24,      /* 69 s: of an MRA; our MRAs ask for this too */
	URN_CM_TIMEWAIT_MIN = 14,     /* 67 ms */
	URN_CM_TIMEWAIT_MAX = 20,     /* 4.3 s */
	URN_CM_TICK = 64,             /* timers that one tick serves */
	URN_CM_SLICE = 64,            /* ids that one call destroys: bounds how long others wait for the lock */
};

/* Wait before a message that could not be sent, or an event that found no room, is tried again, ns. */
#define URN_CM_AGAIN_NS 1000000ull

struct cm_conn;
TAILQ_HEAD(cm_conns, cm_conn);

/* An owner of ids. The caller keeps the struct, initialises it and lets it go. */
struct urn_cm_owner {
	struct cm_conns conns;  /* all its ids */
	uint32_t ids;           /* number of its ids */
	uint32_t half;		/* its ids for requests of peers that are no connections yet */
	uint32_t max_ids;       /* most ids; 0: no more than the table has */
	_Atomic uint64_t *user_ids; /* ids of all owners of its user, on all adapters; NULL: not counted */
	uint64_t max_user_ids;
	bool going;             /* the owner hears no more, and gets no ids */
	void *ctx;              /* the caller's */
};

/* Fate of a message that was to be sent. */
enum urn_cm_sending {
	URN_CM_NO_ROOM, /* not taken: call again later */
	URN_CM_SENDS,
	URN_CM_WAITS,   /* takes the place of a message of its id that waited for a MAC address and was never sent */
};

struct urn_cm_config {
	uint32_t max_ids;       /* places of the table; 0: 32768 */
	uint8_t max_mtu;        /* code 1..5 of the largest path MTU that our port carries; 0: 5 */
	uint64_t ca_guid;       /* GUID of this adapter */
	/* Ids, transaction ids and hashes are drawn by it (base/draw.h). 0: nobody can guess them
	 */
	uint64_t seed;
	/*
	 * Send a MAD of URN_MAD_BYTES from one of our addresses. id: the id that sends; 0:
	 * none. wait: while the MAC address of the peer is not known, keep the MAD, in place
	 * of one of the same id that waits already; without `wait` drop it.
	 */
	enum urn_cm_sending (*send)(void *ctx, uint32_t id, const uint8_t own[16],
				    const uint8_t peer[16], const uint8_t *mad, bool wait);
	/*
	 * Give an event to its owner; channel: the one that the id, or the listener of a request, was
	 * made with. returns: false: no room; then nothing changes, and the event comes again
	 */
	bool (*event)(void *ctx, struct urn_cm_owner *owner, int32_t channel,
		      const struct urn_abi_cm_event *ev);
	/* A message to the peer had no answer, and is repeated: the MAC address may be another's by
	 * now, because the peer's adapter was exchanged. May be NULL */
	void (*doubt)(void *ctx, const uint8_t peer[16]);
	void *ctx;
	/* The peer has answered: the remote queue pair is the owner's from here on. May be NULL */
	void (*stands)(void *stands_ctx, const struct urn_cm_owner *owner, const uint8_t peer[16],
		       uint32_t qpn);
	void *stands_ctx;
};

struct urn_cm;

/* Make a state machine. NULL: no memory, or more ids than URN_CM_IDS_MAX. */
struct urn_cm *urn_cm_create(const struct urn_cm_config *cfg);
/* NULL is allowed. Neither peers nor owners are told. */
void urn_cm_destroy(struct urn_cm *cm);

void urn_cm_owner_init(struct urn_cm_owner *o, uint32_t max_ids, void *ctx);
/* The owner is about to go: from now on it gets no event, no request and no ids. */
void urn_cm_owner_deaf(struct urn_cm_owner *o);
/*
 * The owner goes: its ids are destroyed like by urn_cm_release(), URN_CM_SLICE of them a call.
 * Peers still get their messages. The owner is deaf from the first call on. returns:
 * true when it has more ids
 */
bool urn_cm_owner_goes(struct urn_cm *cm, struct urn_cm_owner *o, uint64_t now);

/*
 * True when a peer may believe in a connection of this queue pair, or packets of one may still
 * be on their way: from the first message to the peer until the end of timewait. Meanwhile
 * no other queue pair gets the number (IBTA 12.9.8.4): otherwise a repeat by the number's former
 * holder would count as the new one's, and end its connection as stale. Also true while a session
 * layer listens at the number's service: its program could answer for the new holder. O(1)
 */
bool urn_cm_holds_qpn(const struct urn_cm *cm, uint32_t qpn);

/* Owner of a connection with a remote queue pair. */
enum urn_cm_claim {
	URN_CM_CLAIM_NONE,  /* no known owner */
	URN_CM_CLAIM_ASKED, /* the peer asked this owner for a connection, and has not answered our reply yet */
	URN_CM_CLAIM_OWN,   /* this owner: the connection stands, from the peer's answer on */
	URN_CM_CLAIM_OTHER, /* another owner, and the connection stands */
};

/* Find out which owner has a connection with queue pair qpn of the peer with that GID. O(1) */
enum urn_cm_claim urn_cm_claimed(const struct urn_cm *cm, const struct urn_cm_owner *o,
				 const uint8_t peer[16], uint32_t qpn);

/* True when one of the owner's ids has this channel. O(1) */
bool urn_cm_uses(const struct urn_cm *cm, const struct urn_cm_owner *o, int32_t channel);
/* Place of an id of the owner's in the table: from 1 to urn_cm_max_ids(); 0: the id is not the owner's. */
uint32_t urn_cm_place(const struct urn_cm *cm, const struct urn_cm_owner *o, uint32_t id);
uint32_t urn_cm_max_ids(const struct urn_cm *cm);
/* The place of any id that there is or was. */
uint32_t urn_cm_place_of(const struct urn_cm *cm, uint32_t id);

/*
 * Calls of owners. now: nanoseconds. Each returns 0 or an errno value:
 *   ENOENT    no such id, or another owner's
 *   ENOTCONN  the id's state does not allow the call
 *   EINVAL    a parameter is out of its range
 *   EDQUOT    the owner, or its user, has as many ids as it may; ENOSPC: the adapter has
 * Lengths of private data are checked; shorter data is filled up with zeroes.
 */

/* Take requests to a service. EADDRINUSE: another id has the service. */
int urn_cm_listen(struct urn_cm *cm, struct urn_cm_owner *o, const struct urn_abi_cm_listen *p,
		  uint32_t *id);
/*
 * Take over a request that waits at a shared listener of another owner. cookie: the listener's,
 * not 0 for an owner of another user. ENOENT: there is no such request, or its peer took it back;
 * ENOTCONN: it was answered
 */
int urn_cm_take(struct urn_cm *cm, struct urn_cm_owner *o, uint32_t id, uint64_t cookie,
		int32_t channel);
/* Ask for a connection, from our address own. */
int urn_cm_connect(struct urn_cm *cm, struct urn_cm_owner *o, const struct urn_abi_cm_connect *p,
		   const uint8_t own[16], uint64_t now, uint32_t *id);
/* Ask for the queue pair that serves datagrams of a service. */
int urn_cm_resolve(struct urn_cm *cm, struct urn_cm_owner *o, const struct urn_abi_cm_connect *p,
		   const uint8_t own[16], uint64_t now, uint32_t *id);
/*
 * REQ_RCVD: reply. SIDR_REQ_RCVD: answer; EINVAL if a session layer names another queue pair than
 * the service does.
 */
int urn_cm_accept(struct urn_cm *cm, struct urn_cm_owner *o, uint32_t id,
		  const struct urn_abi_cm_accept *p, uint64_t now);
/* REQ_RCVD, REP_RCVD, REP_SENT: refuse. */
int urn_cm_reject(struct urn_cm *cm, struct urn_cm_owner *o, uint32_t id,
		  const struct urn_abi_cm_reject *p, uint64_t now);
/* REP_RCVD: tell the peer that we are ready. REP_SENT: the peer's data came before its RTU. */
int urn_cm_establish(struct urn_cm *cm, struct urn_cm_owner *o, uint32_t id,
		     const struct urn_abi_cm_data *p, uint64_t now);
/* ESTABLISHED: ask for the end. DREQ_RCVD: agree to the end. */
int urn_cm_disconnect(struct urn_cm *cm, struct urn_cm_owner *o, uint32_t id,
		      const struct urn_abi_cm_data *p, uint64_t now);
/*
 * The owner is done with an id, in any state: the peer is told (REJ, DREQ,
 * DREP), and no more events of the id come. ENOENT.
 */
int urn_cm_release(struct urn_cm *cm, struct urn_cm_owner *o, uint32_t id, uint64_t now);
/* Let a listener take no more requests; the id stays. Does nothing to other ids. */
void urn_cm_unlisten(struct urn_cm *cm, struct urn_cm_owner *o, uint32_t id);

/*
 * Take a MAD of class 0x07 that queue pair sqpn of peer sent to our address own.
 * returns: the counter that applies
 */
enum urn_counter urn_cm_input(struct urn_cm *cm, const uint8_t peer[16], const uint8_t own[16],
			      uint32_t sqpn, const uint8_t *mad, uint64_t now);
/* Let time pass. returns: timers served, at most URN_CM_TICK; then call again */
unsigned int urn_cm_tick(struct urn_cm *cm, uint64_t now);
/* Time at which the next timer runs out, ns; UINT64_MAX: none runs. */
uint64_t urn_cm_due(const struct urn_cm *cm);

/* Add the counts since the last call to *to. */
void urn_cm_counters(struct urn_cm *cm, struct urn_counters *to);

#endif
