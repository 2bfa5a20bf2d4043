/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses with the prefix that is on the link, and routes to elsewhere: "gateway = ADDRESS",
 * "route PREFIX = ADDRESS" and "accept_ra = yes" of an adapter.
 */
#include "config/config_priv.h"

#include "net/neigh.h"
#include "units.h"
#include "wire/build.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum {
	V4_BASE = 96, /* bits of a GID before an IPv4 address */
	ROUTES_MAX =
		URN_NEIGH_ROUTES - 2, /* the prefixes of the adapter's own addresses have two */
	SHOWN = 48,		      /* bytes of a text that a sentence repeats */
};

static const uint8_t none[16];

/* ---- addresses with a length */

/* Split "ADDRESS/LENGTH". bits: 0 when there is no length. returns: false: the length is wrong */
static bool
split(const char *text, unsigned int max, char address[INET6_ADDRSTRLEN], uint8_t *bits)
{
	const char *slash = strchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : strlen(text);
	uint64_t len = 0;

	address[0] = '\0';
	if (n < INET6_ADDRSTRLEN) {
		memcpy(address, text, n);
		address[n] = '\0';
	}
	*bits = 0;
	if (!slash)
		return true;
	if (urn_text_parse_uint(slash + 1, &len) != 0 || len > max)
		return false;
	*bits = (uint8_t)len;
	return true;
}

/* True when the bits behind the prefix are all zero; ones: all one. So is no station's address. */
static bool
rest_is(const uint8_t gid[16], unsigned int len, bool ones)
{
	uint8_t copy[16];

	for (unsigned int i = 0; i < 16; i++)
		copy[i] = (uint8_t)(ones ? ~gid[i] : gid[i]);
	return !urn_neigh_mask(copy, len);
}

static const char *
check_v4(const uint8_t a[4], uint8_t bits)
{
	uint8_t gid[16] = {[10] = 0xff, [11] = 0xff};

	memcpy(gid + 12, a, 4);
	if (!urn_neigh_unicast(gid))
		return "no address of a station in a network; give one such as 10.0.0.1";
	if (bits && bits < 31 &&
	    (rest_is(gid, V4_BASE + bits, false) || rest_is(gid, V4_BASE + bits, true)))
		return "no address of a station, but that of the network itself or of all its "
		       "stations; give one such as 10.0.0.1/24";
	return NULL;
}

static const char *
check_v6(const uint8_t a[16], uint8_t bits)
{
	if (!urn_neigh_unicast(a) || urn_gid_is_v4(a))
		return "no address of a station in a network; give one such as fd00::1";
	if (bits && bits < 127 && rest_is(a, bits, false))
		return "no address of a station, but that of the network itself; give one such as "
		       "fd00::1/64";
	return NULL;
}

const char *
urn_config_parse_station(const char *text, bool v6, uint8_t addr[16], uint8_t *bits)
{
	char address[INET6_ADDRSTRLEN];

	if (!split(text, v6 ? 128 : 32, address, bits) || (strchr(text, '/') && *bits == 0))
		return v6 ? "the length behind the / is 1 to 128 bits, such as fd00::1/64"
			  : "the length behind the / is 1 to 32 bits, such as 10.0.0.1/24";
	if (inet_pton(v6 ? AF_INET6 : AF_INET, address, addr) != 1)
		return v6 ? "give an IPv6 address, such as fd00::1 or fd00::1/64"
			  : "give an IPv4 address, such as 10.0.0.1 or 10.0.0.1/24";
	return v6 ? check_v6(addr, *bits) : check_v4(addr, *bits);
}

/* ---- routes of one adapter */

/* An adapter whose routes are taken. */
struct taking {
	struct urn_config_ctx *ctx;
	const struct urn_ini_section *s;
	struct urn_adapter_config *a;
	unsigned int line[ROUTES_MAX]; /* each route's */
};

/* Write a prefix: "10.1.0.0/16". returns out */
static const char *
prefix_text(const uint8_t gid[16], unsigned int len, char out[INET6_ADDRSTRLEN + 4])
{
	bool v4 = urn_gid_is_v4(gid);
	size_t n;

	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? gid + 12 : gid, out, INET6_ADDRSTRLEN);
	n = strlen(out);
	snprintf(out + n, INET6_ADDRSTRLEN + 4 - n, "/%u", v4 ? len - V4_BASE : len);
	return out;
}

/* The prefix of the adapter's own address of a family. returns: its length, 0: none was given */
static unsigned int
own_prefix(const struct urn_adapter_config *a, bool v4, uint8_t gid[16])
{
	memcpy(gid, none, 16);
	if (!v4) {
		memcpy(gid, a->ipv6, 16);
		return memcmp(gid, none, 16) != 0 ? a->ipv6_bits : 0;
	}
	gid[10] = gid[11] = 0xff;
	memcpy(gid + 12, a->ipv4, 4);
	return memcmp(a->ipv4, none, 4) != 0 && a->ipv4_bits ? V4_BASE + a->ipv4_bits : 0;
}

/* Check the router of a route. who: the router's text. returns: false: reported */
static bool
router_ok(struct taking *t, unsigned int line, const uint8_t via[16], const char *who)
{
	bool v4 = urn_gid_is_v4(via);
	char text[INET6_ADDRSTRLEN + 4];
	uint8_t own[16];
	unsigned int len = own_prefix(t->a, v4, own);

	if (len == 0)
		urn_config_say(
			t->ctx, line,
			"the router %.*s is of use only with a prefix on the link: write %s, "
			"with the adapter's own address",
			SHOWN, who, v4 ? "ipv4 = 10.0.0.1/24" : "ipv6 = fd00::1/64");
	else if (memcmp(via, own, 16) == 0)
		urn_config_say(t->ctx, line, "%.*s is the adapter's own address; give the router's",
			       SHOWN, who);
	else if (!urn_neigh_unicast(via))
		urn_config_say(t->ctx, line, "%.*s is no address of a router; give one in %s",
			       SHOWN, who, v4 ? "the prefix of ipv4" : "the prefix of ipv6");
	else if (!urn_neigh_link_local(via) && !urn_neigh_same_prefix(own, via, len)) {
		(void)urn_neigh_mask(own, len);
		urn_config_say(t->ctx, line,
			       "%.*s is outside of %s, the prefix of %s (line %u), so it can't be "
			       "asked; give a router on the link",
			       SHOWN, who, prefix_text(own, len, text), v4 ? "ipv4" : "ipv6",
			       urn_config_line(t->s, v4 ? "ipv4" : "ipv6"));
	} else if (v4 && len < V4_BASE + 31 &&
		   (rest_is(via, len, false) || rest_is(via, len, true)))
		urn_config_say(
			t->ctx, line,
			"%.*s is no address of a router, but that of the network itself or of all "
			"its stations; give the router's",
			SHOWN, who);
	else
		return true;
	return false;
}

/* Check that no other route has the prefix. returns: false: reported */
static bool
is_new(struct taking *t, unsigned int line, const struct urn_neigh_route *r)
{
	bool v4 = urn_gid_is_v4(r->prefix);
	char text[INET6_ADDRSTRLEN + 4];
	uint8_t own[16];

	prefix_text(r->prefix, r->len, text);
	for (unsigned int i = 0; i < t->a->routes; i++) {
		const struct urn_neigh_route *o = &t->a->route[i];

		if (o->len != r->len || !urn_neigh_same_prefix(o->prefix, r->prefix, r->len))
			continue;
		urn_config_say(t->ctx, line, "%s has a router already (line %u); leave one out",
			       text, t->line[i]);
		return false;
	}
	if (urn_neigh_link_local(r->prefix) && r->len >= 10) {
		urn_config_say(t->ctx, line, "%s is always on the link; leave the route out", text);
		return false;
	}
	if (own_prefix(t->a, v4, own) == r->len && urn_neigh_same_prefix(own, r->prefix, r->len)) {
		urn_config_say(
			t->ctx, line,
			"%s is the prefix of %s (line %u), and on the link; leave the route out",
			text, v4 ? "ipv4" : "ipv6", urn_config_line(t->s, v4 ? "ipv4" : "ipv6"));
		return false;
	}
	return true;
}

/* Enter a route that was checked. */
static void
add(struct taking *t, unsigned int line, const struct urn_neigh_route *r)
{
	struct urn_adapter_config *a = t->a;

	if (!a->route)
		a->route = calloc(ROUTES_MAX, sizeof(*a->route));
	if (!a->route)
		t->ctx->no_room = true;
	else if (a->routes == ROUTES_MAX)
		urn_config_say(t->ctx, line, "an adapter has room for %u routes; leave some out",
			       (unsigned int)ROUTES_MAX);
	else {
		t->line[a->routes] = line;
		a->route[a->routes++] = *r;
	}
}

/* Take "gateway = 10.0.0.254, fd00::fe". */
static void
take_gateways(struct taking *t, const struct urn_ini_entry *e)
{
	const char *at = e->value.s, *word;
	char text[SHOWN];
	size_t n;

	while ((n = urn_config_word(&at, &word)) > 0) {
		struct urn_neigh_route r = {.kind = URN_NEIGH_ROUTE_GATEWAY};

		if (urn_config_parse_gid(word, n, r.via) != 0)
			return; /* reported with the value */
		snprintf(text, sizeof(text), "%.*s", (int)n, word);
		if (urn_gid_is_v4(r.via)) {
			r.len = V4_BASE;
			r.prefix[10] = r.prefix[11] = 0xff;
		}
		if (router_ok(t, e->key.line, r.via, text) && is_new(t, e->key.line, &r))
			add(t, e->key.line, &r);
	}
}

/* Parse the prefix of a route. returns: false: reported */
static bool
take_prefix(struct taking *t, const struct urn_ini_entry *e, const char *text,
	    struct urn_neigh_route *r)
{
	char address[INET6_ADDRSTRLEN];
	bool v4;

	if (!split(text, 128, address, &r->len) || !strchr(text, '/') ||
	    urn_config_parse_gid(address, strlen(address), r->prefix) != 0 ||
	    (urn_gid_is_v4(r->prefix) && r->len > 32)) {
		urn_config_say(t->ctx, e->key.line,
			       "%.*s is no prefix of a network; write route 10.1.0.0/16 = "
			       "10.0.0.254, or route fd01::/48 = fd00::fe",
			       SHOWN, text);
		return false;
	}
	v4 = urn_gid_is_v4(r->prefix);
	r->len = (uint8_t)(r->len + (v4 ? V4_BASE : 0));
	if (urn_neigh_mask(r->prefix, r->len)) {
		char right[INET6_ADDRSTRLEN + 4];

		urn_config_say(t->ctx, e->key.line,
			       "%.*s has bits behind its length; did you mean %s?", SHOWN, text,
			       prefix_text(r->prefix, r->len, right));
		return false;
	}
	if (v4 == urn_gid_is_v4(r->via))
		return true;
	urn_config_say(t->ctx, e->key.line, "%.*s and its router %.*s are not both IPv4 or IPv6",
		       SHOWN, text, SHOWN, e->value.s);
	return false;
}

/* Take "route 10.1.0.0/16 = 10.0.0.254". */
static void
take_route(struct taking *t, const struct urn_ini_entry *e)
{
	const char *text = strchr(e->key.s, ' ');
	struct urn_neigh_route r = {.kind = URN_NEIGH_ROUTE_STATIC};

	if (urn_config_parse_gid(e->value.s, strlen(e->value.s), r.via) != 0)
		return; /* reported with the value */
	if (take_prefix(t, e, text ? text + 1 : "", &r) &&
	    router_ok(t, e->key.line, r.via, e->value.s) && is_new(t, e->key.line, &r))
		add(t, e->key.line, &r);
}

/* ---- router advertisements */

/* Check that router advertisements get in at a port; port: its index, or -1. */
static void
check_ra_port(const struct taking *t, int port, unsigned int line)
{
	const struct urn_config_port *p = port >= 0 ? &t->ctx->cfg->port[port] : NULL;

	if (p && !p->no_filter && strncmp(p->port.device, "net_af_xdp", 10) == 0)
		urn_config_say(t->ctx, line,
			       "accept_ra = yes can't work on port %s (line %u): the filter of "
			       "net_af_xdp leaves router advertisements to the kernel; give a "
			       "gateway, or filter = no in the port",
			       p->port.name, p->line);
	else if (p && p->port.steer)
		urn_config_say(t->ctx, line,
			       "steer = yes of port %s (line %u) lets no router advertisement in; "
			       "leave out steer, or accept_ra",
			       p->port.name, urn_config_line(t->ctx->port[port], "steer"));
}

/* Check that an adapter can use router advertisements, and gets them. */
static void
check_ra(const struct taking *t, const struct urn_config_adapter *a)
{
	unsigned int line = t->s ? urn_config_line(t->s, "accept_ra") : 0;
	uint8_t own[16];

	if (!t->a->accept_ra)
		return;
	if (own_prefix(t->a, false, own) == 0)
		urn_config_say(t->ctx, line,
			       "accept_ra = yes is of use only with a prefix on the link: write "
			       "ipv6 = fd00::1/64, with the adapter's own address");
	else
		for (unsigned int k = 0; k < 2; k++)
			check_ra_port(t, k == 0 ? a->port : a->port2, line);
}

void
urn_config_routes(struct urn_config_ctx *ctx)
{
	for (unsigned int i = 0; i < ctx->cfg->adapters; i++) {
		struct taking t = {
			.ctx = ctx, .s = ctx->adapter[i], .a = &ctx->cfg->adapter[i].adapter};

		for (unsigned int k = 0; t.s && k < t.s->entries; k++) {
			const struct urn_ini_entry *e = &t.s->entry[k];

			if (strcmp(e->key.s, "gateway") == 0)
				take_gateways(&t, e);
			else if (strcmp(e->key.s, "route") == 0 ||
				 strncmp(e->key.s, "route ", 6) == 0)
				take_route(&t, e);
		}
		check_ra(&t, &ctx->cfg->adapter[i]);
	}
}
