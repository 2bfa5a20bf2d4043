/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reference model: bytes that come after an invalidation.
 *
 * When the invalidation of a key is complete, no byte of a WRITE with that key may be written any more.
 * Each such WRITE that is not known to be complete is watched from then on: a copy of its target is
 * kept, and eight bytes in a row that become the WRITE's own are late. Another request makes such
 * bytes with a probability of 2^-64, so other writes to the target do not matter.
 */
#include "model_priv.h"

#include "rng.h"

#include <stdio.h>
#include <stdlib.h>

enum { RUN = 8 }; /* bytes in a row that can't be random */

static void
watch(struct model *m, unsigned int node, const struct model_request *r)
{
	struct mlate *l;

	if (m->lates == MODEL_LATE)
		return; /* no room: only the other WRITEs are watched */
	l = &m->late[m->lates++];
	*l = (struct mlate){.node = node, .off = r->remote, .len = r->len, .seed = r->seed};
	l->was = malloc(r->len);
	if (!l->was) {
		fputs("model: no memory\n", stderr);
		exit(1);
	}
	memcpy(l->was, m->node[node].ram + r->remote, r->len);
}

void
model_key_gone(struct model *m, int key)
{
	for (uint32_t i = 0; i < m->qps; i++) {
		const struct mqp *q = &m->qp[i];

		for (uint32_t k = q->head; k < q->n; k++) {
			const struct model_request *r = &q->req[k].r;

			if (r->rkey == key && model_is_write(r) && r->len >= RUN && !q->req[k].must)
				watch(m, model_peer(m, q)->node, r);
		}
	}
}

/* Offset in the message of bytes that appeared since the last look; -1: none. */
static int64_t
came(const struct mlate *l, const uint8_t *got)
{
	uint32_t fresh = 0;

	for (uint32_t b = 0; b < l->len; b++) {
		if (got[b] != sim_byte(l->seed, b))
			fresh = 0;
		else if (got[b] != l->was[b] && ++fresh == RUN)
			return b + 1 - RUN;
	}
	return -1;
}

const char *
model_late(struct model *m, unsigned int node)
{
	for (unsigned int i = 0; i < m->lates; i++) {
		const struct mlate *l = &m->late[i];
		const uint8_t *got = m->node[node].ram + l->off;
		int64_t at;

		if (l->node != node || memcmp(got, l->was, l->len) == 0)
			continue;
		at = came(l, got);
		if (at >= 0)
			return model_say(m, "byte %lld of a WRITE of %u bytes to 0x%x of node %u came after its key was invalidated",
					 (long long)at, l->len, l->off, node);
		memcpy(l->was, got, l->len);
	}
	return NULL;
}

void
model_late_reset(struct model *m)
{
	while (m->lates)
		free(m->late[--m->lates].was);
}
