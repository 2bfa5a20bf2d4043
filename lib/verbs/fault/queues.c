/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues of the program, by kind and handle. */
#include "verbs/fault/state.h"

#include <stdlib.h>

static unsigned int
list_of(uint32_t kind, uint32_t handle)
{
	return (handle * 0x9e3779b1u >> 16 ^ kind) % URN_FAULT_LISTS;
}

/* Kinds are bits; the place of a kind in a table. */
static unsigned int
kind_index(uint32_t kind)
{
	return kind == URN_FAULT_QP ? 0 : kind == URN_FAULT_CQ ? 1 : 2;
}

struct urn_fault_obj *
urn_fault_obj_add(struct ibv_context *c, uint32_t kind, void *queue, uint32_t handle)
{
	struct urn_fault_state *s = &urn_fault_state;
	struct urn_fault_obj *o = calloc(1, sizeof(*o) + s->n * sizeof(o->count[0]));

	pthread_mutex_lock(&s->lock);
	s->made[kind_index(kind)]++;
	if (o != NULL) {
		o->context = c;
		o->kind = kind;
		o->queue = queue;
		o->handle = handle;
		o->number = s->made[kind_index(kind)];
		LIST_INSERT_HEAD(&s->objs[list_of(kind, handle)], o, link);
	}
	pthread_mutex_unlock(&s->lock);
	return o;
}

struct urn_fault_obj *
urn_fault_obj_find(struct ibv_context *c, uint32_t kind, uint32_t handle)
{
	struct urn_fault_obj *o;

	LIST_FOREACH(o, &urn_fault_state.objs[list_of(kind, handle)], link)
		if (o->kind == kind && o->handle == handle && o->context == c)
			break;
	return o;
}

struct urn_fault_obj *
urn_fault_obj_use(struct ibv_context *c, uint32_t kind, uint32_t handle)
{
	struct urn_fault_obj *o;

	pthread_mutex_lock(&urn_fault_state.lock);
	o = urn_fault_obj_find(c, kind, handle);
	if (o != NULL && o->dying)
		o = NULL;
	if (o != NULL)
		o->users++;
	pthread_mutex_unlock(&urn_fault_state.lock);
	return o;
}

void
urn_fault_obj_leave(struct urn_fault_obj *o)
{
	if (o == NULL)
		return;
	pthread_mutex_lock(&urn_fault_state.lock);
	if (--o->users == 0)
		pthread_cond_broadcast(&urn_fault_state.cond);
	pthread_mutex_unlock(&urn_fault_state.lock);
}

struct urn_fault_obj *
urn_fault_obj_hold(struct ibv_context *c, uint32_t kind, uint32_t handle)
{
	struct urn_fault_state *s = &urn_fault_state;
	struct urn_fault_obj *o;

	pthread_mutex_lock(&s->lock);
	o = urn_fault_obj_find(c, kind, handle);
	if (o != NULL) {
		o->dying = true;
		while (o->users != 0)
			pthread_cond_wait(&s->cond, &s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return o;
}

void
urn_fault_obj_end(struct urn_fault_obj *o, bool destroyed)
{
	if (o == NULL)
		return;
	pthread_mutex_lock(&urn_fault_state.lock);
	if (destroyed)
		LIST_REMOVE(o, link);
	else
		o->dying = false;
	pthread_mutex_unlock(&urn_fault_state.lock);
	if (destroyed)
		free(o);
}

void
urn_fault_objs_drop(struct ibv_context *c)
{
	struct urn_fault_obj *o, *next;
	unsigned int i;

	for (i = 0; i < URN_FAULT_LISTS; i++)
		for (o = LIST_FIRST(&urn_fault_state.objs[i]); o != NULL; o = next) {
			next = LIST_NEXT(o, link);
			if (o->context != c)
				continue;
			LIST_REMOVE(o, link);
			free(o);
		}
}

struct urn_fault_obj *
urn_fault_obj_first(uint32_t kind, uint32_t number)
{
	struct urn_fault_obj *o, *found = NULL;
	unsigned int i;

	for (i = 0; i < URN_FAULT_LISTS; i++)
		LIST_FOREACH(o, &urn_fault_state.objs[i], link)
			if (o->kind == kind && !o->dying &&
			    (number == URN_FAULT_EACH || o->number == number) &&
			    (found == NULL || o->number < found->number))
				found = o;
	return found;
}
