/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the frames that cross a port to a pcapng file (doc/reference/ports.md). */
#ifndef URN_PMD_GLUE_CAPTURE_H
#define URN_PMD_GLUE_CAPTURE_H

#include "pmd_glue/port.h"

struct urn_capture;

/*
 * True when a frame is wanted. Called on the lcores for each frame, of several at once; as fast as
 * any code there. m: one frame that nobody else changes meanwhile; its segments may be short
 */
typedef bool urn_capture_filter(const void *arg, const struct rte_mbuf *m);

struct urn_capture_config {
	const char *path; /* path of the file; with fd: the file's name in messages */
	/*
	 * Open for writing, empty, owned by the capture from then on; -1: make path. A pipe or
	 * socket is never waited for but by the writer, and its reader may end the capture by
	 * leaving.
	 */
	int fd;
	struct urn_port *const *ports; /* their cfg.name is their name in the file */
	unsigned int n;
	/* Limits of the file, but for 64 bytes a port at its end; a capture ends by itself there; 0: no limit. */
	uint64_t max_frames, max_bytes;
	uint32_t snap;		    /* bytes of each frame that are kept; 0: all */
	urn_capture_filter *filter; /* frames that are wanted; NULL: all */
	const void *filter_arg;	    /* outlives the capture */
	/*
	 * Waits until every thread that polls the ports has been outside of a burst
	 * once; may be called in any thread. NULL: the capture waits 10 ms, then for its callbacks.
	 */
	void (*quiesce)(void *arg);
	void *quiesce_arg;
	/*
	 * For how long the end waits for a slow reader of a pipe, all waits together, ms. The
	 * frames left then are dropped and counted, and the end is an error. The time counts from
	 * the end; with `hurry` from when the end sees this flag, which a signal may set at any
	 * time, and until then the reader is waited for until it leaves. hurry outlives the
	 * capture; NULL: none.
	 */
	uint32_t patience_ms;
	const volatile bool *hurry;
};

/* State and figures of a capture. */
struct urn_capture_info {
	uint64_t frames;  /* written */
	uint64_t bytes;	  /* size of the file */
	uint64_t dropped; /* frames that did not fit, or could not be written */
	bool full;	  /* the capture ended at its limit, or its reader left */
	int error;	  /* errno of the first failure to write; 0: none */
};

/* Words for the error of struct urn_capture_info: of errno, or about a reader. */
const char *urn_capture_why(int error);

/*
 * urn_capture_open() with all settings. With a quiesce, no memory of a capture stays
 * behind on the ports; without, a few bytes a queue. fd is closed in any case. returns
 * NULL with *err
 */
struct urn_capture *urn_capture_begin(const struct urn_capture_config *cfg, struct urn_err *err);
/* urn_capture_close() with all figures. cap is not NULL */
int urn_capture_finish(struct urn_capture *cap, struct urn_capture_info *info, struct urn_err *err);
/* Figures of a capture that runs; any thread. */
void urn_capture_info(const struct urn_capture *cap, struct urn_capture_info *info);
/* Packets that a capture takes from the EAL's memory. */
unsigned int urn_capture_mbufs(void);
/*
 * Capture both directions of all queues of n ports into the file `path`. Copies
 * go through a ring to one writer thread; a frame that does not fit is dropped and
 * counted, never waited for. A frame that a port refused appears for each attempt.
 * A port is in the file from its first frame on. returns NULL with *err
 */
struct urn_capture *urn_capture_open(const char *path, struct urn_port *const *ports,
				     unsigned int n, struct urn_err *err);
/*
 * Stop, write the frames in the ring, close the file; before the ports are closed.
 * Other threads may go on polling them. *dropped (may be NULL): frames that
 * were not written. returns 0, or -1 with *err when the file is not whole
 */
int urn_capture_close(struct urn_capture *cap, uint64_t *dropped, struct urn_err *err);

#endif
