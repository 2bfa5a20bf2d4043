/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Holding the EAL's interrupt thread still.
 *
 * PMDs answer events of their control sockets and netdevs in that thread. Not
 * all of them are fit for what happens beside it: net_memif's handler uses a
 * control channel that a stop or close in another thread frees at the same
 * time, and when the peer goes it unmaps the rings under a burst that is under
 * way. While the thread is held no handler runs; events wait for its release.
 */
#ifndef URN_PMD_GLUE_INTR_H
#define URN_PMD_GLUE_INTR_H

/*
 * Hold it: returns when no handler runs any more. Holds nest, and may come from
 * several threads; each wants a release. In the interrupt thread itself this
 * does nothing, for then no other handler runs. The EAL must be up.
 * returns: 0, or -1 when the EAL cannot (nothing is held then)
 */
int urn_intr_hold(void);
/* Let it go on, once as many releases came as holds. */
void urn_intr_release(void);

#endif
