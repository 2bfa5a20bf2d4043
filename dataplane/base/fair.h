/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fair use of a pool whose entries clients may keep for as long as they like. An eighth of the pool
 * is kept for clients that hold little. The last entries of this reserve are for those that hold
 * nothing, the ones before for those that hold one, two or three, and so on, twice as many a level:
 *
 *   entries left
 *        │  everyone; the less is left, the less may one client hold
 *   kept ┼─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─
 *        │  clients that hold less than 2^(levels - 1)
 *        ┼
 *        │  ...
 *        ┼
 *        │  clients that hold 1 or none
 *        ┼
 *      0 │  clients that hold none
 *
 * A client that is alone gets 7 of 9 entries. Clients that take and give back, in any order, leave
 * at least as many as if they came one after another, each took all it could, and none gave
 * anything back. The reason: put the clients in the order in which each of them took an entry last.
 * A client held no less then than it holds now, and the pool had as many left as the rule asks for;
 * the pool has lost since then no more than the clients behind it hold.
 *
 * A level has kept / levels entries, which all clients that may hold no more than its number share.
 * So the n-th client gets kept / (levels n) entries or more, one in 96 n of 65,536. The rule need
 * not know how many clients there are, and does not depend on entries that come back.
 *
 * A user may have hundreds of clients. So what counts of a client is half what it holds itself, and
 * half what all clients of its user hold: urn_fair_user_has() asks for the mean of the entries that
 * would have to stay for either. A user with one client has the rule above. A user with any number
 * of clients leaves 2 entries of 17. The n-th user, and the n-th client, get at least half of what
 * the n-th client gets by the rule above, because the mean is at least half of either number.
 */
#ifndef URN_BASE_FAIR_H
#define URN_BASE_FAIR_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

enum {
	URN_FAIR_LEVELS = 33, /* lengths in bits of a number of entries: 0 to 32 */
};

/* The rule for one pool, or for several of the same size. */
struct urn_fair {
	uint32_t kept; /* entries of the reserve */
	/* Entries that stay in the pool when a client takes one, by the length in bits of the
	 * number that it holds; UINT32_MAX: the client takes none of the reserve. */
	uint32_t least[URN_FAIR_LEVELS];
};

/* Make the rule for a pool. size: entries of the pool */
void urn_fair_init(struct urn_fair *f, uint32_t size);

/* True when a client may take an entry of the reserve. left, held: as for urn_fair_has() */
bool urn_fair_has_kept(const struct urn_fair *f, uint32_t left, uint32_t held);

/* True when a client whose user has others may take an entry of the reserve; as urn_fair_user_has()
 */
bool urn_fair_user_has_kept(const struct urn_fair *f, uint32_t left, uint32_t held, uint32_t all);

/* True when a client that holds `held` entries may take one more. left: entries in the pool. */
static inline bool
urn_fair_has(const struct urn_fair *f, uint32_t left, uint32_t held)
{
	return likely(left > f->kept + held / 8) || urn_fair_has_kept(f, left, held);
}

/*
 * True when a client that holds `held` entries may take one more. left: entries in the pool; all:
 * entries that all clients of its user hold, this one too
 */
static inline bool
urn_fair_user_has(const struct urn_fair *f, uint32_t left, uint32_t held, uint32_t all)
{
	return likely(left > f->kept + all / 8) || urn_fair_user_has_kept(f, left, held, all);
}

#endif
