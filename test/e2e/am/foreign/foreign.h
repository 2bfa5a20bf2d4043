/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program with an endpoint on node a and one on node b, which lets them use memory of its own: of
 * the heap, of mmap(), static.
 */
#ifndef TEST_E2E_FOREIGN_H
#define TEST_E2E_FOREIGN_H

#include "../../check.h"

#include <urnic/am.h>
#include <urnic/attach.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE ((size_t)4096)
#define MIB ((size_t)1 << 20)
/* More than stays shared without a user, so that pages go back each time. */
#define LARGE (20 * MIB)

/* An endpoint with its device. */
struct end {
	struct urn_msg_dev *dev;
	struct urn_am_endpoint *ep;
	struct urn_am_address address;
};

/* ends[0] asks, and ends[1] is the target. */
extern struct end ends[2];

/* Memory of an endpoint, with a region over all of it. */
struct own {
	struct end *end;
	struct urn_am_memory memory;
	uint64_t key;
};

void ends_open(bool wakes);
void ends_close(void);
/* Add memory, which must work. */
void add(struct own *o, struct end *end, void *p, size_t len);
/* Take the memory back. */
void take(struct own *o);
/* Adding fails with an errno value, and a sentence that has the words; NULL: any sentence. */
void refused(struct end *end, void *p, size_t len, int err, const char *words);
/* Move bytes between local memory and the target's. returns: enum urn_am_code */
uint8_t put(const struct own *from, const void *local, const struct own *to, void *at, size_t len,
	    uint8_t way);
uint8_t get(const struct own *to, void *local, const struct own *from, const void *at, size_t len,
	    uint8_t way);
/* Change a word of the target's memory. returns: the word's value before */
uint64_t change(const struct own *to, void *at, uint8_t op, uint8_t size, uint64_t value,
		uint64_t compare);
/* Let both endpoints run until a number is reached. */
void until(const unsigned int *number, unsigned int value);

/* True when the page at p is shared with the dataplane. */
bool shared(const void *p);
/* Private, fresh memory. */
void *fresh(size_t len);

void case_ways(void);
void case_requests(void);
void case_bad(void);
void case_overlap(void);
void case_again(void);
void case_free(void);
void case_remap(void);
void case_left(void);
void case_fork(void);
void case_forks(void);
void case_writers(void);
void case_helper(void);
void case_dead(void);
void case_plain(void);
void case_bound(void);

#endif
