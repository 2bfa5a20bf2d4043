/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys of a lossless switch: lists of priorities and header fields, "dscp PRIORITY" and "pcp
 * PRIORITY", which change the map of frames to priorities, and numbers that must agree with each
 * other.
 */
#include "config/config_priv.h"

#include "units.h"

#include <stdlib.h>
#include <string.h>

int
urn_config_parse_set(const char *text, unsigned int max, uint64_t *set)
{
	const char *at = text, *word;
	size_t n;

	*set = 0;
	while ((n = urn_config_word(&at, &word)) > 0) {
		char copy[16] = "", *dash;
		uint64_t first, last;

		if (n >= sizeof(copy))
			return -1;
		memcpy(copy, word, n);
		dash = strchr(copy, '-');
		if (dash)
			*dash++ = '\0';
		if (urn_text_parse_uint(copy, &first) != 0 ||
		    urn_text_parse_uint(dash ? dash : copy, &last) != 0 || first > last ||
		    last > max)
			return -1;
		for (; first <= last; first++)
			*set |= 1ull << first;
	}
	return *set != 0 ? 0 : -1;
}

int
urn_config_map(struct urn_classify_map *map, bool dscp, const char *priority, const char *list)
{
	uint8_t *to = dscp ? map->dscp : map->pcp;
	uint64_t p, set;

	if (urn_text_parse_uint(priority, &p) != 0 || p >= URN_SWQ_PRIORITIES ||
	    urn_config_parse_set(list, dscp ? URN_DSCPS - 1 : URN_PCPS - 1, &set) != 0)
		return -1;
	for (; set != 0; set &= set - 1)
		to[__builtin_ctzll(set)] = (uint8_t)p;
	return 0;
}

/* True when an adapter on one switch can go on over the other one as it is. */
static bool
same_classes(const struct urn_lossless_config *l, const struct urn_lossless_config *m)
{
	return l->priorities == m->priorities &&
	       (!l->priorities || memcmp(&l->map, &m->map, sizeof(l->map)) == 0);
}

/* An adapter sorts its frames as its switch does, and obeys that switch unless the file says
 * otherwise. */
static void
take_adapters(struct urn_config_ctx *ctx)
{
	for (unsigned int i = 0; i < ctx->cfg->adapters; i++) {
		struct urn_config_adapter *a = &ctx->cfg->adapter[i];
		const struct urn_lossless_config *l =
			a->sw >= 0 ? &ctx->cfg->sw[a->sw].sw.lossless : NULL;
		struct urn_obey_config *o = &a->adapter.obey;

		if (a->two && a->sw2 >= 0 && l &&
		    !same_classes(l, &ctx->cfg->sw[a->sw2].sw.lossless))
			urn_config_say(ctx, urn_config_line(ctx->adapter[i], "switch"),
				       "switches %s and %s of adapter %s have other lossless "
				       "priorities, or sort frames otherwise; give both the same",
				       ctx->cfg->sw[a->sw].sw.name, ctx->cfg->sw[a->sw2].sw.name,
				       a->adapter.name);
		urn_classify_preset(&o->map);
		if (!l || !l->priorities)
			continue;
		if (!ctx->adapter[i] || !urn_ini_find(ctx->adapter[i], "pfc"))
			o->on = true;
		o->map = l->map;
		o->watchdog_ns = l->watchdog_ns;
		o->restore_ns = l->restore_ns;
	}
}

/* Take "dscp PRIORITY = LIST" or "pcp PRIORITY = LIST". */
static void
take_map(struct urn_config_ctx *ctx, struct urn_config_switch *w, const struct urn_ini_entry *e)
{
	const char *blank = strchr(e->key.s, ' ');
	bool dscp = e->key.s[0] == 'd';
	uint64_t set;

	/* A bad list was reported with the value. */
	if (urn_config_parse_set(e->value.s, dscp ? URN_DSCPS - 1 : URN_PCPS - 1, &set) == 0 &&
	    (!blank || urn_config_map(&w->sw.lossless.map, dscp, blank + 1, e->value.s) != 0))
		urn_config_say(
			ctx, e->key.line,
			"%.*s wants a priority from 0 to 7 behind its name, such as %s 3 = %s", 48,
			e->key.s, dscp ? "dscp" : "pcp", dscp ? "26" : "3");
}

static void
take_switch(struct urn_config_ctx *ctx, unsigned int index)
{
	static const char *const only[] = {"share",    "xoff",	  "xon", "headroom", "queue",
					   "watchdog", "restore", "pfc", "dscp",     "pcp"};
	const struct urn_ini_section *s = ctx->sw[index];
	struct urn_config_switch *w = &ctx->cfg->sw[index];
	const struct urn_lossless_config *l = &w->sw.lossless;

	for (unsigned int i = 0; i < s->entries; i++) {
		const char *key = s->entry[i].key.s;
		size_t n = strcspn(key, " ");

		for (unsigned int k = 0; k < RTE_DIM(only) && l->priorities == 0; k++)
			if (strlen(only[k]) == n && strncmp(key, only[k], n) == 0)
				urn_config_say(
					ctx, s->entry[i].key.line,
					"%.*s does nothing without lossless; give lossless = "
					"PRIORITIES, or leave it out",
					(int)n, key);
		if (l->priorities && (strncmp(key, "dscp", n) == 0 || strncmp(key, "pcp", n) == 0))
			take_map(ctx, w, &s->entry[i]);
	}
	if (l->priorities && l->xon > l->xoff)
		urn_config_say(
			ctx, urn_config_line(s, "xon"),
			"xon is more than xoff, so a sender would stop and go on at the same "
			"time; give less, or raise xoff");
}

/* Take the pfc of ports; those that no lossless switch has do nothing with the key. */
static void
take_ports(struct urn_config_ctx *ctx)
{
	for (unsigned int i = 0; i < ctx->cfg->ports; i++) {
		const struct urn_config_port *p = &ctx->cfg->port[i];
		struct urn_config_switch *w = p->sw >= 0 ? &ctx->cfg->sw[p->sw] : NULL;

		if (!ctx->port[i] || !urn_ini_find(ctx->port[i], "pfc"))
			continue;
		if (!w || !w->sw.lossless.priorities)
			urn_config_say(ctx, urn_config_line(ctx->port[i], "pfc"),
				       "pfc of port %s does nothing, because it is not on a "
				       "lossless switch; %s",
				       p->port.name,
				       p->adapter >= 0
					       ? "move it to its adapter"
					       : "give the switch lossless = PRIORITIES, or leave "
						 "it out");
		else if (p->plug >= 0)
			w->plug[p->plug].port.pfc =
				p->no_pfc ? URN_SWITCH_PFC_NO : URN_SWITCH_PFC_YES;
	}
}

void
urn_config_lossless(struct urn_config_ctx *ctx)
{
	for (unsigned int i = 0; i < ctx->cfg->switches; i++)
		take_switch(ctx, i);
	take_ports(ctx);
	take_adapters(ctx);
}
