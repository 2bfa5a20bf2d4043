/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The folder that received files go to. A file is written without a name
 * (O_TMPFILE) and gets its name when it is complete, verified and on disk, so
 * a receiver that dies leaves nothing behind. Where the file system has no
 * unnamed files, a hidden file is written instead, held by a lock; the next
 * receiver removes hidden files that no process holds any more.
 *
 * Calls on a file come from one thread at a time.
 */
#ifndef URN_CP_STORE_H
#define URN_CP_STORE_H

#include "pmd_glue/port.h"
#include "proto.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cp_store {
	int dir;           /* descriptor of the folder; -1: closed */
	const char *path;  /* for messages; owner: the caller */
	bool force;        /* replace files that exist */
	bool named;        /* always write hidden files, never unnamed ones (tests) */
	mode_t umask;      /* umask of this process */
	unsigned int made; /* number of hidden names made so far; makes them unique */
};

struct cp_store_file {
	struct cp_store *store;
	int fd;                     /* -1: none */
	char name[CP_NAME_MAX + 1]; /* final name */
	char part[64];              /* name of the hidden file; empty: none */
	uint64_t size;              /* bytes of the complete file */
	uint32_t mode;              /* permission bits, before the umask */
	bool refused;               /* cp_store_begin() failed */
	struct urn_err err;         /* first failure; empty: none */
};

/* Open the folder, made if missing, and remove files that dead receivers left. returns 0 or -1 */
int cp_store_open(struct cp_store *s, const char *path, bool force, struct urn_err *err);
/* Bring the folder itself to disk and close it. returns: 0, or -1 with *err */
int cp_store_close(struct cp_store *s, struct urn_err *err);

/*
 * Begin a file (name checked before: cp_name_check). This call and the next two return
 * 0, or -1 with f->err; after a failure the later calls fail with the same error.
 */
int cp_store_begin(struct cp_store *s, struct cp_store_file *f, const char *name, uint64_t size,
		   uint32_t mode);
/* Write bytes at an offset. Long runs of zeros become holes. */
int cp_store_write(struct cp_store_file *f, const uint8_t *data, size_t len, uint64_t offset);
/* Bring the complete file to disk, then give it its name. */
int cp_store_commit(struct cp_store_file *f);
/* Forget the file, unless committed. Safe at any time. */
void cp_store_abort(struct cp_store_file *f);

#endif
