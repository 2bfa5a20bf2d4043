/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints on the two nodes of ctl_msg_rig.h, each with a piece of memory. */
#ifndef TEST_AM_RIG_H
#define TEST_AM_RIG_H

#include "ctl_msg_rig.h"

#include "am/am.h"
#include "counters.h"
#include "transport/tp.h"

enum {
	MEM = 400000, /* bytes of an endpoint's memory */
	AM_ENTRIES = 16,
	AM_RANGES = 128,
};

/* An endpoint that a test has opened. */
struct am_end {
	unsigned int client, node;
	uint32_t handle, db, engine, chunk;
	uint64_t qid;
	struct urn_abi_am_ep *ep;
	uint8_t *mem;	       /* MEM bytes */
	uint32_t lkey;	       /* key of mem */
	uint32_t posted, read; /* commands and events so far */
};

int am_setup(void **state);
int am_teardown(void **state);
/* Open an endpoint of a client. The node of adapter 0 allows memory without a key; that of adapter
 * 1 has thresholds of its own (ctl_msg_rig.c). */
void am_open(struct am_end *e, unsigned int client, uint32_t vector);
/* Open an endpoint of node 0, and one of node 1 on an engine; am_open_pair_all(): and register all
 * memory of the second. returns: the key */
void am_open_pair(struct am_end *from, struct am_end *to, uint32_t vector);
uint64_t am_open_pair_all(struct am_end *from, struct am_end *to, uint32_t vector);
void am_close(struct am_end *e);
/* Register memory of the endpoint. returns: the key */
uint64_t am_register(struct am_end *e, uint32_t access);
uint64_t am_register_part(struct am_end *e, uint32_t access, uint32_t off, uint64_t len);
/* Put one range into the endpoint's list. */
void am_list(struct am_end *e, uint32_t off, uint64_t len);
/* Register the endpoint's list. returns: the key; am_register_err(): 0 or an errno value */
uint64_t am_register_list(struct am_end *e, uint32_t access, uint32_t n);
int am_register_err(struct am_end *e, uint32_t access, uint32_t flags, uint32_t n);
/* Write the next command; am_post(): ring for it. */
struct urn_abi_am_cmd *am_next(struct am_end *e, uint8_t op, uint8_t way, const struct am_end *to,
			       uint64_t remote, uint64_t key, uint32_t local, uint32_t len);
void am_post(struct am_end *e);
void am_ring(const struct am_end *e);
/* Issue an operation; remote, local: offsets in the memory of the two endpoints. */
void am_command(struct am_end *e, uint8_t op, const struct am_end *to, uint64_t remote,
		uint64_t key, uint32_t local, uint32_t len);
void am_command_way(struct am_end *e, uint8_t op, uint8_t way, const struct am_end *to,
		    uint64_t remote, uint64_t key, uint32_t local, uint32_t len);
/* Turn until there is an event. returns: a copy */
struct urn_abi_am_event am_event(struct am_end *e);
/* The next event has this code, and confirms so many bytes, or any number. */
void am_expect(struct am_end *e, uint8_t code, uint64_t bytes);
void am_expect_some(struct am_end *e, uint8_t code);
/* Issue an operation that the target refuses with this code. */
void am_refused(struct am_end *e, uint8_t op, const struct am_end *to, uint64_t remote,
		uint64_t key, uint32_t len, uint8_t code);
void am_fill(uint8_t *at, uint32_t len, uint32_t seed);
/* Sum of a counter over the engines of an adapter. */
uint64_t am_counter(unsigned int adapter, enum urn_counter id);

#endif
