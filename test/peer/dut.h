/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The product's side: one transport with its memory, on one engine, given its turns in
 * the order of dataplane/engine/engine.c, and a connected QP for each connection. No
 * other part of test/peer knows the product.
 */
#ifndef PEER_DUT_H
#define PEER_DUT_H

#include "flow.h"

enum { DUT_CONNS = 3, DUT_BURST = 32, DUT_RX = 4096 };

struct dut_cfg {
	struct pw_addr self, other;
	uint32_t window, kept, work;
	uint64_t rto_floor;      /* ns; 0: only the QP's timeout causes repeats */
	uint64_t late_seed;      /* memory answers late; 0: at once */
	bool foreign;            /* memory is another process's */
	uint32_t gate;           /* operations in flight that close its gate */
	struct rnd rng;
};

/* Parameters of one connection. */
struct dut_conn_cfg {
	uint32_t mtu, peer_qpn, sq_psn, rq_psn;
	uint8_t timeout, retry_cnt, rnr_retry, rnr_code;
	uint8_t max_rd, max_dest_rd;
};

struct dut;

/* returns: the product with an EAL; the EAL is the same for all runs of a process */
struct dut *dut_new(void);
void dut_free(struct dut *d);
void dut_open(struct dut *d, const struct dut_cfg *c, uint64_t now);
/* Make QP i, and fill `side` except for its ctx. returns: the QPN */
uint32_t dut_connect(struct dut *d, unsigned int i, const struct dut_conn_cfg *c,
		     struct flow_side *side);
/* send: gets the completions of the QP's requests; recv: those of its receives. */
void dut_flows(struct dut *d, unsigned int i, struct flow *send, struct flow *recv);
void dut_rx(struct dut *d, const uint8_t *frame, size_t len);
/* returns: ns: time of the next turn; UINT64_MAX: not before something comes */
uint64_t dut_due(const struct dut *d);
/* emit: called at once for each frame sent, of this connection or of any */
void dut_turn(struct dut *d, uint64_t now,
	      void (*emit)(void *ctx, const uint8_t *frame, size_t len), void *ctx);
/* returns: NULL, or a sentence about an object left behind */
const char *dut_close(struct dut *d);
/* True when QP i is in the error state. */
bool dut_in_error(const struct dut *d, unsigned int i);

#endif
