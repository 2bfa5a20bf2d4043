/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames and requests of an input's records (record.h), made of what makes sense
 * at that moment: the PSN that is due, a QP that exists, a valid key. Of a node
 * whose memory lies at NODE_VA and NODE_SHUT_VA (node.h).
 */
#ifndef URN_TEST_WORDS_H
#define URN_TEST_WORDS_H

#include "node.h"

/* What the numbers of a record choose from. */
struct words {
	const struct urn_tp *tp[NODE_QPS]; /* that has the QP */
	const struct urn_qp *qp[NODE_QPS];
	uint32_t key[NODE_KEYS]; /* number k: node_key() */
	uint32_t key_shut, window;
	struct frame_addr self, peer, other;
	bool loop; /* QP 1 is connected to itself */
};

/* How a record wants its frame to be given. */
struct words_way {
	bool split; /* in two segments */
	bool turn;  /* and a turn made at once */
};

/* Read a RECORD_FRAME, or RECORD_RAW, and write its frame to out (FRAME_ROOM bytes). returns: its
 * length */
uint32_t words_frame(const struct words *w, struct fuzz_in *in, uint8_t *out,
		     struct words_way *way);
uint32_t words_raw(const struct words *w, struct fuzz_in *in, uint8_t *out, struct words_way *way);

/* Read a RECORD_POST. returns: number of the QP that it is posted to */
unsigned int words_post(const struct words *w, struct fuzz_in *in, struct node_send *s);

/* A receive of the program's. */
struct words_recv {
	unsigned int qp;
	uint64_t addr;
	uint32_t lkey, len;
	bool broken; /* with more elements than its queue has */
};
struct words_recv words_recv(const struct words *w, struct fuzz_in *in);
/* To which state a RECORD_STATE moves a QP: node_state(). */
uint8_t words_state(struct fuzz_in *in, unsigned int *qp);
/*
 * What is under way before the first record, if the last byte of the head says `how`: the
 * k-th request and receive of QP `qp`. returns: is there one?
 */
bool words_begin(const struct words *w, uint8_t how, unsigned int qp, unsigned int k,
		 struct node_send *s, struct words_recv *r);

/* Frames that came last, for the wire to bring again. */
struct words_past {
	struct {
		uint8_t bytes[FRAME_ROOM];
		uint32_t len;
	} frame[8];
	unsigned int n; /* that came; those before the last 8 are forgotten */
};
void words_came(struct words_past *past, const uint8_t *bytes, uint32_t len);
/* The frame that a RECORD_AGAIN wants. returns its length; 0: there is none */
uint32_t words_again(const struct words_past *past, uint8_t which, const uint8_t **bytes);

/* How the node is made: RECORD_HEAD bytes but the last. */
struct node_config words_head(struct fuzz_in *in);

#endif
