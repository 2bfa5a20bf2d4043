/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The writer of a capture: copies of frames become blocks, and blocks go to the file, many at once.
 *
 * The file may be a pipe. A reader that is slow delays the writer alone, and frames are dropped and
 * counted; a reader that leaves ends the capture.
 */
#include "pmd_glue/capture_priv.h"
#include "pmd_glue/eal.h"
#include "pmd_glue/pcapng.h"

#include <rte_cycles.h>
#include <rte_lcore.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define IDLE_NS 200000 /* the writer's sleep when there is nothing to do */
#define ROOM_MS 100    /* one wait for a slow reader */

/* Add to a counter that only the writer writes. */
static void
count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/* ---- to the file */

/* Time of a clock that never goes back, ns. */
static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/*
 * True when a capture that is being closed has waited long enough. The thread that closes it waits
 * as well, so the time is for all that is left together. This time counts from when the writer
 * first sees `stop`, and `hurry` where there is one.
 */
static bool
past_end(struct urn_capture *cap)
{
	if (!__atomic_load_n(&cap->stop, __ATOMIC_ACQUIRE) || (cap->hurry != NULL && !*cap->hurry))
		return false;
	if (cap->end_ns == 0)
		cap->end_ns = now_ns() + cap->patience_ms * UINT64_C(1000000);
	return now_ns() >= cap->end_ns;
}

/* Wait until the reader of a stream takes more. returns: 0, or -1 with errno */
static int
wait_room(struct urn_capture *cap)
{
	struct pollfd p = {.fd = cap->fd, .events = POLLOUT};

	for (;;) {
		int n = poll(&p, 1, ROOM_MS);

		if (n > 0 && (p.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) {
			errno = EPIPE;
			return -1;
		}
		/* A reader that takes little makes room again and again. */
		if (past_end(cap)) {
			errno = ETIMEDOUT;
			return -1;
		}
		if (n > 0)
			return 0;
	}
}

/* True when nobody reads a stream any more. */
static bool
reader_left(const struct urn_capture *cap)
{
	struct pollfd p = {.fd = cap->fd};

	return cap->stream && poll(&p, 1, 0) > 0;
}

/* returns: 0, or -1 with errno */
static int
write_all(struct urn_capture *cap, const uint8_t *p, size_t n)
{
	while (n > 0) {
		size_t part = n;
		ssize_t done;

		if (cap->stream) {
			if (wait_room(cap) != 0)
				return -1;
			part = RTE_MIN(n, (size_t)PIPE_BUF); /* never blocks after POLLOUT */
		}
		done = write(cap->fd, p, part);
		if (done < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (done <= 0) {
			errno = done < 0 ? errno : ENOSPC;
			return -1;
		}
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

/* Write the blocks of the buffer. */
static void
flush(struct urn_capture *cap)
{
	if (cap->buf_len == 0)
		return;
	if (write_all(cap, cap->buf, cap->buf_len) == 0) {
		count(&cap->frames, cap->buf_frames);
		count(&cap->bytes, cap->buf_len);
	} else if (cap->stream && errno == EPIPE) {
		__atomic_store_n(&cap->full, true, __ATOMIC_RELAXED);
	} else {
		__atomic_store_n(&cap->write_errno, errno, __ATOMIC_RELAXED);
		count(&cap->write_drops, cap->buf_frames);
		/* The last block of a file is whole, so that readers do not complain. */
		if (!cap->stream && ftruncate(cap->fd, (off_t)cap->bytes) != 0)
			__atomic_store_n(&cap->write_errno, errno, __ATOMIC_RELAXED);
	}
	cap->buf_len = 0;
	cap->buf_frames = 0;
}

/* ---- blocks */

/* Time of a TSC value, ns since 1970; never less than the one before. */
static uint64_t
time_of(struct urn_capture *cap, uint64_t tsc)
{
	uint64_t hz = rte_get_tsc_hz(), past = tsc - cap->start_tsc, ns = cap->start_ns;

	if (tsc > cap->start_tsc)
		ns += past / hz * 1000000000 + past % hz * 1000000000 / hz;
	cap->last_ns = RTE_MAX(cap->last_ns, ns);
	return cap->last_ns;
}

/* Add the interface of a port to the file, if it is not there yet. The buffer has room. */
static void
add_interface(struct urn_capture *cap, struct capture_port *port)
{
	if (port->iface >= 0)
		return;
	port->iface = (int)cap->ifaces++;
	cap->buf_len += urn_pcapng_interface(cap->buf + cap->buf_len, port->name, port->mac,
					     cap->snap == UINT32_MAX ? 0 : cap->snap);
}

/* Add a frame, unless the capture is at a limit then. */
static void
add_frame(struct urn_capture *cap, struct rte_mbuf *m)
{
	const struct capture_copy *info = rte_mbuf_to_priv(m);
	struct capture_port *port = &cap->port[info->port];
	struct urn_pcapng_frame f = {
		.m = m, .len = info->len, .queue = info->queue, .direction = info->direction};
	size_t most = m->pkt_len + URN_PCAPNG_FRAME_MORE + URN_PCAPNG_SMALL, before;
	int known = port->iface;

	if (most > cap->buf_size - cap->buf_len)
		flush(cap);
	if (cap->full || cap->write_errno != 0 || most > cap->buf_size) {
		count(&cap->write_drops, cap->full ? 0 : 1);
		return;
	}
	before = cap->buf_len;
	add_interface(cap, port);
	f.iface = (uint32_t)port->iface;
	f.ns = time_of(cap, info->tsc);
	cap->buf_len += urn_pcapng_frame(cap->buf + cap->buf_len, &f);
	cap->buf_frames++;
	if ((cap->max_frames != 0 && cap->frames + cap->buf_frames > cap->max_frames) ||
	    (cap->max_bytes != 0 && cap->bytes + cap->buf_len > cap->max_bytes)) {
		cap->buf_len = before;
		cap->buf_frames--;
		cap->ifaces -= known < 0;
		port->iface = known;
		__atomic_store_n(&cap->full, true, __ATOMIC_RELAXED);
	}
}

static void
write_burst(struct urn_capture *cap, struct rte_mbuf **m, unsigned int n)
{
	for (unsigned int i = 0; i < n && !cap->full; i++)
		add_frame(cap, m[i]);
	rte_pktmbuf_free_bulk(m, n);
	flush(cap);
	if (cap->max_frames != 0 && cap->frames >= cap->max_frames)
		__atomic_store_n(&cap->full, true, __ATOMIC_RELAXED);
}

/*
 * Write one statistics block for each port of the file at its end: frames seen, and how many are
 * missing. A port of which no frame was wanted is not in the file.
 */
static void
write_stats(struct urn_capture *cap)
{
	unsigned int i = 0, k;

	while (i < cap->taps && cap->write_errno == 0) {
		struct capture_port *port = &cap->port[cap->tap[i].port];
		uint64_t seen = 0, drops = 0;

		for (k = i; k < cap->taps && cap->tap[k].port == cap->tap[i].port; k++) {
			seen += __atomic_load_n(&cap->tap[k].seen, __ATOMIC_RELAXED);
			drops += __atomic_load_n(&cap->tap[k].drops, __ATOMIC_RELAXED);
		}
		i = k;
		if (port->iface < 0 && drops == 0)
			continue;
		add_interface(cap, port);
		cap->buf_len += urn_pcapng_stats(cap->buf + cap->buf_len, (uint32_t)port->iface,
						 time_of(cap, rte_rdtsc()), seen, drops);
		flush(cap);
	}
}

/* ---- the thread */

int
urn_capture_write_head(struct urn_capture *cap)
{
	struct timespec now;
	size_t len = urn_pcapng_section(cap->buf);

	clock_gettime(CLOCK_REALTIME, &now);
	cap->start_tsc = rte_rdtsc();
	cap->start_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	if (write_all(cap, cap->buf, len) != 0)
		return -1;
	cap->bytes = len;
	return 0;
}

static void
writer_loop(struct urn_capture *cap)
{
	const struct timespec idle = {.tv_nsec = IDLE_NS};
	struct rte_mbuf *m[CAPTURE_BURST];
	unsigned int n;
	bool last;

	do {
		/* Read before the ring: frames that are in the ring then are still written. */
		last = __atomic_load_n(&cap->stop, __ATOMIC_ACQUIRE) || cap->full;
		while ((n = rte_ring_sc_dequeue_burst(cap->ring, (void **)m, CAPTURE_BURST, NULL)) >
		       0)
			write_burst(cap, m, n);
		if (!cap->full && reader_left(cap))
			__atomic_store_n(&cap->full, true, __ATOMIC_RELAXED);
		if (!last && !cap->full)
			nanosleep(&idle, NULL);
		if (!last && cap->full)
			urn_capture_taps_remove(
				cap); /* one more round: frees the frames that came until now */
	} while (!last);
}

void *
urn_capture_writer(void *arg)
{
	struct urn_capture *cap = arg;
	sigset_t block;

	/* A reader that leaves, or a file at its limit, is an error of write(), and ends no
	 * process. */
	sigemptyset(&block);
	sigaddset(&block, SIGPIPE);
	sigaddset(&block, SIGXFSZ);
	(void)pthread_sigmask(SIG_BLOCK, &block, NULL);
	/* An lcore id gives a cache in the pool, but keeps other processes out; it is optional. */
	if (!urn_eal_huge())
		(void)rte_thread_register();
	writer_loop(cap);
	write_stats(cap);
	if (cap->stream) {
		close(cap->fd); /* the reader sees the end now, not when the capture is asked for */
		cap->fd = -1;
	}
	rte_thread_unregister();
	return NULL;
}
