/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection management of an adapter: the state machine of IBTA 12.9 for RC
 * connections and of 12.11 for the look-up of datagram services, as doc/cm.md
 * says. Pure: messages and time come in as arguments, messages and events go
 * out by calls. It reads no clock, knows no port, and allocates nothing after
 * it was made; whoever calls it sees to it that one thread does at a time.
 *
 * An id is a place in a table of fixed size and a count of how often that was
 * used. Looking one up costs O(1): by its number, and by hash what the peer calls
 * it. Timers are a heap, O(log of those that run); ids that wait for nothing
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
	URN_CM_IDLE,          /* nothing; it was, or could not be, something */
	URN_CM_LISTEN,
	URN_CM_REQ_SENT,
	URN_CM_REQ_RCVD,      /* the program is to accept or reject it */
	URN_CM_MRA_REQ_SENT,  /* the same, and the peer knows that it takes longer */
	URN_CM_MRA_REQ_RCVD,  /* as REQ_SENT, and the peer says that it takes longer */
	URN_CM_REP_SENT,
	URN_CM_REP_RCVD,      /* the program is to say that it is ready */
	URN_CM_MRA_REP_SENT,
	URN_CM_MRA_REP_RCVD,
	URN_CM_ESTABLISHED,
	URN_CM_DREQ_SENT,
	URN_CM_DREQ_RCVD,     /* the program is to agree */
	URN_CM_TIMEWAIT,      /* over; what comes late is answered */
	URN_CM_SIDR_REQ_SENT,
	URN_CM_SIDR_REQ_RCVD,
	URN_CM_STATES,
};

/* Name of a state, for people. */
const char *urn_cm_state_name(unsigned int state);

enum {
	URN_CM_IDS_MAX = 1 << 20,     /* ids of an adapter */
	URN_CM_BACKLOG = 128,         /* requests a listener keeps, if it does not say */
	URN_CM_TIMEOUT = 20,          /* code of the patience with a peer, if nobody says */
	/* Codes from the wire and from programs are brought into these. */
	URN_CM_TIMEOUT_MIN = 8,       /* 1 ms */
	URN_CM_TIMEOUT_MAX = 22,      /* 17 s */
	URN_CM_SERVICE_MAX = 24,      /* 69 s: of an MRA; what we ask for is the same */
	URN_CM_TIMEWAIT_MIN = 14,     /* 67 ms */
	URN_CM_TIMEWAIT_MAX = 20,     /* 4.3 s */
	URN_CM_TICK = 64,             /* timers that one tick serves */
	URN_CM_SLICE = 64,            /* ids that one call destroys: who else waits, waits no longer */
};

/* Before what could not be sent or told is tried again. */
#define URN_CM_AGAIN_NS 1000000ull

struct cm_conn;
TAILQ_HEAD(cm_conns, cm_conn);

/* Whose ids they are. owner: the caller, which has it initialised and lets it go. */
struct urn_cm_owner {
	struct cm_conns conns;  /* all its ids */
	uint32_t ids;           /* how many those are */
	uint32_t max_ids;       /* at most; 0: no more than the table has */
	_Atomic uint64_t *user_ids; /* of all owners of its user, everywhere; NULL: nobody counts */
	uint64_t max_user_ids;
	bool going;             /* it hears no more, and gets no ids */
	void *ctx;              /* the caller's */
};

/* What becomes of a message. */
enum urn_cm_sending {
	URN_CM_NO_ROOM, /* nothing: call again later */
	URN_CM_SENDS,
	URN_CM_WAITS,   /* one of its id waited for a MAC address, and this one does now: nobody heard that */
};

struct urn_cm_config {
	uint32_t max_ids;       /* of the table; 0: 32768 */
	uint8_t max_mtu;        /* code 1..5 of the largest path MTU that our port carries; 0: 5 */
	uint64_t ca_guid;       /* of this adapter */
	uint64_t seed;          /* ids, transaction ids and hashes are drawn from it */
	/*
	 * Send a MAD of URN_MAD_BYTES from one of our addresses. id: whose it is; 0:
	 * nobody's. wait: if the MAC address of the peer is not known, keep it until it
	 * is, in place of what waits for that of the same id; else lose it.
	 */
	enum urn_cm_sending (*send)(void *ctx, uint32_t id, const uint8_t own[16],
				    const uint8_t peer[16], const uint8_t *mad, bool wait);
	/*
	 * Something happened; channel: as the id, or the listener it came by, was made
	 * with. returns: false: no room; nothing changes, and it comes again
	 */
	bool (*event)(void *ctx, struct urn_cm_owner *owner, int32_t channel,
		      const struct urn_abi_cm_event *ev);
	/* The peer has answered: the remote queue pair is the owner's from here on. NULL: nobody asks */
	void (*stands)(void *ctx, const struct urn_cm_owner *owner, const uint8_t peer[16], uint32_t qpn);
	void *ctx;
};

struct urn_cm;

/* Make it. NULL: no memory, or more ids than URN_CM_IDS_MAX. */
struct urn_cm *urn_cm_create(const struct urn_cm_config *cfg);
/* NULL is allowed. Nobody is told. */
void urn_cm_destroy(struct urn_cm *cm);

void urn_cm_owner_init(struct urn_cm_owner *o, uint32_t max_ids, void *ctx);
/* It is about to go: from now on no event comes to it, and no request; it gets no ids. */
void urn_cm_owner_deaf(struct urn_cm_owner *o);
/*
 * It goes: its ids are destroyed as by urn_cm_release(), URN_CM_SLICE of them a call.
 * What has to be said to peers still is. It is deaf from the first call on. returns:
 * are there more?
 */
bool urn_cm_owner_goes(struct urn_cm *cm, struct urn_cm_owner *o, uint64_t now);
/* The same at once, however many there are. */
void urn_cm_owner_gone(struct urn_cm *cm, struct urn_cm_owner *o, uint64_t now);

/*
 * May a peer believe in a connection of this queue pair's, or packets of one still be
 * on their way? So it is from when it was told of until the end of timewait; meanwhile
 * no other queue pair gets the number (IBTA 12.9.8.4): else a repeat of who had it
 * before would count as that one's, and end its connection as stale. O(1)
 */
bool urn_cm_holds_qpn(const struct urn_cm *cm, uint32_t qpn);

/* Which owner a connection with a remote queue pair belongs to. */
enum urn_cm_claim {
	URN_CM_CLAIM_NONE,  /* none that is known of */
	URN_CM_CLAIM_ASKED, /* the peer asked this owner for it, and has not answered our reply yet */
	URN_CM_CLAIM_OWN,   /* this one: the connection stands, from the peer's answer on */
	URN_CM_CLAIM_OTHER, /* another one, and the connection stands */
};

/* Find out which owner has a connection with queue pair qpn of the peer with that GID. O(1) */
enum urn_cm_claim urn_cm_claimed(const struct urn_cm *cm, const struct urn_cm_owner *o,
				 const uint8_t peer[16], uint32_t qpn);

/* Has one of its ids this channel? O(1) */
bool urn_cm_uses(const struct urn_cm *cm, const struct urn_cm_owner *o, int32_t channel);
/* Place of an id of the owner's in the table: from 1 to urn_cm_max_ids(); 0: it is not his. */
uint32_t urn_cm_place(const struct urn_cm *cm, const struct urn_cm_owner *o, uint32_t id);
uint32_t urn_cm_max_ids(const struct urn_cm *cm);
/* The place of any id that there is or was. */
uint32_t urn_cm_place_of(const struct urn_cm *cm, uint32_t id);

/*
 * What owners do. now: nanoseconds. Each returns 0 or an errno value:
 *   ENOENT    no such id, or another's
 *   ENOTCONN  the id is in a state in which that is not possible
 *   EINVAL    a parameter cannot be
 *   EDQUOT    the owner, or its user, has as many ids as it may; ENOSPC: the adapter has
 * Lengths of private data are checked; what is shorter is filled up with zeroes.
 */

/* Take requests to a service. EADDRINUSE: another id has it. */
int urn_cm_listen(struct urn_cm *cm, struct urn_cm_owner *o, const struct urn_abi_cm_listen *p,
		  uint32_t *id);
/* Ask for a connection, from our address own. */
int urn_cm_connect(struct urn_cm *cm, struct urn_cm_owner *o, const struct urn_abi_cm_connect *p,
		   const uint8_t own[16], uint64_t now, uint32_t *id);
/* Ask who serves datagrams of a service. */
int urn_cm_resolve(struct urn_cm *cm, struct urn_cm_owner *o, const struct urn_abi_cm_connect *p,
		   const uint8_t own[16], uint64_t now, uint32_t *id);
/* REQ_RCVD: reply. SIDR_REQ_RCVD: answer. */
int urn_cm_accept(struct urn_cm *cm, struct urn_cm_owner *o, uint32_t id,
		  const struct urn_abi_cm_accept *p, uint64_t now);
/* REQ_RCVD, REP_RCVD, REP_SENT: refuse. */
int urn_cm_reject(struct urn_cm *cm, struct urn_cm_owner *o, uint32_t id,
		  const struct urn_abi_cm_reject *p, uint64_t now);
/* REP_RCVD: say that we are ready. REP_SENT: the peer's data came before its RTU did. */
int urn_cm_establish(struct urn_cm *cm, struct urn_cm_owner *o, uint32_t id,
		     const struct urn_abi_cm_data *p, uint64_t now);
/* ESTABLISHED: ask for the end. DREQ_RCVD: agree to it. */
int urn_cm_disconnect(struct urn_cm *cm, struct urn_cm_owner *o, uint32_t id,
		      const struct urn_abi_cm_data *p, uint64_t now);
/*
 * The owner is done with an id, whatever its state: the peer is told (REJ, DREQ,
 * DREP), and no event comes any more. ENOENT.
 */
int urn_cm_release(struct urn_cm *cm, struct urn_cm_owner *o, uint32_t id, uint64_t now);
/* A listener takes no more requests; the id stays. Any other id: nothing. */
void urn_cm_unlisten(struct urn_cm *cm, struct urn_cm_owner *o, uint32_t id);

/*
 * Take a MAD of class 0x07 that queue pair sqpn of peer sent to our address own.
 * returns: the counter that applies
 */
enum urn_counter urn_cm_input(struct urn_cm *cm, const uint8_t peer[16], const uint8_t own[16],
			      uint32_t sqpn, const uint8_t *mad, uint64_t now);
/* Let time pass. returns: timers served, at most URN_CM_TICK; call again when it is that */
unsigned int urn_cm_tick(struct urn_cm *cm, uint64_t now);
/* When the next timer runs out, ns; UINT64_MAX: none runs. */
uint64_t urn_cm_due(const struct urn_cm *cm);

/* Take what was counted since the last call: adds it to *to. */
void urn_cm_counters(struct urn_cm *cm, struct urn_counters *to);

/* State of an id, for telemetry and tests; IDLE if there is none. */
enum urn_cm_state urn_cm_peek(const struct urn_cm *cm, uint32_t id);
/* Ids in use, those included that nobody owns any more. */
uint32_t urn_cm_count(const struct urn_cm *cm);
/* Is everything consistent? For tests: O(all). */
bool urn_cm_sound(const struct urn_cm *cm);

#endif
