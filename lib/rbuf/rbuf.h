/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring buffer in a peer's memory, which one side fills by RDMA writes and the other empties
 * (doc/inside/aligned-writes.md "A ring in the peer's memory").
 *
 *   writer                                      reader
 *   ------                                      ------
 *   bytes of the program  ── data writes ─────► ring, `size` bytes, on a line
 *   prod                  ── note, last ──────► note.bytes: all bytes written so far
 *   note.bytes            ◄── note ──────────── cons: all bytes read so far
 *
 * The functions are pure: they know of no queue pair, post nothing, and read no clock. The writer
 * gets a list of writes, to be posted in their order on one reliable queue pair: the note, which
 * tells how much data is there, comes last, so that it is never there before the data (AW-5). A
 * note is a plain write, and takes no receive.
 *
 * The peer is not trusted: a count in a note that can't be is an error, and nothing else.
 *
 * Each struct belongs to one thread at a time.
 */
#ifndef URN_RBUF_RBUF_H
#define URN_RBUF_RBUF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	URN_RBUF_LINE_MAX = 256, /* bytes of the longest cache line (AW-1) */
	URN_RBUF_WRITES = 5,	 /* writes of one append, at most */
};

/* Switches of a writer (AW-4). Without a known line of the peer none has an effect. */
enum urn_rbuf_how {
	URN_RBUF_PAD = 1 << 0, /* fill the last line of the data, as far as it is free; later data
				  overwrites it */
	URN_RBUF_ROUND_UP =
		1 << 1, /* start the data on the next line, and write the skipped part behind it */
	/* With ROUND_UP: both parts in one write, which the queue pair puts on lines
	 * (urnic/align.h). Without: the ring makes two writes of them. */
	URN_RBUF_ONE = 1 << 2,
};

/* The place in one side's memory that the other side writes its count to; a line of its own. */
struct urn_rbuf_note {
	_Atomic uint64_t
		bytes; /* bytes written, or read, since the start; the other side's, by RDMA */
	uint8_t rest[URN_RBUF_LINE_MAX - 8]; /* keeps the line free of anything else */
} __attribute__((aligned(URN_RBUF_LINE_MAX)));

/* One RDMA write that is to be posted. */
struct urn_rbuf_write {
	uint64_t at;	/* data: offset in the peer's ring; note: 0 */
	uint32_t from;	/* data: offset in the bytes that are appended; note: 0 */
	uint32_t bytes; /* data: bytes of those; note: 8, of `count` */
	uint32_t pad;	/* bytes of no meaning behind the data, to be written with it; 0 mostly */
	bool note;	/* to the peer's note instead of the ring */
	bool reshape;	/* the queue pair is to put the write on lines of the peer */
	uint64_t count; /* note: its value */
};

/* The writing side. */
struct urn_rbuf_out {
	const struct urn_rbuf_note *note; /* bytes that the peer has read; owner: the caller */
	uint64_t size; /* bytes of the ring: a power of two, at least 2 lines of 256 */
	uint64_t prod; /* bytes appended since the start */
	uint32_t line; /* bytes of the peer's cache line: 64, 128, 256; 0: not known */
	uint32_t how;  /* enum urn_rbuf_how */
};

/* The reading side. */
struct urn_rbuf_in {
	const uint8_t *ring;		  /* size bytes, on a line of 256; owner: the caller */
	const struct urn_rbuf_note *note; /* bytes that the peer has written; owner: the caller */
	uint64_t size;			  /* bytes of the ring, as of the writer */
	uint64_t cons;			  /* bytes taken since the start */
	uint64_t told;			  /* value of cons that the peer was told last */
};

/* ---- writer */

/*
 * Begin with an empty ring. size: bytes; line: bytes of the peer's line, 0: not known; how: enum
 * urn_rbuf_how. returns: 0; EINVAL: no size of a ring, or no line
 */
int urn_rbuf_out_init(struct urn_rbuf_out *o, const struct urn_rbuf_note *note, uint64_t size,
		      uint32_t line, uint32_t how);
/*
 * Bytes that may be appended now. returns: 0, *room set; EPROTO: the peer says that it has read
 * more than was written
 */
int urn_rbuf_room(const struct urn_rbuf_out *o, uint64_t *room);
/*
 * Append up to `bytes`, at least 1: as many as there is room for and one list of writes carries.
 * w: room for URN_RBUF_WRITES. *taken: bytes appended, 0 when the ring is full. returns: number of
 * writes to be posted in this order, the note last; 0 when *taken is 0; -EPROTO as above
 */
int urn_rbuf_append(struct urn_rbuf_out *o, uint32_t bytes, struct urn_rbuf_write *w,
		    uint32_t *taken);

/* ---- reader */

/* Begin with an empty ring. returns: 0; EINVAL: no size of a ring, or not on a line of 256 */
int urn_rbuf_in_init(struct urn_rbuf_in *i, const uint8_t *ring, const struct urn_rbuf_note *note,
		     uint64_t size);
/*
 * The bytes that are there, up to the end of the ring: further ones follow at its start. *at: valid
 * until they are taken. returns: 0, *bytes set, 0: none; EPROTO: the peer says that it has written
 * more than the ring holds
 */
int urn_rbuf_peek(const struct urn_rbuf_in *i, const uint8_t **at, uint64_t *bytes);
/*
 * Take bytes that were peeked at. w: the note to be posted, when the peer should be told by now.
 * returns: true when *w is set
 */
bool urn_rbuf_take(struct urn_rbuf_in *i, uint64_t bytes, struct urn_rbuf_write *w);

#endif
