/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queues of answers that are remembered (am/outbox.h). The record of a peer goes with its last
 * message, so a program with many full queues would be a stranger again with each of them. A table
 * that never grows therefore keeps for 10 s whether a queue took its last answer:
 *
 *   hash of node and queue ─► set of 4 places ─► the place with its tag, else the oldest one
 *
 * The outbox's secret is part of the hash, so nobody can choose queues that share a set, or a tag.
 * A queue that is forgotten is a stranger, and costs one more answer.
 */
#include "am/outbox.h"

#define TIME_BITS 31
#define TIME_MASK ((UINT32_C(1) << TIME_BITS) - 1)

static uint32_t
time_of(uint64_t now)
{
	return (uint32_t)(now >> 20) & TIME_MASK;
}

static struct urn_am_known *
set_of(const struct urn_am_outbox *box, uint64_t hash)
{
	return &box->known[(hash >> 54) % URN_AM_KNOWN_SETS * URN_AM_KNOWN_WAYS];
}

static uint32_t
tag_of(uint64_t hash)
{
	return (uint32_t)hash != 0 ? (uint32_t)hash : 1;
}

/* Units of time since the place was written. */
static uint32_t
age_of(const struct urn_am_known *k, uint32_t time)
{
	return k->tag != 0 ? (time - k->at) & TIME_MASK : UINT32_MAX;
}

void
urn_am_remember(struct urn_am_outbox *box, const struct urn_am_peer *p, bool full, uint64_t now)
{
	struct urn_am_known *set = set_of(box, p->hash), *k = set;
	uint32_t tag = tag_of(p->hash), time = time_of(now), i;

	for (i = 0; i < URN_AM_KNOWN_WAYS; i++) {
		if (set[i].tag == tag) {
			k = &set[i];
			break;
		}
		if (age_of(&set[i], time) > age_of(k, time))
			k = &set[i];
	}
	k->tag = tag;
	k->at = time & TIME_MASK;
	k->full = full;
}

enum urn_am_repute
urn_am_repute(const struct urn_am_outbox *box, const struct urn_am_peer *p, uint64_t now)
{
	const struct urn_am_known *set = set_of(box, p->hash);
	uint32_t tag = tag_of(p->hash), i;

	for (i = 0; i < URN_AM_KNOWN_WAYS; i++) {
		if (set[i].tag != tag)
			continue;
		if (age_of(&set[i], time_of(now)) > URN_AM_KNOWN_NS >> 20)
			return URN_AM_STRANGER;
		return set[i].full ? URN_AM_REFUSER : URN_AM_TAKER;
	}
	return URN_AM_STRANGER;
}
