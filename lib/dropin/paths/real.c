/* SPDX-License-Identifier: BSD-3-Clause */
#include "dropin/paths/real.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

static struct urn_paths_real urn_paths_real_table;
static _Atomic int urn_paths_real_found;

const struct urn_paths_real *
urn_paths_real(void)
{
	if (!atomic_load_explicit(&urn_paths_real_found, memory_order_acquire)) {
		/* Several threads may come here at once: all of them find the same. */
#define X(ret, name, params)                                           \
	{                                                              \
		void *sym = dlsym(RTLD_NEXT, #name);                   \
		memcpy(&urn_paths_real_table.name, &sym, sizeof(sym)); \
	}
		URN_PATHS_REAL_LIST(X)
#undef X
		atomic_store_explicit(&urn_paths_real_found, 1, memory_order_release);
	}
	return &urn_paths_real_table;
}
