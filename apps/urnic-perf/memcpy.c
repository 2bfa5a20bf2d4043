/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The byte limit: the same messages, from the same slots to the same slots, by
 * memcpy() in one thread (options.c makes both cores the same). No port, no
 * packet, no second core.
 */
#include "perf.h"

#include <stdlib.h>
#include <string.h>

/* Limits of the copies between two looks at the clock: bytes, messages. */
#define STEP_BYTES 262144u
#define STEP_MESSAGES 256u

struct copier {
	struct side side[2]; /* A holds and copies all; B is there for the thread's loop */
	struct run run;
	struct meter meter;
	struct perf_opts o;
	struct layout l;
	struct pattern p;
	uint64_t copied;     /* messages copied */
	uint64_t src, src_n; /* source slot of the next message, and number of slots */
	uint64_t dst, dst_n;
};

static unsigned int
copy_step(struct side *s, uint64_t now)
{
	struct copier *c = (struct copier *)(uintptr_t)s->scratch[0];
	unsigned int n = 0;

	for (uint64_t bytes = 0; n < STEP_MESSAGES && bytes < STEP_BYTES; bytes += c->l.size) {
		memcpy(s->mem.dst + c->dst * c->l.stride, s->mem.src + c->src * c->l.stride,
		       c->l.size);
		if (++c->src == c->src_n)
			c->src = 0;
		if (++c->dst == c->dst_n)
			c->dst = 0;
		n++;
	}
	c->copied += n;
	meter_count(s->meter, n, now);
	side_watch(s, now);
	if (s->meter->phase == METER_OVER)
		atomic_store(&s->run->stop, true);
	return n;
}

static unsigned int
no_step(struct side *s, uint64_t now)
{
	(void)s;
	(void)now;
	return 0;
}

/* Compare each target slot with the last message copied to it. */
static int
check_copies(struct copier *c)
{
	struct side *s = &c->side[0];

	for (uint64_t slot = 0; slot < c->dst_n && slot < c->copied; slot++) {
		uint64_t k = c->copied - 1 - (c->copied - 1 - slot) % c->dst_n;
		struct message_id id = {.seq = k + 1};

		k %= c->src_n;
		id.qp = (uint32_t)(k / c->l.src_slots);
		id.slot = (uint32_t)(k % c->l.src_slots);
		id.stamp = id.slot;
		if (!check_message(s, s->mem.dst + slot * c->l.stride, &id, UINT64_MAX))
			return -1;
	}
	return 0;
}

static int
copier_init(struct copier *c, const struct perf_opts *o, uint64_t tsc_hz, struct urn_err *err)
{
	c->o = *o;
	layout_make(&c->l, o);
	pattern_init(&c->p);
	meter_init(&c->meter, o->iters, o->iters / 10 + 1, o->duration_ns, tsc_hz);
	for (unsigned int i = 0; i < 2; i++)
		c->side[i] = (struct side){.index = i,
					   .run = &c->run,
					   .peer = &c->side[1 - i],
					   .o = &c->o,
					   .l = &c->l,
					   .p = &c->p,
					   .step = i == 0 ? copy_step : no_step};
	c->side[0].meter = &c->meter;
	c->side[0].scratch[0] = (uintptr_t)c;
	c->src_n = (uint64_t)c->l.qps * c->l.src_slots;
	c->dst_n = c->l.srq_slots ? c->l.srq_slots : (uint64_t)c->l.qps * c->l.dst_slots;
	return buffers_make(&c->side[0].mem, &c->l, &c->p, true, true, false, err);
}

int
memcpy_run(const struct rig *rig, const struct perf_opts *o, struct result *res,
	   struct urn_err *err)
{
	struct copier *c = aligned_alloc(64, (sizeof(*c) + 63) & ~(size_t)63);
	int rc;

	if (c == NULL) {
		urn_err_set(err, "no memory to copy in");
		return -1;
	}
	memset(c, 0, sizeof(*c));
	rc = copier_init(c, o, rig->tsc_hz, err);
	if (rc == 0) {
		rc = workers_run(&c->side[0], &c->side[1], &c->run);
		if (rc == 0 && o->check != PERF_CHECK_NONE)
			rc = check_copies(c);
		if (rc != 0)
			*err = c->run.err;
		result_from_meter(res, &c->o, &c->meter);
		res->checked = c->side[0].checked;
		res->moved = c->copied * c->l.size;
		res->interrupted = c->run.interrupted;
	}
	buffers_free(&c->side[0].mem);
	free(c);
	return rc;
}
