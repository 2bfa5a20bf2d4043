/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection management on an adapter's QP1: the state machine (cm.h) with a
 * lock, frames for its messages, and the events of its owners until they fetch
 * them. Any engine may give it what it received, any thread may call for a
 * client; what is to be sent waits until the adapter's first engine polls. A
 * message waits here, too, until the MAC address of its peer is known.
 */
#ifndef URN_CM_CM_AGENT_H
#define URN_CM_CM_AGENT_H

#include "cm/cm.h"
#include "net/neigh.h"

#include <rte_mempool.h>
#include <rte_spinlock.h>

enum {
	URN_CM_OUT = 1024,          /* messages that wait to be sent */
	URN_CM_NO_MAC = 512,        /* those of which that may wait for a MAC address */
	URN_CM_CLIENT_IDS = 16384,  /* ids of one client */
};
/* How long a message waits for a MAC address; the neighbour table gives up sooner. */
#define URN_CM_MAC_NS 4000000000ull

struct urn_cm_agent_config {
	struct urn_neigh *neigh;  /* of the adapter; owner: the caller; outlives the agent */
	uint8_t mac[6];
	bool icrc;                /* send it */
	uint64_t ca_guid;
	uint64_t seed;
	uint32_t max_ids;         /* 0: default of cm.h */
	uint8_t max_mtu;          /* code of the largest path MTU that the port carries; 0: 5 */
	/*
	 * As of cm.h, with this context; NULL: nobody asks. In whichever thread the answer comes to,
	 * an engine's as a rule, under the agent's lock: it is to wait for nobody.
	 */
	void (*stands)(void *ctx, const struct urn_cm_owner *owner, const uint8_t peer[16], uint32_t qpn);
	void *stands_ctx;
};

struct urn_cm_agent;

TAILQ_HEAD(urn_cm_notes, urn_cm_note);

/* An event that has not been fetched. */
struct urn_cm_note {
	TAILQ_ENTRY(urn_cm_note) link;   /* of the client; oldest first */
	TAILQ_ENTRY(urn_cm_note) untold; /* of the client, while `late` */
	TAILQ_ENTRY(urn_cm_note) of_id;  /* of the id by which it is asked for; oldest first */
	struct urn_cm_notes *notes;      /* the list of that */
	int32_t channel;
	bool late;                /* the pipe was full: the notice is still to be written */
	struct urn_abi_cm_event ev;
};

/* A client's share. owner: the client; under the agent's lock. */
struct urn_cm_client {
	struct urn_cm_owner owner;
	struct urn_cm_notes notes;        /* events not fetched */
	struct urn_cm_notes untold;       /* those of which whose notice is late */
	TAILQ_ENTRY(urn_cm_client) late;  /* of the agent, while any is */
};
TAILQ_HEAD(urn_cm_clients, urn_cm_client);

/* Make it. NULL: no memory. */
struct urn_cm_agent *urn_cm_agent_create(const struct urn_cm_agent_config *cfg);
/* NULL is allowed. Clients have left before. */
void urn_cm_agent_destroy(struct urn_cm_agent *ag);

/*
 * A client comes; it goes, and all its ids and events with it. Like
 * urn_cm_client_release() that takes the lock for a few at a time: engines need it.
 */
void urn_cm_client_init(struct urn_cm_client *c);
void urn_cm_client_gone(struct urn_cm_agent *ag, struct urn_cm_client *c, uint64_t now);

/* The state machine, for calls of a client: between lock and unlock only. */
struct urn_cm *urn_cm_agent_lock(struct urn_cm_agent *ag);
void urn_cm_agent_unlock(struct urn_cm_agent *ag);

/*
 * Take the oldest event of an id out; of a listener, also of the requests that
 * came there. id 0: of any. returns 0, or EAGAIN: there is none
 */
int urn_cm_client_event(struct urn_cm_agent *ag, struct urn_cm_client *c, uint32_t id,
			struct urn_abi_cm_event *ev);
/* The owner is done with an id: its events go too. returns 0 or ENOENT */
int urn_cm_client_release(struct urn_cm_agent *ag, struct urn_cm_client *c, uint32_t id,
			  uint64_t now);

/* Does an id of the client's, or an event of one, use this descriptor for notices? O(1) */
bool urn_cm_client_uses(struct urn_cm_agent *ag, const struct urn_cm_client *c, int32_t channel);

/* urn_cm_holds_qpn(), from any thread. ag may be NULL. */
bool urn_cm_agent_holds_qpn(struct urn_cm_agent *ag, uint32_t qpn);

/*
 * Take a received frame to QP1 that urn_mad_find() found a MAD of class 0x07 in,
 * from queue pair sqpn. urn_pkt(m)->drop is set to the counter that applies. m is
 * the caller's to free.
 */
void urn_cm_agent_input(struct urn_cm_agent *ag, struct rte_mbuf *m, const uint8_t *mad,
			uint32_t sqpn, uint64_t now);

/* Is there something to send? For the price of a load, without the lock. */
bool urn_cm_agent_pending(const struct urn_cm_agent *ag);
/*
 * Let time pass, and write what is to be sent into new mbufs of `pool`. Call it
 * when something is pending, and every millisecond, from one engine. Counts into
 * *c. Stops early when the pool is empty. returns: frames in out[], at most max
 */
unsigned int urn_cm_agent_poll(struct urn_cm_agent *ag, uint64_t now, struct rte_mempool *pool,
			       struct rte_mbuf **out, unsigned int max, struct urn_counters *c);

#endif
