/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Captures on command: what crosses a port, or all ports, goes to a pcapng file
 * in one folder (pmd_glue/capture.h does the copying and the writing). One
 * capture at a time; any control thread may call, engines go on meanwhile.
 *
 * The name of a file is not trusted: it is one in the folder, and never one that
 * is there already, so that nobody's file is written over or reached by a link.
 */
#ifndef URN_REPORT_CAPTURE_H
#define URN_REPORT_CAPTURE_H

#include "control/dataplane.h"

#include <stdbool.h>
#include <stdint.h>

enum { URN_CAPTURE_FILE = 128 }; /* bytes of a file's name, NUL included */

struct urn_captures;

/* How a capture does, or how the last one went. */
struct urn_capture_status {
	bool running;		     /* else the rest is of the last one; file "": there was none */
	bool ended;		     /* at its limit, or by a failure; no frame is taken any more */
	char file[URN_CAPTURE_FILE]; /* in the folder */
	char port[32];		     /* its name; "": all */
	uint64_t frames;	     /* written */
	uint64_t bytes;		     /* of the file */
	uint64_t dropped;	     /* frames that found no room, or could not be written */
	char failure[256];	     /* a sentence; "": none */
};

/*
 * dir: the folder of the files, opened now; "": the current one. dp: whose engines
 * poll the ports; NULL: nobody does, but for tests. returns: without
 * a port, or NULL with *err
 */
struct urn_captures *urn_captures_create(const char *dir, struct urn_dp *dp, struct urn_err *err);
/* Stop what runs. Before the ports are closed. NULL is allowed. */
void urn_captures_destroy(struct urn_captures *c);
/*
 * Let a port be captured under a name, which is also its name in the file. The
 * port outlives c. All are added before the first start. returns: 0, or -1 with *err
 */
int urn_captures_add(struct urn_captures *c, const char *name, struct urn_port *port,
		     struct urn_err *err);
/* Name of the port number i; NULL past the end. */
const char *urn_captures_port(const struct urn_captures *c, unsigned int i);
/* Packets of the EAL's memory that a capture takes. */
uint64_t urn_captures_mbufs(void);

/*
 * Start. port: a name, NULL or "": all; file: a name in the folder, of letters,
 * digits, "_-.+", not beginning with a dot; it must not be there. max_frames,
 * max_bytes (of the file): end by itself then; 0: no limit. returns: 0, or -1 with
 * *err (one runs already, no such port, a name that will not do, what the file
 * system says), and then there is no file
 */
int urn_capture_start(struct urn_captures *c, const char *port, const char *file,
		      uint64_t max_frames, uint64_t max_bytes, struct urn_err *err);
/*
 * Stop, write what is under way, close the file. *last (may be NULL): how it went.
 * returns: 0, or -1 with *err: none runs, or the file is not whole
 */
int urn_capture_stop(struct urn_captures *c, struct urn_capture_status *last, struct urn_err *err);
void urn_capture_status(struct urn_captures *c, struct urn_capture_status *st);
/*
 * All captures since the start together: frames, bytes and dropped of *sum, the rest
 * is empty. Never waits: while one is started or ended, as they were before.
 */
void urn_capture_totals(struct urn_captures *c, struct urn_capture_status *sum);

#endif
