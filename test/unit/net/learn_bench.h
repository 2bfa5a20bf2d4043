/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table of peers' features, with frames and time made by the test. Our own frames are
 * parsed on the way, and their ICRC is checked.
 */
#ifndef URN_TEST_LEARN_BENCH_H
#define URN_TEST_LEARN_BENCH_H

#include "net/learn.h"

#include "common/test_eal.h"
#include "common/test_link_mad.h"
#include "l3_frames.h"

#define MS 1000000ull
#define SECOND 1000000000ull
#define START (100 * SECOND) /* START is not 0: no clock begins there */

extern struct urn_neigh *nb;             /* we, and a peer whose MAC address is known */
extern struct urn_learn *lk;
extern uint8_t buf[LINK_FRAME_ROOM];     /* the frame that came last, or that goes in next */
extern uint32_t seen;                    /* the count of news that the test has seen */

struct urn_learn_config config(void);
/* Set up our node, and a peer whose MAC address is known. */
int setup(void **state);
int teardown(void **state);
/* The frame in `len` bytes of buf[] comes in; a reply replaces it. returns the counter that counted it */
enum urn_counter input(uint32_t len, uint64_t now, int *reply);
/* A frame from a peer to our address of the same family and scope comes in. */
enum urn_counter from(const uint8_t *gid, const struct link_spec *s, uint64_t now, int *reply);
/* A peer's request comes in: it is answered, and counted as this. */
void request(const uint8_t *gid, const struct link_spec *s, uint64_t now, enum urn_counter why);
/* Poll; returns how many requests came, the last of them in buf[]. */
unsigned int poll_max(uint64_t now, unsigned int max);
void expect_no_news(void);
void expect_news(const uint8_t *gid, uint32_t features);
/* Ask about a peer, and poll: the request is in buf[]. returns its transaction id */
uint64_t ask(const uint8_t *gid, uint64_t now);
/* Ask about a peer, and answer: the usual way to be known. */
void make_known(const uint8_t *gid, uint64_t now);

#define expect_poll(now, n) assert_int_equal(poll_max(now, 64), n)
#define expect_state(gid, s) assert_int_equal(urn_learn_peek(lk, gid, NULL), URN_LEARN_##s)
#define expect_features(gid, f) assert_int_equal(urn_learn_features(lk, gid), f)

/* Cache lines of a peer, as far as the table knows them: an enum urn_link_arw. */
static inline unsigned int
arw_of(struct urn_learn *l, const uint8_t gid[16])
{
	struct urn_link_info info;

	return urn_learn_peek(l, gid, &info) == URN_LEARN_KNOWN ? info.arw : URN_LINK_ARW_NONE;
}

#endif
