/* SPDX-License-Identifier: BSD-3-Clause */
#include "worker.h"

#include "memory/atomic.h"

#include <stdlib.h>
#include <string.h>

struct urn_space *
worker_open(void)
{
	struct urn_space *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->fds = (struct urn_space_fds){.mem = -1, .maps = -1, .pidfd = -1};
	atomic_init(&s->refs, 1);
	pthread_mutex_init(&s->lock, NULL);
	s->started = true; /* so no thread is started */
	return s;
}

void
worker_close(struct urn_space *s)
{
	if (!s)
		return;
	s->started = false; /* there is no thread to wait for */
	urn_space_release(s);
}

static uint8_t
do_atomic(const struct urn_memop *op, uint8_t *target, bool fails)
{
	uint64_t *word = urn_pkt(op->m)->record.operand, old, now;

	if (fails || ((uintptr_t)target & 7))
		return URN_MEMOP_FAILED;
	memcpy(&old, target, sizeof(old));
	now = urn_atomic_result(op, old, word);
	urn_atomic_intend(op, old, now);
	memcpy(target, &now, sizeof(now));
	urn_atomic_did(op);
	word[0] = old;
	return URN_MEMOP_DONE;
}

static uint8_t
do_one(const struct urn_memop *op, bool fails)
{
	uint8_t *target = (uint8_t *)(uintptr_t)urn_foreign_target(op);
	uint32_t len = fails ? op->len / 2 : op->len;

	switch (op->kind) {
	case URN_MEMOP_GATHER:
		memcpy(op->frame, target, len);
		break;
	case URN_MEMOP_PLACE:
		memcpy(target, op->frame, len);
		break;
	case URN_MEMOP_CMP_SWAP:
	case URN_MEMOP_FETCH_ADD:
		return do_atomic(op, target, fails);
	case URN_MEMOP_FENCE:
		return URN_MEMOP_DONE;
	default:
		return URN_MEMOP_FAILED;
	}
	return fails ? URN_MEMOP_FAILED : URN_MEMOP_DONE;
}

uint32_t
worker_do(struct urn_space *s, uint32_t max, bool fails)
{
	uint32_t n = 0;

	for (struct urn_lane *l = atomic_load(&s->lanes); l; l = l->next) {
		uint32_t done = atomic_load(&l->done);

		for (; n < max && done != atomic_load(&l->sent); n++, done++) {
			struct urn_memop *op = &l->slot[done % URN_LANE_SLOTS];

			op->status = do_one(op, fails && n == 0);
		}
		atomic_store(&l->done, done);
	}
	return n;
}

uint32_t
worker_under_way(const struct urn_space *s)
{
	uint32_t n = 0;

	for (const struct urn_lane *l = atomic_load(&s->lanes); l; l = l->next)
		n += l->prod - l->cons + l->waiting;
	return n;
}

uint32_t
worker_waits(const struct urn_space *s)
{
	uint32_t n = 0;

	for (const struct urn_lane *l = atomic_load(&s->lanes); l; l = l->next)
		n += atomic_load(&l->sent) - atomic_load(&l->done);
	return n;
}

uint32_t
worker_answered(const struct urn_space *s)
{
	uint32_t n = 0;

	for (const struct urn_lane *l = atomic_load(&s->lanes); l; l = l->next)
		n += atomic_load(&l->done) - l->cons;
	return n;
}
