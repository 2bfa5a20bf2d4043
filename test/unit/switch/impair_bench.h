/* SPDX-License-Identifier: BSD-3-Clause */
/* An impairment, with frames and time made by the test. */
#ifndef URN_TEST_IMPAIR_BENCH_H
#define URN_TEST_IMPAIR_BENCH_H

#include "frames.h"

#include "switch/impair.h"

enum { N = 4000, LEN = 100 };

#define US 1000ull
#define MS 1000000ull

/* All impairments at once. */
extern const struct urn_impair_config everything;

struct urn_impair *make(const struct urn_impair_config *cfg);
uint64_t count(const struct urn_impair *imp, enum urn_impair_counter c);
/* Every frame is accounted for. */
void check_balance(const struct urn_impair *imp);
/*
 * Push frames first..first+n-1, `gap` ns apart, and pop after each up to its
 * time. returns how many came out, their numbers in out[]
 */
unsigned int pass(struct urn_impair *imp, uint32_t first, uint32_t n, uint64_t start, uint64_t gap,
		  uint32_t *out);
/* Take all frames that are inside, as pass() does. */
unsigned int drain(struct urn_impair *imp, uint32_t *out);
/* got: within five standard deviations of n cases with probability p. */
void assert_about(uint64_t got, double n, double p);
/* Number of the bit in which two frames differ; fails unless it is exactly one. */
uint32_t odd_bit(const struct rte_mbuf *a, const struct rte_mbuf *b);

#define T(f) cmocka_unit_test_setup_teardown(f, frames_setup, frames_teardown)

#endif
