/* SPDX-License-Identifier: BSD-3-Clause */
/* Good sets, whose owner must not notice a hostile process (hostile_msg.h): their messages arrive
 * once, whole. */
#ifndef URN_TEST_HOSTILE_GOOD_H
#define URN_TEST_HOSTILE_GOOD_H

#include "hostile_msg.h"

/* A pair on node a, a queue on node b, one there for hostile messages, and one that permits nobody.
 */
struct good_sets {
	struct urn_msg_dev *dev[2];
	struct urn_register_set *from, *near, *far, *sink, *guard;
	struct urn_msg_to to_near, to_far;
	uint32_t n; /* messages sent so far */
};

/* Make the sets, and tell the hostile process of them. */
void good_open(struct good_sets *g, const struct rig *r, struct hostile_page *p);
void good_close(struct good_sets *g);
/* Deliver n messages to each of the queues, and check every byte; take what hostile messages came.
 */
void good_messages(struct good_sets *g, unsigned int n);
/* The queue that permits nobody has no message, and its arena the bytes of before. */
void good_guard(const struct good_sets *g);

#endif
