/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/switch_keys.h"

#include "config/config_priv.h"

#include <string.h>

void
urn_config_switch_init(struct urn_config_switch *sw)
{
	memset(sw, 0, sizeof(*sw));
	urn_classify_preset(&sw->sw.lossless.map);
	urn_config_preset(&(struct urn_config_ctx){0}, &urn_config_kinds[URN_CK_SWITCH], sw);
}

int
urn_config_switch_take(struct urn_config_switch *sw, const char *key, const char *value,
		       struct urn_err *err)
{
	const struct urn_config_kind *kind = &urn_config_kinds[URN_CK_SWITCH];
	const struct urn_ini_entry e = {.key.s = key, .value.s = value};
	struct urn_config_ctx ctx = {.why = err};

	for (unsigned int i = 0; i < kind->keys; i++)
		if (strcmp(kind->key[i].name, key) == 0 &&
		    kind->key[i].offset != URN_CONFIG_NO_FIELD)
			return urn_config_take(&ctx, &kind->key[i], &e, sw);
	urn_err_set(err, "%.32s is no key of a switch that has a value alone", key);
	return -1;
}

size_t
urn_config_direction(const char *who, size_t n, bool way[2])
{
	way[URN_SWITCH_IN] = way[URN_SWITCH_OUT] = true;
	if (n >= 3 && memcmp(who + n - 3, ".in", 3) == 0) {
		way[URN_SWITCH_OUT] = false;
		return n - 3;
	}
	if (n >= 4 && memcmp(who + n - 4, ".out", 4) == 0) {
		way[URN_SWITCH_IN] = false;
		return n - 4;
	}
	return n;
}

void
urn_config_tree_init(struct urn_config_tree *t)
{
	for (unsigned int i = 0; i < URN_CONFIG_MAX_SWITCHES; i++)
		t->root[i] = i;
}

bool
urn_config_tree_join(struct urn_config_tree *t, unsigned int a, unsigned int b)
{
	unsigned int from = t->root[b], to = t->root[a];

	if (from == to)
		return false;
	for (unsigned int i = 0; i < URN_CONFIG_MAX_SWITCHES; i++)
		if (t->root[i] == from)
			t->root[i] = to;
	return true;
}
