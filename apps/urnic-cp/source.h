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
	CP_SENT,   /* the receiver has it, verified unless told not to */
	CP_UNSENT, /* it could not be sent: why says so */
};

struct cp_source {
	const char *path;          /* as given; owner: argv */
	const char *name;          /* last part of the path; what the copy is called */
	uint64_t size;             /* bytes, when it was last looked at */
	uint32_t mode;             /* permission bits */
	enum cp_source_state state;
	uint8_t digest[CP_DIGEST]; /* when sent with checking */
	struct urn_err why;        /* when unsent: a sentence that names the file */
};

/*
 * Look at all files before anything is started: missing, unreadable, not
 * regular, or two of one name. What is wrong is said on standard error.
 * returns: the list (free() it) with how many can be sent and their bytes, or
 * NULL without memory
 */
struct cp_source *cp_sources_look(char *const *paths, unsigned int n, unsigned int *sendable,
				  uint64_t *bytes);

/* Open a file for sending; sets size and mode. returns: descriptor, or -1 with src->why */
int cp_source_open(struct cp_source *src);
/*
 * Read exactly len bytes at an offset. last: they are the file's last ones, so
 * that more behind them means that it grew. returns: 0, or -1 with *err
 */
int cp_source_read(const struct cp_source *src, int fd, uint8_t *buf, size_t len, uint64_t offset,
		   bool last, struct urn_err *err);

/* It can't be sent; why is kept (the first time) and said on standard error. */
void cp_source_fail(struct cp_source *src, const char *why);

#endif
