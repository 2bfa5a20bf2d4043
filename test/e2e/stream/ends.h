/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ends of a byte stream that test each other (ends.c, exchange.c). */
#ifndef TEST_E2E_STREAM_ENDS_H
#define TEST_E2E_STREAM_ENDS_H

#include <urnic/attach.h>
#include <urnic/stream.h>

#include <stdbool.h>
#include <stdint.h>

enum { ENDS_MAGIC = 0x656e6473, ENDS_MOST = 3 << 20 };

/* Kinds of a test that a client wishes. */
enum ends_mode {
	ENDS_EXCHANGE, /* both ends send `bytes`, at once */
	ENDS_HALF,     /* the client sends `bytes` and shuts down; then the server sends as many */
	ENDS_PING,     /* `bytes` pings of one byte, each answered */
	ENDS_HOLD,     /* the client sends nothing more, and stays */
	ENDS_DROP,     /* the server reads `bytes`, and reads no more */
	ENDS_GUSH,     /* the server sends `bytes` in one call; for a peer that is hostile */
	ENDS_IDLE,     /* the server reads nothing until the connection breaks; the same */
	ENDS_MODES,
};

struct ends_wish {
	uint32_t magic; /* ENDS_MAGIC */
	uint32_t mode;	/* enum ends_mode */
	uint64_t seed;	/* seed of sizes, and of the bytes both ways */
	uint64_t bytes; /* see the mode */
};

/* Memory of one direction of an end. */
struct ends_memory {
	struct urn_stream_node *node; /* set when the memory was added; NULL: it was not */
	bool added;		      /* it is of urn_alloc() */
	uint8_t *buf;		      /* ENDS_MOST bytes */
};

/* Get memory; added: of urn_alloc(), and registered for long. returns: 0, or why it is not
 * registered; the memory is there all the same */
int ends_memory_get(struct ends_memory *m, struct urn_stream_node *node, bool added);
void ends_memory_put(struct ends_memory *m);

/*
 * Send, or receive and compare, bytes of a seed in random sizes, to the number that is given. vec:
 * by several pieces of memory, and some calls that do not wait.
 *
 * returns: 0, or an errno value of the call that failed; the program ends when a byte is wrong
 */
int ends_send(struct urn_stream *s, struct ends_memory *m, uint64_t seed, uint64_t bytes, bool vec);
int ends_recv(struct urn_stream *s, struct ends_memory *m, uint64_t seed, uint64_t bytes, bool vec);
/* Both at once, in two threads. */
int ends_exchange(struct urn_stream *s, struct urn_stream_node *node, const struct ends_wish *w,
		  bool server, bool added);
/* Answer, or send, pings; by urn_stream_poll() and calls that do not wait. */
int ends_ping(struct urn_stream *s, const struct ends_wish *w, bool server);
/* The stream has to end here. returns: 0, or an errno value */
int ends_end(struct urn_stream *s);

#endif
