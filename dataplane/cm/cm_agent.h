/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection management on an adapter's QP1: the state machine (cm.h) with a
 * lock, frames for its messages, and the events of its owners until they fetch
 * them. Any engine may give received messages to the agent, any thread may call for a
 * client; messages to be sent wait until the adapter's first engine polls. A
 * message also waits here until the MAC address of its peer is known.
 */
#ifndef URN_CM_CM_AGENT_H
#define URN_CM_CM_AGENT_H

#include "cm/cm.h"
#include "net/neigh.h"

#include <rte_mempool.h>
#include <rte_spinlock.h>

enum {
	URN_CM_OUT = 1024,          /* messages that wait to be sent */
	URN_CM_NO_MAC = 512,        /* messages that may wait for a MAC address, counted in URN_CM_OUT */
	URN_CM_CLIENT_IDS = 16384,  /* ids of one client */
};
/* Longest wait of a message for a MAC address, ns; the neighbour table gives up sooner. */
#define URN_CM_MAC_NS 4000000000ull

struct urn_cm_agent_config {
	struct urn_neigh *neigh;  /* the adapter's; owner: the caller; outlives the agent */
	uint8_t mac[6];
	bool icrc;                /* send an ICRC */
	uint64_t ca_guid;
	uint64_t seed;		  /* struct urn_cm_config's */
	uint32_t max_ids;         /* 0: default of cm.h */
	uint8_t max_mtu;          /* code of the largest path MTU that the port carries; 0: 5 */
	/*
	 * See cm.h; called with stands_ctx; may be NULL. Runs in the thread that gets the peer's answer,
	 * usually an engine's, under the agent's lock: so it must not wait.
	 */
	void (*stands)(void *ctx, const struct urn_cm_owner *owner, const uint8_t peer[16], uint32_t qpn);
	void *stands_ctx;
};

struct urn_cm_agent;

TAILQ_HEAD(urn_cm_notes, urn_cm_note);

/* An event that has not been fetched. */
struct urn_cm_note {
	TAILQ_ENTRY(urn_cm_note) link;   /* in the client's list; oldest first */
	TAILQ_ENTRY(urn_cm_note) untold; /* in the client's list, while `late` */
	TAILQ_ENTRY(urn_cm_note) of_id;  /* in the list of the id by which it is fetched; oldest first */
	struct urn_cm_notes *notes;      /* that id's list */
	int32_t channel;
	bool late;                /* the pipe was full: the notice must still be written */
	struct urn_abi_cm_event ev;
};

/* A client's part. owner: the client; under the agent's lock. */
struct urn_cm_client {
	struct urn_cm_owner owner;
	struct urn_cm_notes notes;        /* events not fetched */
	struct urn_cm_notes untold;       /* events not fetched whose notice is late */
	TAILQ_ENTRY(urn_cm_client) late;  /* in the agent's list, while a notice is late */
};
TAILQ_HEAD(urn_cm_clients, urn_cm_client);

/* Make an agent. NULL: no memory. */
struct urn_cm_agent *urn_cm_agent_create(const struct urn_cm_agent_config *cfg);
/* NULL is allowed. Clients have left before. */
void urn_cm_agent_destroy(struct urn_cm_agent *ag);

/*
 * A client comes; a client goes, with all its ids and events. urn_cm_client_gone() and
 * urn_cm_client_release() hold the lock for a few ids or events at a time: engines need the lock.
 */
void urn_cm_client_init(struct urn_cm_client *c);
void urn_cm_client_gone(struct urn_cm_agent *ag, struct urn_cm_client *c, uint64_t now);

/* The state machine, for calls of a client: between lock and unlock only. */
struct urn_cm *urn_cm_agent_lock(struct urn_cm_agent *ag);
void urn_cm_agent_unlock(struct urn_cm_agent *ag);

/*
 * Take the oldest event of an id out; a listener's events are also the requests that
 * came to it. id 0: any id. returns 0, or EAGAIN: there is none
 */
int urn_cm_client_event(struct urn_cm_agent *ag, struct urn_cm_client *c, uint32_t id,
			struct urn_abi_cm_event *ev);
/* Destroy an id that its client is done with, and the id's events. returns 0 or ENOENT */
int urn_cm_client_release(struct urn_cm_agent *ag, struct urn_cm_client *c, uint32_t id,
			  uint64_t now);

/* True when all events of an id, and the request that made it, were fetched. Between lock and
 * unlock only. */
bool urn_cm_agent_is_fetched(const struct urn_cm_agent *ag, uint32_t id);

/* True when an id of the client, or an event of one, uses this descriptor for notices. O(1) */
bool urn_cm_client_uses(struct urn_cm_agent *ag, const struct urn_cm_client *c, int32_t channel);

/* True when a connection holds the number (urn_cm_holds_qpn()); from any thread. ag may be NULL. */
bool urn_cm_agent_holds_qpn(struct urn_cm_agent *ag, uint32_t qpn);

/*
 * Take a received frame to QP1, from queue pair sqpn, in which urn_mad_find() found a MAD of
 * class 0x07. urn_pkt(m)->drop is set to the counter that applies. The caller frees m.
 */
void urn_cm_agent_input(struct urn_cm_agent *ag, struct rte_mbuf *m, const uint8_t *mad,
			uint32_t sqpn, uint64_t now);

/* True when there is a message to send. Costs one load, without the agent's lock. */
bool urn_cm_agent_pending(const struct urn_cm_agent *ag);
/*
 * Let time pass, and write messages to be sent into new mbufs of `pool`. Call this
 * when messages are pending, and every millisecond, from one engine. Counts into
 * *c. Stops early when the pool is empty. returns: frames in out[], at most max
 */
unsigned int urn_cm_agent_poll(struct urn_cm_agent *ag, uint64_t now, struct rte_mempool *pool,
			       struct rte_mbuf **out, unsigned int max, struct urn_counters *c);

#endif
