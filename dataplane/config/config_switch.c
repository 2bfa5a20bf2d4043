/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plugs of switches, by name: ports that the switch lists, adapters
 * that name the switch, and links between switches, which must not make a loop.
 * Then the keys that use those names: impairments, static addresses.
 */
#include "config/config_priv.h"

#include "switch/impair_words.h"

#include <stdlib.h>
#include <string.h>

#define SHOWN 48
/* Static addresses of one switch. */
#define STATICS_MAX 1024u
/* Routes of one switch. */
#define ROUTES_MAX 4096u
/* Plugs of one switch. */
#define PLUGS_MAX (2 * URN_CONFIG_MAX_PORTS + URN_CONFIG_MAX_SWITCHES)

_Static_assert(PLUGS_MAX <= URN_SWITCH_MAX_PORTS, "ports of a switch");
_Static_assert(URN_CONFIG_MAX_SWITCHES <= 64, "bits of said[]");

/* ---- plugs */

static int
find_plug(const struct urn_config_switch *w, const char *name, size_t n)
{
	for (unsigned int i = 0; i < w->plugs; i++) {
		if (strlen(w->plug[i].port.name) == n &&
		    strncmp(w->plug[i].port.name, name, n) == 0)
			return (int)i;
	}
	return -1;
}

static const char *
kind_name(enum urn_config_plug_kind kind)
{
	return kind == URN_CONFIG_PLUG_PORT	 ? "port"
	       : kind == URN_CONFIG_PLUG_ADAPTER ? "adapter"
						 : "switch";
}

/* returns: the plug's index, or -1: its name is taken, reported */
static int
add_plug(struct urn_config_ctx *ctx, struct urn_config_switch *w, enum urn_config_plug_kind kind,
	 unsigned int index, const char *name, unsigned int line)
{
	int other = find_plug(w, name, strlen(name));
	struct urn_config_plug *p;

	if (other >= 0) {
		urn_config_say(ctx, line,
			       "switch %s would have two ports called %s: [%s %s] and [%s %s]; "
			       "rename one",
			       w->sw.name, name, kind_name(w->plug[other].kind), name,
			       kind_name(kind), name);
		return -1;
	}
	if (!w->plug)
		w->plug = calloc(PLUGS_MAX, sizeof(*w->plug));
	if (!w->plug) {
		ctx->no_room = true;
		return -1;
	}
	p = &w->plug[w->plugs];
	p->kind = kind;
	p->index = index;
	p->line = line;
	snprintf(p->port.name, sizeof(p->port.name), "%s", name);
	return (int)w->plugs++;
}

static void
plug_port(struct urn_config_ctx *ctx, unsigned int index, const char *name, size_t n,
	  unsigned int line)
{
	struct urn_config *cfg = ctx->cfg;
	int i = urn_config_find_port(cfg, name, n);
	struct urn_config_port *p = i >= 0 ? &cfg->port[i] : NULL;

	if (!p) {
		urn_config_say_missing(ctx, line, URN_CK_PORT, name, n);
		return;
	}
	if (p->adapter >= 0) {
		urn_config_say(ctx, line,
			       "port %s is that of adapter %s (line %u); to have both on the "
			       "switch, give the adapter switch = %s instead",
			       p->port.name, cfg->adapter[p->adapter].adapter.name,
			       urn_config_line(ctx->adapter[p->adapter], "port"),
			       cfg->sw[index].sw.name);
		return;
	}
	if (p->sw >= 0) {
		urn_config_say(ctx, line,
			       "port %s is plugged into switch %s already (line %u); leave it out "
			       "here or there",
			       p->port.name, cfg->sw[p->sw].sw.name,
			       urn_config_line(ctx->sw[p->sw], "ports"));
		return;
	}
	p->plug = add_plug(ctx, &cfg->sw[index], URN_CONFIG_PLUG_PORT, (unsigned int)i,
			   p->port.name, line);
	p->sw = (int)index;
}

static void
plug_ports(struct urn_config_ctx *ctx, unsigned int index)
{
	const struct urn_ini_entry *e = urn_ini_find(ctx->sw[index], "ports");
	const char *at, *name;
	size_t n;

	if (!e)
		return;
	at = e->value.s;
	while ((n = urn_config_word(&at, &name)) > 0 && urn_config_is_name(name, n))
		plug_port(ctx, index, name, n, e->key.line);
}

static void
plug_adapters(struct urn_config_ctx *ctx, unsigned int index)
{
	for (unsigned int i = 0; i < ctx->cfg->adapters; i++) {
		struct urn_config_adapter *a = &ctx->cfg->adapter[i];
		bool second = a->two && a->sw2 == (int)index;
		int *plug = second ? &a->plug2 : &a->plug;

		if (a->sw != (int)index && !second)
			continue;
		*plug = add_plug(ctx, &ctx->cfg->sw[index], URN_CONFIG_PLUG_ADAPTER, i,
				 a->adapter.name, urn_config_line(ctx->adapter[i], "switch"));
		if (*plug >= 0)
			ctx->cfg->sw[index].plug[*plug].second = second;
	}
}

/* ---- links, and the engines that linked switches share */

struct links {
	uint64_t said[URN_CONFIG_MAX_SWITCHES]; /* by switch; bit i: the switch lists switch i */
	struct urn_config_tree tree;
};

static void
link_to(struct urn_config_ctx *ctx, struct links *l, unsigned int a, const char *name, size_t n,
	unsigned int line)
{
	struct urn_config *cfg = ctx->cfg;
	int i = urn_config_find_switch(cfg, name, n), pa, pb;
	unsigned int b = (unsigned int)i;
	struct urn_config_switch *w = &cfg->sw[a];

	if (i < 0) {
		urn_config_say_missing(ctx, line, URN_CK_SWITCH, name, n);
		return;
	}
	if (b == a || l->said[a] & 1ull << b) {
		urn_config_say(ctx, line,
			       b == a ? "switch %s is linked with itself; leave it out"
				      : "switch %s is in the list twice; one link is all there is "
					"between two",
			       cfg->sw[b].sw.name);
		return;
	}
	l->said[a] |= 1ull << b;
	if (l->said[b] & 1ull << a)
		return; /* the same link, listed at its other end */
	if (!urn_config_tree_join(&l->tree, a, b)) {
		urn_config_say(ctx, line,
			       "switches %s and %s are joined already by other links, and frames "
			       "would go round for ever; leave this one out",
			       w->sw.name, cfg->sw[b].sw.name);
		return;
	}
	pa = add_plug(ctx, w, URN_CONFIG_PLUG_LINK, b, cfg->sw[b].sw.name, line);
	pb = add_plug(ctx, &cfg->sw[b], URN_CONFIG_PLUG_LINK, a, w->sw.name, line);
	if (pa < 0 || pb < 0)
		return;
	w->plug[pa].peer = (unsigned int)pb;
	cfg->sw[b].plug[pb].peer = (unsigned int)pa;
}

static void
link_all(struct urn_config_ctx *ctx, struct links *l)
{
	for (unsigned int i = 0; i < ctx->cfg->switches; i++) {
		const struct urn_ini_entry *e = urn_ini_find(ctx->sw[i], "links");
		const char *at, *name;
		size_t n;

		if (!e)
			continue;
		at = e->value.s;
		while ((n = urn_config_word(&at, &name)) > 0 && urn_config_is_name(name, n))
			link_to(ctx, l, i, name, n, e->key.line);
	}
}

static void
share_engines(struct urn_config_ctx *ctx, const struct links *l)
{
	struct urn_config *cfg = ctx->cfg;
	int by[URN_CONFIG_MAX_SWITCHES]; /* by root: the switch that names an engine; -1: none */

	memset(by, 0xff, sizeof(by));
	for (unsigned int i = 0; i < cfg->switches; i++) {
		const struct urn_ini_entry *e = urn_ini_find(ctx->sw[i], "engine");
		struct urn_config_switch *w = &cfg->sw[i];
		int first = by[l->tree.root[i]];

		if (!e)
			continue;
		if (w->engine >= cfg->engines)
			urn_config_say(ctx, e->key.line,
				       "there is no engine %u; the last one is engine %u. Write a "
				       "section [engine %u], or give another",
				       w->engine, cfg->engines - 1, w->engine);
		if (first < 0)
			by[l->tree.root[i]] = (int)i;
		else if (cfg->sw[first].engine != w->engine)
			urn_config_say(ctx, e->key.line,
				       "switch %s is linked with switch %s, which engine %u runs "
				       "(line %u); linked switches share an engine",
				       w->sw.name, cfg->sw[first].sw.name, cfg->sw[first].engine,
				       urn_config_line(ctx->sw[first], "engine"));
	}
	for (unsigned int i = 0; i < cfg->switches; i++) {
		int first = by[l->tree.root[i]];

		if (first >= 0)
			cfg->sw[i].engine = cfg->sw[first].engine;
	}
}

/* ---- keys on a plug */

/* Find the plug with the name that an entry's key has, n bytes. returns: its index, or -1: reported */
static int
find_who(struct urn_config_ctx *ctx, const struct urn_config_switch *w,
	 const struct urn_ini_entry *e, const char *who, size_t n)
{
	unsigned int line = e->key.line;
	int i = find_plug(w, who, n);
	int len = (int)RTE_MIN(n, (size_t)SHOWN);
	struct urn_near near;
	char word[SHOWN + 1] = "";

	if (i >= 0)
		return i;
	memcpy(word, who, (size_t)len);
	urn_near_begin(&near, word);
	for (unsigned int p = 0; p < w->plugs; p++)
		urn_near_try(&near, w->plug[p].port.name);
	if (n == 0)
		urn_config_say(
			ctx, line,
			"%.6s wants the name of a port, adapter or switch that is plugged into "
			"switch %s behind it",
			e->key.s, w->sw.name);
	else if (near.best)
		urn_config_say(ctx, line,
			       "nothing called %s is plugged into switch %s; did you mean %s?",
			       word, w->sw.name, near.best);
	else
		urn_config_say(ctx, line,
			       "nothing called %s is plugged into switch %s; give the name of a "
			       "port, adapter or switch that is",
			       word, w->sw.name);
	return -1;
}

/* Take blanks out: "drop=1%, delay=1ms". returns: 0, or -1: the text is too long */
static int
without_blanks(const char *s, char *out, size_t size)
{
	size_t n = 0;

	for (; *s; s++) {
		if (*s == ' ' || *s == '\t')
			continue;
		if (n + 1 >= size)
			return -1;
		out[n++] = *s;
	}
	out[n] = '\0';
	return 0;
}

/* Add a list of impairments to those of a direction. returns: 0 or -1 with *err */
static int
impair_one(struct urn_impair_config *c, const char *list, struct urn_err *err)
{
	struct urn_impair_config next = *c;

	if (urn_impair_take_list(&next, list, err) != 0 ||
	    urn_impair_check(&next, err->text, sizeof(err->text)) != 0)
		return -1;
	*c = next;
	return 0;
}

/* Lines of "impair WHO", "impair WHO.in" and "impair WHO.out", 0: not yet. */
typedef unsigned int impaired[PLUGS_MAX][3];

static void
impair(struct urn_config_ctx *ctx, struct urn_config_switch *w, const struct urn_ini_entry *e,
       impaired lines)
{
	const char *who = e->key.s + strlen("impair") + (e->key.s[strlen("impair")] == ' ');
	bool way[2];
	size_t n = urn_config_direction(who, strlen(who), way), name = strcspn(who, ".");
	unsigned int which = !way[URN_SWITCH_OUT] ? 1 : !way[URN_SWITCH_IN] ? 2 : 0;
	struct urn_err err = {""};
	char list[512];
	int p;

	if (name < n) {
		urn_config_say(
			ctx, e->key.line,
			"%.*s is no direction; write impair %.*s.in for frames from it, .out "
			"for frames to it, or neither for both",
			SHOWN, who + name, (int)RTE_MIN(name, (size_t)SHOWN), who);
		return;
	}
	p = find_who(ctx, w, e, who, n);
	if (p < 0)
		return;
	if (lines[p][which] != 0) {
		urn_config_say(ctx, e->key.line,
			       "%s is given in line %u already; put both lists on one line",
			       e->key.s, lines[p][which]);
		return;
	}
	lines[p][which] = e->key.line;
	if (without_blanks(e->value.s, list, sizeof(list)) != 0)
		urn_err_set(&err, "the list is longer than %zu bytes", sizeof(list) - 1);
	else if (way[URN_SWITCH_IN])
		(void)impair_one(&w->plug[p].port.impair[URN_SWITCH_IN], list, &err);
	if (way[URN_SWITCH_OUT] && err.text[0] == '\0')
		(void)impair_one(&w->plug[p].port.impair[URN_SWITCH_OUT], list, &err);
	if (err.text[0] != '\0')
		urn_config_say(ctx, e->key.line, "%s: %s", e->key.s, err.text);
}

static int
add_static(struct urn_config_switch *w, unsigned int plug, const uint8_t mac[6])
{
	struct urn_config_static *more;

	if (w->statics % 16 == 0) {
		more = realloc(w->fixed, (w->statics + 16) * sizeof(*more));
		if (!more)
			return -1;
		w->fixed = more;
	}
	more = &w->fixed[w->statics++];
	more->plug = plug;
	memcpy(more->mac, mac, 6);
	return 0;
}

static void
fix_one(struct urn_config_ctx *ctx, struct urn_config_switch *w, unsigned int plug,
	const uint8_t mac[6], unsigned int line)
{
	for (unsigned int i = 0; i < w->statics; i++) {
		if (memcmp(w->fixed[i].mac, mac, 6) != 0)
			continue;
		urn_config_say(
			ctx, line,
			"%02x:%02x:%02x:%02x:%02x:%02x is a static address behind %s already; "
			"leave one out",
			mac[0], mac[1], mac[2], mac[3], mac[4], mac[5],
			w->plug[w->fixed[i].plug].port.name);
		return;
	}
	if (w->statics == STATICS_MAX || w->statics == w->sw.fdb.max)
		urn_config_say(ctx, line,
			       "switch %s has room for %u static addresses; leave some out%s",
			       w->sw.name, w->statics,
			       w->statics < STATICS_MAX ? ", or raise addresses" : "");
	else if (add_static(w, plug, mac) != 0)
		ctx->no_room = true;
}

static void
fix(struct urn_config_ctx *ctx, struct urn_config_switch *w, const struct urn_ini_entry *e)
{
	const char *who = e->key.s + strlen("static") + (e->key.s[strlen("static")] == ' ');
	int p = find_who(ctx, w, e, who, strlen(who));
	const char *at = e->value.s, *word;
	uint8_t mac[6];
	size_t n;

	while (p >= 0 && (n = urn_config_word(&at, &word)) > 0 &&
	       urn_config_parse_mac(word, n, mac) == 0)
		fix_one(ctx, w, (unsigned int)p, mac, e->key.line);
}

/* Room for one more route. NULL: no memory */
static struct urn_config_route *
add_route(struct urn_config_switch *w)
{
	struct urn_config_route *more;

	if (w->routes % 16 == 0) {
		more = realloc(w->route, (w->routes + 16) * sizeof(*more));
		if (!more)
			return NULL;
		w->route = more;
	}
	return &w->route[w->routes++];
}

static void
route_one(struct urn_config_ctx *ctx, struct urn_config_switch *w, unsigned int plug,
	  const uint8_t gid[16], unsigned int line)
{
	struct urn_config_route *r;

	for (unsigned int i = 0; i < w->routes; i++) {
		if (memcmp(w->route[i].gid, gid, 16) != 0)
			continue;
		urn_config_say(ctx, line, "an address has a route to %s already; leave one out",
			       w->plug[w->route[i].plug].port.name);
		return;
	}
	if (w->routes == ROUTES_MAX) {
		urn_config_say(ctx, line, "switch %s has room for %u routes; leave some out",
			       w->sw.name, ROUTES_MAX);
		return;
	}
	r = add_route(w);
	if (!r) {
		ctx->no_room = true;
		return;
	}
	r->plug = plug;
	memcpy(r->gid, gid, 16);
}

static void
route(struct urn_config_ctx *ctx, struct urn_config_switch *w, const struct urn_ini_entry *e)
{
	const char *who = e->key.s + strlen("route") + (e->key.s[strlen("route")] == ' ');
	int p = find_who(ctx, w, e, who, strlen(who));
	const char *at = e->value.s, *word;
	uint8_t gid[16];
	size_t n;

	while (p >= 0 && (n = urn_config_word(&at, &word)) > 0 &&
	       urn_config_parse_gid(word, n, gid) == 0)
		route_one(ctx, w, (unsigned int)p, gid, e->key.line);
	w->sw.routes = w->routes;
}

static bool
begins(const char *key, const char *word)
{
	size_t n = strlen(word);

	return strncmp(key, word, n) == 0 && (key[n] == ' ' || key[n] == '\0');
}

static void
say_of_plugs(struct urn_config_ctx *ctx, unsigned int index)
{
	const struct urn_ini_section *s = ctx->sw[index];
	struct urn_config_switch *w = &ctx->cfg->sw[index];
	impaired lines = {{0}};

	for (unsigned int i = 0; i < s->entries; i++) {
		if (begins(s->entry[i].key.s, "impair"))
			impair(ctx, w, &s->entry[i], lines);
		else if (begins(s->entry[i].key.s, "static"))
			fix(ctx, w, &s->entry[i]);
		else if (begins(s->entry[i].key.s, "route"))
			route(ctx, w, &s->entry[i]);
	}
	if (w->plugs == 0)
		urn_config_say(ctx, w->line,
			       "nothing is plugged into switch %s; give it ports = NAME, or an "
			       "adapter switch = %s",
			       w->sw.name, w->sw.name);
}

void
urn_config_plug(struct urn_config_ctx *ctx)
{
	unsigned int n = ctx->cfg->switches;
	struct links l = {{0}};

	for (unsigned int i = 0; i < n; i++)
		urn_classify_preset(&ctx->cfg->sw[i].sw.lossless.map);

	urn_config_tree_init(&l.tree);
	for (unsigned int i = 0; i < n; i++) {
		plug_ports(ctx, i);
		plug_adapters(ctx, i);
	}
	link_all(ctx, &l);
	share_engines(ctx, &l);
	for (unsigned int i = 0; i < n; i++)
		say_of_plugs(ctx, i);
	urn_config_lossless(ctx);
}
