/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider of one adapter of a dataplane: its structs behind the verbs objects of a
 * program. Each begins with the public struct, so that a pointer to one is a pointer to the
 * other; only the public context lies at the end, because verbs.h asks for it. Queues and
 * queue pairs are `urn_adapter_...`, because the dataplane's ends of them have the shorter
 * names, and a debugger sees both in a program that embeds a dataplane.
 *
 * Locking, as in rdma-core: a lock for each send queue, receive queue, SRQ and
 * CQ; the control path takes none but the table of objects and the mutexes in
 * the public structs, and holds none across a control call.
 */
#ifndef URN_VERBS_ADAPTER_H
#define URN_VERBS_ADAPTER_H

#include "attach/dev.h"
#include "attach/pipe.h"
#include "attach/share/share.h"
#include "verbs/adapter/lock.h"
#include "verbs/adapter/objs.h"
#include "verbs/adapter/polled.h"
#include "verbs/provider/provider.h"

#include <urnic/attach.h>

#define URN_LIKELY(x) __builtin_expect(!!(x), 1)
#define URN_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define URN_HOT URN_ABI_ALIGNED(URN_ABI_CACHE_LINE)

struct urn_ctx {
	struct urn_dev dev;
	struct urn_objs objs;       /* objects that events name */
	struct urn_way *ways;       /* pipes for events, except the asynchronous one; under the lock of objs */
	struct urn_ctx *next, **at; /* in the list of watching contexts (gone.c); at NULL: in no list */
	_Atomic bool told_fatal;    /* IBV_EVENT_DEVICE_FATAL was handed out */
	pid_t pid;		    /* the process that opened it; a child reaches nothing by it */
	_Atomic bool has_beside;    /* some completion queue has, or had, messages beside it */
	struct urn_copy_map *copies; /* NULL: sources are not copied when posted (copy.h) */
	struct urn_polled_map polled; /* how far queues are polled, by QPN */
	pthread_mutex_t cm_lock;    /* protects cm_ends, and fetches that rely on there being one */
	uint32_t cm_ends;	    /* ends of connection management that were opened */
	int async_write_fd;         /* the dataplane's end; the program's is front.vctx.context.async_fd */
	struct urn_verbs_ctx front; /* last: the public ibv_context is its last field */
};

struct urn_adapter_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	URN_HOT struct urn_lock lock; /* protects the rest of this cache line */
	bool single;                /* one thread at a time: polls without the lock */
	bool resizing;              /* a resize is in progress; cqe shows an empty queue */
	bool armed_next;	    /* last armed for any completion, not only for solicited ones */
	bool told; /* since then an event was handed out, when cons was armed_from */
	uint8_t arm_later;          /* enum urn_abi_cq_arm asked for while resizing */
	_Atomic uint8_t gone;       /* enum urn_cq_gone; not under the lock */
	uint8_t looks;		    /* looks in a row that found nothing, since the last yield */
	_Atomic uint8_t patience;   /* looks until the reader yields (poll.c); not under the lock */
	uint32_t cons;              /* completions read */
	uint32_t mask;              /* entries - 1 */
	uint32_t entries;           /* a power of two */
	struct urn_abi_cqe *cqe;    /* slots */
	struct urn_abi_cq *hdr;     /* in the client's area */
	struct urn_abi_cqe *cur;    /* extended poll: the completion being read, in `shown` */
	struct urn_abi_beside *beside; /* messages beside the slots (beside.h); NULL: none */
	struct urn_lock beside_lock;   /* see beside.h */
	bool beside_foreign; /* the descriptor of the area's file is another file's; beside_lock */
	uint64_t ticket;            /* in urn_ctx.objs */
	uint32_t comp_got;          /* events handed out by ibv_get_cq_event; lock of objs */
	uint32_t async_got;         /* events handed out by ibv_get_async_event; lock of objs */
	uint32_t *dead;             /* QPNs whose completions are removed when the resize is done */
	uint32_t dead_count;
	_Atomic bool expects;       /* armed, and no event handed out since */
	uint32_t armed_from; /* completions from this index on have events since the queue was last
				armed; lock */
	uint64_t shown_ns;   /* extended poll: time of urn_clock_ns() when cur was found, of a queue
				with times */
	struct urn_polled *polled;   /* record of the queue pair polled last; NULL: none; lock */
	struct urn_abi_cqe shown;    /* extended poll: copy, so that the slot is free */
	struct urn_abi_cqe *made_up; /* completions of requests that a dead dataplane left; NULL: none */
};

/* State of a queue's dataplane; a poll that finds nothing reads it. */
enum urn_cq_gone {
	URN_CQ_THERE,
	URN_CQ_ORPHAN,  /* the dataplane died: its completions are read first, missing ones are then made up */
	URN_CQ_FLUSHED, /* the dataplane died, and the missing completions have been made up */
	URN_CQ_FORKED,  /* the queue is the parent's, this process is its child */
};

/* A receive queue or SRQ. */
struct urn_adapter_rq {
	struct urn_lock lock;       /* all below */
	uint32_t prod;              /* requests posted */
	uint32_t cons;		    /* requests known to be polled */
	uint32_t cap;		    /* requests that may be outstanding at a time */
	uint32_t mask;              /* slots - 1 */
	uint32_t stride;            /* bytes of a slot */
	uint32_t max_sge;
	bool ok;                    /* posting is allowed in this state */
	bool shared;		    /* an SRQ */
	uint8_t *slots;             /* in the client's area */
	struct urn_abi_wq *hdr;
	const _Atomic uint32_t *freed; /* requests polled, whose slots are free again (polled.h) */
};

struct urn_adapter_sq {
	struct urn_lock lock;       /* all below */
	uint32_t prod;              /* requests posted */
	uint32_t cons;		    /* requests known to be polled */
	uint32_t cap;		    /* requests that may be outstanding at a time */
	uint32_t mask;              /* slots - 1 */
	uint32_t stride;            /* bytes of a slot */
	uint32_t max_sge;
	uint32_t max_inline;        /* bytes */
	uint32_t ops;               /* bit i: opcode i (enum urn_abi_wr_op) fits the QP type */
	bool ok;                    /* posting is allowed in this state */
	bool ud;                    /* requests name an address handle */
	uint8_t *slots;             /* in the client's area */
	struct urn_abi_wq *hdr;
	const _Atomic uint32_t *freed; /* requests polled, whose slots are free again (polled.h) */
};

struct urn_adapter_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	};
	URN_HOT struct urn_adapter_sq sq;
	const struct urn_dev *dev;
	uint32_t engine;            /* owner */
	uint32_t db;                /* doorbell id */
	struct urn_copy *copy;      /* NULL: sources are not copied when posted; lock of sq */
	struct urn_abi_swqe *wr_cur; /* ibv_wr_*: the request being built; NULL after an error */
	uint32_t wr_prod;           /* ibv_wr_*: sq.prod at ibv_wr_start */
	int wr_err;                 /* ibv_wr_*: first error since ibv_wr_start */
	URN_HOT struct urn_adapter_rq rq;
	struct urn_abi_wq *taken;   /* on an SRQ: receives taken from there; NULL: has a queue of its own */
	bool sq_sig_all;
	struct urn_polled *polled; /* how far its queues are polled */
	uint32_t mark; /* sends that the end of an address handle waits for (drain.c); under the
			  lock of objs */
	uint32_t in_vain_at; /* consumer index at which such a wait ended in vain; the same lock */
	bool in_vain;	     /* in_vain_at is valid */
	struct ibv_qp_cap cap;      /* granted capabilities */
	uint64_t ticket;            /* in urn_ctx.objs */
	uint32_t async_got;         /* events handed out by ibv_get_async_event; lock of objs */
};

/* Posting and polling touch one cache line of each queue. */
_Static_assert(sizeof(struct urn_adapter_sq) <= URN_ABI_CACHE_LINE, "hot part of a send queue");
_Static_assert(sizeof(struct urn_adapter_rq) <= URN_ABI_CACHE_LINE, "hot part of a receive queue");
_Static_assert(offsetof(struct urn_adapter_cq, ticket) - offsetof(struct urn_adapter_cq, lock) <=
		       URN_ABI_CACHE_LINE,
	       "hot part of a completion queue");

struct urn_adapter_srq {
	struct ibv_srq ibv;
	URN_HOT struct urn_adapter_rq rq;
	uint64_t ticket;            /* in urn_ctx.objs */
	uint32_t async_got;         /* events handed out by ibv_get_async_event; lock of objs */
	/* Gets the flushed untaken entries when the dataplane died; under the lock of objs. */
	struct urn_adapter_cq *heir;
	URN_HOT _Atomic uint32_t polled; /* its receives that were polled, of all queue pairs */
};

struct urn_adapter_pd {
	struct ibv_pd ibv;
	bool imported; /* made in another context */
};

struct urn_adapter_mr {
	struct ibv_mr ibv;
	bool imported; /* made in another context: only handle, keys and length are known */
	uint64_t iova;		    /* address of the start that requests use */
	unsigned int access;	    /* enum ibv_access_flags */
	struct urn_share_hold hold; /* on memory that is shared as long as there is the region */
};

struct urn_channel {
	struct ibv_comp_channel ibv;
	struct urn_way way;
	int32_t handle;             /* the dataplane's name for the channel: way.write_fd, or a handle */
	/* owed_lock protects the library's events that found the channel's pipe full. */
	pthread_mutex_t owed_lock;
	struct urn_abi_event *owed; /* owed_n events, room for owed_cap; under owed_lock */
	uint32_t owed_n, owed_cap;
	_Atomic bool owes;          /* owed_n is not 0; changed under owed_lock */
};

static inline struct urn_ctx *
urn_ctx(struct ibv_context *c)
{
	return (struct urn_ctx *)((uint8_t *)c - offsetof(struct urn_ctx, front.vctx.context));
}

static inline struct urn_dev *
urn_ctx_dev(struct ibv_context *c)
{
	return &urn_ctx(c)->dev;
}

static inline struct urn_adapter_cq *
urn_cq(struct ibv_cq *cq)
{
	return (struct urn_adapter_cq *)cq;
}

static inline struct urn_adapter_qp *
urn_qp(struct ibv_qp *qp)
{
	return (struct urn_adapter_qp *)qp;
}

static inline struct urn_adapter_srq *
urn_srq(struct ibv_srq *srq)
{
	return (struct urn_adapter_srq *)srq;
}

/* Fields of completions that a queue may have beyond the standard ones. */
#define URN_WC_EXTRA                                      \
	((uint64_t)(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
		    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK))

/* The provider's table. arg of make() and open(): the adapter's struct urn_abi_channel */
extern const struct urn_verbs_ops urn_adapter_ops;
/* The origin of a device that is opened over the channels that make(arg) makes. */
struct urn_verbs_origin urn_adapter_origin(urn_attach_make_fn make, void *arg);

/* Operations of the table, urn_adapter_ops. */
int urn_discover(void);
void urn_discover_forked(void);
int urn_query_device(struct ibv_context *c, struct ibv_device_attr_ex *attr);
int urn_query_port(struct ibv_context *c, struct ibv_port_attr *attr);
int urn_query_gid(struct ibv_context *c, uint32_t index, union ibv_gid *gid);
int urn_get_async_event(struct ibv_context *c, struct ibv_async_event *event);
int urn_raise_event(struct ibv_context *c, enum ibv_event_type type, void *queue);
struct ibv_pd *urn_alloc_pd(struct ibv_context *c);
int urn_dealloc_pd(struct ibv_pd *pd);
struct ibv_mr *urn_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access);
int urn_dereg_mr(struct ibv_mr *mr);
int urn_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 unsigned int access);
int urn_context_proof(struct ibv_context *c);
int urn_context_join(struct ibv_context *c, int cmd_fd);
struct ibv_pd *urn_import_pd(struct ibv_context *c, uint32_t handle);
struct ibv_mr *urn_import_mr(struct ibv_pd *pd, uint32_t handle);
struct ibv_mw *urn_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int urn_dealloc_mw(struct ibv_mw *mw);
struct ibv_ah *urn_create_ah(struct ibv_pd *pd, const struct ibv_ah_attr *attr);
int urn_destroy_ah(struct ibv_ah *ah);
struct ibv_comp_channel *urn_create_comp_channel(struct ibv_context *c);
int urn_destroy_comp_channel(struct ibv_comp_channel *channel);
int urn_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq);
struct ibv_cq_ex *urn_create_cq(struct ibv_context *c, const struct ibv_cq_init_attr_ex *attr);
int urn_resize_cq(struct ibv_cq *cq, uint32_t cqe);
int urn_destroy_cq(struct ibv_cq *cq);
struct ibv_srq *urn_create_srq(struct ibv_pd *pd, struct ibv_srq_attr *attr, const struct ibv_cq *cq);
int urn_modify_srq(struct ibv_srq *srq, const struct ibv_srq_attr *attr, int mask);
int urn_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int urn_destroy_srq(struct ibv_srq *srq);
struct ibv_qp *urn_create_qp(struct ibv_qp_init_attr_ex *attr);
int urn_modify_qp(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask);
int urn_connect_qp(struct ibv_qp *qp, const struct ibv_qp_attr *rtr, int rtr_mask,
	const struct ibv_qp_attr *rts, int rts_mask, enum ibv_qp_state *reached);
int urn_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init);
/* Wait, for a bounded time, until the posted requests of a UD or UC queue pair have gone. (drain.c)
 */
void urn_qp_drain(struct urn_adapter_qp *qp);
/* The same for all UD queue pairs of a context: an address handle of theirs may go. */
void urn_datagrams_drain(struct urn_ctx *ctx);
int urn_destroy_qp(struct ibv_qp *qp);
int urn_qp_mcast(struct ibv_qp *qp, const union ibv_gid *gid, bool attach);
int urn_align_qp(struct ibv_qp *qp, uint32_t line);
int urn_explain_error(struct ibv_context *c, uint32_t qpn, uint32_t status, char *text,
		      size_t size);
int urn_query_stores(struct ibv_mr *mr, struct urn_stores *stores);
int urn_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int urn_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int urn_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int urn_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int urn_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int urn_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* Note that an event of a queue was handed out: arming does not tell of the same completion again.
 */
void urn_cq_tell(struct urn_adapter_cq *cq);
extern const struct urn_verbs_cm_ops urn_adapter_cm_ops;
/*
 * The log of atomics that a queue pair's peer had the dataplane carry out (lib/abi/queue.h), also
 * when the dataplane is gone. (atomics.c)
 *
 * entries: set to its entries, a power of two
 * returns: the log, valid until the queue pair leaves its state or is destroyed; NULL: there is
 * none, the dataplane does not number atomics, or the queue's header makes no sense
 */
const struct urn_abi_atomic *urn_adapter_atomics(struct ibv_qp *qp, uint32_t *entries);

/* Completion queues, for other files (poll.c, clean.c). */
void urn_cq_init_poll(struct urn_adapter_cq *cq, uint64_t wc_flags);
/* The messages beside a queue that is mapped, and has them. */
static inline struct urn_abi_beside *
urn_cq_beside(const struct urn_adapter_cq *cq)
{
	return (void *)((uint8_t *)cq->hdr + urn_abi_beside_off(cq->entries));
}
/* Remove unread completions of a QP that is gone or reset. */
void urn_cq_clean(struct urn_adapter_cq *cq, uint32_t qpn);
/*
 * Read a queue's header in the area: the index to read from. entries: slots. A queue with messages
 * beside it keeps having them
 */
void urn_cq_map(struct urn_adapter_cq *cq, const struct urn_dev *dev, uint64_t off,
		uint32_t entries);
/* Before the control call that resizes: hide the queue. returns: 0; EBUSY: another resize runs */
int urn_cq_resize_begin(struct urn_adapter_cq *cq);
/* After that control call: show the queue at `off` and catch up. returns: 0 or an errno value */
int urn_cq_resize_end(struct urn_adapter_cq *cq, const struct urn_dev *dev, uint64_t off,
		      uint32_t entries);

/* ---- a dataplane in another process that is gone (gone.c) */

/* Keep the locks of contexts that watch usable in children of fork() from now on. */
void urn_gone_forks(void);
/* Let this context know of its dataplane's death, and of fork(), from now on. returns: 0 or an errno value */
int urn_gone_watch(struct urn_ctx *ctx);
/* End what urn_gone_watch() began, before the context's channel is closed. */
void urn_gone_unwatch(struct urn_ctx *ctx);
/* A pipe for events, whose write_fd is set, joins and leaves its context's list. */
void urn_gone_join(struct urn_ctx *ctx, struct urn_way *w);
void urn_gone_leave(struct urn_ctx *ctx, struct urn_way *w);
/* All pipes leave: the context is closed. */
void urn_gone_leave_all(struct urn_ctx *ctx);
/*
 * The dataplane is gone and the queue empty: make the missing completions up.
 * The queue's lock is held. returns: true when there is something to be read now
 */
bool urn_gone_fill(struct urn_adapter_cq *cq);
/* Make up an event of a channel whose dataplane is gone: an armed queue. NULL: none is left */
struct urn_adapter_cq *urn_gone_event(struct urn_channel *ch);
/* The completion that is to be read next; NULL: none yet (poll.c) */
struct urn_abi_cqe *urn_cq_next(const struct urn_adapter_cq *cq);
/* Let the queue look empty from now on (poll.c). */
void urn_cq_blind(struct urn_adapter_cq *cq);

/*
 * Write an event of the library's own to a channel: at once, or when the channel's reader has
 * made room. returns: 0, or an errno value (ENOMEM; EPIPE: the pipe ended, and its reader notices)
 */
int urn_channel_tell(struct urn_channel *ch, const struct urn_abi_event *ev);

/* Receive queues. */
/* freed: see struct urn_adapter_rq; set before urn_rq_reload() */
void urn_rq_map(struct urn_adapter_rq *rq, const struct urn_dev *dev, uint64_t off,
		uint32_t entries, uint32_t stride, const _Atomic uint32_t *freed);
/* Read the indices of a queue that is new, or empty again. */
void urn_rq_reload(struct urn_adapter_rq *rq);

/* Wait until `got` events of an object are acknowledged; a child of fork() waits for nobody. */
void urn_events_wait(const struct urn_dev *dev, pthread_mutex_t *lock, pthread_cond_t *cond, const uint32_t *acked, uint32_t got);

/* Set the ibv_wr_* operations of this QP. */
void urn_qp_init_wr(struct urn_adapter_qp *qp);

/* Convert address vectors, both ways; ah has a GID. */
void urn_av_from_ah(const struct ibv_ah_attr *ah, struct urn_abi_av *av);
void urn_av_to_ah(const struct urn_abi_av *av, struct ibv_ah_attr *ah);

/* Access flags that the dataplane knows, from verbs' ones. */
static inline uint32_t
urn_access(unsigned int access)
{
	return access & (URN_ACCESS_LOCAL_WRITE | URN_ACCESS_REMOTE_WRITE | URN_ACCESS_REMOTE_READ |
		URN_ACCESS_REMOTE_ATOMIC | URN_ACCESS_MW_BIND | URN_ACCESS_ZERO_BASED | URN_ACCESS_RELAXED);
}

#endif
