/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table of its own beside base/table.h, because two addresses of every frame are looked up here.
 * An entry of 24 bytes lies in the slot where the search begins, so that a look-up touches one
 * cache line, mostly; in base/table.h it goes by a bucket to an entry with links. A frame that is
 * seen again writes only the time: entries are in no order, and a hand that goes round the slots
 * finds the old ones. Static entries and the flush of a port need no list, either.
 */
#include "switch/fdb.h"

#include "base/rnd.h"

#include <errno.h>
#include <stdlib.h>

#define EMPTY UINT64_MAX /* never a MAC address, which has 48 bits */

struct urn_fdb {
	struct urn_fdb_entry *slot;
	uint32_t mask;	/* slots - 1 */
	uint32_t max;	/* entries at most, half of the slots */
	uint32_t count; /* entries */
	uint32_t hand;	/* slot at which tending goes on */
	uint64_t age_ns;
	uint64_t seed;
};

struct urn_fdb *
urn_fdb_create(const struct urn_fdb_config *cfg)
{
	struct urn_fdb *fdb;
	uint32_t slots = 16;

	if (cfg->max == 0 || cfg->max > URN_FDB_MAX)
		return NULL;
	while (slots < 2 * cfg->max)
		slots *= 2;
	fdb = calloc(1, sizeof(*fdb));
	if (!fdb)
		return NULL;
	fdb->slot = calloc(slots, sizeof(*fdb->slot));
	if (!fdb->slot) {
		free(fdb);
		return NULL;
	}
	for (uint32_t i = 0; i < slots; i++)
		fdb->slot[i].mac = EMPTY;
	fdb->mask = slots - 1;
	fdb->max = cfg->max;
	fdb->age_ns = cfg->age_ns;
	fdb->seed = cfg->seed;
	return fdb;
}

void
urn_fdb_destroy(struct urn_fdb *fdb)
{
	if (!fdb)
		return;
	free(fdb->slot);
	free(fdb);
}

static uint32_t
home(const struct urn_fdb *fdb, uint64_t mac)
{
	return (uint32_t)urn_rnd_at(fdb->seed ^ mac, 0) & fdb->mask;
}

/* The slot of an address, or the empty slot for it. The search ends, because half of the slots are empty. */
static struct urn_fdb_entry *
find(const struct urn_fdb *fdb, uint64_t mac)
{
	uint32_t i = home(fdb, mac);

	while (fdb->slot[i].mac != mac && fdb->slot[i].mac != EMPTY)
		i = (i + 1) & fdb->mask;
	return &fdb->slot[i];
}

static bool
is_old(const struct urn_fdb *fdb, const struct urn_fdb_entry *e, uint64_t now)
{
	return !e->fixed && fdb->age_ns && now > e->seen && now - e->seen > fdb->age_ns;
}

int
urn_fdb_lookup(const struct urn_fdb *fdb, uint64_t mac, uint64_t now)
{
	const struct urn_fdb_entry *e = find(fdb, mac);

	return e->mac == EMPTY || is_old(fdb, e, now) ? -1 : e->port;
}

/* Empty a slot, and move up entries behind it whose probing passed it. */
static void
erase(struct urn_fdb *fdb, uint32_t hole)
{
	uint32_t i = hole;

	for (;;) {
		fdb->slot[hole].mac = EMPTY;
		do {
			i = (i + 1) & fdb->mask;
			if (fdb->slot[i].mac == EMPTY) {
				fdb->count--;
				return;
			}
			/* An entry stays when its home lies behind the hole. */
		} while (((i - home(fdb, fdb->slot[i].mac)) & fdb->mask) <
			 ((i - hole) & fdb->mask));
		fdb->slot[hole] = fdb->slot[i];
		hole = i;
	}
}

enum urn_fdb_learnt
urn_fdb_learn(struct urn_fdb *fdb, uint64_t mac, uint16_t port, uint64_t now)
{
	struct urn_fdb_entry *e = find(fdb, mac);

	if (e->mac == mac) {
		if (e->port == port) {
			e->seen = now;
			return URN_FDB_SAME;
		}
		if (e->fixed)
			return URN_FDB_STATIC;
		e->port = port;
		e->seen = now;
		return URN_FDB_MOVED;
	}
	if (fdb->count == fdb->max)
		return URN_FDB_FULL;
	*e = (struct urn_fdb_entry){.mac = mac, .seen = now, .port = port};
	fdb->count++;
	return URN_FDB_NEW;
}

int
urn_fdb_set(struct urn_fdb *fdb, uint64_t mac, uint16_t port)
{
	struct urn_fdb_entry *e = find(fdb, mac);

	if (urn_mac_is_group(mac))
		return -EINVAL;
	if (e->mac == EMPTY) {
		if (fdb->count == fdb->max)
			return -ENOSPC;
		fdb->count++;
	}
	*e = (struct urn_fdb_entry){.mac = mac, .port = port, .fixed = true};
	return 0;
}

void
urn_fdb_flush(struct urn_fdb *fdb, uint16_t port)
{
	uint32_t i = 0;

	/* Erasing may move another entry up into the slot: the slot is looked at again. */
	while (i <= fdb->mask) {
		const struct urn_fdb_entry *e = &fdb->slot[i];

		if (e->mac != EMPTY && !e->fixed && e->port == port) {
			erase(fdb, i);
			continue;
		}
		i++;
	}
}

uint32_t
urn_fdb_tend(struct urn_fdb *fdb, uint32_t slots, uint64_t now)
{
	uint32_t gone = 0;

	for (; slots; slots--) {
		const struct urn_fdb_entry *e = &fdb->slot[fdb->hand];

		if (e->mac != EMPTY && is_old(fdb, e, now)) {
			erase(fdb, fdb->hand); /* an entry that moved up is looked at next */
			gone++;
			continue;
		}
		fdb->hand = (fdb->hand + 1) & fdb->mask;
	}
	return gone;
}

uint32_t
urn_fdb_count(const struct urn_fdb *fdb)
{
	return fdb->count;
}

const struct urn_fdb_entry *
urn_fdb_next(const struct urn_fdb *fdb, uint32_t *at)
{
	while (*at <= fdb->mask) {
		const struct urn_fdb_entry *e = &fdb->slot[(*at)++];

		if (e->mac != EMPTY)
			return e;
	}
	return NULL;
}
