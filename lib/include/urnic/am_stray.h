/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers to active messages that no request waits for. Part of urnic/am.h. */
#ifndef URNIC_AM_STRAY_H
#define URNIC_AM_STRAY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
/* The library hides all other names. */
#pragma GCC visibility push(default)

struct urn_am_endpoint;

/* The two sides of a stray answer: one that no request waits for (AM-1). */
enum urn_am_stray_side {
	URN_AM_STRAY_CAME, /* the answer came to this endpoint */
	URN_AM_STRAY_SENT, /* this endpoint sent the answer, and its receiver said so */
};
/* A stray answer. All numbers are as the other side wrote them. */
struct urn_am_stray {
	uint64_t count;	  /* stray answers of this side since the endpoint was made */
	uint64_t number;  /* number of the request that the answer names */
	uint64_t queue;	  /* number of the register set that the message came from: the program of
			     the other side is the owner of that set on its node */
	uint32_t handler; /* number of the handler that a reply names; 0 with other answers */
	uint8_t node[16]; /* GID of the other side's node */
	char text[256];	  /* a sentence for people */
};
/*
 * The last stray answer of a side: nobody asked for it, a second one for the same request, one from
 * another node than the request went to, or one that came too late. A stray answer changes nothing
 * but this record. A receiver tells the sender of a stray answer so, at most once in 100 ms; a
 * sender whose program is not of this library is not told.
 *
 * returns: 0; ENOENT: there was none; EINVAL: no such side; EPERM: the call is made inside a
 * handler of another endpoint
 */
int urn_am_last_stray(const struct urn_am_endpoint *ep, enum urn_am_stray_side side,
		      struct urn_am_stray *stray);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
