/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports on the network around adapters: neighbours and routes. */
#include "report/report_priv.h"

#include "wire/build.h"

#include <stdio.h>

/* ---- neighbours */

/* Name of the state of a peer's features (net/learn.h); "" when the adapter sends no link requests.
 */
static const char *
peer_kind(const struct urn_adapter *a, const uint8_t gid[16])
{
	return a->learn ? urn_learn_state_name(urn_learn_peek(a->learn, gid, NULL)) : "";
}

static void
one_neighbour(const struct urn_adapter *a, const struct urn_neigh_info *n,
	      struct urn_report_sink *s)
{
	char text[48];

	s->begin(s, "neighbour", false);
	s->str(s, "adapter", a->cfg.name);
	s->str(s, "address", report_gid(n->gid, text));
	s->str(s, "mac",
	       n->state == URN_NEIGH_REACHABLE || n->state == URN_NEIGH_STALE
		       ? report_mac(n->mac, text)
		       : "");
	s->str(s, "state", urn_neigh_state_name(n->state));
	s->flag(s, "static", n->fixed);
	s->u64(s, "routes", n->routes);
	s->str(s, "peer", peer_kind(a, n->gid));
	s->end(s);
}

int
urn_report_neighbours(const struct urn_report_source *src, struct urn_report_query *q,
		      struct urn_report_sink *s, struct urn_err *err)
{
	uint32_t rows = report_rows(q);
	struct urn_neigh_info n[32];

	if (report_check_adapter(src, q->adapter, err) != 0)
		return URN_REPORT_FAILED;
	for (; q->at.outer < src->dp->adapters_n; q->at.outer++, q->at.inner = 0) {
		struct urn_adapter *a = src->dp->adapter[q->at.outer];
		unsigned int got;

		if (!report_named(q->adapter, a->cfg.name))
			continue;
		do {
			if (rows == 0)
				return URN_REPORT_MORE;
			got = urn_neigh_list(a->neigh, &q->at.inner, n, rows < 32 ? rows : 32);
			for (unsigned int i = 0; i < got; i++)
				one_neighbour(a, &n[i], s);
			rows -= got;
		} while (got);
	}
	return URN_REPORT_DONE;
}

/* ---- routes */

static const char *
route_kind(unsigned int kind)
{
	static const char *const names[] = {
		[URN_NEIGH_ROUTE_LINK] = "prefix",  [URN_NEIGH_ROUTE_GATEWAY] = "gateway",
		[URN_NEIGH_ROUTE_STATIC] = "route", [URN_NEIGH_ROUTE_ROUTER] = "ra",
		[URN_NEIGH_ROUTE_RA_LINK] = "ra",
	};

	return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "?";
}

static void
one_route(struct urn_adapter *a, const struct urn_neigh_route *r, struct urn_report_sink *s)
{
	bool link = urn_neigh_route_on_link(r->kind);
	enum urn_neigh_state state = URN_NEIGH_NONE;
	char text[48], prefix[56];
	uint8_t mac[6];

	snprintf(prefix, sizeof(prefix), "%s/%u", report_gid(r->prefix, text),
		 urn_gid_is_v4(r->prefix) ? r->len - 96u : r->len);
	if (!link)
		state = urn_neigh_peek(a->neigh, r->via, mac);
	s->begin(s, "route", false);
	s->str(s, "adapter", a->cfg.name);
	s->str(s, "prefix", prefix);
	s->str(s, "via", link ? "" : report_gid(r->via, text));
	s->str(s, "mac",
	       state == URN_NEIGH_REACHABLE || state == URN_NEIGH_STALE ? report_mac(mac, text)
									: "");
	s->str(s, "state", link ? "" : urn_neigh_state_name(state));
	s->str(s, "from", route_kind(r->kind));
	s->u64(s, "lifetime_s", r->left_s);
	s->end(s);
}

int
urn_report_routes(const struct urn_report_source *src, struct urn_report_query *q,
		  struct urn_report_sink *s, struct urn_err *err)
{
	struct urn_neigh_route r[URN_NEIGH_ROUTES_ALL];

	if (report_check_adapter(src, q->adapter, err) != 0)
		return URN_REPORT_FAILED;
	/* An adapter's routes are few, and come at once: they have no place to go on from. */
	for (; q->at.outer < src->dp->adapters_n; q->at.outer++) {
		struct urn_adapter *a = src->dp->adapter[q->at.outer];
		unsigned int n;

		if (!report_named(q->adapter, a->cfg.name))
			continue;
		n = urn_neigh_routes(a->neigh, r, URN_NEIGH_ROUTES_ALL);
		for (unsigned int i = 0; i < n; i++)
			one_route(a, &r[i], s);
		q->at.outer++;
		return URN_REPORT_MORE;
	}
	return URN_REPORT_DONE;
}
