/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/adapter/objs.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define URN_OBJS_FIRST 16u

void
urn_objs_init(struct urn_objs *t)
{
	pthread_mutex_init(&t->lock, NULL);
	t->slot = NULL;
	t->slots = 0;
	t->free = URN_OBJ_END;
}

void
urn_objs_fini(struct urn_objs *t)
{
	free(t->slot);
	t->slot = NULL;
	pthread_mutex_destroy(&t->lock);
}

static int
urn_objs_grow(struct urn_objs *t)
{
	uint32_t i, n = t->slots == 0 ? URN_OBJS_FIRST : t->slots * 2;
	struct urn_obj_slot *slot = reallocarray(t->slot, n, sizeof(*slot));

	if (slot == NULL)
		return ENOMEM;
	for (i = t->slots; i < n; i++)
		slot[i] = (struct urn_obj_slot){.gen = 0, .next = i + 1 < n ? i + 1 : URN_OBJ_END};
	t->free = t->slots;
	t->slot = slot;
	t->slots = n;
	return 0;
}

uint64_t
urn_objs_put(struct urn_objs *t, enum urn_obj_kind kind, void *obj)
{
	struct urn_obj_slot *s;
	uint64_t ticket = 0;

	pthread_mutex_lock(&t->lock);
	if (t->free == URN_OBJ_END && urn_objs_grow(t) != 0) {
		errno = ENOMEM;
	} else {
		s = &t->slot[t->free];
		/* Slot number plus one, so that no ticket is 0. */
		ticket = (uint64_t)++s->gen << 32 | (t->free + 1);
		t->free = s->next;
		s->obj = obj;
		s->kind = kind;
	}
	pthread_mutex_unlock(&t->lock);
	return ticket;
}

/* The slot of a valid ticket, or NULL. The table's lock is held. */
static struct urn_obj_slot *
urn_objs_slot(struct urn_objs *t, uint64_t ticket)
{
	uint32_t i = (uint32_t)ticket - 1; /* 0 wraps beyond every table */

	if (i >= t->slots || t->slot[i].kind == URN_OBJ_NONE || t->slot[i].gen != ticket >> 32)
		return NULL;
	return &t->slot[i];
}

void
urn_objs_take(struct urn_objs *t, uint64_t ticket)
{
	struct urn_obj_slot *s;

	pthread_mutex_lock(&t->lock);
	s = urn_objs_slot(t, ticket);
	if (s != NULL) {
		s->kind = URN_OBJ_NONE;
		s->obj = NULL;
		s->next = t->free;
		t->free = (uint32_t)(s - t->slot);
	}
	pthread_mutex_unlock(&t->lock);
}

void *
urn_objs_find(struct urn_objs *t, enum urn_obj_kind kind, uint64_t ticket, size_t counter_off)
{
	struct urn_obj_slot *s;
	void *obj = NULL;

	pthread_mutex_lock(&t->lock);
	s = urn_objs_slot(t, ticket);
	if (s != NULL && s->kind == (uint32_t)kind) {
		obj = s->obj;
		++*(uint32_t *)((uint8_t *)obj + counter_off);
	}
	pthread_mutex_unlock(&t->lock);
	return obj;
}
