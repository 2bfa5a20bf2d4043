/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection manager alone: the test gives it a peer's messages, and keeps its own
 * messages and events to be looked at. Time is the test's.
 */
#ifndef URN_TEST_CM_BENCH_H
#define URN_TEST_CM_BENCH_H

#include "cm/cm.h"
#include "common/test_cm_look.h"

#define MS 1000000ull
#define SECOND 1000000000ull
#define START (100 * SECOND) /* START is not 0: no clock begins there */

enum { SERVICE = 0x01061234, PEER_ID = 0x77000001, PEER_QPN = 0x4321, OUR_QPN = 0x1234 };

struct cm_bench {
	struct urn_cm *cm;
	struct urn_cm_owner o;
	uint64_t now;
	unsigned int sent;        /* messages sent since the last look */
	struct urn_cm_msg said;   /* the last message sent */
	bool said_waits;          /* that message may wait for the peer's MAC address */
	uint32_t said_id;         /* its id; 0: it belongs to none */
	unsigned int told;        /* events since the last look */
	struct urn_abi_cm_event ev; /* the last event */
	unsigned int stood;       /* how often the owner's connection to the peer's queue pair was reported to stand */
	bool deaf, dumb;          /* no room for events, for messages */
	bool any_owner;		  /* events may be of another owner than `o` */
	bool any_peer;		  /* messages may go to another peer than `peer` */
	bool waits;               /* messages that may wait for a MAC address do, each in place of the one before */
	uint8_t us[16], peer[16];
};

extern struct cm_bench b;

/* Make the bench anew with so many ids (0: default), and of them at most `quota` for the owner. */
void bench_make(uint32_t max_ids, uint32_t quota);
/* Make the bench anew on a port that carries this path MTU at most (code). */
void bench_make_mtu(uint8_t max_mtu);
int setup(void **state);
int teardown(void **state);

/* A message of the peer, with its ids; the test fills in the rest. */
struct urn_cm_msg from_peer(enum urn_cm_attr attr, uint32_t our_id);
/* The message comes in. returns the counter that counted it */
enum urn_counter input(const struct urn_cm_msg *m);
/* Let time pass until `ns`, with as many ticks as there is work. */
void pass(uint64_t ns);
uint64_t counter(enum urn_counter c);

/* No message was sent and no event came since the last look. */
void quiet(void);
/* One message was sent, of this attribute; one event came, of this type. */
struct urn_cm_msg said(enum urn_cm_attr attr);
struct urn_abi_cm_event told(enum urn_cm_event_type type);

/* The usual ways to a state. Each returns our id. */
uint32_t to_listen(uint32_t backlog);
uint32_t to_req_sent(void);
uint32_t to_rep_rcvd(void);
uint32_t to_active(void);  /* to ESTABLISHED, as the side that asked */
uint32_t to_req_rcvd(void);
uint32_t to_rep_sent(void);
uint32_t to_passive(void); /* to ESTABLISHED, as the side that was asked */
uint32_t to_dreq_sent(void);
uint32_t to_dreq_rcvd(void);
uint32_t to_timewait(void);
uint32_t to_sidr_req_sent(void);
uint32_t to_sidr_req_rcvd(void);

/* Parameters without a mistake. */
struct urn_abi_cm_connect a_connect(void);
struct urn_abi_cm_accept an_accept(void);
void fill_data(uint8_t *p, unsigned int n, uint8_t first);
void expect_data(const uint8_t *p, unsigned int n, uint8_t first);
/* The first `len` bytes, counting up from `first`; then zeroes to n. */
void expect_padded(const uint8_t *p, unsigned int n, uint8_t first, unsigned int len);

#define expect_in(m, c) assert_int_equal(input(m), URN_C_##c)
#define expect_state(id, s) assert_int_equal(test_cm_state(b.cm, id), URN_CM_##s)

#endif
