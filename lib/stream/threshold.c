/* SPDX-License-Identifier: BSD-3-Clause */
/* Thresholds that adapt (threshold.h). */
#include "stream/threshold.h"

bool
urn_st_threshold_ok(const struct urn_st_threshold *t)
{
	if (t->floor == 0 || t->floor > t->ceiling)
		return false;
	return t->value == URN_ST_INFINITE || (t->value >= t->floor && t->value <= t->ceiling);
}

static bool
moves(const struct urn_st_threshold *t)
{
	return !t->frozen && t->value != URN_ST_INFINITE;
}

static bool
set(struct urn_st_threshold *t, uint64_t value)
{
	bool moved = t->value != value;

	t->value = value;
	t->kept = 0;
	return moved;
}

bool
urn_st_threshold_raise(struct urn_st_threshold *t)
{
	if (!moves(t))
		return false;
	return set(t, t->value > t->ceiling / 2 ? t->ceiling : t->value * 2);
}

bool
urn_st_threshold_raise_over(struct urn_st_threshold *t, uint64_t bytes)
{
	bool moved = false;

	while (t->value <= bytes && urn_st_threshold_raise(t))
		moved = true;
	return moved;
}

bool
urn_st_threshold_lower(struct urn_st_threshold *t)
{
	if (!moves(t))
		return false;
	return set(t, t->value / 2 < t->floor ? t->floor : t->value / 2);
}

bool
urn_st_threshold_kept(struct urn_st_threshold *t, uint64_t bytes)
{
	if (!moves(t) || bytes < t->floor || bytes >= t->value || ++t->kept < URN_ST_DOWN_AFTER)
		return false;
	return urn_st_threshold_lower(t);
}
