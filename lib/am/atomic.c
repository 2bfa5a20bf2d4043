/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic operations on remote memory. Operands go with the command, and the old value comes with
 * the event: neither needs memory that the dataplane reaches.
 */
#include "am/lock.h"

/* Check a word, its address and its operands. returns: 0, or EINVAL with its text */
static int
urn_rma_check_word(const struct urn_rma_word *w)
{
	if (!urn_am_op_is_atomic(w->op))
		return urn_fail(EINVAL, "%u is no atomic operation", w->op);
	if (w->size != 4 && w->size != 8)
		return urn_fail(EINVAL, "an atomic operation has 4 or 8 bytes, not %u", w->size);
	if (w->remote % w->size != 0)
		return urn_fail(EINVAL,
				"the address 0x%llx of an atomic operation is not a multiple of "
				"its %u bytes",
				(unsigned long long)w->remote, w->size);
	if (w->size == 4 &&
	    (w->value >> 32 != 0 || (w->op == URN_AM_COMPARE_SWAP && w->compare >> 32 != 0)))
		return urn_fail(EINVAL, "a value of an atomic operation does not fit its 4 bytes");
	return 0;
}

static int
urn_rma_do_atomicv(struct urn_am_endpoint *ep, const struct urn_rma_words *v)
{
	struct urn_am_wish w = {v->done, v->arg, v->counter, v->flags};
	struct urn_am_batch b = {.to = v->to, .key = v->key};
	int err = urn_rma_may(ep, v->flags);
	uint32_t i;

	if (err == 0)
		err = urn_rma_check_n(ep, v->n);
	for (i = 0; err == 0 && i < v->n; i++)
		err = urn_rma_check_word(&v->words[i]);
	if (err == 0)
		err = urn_rma_begin(ep, v->n, &w, &b);
	if (err != 0)
		return err;
	for (i = 0; i < v->n; i++) {
		const struct urn_rma_word *o = &v->words[i];
		struct urn_abi_am_operand word = {.value = o->value};
		struct urn_abi_am_cmd *c;

		word.compare = o->op == URN_AM_COMPARE_SWAP ? o->compare : 0;
		c = urn_rma_add(&b, &word, o->size, o->old);
		c->op = o->op;
		c->way = URN_AM_AUTO;
		c->remote = o->remote;
		c->local = 0;
		c->lkey = 0;
	}
	urn_rma_go(&b);
	return 0;
}

int
urn_rma_atomicv(struct urn_am_endpoint *ep, const struct urn_rma_words *v)
{
	int err = urn_am_enter(ep);

	if (err != 0)
		return err;
	err = urn_rma_do_atomicv(ep, v);
	urn_am_leave(ep);
	return err;
}

int
urn_rma_atomic(struct urn_am_endpoint *ep, const struct urn_rma_atomic *op)
{
	struct urn_rma_word word = {.remote = op->remote,
				    .value = op->value,
				    .compare = op->compare,
				    .old = op->old,
				    .op = op->op,
				    .size = op->size};
	struct urn_rma_words v = {.to = op->to,
				  .key = op->key,
				  .words = &word,
				  .n = 1,
				  .flags = op->flags,
				  .done = op->done,
				  .arg = op->arg,
				  .counter = op->counter};

	return urn_rma_atomicv(ep, &v);
}
