/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/doorbell.h"

/*
 * Leaf words that a call looks at, at most. A client may claim in each turn that all its words have
 * bits: that must cost its engine no more than a few rings.
 */
enum { WORDS_A_CALL = 64 };

/*
 * Move on to the next leaf word with bits, by looking at *words words at most.
 * returns: false when there is none, or none within that number: *words is 0 then
 */
static bool
next_word(struct urn_db_scan *s, unsigned int *words)
{
	for (;;) {
		while (s->left_top) {
			uint32_t i = (uint32_t)__builtin_ctzll(s->left_top);

			if (*words == 0)
				return false;
			--*words;
			s->left_top &= s->left_top - 1;
			s->word = s->top * 64 + i;
			/* Acquire: the queue's prod, stored before the ring, is seen after this. */
			s->left = atomic_exchange_explicit(&s->db->leaf[s->word], 0,
							   memory_order_seq_cst);
			if (s->left)
				return true;
		}
		for (;;) {
			if (++s->top >= s->tops)
				return false;
			if (atomic_load_explicit(&s->db->top[s->top], memory_order_relaxed))
				break;
		}
		s->left_top = atomic_exchange_explicit(&s->db->top[s->top], 0, memory_order_seq_cst);
	}
}

URN_FAST unsigned int
urn_db_take(struct urn_db_scan *s, uint32_t *ids, unsigned int max)
{
	unsigned int n = 0, words = WORDS_A_CALL;

	while (n < max) {
		if (!s->left && !next_word(s, &words)) {
			if (words)
				s->top = UINT32_MAX; /* the next call starts at the first word */
			break;
		}
		while (s->left && n < max) {
			ids[n++] = s->word * 64 + (uint32_t)__builtin_ctzll(s->left);
			s->left &= s->left - 1;
		}
	}
	return n;
}
