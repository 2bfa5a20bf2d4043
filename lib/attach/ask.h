/* SPDX-License-Identifier: BSD-3-Clause */
/* A question to the dataplane's socket, and its answer (lib/abi/socket.h). */
#ifndef URN_ATTACH_ASK_H
#define URN_ATTACH_ASK_H

#include "abi/socket.h"

/* The sentence for a caller whose connection has ended. */
#define URN_GONE "the dataplane is gone: close the device"

/* Descriptors and events that come along with an answer, as many as there is room for. */
struct urn_remote_more {
	int *fds;                    /* descriptors; those beyond max_fds are closed */
	unsigned int max_fds, n_fds; /* n_fds: how many came */
	struct urn_abi_cm_event *ev;
	uint32_t max_ev, n_ev;
	/* The dataplane's word that grows while a call waits for this program (urn_abi_db.waits):
	 * patience begins anew each time that the word has grown, a few times. NULL: none */
	const _Atomic uint32_t *waits;
};

/*
 * Ask, and wait for the answer. The caller serialises.
 *
 * q: filled in except its head; kind: enum urn_sock_kind
 * extra: descriptors to hand over, count of them, 2 at most
 * more: NULL: nothing comes along
 * returns: 0, or an errno value with its text (urn_fail()); EMFILE: the answer is there, but
 * this program has no room for its descriptors; ETIMEDOUT: patience is at an end
 */
int urn_remote_ask(int fd, struct urn_sock_ask *q, uint16_t kind, const int *extra, unsigned int count,
	struct urn_sock_answer *a, struct urn_remote_more *more);

/*
 * The word urn_abi_db.waits of an open device.
 *
 * area, size: the client's area; d: the dataplane's answer to HELLO, which is checked here
 * returns: NULL: the dataplane has no such word
 */
const _Atomic uint32_t *urn_remote_waits(const void *area, uint64_t size,
					 const struct urn_abi_device *d);

#endif
