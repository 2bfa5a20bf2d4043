/* SPDX-License-Identifier: BSD-3-Clause */
/* A table of neighbours, with frames and time made by the test. */
#ifndef URN_TEST_NEIGH_BENCH_H
#define URN_TEST_NEIGH_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net/neigh.h"
#include "counters.h"

#include "common/test_eal.h"
#include "common/test_neigh_state.h"
#include "l3_frames.h"

#define MS 1000000ull
#define SECOND 1000000000ull

extern struct urn_neigh *nb;        /* our table */
extern uint8_t buf[L3_ROOM];        /* the frame that came last, or that goes in next */
extern const uint8_t us_group[16];  /* multicast: our solicited-node group, */
extern const uint8_t all_nodes[16]; /* and all nodes of the link */

int setup(void **state);
int teardown(void **state);
/* Give buf[0..len) to the table. returns its result; *counter: the counter that counted it; may be NULL */
int input(uint32_t len, uint64_t now, enum urn_counter *counter);
/* The peer answers an ARP request of ours. */
void arp_answer(const uint8_t *gid, const uint8_t *mac, uint64_t now);
/* Poll; returns how many requests came, the last of them in buf[]. */
unsigned int poll_all(uint64_t now, unsigned int max);
/* want_mac: NULL: any MAC */
void expect_lookup(const uint8_t *gid, int want, const uint8_t *want_mac);
/* The next hop of an address; want NULL: there is no route. */
void expect_hop(const uint8_t *gid, const uint8_t *want);
/* Look up and answer: the usual way to be REACHABLE and wanted. gid: IPv4. */
void make_reachable(const uint8_t *gid, const uint8_t *mac, uint64_t now);

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
