/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A network namespace of the test child's own, so that the machine is not touched and
 * nothing is left: the kernel removes the namespace with the process.
 */
#ifndef URN_TEST_PMD_GLUE_NETNS_H
#define URN_TEST_PMD_GLUE_NETNS_H

#include <stdint.h>

/* Enter a new namespace, with the loopback up. Ends the child on failure. */
void netns_enter(void);
/* Make the pair urnv0/urnv1 with an MTU, up, without IPv6 chatter. */
void netns_veth(unsigned int mtu);
/* Run a shell command that must succeed. */
void run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The kernel's end of a wire: a packet socket on an interface. */
int packet_open(const char *iface);
void packet_send(int fd, const void *frame, uint32_t len);
/* Receive a frame of `len` bytes made by frame_fill() (ten seconds); others are dropped. */
void packet_expect(int fd, const uint8_t src[6], uint32_t len, uint32_t seed);

#endif
