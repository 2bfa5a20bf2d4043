/* SPDX-License-Identifier: BSD-3-Clause */
/* An adapter - a virtual RNIC - and the dataplane it is part of, as control knows them. */
#ifndef URN_CONTROL_ADAPTER_H
#define URN_CONTROL_ADAPTER_H

#include "control/client.h"
#include "control/dataplane.h"
#include "control/pair.h"

struct urn_dp;

enum {
	URN_GIDS = 3,             /* link-local, IPv4, configured IPv6 */
	URN_ADAPTER_MAX_PD = 4096,
	URN_ADAPTER_MAX_CQ = 65536,
	URN_ADAPTER_MAX_SRQ = 65536,
	URN_ADAPTER_MAX_AH = 65536,
};

/* Its neighbours in the list of a client's keys; 0: none. */
struct urn_key_link {
	uint32_t prev, next;
};

struct urn_adapter {
	struct urn_dp *dp;
	struct urn_adapter_config cfg;
	unsigned int index;
	unsigned int vectors;                          /* engines that serve it */
	struct urn_shard *shard[URN_ABI_MAX_ENGINES];  /* by engine; NULL: does not serve it */
	uint8_t engine_of[URN_ABI_MAX_ENGINES];        /* by vector */
	uint8_t mac[6];
	uint8_t gid[URN_GIDS][16];
	struct urn_mem *mem;
	struct urn_neigh *neigh;
	struct urn_learn *peers;                       /* NULL: cfg.no_link */
	struct urn_cm_agent *cm;                       /* NULL: cfg.no_cm */
	struct urn_ah *_Atomic *ah;                    /* by id - 1; read by engines */
	uint32_t ah_next;                              /* where to look for a free one */
	uint32_t ah_used;                              /* none above this was ever given out */
	struct urn_client **key_owner;                 /* by index of a key; NULL: none */
	struct urn_client **pd_owner;                  /* by PD handle */
	uint8_t *key_kind;                             /* 0 none, 1 region, 2 window */
	uint32_t *key;                                 /* by index: the key as it was given out */
	uint64_t *key_bytes;                           /* by index: bytes of a remote client's region */
	struct urn_key_link *key_link;                 /* by index: the owner's keys before and behind */
	struct urn_share **key_share;                  /* by index: where a remote client's region lies */
	struct urn_pairs pairs;                        /* whose connection with which remote QP */
	struct urn_client *clients;
	pthread_mutex_t lock;                          /* one control call at a time */
};

struct urn_dp {
	unsigned int engines_n;
	struct urn_engine *engine[URN_ABI_MAX_ENGINES];
	unsigned int adapters_n;
	struct urn_adapter **adapter;
};

static inline struct urn_shard *
urn_adapter_shard(const struct urn_adapter *a, uint32_t vector)
{
	return a->shard[a->engine_of[vector]];
}

/* Code of the largest path MTU that the port carries. */
static inline uint8_t
urn_adapter_mtu_code(const struct urn_adapter *a)
{
	return (uint8_t)(__builtin_ctz(a->cfg.port->caps.roce_mtu) - 7);
}

/* EUI-64 of the MAC, host order. */
static inline uint64_t
urn_adapter_guid(const struct urn_adapter *a)
{
	return (uint64_t)(a->mac[0] ^ 2) << 56 | (uint64_t)a->mac[1] << 48 |
	       (uint64_t)a->mac[2] << 40 | 0xfffe000000ull | (uint64_t)a->mac[3] << 16 |
	       (uint64_t)a->mac[4] << 8 | a->mac[5];
}

/* adapter.c */
struct urn_adapter *urn_adapter_create(struct urn_dp *dp, unsigned int index,
				       const struct urn_adapter_config *cfg, struct urn_err *err);
void urn_adapter_destroy(struct urn_adapter *a);
/* Wait until no engine is in the middle of a turn that began before this call. */
void urn_adapter_barrier(struct urn_adapter *a);
/*
 * Bring a client's completions on their way between two engines (vectors) to their queues. The
 * adapter's lock is held that long: they are those that were late when it began, which are no
 * more than its completion queues and send queues have entries (struct urn_late_cqes), a ring of
 * them between two calls to the engines.
 */
void urn_adapter_pass_completions(const struct urn_client *c, uint32_t from, uint32_t to);

/* client.c */
/*
 * who: in another process; NULL: in this one. Its space is the client's, or is
 * released. A client in another process is known to nobody, and its area to no engine,
 * before urn_client_start(). returns: NULL with *err and errno on failure
 */
struct urn_client *urn_client_create(struct urn_adapter *a, const struct urn_client_who *who,
				     struct urn_err *err);
/*
 * The client has mapped its area: seal the area against holes, show its doorbells to the
 * engines and the client to all others. Does nothing the second time. Waits for a hole
 * that the client is punching. returns 0, or an errno value with *err: urn_client_destroy()
 * is all that is left to do
 */
int urn_client_start(struct urn_client *c, struct urn_err *err);
/*
 * Take back everything the client made, and let it go from its adapter. Its area
 * stays mapped, its calls fail with ENODEV, until its channel is closed.
 */
void urn_client_orphan(struct urn_client *c);
/* The same, if need be, and free it. */
void urn_client_destroy(struct urn_client *c);

/* Fail a control call: errno value and a sentence. returns err */
int urn_ctl_fail(struct urn_abi_rep *rep, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ctl.c: one request, validated and carried out */
void urn_ctl_call(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep);

/*
 * One control call of a client at a time, and of an adapter; for the second
 * urn_ctl_wait() lets others in: a client whose memory is slow holds up itself.
 */
void urn_ctl_enter(struct urn_client *c);
void urn_ctl_leave(struct urn_client *c);
/* The adapter's lock. remote: the calling thread polls no engine */
void urn_ctl_lock(struct urn_adapter *a, bool remote);
/*
 * In the midst of a call: let others in while something is done that the client
 * can make last, and shut them out again. Of the client no other call begins
 * meanwhile, so what it has stays.
 */
void urn_ctl_open(struct urn_client *c);
void urn_ctl_shut(struct urn_client *c);
/* Give the engines a turn to end what is under way. The adapter's lock is held before and after. */
void urn_ctl_wait(struct urn_client *c);

/* ctl_*.c: each returns 0 or an errno value; the adapter's lock is held */
typedef int urn_ctl_fn(struct urn_client *c, const struct urn_abi_req *req, struct urn_abi_rep *rep);
urn_ctl_fn urn_ctl_hello, urn_ctl_query_port, urn_ctl_query_gid, urn_ctl_async_fd;
urn_ctl_fn urn_ctl_alloc_pd, urn_ctl_dealloc_pd, urn_ctl_reg_mr, urn_ctl_dereg_mr, urn_ctl_alloc_mw,
	urn_ctl_dealloc_mw;
urn_ctl_fn urn_ctl_create_cq, urn_ctl_resize_cq, urn_ctl_destroy_cq;
urn_ctl_fn urn_ctl_create_srq, urn_ctl_modify_srq, urn_ctl_query_srq, urn_ctl_destroy_srq;
urn_ctl_fn urn_ctl_create_qp, urn_ctl_modify_qp, urn_ctl_connect_qp, urn_ctl_query_qp, urn_ctl_destroy_qp;
urn_ctl_fn urn_ctl_create_ah, urn_ctl_destroy_ah;
urn_ctl_fn urn_ctl_share, urn_ctl_unshare;
urn_ctl_fn urn_ctl_create_channel, urn_ctl_destroy_channel;
urn_ctl_fn urn_ctl_cm_listen, urn_ctl_cm_connect, urn_ctl_cm_resolve, urn_ctl_cm_accept, urn_ctl_cm_reject,
	urn_ctl_cm_establish, urn_ctl_cm_disconnect, urn_ctl_cm_destroy, urn_ctl_cm_event;

/* An object of a client that goes was taken back: now and then others' calls are let in. (client.c) */
void urn_ctl_took_back(struct urn_client *c);
/* Take back all keys of a client that goes: windows before the regions that they are bound to. (ctl_mem.c) */
void urn_ctl_take_back_keys(struct urn_client *c);
/* Is this PD the client's? */
bool urn_client_owns_pd(const struct urn_client *c, uint32_t pd);
/* Is this QP the client's? The adapter's lock is held. (ctl_qp.c) */
bool urn_client_owns_qp(struct urn_client *c, uint32_t qpn);
/* Power of two that holds n; at least 1. */
static inline uint32_t
urn_pow2(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

#endif
