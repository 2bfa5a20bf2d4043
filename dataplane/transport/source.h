/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A source of work: the thing behind one doorbell bit, and the element of the schedule. Queue pairs
 * are sources; the engine's scan of doorbells and the schedule know nothing else about them. An
 * idle source is in no list and costs nothing.
 */
#ifndef URN_TRANSPORT_SOURCE_H
#define URN_TRANSPORT_SOURCE_H

#include "abi/urn_abi.h"

#include <stdbool.h>
#include <stdint.h>

struct urn_tp;
struct urn_tp_share;

/* Kinds of sources. A compare tells queue pairs: their path has no call through a pointer. */
enum urn_source_kind {
	URN_SOURCE_QP,  /* embedded in a struct urn_qp, as its first member */
	URN_SOURCE_OPS, /* embedded in a struct urn_source_ops_user, as its first member */
};

/* Bits of struct urn_source.flags that are the source's; the others are its owner's. */
enum urn_source_flag {
	URN_SOURCE_SCHED = 1 << 0,  /* in the schedule */
	URN_SOURCE_AWAY = 1 << 7,   /* in another list of its owner's, by the same links */
	URN_SOURCE_CLOSED = 1 << 9, /* enters no list: its owner ends */
	/* May not enter the schedule. */
	URN_SOURCE_HELD = URN_SOURCE_SCHED | URN_SOURCE_AWAY | URN_SOURCE_CLOSED,
};

struct urn_source {
	struct urn_source *next;    /* next in its list; valid while in one */
	struct urn_source *prev;    /* previous there; not valid for the first */
	struct urn_tp_share *share; /* share of the client that made it; set by the maker, never NULL */
	uint32_t flags;             /* enum urn_source_flag, and bits of the owner */
	uint32_t db : 18;           /* doorbell id, an index of its client's sources; the same for its life */
	uint32_t kind : 2;          /* enum urn_source_kind; the same for its life */
	uint32_t rest : 12;         /* the owner's */
};
_Static_assert(sizeof(struct urn_source) == 32, "half a line of a queue pair");
_Static_assert(URN_ABI_MAX_QP_ENGINE <= 1 << 18, "urn_source.db");

/* Operations of a source that is no queue pair. In the engine's thread. */
struct urn_source_ops {
	/* The source's doorbell was rung. */
	void (*rung)(struct urn_tp *tp, struct urn_source *src);
	/* Use one share of a turn; the source is in no list then. returns: true when it has more to do */
	bool (*serve)(struct urn_tp *tp, struct urn_source *src);
};

/* Head of a source of the kind URN_SOURCE_OPS. */
struct urn_source_ops_user {
	struct urn_source source;         /* kind URN_SOURCE_OPS */
	const struct urn_source_ops *ops; /* operations of the source; never NULL */
};

/* Sources with work to do, in the order of their turns. */
struct urn_sched {
	struct urn_source *head, *tail; /* first and last; tail valid with head */
};

/* Operations of a source of the kind URN_SOURCE_OPS. */
static inline const struct urn_source_ops *
urn_source_ops(const struct urn_source *src)
{
	return ((const struct urn_source_ops_user *)src)->ops;
}

#endif
