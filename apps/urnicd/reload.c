/* SPDX-License-Identifier: BSD-3-Clause */
#include "reload.h"

#include "apply.h"
#include "hangup.h"

#include "dataplane/config/config_diff.h"
#include "dataplane/control/adapter.h"
#include "dataplane/log/writer.h"
#include "pmd_glue/eal_log.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

/* A change that could not be made; it is tried again by each reload. */
struct failed {
	STAILQ_ENTRY(failed) next;
	const char *kind, *name; /* the section's, in text */
	const char *key;	 /* in text; NULL: the section as a whole */
	const char *from;	 /* in text: the value that still holds; NULL: the default */
	char text[];
};

STAILQ_HEAD(failures, failed);

struct nicd_reload {
	struct nicd_rig *rig;	       /* owner: the caller */
	pthread_mutex_t lock;	       /* protects the fields below; held during a reload */
	const struct urn_config *last; /* read last; rig->cfg: not yet again; else owner */
	struct failures failures;      /* changes up to `last` that could not be made; owner */
};

/* A reload under way. */
struct turn {
	struct nicd_reload *r;
	const struct urn_config *now; /* the configuration that was read */
	nicd_reload_fn *found;
	void *ctx;
	unsigned int changes, later; /* keys that changed; that come with the next start */
	struct failures before; /* changes that could not be made earlier, nor yet now; owner */
};

typedef const char *apply_fn(struct turn *t, const struct urn_config_change *c);

/* ---- keys that can change; each returns NULL, or the reason why it could not be changed */

static const char *
apply_log(struct turn *t, const struct urn_config_change *c)
{
	uint8_t level[URN_LOG_AREA_COUNT];
	char why[200];

	(void)c;
	urn_log_defaults(level);
	(void)urn_log_parse(t->now->urnicd.log, level, why, sizeof(why)); /* the file was checked */
	for (unsigned int i = 0; i < URN_LOG_AREA_COUNT; i++)
		urn_log_set(t->r->rig->log, (enum urn_log_area)i, (enum urn_log_level)level[i]);
	return NULL;
}

static const char *
apply_dpdk_log(struct turn *t, const struct urn_config_change *c)
{
	const char *level = t->now->urnicd.log_level;

	(void)c;
	return urn_eal_log_level(level) == 0 ? NULL : "DPDK does not take it";
}

/* Engines that have the values of [urnicd], and those with their own. An engine whose section is
 * new or gone since the start keeps its values until the next one. */
static const char *
apply_engines(struct turn *t, const struct urn_config_change *c)
{
	const struct urn_config_engine *at_start = t->r->rig->cfg->engine, *e = t->now->engine;
	const struct urn_dp *dp = t->r->rig->base.dp;

	(void)c;
	for (unsigned int i = 0; i < dp->engines_n && i < t->now->engines; i++)
		if (!e[i].line == !at_start[i].line)
			nicd_apply_engine(dp->engine[i], &e[i].engine);
	return NULL;
}

static const char *
apply_limits(struct turn *t, const struct urn_config_change *c)
{
	struct nicd_rig *rig = t->r->rig;

	(void)c;
	nicd_rig_limits(t->now, &rig->server_config);
	urn_server_set_limits(rig->server, &rig->server_config);
	return NULL;
}

static const char *
apply_adapter(struct turn *t, const struct urn_config_change *c)
{
	const struct urn_dp *dp = t->r->rig->base.dp;
	const struct urn_adapter_config *a = NULL;

	for (unsigned int i = 0; i < t->now->adapters; i++)
		if (strcmp(t->now->adapter[i].adapter.name, c->name) == 0)
			a = &t->now->adapter[i].adapter;
	for (unsigned int i = 0; a && i < dp->adapters_n; i++)
		if (strcmp(dp->adapter[i]->cfg.name, c->name) == 0)
			nicd_apply_adapter(dp->adapter[i], a->window, a->rto_floor_us * 1000ull);
	return NULL;
}

/* Gateways and routes of an adapter, all of them; addresses and their prefixes stay. */
static const char *
apply_routes(struct turn *t, const struct urn_config_change *c)
{
	const struct urn_dp *dp = t->r->rig->base.dp;
	const struct urn_adapter_config *a = NULL;
	int rc = 0;

	for (unsigned int i = 0; i < t->now->adapters; i++)
		if (strcmp(t->now->adapter[i].adapter.name, c->name) == 0)
			a = &t->now->adapter[i].adapter;
	for (unsigned int i = 0; a && i < dp->adapters_n; i++)
		if (strcmp(dp->adapter[i]->cfg.name, c->name) == 0)
			rc = urn_adapter_set_routes(dp->adapter[i], a->route, a->routes);
	if (rc == EEXIST)
		return "a route has the prefix that is on the link by the addresses that the "
		       "adapter has since its start";
	return rc == 0 ? NULL
		       : "a router is not on the link by the addresses that the adapter has since "
			 "its start";
}

/* A section as a whole: everything of it that can change. */
static const char *
apply_adapter_whole(struct turn *t, const struct urn_config_change *c)
{
	(void)apply_adapter(t, c);
	return apply_routes(t, c);
}

/* Number of the switch's plug with a name. returns: -1: there is none */
static int
plug_of(const struct urn_config_switch *sw, const char *name)
{
	for (unsigned int i = 0; i < sw->plugs; i++)
		if (strcmp(sw->plug[i].port.name, name) == 0)
			return (int)i;
	return -1;
}

/* Impairments of a switch, all of them: one key may concern both directions, another one. */
static const char *
apply_impair(struct turn *t, const struct urn_config_change *c)
{
	static const bool dirs[2][2] = {{true, false}, {false, true}};
	const struct urn_config *cfg = t->r->rig->cfg;
	const struct urn_config_switch *sw = NULL;
	unsigned int at = 0;
	int rc = 0;

	for (unsigned int i = 0; i < t->now->switches; i++)
		if (strcmp(t->now->sw[i].sw.name, c->name) == 0)
			sw = &t->now->sw[i];
	while (at < cfg->switches && strcmp(cfg->sw[at].sw.name, c->name) != 0)
		at++;
	if (!sw || at == cfg->switches)
		return NULL; /* the section comes with the next start */
	for (unsigned int i = 0; i < cfg->sw[at].plugs; i++) {
		int plug = plug_of(sw, cfg->sw[at].plug[i].port.name);

		for (unsigned int d = 0; d < 2 && plug >= 0 && rc == 0; d++)
			rc = nicd_apply_impair(t->r->rig, at, (uint16_t)i, dirs[d],
					       &sw->plug[plug].port.impair[d]);
	}
	return rc == 0 ? NULL : strerror(-rc);
}

_Static_assert(URN_SWITCH_IN == 0 && URN_SWITCH_OUT == 1, "directions are in this order");

/* Keys, by the section's kind and the beginning of the key. doc/reference/urnicd.md has the list.
 */
static const struct {
	const char *kind, *key;
	apply_fn *apply;
} live[] = {
	{"urnicd", "log", apply_log},
	{"urnicd", "log_level", apply_dpdk_log},
	{"urnicd", "idle", apply_engines},
	{"urnicd", "empty_polls", apply_engines},
	{"urnicd", "sleep", apply_engines},
	{"engine", "idle", apply_engines},
	{"engine", "empty_polls", apply_engines},
	{"engine", "sleep", apply_engines},
	{"limits", "clients", apply_limits},
	{"limits", "clients_per_uid", apply_limits},
	{"limits", "*_per_client", apply_limits},
	{"adapter", "window", apply_adapter},
	{"adapter", "gateway", apply_routes},
	{"adapter", "route *", apply_routes},
	{"adapter", "rto_floor", apply_adapter},
	{"switch", "impair *", apply_impair},
};

/* True when a key is of a pattern: a word, or one with a * at one end. */
static bool
fits(const char *pattern, const char *key)
{
	size_t n = strlen(pattern), len = strlen(key);

	if (pattern[0] == '*')
		return len >= n - 1 && strcmp(key + len - (n - 1), pattern + 1) == 0;
	if (pattern[n - 1] == '*')
		return strncmp(pattern, key, n - 1) == 0;
	return strcmp(pattern, key) == 0;
}

/* The function that changes a key. NULL: the key changes with the next start, as all keys of a
 * section do that was not there at the last one */
static apply_fn *
live_key(const struct turn *t, const struct urn_config_change *c)
{
	if (c->name[0] && !urn_config_has(t->r->rig->cfg, c->kind, c->name))
		return NULL;
	for (unsigned int i = 0; c->key && i < sizeof(live) / sizeof(live[0]); i++)
		if (strcmp(live[i].kind, c->kind) == 0 && fits(live[i].key, c->key))
			return live[i].apply;
	return NULL;
}

/* The function that changes a section that is there again as it was at the start, or gone again.
 * NULL: the section differs from that one, or has no key that can change */
static apply_fn *
live_section(const struct turn *t, const struct urn_config_change *c)
{
	if (c->key || (c->to != NULL) != urn_config_has(t->r->rig->cfg, c->kind, c->name))
		return NULL;
	if (strcmp(c->kind, "adapter") == 0)
		return apply_adapter_whole;
	for (unsigned int i = 0; i < sizeof(live) / sizeof(live[0]); i++)
		if (strcmp(live[i].kind, c->kind) == 0)
			return live[i].apply;
	return NULL;
}

/* ---- telling */

/* Words about a section as a whole. */
static const char *
section_text(const struct urn_config_change *c, bool now)
{
	if (now)
		return c->to ? "is back in the file: the values that can change hold from now on"
			     : "is gone from the file again, as it was at the start";
	return c->to ? "is new in the file: that comes with the next start of urnicd"
		     : "is gone from the file: that comes with the next start of urnicd";
}

static void
tell(struct turn *t, const struct urn_config_change *c, bool now, const char *failed)
{
	const struct nicd_reload_change change = {c->kind, c->name, c->key, c->from,
						  c->to,   now,	    failed};
	const char *blank = c->name[0] ? " " : "";
	struct urn_log *log = t->r->rig->log;

	*(now ? &t->changes : &t->later) += 1;
	if (t->found)
		t->found(t->ctx, &change);
	if (failed)
		urn_log_say(log, URN_LOG_NOT_RELOADED, NULL, "[%s%s%s] %s can't be changed: %s",
			    c->kind, blank, c->name, c->key ? c->key : "", failed);
	else if (!c->key)
		urn_log_say(log, URN_LOG_RELOADED, NULL, "[%s%s%s] %s", c->kind, blank, c->name,
			    section_text(c, now));
	else
		urn_log_say(log, URN_LOG_RELOADED, NULL, "[%s%s%s] %s: %s instead of %s, %s",
			    c->kind, blank, c->name, c->key, c->to ? c->to : "its default",
			    c->from ? c->from : "its default",
			    now ? "from now on" : "with the next start of urnicd");
}

/* ---- changes, and those that fail */

/* Copy a string behind the others of a text. NULL stays NULL */
static const char *
keep(char **at, const char *s)
{
	char *to = *at;

	if (!s)
		return NULL;
	*at = stpcpy(to, s) + 1;
	return to;
}

/* Remember a change that could not be made. Without memory it is tried again when it is changed. */
static void
remember(struct nicd_reload *r, const struct urn_config_change *c)
{
	size_t n = strlen(c->kind) + strlen(c->name) + (c->key ? strlen(c->key) : 0) +
		   (c->from ? strlen(c->from) : 0) + 4;
	struct failed *f = malloc(sizeof(*f) + n);
	char *at;

	if (!f)
		return;
	at = f->text;
	f->kind = keep(&at, c->kind);
	f->name = keep(&at, c->name);
	f->key = keep(&at, c->key);
	f->from = keep(&at, c->from);
	STAILQ_INSERT_TAIL(&r->failures, f, next);
}

/* The earlier failure of a change. NULL: there was none */
static struct failed *
failed_before(const struct turn *t, const struct urn_config_change *c)
{
	struct failed *f;

	STAILQ_FOREACH(f, &t->before, next)
		if (strcmp(f->kind, c->kind) == 0 && strcmp(f->name, c->name) == 0 &&
		    !f->key == !c->key && (!f->key || strcmp(f->key, c->key) == 0))
			return f;
	return NULL;
}

/* True when two values are the same; NULL: not given */
static bool
same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Make a change, and tell of it, unless it takes back one that could not be made. */
static void
make(struct turn *t, const struct urn_config_change *c)
{
	apply_fn *apply = c->key ? live_key(t, c) : live_section(t, c);
	const char *failed;

	/* A level that hides the change of levels comes after its line. */
	if (apply == apply_log && urn_log_shows(t->r->rig->log, URN_LOG_RELOADED)) {
		tell(t, c, true, NULL);
		(void)apply(t, c);
	} else if (apply) {
		failed = apply(t, c);
		if (failed)
			remember(t->r, c);
		if (failed || !same(c->from, c->to))
			tell(t, c, true, failed);
	}
}

/* Change what differs from the configuration that was read last. */
static void
change(void *ctx, const struct urn_config_change *c)
{
	struct turn *t = ctx;
	struct urn_config_change now = *c;
	struct failed *f = failed_before(t, c);

	if (f) {
		/* The value that was read last never held. */
		now.from = f->from;
		STAILQ_REMOVE(&t->before, f, failed, next);
	}
	make(t, &now);
	free(f);
}

/* Try again what could not be changed, and is in the file as it was then. */
static void
try_again(struct turn *t)
{
	struct failed *f;

	while ((f = STAILQ_FIRST(&t->before))) {
		struct urn_config_change c = {f->kind, f->name, f->key, f->from, NULL};
		bool there = urn_config_has(t->now, f->kind, f->name);

		STAILQ_REMOVE_HEAD(&t->before, next);
		if (f->key)
			c.to = urn_config_value(t->now, f->kind, f->name, f->key);
		else
			c.to = there ? "" : NULL;
		/* A named section that is gone has been told of as a whole. */
		if (there || !f->key || f->name[0] == '\0')
			make(t, &c);
		free(f);
	}
}

/* Tell of what differs from the configuration of the start, and stays. */
static void
stay(void *ctx, const struct urn_config_change *c)
{
	if (!live_key(ctx, c))
		tell(ctx, c, false, NULL);
}

int
nicd_reload(struct nicd_reload *r, nicd_reload_fn *found, void *ctx, struct urn_err *err)
{
	struct urn_config_errors errors = {0};
	struct turn t = {.r = r, .found = found, .ctx = ctx};
	struct urn_config *now;

	pthread_mutex_lock(&r->lock);
	now = urn_config_read(r->rig->cfg->file, &errors);
	if (!now) {
		urn_err_set(err, "%s; nothing was changed",
			    errors.n ? errors.error[0].text : "there is no memory to read it");
		urn_log_say(r->rig->log, URN_LOG_NOT_RELOADED, NULL, "%s", err->text);
	} else {
		t.now = now;
		STAILQ_INIT(&t.before);
		STAILQ_CONCAT(&t.before, &r->failures);
		urn_config_diff(r->last, now, change, &t);
		try_again(&t);
		urn_config_diff(r->rig->cfg, now, stay, &t);
		if (t.changes + t.later == 0)
			urn_log_say(r->rig->log, URN_LOG_RELOADED, NULL,
				    "%s was read again and says nothing new", now->file);
		if (r->last != r->rig->cfg)
			urn_config_free((struct urn_config *)(uintptr_t)r->last);
		r->last = now;
	}
	pthread_mutex_unlock(&r->lock);
	urn_config_errors_free(&errors);
	return now ? 0 : -1;
}

void
nicd_serve_hangup(const struct nicd_rig *rig)
{
	struct urn_err err;

	if (!nicd_hangup_taken())
		return;
	urn_log_reopen(rig->log);
	(void)nicd_reload(rig->reload, NULL, NULL, &err); /* the log has a mistake */
}

struct nicd_reload *
nicd_reload_create(struct nicd_rig *rig, struct urn_err *err)
{
	struct nicd_reload *r = calloc(1, sizeof(*r));

	if (!r) {
		urn_err_set(err, "no memory for the configuration");
		return NULL;
	}
	r->rig = rig;
	r->last = rig->cfg;
	STAILQ_INIT(&r->failures);
	pthread_mutex_init(&r->lock, NULL);
	return r;
}

void
nicd_reload_free(struct nicd_reload *r)
{
	struct failed *f;

	if (!r)
		return;
	while ((f = STAILQ_FIRST(&r->failures))) {
		STAILQ_REMOVE_HEAD(&r->failures, next);
		free(f);
	}
	if (r->last != r->rig->cfg)
		urn_config_free((struct urn_config *)(uintptr_t)r->last);
	pthread_mutex_destroy(&r->lock);
	free(r);
}
