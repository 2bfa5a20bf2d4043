/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Capture the frames that the node under test sends: with URNIC_TEST_PCAP=FOLDER in the
 * environment a program writes FOLDER/PROGRAM-PID.pcap, for test/interop/judge.py to
 * check; with URNIC_TEST_PCAP_ONCE it writes each frame once, however often the same
 * bytes are sent.
 */
#ifndef URN_TEST_SENT_H
#define URN_TEST_SENT_H

#include <stdbool.h>

#include <rte_mbuf.h>

/*
 * True when the environment asks for a capture. Ends the program with a sentence when the
 * file cannot be made.
 */
bool test_sent_wanted(void);
/* Write a frame, if a capture is asked for. Any thread; the frame stays the caller's. */
void test_sent(const struct rte_mbuf *m);

#endif
