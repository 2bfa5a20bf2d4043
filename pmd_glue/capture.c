/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Capturing: what crosses a port is copied by the lcore that moves it, and
 * written by one thread.
 *
 *   lcore: rx/tx callback ─► copy, time stamp ─► ring ─► writer: pcapng block ─► file
 *
 * rte_pcapng would format in the callback, but keeps one unlocked clock for the
 * process, whose arithmetic breaks when time runs backwards: so only the writer
 * formats, with time stamps that never decrease.
 *
 * An lcore never waits: no packet left in the pool or no room in the ring is a
 * frame dropped and counted. When the file cannot be written (disk full), the
 * writer drops what comes until the end, and closing says so.
 */
#include "pmd_glue/capture.h"
#include "pmd_glue/eal_log.h"
#include "pmd_glue/pool.h"

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_pcapng.h>
#include <rte_ring.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COPIES 4095u /* frames on their way to the file */
#define RING_SIZE 4096u
#define BURST 32u
#define FORMAT_COPIES 255u /* of the writer: a burst, and its cache */
/* Options and padding that rte_pcapng puts behind a frame. */
#define FORMAT_TAIL 64u
#define IDLE_NS 200000 /* the writer's sleep when there is nothing to do */

/* In the private area of a copy; URN_PORT_PRIV bytes are there. */
struct copy_info {
	uint64_t tsc;
	uint16_t port;
	uint16_t queue;
	uint8_t direction; /* enum rte_pcapng_direction */
};
_Static_assert(sizeof(struct copy_info) <= URN_PORT_PRIV, "mbuf private area");

/* One callback on one queue. */
struct tap {
	struct urn_capture *cap;
	const struct rte_eth_rxtx_callback *cb;
	uint64_t drops; /* owner: the lcore of the queue; atomic for the reader */
	bool busy;	/* a burst is being copied; atomic, likewise */
	uint16_t port;	/* ethdev */
	uint16_t queue;
	uint8_t direction; /* enum rte_pcapng_direction */
} __rte_cache_aligned;

struct urn_capture {
	char *path;
	rte_pcapng_t *file;	     /* owner: the writer, once it runs */
	struct rte_mempool *copies;  /* of the callbacks */
	struct rte_mempool *formats; /* of the writer */
	struct rte_ring *ring;	     /* many producers, one consumer */
	struct tap *tap;
	unsigned int taps;
	pthread_t writer;
	bool stop;	      /* to the writer; atomic */
	int write_errno;      /* of the writer: first failure; read after it ended */
	uint64_t write_drops; /* of the writer */
};

static unsigned int captures; /* makes names unique; control threads, atomic */
/* rte_pcapng's clock is the process's. */
static pthread_mutex_t clock_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t clock_tsc; /* last one given to rte_pcapng; under clock_lock */

/* ---- on the lcores */

static void
copy_out(struct tap *t, struct rte_mbuf *const *pkts, uint16_t n)
{
	struct rte_mbuf *copy[BURST];
	uint64_t tsc = rte_rdtsc();
	unsigned int i, made = 0, sent;

	for (i = 0; i < n; i++) {
		struct rte_mbuf *m = rte_pktmbuf_copy(pkts[i], t->cap->copies, 0, UINT32_MAX);
		struct copy_info *info;

		if (m == NULL)
			break;
		info = rte_mbuf_to_priv(m);
		info->tsc = tsc;
		info->port = t->port;
		info->queue = t->queue;
		info->direction = t->direction;
		copy[made++] = m;
	}
	/* Relaxed tail: an lcore that is preempted in the middle of this holds no other up. */
	sent = rte_ring_mp_rts_enqueue_burst(t->cap->ring, (void *const *)copy, made, NULL);
	for (i = sent; i < made; i++)
		rte_pktmbuf_free(copy[i]);
	if (sent < n)
		__atomic_store_n(&t->drops, t->drops + (n - sent), __ATOMIC_RELAXED);
}

static void
copy_all(struct tap *t, struct rte_mbuf *const *pkts, uint16_t n)
{
	uint16_t part;

	__atomic_store_n(&t->busy, true, __ATOMIC_SEQ_CST);
	for (; n > 0; pkts += part, n = (uint16_t)(n - part)) {
		part = RTE_MIN(n, (uint16_t)BURST);
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

/* ---- the writer */

static struct rte_mbuf *
format(struct urn_capture *cap, struct rte_mbuf *m)
{
	const struct copy_info *info = rte_mbuf_to_priv(m);
	struct rte_mbuf *out;

	pthread_mutex_lock(&clock_lock);
	if (info->tsc > clock_tsc)
		clock_tsc = info->tsc;
	out = rte_pcapng_copy(info->port, info->queue, m, cap->formats, UINT32_MAX, clock_tsc,
			      info->direction);
	pthread_mutex_unlock(&clock_lock);
	return out;
}

/* Write blocks; a short write is a full disk. */
static void
write_out(struct urn_capture *cap, struct rte_mbuf **out, unsigned int n)
{
	ssize_t want = 0, got;
	unsigned int i;

	for (i = 0; i < n; i++)
		want += out[i]->pkt_len;
	errno = 0;
	got = n == 0 ? 0 : rte_pcapng_write_packets(cap->file, out, (uint16_t)n);
	if (got != want) {
		cap->write_errno = got < 0 && errno != 0 ? errno : ENOSPC;
		cap->write_drops += n;
	}
	rte_pktmbuf_free_bulk(out, n);
}

static void
write_burst(struct urn_capture *cap, struct rte_mbuf **m, unsigned int n)
{
	struct rte_mbuf *out[BURST];
	unsigned int i, made = 0;

	for (i = 0; i < n && cap->write_errno == 0; i++) {
		out[made] = format(cap, m[i]);
		if (out[made] != NULL)
			made++;
		else
			cap->write_drops++;
	}
	cap->write_drops += n - i;
	rte_pktmbuf_free_bulk(m, n);
	write_out(cap, out, made);
}

static void *
writer_main(void *arg)
{
	const struct timespec idle = {.tv_nsec = IDLE_NS};
	struct urn_capture *cap = arg;
	struct rte_mbuf *m[BURST];
	unsigned int n;
	bool last;

	/* An lcore id brings a cache in the pools; it works without, too. */
	(void)rte_thread_register();
	do {
		/* Read before the ring: whatever is in it then is still written. */
		last = __atomic_load_n(&cap->stop, __ATOMIC_ACQUIRE);
		while ((n = rte_ring_sc_dequeue_burst(cap->ring, (void **)m, BURST, NULL)) > 0)
			write_burst(cap, m, n);
		if (!last)
			nanosleep(&idle, NULL);
	} while (!last);
	rte_thread_unregister();
	return NULL;
}

/* ---- open and close */

static int
taps_add(struct urn_capture *cap, struct urn_port *const *ports, unsigned int n)
{
	unsigned int i, k = 0;
	uint16_t q;

	for (i = 0; i < n; i++) {
		for (q = 0; q < ports[i]->caps.queues; q++) {
			struct tap *rx = &cap->tap[k], *tx = &cap->tap[k + 1];

			*rx = (struct tap){.cap = cap,
					   .port = ports[i]->id,
					   .queue = q,
					   .direction = RTE_PCAPNG_DIRECTION_IN};
			*tx = *rx;
			tx->direction = RTE_PCAPNG_DIRECTION_OUT;
			rx->cb = rte_eth_add_first_rx_callback(rx->port, q, on_rx, rx);
			tx->cb = rte_eth_add_tx_callback(tx->port, q, on_tx, tx);
			k += 2;
			cap->taps = k;
			if (rx->cb == NULL || tx->cb == NULL)
				return -1;
		}
	}
	return 0;
}

static void
taps_remove(struct urn_capture *cap)
{
	const struct timespec grace = {.tv_nsec = 10000000};
	unsigned int i;

	for (i = 0; i < cap->taps; i++) {
		struct tap *t = &cap->tap[i];

		if (t->cb == NULL)
			continue;
		if (t->direction == RTE_PCAPNG_DIRECTION_IN)
			rte_eth_remove_rx_callback(t->port, t->queue, t->cb);
		else
			rte_eth_remove_tx_callback(t->port, t->queue, t->cb);
	}
	/*
	 * A burst may be in a callback, or about to enter it: ethdev leaves it to
	 * us to know. Give it time to enter, then wait until it has left.
	 */
	nanosleep(&grace, NULL);
	for (i = 0; i < cap->taps; i++)
		while (__atomic_load_n(&cap->tap[i].busy, __ATOMIC_ACQUIRE))
			nanosleep(&grace, NULL);
}

static void
capture_free(struct urn_capture *cap)
{
	if (cap == NULL)
		return;
	rte_pcapng_close(cap->file);
	rte_ring_free(cap->ring);
	urn_pool_free(cap->copies);
	urn_pool_free(cap->formats);
	free(cap->tap);
	free(cap->path);
	free(cap);
}

static int
pools_make(struct urn_capture *cap, struct urn_port *const *ports, unsigned int n,
	   struct urn_err *err)
{
	unsigned int i, id = __atomic_fetch_add(&captures, 1, __ATOMIC_RELAXED);
	char name[RTE_MEMPOOL_NAMESIZE];
	struct urn_pool_config pool = {.name = name, .mbufs = COPIES, .room = URN_POOL_ROOM};

	for (i = 0; i < n; i++)
		pool.room = RTE_MAX(pool.room, (uint32_t)ports[i]->room);
	snprintf(name, sizeof(name), "urncap%u", id);
	cap->ring = rte_ring_create(name, RING_SIZE, SOCKET_ID_ANY,
				    RING_F_MP_RTS_ENQ | RING_F_SC_DEQ);
	if (cap->ring == NULL) {
		urn_err_set(err, "no memory for the ring of a capture");
		return -1;
	}
	cap->copies = urn_pool_create(&pool, err);
	pool.mbufs = FORMAT_COPIES;
	pool.room += FORMAT_TAIL;
	snprintf(name, sizeof(name), "urncapf%u", id);
	cap->formats = urn_pool_create(&pool, err);
	return cap->copies != NULL && cap->formats != NULL ? 0 : -1;
}

/*
 * rte_pcapng sets its clock with the first stamp it sees, to the time it sees
 * it; a stamp from before then wraps around. So the first is one from the near
 * future, under the second that would set the clock forward.
 */
static void
clock_start(struct urn_capture *cap)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(cap->copies);

	if (m == NULL)
		return;
	pthread_mutex_lock(&clock_lock);
	if (clock_tsc == 0) {
		rte_pktmbuf_free(rte_pcapng_copy(cap->tap[0].port, 0, m, cap->formats, 0,
						 rte_rdtsc() + rte_get_tsc_hz() / 10,
						 RTE_PCAPNG_DIRECTION_IN));
		clock_tsc = rte_rdtsc();
	}
	pthread_mutex_unlock(&clock_lock);
	rte_pktmbuf_free(m);
}

static int
file_open(struct urn_capture *cap, struct urn_err *err)
{
	int fd = open(cap->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0) {
		urn_err_set(err, "cannot write the capture %.150s: %s", cap->path, strerror(errno));
		return -1;
	}
	errno = 0;
	cap->file = rte_pcapng_fdopen(fd, NULL, NULL, "urnic", NULL);
	if (cap->file != NULL)
		return 0;
	urn_err_set(err, "cannot write the head of the capture %.150s: %s", cap->path,
		    strerror(errno != 0 ? errno : ENOMEM));
	close(fd);
	return -1;
}

struct urn_capture *
urn_capture_open(const char *path, struct urn_port *const *ports, unsigned int n,
		 struct urn_err *err)
{
	struct urn_capture *cap = calloc(1, sizeof(*cap));
	unsigned int i, queues = 0;

	for (i = 0; i < n; i++)
		queues += ports[i]->caps.queues;
	urn_err_set(err, "out of memory for the capture %.150s", path);
	if (cap == NULL)
		return NULL;
	cap->path = strdup(path);
	if (cap->path == NULL || queues == 0)
		goto fail;
	cap->tap = aligned_alloc(RTE_CACHE_LINE_SIZE, 2 * queues * sizeof(struct tap));
	if (cap->tap == NULL)
		goto fail;
	memset(cap->tap, 0, 2 * queues * sizeof(struct tap));
	if (pools_make(cap, ports, n, err) != 0 || file_open(cap, err) != 0)
		goto fail;
	clock_start(cap);
	if (pthread_create(&cap->writer, NULL, writer_main, cap) != 0)
		goto fail;
	if (taps_add(cap, ports, n) == 0)
		return cap;
	urn_err_set(err, "the ports do not let themselves be captured");
	(void)urn_capture_close(cap, NULL, NULL);
	return NULL;
fail:
	capture_free(cap);
	return NULL;
}

int
urn_capture_close(struct urn_capture *cap, uint64_t *dropped, struct urn_err *err)
{
	uint64_t drops;
	unsigned int i;
	int ret = 0;

	if (cap == NULL)
		return 0;
	taps_remove(cap);
	__atomic_store_n(&cap->stop, true, __ATOMIC_RELEASE);
	pthread_join(cap->writer, NULL);
	drops = cap->write_drops;
	for (i = 0; i < cap->taps; i++)
		drops += __atomic_load_n(&cap->tap[i].drops, __ATOMIC_RELAXED);
	if (dropped != NULL)
		*dropped = drops;
	if (cap->write_errno != 0) {
		urn_err_set(err, "the capture %.150s is not whole: %s; %llu frames are missing",
			    cap->path, strerror(cap->write_errno), (unsigned long long)drops);
		ret = -1;
	}
	capture_free(cap);
	return ret;
}
