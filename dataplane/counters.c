/* SPDX-License-Identifier: BSD-3-Clause */
#include "counters.h"

#include <stddef.h>

static const char *const names[] = {
#define X(id, name, text) name,
	URN_COUNTERS(X)
#undef X
};

static const char *const texts[] = {
#define X(id, name, text) text,
	URN_COUNTERS(X)
#undef X
};

const char *
urn_counter_name(unsigned int id)
{
	return id < URN_COUNTER_COUNT ? names[id] : NULL;
}

const char *
urn_counter_text(unsigned int id)
{
	return id < URN_COUNTER_COUNT ? texts[id] : NULL;
}
