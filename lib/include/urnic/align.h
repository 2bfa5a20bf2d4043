/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes on the cache lines of the peer (AW-3), and the counts that show what they save (AW-7).
 * doc/inside/aligned-writes.md tells how they work.
 *
 * Both calls return 0 or an errno value, which errno holds too; urn_attach_error() says why.
 */
#ifndef URNIC_ALIGN_H
#define URNIC_ALIGN_H

#include <urnic/verbs.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
/* The library hides all other names. */
#pragma GCC visibility push(default)

/* Values of a line that are no number of bytes. */
enum urn_line {
	URN_LINE_OFF = 0,  /* writes go as they are posted; every queue pair begins so */
	URN_LINE_PEER = 1, /* on the lines of the peer, as its dataplane told; without an answer as
			      posted */
};

/*
 * Let the RDMA writes of a queue pair go on cache lines of the peer. A long write to an address
 * off the line then goes as two: from the next line to the end, and last what was skipped. The
 * request completes once, after both, and immediate data comes with the second: the length of the
 * peer's completion is then that of the second, unless the peer is urnic and takes both as one. A
 * peer that polls the last byte of a write would see it before the first: such programs must not
 * ask for this.
 *
 * qp: of type RC, in any state; holds until the next call, through RESET too
 * line: enum urn_line, or bytes: 64, 128 or 256, whatever the peer told
 * returns: EINVAL: no such line, or not RC; EOPNOTSUPP: the dataplane, or the device, can't
 */
int urn_qp_align(struct ibv_qp *qp, uint32_t line);

/* Cache lines that packets stored to, by size of line: 64, 128, 256 bytes. */
struct urn_stores {
	uint64_t full[3];    /* lines that one packet covered whole */
	uint64_t partial[3]; /* lines that a packet touched and did not cover */
};

/*
 * The stores that packets have made into a region, since it was registered.
 *
 * returns: EOPNOTSUPP: the adapter does not count them (count_stores in its configuration)
 */
int urn_mr_stores(struct ibv_mr *mr, struct urn_stores *stores);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
