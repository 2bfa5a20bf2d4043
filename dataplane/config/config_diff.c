/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/config_diff.h"

#include "config/ini.h"

#include <string.h>

typedef void found_fn(void *ctx, const struct urn_config_change *c);

/* The section of that kind and name. NULL: there is none */
static const struct urn_ini_section *
section_of(const struct urn_ini *ini, const char *kind, const char *name)
{
	for (unsigned int i = 0; i < ini->sections; i++)
		if (strcmp(ini->section[i].kind.s, kind) == 0 &&
		    strcmp(ini->section[i].name.s, name) == 0)
			return &ini->section[i];
	return NULL;
}

/* True when a section without entries, or none at all, means the same: it has no name. */
static bool
is_plain(const struct urn_ini_section *s)
{
	return s->name.s[0] == '\0';
}

/* Report keys of `a` that `b` (NULL: no section) has with another value, or has not.
 * swapped: `a` is the newer one, of which only keys that the older one has not are left */
static void
keys(const struct urn_ini_section *a, const struct urn_ini_section *b, bool swapped,
     found_fn *found, void *ctx)
{
	for (unsigned int i = 0; i < a->entries; i++) {
		const struct urn_ini_entry *e = &a->entry[i];
		const struct urn_ini_entry *o = b ? urn_ini_find(b, e->key.s) : NULL;
		struct urn_config_change c = {
			.kind = a->kind.s, .name = a->name.s, .key = e->key.s};

		if (o && (swapped || strcmp(o->value.s, e->value.s) == 0))
			continue;
		c.from = swapped ? NULL : e->value.s;
		c.to = swapped ? e->value.s : o ? o->value.s : NULL;
		found(ctx, &c);
	}
}

/* Report differences of sections of `a`. */
static void
sections(const struct urn_ini *a, const struct urn_ini *b, bool swapped, found_fn *found, void *ctx)
{
	for (unsigned int i = 0; i < a->sections; i++) {
		const struct urn_ini_section *s = &a->section[i],
					     *o = section_of(b, s->kind.s, s->name.s);
		const struct urn_config_change whole = {
			.kind = s->kind.s,
			.name = s->name.s,
			.from = swapped ? NULL : "",
			.to = swapped ? "" : NULL,
		};

		if (o || is_plain(s))
			keys(s, o, swapped, found, ctx);
		else
			found(ctx, &whole);
	}
}

void
urn_config_diff(const struct urn_config *from, const struct urn_config *to, found_fn *found,
		void *ctx)
{
	sections(from->ini, to->ini, false, found, ctx);
	sections(to->ini, from->ini, true, found, ctx);
}

const char *
urn_config_value(const struct urn_config *cfg, const char *kind, const char *name, const char *key)
{
	const struct urn_ini_section *s = section_of(cfg->ini, kind, name);
	const struct urn_ini_entry *e = s ? urn_ini_find(s, key) : NULL;

	return e ? e->value.s : NULL;
}

bool
urn_config_has(const struct urn_config *cfg, const char *kind, const char *name)
{
	return section_of(cfg->ini, kind, name) != NULL;
}
