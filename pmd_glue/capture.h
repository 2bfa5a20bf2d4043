/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the frames that cross a port to a pcapng file (rte_pcapng; doc/reference/ports.md). */
#ifndef URN_PMD_GLUE_CAPTURE_H
#define URN_PMD_GLUE_CAPTURE_H

#include "pmd_glue/port.h"

struct urn_capture;

struct urn_capture_config {
	const char *path; /* path of the file; with fd: the file's name in messages */
	int fd;		  /* open for writing, empty, owned by the capture from then on; -1: make path */
	struct urn_port *const *ports; /* their cfg.name is their name in the file */
	unsigned int n;
	/* Limits of the file, but for 64 bytes a port at its end; a capture ends by itself there; 0: no limit. */
	uint64_t max_frames, max_bytes;
	/*
	 * Waits until every thread that polls the ports has been outside of a burst
	 * once; may be called in any thread. NULL: the capture waits 10 ms, then for its callbacks.
	 */
	void (*quiesce)(void *arg);
	void *quiesce_arg;
};

/* State and figures of a capture. */
struct urn_capture_info {
	uint64_t frames;  /* written */
	uint64_t bytes;	  /* size of the file */
	uint64_t dropped; /* frames that did not fit, or could not be written */
	bool full;	  /* the capture ended at its limit */
	int error;	  /* errno of the first failure to write; 0: none */
};

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
/* Number of packets that a capture takes from the EAL's memory. */
unsigned int urn_capture_mbufs(void);
/*
 * Capture both directions of all queues of n ports into the file `path`. Copies
 * go through a ring to one writer thread; a frame that does not fit is dropped and
 * counted, never waited for. A frame that a port refused appears for each attempt.
 * Open after all ports of the process are up: the file lists them. returns NULL with
 * *err
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
