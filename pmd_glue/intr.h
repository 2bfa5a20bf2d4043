/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Holding the EAL's interrupt thread still.
 *
 * PMDs handle events of their control sockets and netdevs in that thread. Not
 * all handlers are safe against parallel calls: net_memif's handler uses a
 * control channel that a stop or close in another thread frees at the same
 * time, and when the peer goes the handler unmaps the rings during a burst.
 * While the thread is held no handler runs; events wait for its release.
 */
#ifndef URN_PMD_GLUE_INTR_H
#define URN_PMD_GLUE_INTR_H

/*
 * Hold the interrupt thread: returns when no handler runs any more. Holds nest, and
 * may come from several threads; each needs a release. In the interrupt thread itself
 * the call does nothing, for no other handler runs then. The EAL must be up.
 * returns: 0, or -1 when the EAL cannot (nothing is held then)
 */
int urn_intr_hold(void);
/* Let the interrupt thread go on, once there were as many releases as holds. */
void urn_intr_release(void);

#endif
