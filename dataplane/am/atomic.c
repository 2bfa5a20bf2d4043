/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic operations on a peer's memory: fetch-and-add, swap, compare-and-swap, of 4 or 8 bytes,
 * naturally aligned. The target's engine carries each out by one atomic instruction on the mapped
 * word, so that the target program's own atomics, and those of other engines, agree with it. Words
 * are in the host order of the target, as its program sees them; the wire has network order.
 *
 * Exactly once: a flow delivers a packet once, and a packet that is refused as BUSY is refused
 * before anything is done. The reply carries the word's value before. Nobody
 * knows about an operation without a reply: its code has URN_AM_MAY_BE_THERE.
 */
#include "am/priv.h"

/* ---- the initiator */

uint8_t
urn_am_atomic_check(const struct urn_abi_am_cmd *c, const struct urn_abi_am_operand *word)
{
	if ((c->len != 4 && c->len != 8) || (c->way != URN_AM_AUTO && c->way != URN_AM_DIRECT) ||
	    (c->len == 4 && (word->value | word->compare) >> 32))
		return URN_AM_BAD_COMMAND;
	return c->remote % c->len ? URN_AM_ALIGN : URN_AM_DONE;
}

void
urn_am_atomic_write(const struct urn_am_oper *op, uint8_t *data)
{
	struct urn_am_atomic a = {.op = op->cmd.op, .value = op->word.value};

	if (op->cmd.op == URN_AM_COMPARE_SWAP)
		a.compare = op->word.compare;
	urn_am_put_atomic(data, &a);
}

/* ---- the target */

static uint64_t
do_4(uint32_t *at, const struct urn_am_atomic *a)
{
	uint32_t old = (uint32_t)a->compare;

	switch (a->op) {
	case URN_AM_FETCH_ADD:
		return __atomic_fetch_add(at, (uint32_t)a->value, __ATOMIC_SEQ_CST);
	case URN_AM_SWAP:
		return __atomic_exchange_n(at, (uint32_t)a->value, __ATOMIC_SEQ_CST);
	default: /* `old` gets the word's value when that differs */
		__atomic_compare_exchange_n(at, &old, (uint32_t)a->value, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
		return old;
	}
}

static uint64_t
do_8(uint64_t *at, const struct urn_am_atomic *a)
{
	uint64_t old = a->compare;

	switch (a->op) {
	case URN_AM_FETCH_ADD:
		return __atomic_fetch_add(at, a->value, __ATOMIC_SEQ_CST);
	case URN_AM_SWAP:
		return __atomic_exchange_n(at, a->value, __ATOMIC_SEQ_CST);
	default:
		__atomic_compare_exchange_n(at, &old, a->value, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
		return old;
	}
}

uint8_t
urn_am_atomic_take(struct urn_tp *tp, const struct urn_am_ep *ep, const struct urn_am_msg *m,
		   uint64_t *old)
{
	struct urn_am_piece piece[URN_AM_PIECES];
	struct urn_am_atomic a;
	unsigned int n = 0;
	uint8_t code =
		urn_am_reach(tp, ep, m->key, m->addr, m->len, URN_AM_ACCESS_ATOMIC, piece, &n);

	if (code != URN_AM_DONE)
		return code;
	if (n != 1) /* parts of several memory regions make no word */
		return URN_AM_RANGE;
	/* The address is the program's; a mapping may lie elsewhere here. */
	if ((m->addr | (uintptr_t)piece[0].at) % m->len)
		return URN_AM_ALIGN;
	(void)urn_am_get_atomic(m->data, m->len, &a); /* the parser has checked it */
	*old = m->len == 4 ? do_4((void *)piece[0].at, &a) : do_8((void *)piece[0].at, &a);
	return URN_AM_DONE;
}
