/* SPDX-License-Identifier: BSD-3-Clause */
/* The files to send. */
#ifndef URN_CP_SOURCE_H
#define URN_CP_SOURCE_H

#include "digest.h"
#include "pmd_glue/port.h"
#include "proto.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cp_source_state {
	CP_TODO,   /* can be sent, as far as one can tell */
	CP_SENT,   /* the receiver has the file, verified unless --no-check */
	CP_UNSENT, /* the file could not be sent: `why` has the reason */
};

struct cp_source {
	const char *path;          /* path on the command line; owner: argv */
	const char *name;          /* last part of the path; name of the copy */
	uint64_t size;             /* bytes, at the last look */
	uint32_t mode;             /* permission bits */
	enum cp_source_state state;
	uint8_t digest[CP_DIGEST]; /* valid when sent with checking */
	struct urn_err why;        /* when unsent: a message that names the file */
};

/*
 * Look at all files before anything is started: missing, unreadable, not
 * regular, or two of one name. Errors are printed on standard error.
 * returns: the list (free() it) with how many can be sent and their bytes, or
 * NULL without memory
 */
struct cp_source *cp_sources_look(char *const *paths, unsigned int n, unsigned int *sendable,
				  uint64_t *bytes);

/* Open a file for sending; sets size and mode. returns: descriptor, or -1 with src->why */
int cp_source_open(struct cp_source *src);
/*
 * Read exactly len bytes at an offset. last: the bytes are the file's last ones, so
 * more bytes behind them mean that the file grew. returns: 0, or -1 with *err
 */
int cp_source_read(const struct cp_source *src, int fd, uint8_t *buf, size_t len, uint64_t offset,
		   bool last, struct urn_err *err);

/* Mark a file as unsent; why is kept (the first time) and printed on standard error. */
void cp_source_fail(struct cp_source *src, const char *why);

#endif
