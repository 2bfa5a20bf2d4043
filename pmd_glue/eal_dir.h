/* SPDX-License-Identifier: BSD-3-Clause */
/* The EAL's runtime folder: made, locked, swept, removed. Used by eal.c only. */
#ifndef URN_PMD_GLUE_EAL_DIR_H
#define URN_PMD_GLUE_EAL_DIR_H

#include "pmd_glue/port.h"

#include <limits.h>

/* Longest folder name; UNIX sockets below it must stay under 108 bytes. */
#define URN_EAL_DIR_MAX 64

struct urn_eal_dir {
	char path[URN_EAL_DIR_MAX]; /* owner: eal.c; empty: none */
	int lock_fd;		    /* held locked while the folder is in use */
};

/*
 * Make a folder of mode 0700 under $XDG_RUNTIME_DIR, else $TMPDIR, else /tmp,
 * and lock it. Folders of ours whose process died without removing them (their
 * lock is free) are removed first. returns 0 or -1 with *err
 */
int urn_eal_dir_make(struct urn_eal_dir *dir, struct urn_err *err);
/* Remove the folder with all it holds; an empty path is allowed. */
void urn_eal_dir_remove(struct urn_eal_dir *dir);

#endif
