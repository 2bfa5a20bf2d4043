/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory with a copy of what must be in it. Ranges that operations write are left out until these
 * end. */
#include "amsim.h"

#include <stdlib.h>

enum { BLOCK = 64 }; /* bytes that are compared at a time */

void
as_mem_make(struct ms_world *w, struct as_mem *m, uint32_t len, uint32_t seed)
{
	m->len = len;
	m->at = aligned_alloc(64, RTE_ALIGN_CEIL(len, 64u));
	m->was = malloc(len);
	m->busy = calloc(1, len);
	if (!m->at || !m->was || !m->busy)
		ms_fail(w, "no memory");
	sim_fill(m->at, seed, 0, len);
	memcpy(m->was, m->at, len);
}

void
as_mem_free(struct as_mem *m)
{
	free(m->at);
	free(m->was);
	free(m->busy);
	memset(m, 0, sizeof(*m));
}

bool
as_mem_take(struct as_mem *m, uint32_t off, uint32_t len, bool write)
{
	uint8_t most = write ? 0 : AS_WRITER - 2;

	if (off > m->len || len > m->len - off)
		return false;
	for (uint32_t i = off; i < off + len; i++)
		if (m->busy[i] > most)
			return false;
	for (uint32_t i = off; i < off + len; i++)
		m->busy[i] = write ? AS_WRITER : m->busy[i] + 1;
	return true;
}

void
as_mem_give(struct as_mem *m, uint32_t off, uint32_t len, bool write)
{
	for (uint32_t i = off; i < off + len; i++)
		m->busy[i] = write ? 0 : m->busy[i] - 1;
}

void
as_mem_fill(struct as_mem *m, uint32_t off, uint32_t len, uint32_t seed)
{
	sim_fill(m->at + off, seed, 0, len);
	memcpy(m->was + off, m->at + off, len);
}

void
as_mem_accept(struct as_mem *m, uint32_t off, uint32_t len)
{
	memcpy(m->was + off, m->at + off, len);
}

void
as_mem_check_range(struct ms_world *w, const struct as_mem *m, uint32_t off, uint32_t len,
		   const char *what, uint32_t id)
{
	uint32_t end = RTE_MIN(m->len, off + len);

	for (uint32_t i = off; i < end; i += BLOCK) {
		uint32_t n = RTE_MIN((uint32_t)BLOCK, end - i);

		if (memcmp(m->at + i, m->was + i, n) == 0)
			continue;
		for (uint32_t k = i; k < i + n; k++)
			if (m->at[k] != m->was[k] && m->busy[k] != AS_WRITER)
				ms_fail(w, "%s: byte %u of end %u's memory was changed", what, k,
					id);
	}
}

void
as_mem_check(struct ms_world *w, const struct as_mem *m, const char *what, uint32_t id)
{
	as_mem_check_range(w, m, 0, m->len, what, id);
}
