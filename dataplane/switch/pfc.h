/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames of priority-based flow control (IEEE 802.1Qbb, 802.3 annex 31D): a MAC control frame that
 * tells, for each priority that it names, how long its receiver must send nothing of that priority.
 * Times are in quanta, each as long as 512 bits take on the port; 0 lets the priority go on.
 *
 *    0        6        12       14       16       18        34      60
 *    +--------+--------+--------+--------+--------+---------+-------+
 *    | 01-80- | source | 0x8808 | 0x0101 | enable | 8 times | zeros |
 *    | C2-..01|        |        |        | vector |         |       |
 *    +--------+--------+--------+--------+--------+---------+-------+
 */
#ifndef URN_SWITCH_PFC_H
#define URN_SWITCH_PFC_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#define URN_PFC_PRIORITIES 8u
#define URN_PFC_BYTES 60u	  /* bytes of a frame that is sent, without FCS */
#define URN_PFC_LEAST 34u	  /* bytes of the shortest frame that can be read */
#define URN_PFC_LONGEST 0xffffu	  /* quanta */
#define URN_PFC_QUANTUM_BITS 512u /* bits that a quantum is as long as */
#define URN_PFC_ETHERTYPE 0x8808u /* MAC control */
#define URN_PFC_OPCODE 0x0101u

/* A message of flow control. */
struct urn_pfc {
	uint8_t enable;			     /* bit p: the frame says something about priority p */
	uint16_t quanta[URN_PFC_PRIORITIES]; /* by priority; valid where enabled; 0: go on */
};

/* True when a frame is of MAC control, by its type: such a frame never passes a switch. */
static inline bool
urn_pfc_is_control(const struct rte_mbuf *m)
{
	const uint8_t *f = rte_pktmbuf_mtod(m, const uint8_t *);

	return m->data_len >= 14 && f[12] == URN_PFC_ETHERTYPE >> 8 &&
	       f[13] == (URN_PFC_ETHERTYPE & 0xff);
}

/*
 * Read a frame of MAC control. returns: 0, or -EBADMSG: too short, another address or opcode, or a
 * vector that names more than eight priorities
 */
int urn_pfc_read(const struct rte_mbuf *m, struct urn_pfc *pfc);
/* Write a message into an empty packet. source: the sender's MAC address. returns: 0, or -ENOBUFS:
 * the packet has no room */
int urn_pfc_write(struct rte_mbuf *m, const uint8_t source[6], const struct urn_pfc *pfc);

/* ns of a quantum at a speed, << 16. bps: bits a second, not 0 */
uint64_t urn_pfc_quantum(uint64_t bps);
/* ns that a number of quanta last. quantum: of urn_pfc_quantum() */
static inline uint64_t
urn_pfc_ns(uint16_t quanta, uint64_t quantum)
{
	return (quanta * quantum) >> 16;
}

#endif
