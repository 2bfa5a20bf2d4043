/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of the drop-in librdmacm.so.1: rdma-core's calls on urnic's connection management
 * (<urnic/cm.h>).
 *
 * A *device* is a verbs context with an end of connection management; each is opened once and
 * stays open. One thread, the *listener of ends*, fetches the events of all ends and gives them to
 * the ids that they concern (dispatch.c). An id is a state machine (state.c). An event that the
 * program shall see goes into the queue of the id's channel, whose descriptor is an eventfd with
 * one count per event (channel.c). Queue pairs change their state in the program's own calls: in
 * rdma_accept(), and in rdma_get_cm_event() when the event is the peer's reply.
 *
 * urn_cma_lock protects everything but the program's own fields. No call waits with it held,
 * except for control calls to the dataplane.
 */
#ifndef URN_RDMACM_H
#define URN_RDMACM_H

#include <urnic/cm.h>

#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

enum {
	URN_CMA_DEVICES = 64, /* devices that a process uses; further ones are ignored */
	URN_CMA_GIDS = 64,    /* entries of a GID table that are looked at */
	URN_CMA_HASH = 1024,  /* chains of the table of connections */
	URN_CMA_TIMEOUT = 18, /* code: a second without an answer, then a message is repeated */
	URN_CMA_RETRIES = 15,
	URN_CMA_BACKLOG_LEAST = 128, /* requests that may wait at a listener */
	URN_CMA_BACKLOG_MOST = 1024,
	URN_CMA_ACK_TIMEOUT = 16, /* code, for queue pairs: 268 ms */
	/* Private data of a program's, in a request for a connection and for datagrams. */
	URN_CMA_REQ_DATA = URN_CM_REQ_DATA - URN_CM_IP_BYTES,
	URN_CMA_SIDR_DATA = URN_CM_SIDR_REQ_DATA - URN_CM_IP_BYTES,
};

/* States of an id. */
enum urn_cma_state {
	URN_CMA_IDLE,
	URN_CMA_BOUND, /* has a local address */
	URN_CMA_LISTEN,
	URN_CMA_ADDR, /* has a peer's address and a device */
	URN_CMA_ROUTE,
	URN_CMA_CONNECTING, /* the REQ is sent */
	URN_CMA_REPLIED,    /* the REP is there, the RTU is not sent */
	URN_CMA_REQUESTED,  /* the peer's REQ is there */
	URN_CMA_ACCEPTED,   /* the REP is sent */
	URN_CMA_UP,
	URN_CMA_LEAVING, /* the DREQ is sent */
	URN_CMA_LEFT,	 /* the peer's DREQ is there, and not answered */
	URN_CMA_OVER,
	URN_CMA_STATES,
};

/* Calls that only some states allow. */
enum urn_cma_call {
	URN_CMA_CALL_BIND,
	URN_CMA_CALL_LISTEN,
	URN_CMA_CALL_RESOLVE_ADDR,
	URN_CMA_CALL_RESOLVE_ROUTE,
	URN_CMA_CALL_CONNECT,
	URN_CMA_CALL_ACCEPT,
	URN_CMA_CALL_REJECT,
	URN_CMA_CALL_ESTABLISH,
	URN_CMA_CALL_NOTIFY,
	URN_CMA_CALL_DISCONNECT,
	URN_CMA_CALLS,
};

struct urn_cma_dev {
	struct ibv_context *ctx;
	struct ibv_pd *pd; /* for ids without one of the program's; NULL: not needed yet */
	struct urn_cm_end *end;
	union ibv_gid gid[URN_CMA_GIDS];
	uint32_t gids;
	uint8_t mtu;	    /* the port's, as code */
	uint8_t rd_atomic;  /* READs and atomics that a queue pair takes at once, at most */
	uint8_t init_depth; /* ... and has in flight, at most */
};

struct urn_cma_channel;
struct urn_cma_group;
LIST_HEAD(urn_cma_groups, urn_cma_group);

struct urn_cma_id {
	struct rdma_cm_id pub;	 /* first: the program's pointer */
	struct urn_cma_dev *dev; /* NULL: none yet */
	struct urn_cma_channel *channel;
	enum urn_cma_state state;
	bool sync;	    /* the library made the channel: calls wait for their event */
	bool reuse;	    /* RDMA_OPTION_ID_REUSEADDR */
	uint32_t forks;	    /* urn_cma_forks of the process that made it */
	bool afonly;	    /* RDMA_OPTION_ID_AFONLY: no requests at the other family's addresses */
	bool reported;	    /* a request's id: the program got it with the event */
	uint8_t sgid_index; /* valid with dev */
	uint8_t tos;	    /* traffic class */
	uint8_t ack_timeout;			      /* code */
	uint8_t responder_resources, initiator_depth; /* agreed with the peer */
	uint8_t retry_count, rnr_retry;
	uint32_t psn;			     /* first PSN that the peer sends */
	uint32_t cm;			     /* connection's id at the end; 0: none */
	uint32_t listeners[URN_CMA_DEVICES]; /* ends' listeners, by device; ids share one that have
						the same port; 0: none */
	int backlog;
	struct urn_cma_id *listener;  /* a request's; NULL when that is destroyed */
	struct urn_abi_cm_event peer; /* the REQ or REP; valid from REQUESTED or REPLIED on */
	uint32_t unacked;	      /* events that the program has and did not acknowledge */
	/* rdma_create_ep() of a listener: for its requests' queue pairs. */
	struct ibv_qp_init_attr *ep_attr;
	struct ibv_pd *ep_pd;
	struct urn_cma_groups groups; /* multicast groups that it joined (mcast.c) */
	LIST_ENTRY(urn_cma_id) next;  /* list of all ids */
	LIST_ENTRY(urn_cma_id) chain; /* connections' table; valid while cm != 0 */
};
LIST_HEAD(urn_cma_ids, urn_cma_id);

struct urn_cma_event {
	struct rdma_cm_event pub; /* first: the program's pointer */
	struct urn_cma_id
		*owner; /* where the event is acknowledged: a request's listener, else the id */
	struct urn_cma_id *id;
	bool reply; /* the peer's reply, for which the queue pair is to be brought up */
	TAILQ_ENTRY(urn_cma_event) next;
	uint8_t data[256];
};
TAILQ_HEAD(urn_cma_events, urn_cma_event);

struct urn_cma_channel {
	struct rdma_event_channel pub; /* first: the program's pointer */
	struct urn_cma_events queue;
	uint32_t forks; /* urn_cma_forks of the process that uses it */
};

extern pthread_mutex_t urn_cma_lock;
/* Forks between the process that loaded the library and this one (fork.c). */
extern uint32_t urn_cma_forks;

/* Set errno. returns: 0 for 0, else -1 */
static inline int
urn_cma_result(int err)
{
	if (err == 0)
		return 0;
	errno = err;
	return -1;
}

/* True when the id is for datagrams: a look-up finds the peer's queue pair, and there is no
 * connection. */
static inline bool
urn_cma_datagrams(const struct urn_cma_id *id)
{
	return id->pub.qp_type == IBV_QPT_UD;
}

static inline struct urn_cma_id *
urn_cma_of(struct rdma_cm_id *id)
{
	return (struct urn_cma_id *)id;
}

/* True when the id is the parent process's: this one can only destroy it. */
static inline bool
urn_cma_foreign(const struct urn_cma_id *id)
{
	return id->forks != urn_cma_forks;
}

/* ---- device.c: all return an errno value, or 0 */

/* Open the devices, once. ENODEV: there is none */
int urn_cma_devices_open(void);
/* In a child of fork(): forget the parent's devices. */
void urn_cma_devices_forked(void);
extern struct urn_cma_dev urn_cma_devs[URN_CMA_DEVICES];
extern uint32_t urn_cma_dev_count;
/* Find the device of a local address. *index: of its GID */
struct urn_cma_dev *urn_cma_dev_find(const union ibv_gid *gid, uint8_t *index);
/* Choose the device, and its GID, by which a peer's address is reached. returns: NULL: none */
struct urn_cma_dev *urn_cma_dev_route(const union ibv_gid *peer, uint8_t *index);
/* Give an id its device. */
int urn_cma_id_attach(struct urn_cma_id *id, struct urn_cma_dev *dev, uint8_t gid_index);

/* ---- address.c */

bool urn_cma_addr_to_gid(const struct sockaddr *a, union ibv_gid *gid);
void urn_cma_gid_to_addr(const union ibv_gid *gid, uint16_t port, struct sockaddr_storage *out);
/* True when an address leaves the adapter open: any address, or a loopback address, which no
 * adapter has */
bool urn_cma_addr_any(const struct sockaddr *a);
uint16_t urn_cma_addr_port(const struct sockaddr *a);
void urn_cma_addr_set_port(struct sockaddr *a, uint16_t port);
/* returns: bytes of an address of this family; 0: not a family of ours */
socklen_t urn_cma_addr_len(const struct sockaddr *a);

/* ---- state.c; urn_cma_request(): connect.c */

/* True when the id's state allows the call. */
bool urn_cma_allows(const struct urn_cma_id *id, enum urn_cma_call call);
const char *urn_cma_state_name(enum urn_cma_state s);
/* Handle an event of the id's connection. */
void urn_cma_step(struct urn_cma_id *id, const struct urn_abi_cm_event *ev);
/* Make an id of a peer's request. */
void urn_cma_request(struct urn_cma_id *listener, struct urn_cma_dev *dev,
		     const struct urn_abi_cm_event *ev);

/* ---- dispatch.c */

/* Start the listener of ends, once. */
int urn_cma_dispatch_start(void);
/* In a child of fork(): no thread runs, and there are no connections. */
void urn_cma_dispatch_forked(void);
void urn_cma_table_add(struct urn_cma_id *id, uint32_t cm);
void urn_cma_table_remove(struct urn_cma_id *id);

/* ---- channel.c */

/*
 * Put an event into the queue of an id's channel.
 *
 * data: private data; NULL: none
 * returns: the event, to be filled in further; NULL: no memory, the event is lost
 */
struct urn_cma_event *urn_cma_post(struct urn_cma_id *id, enum rdma_cm_event_type type, int status,
				   const void *data, uint32_t len);
/* Drop the queued events of an id. */
void urn_cma_drop_events(struct urn_cma_id *id);
struct urn_cma_channel *urn_cma_channel_new(void);
void urn_cma_channel_free(struct urn_cma_channel *c);
/*
 * Make a channel of the parent process's this one's own: empty, with another descriptor under the
 * same number. Other channels stay as they are.
 *
 * returns: 0, or an errno value
 */
int urn_cma_channel_own(struct urn_cma_channel *c);
/* In a child of fork(): forget the parent's channels. */
void urn_cma_channels_forked(void);
/* Wait until the program acknowledged all events of an id. */
void urn_cma_wait_acks(struct urn_cma_id *id);
/* End a call: in synchronous operation wait for its event. returns: 0, or -1 with errno */
int urn_cma_complete(struct urn_cma_id *id);

/* ---- id.c */

extern struct urn_cma_ids urn_cma_all;
/* Make an id. The lock is held. */
struct urn_cma_id *urn_cma_id_new(struct urn_cma_channel *channel, void *context,
				  enum rdma_port_space ps);
/* End an id's connection and forget the id, with its queued events. The lock is held. */
void urn_cma_id_free(struct urn_cma_id *id);
/* Choose an ephemeral port. */
uint16_t urn_cma_port_new(void);

/* ---- qp.c */

/* Bring a connected id's queue pair up to RTS, by the values of the peer's REQ or REP. returns: 0,
 * or errno
 */
int urn_cma_qp_up(struct urn_cma_id *id);
void urn_cma_qp_error(struct urn_cma_id *id);

/* Fill in how a queue pair reaches the peer. */
void urn_cma_ah_attr(const struct urn_cma_id *id, const uint8_t gid[16], struct ibv_ah_attr *ah);

/* ---- mcast.c */

/* The id's queue pair goes: detach it from the groups, which stay joined. The lock is held. */
void urn_cma_groups_detach(struct urn_cma_id *id);
/* Leave all groups. The lock is held. */
void urn_cma_groups_end(struct urn_cma_id *id);

/* ---- connect.c */

/* Write RDMA-CM's header: the addresses and the own port. */
void urn_cma_write_addresses(const struct urn_cma_id *id, uint8_t out[URN_CM_IP_BYTES]);

/* ---- datagram.c; all return 0, or an errno value */

/* Look the peer's queue pair up. *cm: the look-up's id at the end */
int urn_cma_look_up(struct urn_cma_id *id, const struct rdma_conn_param *p, uint32_t *cm);
/* Answer a look-up. p: NULL: refuse it, with `len` bytes of data */
int urn_cma_answer(struct urn_cma_id *id, const struct rdma_conn_param *p, const void *data,
		   uint32_t len);
/* The answer to a look-up came. */
void urn_cma_answered(struct urn_cma_id *id, const struct urn_abi_cm_event *ev);

/* The program fetches the reply: bring the queue pair up, and send the RTU. */
void urn_cma_finish(struct urn_cma_event *e);

#endif
