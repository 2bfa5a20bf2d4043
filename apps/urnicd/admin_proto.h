/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What goes over the control socket, a SOCK_SEQPACKET one: one question, then
 * pieces of the answer, then how it ended; after that the dataplane hangs up.
 */
#ifndef URNICD_ADMIN_PROTO_H
#define URNICD_ADMIN_PROTO_H

#include "admin_words.h"

#define ADMIN_MAGIC 0x55524e43u /* "URNC" */
#define ADMIN_VERSION 1u
#define ADMIN_SUFFIX ".ctl" /* behind the path of the socket for programs */

enum {
	ADMIN_PIECE = 16384, /* bytes of a piece, at most */
};

/* A question: this, and words, each with its NUL, ADMIN_LINE bytes at most. */
struct admin_ask {
	uint32_t magic;	  /* ADMIN_MAGIC */
	uint16_t version; /* ADMIN_VERSION */
	uint16_t json;	  /* 0 or 1 */
};

enum admin_kind {
	ADMIN_OUT = 1, /* text for the standard output */
	ADMIN_END = 2, /* status is the exit code, the text says why if that is not 0 */
};

/* A piece of an answer: this, and text. */
struct admin_answer {
	uint32_t magic;
	uint16_t kind; /* enum admin_kind */
	uint16_t status;
};

#endif
