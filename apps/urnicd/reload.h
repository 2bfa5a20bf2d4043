/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The configuration is read again while programs run: as a whole, and not at all if it has a
 * mistake. A key that can change does; the others, and sections that are new or gone, come with the
 * next start, which is said.
 */
#ifndef URNICD_RELOAD_H
#define URNICD_RELOAD_H

#include "rig.h"

struct nicd_reload; /* the configuration that was read last */

/* A key that has another value now. */
struct nicd_reload_change {
	const char *kind, *name; /* the section's; name "": it has none */
	const char *key;	 /* NULL: the section as a whole */
	const char *from, *to;	 /* values; NULL: not given; of a key that can't change, `from` is
				  * the value since the start */
	bool now;		 /* it holds from now on; false: with the next start */
	const char *failed;	 /* the reason why it could not be changed; NULL: it was */
};

typedef void nicd_reload_fn(void *ctx, const struct nicd_reload_change *c);

/* returns: NULL with *err: no memory */
struct nicd_reload *nicd_reload_create(struct nicd_rig *rig, struct urn_err *err);
/* NULL is allowed. */
void nicd_reload_free(struct nicd_reload *r);
/*
 * Read the file again, and tell of each change, also to the log. From any thread that polls no
 * engine; one at a time, others wait. found: NULL: only the log is told.
 * returns: 0, or -1 with the first mistake in *err: then nothing has changed
 */
int nicd_reload(struct nicd_reload *r, nicd_reload_fn *found, void *ctx, struct urn_err *err);
/* Serve SIGHUP, if it came: the log's file is opened again, and the configuration read again. The
 * log has the outcome. */
void nicd_serve_hangup(const struct nicd_rig *rig);

#endif
