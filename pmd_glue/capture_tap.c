/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of a capture that runs on the lcores: callbacks, and how they come and go. */
#include "pmd_glue/capture_priv.h"
#include "pmd_glue/pcapng.h"

#include <rte_cycles.h>
#include <rte_malloc.h>

#include <time.h>

/* ---- on the lcores */

static struct rte_mbuf *
copy_one(const struct capture_tap *t, const struct rte_mbuf *pkt, uint64_t tsc)
{
	struct rte_mbuf *m = rte_pktmbuf_copy(pkt, t->cap->copies, 0, t->cap->snap);
	struct capture_copy *info;

	if (m == NULL)
		return NULL;
	info = rte_mbuf_to_priv(m);
	info->tsc = tsc;
	info->len = pkt->pkt_len;
	info->port = t->port;
	info->queue = t->queue;
	info->direction = t->direction;
	return m;
}

static void
copy_out(struct capture_tap *t, struct rte_mbuf *const *pkts, uint16_t n)
{
	const struct urn_capture *cap = t->cap;
	struct rte_mbuf *copy[CAPTURE_BURST];
	uint64_t tsc = rte_rdtsc();
	unsigned int i, made = 0, want = 0, sent;

	for (i = 0; i < n; i++) {
		if (cap->filter != NULL && !cap->filter(cap->filter_arg, pkts[i]))
			continue;
		want++;
		copy[made] = copy_one(t, pkts[i], tsc);
		made += copy[made] != NULL;
	}
	/* Relaxed tail: an lcore that is preempted in the middle of the enqueue blocks no other. */
	sent = rte_ring_mp_rts_enqueue_burst(cap->ring, (void *const *)copy, made, NULL);
	for (i = sent; i < made; i++)
		rte_pktmbuf_free(copy[i]);
	if (sent < want)
		__atomic_store_n(&t->drops, t->drops + (want - sent), __ATOMIC_RELAXED);
	__atomic_store_n(&t->seen, t->seen + n, __ATOMIC_RELAXED);
}

static void
copy_all(struct capture_tap *t, struct rte_mbuf *const *pkts, uint16_t n)
{
	void (*complete)(struct rte_mbuf * m) = t->wire->complete;
	uint16_t part;

	for (uint16_t i = 0; complete != NULL && i < n; i++)
		complete(pkts[i]);
	__atomic_store_n(&t->busy, true, __ATOMIC_SEQ_CST);
	for (; n > 0; pkts += part, n = (uint16_t)(n - part)) {
		part = RTE_MIN(n, (uint16_t)CAPTURE_BURST);
		copy_out(t, pkts, part);
	}
	__atomic_store_n(&t->busy, false, __ATOMIC_RELEASE);
}

static uint16_t
on_rx(uint16_t port, uint16_t queue, struct rte_mbuf *pkts[], uint16_t n, uint16_t max, void *arg)
{
	(void)port;
	(void)queue;
	(void)max;
	copy_all(arg, pkts, n);
	return n;
}

static uint16_t
on_tx(uint16_t port, uint16_t queue, struct rte_mbuf *pkts[], uint16_t n, void *arg)
{
	(void)port;
	(void)queue;
	copy_all(arg, pkts, n);
	return n;
}

/* ---- adding and removing them */

static int
taps_add(struct urn_capture *cap, struct urn_port *const *ports, unsigned int n)
{
	unsigned int i, k = 0;
	uint16_t q;

	for (i = 0; i < n; i++) {
		for (q = 0; q < ports[i]->caps.queues; q++) {
			struct capture_tap *rx = &cap->tap[k], *tx = &cap->tap[k + 1];

			*rx = (struct capture_tap){.cap = cap,
						   .wire = ports[i],
						   .ethdev = ports[i]->id,
						   .port = (uint16_t)i,
						   .queue = q,
						   .direction = URN_PCAPNG_IN};
			*tx = *rx;
			tx->direction = URN_PCAPNG_OUT;
			rx->cb = rte_eth_add_first_rx_callback(rx->ethdev, q, on_rx, rx);
			tx->cb = rte_eth_add_tx_callback(tx->ethdev, q, on_tx, tx);
			k += 2;
			cap->taps = k;
			if (rx->cb == NULL || tx->cb == NULL)
				return -1;
		}
	}
	return 0;
}

int
urn_capture_taps_add(struct urn_capture *cap, struct urn_port *const *ports, unsigned int n)
{
	int ret;

	/* The writer may be at its limit before all callbacks are added. */
	pthread_mutex_lock(&cap->taps_lock);
	ret = taps_add(cap, ports, n);
	pthread_mutex_unlock(&cap->taps_lock);
	return ret;
}

/* Wait until no lcore is in a callback. */
static void
taps_wait(struct urn_capture *cap)
{
	const struct timespec grace = {.tv_nsec = 10000000};
	unsigned int i;

	if (cap->quiesce != NULL) {
		cap->quiesce(cap->quiesce_arg);
		return;
	}
	/*
	 * A burst may be in a callback, or about to enter it, and ethdev does not tell.
	 * Give the burst time to enter, then wait until it has left.
	 */
	nanosleep(&grace, NULL);
	for (i = 0; i < cap->taps; i++)
		while (__atomic_load_n(&cap->tap[i].busy, __ATOMIC_ACQUIRE))
			nanosleep(&grace, NULL);
}

void
urn_capture_taps_remove(struct urn_capture *cap)
{
	unsigned int i;

	pthread_mutex_lock(&cap->taps_lock);
	for (i = 0; i < cap->taps; i++) {
		struct capture_tap *t = &cap->tap[i];

		if (t->cb == NULL || t->removed)
			continue;
		if (t->direction == URN_PCAPNG_IN)
			rte_eth_remove_rx_callback(t->ethdev, t->queue, t->cb);
		else
			rte_eth_remove_tx_callback(t->ethdev, t->queue, t->cb);
	}
	taps_wait(cap);
	/* ethdev reads a callback after calling it: free it only when no thread can be in it. */
	for (i = 0; i < cap->taps; i++) {
		if (cap->quiesce != NULL && !cap->tap[i].removed)
			rte_free((void *)(uintptr_t)cap->tap[i].cb);
		cap->tap[i].removed = true;
	}
	pthread_mutex_unlock(&cap->taps_lock);
}
