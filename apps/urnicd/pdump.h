/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dpdk-dumpcap frees its packets and its ring as soon as rte_pdump has removed the callbacks of a
 * port. Ethdev removes a callback at once, while an engine may be in it: the engine then writes to
 * freed memory. So urnicd has its own rte_eth_remove_rx_callback() and
 * rte_eth_remove_tx_callback(), which librte_pdump finds first: they call ethdev's, then wait until
 * no engine can be in the callback.
 */
#ifndef URNICD_PDUMP_H
#define URNICD_PDUMP_H

/*
 * Set the function that waits until each thread that polls ports has been outside of a burst; NULL:
 * nothing waits, as no port is polled. Returns when no call of the former function runs any more.
 * Any thread.
 */
void nicd_pdump_quiesce(void (*quiesce)(void *arg), void *arg);

#endif
