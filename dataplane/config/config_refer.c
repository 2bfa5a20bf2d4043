/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of other sections in the sections of adapters. */
#include "config/config_priv.h"

#include <string.h>

/* Longest name that a sentence repeats. */
#define SHOWN 48

unsigned int
urn_config_line(const struct urn_ini_section *section, const char *key)
{
	const struct urn_ini_entry *e;

	if (!section)
		return 0;
	e = urn_ini_find(section, key);
	return e ? e->key.line : section->kind.line;
}

static bool
is(const char *name, const char *s, size_t n)
{
	return strlen(name) == n && strncmp(name, s, n) == 0;
}

int
urn_config_find_port(const struct urn_config *cfg, const char *name, size_t n)
{
	for (unsigned int i = 0; i < cfg->ports; i++) {
		if (is(cfg->port[i].port.name, name, n))
			return (int)i;
	}
	return -1;
}

int
urn_config_find_switch(const struct urn_config *cfg, const char *name, size_t n)
{
	for (unsigned int i = 0; i < cfg->switches; i++) {
		if (is(cfg->sw[i].sw.name, name, n))
			return (int)i;
	}
	return -1;
}

void
urn_config_say_missing(struct urn_config_ctx *ctx, unsigned int line, enum urn_config_kind_id kind,
		       const char *name, size_t n)
{
	const struct urn_config *cfg = ctx->cfg;
	bool port = kind == URN_CK_PORT;
	int len = (int)(n < SHOWN ? n : SHOWN);
	char word[SHOWN + 1] = "";
	struct urn_near near;

	memcpy(word, name, (size_t)len);
	if (port ? urn_config_find_switch(cfg, name, n) >= 0
		 : urn_config_find_port(cfg, name, n) >= 0) {
		urn_config_say(
			ctx, line, "%s is a %s, and here stand %s", word, port ? "switch" : "port",
			port ? "ports; an adapter has switch = NAME, another switch links = "
			       "NAME"
			     : "switches; an adapter has port = NAME, a switch ports = NAME");
		return;
	}
	urn_near_begin(&near, word);
	for (unsigned int i = 0; port && i < cfg->ports; i++)
		urn_near_try(&near, cfg->port[i].port.name);
	for (unsigned int i = 0; !port && i < cfg->switches; i++)
		urn_near_try(&near, cfg->sw[i].sw.name);
	if (near.best)
		urn_config_say(ctx, line, "there is no [%s %s]; did you mean %s?",
			       port ? "port" : "switch", word, near.best);
	else
		urn_config_say(ctx, line,
			       "there is no [%s %s]; write that section, or give the "
			       "name of another",
			       port ? "port" : "switch", word);
}

/* Take port number k of an adapter, 0 or 1, by its name of n bytes. */
static void
take_port(struct urn_config_ctx *ctx, unsigned int index, const struct urn_ini_entry *e,
	  const char *name, size_t n, unsigned int k)
{
	struct urn_config_adapter *a = &ctx->cfg->adapter[index];
	int i = urn_config_find_port(ctx->cfg, name, n);
	struct urn_config_port *p;

	if (i < 0) {
		urn_config_say_missing(ctx, e->key.line, URN_CK_PORT, name, n);
		return;
	}
	p = &ctx->cfg->port[i];
	if (p->adapter == (int)index) {
		urn_config_say(ctx, e->key.line,
			       "port %s is in the list twice; name two ports, or one once",
			       p->port.name);
		return;
	}
	if (p->adapter >= 0) {
		urn_config_say(ctx, e->key.line,
			       "port %s is that of adapter %s already (line %u); give each adapter "
			       "its own, or plug both into a switch",
			       p->port.name, ctx->cfg->adapter[p->adapter].adapter.name,
			       urn_config_line(ctx->adapter[p->adapter], "port"));
		return;
	}
	p->adapter = (int)index;
	*(k == 0 ? &a->port : &a->port2) = i;
}

/* Take switch number k of an adapter, 0 or 1, by its name of n bytes. */
static void
take_switch(struct urn_config_ctx *ctx, unsigned int index, const struct urn_ini_entry *e,
	    const char *name, size_t n, unsigned int k)
{
	struct urn_config_adapter *a = &ctx->cfg->adapter[index];
	int i = urn_config_find_switch(ctx->cfg, name, n);

	if (i < 0)
		urn_config_say_missing(ctx, e->key.line, URN_CK_SWITCH, name, n);
	else if (k != 0 && i == a->sw)
		urn_config_say(ctx, e->key.line,
			       "switch %s is in the list twice; name two switches, or one once",
			       ctx->cfg->sw[i].sw.name);
	else
		*(k == 0 ? &a->sw : &a->sw2) = i;
}

/* Take the names of a list, one or two, with `take`. */
static void
take_list(struct urn_config_ctx *ctx, unsigned int index, const struct urn_ini_entry *e,
	  void (*take)(struct urn_config_ctx *ctx, unsigned int index,
		       const struct urn_ini_entry *e, const char *name, size_t n, unsigned int k))
{
	struct urn_config_adapter *a = &ctx->cfg->adapter[index];
	const char *at = e->value.s, *name;
	unsigned int k = 0;
	size_t n;

	/* A word that is no name was reported when the value was taken. */
	while ((n = urn_config_word(&at, &name)) > 0 && urn_config_is_name(name, n)) {
		a->two = k > 0;
		if (k == 2) {
			urn_config_say(ctx, e->key.line,
				       "adapter %s would have more than two ports; leave %.*s out",
				       a->adapter.name, (int)RTE_MIN(n, (size_t)SHOWN), name);
			return;
		}
		take(ctx, index, e, name, n, k++);
	}
}

/* Check that the two ports of an adapter can stand in for each other. */
static void
check_two_ports(struct urn_config_ctx *ctx, const struct urn_config_adapter *a)
{
	const struct urn_config_port *p = &ctx->cfg->port[a->port], *q = &ctx->cfg->port[a->port2];
	const struct urn_ini_section *s = ctx->port[a->port2];

	if (p->port.roce_mtu != q->port.roce_mtu)
		urn_config_say(ctx, urn_config_line(s, "path_mtu"),
			       "ports %s and %s of adapter %s have two values of path_mtu; give "
			       "both the same, for either carries all of the adapter's packets",
			       p->port.name, q->port.name, a->adapter.name);
	if (p->port.queues != q->port.queues)
		urn_config_say(ctx, urn_config_line(s, "queues"),
			       "ports %s and %s of adapter %s have two values of queues; give both "
			       "the same",
			       p->port.name, q->port.name, a->adapter.name);
	if (p->port.mbufs != q->port.mbufs)
		urn_config_say(ctx, urn_config_line(s, "mbufs"),
			       "ports %s and %s of adapter %s have two values of mbufs; give both "
			       "the same, for either receives all of the adapter's packets",
			       p->port.name, q->port.name, a->adapter.name);
	if (urn_ini_find(s, "mac"))
		urn_config_say(ctx, urn_config_line(s, "mac"),
			       "port %s has the MAC address of port %s, for adapter %s has both; "
			       "leave mac out here",
			       q->port.name, p->port.name, a->adapter.name);
}

/* Check what an adapter with two ports must keep to, and that one port has no keys for two. */
static void
check_two(struct urn_config_ctx *ctx, unsigned int index)
{
	const struct urn_config_adapter *a = &ctx->cfg->adapter[index];
	const struct urn_ini_section *s = ctx->adapter[index];

	if (a->two && a->port >= 0 && a->port2 >= 0)
		check_two_ports(ctx, a);
	if (!a->two && urn_ini_find(s, "failback"))
		urn_config_say(ctx, urn_config_line(s, "failback"),
			       "failback is for adapters with two ports, and adapter %s has one; "
			       "leave it out, or write port = NAME, NAME or switch = NAME, NAME",
			       a->adapter.name);
}

/* Report keys of an adapter that belong into the section of its port, where it has one. */
static void
check_port_keys(struct urn_config_ctx *ctx, const struct urn_ini_section *s, const char *port)
{
	static const char *const keys[] = {"path_mtu", "mbufs", "mac"};

	for (unsigned int i = 0; i < RTE_DIM(keys); i++) {
		if (urn_ini_find(s, keys[i]))
			urn_config_say(ctx, urn_config_line(s, keys[i]),
				       "%s belongs to the port of an adapter that has one; move it "
				       "to [port %.*s]",
				       keys[i], (int)RTE_MIN(strcspn(port, ", \t"), (size_t)SHOWN),
				       port);
	}
}

static void
take_engines(struct urn_config_ctx *ctx, unsigned int index)
{
	struct urn_adapter_config *a = &ctx->cfg->adapter[index].adapter;
	unsigned int n = ctx->cfg->engines;
	uint32_t all = (1u << n) - 1;

	if (a->engines == UINT32_MAX)
		a->engines = all;
	if ((a->engines & ~all) == 0)
		return;
	urn_config_say(
		ctx, urn_config_line(ctx->adapter[index], "engines"),
		"there is no engine %d, of which adapter %s speaks; the last one is engine %u. "
		"Write a section [engine %d], or leave it out",
		__builtin_ctz(a->engines & ~all), a->name, n - 1, __builtin_ctz(a->engines & ~all));
}

static void
refer(struct urn_config_ctx *ctx, unsigned int i)
{
	const struct urn_ini_section *s = ctx->adapter[i];
	const struct urn_ini_entry *port = urn_ini_find(s, "port"), *sw = urn_ini_find(s, "switch");

	if (port && sw)
		urn_config_say(ctx, RTE_MAX(port->key.line, sw->key.line),
			       "adapter %s has a port and a switch; leave one of them out",
			       s->name.s);
	else if (!port && !sw)
		urn_config_say(ctx, s->kind.line,
			       "adapter %s has neither a port nor a switch; give it port = NAME of "
			       "a [port NAME], or switch = NAME of a [switch NAME]",
			       s->name.s);
	if (port)
		take_list(ctx, i, port, take_port);
	if (port && !sw)
		check_port_keys(ctx, s, port->value.s);
	if (sw)
		take_list(ctx, i, sw, take_switch);
	check_two(ctx, i);
	take_engines(ctx, i);
}

void
urn_config_refer(struct urn_config_ctx *ctx)
{
	for (unsigned int i = 0; i < ctx->cfg->adapters; i++)
		refer(ctx, i);
}
