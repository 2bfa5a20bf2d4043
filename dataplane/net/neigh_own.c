/* SPDX-License-Identifier: BSD-3-Clause */
/* The adapter's own addresses, and checks of addresses. No lock: own addresses never change. */
#include "net/neigh_priv.h"
#include "wire/build.h"

#include <string.h>

int
urn_neigh_is_own(const struct urn_neigh *nb, const uint8_t gid[16])
{
	for (unsigned int i = 0; i < nb->n_own; i++)
		if (memcmp(nb->own[i], gid, 16) == 0)
			return 1;
	return 0;
}

bool
urn_neigh_link_local(const uint8_t gid[16])
{
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

const uint8_t *
urn_neigh_source(const struct urn_neigh *nb, const uint8_t gid[16])
{
	const uint8_t *best = NULL;

	for (unsigned int i = 0; i < nb->n_own; i++) {
		if (urn_gid_is_v4(nb->own[i]) != urn_gid_is_v4(gid))
			continue;
		if (urn_neigh_link_local(nb->own[i]) == urn_neigh_link_local(gid))
			return nb->own[i];
		if (best == NULL)
			best = nb->own[i];
	}
	return best;
}

int
urn_neigh_unicast(const uint8_t gid[16])
{
	static const uint8_t zero[15];

	if (urn_gid_is_v4(gid))
		return gid[12] != 0 && gid[12] != 127 && gid[12] < 224;
	return gid[0] != 0xff && (memcmp(gid, zero, 15) != 0 || gid[15] > 1);
}
