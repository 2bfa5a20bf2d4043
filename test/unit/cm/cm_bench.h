/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection manager alone: messages of a peer's are put in, what it says and
 * tells is kept to be looked at. Time is the test's.
 */
#ifndef URN_TEST_CM_BENCH_H
#define URN_TEST_CM_BENCH_H

#include "cm/cm.h"

#define MS 1000000ull
#define SECOND 1000000000ull
#define START (100 * SECOND) /* a clock does not begin at 0 */

enum { SERVICE = 0x01061234, PEER_ID = 0x77000001, PEER_QPN = 0x4321, OUR_QPN = 0x1234 };

struct cm_bench {
	struct urn_cm *cm;
	struct urn_cm_owner o;
	uint64_t now;
	unsigned int sent;        /* messages, since they were last looked at */
	struct urn_cm_msg said;   /* the last of them */
	bool said_waits;          /* it may wait for the peer's MAC address */
	uint32_t said_id;         /* whose it is; 0: nobody's */
	unsigned int told;        /* events, since they were last looked at */
	struct urn_abi_cm_event ev; /* the last of them */
	unsigned int stood;       /* how often the peer's queue pair was said to be the owner's */
	bool deaf, dumb;          /* no room for events, for messages */
	bool waits;               /* what may wait for a MAC address does, in place of the last */
	uint8_t us[16], peer[16];
};

extern struct cm_bench b;

/* Made anew with so many ids (0: default), and of them at most so many for the owner. */
void bench_make(uint32_t max_ids, uint32_t quota);
/* Made anew on a port that carries this path MTU at most (code). */
void bench_make_mtu(uint8_t max_mtu);
int setup(void **state);
int teardown(void **state);

/* A message of the peer's, with its ids; the rest to be filled in. */
struct urn_cm_msg from_peer(enum urn_cm_attr attr, uint32_t our_id);
/* It comes in. returns what was counted */
enum urn_counter input(const struct urn_cm_msg *m);
/* Time passes to then, with as many ticks as there is work. */
void pass(uint64_t ns);
uint64_t counter(enum urn_counter c);

/* Nothing was said, or told, since. */
void quiet(void);
/* One message was said; one event was told. */
struct urn_cm_msg said(enum urn_cm_attr attr);
struct urn_abi_cm_event told(enum urn_cm_event_type type);

/* The usual ways to a state. Each returns our id. */
uint32_t to_listen(uint32_t backlog);
uint32_t to_req_sent(void);
uint32_t to_rep_rcvd(void);
uint32_t to_active(void);  /* ESTABLISHED, having asked */
uint32_t to_req_rcvd(void);
uint32_t to_rep_sent(void);
uint32_t to_passive(void); /* ESTABLISHED, having been asked */
uint32_t to_dreq_sent(void);
uint32_t to_dreq_rcvd(void);
uint32_t to_timewait(void);
uint32_t to_sidr_req_sent(void);
uint32_t to_sidr_req_rcvd(void);

/* Parameters that are right. */
struct urn_abi_cm_connect a_connect(void);
struct urn_abi_cm_accept an_accept(void);
void fill_data(uint8_t *p, unsigned int n, uint8_t first);
void expect_data(const uint8_t *p, unsigned int n, uint8_t first);
/* ... then zeroes to n. */
void expect_padded(const uint8_t *p, unsigned int n, uint8_t first, unsigned int len);

#define expect_in(m, c) assert_int_equal(input(m), URN_C_##c)
#define expect_state(id, s) assert_int_equal(urn_cm_peek(b.cm, id), URN_CM_##s)

#endif
