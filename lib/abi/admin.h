/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol of the control socket (SOCK_SEQPACKET): one question, then
 * pieces of the answer, then its exit code; after that the dataplane hangs up.
 */
#ifndef URN_ABI_ADMIN_H
#define URN_ABI_ADMIN_H

#include <stdint.h>

#define ADMIN_MAGIC 0x55524e43u /* "URNC" */
#define ADMIN_VERSION 1u
#define ADMIN_SUFFIX ".ctl" /* appended to the path of the socket for programs */

enum {
	ADMIN_PIECE = 16384, /* bytes of a piece, at most */
};

/* A question: this header, and words, each with its NUL, ADMIN_LINE bytes at most. */
struct admin_ask {
	uint32_t magic;	  /* ADMIN_MAGIC */
	uint16_t version; /* ADMIN_VERSION */
	uint16_t json;	  /* 0 or 1 */
};

enum admin_kind {
	ADMIN_OUT = 1, /* text for the standard output */
	/*
	 * status is the exit code; when not 0, the text is the reason. The start of a capture to
	 * "-" comes with a descriptor: a pipe, from which the capture is read. Closing it ends the
	 * capture.
	 */
	ADMIN_END = 2,
};

/* A piece of an answer: this header, and text. */
struct admin_answer {
	uint32_t magic;
	uint16_t kind; /* enum admin_kind */
	uint16_t status;
};

#endif
