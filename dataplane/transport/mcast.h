/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast groups on one engine: which of its UD queue pairs are attached to which group, and
 * copies of datagrams for them. Each engine of an adapter knows all groups of the adapter, and
 * which other engines have queue pairs in them.
 *
 * A group keeps a round of places, one for each client with queue pairs there that take datagrams
 * now, and one for each other engine. A client's place keeps a round of those queue pairs. A
 * datagram goes round the places: the first in turn gets the datagram itself, the others get
 * copies, one for each place before anybody gets a second. A place that got one goes behind those
 * that got none. So each of k places gets at least one of k datagrams, also when there are no
 * copies, and however many queue pairs the other clients attach.
 *
 * A turn makes URN_MCAST_COPIES copies, each of at most one packet; a client gets no more of them
 * than it leaves to others, so that one with many attachments has half of them at most. Copies
 * beyond that are not made, and counted. A datagram looks at no more than URN_MCAST_LOOKS places.
 *
 * The engine's thread owns all of this. Memory is taken when a queue pair is attached, never for a
 * datagram. Attaching and detaching look at the attachments of that client only, URN_MCAST_CLIENT
 * at most.
 */
#ifndef URN_TRANSPORT_MCAST_H
#define URN_TRANSPORT_MCAST_H

#include "transport/tp.h"

enum {
	/* Groups of an adapter, several times what a program may count on: something is left for
	 * others, whatever a few programs take (base/fair.h). */
	URN_MCAST_GROUPS = 4 * URN_ABI_MCAST_GROUPS,
	URN_MCAST_CLIENT = URN_ABI_MCAST_CLIENT, /* attachments of a client on an engine */
	URN_MCAST_MEMBERS = 4096,		 /* attachments on an engine, of all clients */
	URN_MCAST_COPIES = 64,			 /* copies in a turn */
	/* Places that a datagram passes over because they have had their copies: then it ends. */
	URN_MCAST_PASSES = 8,
	/* Looks at places for one datagram: the datagram and its copies, its sender's place, places
	 * passed over, the look that finds no copy left; other engines, for a datagram that one
	 * of them handed over. */
	URN_MCAST_LOOKS = 1 + URN_MCAST_COPIES + 1 + URN_MCAST_PASSES + 1 + URN_ABI_MAX_ENGINES - 1,
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
bool urn_mcast_group_of(const struct urn_qp *qp, uint8_t gid[16]);
/* Detach a queue pair from all its groups; other engines are not told. */
void urn_mcast_detach_all(struct urn_tp *tp, struct urn_qp *qp);
/* An attached queue pair takes datagrams from now on, or takes none any more. */
void urn_mcast_wake(struct urn_qp *qp);
void urn_mcast_rest(struct urn_qp *qp);
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
