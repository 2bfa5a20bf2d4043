/* SPDX-License-Identifier: BSD-3-Clause */
/* A dataplane of two engines and two nodes, the ends of a cable, for tests of register sets. */
#ifndef TEST_CTL_MSG_RIG_H
#define TEST_CTL_MSG_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/adapter.h"
#include "control/client.h"
#include "control/ctl.h"

enum {
	ADAPTERS = 2,
	ENGINES = 2,
	CLIENTS = 3,
	ARENA = 65536, /* bytes */
	RING = 4096,   /* offset of the ring in the arena */
	ENTRIES = 8,
	SIZE = 1024,   /* bytes of an entry */
};

extern struct urn_dp *rig_dp;
extern struct urn_abi_channel *rig_channel[CLIENTS]; /* 0 and 1 of adapter 0, 2 of adapter 1 */

/* A register set that a test has opened. */
struct rig_set {
	unsigned int client;
	struct urn_abi_rep rep;
	struct urn_abi_msg_set *regs;
	uint8_t *arena;
};

int rig_setup_eal(void **state);
int rig_teardown_eal(void **state);
int rig_setup(void **state);
/* Close channels that are not NULL; no set is left then. */
int rig_teardown(void **state);
struct urn_abi_rep rig_call(unsigned int i, const struct urn_abi_req *req);
/* returns: the reply to a call that succeeds */
struct urn_abi_rep rig_ask(unsigned int i, const struct urn_abi_req *req);
void rig_hello(unsigned int i, uint32_t features);
/* Turn each engine n times, 2 us apart. */
void rig_turns(unsigned int n);

/* ---- sets */

/* A request for a set without a channel, with the cookie 99. */
struct urn_abi_req rig_open_req(uint32_t vector, uint32_t flags);
void rig_adopt(struct rig_set *s, unsigned int client, const struct urn_abi_rep *rep);
void rig_open_set(struct rig_set *s, unsigned int client, uint32_t vector, uint32_t flags);
/* returns: 0 or an errno value */
int rig_close_set(const struct rig_set *s);
void rig_ring(const struct rig_set *s);
void rig_configure(const struct rig_set *s);
/* Ring for a message of 100 bytes, all `fill`, to a queue of a node. */
void rig_send_to(const struct rig_set *s, unsigned int node, uint64_t qid, uint8_t fill);
/* Turn until the message is answered. returns: its code */
uint8_t rig_answered(const struct rig_set *s);
/* Entry of the ring; n runs free. */
const struct urn_abi_msg_entry *rig_entry(const struct rig_set *s, uint32_t n);
/* Bind a name; end: not 0: any from name on to before there. returns: 0 or an errno value */
int rig_bind_name(const struct rig_set *s, uint32_t name, uint32_t end, struct urn_abi_rep *rep);

/* ---- clients in other processes */

/* A client of adapter 0, in another process, of a user; own, users: their quotas of register sets. */
struct urn_client *rig_stranger(struct urn_ledger *ledger, uid_t uid, uint64_t own, uint64_t users);
/* Open sets until that fails. returns: their number; rep: the failure */
unsigned int rig_open_all(struct urn_client *c, struct urn_abi_rep *rep, uint32_t handle[]);

#endif
