/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole dataplane under fire: two engines, an adapter on both whose port leads to a
 * wire driven by the input, and a second adapter that waits. A program has three live QPs
 * on the first, through the verbs, connected to nodes that do not exist. At the end of an
 * input both adapters must still serve others.
 *
 *   program ── adapter a ═ port ── net_ring ── wire: the input
 *              (engines 0, 1)                    │ at the end
 *   others ─── adapter b ═ port ── net_ring ─────┘
 *
 * Memory, addresses, keys and numbers of QPs are those of node.h; time is virtual.
 */
#ifndef URN_TEST_WHOLE_H
#define URN_TEST_WHOLE_H

#include <urnic/attach.h>
#include <urnic/verbs.h>

#include "control/objects.h"
#include "node.h"
#include "words.h"

enum { WHOLE_ENGINES = 2, WHOLE_GUESTS = 4, WHOLE_CM_SEEN = 8 };

#define WHOLE_RECV (1ull << 63) /* bit of a wr_id: a receive's */

/* The ports of one configuration; made once a process, for that takes long. */
struct whole_cables {
	struct urn_port *port[2]; /* ports of adapter a and b */
	struct urn_port *wire[2]; /* the other ends of their cables */
};

struct whole_qp {
	struct ibv_qp *qp;
	uint32_t sent, sent_seen; /* requests posted; requests done */
	uint64_t quiet;		  /* bit sent % NODE_SLOTS: the request is not signalled */
	uint32_t recvs, recvs_seen;
};

/* State of the wire. */
enum whole_wire {
	WHOLE_DEAF = 1,	 /* nobody answers ARP, neighbour discovery and link requests */
	WHOLE_HELD = 2,	 /* the port's transmit queue is not emptied */
	WHOLE_SECOND = 4, /* frames come in on the port's second queue, where there is one */
	WHOLE_BOTH = 8,	 /* ... on either in turn */
	WHOLE_DOWN = 16, /* no link */
};

struct whole {
	struct node_config cfg;
	struct whole_cables *cables;
	struct urn_dp *dp;
	struct urn_adapter *a;	    /* the adapter under fire */
	struct urn_abi_channel *ch; /* channel of the program; part of ctx */
	struct ibv_context *ctx;
	struct ibv_comp_channel *channel; /* NULL: none */
	struct ibv_pd *pd, *other_pd;
	struct ibv_cq *cq[3]; /* sends; receives; QP 1 */
	struct ibv_srq *srq;
	struct ibv_ah *ah;
	struct ibv_mr *mr, *local, *shut, *other_mr;
	struct ibv_mw *mw;
	struct whole_qp q[NODE_QPS];
	struct ibv_context *guest[WHOLE_GUESTS];
	struct frame_addr self, peer, other;
	uint8_t *ram;
	uint32_t srq_posted, srq_done;
	uint8_t srq_got[1024]; /* by the receive's number: it has completed */
	uint8_t wire;	       /* enum whole_wire */
	uint32_t put;	       /* frames sent to the port */
	uint32_t given;	       /* ... that the port took */
	bool cut;	       /* the link was down at least once */
	bool open_wire;	       /* the wire leads to adapter b */
	uint64_t link_tid;     /* transaction id of the last link request seen */
	struct {
		uint32_t id, tid;
	} cm[WHOLE_CM_SEEN]; /* messages seen on the wire */
	uint32_t cm_n;
	uint32_t id[WHOLE_CM_SEEN]; /* connection ids that the program got */
	uint32_t ids;
};

/* Call once a process. */
void whole_init(void);
/* two_queues: the port has two; else the second engine sends through the first. */
void whole_open(struct whole *w, const struct node_config *cfg, bool two_queues);
/* All requests come to an end, others are served, and nothing is left. */
void whole_close(struct whole *w);
/* Open the dataplane and its memory only: without a program of ours. */
void whole_open_bare(struct whole *w, const struct node_config *cfg, bool two_queues);
void whole_close_bare(struct whole *w);

/* Virtual time, ns. whole_wire.c */
uint64_t whole_now(void);
/* Let time pass, then run a turn of the engines whose bit is set, and of the wire. */
void whole_turn(struct whole *w, uint64_t ns, unsigned int engines);
/* Send a frame to the port. */
void whole_put(struct whole *w, const uint8_t *bytes, uint32_t len, bool split);
/* Set the wire's state from now on. */
void whole_set_wire(struct whole *w, uint8_t how);
/* Drop the frames on the wire. */
void whole_drain(struct whole_cables *c);

/* Calls of the program: see node.h. */
void whole_post(struct whole *w, unsigned int i, const struct node_send *s);
void whole_recv(struct whole *w, const struct words_recv *r);
void whole_state(struct whole *w, unsigned int i, uint8_t to);
void whole_dereg(struct whole *w);
void whole_rereg(struct whole *w);
/* Another program comes, or goes. */
void whole_guest(struct whole *w, uint8_t which);

/* Completions: each request's once, in order. whole_check.c */
void whole_poll(struct whole *w);
/* The QP was reset: its requests without a completion never complete. */
void whole_forget(struct whole *w, unsigned int i);
/* True when the QPs in the error state have come to rest. */
bool whole_at_rest(const struct whole *w);
void whole_check_end(struct whole *w);
/* A new program moves bytes between the adapters, and between its own QPs. */
void whole_serves(struct whole *w);

enum { WHOLE_BYTES = 3000 };

/* One of two programs with a connected QP each. */
struct whole_end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	union ibv_gid gid;
	uint8_t buf[2 * WHOLE_BYTES];
	unsigned int good; /* completions without an error */
};
/* Two programs on adapters x and y (0, 1). */
void whole_pair_open(struct whole *w, struct whole_end e[2], unsigned int x, unsigned int y);
/* Bytes go from the first to the second, by WRITE and SEND. returns: true when they arrived */
bool whole_pair_transfer(struct whole *w, struct whole_end *from, struct whole_end *to,
			 uint8_t first);
void whole_pair_close(struct whole_end e[2]);

/* The dataplane's side of a QP. */
static inline struct urn_tp *
whole_tp(const struct whole *w, unsigned int i)
{
	return w->a->shard[urn_qpn_engine(w->q[i].qp->qp_num)]->tp;
}

static inline struct urn_qp *
whole_urn_qp(const struct whole *w, unsigned int i)
{
	return urn_tp_qp(whole_tp(w, i), w->q[i].qp->qp_num);
}

#endif
