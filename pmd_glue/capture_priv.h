/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of a capture: callbacks on the lcores (capture_tap.c), the thread that writes
 * (capture_write.c), beginning and end (capture.c).
 */
#ifndef URN_PMD_GLUE_CAPTURE_PRIV_H
#define URN_PMD_GLUE_CAPTURE_PRIV_H

#include "pmd_glue/capture.h"

#include <rte_ring.h>

#include <pthread.h>
#include <stddef.h>

#define CAPTURE_BURST 32u

/* Kept in the private area of a copy, which has URN_PORT_PRIV bytes. */
struct capture_copy {
	uint64_t tsc;	   /* time at which the lcore saw the frame, TSC cycles */
	uint32_t len;	   /* bytes of the frame before it was cut */
	uint16_t port;	   /* index in urn_capture.port */
	uint16_t queue;	   /* queue of the port */
	uint8_t direction; /* URN_PCAPNG_IN or URN_PCAPNG_OUT */
};
_Static_assert(sizeof(struct capture_copy) <= URN_PORT_PRIV, "mbuf private area");

/* One callback on one queue. */
struct capture_tap {
	struct urn_capture *cap;
	const struct urn_port *wire; /* the port; owner: the capture's caller */
	const struct rte_eth_rxtx_callback *cb;
	uint64_t drops;	 /* frames dropped; owner: the lcore of the queue; atomic for the reader */
	uint64_t seen;	 /* frames seen; owner and access likewise */
	bool busy;	 /* a burst is being copied; atomic, likewise */
	bool removed;	 /* taken off its queue; under taps_lock */
	uint16_t ethdev; /* number of the port at ethdev */
	uint16_t port;	 /* index in urn_capture.port */
	uint16_t queue;
	uint8_t direction; /* URN_PCAPNG_IN or URN_PCAPNG_OUT */
} __rte_cache_aligned;

/* One port of a capture. */
struct capture_port {
	char name[64];	/* in the file */
	uint8_t mac[6]; /* address of the port when the capture began */
	int iface; /* number of its interface in the file; -1: no frame yet; owner: the writer */
};

struct urn_capture {
	char *path;
	int fd;			    /* owner: the capture; -1: not open */
	bool stream;		    /* no regular file: its reader may be slow, or leave */
	struct rte_mempool *copies; /* the callbacks' packets */
	struct rte_ring *ring;	    /* many producers, one consumer */
	struct capture_port *port;
	struct capture_tap *tap;
	unsigned int taps;
	uint32_t snap;		    /* bytes of each frame that are kept, at most */
	urn_capture_filter *filter; /* NULL: all frames */
	const void *filter_arg;
	pthread_mutex_t taps_lock; /* protects adding and removing callbacks: tap[].removed */
	void (*quiesce)(void *arg);
	void *quiesce_arg;
	pthread_t writer;
	bool stop;		    /* tells the writer to end; atomic */
	bool full;		    /* the capture is at its end; owner: the writer; atomic */
	uint64_t max_frames;	    /* 0: no limit */
	uint64_t max_bytes;	    /* largest file; 0: no limit */
	uint64_t frames;	    /* frames written; owner: the writer; atomic */
	uint64_t bytes;		    /* bytes in the file; owner: the writer; atomic */
	int write_errno;	    /* errno of the first failure; owner: the writer; atomic */
	uint64_t write_drops;	    /* frames the writer dropped; owner: the writer; atomic */
	uint32_t patience_ms;	    /* for a slow reader at the end, all waits together */
	const volatile bool *hurry; /* patience counts once it is true, too; NULL: from `stop` on */
	uint64_t end_ns; /* a slow reader is waited for until then, ns of CLOCK_MONOTONIC; 0:
			    patience does not count yet; owner: the writer */
	/* Blocks on their way to the file; owner: the writer. */
	uint8_t *buf;
	size_t buf_size, buf_len; /* bytes */
	uint64_t buf_frames;	  /* frames in it */
	unsigned int ifaces;	  /* interfaces in the file */
	/* Clock of the file; owner: the writer. */
	uint64_t start_tsc, start_ns; /* one moment, by TSC and in ns since 1970 */
	uint64_t last_ns;	      /* time of the frame before; times never decrease */
};

/*
 * Add callbacks to all queues of n ports. returns: 0, or -1: a port takes none, and then some may
 * have been added
 */
int urn_capture_taps_add(struct urn_capture *cap, struct urn_port *const *ports, unsigned int n);
/* Remove the callbacks, once: by the writer at the end, or by the thread that closes the capture.
 */
void urn_capture_taps_remove(struct urn_capture *cap);

/* Write the head of the file, before the writer runs. returns: 0, or -1 with errno */
int urn_capture_write_head(struct urn_capture *cap);
/* The writer's thread. arg: struct urn_capture */
void *urn_capture_writer(void *arg);

#endif
