/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the node under test sends, into a capture: with URNIC_TEST_PCAP=FOLDER in
 * the environment a program writes FOLDER/PROGRAM-PID.pcap, for
 * test/interop/judge.py to look at; with URNIC_TEST_PCAP_ONCE each frame once, however
 * often the same bytes are sent.
 */
#ifndef URN_TEST_SENT_H
#define URN_TEST_SENT_H

#include <stdbool.h>

#include <rte_mbuf.h>

/* Is it asked for? Ends the program with a sentence when the file cannot be made. */
bool test_sent_wanted(void);
/* Write a frame, if it is asked for. Any thread; stays the caller's. */
void test_sent(const struct rte_mbuf *m);

#endif
