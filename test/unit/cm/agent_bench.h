/* SPDX-License-Identifier: BSD-3-Clause */
/* An agent of connection management with one client, between two hosts of l3_frames.h. */
#ifndef CM_AGENT_BENCH_H
#define CM_AGENT_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "abi/control.h"
#include "cm/cm_agent.h"
#include "common/test_eal.h"
#include "l3_frames.h"

#define MS 1000000ull
#define START 100000000000ull

enum { SERVICE = 0x01061234, ROOM = 8 };

extern struct agent_bench {
	struct urn_neigh *nb;
	struct urn_cm_agent *ag;
	struct urn_cm_client client;
	struct urn_counters counters;
	struct rte_mbuf *out[ROOM]; /* frames of the last poll */
	uint64_t now;
} agent;

int agent_setup(void **state);
int agent_teardown(void **state);
/* Poll; frames are parsed on the way. returns: the number of frames, in agent.out */
unsigned int agent_poll(unsigned int max);
/* The message in a frame. */
struct urn_cm_msg agent_message_in(struct rte_mbuf *m);
/* The client asks for a connection; it listens at SERVICE. channel: descriptor for notices.
 * returns: the id */
uint32_t agent_connect_to(const uint8_t *gid, int channel);
uint32_t agent_listen_at(int channel);
/* A message comes from one address to another. returns: the counter that counted it */
enum urn_counter agent_arrive(const struct urn_cm_msg *msg, const uint8_t *from, const uint8_t *to);
/* A request of the peer with that id, for queue pair 1000 + id. */
struct urn_cm_msg agent_a_req(uint32_t id);

#endif
