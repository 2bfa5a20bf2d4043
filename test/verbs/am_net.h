/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two nodes with a program each that has an endpoint of active messages and a piece of memory. The
 * dataplane is embedded, or reached over its socket; another thread turns its engines.
 */
#ifndef TEST_VERBS_AM_NET_H
#define TEST_VERBS_AM_NET_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"

#include "am/outbox.h"

#include <urnic/am.h>

enum { MEM = 1 << 20, PAYLOAD = 20000, WAIT_MS = 60000, NET_RUDE_ARG = 1000 };

/* A program on a node. */
struct side {
	struct urn_msg_dev *dev;
	struct urn_am_endpoint *ep;
	struct urn_am_address address;
	uint8_t *buf; /* MEM bytes */
	struct urn_am_memory memory;
	/* The message that a handler saw last, and numbers of calls. */
	struct urn_am_message seen;
	uint8_t data[PAYLOAD];
	unsigned int requests, replies, failures, done;
	struct urn_am_failure failure;
	uint8_t code;
	uint64_t bytes;
	int err[4]; /* returned by calls inside a handler */
};

struct net {
	struct rig rig;
	struct side side[2];
};

/* Wishes for endpoints, which a test may change before. */
extern struct urn_am_attr net_attr;
/* Nodes let memory be declared that is reached without a key; a test may set it before. */
extern bool net_unregistered;

/* The state is NULL for an embedded dataplane, and anything for its socket. */
int net_setup(void **state);
int net_teardown(void **state);
/* Let both programs run until a number reaches a value. */
void net_until(struct net *n, const unsigned int *number, unsigned int value);
/* Let both programs run until a side's requests and operations have all ended. */
void net_until_quiet(struct net *n, const struct side *s);
/* Issue an operation of a side's memory, and wait. returns: its code */
uint8_t net_operate(struct net *n, struct side *s, bool write, struct urn_rma op);
/* Note the end of an operation in a side. */
void net_note_done(struct urn_am_endpoint *ep, uint8_t code, uint64_t bytes, void *arg);
/* A program that asks by hand, and reads no answers. */
struct net_rude {
	struct urn_register_set *set; /* sends the requests */
	uint64_t number;
};
/* Send a request with the argument NET_RUDE_ARG to handler 7, if the last one is on its way no
 * more. reply_to: queue of the answer */
void net_ask_rudely(struct net_rude *r, const struct urn_am_address *to, uint64_t reply_to);
/* The record of a node in an outbox for answers, with one user more. */
struct urn_am_peer *net_node_of(struct urn_am_outbox *box, const uint8_t node[16]);

#endif
