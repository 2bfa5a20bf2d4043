/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A few nodes with flows, joined by a wire that can lose, double and delay frames, in one thread under
 * a clock of the test's own. Each node has a user of flows that keeps what was delivered to it.
 */
#ifndef URN_TEST_FLOW_NET_H
#define URN_TEST_FLOW_NET_H

#include "transport/flow_priv.h"

enum {
	FLOW_NET_NODES = 4,
	FLOW_NET_QUEUES = 64, /* queues of a node: slots of queue ids */
	FLOW_NET_WIRE = 4096, /* frames under way */
	FLOW_NET_LOG = 65536, /* messages noted by a node */
};

#define FLOW_NET_STEP 1000ull /* ns from one turn of all nodes to the next */

/* A message that was delivered. */
struct flow_got {
	uint64_t qid, src_qid;
	uint32_t len;
	uint32_t tag;         /* first four bytes of the message; 0 if it is shorter */
	bool own, whole;      /* whole: all bytes are those of flow_send() */
	uint8_t node[16];
};

/* A message that is sent, with its answer. */
struct flow_sent {
	struct urn_flow_msg m; /* first */
	uint8_t *data;
	uint8_t *head; /* copy of the first bytes, when the others are gathered; NULL: none are */
	bool gone;     /* gather() finds no bytes any more */
	uint8_t code;          /* answer; 0: none yet */
	unsigned int answers;
	unsigned int gathers; /* calls of gather() */
	void (*then)(struct urn_tp *tp,
		     struct flow_sent *s); /* called when answered; NULL: nothing is */
};

struct flow_node {
	struct flow_net *net;
	struct urn_tp *tp;
	struct urn_mem *mem;
	struct urn_memx *memx;
	struct flow_got *got;
	uint32_t got_n;
	uint8_t refuse[FLOW_NET_QUEUES]; /* code that a queue answers with; 0: it takes messages */
	uint8_t admit;                   /* code of admit(); 0: by refuse[] */
	int neigh;                       /* result of looking up a MAC address */
	uint8_t mac[6], gid[16];
};

struct flow_frame {
	struct rte_mbuf *m;
	uint64_t due;
	unsigned int to;
};

struct flow_net {
	struct flow_node node[FLOW_NET_NODES];
	unsigned int nodes;
	uint64_t now;
	uint64_t seed;
	uint32_t lose, twice, late;   /* percent of frames lost; doubled; delayed */
	uint32_t late_acks;           /* percent of acknowledgements that take up to 1 ms */
	uint32_t lose_opcode;         /* frames with this opcode are lost; 0: none */
	bool cut;                     /* all frames are lost */
	bool mark;                    /* all data frames get a mark of congestion */
	uint64_t line;                /* bytes a second, for congestion control; 0: none */
	uint64_t delay;               /* ns that a frame takes */
	struct urn_tp_share *owner; /* client whose messages flow_send_head() sends; NULL: nobody */
	uint32_t work; /* packets in flight that a node has room for; 0: 4096; set before opening */
	uint16_t flow_mtu[FLOW_NET_NODES]; /* bytes that each node's port carries behind the flow
					      header; 0: the path MTU; set before opening */
	uint32_t carries; /* bytes of the longest frame that the wire carries; 0: any */
	void (*watch)(
		void *ctx,
		const struct rte_mbuf *m); /* a node sends a frame; NULL: nobody wants to know */
	void *watch_ctx;
	void (*hold)(
		struct urn_tp *tp);   /* a node's frames are about to go; NULL: nothing is done */
	uint64_t frames;              /* frames that nodes sent */
	struct flow_frame wire[FLOW_NET_WIRE];
	unsigned int wire_n;
};

/* Make a net of nodes 0, 1, ..., all up for long. The test fails when that fails. */
void flow_net_open(struct flow_net *n, unsigned int nodes, uint64_t seed);
void flow_net_close(struct flow_net *n);
/* The same with a net from the heap, which is all zero otherwise. */
struct flow_net *flow_net_new(unsigned int nodes, uint64_t seed);
void flow_net_end(struct flow_net *n);
/* A counter of a node. */
uint64_t flow_net_count(const struct flow_net *n, unsigned int node, enum urn_counter c);
/* Make a node anew: as after a restart. A young node asks before it takes first packets. */
void flow_net_restart(struct flow_net *n, unsigned int i);
/* Give all nodes a turn, until `ns` have gone by. */
void flow_net_run(struct flow_net *n, uint64_t ns);
/* The same until the message is answered, at most `ns`. */
void flow_net_until(struct flow_net *n, const struct flow_sent *s, uint64_t ns);
/* Number of a queue of a node. */
uint64_t flow_qid(unsigned int slot);
/* Send a message of `len` bytes that begins with tag. returns: the result of urn_flow_send() */
uint8_t flow_send(struct flow_net *n, unsigned int from, unsigned int to, uint64_t qid, uint32_t len,
		  uint32_t tag, struct flow_sent *s);
/* The same with bytes that the flow gathers but for the first `head` ones. */
uint8_t flow_send_head(struct flow_net *n, unsigned int from, unsigned int to, uint64_t qid,
		       uint32_t len, uint32_t tag, uint8_t head, struct flow_sent *s);
/* The same to queue 0 of the node with an address, which may be none of the net; for a client. */
uint8_t flow_send_as(struct flow_net *n, unsigned int from, const uint8_t gid[16],
		     struct urn_tp_share *owner, uint32_t len, uint32_t tag, struct flow_sent *s);
void flow_sent_free(struct flow_sent *s);
/* Put a frame on the wire, as if it came from there. */
void flow_net_inject(struct flow_net *n, unsigned int to, const uint8_t *frame, uint32_t len);

#endif
