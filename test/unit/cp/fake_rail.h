/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue pair played by the test: it hands in events as if the peer had sent them, and
 * keeps the messages of the side under test.
 */
#ifndef URN_TEST_CP_FAKE_RAIL_H
#define URN_TEST_CP_FAKE_RAIL_H

#include "ends.h"

#define FAKE_EVENTS 4096u

struct fake_rail {
	struct cp_event event[FAKE_EVENTS]; /* events to be handed in; a ring */
	unsigned int head, tail;
	struct cp_msg sent[FAKE_EVENTS];    /* messages of the side under test */
	unsigned int n_sent;
	uint32_t write_len[FAKE_EVENTS];    /* lengths of the chunks that it wrote, by sequence number */
	unsigned int n_writes;
	unsigned int turns;
	void (*script)(void);               /* called at every turn */
	bool no_buffers;                    /* cp_rail_send() finds no buffer */
};

extern struct fake_rail fake;

void fake_event(const struct cp_event *ev);
void fake_msg(const struct cp_msg *msg);

#endif
