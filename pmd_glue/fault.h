/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bursts on ports whose shared memory can vanish under the thread that polls.
 *
 * When a memif peer dies, the PMD unmaps its memory from the EAL's interrupt
 * thread, while other threads may be in the middle of a burst on that memory (measured:
 * 7 of 100 peers killed under load took the process along). A peer that writes bad
 * offsets has the same effect. The PMD offers nothing to wait for. So such a
 * burst runs with a way back: a fault in the burst ends it, marks the port as
 * faulted, and the next urn_port_poll_link() restarts the port. Faults elsewhere go
 * to the signal handler that was installed before.
 *
 * Packets that the PMD held at that moment are lost to the pool: one on receive,
 * at most the burst on transmit.
 */
#ifndef URN_PMD_GLUE_FAULT_H
#define URN_PMD_GLUE_FAULT_H

#include "pmd_glue/port.h"

/* True when the port's PMD may be polled: ethdev prints a stack trace for a poll of a stopped port. */
static inline bool
urn_port_may_poll(const struct urn_port *p)
{
	return __atomic_load_n(&p->started, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&p->faulted, __ATOMIC_RELAXED);
}

/* Take SIGSEGV and SIGBUS, once a process. returns 0 or -1 with errno */
int urn_fault_setup(void);
/* A burst with a way back. returns: packets; 0 with port->faulted set after a fault */
uint16_t urn_fault_rx(const struct urn_port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n);
uint16_t urn_fault_tx(const struct urn_port *port, uint16_t queue, struct rte_mbuf **m, uint16_t n);

#endif
