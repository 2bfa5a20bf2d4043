/* SPDX-License-Identifier: BSD-3-Clause */
#include "line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
line_open(struct line *l, const struct line_faults *f, uint64_t delay, uint64_t jitter,
	  uint64_t ps_byte, struct rnd rng)
{
	while (l->n)
		l->spare[l->spares++] = l->heap[--l->n];
	l->f = *f;
	l->rng = rng;
	l->delay = delay;
	l->jitter = jitter;
	l->ps_byte = ps_byte;
	l->dead = false;
	l->busy_until = l->last_at = l->seq = l->lost = l->carried = 0;
}

void
line_free(struct line *l)
{
	while (l->n)
		free(l->heap[--l->n]);
	while (l->spares)
		free(l->spare[--l->spares]);
}

static bool
sooner(const struct line_frame *a, const struct line_frame *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void
push(struct line *l, struct line_frame *f)
{
	uint32_t i = l->n++;

	for (; i && sooner(f, l->heap[(i - 1) / 2]); i = (i - 1) / 2)
		l->heap[i] = l->heap[(i - 1) / 2];
	l->heap[i] = f;
}

static struct line_frame *
pop(struct line *l)
{
	struct line_frame *top = l->heap[0], *last = l->heap[--l->n];
	uint32_t i = 0, kid;

	for (; (kid = 2 * i + 1) < l->n; i = kid) {
		if (kid + 1 < l->n && sooner(l->heap[kid + 1], l->heap[kid]))
			kid++;
		if (!sooner(l->heap[kid], last))
			break;
		l->heap[i] = l->heap[kid];
	}
	l->heap[i] = last;
	return top;
}

static void
carry(struct line *l, uint64_t at, const uint8_t *bytes, size_t len)
{
	struct line_frame *f = l->spares ? l->spare[--l->spares] : malloc(sizeof(*f));

	if (!f || l->n == LINE_FRAMES) {
		fputs("urnic-peer-sim: more frames on the wire than it holds\n", stderr);
		exit(1);
	}
	f->at = at;
	f->seq = l->seq++;
	f->len = len;
	f->spoilt = rnd_ppm(&l->rng, l->f.spoil);
	memcpy(f->bytes, bytes, len);
	if (f->spoilt) {
		uint32_t bit = 14 * 8 + rnd(&l->rng, (uint32_t)(len - 14) * 8);

		f->bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		l->lost++;
	}
	push(l, f);
}

void
line_put(struct line *l, uint64_t now, const uint8_t *bytes, size_t len)
{
	uint64_t at = now > l->busy_until ? now : l->busy_until;
	bool late = rnd_ppm(&l->rng, l->f.reorder), twice = rnd_ppm(&l->rng, l->f.dup);

	l->carried++;
	l->busy_until = at += len * l->ps_byte / 1000;
	at += l->delay + rnd(&l->rng, (uint32_t)l->jitter + 1);
	if (at < l->last_at)
		at = l->last_at;
	if (late)
		at += rnd(&l->rng, 60000);
	else
		l->last_at = at;
	if (l->dead || rnd_ppm(&l->rng, l->f.drop)) {
		l->lost++;
		return;
	}
	carry(l, at, bytes, len);
	if (twice)
		carry(l, at + rnd(&l->rng, 30000), bytes, len);
}

uint64_t
line_due(const struct line *l)
{
	return l->n ? l->heap[0]->at : UINT64_MAX;
}

const struct line_frame *
line_take(struct line *l, uint64_t now)
{
	struct line_frame *f;

	if (line_due(l) > now)
		return NULL;
	f = pop(l);
	l->spare[l->spares++] = f;
	return f;
}
