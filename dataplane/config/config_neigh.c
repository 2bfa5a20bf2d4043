/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbours that a file names: "neighbour ADDRESS = MAC" of an adapter. Such an address is not
 * asked for; behind a router it has the router's MAC address.
 */
#include "config/config_priv.h"

#include "net/neigh.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

static const char key_name[] = "neighbour";

static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};

/* Take an address, IPv4 or IPv6, as a GID. returns: false: the text is none */
static bool
take_gid(const char *text, uint8_t gid[16])
{
	memcpy(gid, v4_prefix, sizeof(v4_prefix));
	return inet_pton(AF_INET, text, gid + sizeof(v4_prefix)) == 1 ||
	       (inet_pton(AF_INET6, text, gid) == 1 && memcmp(gid, v4_prefix, sizeof(v4_prefix)) != 0);
}

int
urn_config_parse_gid(const char *text, size_t n, uint8_t gid[16])
{
	char copy[INET6_ADDRSTRLEN] = "";

	if (n == 0 || n >= sizeof(copy))
		return -1;
	memcpy(copy, text, n);
	return take_gid(copy, gid) ? 0 : -1;
}

bool
urn_config_are_gids(const char *text)
{
	const char *at = text, *word;
	size_t n, count = 0;
	uint8_t gid[16];

	while ((n = urn_config_word(&at, &word)) > 0 && urn_config_parse_gid(word, n, gid) == 0)
		count++;
	return n == 0 && count > 0;
}

/* True when the adapter has this address. */
static bool
is_own(const struct urn_adapter_config *a, const uint8_t gid[16])
{
	bool v4 = memcmp(gid, v4_prefix, sizeof(v4_prefix)) == 0;

	return v4 ? memcmp(gid + sizeof(v4_prefix), a->ipv4, 4) == 0 : memcmp(gid, a->ipv6, 16) == 0;
}

/* Room for one more. NULL: no memory */
static struct urn_neigh_fixed *
add(struct urn_adapter_config *a)
{
	struct urn_neigh_fixed *more;

	if (a->neighbours % 16 == 0) {
		more = realloc(a->neighbour, (a->neighbours + 16) * sizeof(*more));
		if (!more)
			return NULL;
		a->neighbour = more;
	}
	return &a->neighbour[a->neighbours++];
}

static void
take_one(struct urn_config_ctx *ctx, struct urn_adapter_config *a, const struct urn_ini_entry *e)
{
	const char *who = e->key.s + strlen(key_name) + (e->key.s[strlen(key_name)] == ' ');
	struct urn_neigh_fixed n, *room;

	if (urn_config_parse_mac(e->value.s, strlen(e->value.s), n.mac) != 0)
		return; /* reported with the value */
	if (!take_gid(who, n.gid) || !urn_neigh_unicast(n.gid)) {
		urn_config_say(ctx, e->key.line,
			       "%.*s is no address of a station in a network; write neighbour 10.0.0.2 = %s", 48,
			       who, e->value.s);
		return;
	}
	if (is_own(a, n.gid)) {
		urn_config_say(ctx, e->key.line, "%.*s is the adapter's own address; leave it out", 48, who);
		return;
	}
	for (unsigned int i = 0; i < a->neighbours; i++) {
		if (memcmp(a->neighbour[i].gid, n.gid, 16) == 0) {
			urn_config_say(ctx, e->key.line, "%.*s has a MAC address already; leave one out", 48, who);
			return;
		}
	}
	if (a->neighbours == URN_NEIGH_STATIC)
		urn_config_say(ctx, e->key.line, "an adapter has room for %u neighbours; leave some out",
			       (unsigned int)URN_NEIGH_STATIC);
	else if (!(room = add(a)))
		ctx->no_room = true;
	else
		*room = n;
}

void
urn_config_neighbours(struct urn_config_ctx *ctx)
{
	for (unsigned int i = 0; i < ctx->cfg->adapters; i++) {
		const struct urn_ini_section *s = ctx->adapter[i];

		for (unsigned int k = 0; s && k < s->entries; k++)
			if (strncmp(s->entry[k].key.s, key_name, strlen(key_name)) == 0)
				take_one(ctx, &ctx->cfg->adapter[i].adapter, &s->entry[k]);
	}
}
