/* SPDX-License-Identifier: BSD-3-Clause */
/* URNIC_SESSION: the adapters of the virtual device (doc/reference/environment.md). */
#ifndef URN_VERBS_SESSION_PARSE_H
#define URN_VERBS_SESSION_PARSE_H

#include "verbs/session/peer.h"

/* Bytes of a socket's path and of an adapter's name, with the 0 at the end. */
enum { URN_SV_SOCKET = 108, URN_SV_NAME = 32 };

/* One adapter of the virtual device. */
struct urn_sv_place {
	char socket[URN_SV_SOCKET]; /* socket of its dataplane */
	char adapter[URN_SV_NAME];  /* its name, or its node's; "": the first of the dataplane */
};

/*
 * Parse pairs of adapters with semicolons between them, each "SOCKET[:ADAPTER],SOCKET[:ADAPTER]"
 * with the primary adapter first, and choose one: instances of programs are spread over the pairs
 * (FO-6). A mistake in any pair is one for all instances.
 *
 * instance: number of this instance, which gets the pair of that number modulo their count, from 0
 * returns: 0; EINVAL, and *why is a sentence about the mistake
 */
int urn_sv_parse(const char *text, uint64_t instance, struct urn_sv_place place[URN_SV_ADAPTERS],
		 const char **why);

/*
 * True when two paths of sockets lead to the same one, by links or otherwise. A path that leads
 * nowhere is no other's.
 */
bool urn_sv_same_socket(const char *a, const char *b);

#endif
