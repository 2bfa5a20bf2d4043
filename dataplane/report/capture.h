/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Captures on command: the frames of a port, or of all ports, go to a pcapng file
 * in one folder (pmd_glue/capture.h does the copying and the writing). One
 * capture at a time; any control thread may call, engines go on meanwhile.
 *
 * The name of a file is not trusted: the file is in the folder, and never one that
 * exists already, so that nobody's file is overwritten or reached by a link.
 */
#ifndef URN_REPORT_CAPTURE_H
#define URN_REPORT_CAPTURE_H

#include "control/dataplane.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	URN_CAPTURE_FILE = 128, /* bytes of a file's name, NUL included */
	URN_CAPTURE_SNAP_LEAST =
		14, /* bytes that are kept of a frame, at least: the Ethernet header */
	URN_CAPTURE_SNAP_MOST = 65535,
};
#define URN_CAPTURE_PIPE "-" /* in place of a file's name: the capture goes to a pipe */

struct urn_captures;

/* Status of the running capture, or of the last one. */
struct urn_capture_status {
	bool running;		     /* false: the fields below are of the last capture; file "": there was none */
	bool ended; /* at its limit, by a failure, or without a reader; no frame is taken any more
		     */
	char file[URN_CAPTURE_FILE]; /* in the folder, or URN_CAPTURE_PIPE */
	char port[32];		     /* name of the port; "": all */
	uint64_t frames;	     /* frames written */
	uint64_t bytes;		     /* bytes of the file */
	uint64_t dropped;	     /* frames that found no room, or could not be written */
	char failure[256];	     /* a sentence; "": none */
};

/*
 * dir: the folder of the files, opened now; "": the current one. dp: its engines
 * poll the ports; NULL: no engine does, in tests. returns: captures without
 * a port, or NULL with *err
 */
struct urn_captures *urn_captures_create(const char *dir, struct urn_dp *dp, struct urn_err *err);
/* Stop a running capture and free all. Call before the ports are closed. NULL is allowed. */
void urn_captures_destroy(struct urn_captures *c);
/*
 * Let a port be captured under a name, which is also the port's name in the file. The
 * port outlives c. All ports are added before the first start. returns: 0, or -1 with *err
 */
int urn_captures_add(struct urn_captures *c, const char *name, struct urn_port *port,
		     struct urn_err *err);
/* Packets of the EAL's memory that a capture takes. */
uint64_t urn_captures_mbufs(void);
/*
 * Wait until every engine has begun another turn: none is still in a burst that it was in. dp:
 * struct urn_dp (urn_capture_config.quiesce). Not in the thread of an engine that polls.
 */
void urn_captures_quiesce(void *dp);

/*
 * Start a capture. port: a name, NULL or "": all; file: a name in the folder, of letters,
 * digits, "_-.+", not beginning with a dot; the file must not exist. max_frames,
 * max_bytes (of the file): the capture ends by itself there; 0: no limit. returns: 0, or -1 with
 * *err (a capture runs already, no such port, a bad name, an error of the file
 * system), and then there is no file
 */
int urn_capture_start(struct urn_captures *c, const char *port, const char *file,
		      uint64_t max_frames, uint64_t max_bytes, struct urn_err *err);
/* Choices of a capture. All zero but for the file: all frames of all ports, without an end. */
struct urn_capture_order {
	const char *port; /* a name, NULL or "": all */
	const char *file; /* a name in the folder, or URN_CAPTURE_PIPE */
	int *pipe; /* with URN_CAPTURE_PIPE: receives the end to read from, the caller's then */
	uint64_t max_frames; /* 0: no limit */
	uint64_t max_bytes;  /* size of the file; 0: no limit */
	uint32_t snap;	     /* bytes of each frame that are kept, in the bounds above; 0: all */
	bool by_qpn;  /* only frames of the queue pair qpn, as urn_capture_qps_find() has them */
	uint32_t qpn; /* at most 24 bits */
};
/*
 * urn_capture_start() with all choices. A capture to a pipe ends by itself when its reader leaves;
 * a reader that is slow loses frames, which are counted. returns: likewise
 */
int urn_capture_start_order(struct urn_captures *c, const struct urn_capture_order *o,
			    struct urn_err *err);
/*
 * Stop the capture, write the frames it has taken, close the file. *last (may be NULL): its status.
 * returns: 0, or -1 with *err: no capture runs, or the file is not whole
 */
int urn_capture_stop(struct urn_captures *c, struct urn_capture_status *last, struct urn_err *err);
void urn_capture_status(struct urn_captures *c, struct urn_capture_status *st);
/* Tell the log of the dataplane when the capture has ended by itself. Never waits; call now and
 * then. */
void urn_captures_watch(struct urn_captures *c);
/*
 * Totals of all captures since the start: frames, bytes and dropped of *sum, other fields
 * are empty. Never waits: while a capture is being started or ended, repeats its last answer.
 */
void urn_capture_totals(struct urn_captures *c, struct urn_capture_status *sum);

#endif
