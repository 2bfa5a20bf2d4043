/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of a byte stream as they travel, one a Send (SF-2), and the greeting that both ends
 * exchange when the connection is made (SF-1). All fields are in network byte order.
 *
 *   0       4         5      6       8        12       16       24      32     40    44     48
 *   | magic | version | kind | flags | credit | length | offset | bytes | addr | key | seen | head
 *   48               56      64     72    76      80
 *   | reverse offset | bytes | addr | key | zero |                 DATA with F_ADVERT only
 *   | `length` bytes of the stream |                               DATA, SRC_AVAIL
 *
 * credit and seen are in each message; the table of kinds in wire.c says which of the others a kind
 * has. A field that a kind does not have is 0.
 */
#ifndef URN_STREAM_WIRE_H
#define URN_STREAM_WIRE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	URN_ST_WIRE_MAGIC = 0x55535452, /* "USTR" */
	URN_ST_WIRE_VERSION = 1,	/* a layout of another version is refused */
	URN_ST_WIRE_HEAD = 48,		/* bytes of a message without data */
	URN_ST_WIRE_ADVERT = 32,	/* bytes of the advert that rides on DATA */
	URN_ST_WIRE_MAX = 80,		/* bytes in front of data, at most */
	URN_ST_WIRE_HELLO = 16,		/* bytes of a greeting */
	URN_ST_BUFFERS_MAX = 65536,	/* BCopy buffers of an end, at most */
	URN_ST_SIZE_MAX = 1 << 24,	/* bytes of a BCopy buffer, at most */
};

/* X(name, number, text): kinds of messages; "forward" goes with the bytes, "back" against them */
/* clang-format off */
#define URN_ST_KINDS(X) \
	X(DATA, 1, "BCopy data, forward") \
	X(SRC_AVAIL, 2, "SrcAvail, forward: bytes wait in memory of the source") \
	X(SINK_AVAIL, 3, "SinkAvail, back: memory of the sink waits for bytes") \
	X(SEND_SM, 4, "SendSm, back: send the rest by BCopy") \
	X(RD_COMPL, 5, "RdCompl, back: all bytes of a SrcAvail were read") \
	X(WR_COMPL, 6, "WrCompl, forward: bytes were written to the memory of a SinkAvail") \
	X(CREDIT, 7, "Credit, back: BCopy buffers are free again") \
	X(FIN, 8, "Fin, forward: the stream ends here") \
	X(STOP, 9, "Stop, back: the sink reads no more") \
	X(ABORT, 10, "Abort: the connection ends, for a reason")

/* X(name, text): verdicts on received bytes. All but OK end the connection. */
#define URN_ST_VERDICTS(X) \
	X(OK, "a message") \
	X(SHORT, "shorter than the head of a message") \
	X(MAGIC, "not of the stream layer") \
	X(VERSION, "of another version of the stream layer") \
	X(KIND, "of no known kind") \
	X(FLAGS, "flags that the kind does not have") \
	X(LENGTH, "length is not that of the bytes received, or not one of the kind") \
	X(RESERVED, "a field is set that the kind does not have") \
	X(EMPTY, "announces no bytes") \
	X(RANGE, "bytes run over the end of the stream or of memory, or are fewer than came inline") \
	X(BUFFERS, "number or size of BCopy buffers is 0 or too large")
/* clang-format on */

enum urn_st_kind {
#define X(name, number, text) URN_ST_##name = (number),
	URN_ST_KINDS(X)
#undef X
		URN_ST_KIND_COUNT,
};

enum urn_st_verdict {
#define X(name, text) URN_ST_V_##name,
	URN_ST_VERDICTS(X)
#undef X
		URN_ST_V_COUNT,
};

/* Flags of a message. */
enum urn_st_flag {
	URN_ST_F_ADVERT = 1 << 0, /* DATA: a SinkAvail for the answer rides on it (SF-7) */
	URN_ST_F_READ = 1 << 1,	  /* SRC_AVAIL: may be answered by reading */
	URN_ST_F_WRITE = 1 << 2, /* SRC_AVAIL: may be answered by SinkAvail. Neither: SendSm only */
};

/* Flags of a greeting. */
enum urn_st_ability {
	URN_ST_CAN_READ = 1 << 0,  /* the end, as sink, can do Read ZCopy (SF-8) */
	URN_ST_ON_DEMAND = 1 << 1, /* BCopy buffers are posted around SendSm only (SF-1) */
	URN_ST_RESUMES = 1 << 2, /* the end, as source, leaves BCopy behind a SendSm again (SF-5) */
};

/* Memory of a sink, and the bytes of the stream that it waits for. */
struct urn_st_advert {
	uint64_t offset; /* place in the stream of the first byte */
	uint64_t bytes;	 /* room, at least 1 */
	uint64_t addr;	 /* address of the room, as key names it */
	uint32_t key;	 /* remote key of the sink's memory */
};

/* A message in the byte order of the host. Fields that the kind does not have are 0. */
struct urn_st_msg {
	uint8_t kind;	 /* enum urn_st_kind */
	uint16_t flags;	 /* enum urn_st_flag */
	uint32_t credit; /* data messages that the sender takes, since the start */
	uint32_t seen;	 /* SinkAvails that the sender took in, since the start */
	uint32_t length; /* bytes of the stream that are in the message */
	uint64_t offset; /* place in the stream: of the first byte, or up to which all is done */
	uint64_t bytes;	 /* bytes announced, or done; ABORT: enum urn_st_reason */
	uint64_t addr;	 /* address of the byte at offset, as key names it */
	uint32_t key;	 /* remote key */
	struct urn_st_advert advert; /* valid with F_ADVERT; of the stream the other way */
};

/* The greeting of an end (SF-1). */
struct urn_st_hello {
	uint32_t buffers;  /* BCopy buffers: data messages that wait at the end, at most */
	uint32_t size;	   /* bytes of the stream that each takes */
	uint8_t abilities; /* enum urn_st_ability */
};

/* Name and meaning of a kind, text of a verdict. returns: "?" for none */
const char *urn_st_kind_text(unsigned int kind);
const char *urn_st_verdict_text(unsigned int verdict);

/*
 * Write a message without its bytes of the stream, which follow.
 *
 * to: URN_ST_WIRE_MAX bytes of any alignment
 * returns: bytes written
 */
uint32_t urn_st_wire_put(void *to, const struct urn_st_msg *m);
/*
 * Read a message from a peer that is not trusted. Only the form is judged here; the machine judges
 * its place in the stream. The head is copied before the check, so a peer that writes it meanwhile
 * changes nothing.
 *
 * from: the message as it was received, of any alignment
 * bytes: its length
 * m: the message; all 0 unless OK
 * at: place of its bytes of the stream in `from`; 0 unless OK
 */
enum urn_st_verdict urn_st_wire_get(const void *from, uint32_t bytes, struct urn_st_msg *m,
				    uint32_t *at);

/* Write a greeting. to: URN_ST_WIRE_HELLO bytes of any alignment. returns: bytes written */
uint32_t urn_st_hello_put(void *to, const struct urn_st_hello *h);
/* Read a greeting. bytes: length of `from`, more than a greeting is allowed. h: all 0 unless OK */
enum urn_st_verdict urn_st_hello_get(const void *from, uint32_t bytes, struct urn_st_hello *h);

#endif
