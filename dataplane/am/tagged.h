/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers of peers at their target (AM-4 to AM-7, AM-10): tagged writes and reads, and pipelined
 * writes with one reply for several packets. A transfer is known by the endpoint, the initiator and
 * the tag.
 *
 *   transfer.c     the table of transfers, data that came early, retired tags
 *   rma_queue.c    RMA queue: requests that wait for the progress module
 *   progress.c     RMA progress module: posts receives, sends data and answers
 *   tag_target.c   packets that come for transfers
 *   tag_initiator.c  the initiator's side: ways, tags, packets, answers
 *
 *   EARLY ─► QUEUED ─► OPEN ─► ENDED ─► (answer sent) free; after an error the tag is retired
 */
#ifndef URN_AM_TAGGED_H
#define URN_AM_TAGGED_H

#include "am/priv.h"
#include "base/hash.h"

enum {
	URN_AM_TRANSFERS = 1024,     /* transfers of peers on an engine */
	URN_AM_NODE_TRANSFERS = 128, /* ... of the nodes of a bucket */
	URN_AM_KEEP_TRANSFERS = 4,   /* ... that the others leave to them */
	URN_AM_EARLY = 512,	     /* packets that came before their request, on an engine */
	URN_AM_NODE_EARLY = 128,     /* ... of the nodes of a bucket */
	URN_AM_KEEP_EARLY = 2,	     /* ... that the others leave to them */
	URN_AM_RETIRED = 1024,	     /* retired tags that an engine remembers */
	URN_AM_PAST = 1024,	     /* ... and tags of peers' transfers that ended well */
	URN_AM_CANCELS = 64,	     /* cancels that wait for room for their message */
	URN_AM_RMA_QUEUE = 256,	     /* requests on the queue of writes, and on that of reads */
	URN_AM_BACK_WINDOW = 128,    /* packets of a tagged read under way */
	URN_AM_BACK_SPARE = 32, /* replies of a bucket of nodes that tagged reads leave to others */
	URN_AM_POSTS = 8,	/* requests that the progress module takes in a turn */
	URN_AM_STEPS = 16,	/* packets that it places or sends in a turn */
};

/* X(NAME, word): states of a transfer, each with the thing that it waits for. */
#define URN_AM_TRANSFER_STATES(X)                                       \
	X(FREE, "free")	    /* nothing: there is none */                \
	X(EARLY, "early")   /* its request */                           \
	X(QUEUED, "queued") /* the progress module; on the RMA queue */ \
	X(OPEN, "open")	    /* data, or acknowledgements of it */       \
	X(ENDED, "ended")   /* room for its answer */

enum urn_am_transfer_state {
#define X(name, word) URN_AM_TRANSFER_##name,
	URN_AM_TRANSFER_STATES(X)
#undef X
};

/* A packet of a tagged write that came before its request. */
struct urn_am_early {
	struct urn_am_early *next; /* next of the same transfer, or the next free one */
	uint32_t off, len;	   /* bytes of the operation before it; its bytes */
	uint8_t data[URN_AM_CHUNK_MAX];
};

struct urn_am_transfer {
	uint64_t tag;			   /* the initiator's */
	uint64_t qid;			   /* number of the initiator's endpoint */
	uint8_t node[16];		   /* GID of its node */
	struct urn_am_ep *ep;		   /* target endpoint */
	uint64_t addr, key;		   /* those of the request; valid from QUEUED on; 0: PART */
	uint64_t at;			   /* ns: when something of it came or went last */
	struct urn_am_early *early;	   /* packets that came early; owner */
	TAILQ_ENTRY(urn_am_transfer) link; /* in the RMA queue, or among those with a turn */
	LIST_ENTRY(urn_am_transfer) of_ep; /* among those of its endpoint */
	uint32_t len;			   /* bytes; valid from QUEUED on */
	uint32_t done;			   /* bytes placed; read: bytes that the initiator took */
	uint32_t sent;			   /* read: bytes that packets were made of */
	uint32_t serial;      /* differs from those of earlier transfers of the entry */
	uint32_t next;	      /* the pool's, or the hash's */
	uint16_t outs;	      /* read: packets under way */
	uint16_t chunk;	      /* read: bytes of each packet but the last; valid from QUEUED on */
	uint8_t kind;	      /* URN_AM_K_TAG_WRITE, _TAG_READ or _PART */
	uint8_t state;	      /* enum urn_am_transfer_state */
	uint8_t code;	      /* enum urn_am_code; valid with ENDED */
	uint8_t every, since; /* PART: packets for one reply; packets since the last */
	uint8_t bucket;	      /* bucket of its node */
	bool turn;	      /* has a turn of the progress module */
	bool due;	      /* PART: a reply about `done` is to be sent */
};

TAILQ_HEAD(urn_am_transfers, urn_am_transfer);

/* The RMA queue: requests that the handlers took and the progress module has not begun. */
struct urn_am_rma_queue {
	struct urn_am_transfers writes, reads; /* the oldest first */
	uint32_t writes_n, reads_n;	       /* at most URN_AM_RMA_QUEUE each */
	bool read_next;			       /* a read has the next turn, if there is one */
};

/* A tag that was retired. */
struct urn_am_retired {
	uint64_t tag, qid; /* tag; number of the other endpoint */
	uint8_t node[16];  /* GID of its node */
	bool ours;	   /* the operation was ours; else a peer's */
	uint32_t next;	   /* the hash's */
};

/* The tag of a peer's transfer that ended well. */
struct urn_am_past {
	uint64_t tag, qid; /* tag; number of the initiator's endpoint; 0: none */
	uint8_t node[16];  /* GID of its node */
};

/* An operation that was given up here, and whose target is to be told. */
struct urn_am_cancel {
	uint64_t tag;	  /* the operation's tag */
	uint64_t to;	  /* number of the target endpoint */
	uint64_t from;	  /* number of the endpoint that gave up, which may have ended since */
	uint64_t at;	  /* ns: when it gave up */
	uint32_t len;	  /* bytes of the operation */
	uint8_t code;	  /* enum urn_am_code: why, without MAY_BE_THERE */
	uint8_t node[16]; /* GID of the target's node */
};

struct urn_am_tagged {
	struct urn_source_ops_user user;  /* the progress module as a source of work */
	struct urn_source_timer timer;	  /* started while there are transfers */
	struct urn_am_transfer *transfer; /* URN_AM_TRANSFERS; owner */
	struct urn_am_transfer *last;	  /* the one that was found last; NULL: none */
	struct urn_pool pool;		  /* free ones */
	struct urn_hash hash;		  /* those that are not free */
	uint32_t n;			  /* not free */
	uint16_t node[URN_AM_NODES];	  /* ... by bucket of nodes */
	uint32_t kept;			  /* ... that are kept for buckets with few */
	struct urn_am_rma_queue queue;
	struct urn_am_transfers
		turn;		/* transfers that the progress module has something to do for */
	uint32_t turns, misses; /* transfers there; turns since one of them found room */
	struct urn_am_early *early_free; /* packets that came early: free ones */
	uint32_t early_n;		 /* not free */
	uint16_t node_early[URN_AM_NODES];
	uint32_t early_kept;		/* packets that are kept for buckets with few */
	struct urn_am_retired *retired; /* URN_AM_RETIRED, a ring; owner */
	uint32_t retired_n;		/* retired so far; wraps */
	struct urn_hash retired_hash;
	struct urn_am_past *past; /* URN_AM_PAST, by hash: the newest of a place; owner */
	struct urn_am_cancel cancel[URN_AM_CANCELS]; /* a ring, the oldest at cancel_head */
	uint32_t cancel_head, cancels; /* place of the oldest; number of those that wait */
};

/* ---- transfer.c */

/* returns: NULL: no memory */
struct urn_am_tagged *urn_am_tagged_create(uint64_t seed);
/* All transfers have ended. NULL is taken */
void urn_am_tagged_destroy(struct urn_am_tagged *tg);
/* The word for a state; for people. */
const char *urn_am_transfer_word(uint8_t state);
/* The transfer of a peer under a tag; NULL: none. */
struct urn_am_transfer *urn_am_transfer_find(struct urn_am_tagged *tg, const struct urn_am_ep *ep,
					     const struct urn_flow_from *from, uint64_t tag);
/* Make a transfer in the state EARLY. NULL: the node or the engine has too many */
struct urn_am_transfer *urn_am_transfer_new(struct urn_tp *tp, struct urn_am_ep *ep,
					    const struct urn_flow_from *from, uint64_t tag);
/* Forget a transfer. retire: its tag, too */
void urn_am_transfer_drop(struct urn_tp *tp, struct urn_am_transfer *t, bool retire);
/* End a transfer with an error, which the progress module tells the initiator. */
void urn_am_transfer_fail(struct urn_tp *tp, struct urn_am_transfer *t, uint8_t code);
/* Keep a packet that came early. returns: false: no room */
bool urn_am_early_keep(struct urn_am_tagged *tg, struct urn_am_transfer *t,
		       const struct urn_am_msg *m);
/* Free the first early packet of a transfer. */
void urn_am_early_put(struct urn_am_tagged *tg, struct urn_am_transfer *t);
/* Remember that a tag is retired; the oldest is forgotten. node, qid: the other side */
void urn_am_retire(struct urn_am_tagged *tg, const uint8_t node[16], uint64_t qid, uint64_t tag,
		   bool ours);
/* True when the tag is remembered as retired. */
bool urn_am_is_retired(const struct urn_am_tagged *tg, const uint8_t node[16], uint64_t qid,
		       uint64_t tag, bool ours);
/* A transfer ended well: remember its tag, in the place of another perhaps. */
void urn_am_past_note(struct urn_am_tagged *tg, const struct urn_am_transfer *t);
/* True when the tag is remembered as one whose transfer ended well. */
bool urn_am_is_past(const struct urn_am_tagged *tg, const struct urn_flow_from *from, uint64_t tag);
/* Forget the transfers of an endpoint that ends; their initiators are told when there is room. */
void urn_am_transfers_close(struct urn_tp *tp, struct urn_am_ep *ep);

/* ---- cancel.c */

/* Tell a target that an operation was given up, now or when a message to its node has room. *c is
 * copied. After 10 s, and beyond URN_AM_CANCELS, the target is not told (am_untold): it finds out
 * by itself in 10 s. */
void urn_am_cancel(struct urn_tp *tp, const struct urn_am_cancel *c);
/* Try each cancel that waits once: room for messages came back. */
void urn_am_cancel_retry(struct urn_tp *tp);

/* ---- rma_queue.c */

void urn_am_rma_init(struct urn_am_rma_queue *q);
/* True when a request of the kind has room. */
bool urn_am_rma_room(const struct urn_am_rma_queue *q, uint8_t kind);
/* Put a request on the queue, which has room. */
void urn_am_rma_put(struct urn_am_rma_queue *q, struct urn_am_transfer *t);
/* Take a request, which is there, out of its turn. */
void urn_am_rma_remove(struct urn_am_rma_queue *q, struct urn_am_transfer *t);
/* Take the next request: writes and reads in turn, the oldest first. NULL: none */
struct urn_am_transfer *urn_am_rma_take(struct urn_am_rma_queue *q);

/* ---- progress.c */

/* The operations of the progress module as a source of work. */
extern const struct urn_source_ops urn_am_progress_ops;
/* Let the progress module have a turn. */
void urn_am_progress_sched(struct urn_tp *tp);
/* Let it have a turn for a transfer. */
void urn_am_progress_add(struct urn_tp *tp, struct urn_am_transfer *t);
/* A transfer has no more turn. */
void urn_am_progress_remove(struct urn_am_tagged *tg, struct urn_am_transfer *t);
/* Begin with a request that is on the RMA queue: data for it came. */
void urn_am_progress_begin(struct urn_tp *tp, struct urn_am_transfer *t);
/* Send a transfer's answer, or the reply about bytes placed so far. returns: false: no room now */
bool urn_am_progress_answer(struct urn_tp *tp, struct urn_am_transfer *t);
/* Place bytes of a tagged write. off: bytes of the operation before them */
void urn_am_progress_place(struct urn_tp *tp, struct urn_am_transfer *t, uint32_t off, uint32_t len,
			   const uint8_t *data);
/* A packet of a tagged read was answered by its flow, which has forgotten it. returns: true: the
 * packet is to be sent again */
bool urn_am_back_answered(struct urn_tp *tp, const struct urn_am_out *o, uint8_t code);

#endif
