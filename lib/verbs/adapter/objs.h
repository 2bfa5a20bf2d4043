/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objects of a context that events speak of: CQs, QPs, SRQs.
 *
 * Events travel through pipes and may be read after the object they name is
 * gone. So the `cookie` that goes to the dataplane is no pointer but a ticket: a
 * slot of this table and the slot's generation. A ticket of an object that has
 * been taken out finds nothing, even when its slot has been used again.
 *
 * Finding an object and counting the event that is about to be handed out is
 * one step under the table's lock. So a thread that takes an object out may read
 * the object's count afterwards, and wait for that many acknowledgements.
 */
#ifndef URN_VERBS_OBJS_H
#define URN_VERBS_OBJS_H

#include <pthread.h>
#include <stdint.h>

enum urn_obj_kind {
	URN_OBJ_NONE, /* a free slot */
	URN_OBJ_CQ,
	URN_OBJ_QP,
	URN_OBJ_SRQ,
};

struct urn_obj_slot {
	void *obj;        /* the object; meaningless in a free slot */
	uint32_t gen;     /* counts uses of the slot */
	uint32_t next;    /* free slot: the next free one, or URN_OBJ_END */
	uint32_t kind;    /* enum urn_obj_kind */
};

struct urn_objs {
	/* lock, "the lock of objs", protects the fields below, and fields of the context and its
	 * objects that say so. */
	pthread_mutex_t lock;
	struct urn_obj_slot *slot; /* grown by doubling */
	uint32_t slots;            /* allocated */
	uint32_t free;             /* first free slot, or URN_OBJ_END */
};

#define URN_OBJ_END UINT32_MAX

void urn_objs_init(struct urn_objs *t);
void urn_objs_fini(struct urn_objs *t);

/* Put an object in. returns: its ticket, never 0; 0 with errno ENOMEM */
uint64_t urn_objs_put(struct urn_objs *t, enum urn_obj_kind kind, void *obj);

/* Take an object out; a ticket that is not there is ignored. */
void urn_objs_take(struct urn_objs *t, uint64_t ticket);

/*
 * Find an object, and count an event for it: counter_off is the offset in the object
 * of its uint32_t counter. returns: the object, or NULL
 */
void *urn_objs_find(struct urn_objs *t, enum urn_obj_kind kind, uint64_t ticket, size_t counter_off);

#endif
