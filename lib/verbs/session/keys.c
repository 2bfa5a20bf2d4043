/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/session/keys.h"

#include <stddef.h>

/* The first of a key that was taken out: a search goes on behind it. */
#define URN_SV_KEY_GONE UINT32_MAX

/* The place of a key: the upper 24 bits are the adapter's number of the region. */
static uint32_t
place(uint32_t key, uint32_t step)
{
	return ((key >> 8) * 2654435761u + step) % URN_SV_KEYS;
}

static struct urn_sv_key *
row_of(struct urn_sv_keys *t, uint32_t first)
{
	for (uint32_t i = 0; i < URN_SV_KEYS; i++) {
		struct urn_sv_key *k = &t->row[place(first, i)];

		if (k->first == first)
			return k;
		if (k->first == 0)
			break;
	}
	return NULL;
}

bool
urn_sv_keys_put(struct urn_sv_keys *t, uint32_t first, const uint32_t key[URN_SV_ADAPTERS])
{
	for (uint32_t i = 0; i < URN_SV_KEYS; i++) {
		struct urn_sv_key *k = &t->row[place(first, i)];

		if (k->first != 0 && k->first != URN_SV_KEY_GONE)
			continue;
		for (uint32_t a = 0; a < URN_SV_ADAPTERS; a++)
			k->key[a] = key[a];
		/* Release: a peer that reads the row finds the keys with first. */
		__atomic_store_n(&k->first, first, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

void
urn_sv_keys_set(struct urn_sv_keys *t, uint32_t first, uint32_t adapter, uint32_t key)
{
	struct urn_sv_key *k = row_of(t, first);

	if (k != NULL)
		__atomic_store_n(&k->key[adapter], key, __ATOMIC_RELEASE);
}

void
urn_sv_keys_drop(struct urn_sv_keys *t, uint32_t first)
{
	struct urn_sv_key *k = row_of(t, first);

	if (k != NULL)
		__atomic_store_n(&k->first, URN_SV_KEY_GONE, __ATOMIC_RELEASE);
}

bool
urn_sv_keys_find(const struct urn_sv_keys *t, uint32_t first, uint32_t adapter, uint32_t *key)
{
	const struct urn_sv_key *k;

	if (first == 0 || first == URN_SV_KEY_GONE)
		return false;
	k = row_of((struct urn_sv_keys *)(uintptr_t)t, first);
	if (k == NULL)
		return false;
	*key = k->key[adapter];
	return true;
}
