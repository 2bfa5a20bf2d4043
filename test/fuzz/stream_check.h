/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The surroundings of the stream machine that target_stream.c fuzzes, and what they hold its
 * actions against (stream_check.c).
 */
#ifndef URN_TEST_FUZZ_STREAM_CHECK_H
#define URN_TEST_FUZZ_STREAM_CHECK_H

#include "fuzz.h"

#include "stream/stream.h"

enum {
	STREAM_STEPS = 200,  /* steps of an input */
	STREAM_AREAS = 32,   /* sends and receives at once; 0 is not used */
	STREAM_BYTES = 1024, /* bytes of each, at most */
	STREAM_BUFFERS = 6,  /* BCopy buffers of an end, at most */
	STREAM_SIZE = 96,    /* bytes of each, at most */
	STREAM_SLOT = URN_ST_WIRE_MAX + STREAM_SIZE,
	STREAM_RECVS = URN_ST_CONTROL + STREAM_BUFFERS,
	STREAM_OPS = 64,	   /* requests on their way */
	STREAM_NAMED = 256,	   /* memories that the peer named */
	STREAM_AREA_SHIFT = 20,	   /* address of an area: its number, shifted */
	STREAM_KEY_AT = 40,	   /* place of a message's key (wire.h) */
	STREAM_ADVERT_KEY_AT = 72, /* ... of that of the advert on DATA */
};
_Static_assert(STREAM_NAMED > STREAM_STEPS, "a step names one memory: no key is used twice");

/* A send or receive of the program. */
struct stream_area {
	bool live, send;
	uint64_t bytes; /* length */
	uint64_t at;	/* send: place of its first byte in the stream */
	uint32_t reads; /* receive: reads into it under way */
	uint8_t mem[STREAM_BYTES];
};

/* A receive that the shell posted. */
struct stream_slot {
	bool held;	/* a message is in it, and FREE did not come */
	uint32_t bytes; /* length of what is in it */
	uint8_t mem[STREAM_SLOT];
};

struct stream_op {
	enum urn_st_act act;
	uint32_t area; /* READ: its receive */
};

/* Memory that a SinkAvail or SrcAvail of the peer named. */
struct stream_named {
	uint32_t key;
	uint64_t offset, bytes, addr;
};

struct stream_world {
	struct urn_st st;
	struct urn_st_piece pieces[STREAM_BUFFERS];
	struct stream_area area[STREAM_AREAS];
	struct stream_slot slot[STREAM_RECVS];
	uint32_t waiting;		 /* receives that are posted and empty */
	struct stream_op op[STREAM_OPS]; /* ring */
	uint32_t posted, completed;
	struct stream_named named[STREAM_NAMED];
	uint32_t keys;	       /* given out by the peer */
	uint64_t begun, got;   /* bytes of all sends; bytes received */
	uint32_t sends, recvs; /* open */
	uint32_t messages;     /* SENDs on their way */
	bool died, closed;     /* the machine said so */
	bool cut;	       /* the queue pair carries nothing any more */
	bool told_end;	       /* a receive of the stream's end came */
};

extern struct stream_world stream_w;

/* Write bytes of a stream. place: of the first one */
void stream_fill(uint8_t *to, uint64_t bytes, uint64_t place);
/* Take an action of the machine, which must be allowed. */
void stream_act(void *arg, const struct urn_st_action *a);

#endif
