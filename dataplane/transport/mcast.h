/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast groups on one engine: which of its UD queue pairs are attached to which group, and
 * copies of datagrams for them. Each engine of an adapter knows all groups of the adapter, and
 * which other engines have queue pairs in them.
 *
 * A group with one queue pair costs no copy. For the others a turn makes URN_MCAST_COPIES copies,
 * each of at most one packet; a client gets no more of them than it leaves to others, so that one
 * with many attachments has half of them at most. Copies beyond that are not made, and counted.
 */
#ifndef URN_TRANSPORT_MCAST_H
#define URN_TRANSPORT_MCAST_H

#include "transport/tp.h"

enum {
	URN_MCAST_GROUPS = URN_ABI_MCAST_GROUPS,
	URN_MCAST_CLIENT = URN_ABI_MCAST_CLIENT,
	URN_MCAST_MEMBERS = 4096, /* attachments on an engine, of all clients */
	URN_MCAST_COPIES = 64,	  /* copies in a turn */
};

/*
 * Attach a UD queue pair of this engine to a group, for good or until it is detached. *first: the
 * engine had no queue pair in the group before. returns: 0, also when it is attached already; or
 * ENOMEM: no memory, or a limit is reached
 */
int urn_mcast_attach(struct urn_tp *tp, struct urn_qp *qp, const uint8_t gid[16], bool *first);
/* Detach it. *last: the engine has no queue pair in the group any more. returns: 0; EINVAL: it is
 * not attached */
int urn_mcast_detach(struct urn_tp *tp, struct urn_qp *qp, const uint8_t gid[16], bool *last);
/* One of the groups that a queue pair is attached to. returns: false when there is none */
bool urn_mcast_group_of(const struct urn_tp *tp, const struct urn_qp *qp, uint8_t gid[16]);
/* Detach a queue pair from all its groups; other engines are not told. */
void urn_mcast_detach_all(struct urn_tp *tp, struct urn_qp *qp);
/* Another engine has queue pairs in a group from now on, or has none any more. returns: 0 or ENOMEM
 */
int urn_mcast_tell(struct urn_tp *tp, const uint8_t gid[16], unsigned int engine, bool has);

/* A frame is not to an address of this adapter: give it to its group, or drop it. Takes m. */
void urn_mcast_rx(struct urn_tp *tp, struct rte_mbuf *m, bool checked);
/* A frame to a group goes out: give copies to this adapter's queue pairs in the group. */
void urn_mcast_sent(struct urn_tp *tp, const struct urn_txd *d);
/* Free the groups of a transport; no queue pair is left. */
void urn_mcast_free(struct urn_tp *tp);

#endif
