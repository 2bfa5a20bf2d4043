/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A dataplane made of register sets only: one adapter, whose engine is a thread that answers
 * doorbells. Messages go from set to set of the own node. All of it is in shared memory, so that
 * children of fork() see it, too.
 */
#ifndef URN_TEST_MSG_FAKE_H
#define URN_TEST_MSG_FAKE_H

#include "abi/control.h"
#include "abi/doorbell.h"
#include "abi/msg.h"

#include <pthread.h>
#include <stdbool.h>

#define MSG_FAKE_SETS 64

struct msg_fake_set {
	bool used;
	uint64_t off, arena_off, arena, cookie;
	uint64_t number;   /* by which others name the queue */
	uint32_t name;	   /* 0: none */
	int fd;		   /* -1: none */
	uint32_t answered; /* seq of the send doorbell answered last */
	uint32_t conf_seq;
	uint32_t tries; /* tries of the message in hand */
	struct urn_abi_msg_conf conf;
};

struct msg_fake {
	struct urn_abi_channel channel;
	pthread_mutex_t lock; /* lock protects all below */
	pthread_t thread;
	_Atomic bool stop;
	_Atomic bool hold; /* the engine leaves send doorbells alone */
	uint64_t used;	   /* bytes of the area given out */
	struct urn_abi_db *db;
	uint8_t gid[2][16]; /* the node's, IPv4 and IPv6 */
	struct msg_fake_set set[MSG_FAKE_SETS];
	uint8_t force; /* answer to every message; 0: the true one */
	_Atomic unsigned int opens, closes, events, sends;
	_Atomic uint64_t try_us; /* microseconds that the message answered last would have been tried for */
	bool old; /* a dataplane without messages */
};

/* Make a fake of node 10.0.0.1 and fd00::1, with its engine's thread. */
struct msg_fake *msg_fake_new(void);
void msg_fake_free(struct msg_fake *f);
/* Put a message into the queue of a name, as from another node. returns: an answer's code */
uint8_t msg_fake_deliver(struct msg_fake *f, uint64_t qid, const uint8_t node[16], uint64_t from,
			 const void *data, uint32_t len);
/* Sets that are open. */
unsigned int msg_fake_open_sets(struct msg_fake *f);

#endif
