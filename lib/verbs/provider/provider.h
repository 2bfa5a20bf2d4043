/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The seam between the public calls of verbs (lib/verbs, the front) and a provider, which
 * carries the calls out.
 *
 *   program ── ibv_create_qp() ──► front ── ops->create_qp ──► provider
 *           ── ibv_post_send() ── context.ops.post_send ─────► provider
 *
 * Each context has the table of its provider. The front calls through the table whenever an
 * object is made, changed, asked or destroyed. Posting and polling don't pass through the front:
 * it copies these pointers from the table into the public context, where the inline functions of
 * verbs.h find them, so that the fast path has one indirect call.
 *
 * The front checks all arguments that no provider can take otherwise. A provider makes its
 * objects with urn_object_alloc(): a struct of its own that begins with the public one, in which
 * it sets `handle` and the numbers that it gives out (qp_num, keys, cqe, fd). The front sets the
 * rest: context, the objects that the new one uses, the program's pointers, locks, a QP's state.
 * When the provider has taken an object back, the front frees its memory.
 *
 * A provider may stand above others. The upper provider's context then owns contexts of the others,
 * each of its objects owns objects in these contexts, and it makes them by public calls.
 */
#ifndef URN_VERBS_PROVIDER_H
#define URN_VERBS_PROVIDER_H

#include "attach/fail.h"

#include <urnic/align.h>
#include <urnic/verbs.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct urn_device;
struct urn_verbs_cm_ops;
struct urn_verbs_ops;

/* The names of a device. */
struct urn_verbs_id {
	char name[IBV_SYSFS_NAME_MAX]; /* for people and ibv_get_device_name(); ends with 0 */
	uint64_t guid;                 /* host order */
};

/* A context as the front has it; a provider's own struct contains it. */
struct urn_verbs_ctx {
	const struct urn_verbs_ops *ops; /* the front's: provider of the context */
	struct urn_device *device;       /* the front's: one reference */
	/* Set by the provider's open(), constant from then on. */
	struct urn_verbs_id id;
	uint32_t gids;                   /* entries of the GID table */
	uint32_t max_cqe;                /* entries that a completion queue may have */
	uint64_t wc_flags; /* fields of completions beyond the standard ones (IBV_WC_EX_WITH_...) */
	/* The provider's: ns of CLOCK_MONOTONIC when the port was last seen in its state before
	 * that of the last event of the port; 0: not known. */
	_Atomic uint64_t port_seen;
	bool imported;	   /* the front's: cmd_fd is the context's own, by ibv_import_device() */
	/* The provider sets async_fd and num_comp_vectors, the front all else. Last, because
	 * verbs.h asks for it. */
	struct verbs_context vctx;
};

/* The origin of a device on offer: each context of it is opened over something new from there. */
struct urn_verbs_origin {
	const struct urn_verbs_ops *ops; /* the provider's */
	void (*make)(void);		 /* cast from the type that ops->make() casts it back to */
	void *arg;			 /* argument of make(); valid until withdrawal */
};

/*
 * The operations of a provider. Unless said otherwise each one returns 0 or an errno value, or
 * an object or NULL, and on failure has set errno and the error text (urn_fail()).
 */
struct urn_verbs_ops {
	/* ---- devices on offer */

	/*
	 * Put devices on offer that are there and not on offer yet (urn_verbs_offer()). Called for
	 * each list of devices, from any thread.
	 * returns: 0, or an errno value with its text: devices may be missing from the list
	 */
	int (*discover)(void);
	/*
	 * In a child of fork(): free the locks of discover(), whose holder may be a thread of the
	 * parent. NULL: there are none
	 */
	void (*discover_forked)(void);
	/* Make what identify() or open() takes. returns: NULL with errno set, perhaps the text */
	void *(*make)(const struct urn_verbs_origin *from);

	/* ---- devices; arg: names the device in the provider's own terms. Taken over, also on
	 * failure */

	/* Tell the names of the device behind arg, and let go of arg. */
	int (*identify)(void *arg, struct urn_verbs_id *id);
	/* Open a context over arg. */
	struct urn_verbs_ctx *(*open)(void *arg);
	/* Close a context, and free its memory. The objects of the context are taken back, their
	 * memory is not freed. */
	void (*close)(struct ibv_context *c);

	int (*query_device)(struct ibv_context *c, struct ibv_device_attr_ex *attr); /* attr: zeroed */
	int (*query_port)(struct ibv_context *c, struct ibv_port_attr *attr);        /* port 1; attr: zeroed */
	/* index < gids. ENODATA or ENOENT: the entry is empty; so is one of zeros */
	int (*query_gid)(struct ibv_context *c, uint32_t index, union ibv_gid *gid);
	/* Wait for an event, unless async_fd does not block. returns: 0, or -1 with errno set */
	int (*get_async_event)(struct ibv_context *c, struct ibv_async_event *event);

	/* ---- memory and addresses */

	struct ibv_pd *(*alloc_pd)(struct ibv_context *c);
	int (*dealloc_pd)(struct ibv_pd *pd);
	/* addr..addr + length is mapped with the rights that access wants; iova: 0 with IBV_ACCESS_ZERO_BASED */
	struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access);
	int (*dereg_mr)(struct ibv_mr *mr);
	/*
	 * Change a region to pd, addr and length, and the rights if flags has
	 * IBV_REREG_MR_CHANGE_ACCESS; flags: as of ibv_rereg_mr(). The keys stay.
	 * NULL: it can't. returns: 0, or enum ibv_rereg_mr_err_code with errno and text set
	 */
	int (*rereg_mr)(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
			unsigned int access);
	struct ibv_mw *(*alloc_mw)(struct ibv_pd *pd, enum ibv_mw_type type);
	int (*dealloc_mw)(struct ibv_mw *mw);
	struct ibv_ah *(*create_ah)(struct ibv_pd *pd, const struct ibv_ah_attr *attr); /* attr has a GID */
	int (*destroy_ah)(struct ibv_ah *ah);

	/* ---- completions */

	struct ibv_comp_channel *(*create_comp_channel)(struct ibv_context *c);
	int (*destroy_comp_channel)(struct ibv_comp_channel *channel); /* no CQ uses it */
	/* Wait for an event, unless fd does not block. returns: 0, or -1 with errno set */
	int (*get_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq **cq);
	/*
	 * cqe and comp_vector are in range, flags: IBV_CREATE_CQ_ATTR_SINGLE_THREADED at most,
	 * comp_mask is 0, wc_flags has no more than the standard fields and the provider's
	 * wc_flags. All queues can be polled in the extended way. The channel's refcnt counts the
	 * queue already.
	 */
	struct ibv_cq_ex *(*create_cq)(struct ibv_context *c, const struct ibv_cq_init_attr_ex *attr);
	int (*resize_cq)(struct ibv_cq *cq, uint32_t cqe); /* cqe is in range */
	/* Calls that destroy an object of events, this one among them, wait until its handed-out
	 * events are acknowledged. */
	int (*destroy_cq)(struct ibv_cq *cq);

	/* ---- queues */

	/* cq: completions of QPs on the queue will go there; NULL: not known yet. attr->max_wr becomes the granted one */
	struct ibv_srq *(*create_srq)(struct ibv_pd *pd, struct ibv_srq_attr *attr, const struct ibv_cq *cq);
	int (*modify_srq)(struct ibv_srq *srq, const struct ibv_srq_attr *attr, int mask);
	int (*query_srq)(struct ibv_srq *srq, struct ibv_srq_attr *attr);
	int (*destroy_srq)(struct ibv_srq *srq);
	/*
	 * RC, UC or UD, with a PD and both CQs; attr->cap becomes the granted one. The QP begins
	 * with a struct ibv_qp_ex, whose wr_start and so on are set if comp_mask has
	 * IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, and NULL otherwise; no other bit of it has a meaning.
	 */
	struct ibv_qp *(*create_qp)(struct ibv_qp_init_attr_ex *attr);
	/* The attributes can be changed at all, and an address has a GID. */
	int (*modify_qp)(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask);
	/* From INIT to RTR and on to RTS at once. *reached: the state that it got to; unchanged: none of them */
	int (*connect_qp)(struct ibv_qp *qp, const struct ibv_qp_attr *rtr, int rtr_mask,
		const struct ibv_qp_attr *rts, int rts_mask, enum ibv_qp_state *reached);
	/* init: the provider sets cap and sq_sig_all */
	int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init);
	int (*destroy_qp)(struct ibv_qp *qp);
	/* Attach a UD queue pair to a multicast group, or detach it. */
	int (*mcast)(struct ibv_qp *qp, const union ibv_gid *gid, bool attach);
	/* urn_qp_align() of an RC queue pair, with a valid line. NULL: it can't */
	int (*align_qp)(struct ibv_qp *qp, uint32_t line);
	/* urn_wc_explain() by the QP's number and enum ibv_wc_status. text: set on success alone.
	 * NULL: it can't */
	int (*explain)(struct ibv_context *c, uint32_t qpn, uint32_t status, char *text,
		       size_t size);
	/* urn_mr_stores(). NULL: it can't */
	int (*query_stores)(struct ibv_mr *mr, struct urn_stores *stores);

	/* ---- the fast path, called by the inline functions of verbs.h: same meaning, no error text */

	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
	int (*post_srq_recv)(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
	int (*bind_mw)(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
	int (*poll_cq)(struct ibv_cq *cq, int n, struct ibv_wc *wc);
	int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);

	/* Connection management (provider/cm.h). NULL: none, the front answers EOPNOTSUPP */
	const struct urn_verbs_cm_ops *cm;

	/*
	 * Let get_async_event() give an event that nothing of the device caused. queue: the queue
	 * that the event is about, NULL: the port or the device. IBV_EVENT_DEVICE_FATAL: the device
	 * is lost, if the provider can lose it. NULL: the provider can't. Called from any thread,
	 * and by faults only
	 */
	int (*raise_event)(struct ibv_context *c, enum ibv_event_type type, void *queue);

	/* ---- importing; NULL: the provider can't */

	/* The descriptor by which the device can be imported; the provider's. -1: none */
	int (*cmd_fd)(struct ibv_context *c);
	/*
	 * Let a context that is new share protection domains and regions with the one whose
	 * descriptor this is, or a copy of it. returns: 0; ENOENT: no context of this device has
	 * that descriptor; another errno value
	 */
	int (*join)(struct ibv_context *c, int cmd_fd);
	/* Like alloc_pd() and reg_mr(), for an object that exists; dealloc_pd() and dereg_mr() end
	 * the object itself. */
	struct ibv_pd *(*import_pd)(struct ibv_context *c, uint32_t handle);
	struct ibv_mr *(*import_mr)(struct ibv_pd *pd, uint32_t handle);
};

/* A provider in the list that is asked for devices (registry.h). */
struct urn_provider {
	STAILQ_ENTRY(urn_provider) next; /* the registry's */
	const struct urn_verbs_ops *ops;
};

/*
 * Add a provider, at the end of the list: lists of devices ask it from now on. The adapters' is
 * added by the first list.
 *
 * p: never freed, and added once
 */
void urn_provider_add(struct urn_provider *p);

/*
 * Put a device on offer: it is in the lists of devices until it is withdrawn. Asks the origin
 * once, now, to learn the device's names. returns: 0, or an errno value with its text
 */
int urn_verbs_offer(const struct urn_verbs_origin *from);
/*
 * Withdraw all devices of an origin, which urn_attach_withdraw() describes.
 * returns: 0; ENOENT: there was none
 */
int urn_verbs_withdraw(const struct urn_verbs_origin *from);

/* The front's part of a context. */
static inline struct urn_verbs_ctx *
urn_verbs_ctx(struct ibv_context *c)
{
	return (struct urn_verbs_ctx *)((uint8_t *)c - offsetof(struct urn_verbs_ctx, vctx.context));
}

/* Memory for an object: zeroed, on a cache line of its own; given back by free(). NULL: errno and text are set */
void *urn_object_alloc(size_t size);

/* Fail with EOPNOTSUPP; `what` begins the sentence. */
int urn_unsupported(const char *what);

/* Wait until `got` events of an object are acknowledged. */
void urn_acks_wait(pthread_mutex_t *lock, pthread_cond_t *cond, const uint32_t *acked, uint32_t got);

#endif
