/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames and requests of an input's records (record.h), made of values that make sense at
 * that moment: the PSN that is due, a QP that exists, a valid key. The node's memory lies
 * at NODE_VA and NODE_SHUT_VA (node.h).
 */
#ifndef URN_TEST_WORDS_H
#define URN_TEST_WORDS_H

#include "node.h"

/* Values that the numbers of a record choose from. */
struct fuzz_words {
	const struct urn_tp *tp[NODE_QPS]; /* the transport that has the QP */
	const struct urn_qp *qp[NODE_QPS];
	uint32_t key[NODE_KEYS]; /* number k: node_key() */
	uint32_t key_shut, window;
	struct frame_addr self, peer, other;
	bool loop; /* QP 1 is connected to itself */
};

/* The way in which a record's frame is given. */
struct words_way {
	bool split; /* in two segments */
	bool turn;  /* and followed by a turn at once */
};

/*
 *  Read a RECORD_FRAME or RECORD_RAW, and write its frame to out (FRAME_ROOM bytes). returns: its
 *  length
 */
uint32_t words_frame(const struct fuzz_words *w, struct fuzz_in *in, uint8_t *out,
		     struct words_way *way);
uint32_t words_raw(const struct fuzz_words *w, struct fuzz_in *in, uint8_t *out,
		   struct words_way *way);

/* Read a RECORD_POST. returns: number of the QP that it is posted to */
unsigned int words_post(const struct fuzz_words *w, struct fuzz_in *in, struct node_send *s);

/* A receive of the program. */
struct words_recv {
	unsigned int qp;
	uint64_t addr;
	uint32_t lkey, len;
	bool broken; /* with more elements than its queue has */
};
struct words_recv words_recv(const struct fuzz_words *w, struct fuzz_in *in);
/* The state that a RECORD_STATE moves a QP to: node_state(). */
uint8_t words_state(struct fuzz_in *in, unsigned int *qp);
/*
 * Work in flight before the first record, if the last byte of the head, `how`, asks for
 * it: the k-th request and receive of QP `qp`. returns: true when there is one
 */
bool words_begin(const struct fuzz_words *w, uint8_t how, unsigned int qp, unsigned int k,
		 struct node_send *s, struct words_recv *r);

/* The frames that came last, for the wire to duplicate. */
struct words_past {
	struct {
		uint8_t bytes[FRAME_ROOM];
		uint32_t len;
	} frame[8];
	unsigned int n; /* frames that came; those before the last 8 are forgotten */
};
void words_came(struct words_past *past, const uint8_t *bytes, uint32_t len);
/* The frame that a RECORD_AGAIN duplicates. returns its length; 0: there is none */
uint32_t words_again(const struct words_past *past, uint8_t which, const uint8_t **bytes);

/* Read the node's configuration: RECORD_HEAD bytes but the last. */
struct node_config words_head(struct fuzz_in *in);

#endif
