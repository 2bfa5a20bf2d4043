/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles to objects: a growing array; handles start at 1 and are reused. Control path only. */
#ifndef URN_CONTROL_HANDLES_H
#define URN_CONTROL_HANDLES_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct urn_handles {
	void **v;     /* by handle - 1; NULL: free */
	uint32_t cap; /* entries of v */
	uint32_t n;   /* objects in it */
	uint32_t hint; /* entry to look for a free one from */
};

/* Put an object in; at most max of them. returns 0, ENOMEM or ENOSPC */
static inline int
urn_handles_put(struct urn_handles *t, void *obj, uint32_t max, uint32_t *handle)
{
	if (t->n >= max)
		return ENOSPC;
	if (t->n == t->cap) {
		uint32_t cap = t->cap ? t->cap * 2 : 16;
		void **v = realloc(t->v, cap * sizeof(*v));

		if (!v)
			return ENOMEM;
		memset(v + t->cap, 0, (cap - t->cap) * sizeof(*v));
		t->hint = t->cap;
		t->v = v;
		t->cap = cap;
	}
	while (t->v[t->hint])
		t->hint = t->hint + 1 < t->cap ? t->hint + 1 : 0;
	t->v[t->hint] = obj;
	t->n++;
	*handle = t->hint + 1;
	return 0;
}

static inline void *
urn_handles_get(const struct urn_handles *t, uint32_t handle)
{
	return handle && handle <= t->cap ? t->v[handle - 1] : NULL;
}

static inline void
urn_handles_remove(struct urn_handles *t, uint32_t handle)
{
	t->v[handle - 1] = NULL;
	t->n--;
	t->hint = handle - 1;
}

static inline void
urn_handles_fini(struct urn_handles *t)
{
	free(t->v);
	memset(t, 0, sizeof(*t));
}

#endif
