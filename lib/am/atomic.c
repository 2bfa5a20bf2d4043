/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic operations on remote memory. Operands go with the command, and the old value comes with
 * the event: neither needs memory that the dataplane reaches.
 */
#include "am/endpoint.h"

/* Check a word, its address and its operands. returns: 0, or EINVAL with its text */
static int
urn_rma_check_word(const struct urn_rma_atomic *op)
{
	if (!urn_am_op_is_atomic(op->op))
		return urn_fail(EINVAL, "%u is no atomic operation", op->op);
	if (op->size != 4 && op->size != 8)
		return urn_fail(EINVAL, "an atomic operation has 4 or 8 bytes, not %u", op->size);
	if (op->remote % op->size != 0)
		return urn_fail(EINVAL,
				"the address 0x%llx of an atomic operation is not a multiple of "
				"its %u bytes",
				(unsigned long long)op->remote, op->size);
	if (op->size == 4 &&
	    (op->value >> 32 != 0 || (op->op == URN_AM_COMPARE_SWAP && op->compare >> 32 != 0)))
		return urn_fail(EINVAL, "a value of an atomic operation does not fit its 4 bytes");
	return 0;
}

int
urn_rma_atomic(struct urn_am_endpoint *ep, const struct urn_rma_atomic *op)
{
	struct urn_am_wish w = {op->done, op->arg, op->counter, op->flags};
	struct urn_am_batch b = {.to = op->to, .key = op->key};
	struct urn_abi_am_cmd c = {.op = op->op, .len = op->size, .remote = op->remote};
	struct urn_abi_am_operand word = {.value = op->value};
	int err = urn_rma_may(ep, op->flags);

	if (err == 0)
		err = urn_rma_check_word(op);
	if (err == 0)
		err = urn_rma_begin(ep, 1, &w, &b);
	if (err != 0)
		return err;
	word.compare = op->op == URN_AM_COMPARE_SWAP ? op->compare : 0;
	urn_rma_add(&b, &c, &word, op->old);
	urn_rma_go(&b);
	return 0;
}
