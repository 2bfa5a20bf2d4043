/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes objects of sections; the calls of config.h. */
#include "config/config_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

/* Bytes of a name that a sentence repeats. */
#define SHOWN 48

/* Keys of a section. */
#define KEYS_MAX 32u
/* Bytes of the largest object. */
union any_object {
	struct urn_config_daemon urnicd;
	struct urn_config_eal eal;
	struct urn_config_limits limits;
	struct urn_config_congestion congestion;
	struct urn_config_engine engine;
	struct urn_config_port port;
	struct urn_config_switch sw;
	struct urn_config_adapter adapter;
};

/* ---- keys of a section */

/* True when an entry's key is this one, with or without the word behind it. */
static bool
is_key(const struct urn_config_key *k, const char *name)
{
	size_t n = strlen(k->name);

	if (!k->arg)
		return strcmp(k->name, name) == 0;
	return strncmp(k->name, name, n) == 0 && (name[n] == ' ' || name[n] == '\0');
}

/* True when further mistakes are only counted: then no suggestion is needed. */
static bool
is_full(const struct urn_config_ctx *ctx)
{
	return ctx->errors->n >= URN_CONFIG_ERRORS_MAX;
}

/* Report "KEY is no key of [SECTION]", with the key that may be meant. */
static void
say_unknown(struct urn_config_ctx *ctx, const struct urn_config_kind *kind,
	    const struct urn_ini_entry *e)
{
	const struct urn_config_kind *other = NULL;
	struct urn_near near;

	urn_near_begin(&near, is_full(ctx) ? "" : e->key.s);
	for (unsigned int i = 0; i < kind->keys; i++)
		urn_near_try(&near, kind->key[i].name);
	for (unsigned int k = 0; k < URN_CONFIG_KINDS && !is_full(ctx); k++) {
		for (unsigned int i = 0; i < urn_config_kinds[k].keys; i++) {
			if (is_key(&urn_config_kinds[k].key[i], e->key.s))
				other = &urn_config_kinds[k];
		}
	}
	if (other)
		urn_config_say(ctx, e->key.line,
			       "%.*s is no key of [%s], but of [%s%s%s]; move it there", SHOWN,
			       e->key.s, kind->name, other->name, other->arg ? " " : "",
			       other->arg ? other->arg : "");
	else if (near.best)
		urn_config_say(ctx, e->key.line, "%.*s is no key of [%s]; did you mean %s?", SHOWN,
			       e->key.s, kind->name, near.best);
	else
		urn_config_say(ctx, e->key.line,
			       "%.*s is no key of [%s]; doc/reference/urnicd.md lists the keys", SHOWN,
			       e->key.s, kind->name);
}

/* Take all keys of a section into its object. */
static void
take_keys(struct urn_config_ctx *ctx, const struct urn_config_kind *kind,
	  const struct urn_ini_section *s, void *obj)
{
	unsigned int seen[KEYS_MAX] = {0}; /* line of each key; 0: not yet */

	for (unsigned int i = 0; i < s->entries; i++) {
		const struct urn_ini_entry *e = &s->entry[i];
		unsigned int k = 0;

		while (k < kind->keys && !is_key(&kind->key[k], e->key.s))
			k++;
		if (k == kind->keys) {
			say_unknown(ctx, kind, e);
			continue;
		}
		if (seen[k] != 0 && !kind->key[k].arg) {
			urn_config_say(ctx, e->key.line,
				       "%s is given in line %u already; leave one out", e->key.s,
				       seen[k]);
		}
		seen[k] = seen[k] != 0 ? seen[k] : e->key.line;
		(void)urn_config_take(ctx, &kind->key[k], e, obj);
	}
}

/* ---- sections */

static const struct urn_config_kind *
find_kind(const char *name)
{
	for (unsigned int i = 0; i < URN_CONFIG_KINDS; i++) {
		if (strcmp(urn_config_kinds[i].name, name) == 0)
			return &urn_config_kinds[i];
	}
	return NULL;
}

static void
say_unknown_section(struct urn_config_ctx *ctx, const struct urn_ini_section *s)
{
	const struct urn_config_kind *kind;
	struct urn_near near;

	urn_near_begin(&near, is_full(ctx) ? "" : s->kind.s);
	for (unsigned int i = 0; i < URN_CONFIG_KINDS; i++)
		urn_near_try(&near, urn_config_kinds[i].name);
	if (!near.best) {
		urn_config_say(
			ctx, s->kind.line,
			"[%.*s] is no section; there are [urnicd], [eal], [limits], "
			"[congestion], [engine N], [port NAME], [switch NAME] and [adapter NAME]",
			SHOWN, s->kind.s);
		return;
	}
	kind = find_kind(near.best);
	urn_config_say(ctx, s->kind.line, "[%.*s] is no section; did you mean [%s%s%s]?", SHOWN,
		       s->kind.s, near.best, kind->arg ? " " : "",
		       !kind->arg	      ? ""
		       : s->name.s[0] != '\0' ? s->name.s
					      : kind->arg);
}

/* Check that this kind of section can have the name. returns: 0, or -1: reported */
static int
check_name(struct urn_config_ctx *ctx, const struct urn_config_kind *kind,
	   const struct urn_ini_section *s)
{
	const char *name = s->name.s;

	if (!kind->arg && name[0] != '\0')
		urn_config_say(ctx, s->kind.line,
			       "[%s] takes no name; write [%s] instead of "
			       "[%s %.*s]",
			       kind->name, kind->name, kind->name, SHOWN, name);
	else if (kind->arg && name[0] == '\0')
		urn_config_say(ctx, s->kind.line, "[%s] wants %s, such as [%s %s]", kind->name,
			       kind->arg[1] ? "a name" : "a number", kind->name,
			       kind->arg[1] ? "a" : "0");
	else if (kind->arg && kind->arg[1] && !urn_config_is_name(name, strlen(name)))
		urn_config_say(ctx, s->kind.line,
			       "[%s %.*s]: a name has 1 to 15 letters, digits, _ or -", kind->name,
			       SHOWN, name);
	else
		return 0;
	return -1;
}

/* An earlier section of the same kind and name, or NULL. */
static const struct urn_ini_section *
find_earlier(const struct urn_ini_section *const *of, unsigned int n, const char *name)
{
	for (unsigned int i = 0; i < n; i++) {
		if (strcmp(of[i]->name.s, name) == 0)
			return of[i];
	}
	return NULL;
}

/* A place for an object more of a kind that has names. returns: NULL: there is none, reported */
static void *
add_object(struct urn_config_ctx *ctx, const struct urn_config_kind *kind,
	   const struct urn_ini_section *s, const struct urn_ini_section **of, unsigned int *n,
	   void **array)
{
	const struct urn_ini_section *earlier = find_earlier(of, *n, s->name.s);
	void *more;

	if (earlier) {
		urn_config_say(ctx, s->kind.line,
			       "there is %s [%s %s] in line %u already; give this one another name",
			       kind->name[0] == 'a' ? "an" : "a", kind->name, s->name.s,
			       earlier->kind.line);
		return NULL;
	}
	if (*n == kind->max) {
		urn_config_say(ctx, s->kind.line, "[%s %s] is one too many: %u are the most",
			       kind->name, s->name.s, kind->max);
		return NULL;
	}
	more = realloc(*array, (*n + 1) * kind->size);
	if (!more) {
		ctx->no_room = true;
		return NULL;
	}
	*array = more;
	of[*n] = s;
	more = (char *)more + (size_t)(*n)++ * kind->size;
	memset(more, 0, kind->size);
	return more;
}

static void *
add_port(struct urn_config_ctx *ctx, const struct urn_ini_section *s)
{
	struct urn_config *cfg = ctx->cfg;
	void *array = cfg->port;
	struct urn_config_port *p =
		add_object(ctx, &urn_config_kinds[URN_CK_PORT], s, ctx->port, &cfg->ports, &array);

	cfg->port = array;
	if (!p)
		return NULL;
	p->adapter = p->sw = p->plug = -1;
	p->line = s->kind.line;
	snprintf(p->port.name, sizeof(p->port.name), "%s", s->name.s);
	return p;
}

static void *
add_switch(struct urn_config_ctx *ctx, const struct urn_ini_section *s)
{
	struct urn_config *cfg = ctx->cfg;
	void *array = cfg->sw;
	struct urn_config_switch *w = add_object(ctx, &urn_config_kinds[URN_CK_SWITCH], s, ctx->sw,
						 &cfg->switches, &array);

	cfg->sw = array;
	if (!w)
		return NULL;
	w->line = s->kind.line;
	snprintf(w->sw.name, sizeof(w->sw.name), "%s", s->name.s);
	return w;
}

static void *
add_adapter(struct urn_config_ctx *ctx, const struct urn_ini_section *s)
{
	struct urn_config *cfg = ctx->cfg;
	void *array = cfg->adapter;
	struct urn_config_adapter *a = add_object(ctx, &urn_config_kinds[URN_CK_ADAPTER], s,
						  ctx->adapter, &cfg->adapters, &array);

	cfg->adapter = array;
	if (!a)
		return NULL;
	a->port = a->sw = a->plug = a->port2 = a->sw2 = a->plug2 = -1;
	a->line = s->kind.line;
	snprintf(a->adapter.name, sizeof(a->adapter.name), "%s", s->name.s);
	return a;
}

/* A place for an engine, at its number; engines of lower numbers may come later. */
static void *
add_engine(struct urn_config_ctx *ctx, const struct urn_ini_section *s)
{
	const char *name = s->name.s;
	size_t digits = strspn(name, "0123456789");
	unsigned long n = strtoul(name, NULL, 10);

	if (name[digits] != '\0' || digits > 3 || (digits > 1 && name[0] == '0') ||
	    n >= URN_ABI_MAX_ENGINES) {
		urn_config_say(ctx, s->kind.line,
			       "[engine %.*s]: engines are numbered from 0 to %u", SHOWN, name,
			       URN_ABI_MAX_ENGINES - 1);
		return NULL;
	}
	if (ctx->engine[n]) {
		urn_config_say(ctx, s->kind.line,
			       "there is an [engine %lu] in line %u already; give this one another "
			       "number",
			       n, ctx->engine[n]->kind.line);
		return NULL;
	}
	ctx->engine[n] = s;
	ctx->cfg->engines = RTE_MAX(ctx->cfg->engines, (unsigned int)n + 1);
	ctx->cfg->engine[n].line = s->kind.line;
	return &ctx->cfg->engine[n];
}

static void *
add_only(struct urn_config_ctx *ctx, unsigned int id, const struct urn_ini_section *s)
{
	struct urn_config *cfg = ctx->cfg;

	if (ctx->only[id]) {
		urn_config_say(ctx, s->kind.line,
			       "there is an [%s] in line %u already; put both together", s->kind.s,
			       ctx->only[id]->kind.line);
		return NULL;
	}
	ctx->only[id] = s;
	switch (id) {
	case URN_CK_URNICD:
		return &cfg->urnicd;
	case URN_CK_EAL:
		return &cfg->eal;
	case URN_CK_CONGESTION:
		return &cfg->congestion;
	default:
		return &cfg->limits;
	}
}

/* The object that a section becomes; NULL: none, reported. */
static void *
add(struct urn_config_ctx *ctx, unsigned int id, const struct urn_ini_section *s)
{
	const struct urn_config_kind *kind = &urn_config_kinds[id];
	void *obj;

	if (check_name(ctx, kind, s) != 0)
		return NULL;
	switch (id) {
	case URN_CK_ENGINE:
		return add_engine(ctx, s);
	case URN_CK_PORT:
		obj = add_port(ctx, s);
		break;
	case URN_CK_SWITCH:
		obj = add_switch(ctx, s);
		break;
	case URN_CK_ADAPTER:
		obj = add_adapter(ctx, s);
		break;
	default:
		return add_only(ctx, id, s);
	}
	if (obj)
		urn_config_preset(ctx, kind, obj);
	return obj;
}

/* Take all sections of a kind. Sections that become no object have their keys checked all the same. */
static void
take_kind(struct urn_config_ctx *ctx, unsigned int id)
{
	const struct urn_config_kind *kind = &urn_config_kinds[id];
	union any_object scratch;

	for (unsigned int i = 0; i < ctx->ini->sections; i++) {
		const struct urn_ini_section *s = &ctx->ini->section[i];
		void *obj;

		if (strcmp(s->kind.s, kind->name) != 0)
			continue;
		obj = add(ctx, id, s);
		take_keys(ctx, kind, s, obj ? obj : &scratch);
	}
}

/* ---- the whole */

static void
take_sections(struct urn_config_ctx *ctx)
{
	struct urn_config *cfg = ctx->cfg;

	for (unsigned int i = 0; i < ctx->ini->sections; i++) {
		if (!find_kind(ctx->ini->section[i].kind.s))
			say_unknown_section(ctx, &ctx->ini->section[i]);
	}
	urn_config_preset(ctx, &urn_config_kinds[URN_CK_URNICD], &cfg->urnicd);
	urn_config_preset(ctx, &urn_config_kinds[URN_CK_EAL], &cfg->eal);
	urn_config_preset(ctx, &urn_config_kinds[URN_CK_LIMITS], &cfg->limits);
	urn_config_preset(ctx, &urn_config_kinds[URN_CK_CONGESTION], &cfg->congestion);
	for (unsigned int id = 0; id < URN_CONFIG_KINDS; id++) {
		take_kind(ctx, id);
		if (id != URN_CK_URNICD)
			continue;
		/* [urnicd] has the presets of engines. */
		for (unsigned int e = 0; e < URN_ABI_MAX_ENGINES; e++) {
			cfg->engine[e].lcore = -1;
			cfg->engine[e].engine = cfg->urnicd.idle;
		}
	}
	if (cfg->urnicd.mode == 0)
		cfg->urnicd.mode = cfg->urnicd.group[0] != '\0' ? 0660 : 0600;
}

struct urn_config *
urn_config_parse(const char *text, size_t len, const char *name, struct urn_config_errors *errors)
{
	struct urn_config_errors own = {0};
	struct urn_config_ctx ctx = {.errors = errors ? errors : &own};
	unsigned int before = urn_config_errors_count(ctx.errors);
	struct urn_ini *ini = urn_ini_parse(text, len, name, ctx.errors);

	ctx.ini = ini;
	ctx.cfg = calloc(1, sizeof(*ctx.cfg));
	if (!ini)
		goto out;
	if (ctx.cfg)
		ctx.cfg->file = strdup(name);
	if (!ctx.cfg || !ctx.cfg->file) {
		urn_config_error(ctx.errors, name, 0, "there is no memory to read it");
		goto out;
	}
	take_sections(&ctx);
	urn_config_check(&ctx);
	urn_config_neighbours(&ctx);
	urn_config_routes(&ctx);
	if (ctx.no_room)
		urn_config_error(ctx.errors, name, 0, "there is no memory to check it");
out:
	if (ctx.cfg)
		ctx.cfg->ini = ini;
	else
		urn_ini_free(ini);
	if (urn_config_errors_count(ctx.errors) > before) {
		urn_config_free(ctx.cfg);
		ctx.cfg = NULL;
	}
	urn_config_errors_free(&own);
	return ctx.cfg;
}

/* Read a whole file of less than `room` bytes. returns: bytes, or -1 with errno (EFBIG: too long) */
static ssize_t
read_all(const char *file, char *text, size_t room)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC), code;
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return -1;
	do {
		n = read(fd, text + len, room - len);
		if (n > 0)
			len += (size_t)n;
	} while ((n > 0 && len < room) || (n < 0 && errno == EINTR));
	code = n < 0 ? errno : len == room ? EFBIG : 0;
	close(fd);
	errno = code;
	return code != 0 ? -1 : (ssize_t)len;
}

struct urn_config *
urn_config_read(const char *file, struct urn_config_errors *errors)
{
	const size_t room = URN_CONFIG_FILE_MAX + 1;
	char *text = malloc(room);
	struct urn_config *cfg = NULL;
	ssize_t len;

	if (!text) {
		urn_config_error(errors, file, 0, "there is no memory to read it");
		return NULL;
	}
	len = read_all(file, text, room);
	if (len >= 0)
		cfg = urn_config_parse(text, (size_t)len, file, errors);
	else if (errno == EFBIG)
		urn_config_error(errors, file, 0, "is longer than %u bytes; is it a configuration?",
				 URN_CONFIG_FILE_MAX);
	else
		urn_config_error(errors, file, 0, "cannot be read: %s", strerror(errno));
	free(text);
	return cfg;
}

void
urn_config_free(struct urn_config *cfg)
{
	if (!cfg)
		return;
	urn_ini_free(cfg->ini);
	for (unsigned int i = 0; i < cfg->switches; i++) {
		free(cfg->sw[i].plug);
		free(cfg->sw[i].fixed);
		free(cfg->sw[i].route);
	}
	for (unsigned int i = 0; i < cfg->adapters; i++) {
		free(cfg->adapter[i].adapter.neighbour);
		free(cfg->adapter[i].adapter.route);
	}
	free(cfg->port);
	free(cfg->sw);
	free(cfg->adapter);
	free(cfg->node);
	free(cfg->file);
	free(cfg);
}

int
urn_config_socket_default(bool root, const char *xdg, char path[108], struct urn_err *err)
{
	int n;

	if (!root && (!xdg || xdg[0] != '/')) {
		urn_err_set(err, "there is no XDG_RUNTIME_DIR to make the socket in; set it, or "
				 "give socket in [urnicd]");
		return -1;
	}
	n = snprintf(path, 108, "%s/urnic/urnicd.sock", root ? "/run" : xdg);
	if (n < 108)
		return 0;
	urn_err_set(err,
		    "the path %.64s.../urnic/urnicd.sock is too long for a socket; give "
		    "socket in [urnicd]",
		    xdg);
	return -1;
}
