/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table behind net/learn.h, for the files that work on it:
 *
 *   learn_table.c   entries: found by address, each on a list, room made for new ones
 *   learn.c         the knowledge of a peer, and news of it
 *   learn_ask.c     requests: when they are due, and when to give up
 *   learn_answer.c  requests and responses that come in
 *
 * An entry is on exactly one list: the list tells what the entry waits for and, by its
 * order, which entry goes first. Entries whose request was sent are on a list of
 * their own for each try: all entries of one list wait equally long, so appending keeps each
 * list sorted by due time, and poll looks at the heads only.
 *
 * News is a second list through the entries: the newest is last, and each has the number
 * of its generation. An engine walks back to the newest that it has seen.
 *
 * Callers of these functions hold the table's lock.
 */
#ifndef URN_NET_LEARN_TABLE_H
#define URN_NET_LEARN_TABLE_H

#include "base/draw.h"
#include "base/table.h"
#include "net/learn.h"

#include <stdatomic.h>

#include <rte_spinlock.h>

enum urn_learn_list {
	URN_LEARN_ON_FREE = URN_TABLE_FREE,
	URN_LEARN_ON_FRESH,  /* the first request is due at once */
	URN_LEARN_ON_NO_MAC, /* waits for the neighbour table */
	URN_LEARN_ON_TRIED,  /* this and the following: an index more for each further request sent */
	URN_LEARN_ON_TRIED_LAST = URN_LEARN_ON_TRIED + URN_LEARN_TRIES - 1,
	URN_LEARN_ON_WANTED, /* known; longest unused first */
	URN_LEARN_ON_LEARNT, /* known, or of another version, and never asked for; oldest first */
	URN_LEARN_ON_PLAIN,  /* wanted, and plain; oldest first */
	URN_LEARN_LISTS,
};

struct urn_learn_entry {
	struct urn_table_entry t; /* key: the GID; list: enum urn_learn_list */
	TAILQ_ENTRY(urn_learn_entry) news; /* in lk->news, when `changed` is not 0 */
	uint64_t due;	/* ns; FRESH to TRIED_LAST: next step; PLAIN: may be asked again */
	uint64_t since; /* ns; NO_MAC to TRIED_LAST: when asking began */
	uint64_t confirmed;	   /* ns; KNOWN: when the peer last said so */
	uint64_t tid;		   /* transaction id of the newest request */
	struct urn_link_info info; /* valid when KNOWN */
	uint32_t proved; /* features that responses named, and no request denied since; valid
			    when KNOWN */
	uint32_t changed;	   /* generation of its newest news; 0: none */
	uint8_t own[16]; /* our address that sent the request; valid when tries is not 0 */
	uint8_t state;	 /* enum urn_learn_state */
	uint8_t tries;	 /* requests sent with this tid */
	bool wanted;	 /* an engine asked for it */
	bool answered;	 /* a response to tid was taken, or a request of the peer made it needless */
};
TAILQ_HEAD(urn_learn_entries, urn_learn_entry);

struct urn_learn {
	struct urn_learn_config cfg;
	uint64_t epoch;

	_Atomic uint32_t gen; /* written under `lock`, read without; orders nothing */

	rte_spinlock_t lock; /* protects all fields below; taken before the neighbour table's lock */
	uint64_t now;	     /* ns; the newest time that was passed in */
	struct urn_draw draw; /* numbers that peers see */
	uint32_t psn; /* PSN of the next frame */
	struct urn_table table; /* URN_LEARN_ENTRIES struct urn_learn_entry */
	struct urn_learn_entries news;
};

/* ---- the table (learn_table.c) */

/* The entry of an address, or NULL. */
struct urn_learn_entry *urn_learn_find(struct urn_learn *lk, const uint8_t gid[16]);
/* Make an entry on `list`; another entry makes room if need be. NULL: no room. */
struct urn_learn_entry *urn_learn_add(struct urn_learn *lk, const uint8_t gid[16],
				    enum urn_learn_list list);
/* Move an entry to the end of another list, or of its own. */
void urn_learn_move(struct urn_learn *lk, struct urn_learn_entry *e, enum urn_learn_list to);
/* A number that a peer cannot guess from the outside. */
uint64_t urn_learn_draw(struct urn_learn *lk);

/* Engines read their clocks at different moments: the newest time holds. now: ns */
static inline void
urn_learn_set_time(struct urn_learn *lk, uint64_t now)
{
	if (now > lk->now)
		lk->now = now;
}

/* ---- knowledge of a peer (learn.c) */

/* Make a request due at once, with a transaction id of its own. */
void urn_learn_start_asking(struct urn_learn *lk, struct urn_learn_entry *e);
/* The peer gave no answer, or a refusal: it counts as plain. */
void urn_learn_set_plain(struct urn_learn *lk, struct urn_learn_entry *e);
/* The peer told its features: in a response to a request of ours, or in a request. */
void urn_learn_set_known(struct urn_learn *lk, struct urn_learn_entry *e,
			 const struct urn_link_info *info, bool response);
/*
 * Write a request or a response into m; the adapter's own features are filled in. own,
 * peer: addresses; mac: the peer's. returns: 0, or -1 when m has no room
 */
int urn_learn_frame(struct urn_learn *lk, struct rte_mbuf *m, const struct urn_link_msg *what,
		   const uint8_t own[16], const uint8_t peer[16], const uint8_t mac[6]);

#endif
