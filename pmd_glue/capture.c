/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Capturing: the lcore that moves a frame copies it, and one thread writes the
 * copies.
 *
 *   lcore: rx/tx callback ─► copy, time stamp ─► ring ─► writer: pcapng block ─► file
 *
 * rte_pcapng could format in the callback, but has one unlocked clock for the
 * process, whose arithmetic breaks when time runs backwards: so only the writer
 * formats, with time stamps that never decrease.
 *
 * An lcore never waits: without a packet in the pool or room in the ring, the
 * frame is dropped and counted. When the file cannot be written (disk full), the
 * writer drops all further frames, and closing says so. At its limit the writer
 * removes the callbacks and ends the file by itself.
 */
#include "pmd_glue/capture.h"
#include "pmd_glue/capture_head.h"
#include "pmd_glue/eal.h"
#include "pmd_glue/eal_log.h"
#include "pmd_glue/pool.h"

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
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
#define FORMAT_COPIES 255u /* packets of the writer: a burst, and its cache */
/* Options and padding that rte_pcapng puts behind a frame. */
#define FORMAT_TAIL 64u
#define IDLE_NS 200000 /* the writer's sleep when there is nothing to do */

/* Kept in the private area of a copy, which has URN_PORT_PRIV bytes. */
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
	uint64_t drops; /* frames dropped; owner: the lcore of the queue; atomic for the reader */
	uint64_t seen;	/* frames seen; owner and access likewise */
	bool busy;	/* a burst is being copied; atomic, likewise */
	bool removed;	/* taken off its queue; under taps_lock */
	uint16_t port;	/* ethdev */
	uint16_t queue;
	uint8_t direction; /* enum rte_pcapng_direction */
} __rte_cache_aligned;

struct urn_capture {
	char *path;
	int fd;			     /* until `file` has it; -1 */
	rte_pcapng_t *file;	     /* owner: the writer, once it runs */
	struct rte_mempool *copies;  /* the callbacks' packets */
	struct rte_mempool *formats; /* the writer's packets */
	struct rte_ring *ring;	     /* many producers, one consumer */
	struct tap *tap;
	unsigned int taps;
	pthread_mutex_t taps_lock; /* protects adding and removing callbacks: tap[].removed */
	void (*quiesce)(void *arg);
	void *quiesce_arg;
	pthread_t writer;
	bool stop;	      /* tells the writer to end; atomic */
	bool full;	      /* the file is at its limit; owner: the writer; atomic */
	uint64_t max_frames;  /* 0: no limit */
	uint64_t max_bytes;   /* largest file; 0: no limit */
	uint64_t frames;      /* frames written; owner: the writer; atomic */
	uint64_t bytes;	      /* bytes in the file; owner: the writer; atomic */
	int write_errno;      /* errno of the first failure; owner: the writer; atomic */
	uint64_t write_drops; /* frames the writer dropped; owner: the writer; atomic */
};

static unsigned int captures; /* makes names unique; control threads, atomic */
/* clock_lock protects rte_pcapng's clock, of which the process has one. */
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
	/* Relaxed tail: an lcore that is preempted in the middle of the enqueue blocks no other. */
	sent = rte_ring_mp_rts_enqueue_burst(t->cap->ring, (void *const *)copy, made, NULL);
	for (i = sent; i < made; i++)
		rte_pktmbuf_free(copy[i]);
	if (sent < n)
		__atomic_store_n(&t->drops, t->drops + (n - sent), __ATOMIC_RELAXED);
	__atomic_store_n(&t->seen, t->seen + n, __ATOMIC_RELAXED);
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

/* ---- callbacks */

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

/* Remove the callbacks, once: by the writer at its limit, or by the thread that closes the capture. */
static void
taps_remove(struct urn_capture *cap)
{
	unsigned int i;

	pthread_mutex_lock(&cap->taps_lock);
	for (i = 0; i < cap->taps; i++) {
		struct tap *t = &cap->tap[i];

		if (t->cb == NULL || t->removed)
			continue;
		if (t->direction == RTE_PCAPNG_DIRECTION_IN)
			rte_eth_remove_rx_callback(t->port, t->queue, t->cb);
		else
			rte_eth_remove_tx_callback(t->port, t->queue, t->cb);
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

/* Add to a counter that only the writer writes. */
static void
count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
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
		__atomic_store_n(&cap->write_errno, got < 0 && errno != 0 ? errno : ENOSPC,
				 __ATOMIC_RELAXED);
		count(&cap->write_drops, n);
	} else {
		count(&cap->frames, n);
		count(&cap->bytes, (uint64_t)want);
	}
	rte_pktmbuf_free_bulk(out, n);
}

/* True when one more frame fits into the file, behind n frames of `bytes` that are to be written. */
static bool
fits(const struct urn_capture *cap, unsigned int n, uint64_t bytes, const struct rte_mbuf *m)
{
	return (cap->max_frames == 0 || cap->frames + n < cap->max_frames) &&
	       (cap->max_bytes == 0 || cap->bytes + bytes + m->pkt_len <= cap->max_bytes);
}

static void
write_burst(struct urn_capture *cap, struct rte_mbuf **m, unsigned int n)
{
	struct rte_mbuf *out[BURST];
	unsigned int i, made = 0;
	uint64_t bytes = 0;

	for (i = 0; i < n && cap->write_errno == 0 && !cap->full; i++) {
		out[made] = format(cap, m[i]);
		if (out[made] == NULL) {
			count(&cap->write_drops, 1);
		} else if (fits(cap, made, bytes, out[made])) {
			bytes += out[made++]->pkt_len;
		} else {
			rte_pktmbuf_free(out[made]);
			__atomic_store_n(&cap->full, true, __ATOMIC_RELAXED);
		}
	}
	if (!cap->full)
		count(&cap->write_drops, n - i);
	rte_pktmbuf_free_bulk(m, n);
	write_out(cap, out, made);
	if (cap->max_frames != 0 && cap->frames >= cap->max_frames)
		__atomic_store_n(&cap->full, true, __ATOMIC_RELAXED);
}

/* Write one statistics block for each port at the end of the file: frames seen, and how many are missing. */
static void
write_stats(struct urn_capture *cap)
{
	unsigned int i = 0, k;

	while (i < cap->taps && cap->write_errno == 0) {
		uint64_t seen = 0, drops = 0;
		ssize_t got;

		for (k = i; k < cap->taps && cap->tap[k].port == cap->tap[i].port; k++) {
			seen += __atomic_load_n(&cap->tap[k].seen, __ATOMIC_RELAXED);
			drops += __atomic_load_n(&cap->tap[k].drops, __ATOMIC_RELAXED);
		}
		pthread_mutex_lock(&clock_lock);
		clock_tsc = RTE_MAX(clock_tsc, rte_rdtsc());
		errno = 0;
		got = rte_pcapng_write_stats(cap->file, cap->tap[i].port, NULL, 0, 0, seen, drops);
		pthread_mutex_unlock(&clock_lock);
		if (got > 0)
			count(&cap->bytes, (uint64_t)got);
		else
			__atomic_store_n(&cap->write_errno, errno != 0 ? errno : ENOSPC,
					 __ATOMIC_RELAXED);
		i = k;
	}
}

static void
writer_loop(struct urn_capture *cap)
{
	const struct timespec idle = {.tv_nsec = IDLE_NS};
	struct rte_mbuf *m[BURST];
	unsigned int n;
	bool last;

	do {
		/* Read before the ring: frames that are in the ring then are still written. */
		last = __atomic_load_n(&cap->stop, __ATOMIC_ACQUIRE) || cap->full;
		while ((n = rte_ring_sc_dequeue_burst(cap->ring, (void **)m, BURST, NULL)) > 0)
			write_burst(cap, m, n);
		if (!last && !cap->full)
			nanosleep(&idle, NULL);
		if (!last && cap->full)
			taps_remove(cap); /* one more round: frees the frames that came until now */
	} while (!last);
}

static void *
writer_main(void *arg)
{
	struct urn_capture *cap = arg;

	/* An lcore id gives a cache in the pools, but keeps other processes out; it is optional.
	 */
	if (!urn_eal_huge())
		(void)rte_thread_register();
	writer_loop(cap);
	write_stats(cap);
	rte_thread_unregister();
	return NULL;
}

/* ---- open and close */

static int
taps_add_all(struct urn_capture *cap, struct urn_port *const *ports, unsigned int n)
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

static int
taps_add(struct urn_capture *cap, struct urn_port *const *ports, unsigned int n)
{
	int ret;

	/* The writer may be at its limit before all callbacks are added. */
	pthread_mutex_lock(&cap->taps_lock);
	ret = taps_add_all(cap, ports, n);
	pthread_mutex_unlock(&cap->taps_lock);
	return ret;
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
	if (cap->fd >= 0)
		close(cap->fd);
	pthread_mutex_destroy(&cap->taps_lock);
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
 * rte_pcapng sets its clock with the first stamp, to the time at which it sees the
 * stamp; an earlier stamp then wraps around. So the first stamp is one from the near
 * future, less than the second ahead that would set the clock forward.
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
file_open(struct urn_capture *cap, const struct urn_capture_config *cfg, struct urn_err *err)
{
	if (cap->fd < 0)
		cap->fd = open(cap->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (cap->fd < 0) {
		urn_err_set(err, "cannot write the capture %.150s: %s", cap->path, strerror(errno));
		return -1;
	}
	cap->file = urn_capture_head(cap->fd, cfg->ports, cfg->n, &cap->bytes);
	if (cap->file == NULL) {
		urn_err_set(err, "cannot write the head of the capture %.150s: %s", cap->path,
			    strerror(errno));
		return -1;
	}
	cap->fd = -1;
	return 0;
}

static struct urn_capture *
capture_new(const struct urn_capture_config *cfg, struct urn_err *err)
{
	struct urn_capture *cap = calloc(1, sizeof(*cap));
	unsigned int i, queues = 0;

	urn_err_set(err, "out of memory for the capture %.150s", cfg->path);
	if (cap == NULL) {
		if (cfg->fd >= 0)
			close(cfg->fd);
		return NULL;
	}
	pthread_mutex_init(&cap->taps_lock, NULL);
	cap->fd = cfg->fd;
	cap->max_frames = cfg->max_frames;
	cap->max_bytes = cfg->max_bytes;
	cap->quiesce = cfg->quiesce;
	cap->quiesce_arg = cfg->quiesce_arg;
	for (i = 0; i < cfg->n; i++)
		queues += cfg->ports[i]->caps.queues;
	cap->path = strdup(cfg->path);
	cap->tap = queues == 0
			   ? NULL
			   : aligned_alloc(RTE_CACHE_LINE_SIZE, 2 * queues * sizeof(struct tap));
	if (cap->path == NULL || cap->tap == NULL) {
		capture_free(cap);
		return NULL;
	}
	memset(cap->tap, 0, 2 * queues * sizeof(struct tap));
	return cap;
}

struct urn_capture *
urn_capture_begin(const struct urn_capture_config *cfg, struct urn_err *err)
{
	struct urn_capture *cap = capture_new(cfg, err);

	if (cap == NULL)
		return NULL;
	if (pools_make(cap, cfg->ports, cfg->n, err) != 0 || file_open(cap, cfg, err) != 0) {
		capture_free(cap);
		return NULL;
	}
	clock_start(cap);
	if (pthread_create(&cap->writer, NULL, writer_main, cap) != 0) {
		urn_err_set(err, "no thread to write the capture %.150s", cfg->path);
		capture_free(cap);
		return NULL;
	}
	if (taps_add(cap, cfg->ports, cfg->n) == 0)
		return cap;
	urn_err_set(err, "the ports do not let themselves be captured");
	(void)urn_capture_close(cap, NULL, NULL);
	return NULL;
}

struct urn_capture *
urn_capture_open(const char *path, struct urn_port *const *ports, unsigned int n,
		 struct urn_err *err)
{
	const struct urn_capture_config cfg = {.fd = -1, .path = path, .ports = ports, .n = n};

	return urn_capture_begin(&cfg, err);
}

void
urn_capture_info(const struct urn_capture *cap, struct urn_capture_info *info)
{
	info->frames = __atomic_load_n(&cap->frames, __ATOMIC_RELAXED);
	info->bytes = __atomic_load_n(&cap->bytes, __ATOMIC_RELAXED);
	info->full = __atomic_load_n(&cap->full, __ATOMIC_RELAXED);
	info->error = __atomic_load_n(&cap->write_errno, __ATOMIC_RELAXED);
	info->dropped = __atomic_load_n(&cap->write_drops, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < cap->taps; i++)
		info->dropped += __atomic_load_n(&cap->tap[i].drops, __ATOMIC_RELAXED);
}

int
urn_capture_finish(struct urn_capture *cap, struct urn_capture_info *info, struct urn_err *err)
{
	int ret = 0;

	taps_remove(cap);
	__atomic_store_n(&cap->stop, true, __ATOMIC_RELEASE);
	pthread_join(cap->writer, NULL);
	urn_capture_info(cap, info);
	if (info->error != 0) {
		urn_err_set(err, "the capture %.150s is not whole: %s; %llu frames are missing",
			    cap->path, strerror(info->error), (unsigned long long)info->dropped);
		ret = -1;
	}
	capture_free(cap);
	return ret;
}

int
urn_capture_close(struct urn_capture *cap, uint64_t *dropped, struct urn_err *err)
{
	struct urn_capture_info info;
	int ret;

	if (cap == NULL)
		return 0;
	ret = urn_capture_finish(cap, &info, err);
	if (dropped != NULL)
		*dropped = info.dropped;
	return ret;
}

unsigned int
urn_capture_mbufs(void)
{
	return COPIES + FORMAT_COPIES;
}
