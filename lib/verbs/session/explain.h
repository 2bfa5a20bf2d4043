/* SPDX-License-Identifier: BSD-3-Clause */
/* Why completions of the virtual device have errors (urnic/explain.h). */
#ifndef URN_VERBS_SESSION_EXPLAIN_H
#define URN_VERBS_SESSION_EXPLAIN_H

#include <urnic/verbs.h>

#include <stddef.h>
#include <stdint.h>

struct urn_sv_qp;

/* Notes about a connection, for sentences about its errors. The context's lock. */
struct urn_sv_notes {
	uint64_t died_at;     /* ms: when it died; valid when it is dead */
	uint64_t lost_at;     /* ms: when it lost a path last; valid with lost_why */
	const char *lost_why; /* why that was, a constant; NULL: it has lost none */
	uint32_t lost;	      /* number of that path for the machine; valid with lost_why */
	uint32_t vendor_err;  /* vendor_err of the request that failed by itself; 0: none has */
};

/* A path of the connection is about to be lost, for the reason q->why. The lock is held. */
void urn_sv_note_lost(struct urn_sv_qp *q, uint32_t bit);
/*
 * Say why a completion of the virtual device has an error: by the record of the adapter whose queue
 * pair had the request, or by the state of the connection.
 *
 * qpn, status: of the completion
 * text, size: set to the sentence on success, cut to `size` bytes
 * returns: 0; ENOENT with its text: there is no record; EIO with its text: the process is a child
 * of fork(), or the adapter is gone
 */
int urn_sv_explain(struct ibv_context *c, uint32_t qpn, uint32_t status, char *text, size_t size);

#endif
