/* SPDX-License-Identifier: BSD-3-Clause */
/* The control socket of a urnicd: where it is looked for, and why nobody was reached there. */
#ifndef URN_CTL_WHERE_H
#define URN_CTL_WHERE_H

#include <stdbool.h>
#include <stddef.h>

/* Places that were looked at. */
struct ctl_where {
	char path[256];	  /* the socket that is connected to */
	char before[256]; /* a place before it, where nothing is; "": none */
	bool others_dir;  /* XDG_RUNTIME_DIR is another user's, and was not looked at */
};

/*
 * Find the control socket the way programs find their dataplane (doc/reference/urnicd.md).
 *
 * told: --socket; NULL, "auto": none was given
 * returns: false: the path is too long
 */
bool ctl_where_find(const char *told, struct ctl_where *w);
/* Say on the standard error why nobody was reached: nothing is there, this user may not, or nobody
 * listens any more. err: errno value of connect() */
void ctl_where_tell(const struct ctl_where *w, int err);

#endif
