/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that messages arrived as they were sent, by their pattern (pattern.h). */
#include "perf.h"

bool
check_message(struct side *s, const uint8_t *data, const struct message_id *id, uint64_t most)
{
	uint64_t size = s->l->size, compared = 0;
	bool ok = pattern_stamp_ok(data, size, pattern_stamp(id->qp, id->stamp));

	if (ok && most >= PATTERN_SHORT && size <= PATTERN_SHORT) {
		ok = pattern_short_body_ok(s->p, data, size, pattern_start(id->qp, id->slot));
		compared = size > PATTERN_STAMPS ? size - PATTERN_STAMPS : 0;
	} else if (ok && most > 0)
		ok = pattern_body_ok(s->p, data, size, pattern_start(id->qp, id->slot), id->stamp,
				     most, &compared);
	s->checked += compared + (size < 16 ? size : 16);
	if (!ok)
		run_fail(s->run, "%s: message %llu of QP number %u did not arrive as it was sent",
			 perf_op_name(s->o->op), (unsigned long long)id->seq, id->qp);
	return ok;
}

/* The last message that went to a target slot; 0: none. Messages count from 1. */
static uint64_t
last_in_slot(uint64_t messages, uint32_t slot, uint32_t slots)
{
	uint64_t behind;

	if (messages <= slot)
		return 0;
	behind = (messages - 1 - slot) % slots;
	return messages - behind;
}

bool
check_all(struct side *s, const uint8_t *dst, const struct perf_qp *sender)
{
	bool is_read = perf_op_is_read(s->o->op);
	struct message_id id;

	for (uint32_t qp = 0; qp < s->l->qps; qp++) {
		for (uint32_t slot = 0; slot < s->l->dst_slots; slot++) {
			id.qp = qp;
			id.seq = last_in_slot(sender[qp].done, slot, s->l->dst_slots);
			if (id.seq == 0)
				continue;
			id.slot = (uint32_t)(id.seq - 1) & (s->l->src_slots - 1);
			id.stamp = is_read ? id.slot : id.seq;
			if (!check_message(s, dst + layout_dst_off(s->l, qp, slot), &id, UINT64_MAX))
				return false;
		}
	}
	return true;
}
