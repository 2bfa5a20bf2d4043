/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of urnic-run: the program that urnic-run becomes gets libraries and an environment. */
#ifndef URN_RUN_H
#define URN_RUN_H

#include <stdbool.h>
#include <stddef.h>

/* The preload libraries, and the drop-in one that the folder of drop-in libraries is known by. */
#define RUN_SOCKETS "liburnic-sockets.so"
#define RUN_SHARE "liburnic-share.so"
#define RUN_VERBS "libibverbs.so.1"

/*
 * Find a file of urnic's beside this program: installed, or in the folder of a build.
 *
 * name: RUN_SOCKETS, RUN_SHARE or RUN_VERBS
 * path, size: room for the path
 * returns: path; NULL: it is in none of the places
 */
const char *run_find(const char *name, char *path, size_t size);

/*
 * Set a variable of the program's environment.
 *
 * value: NULL: the variable stays as it is
 * returns: true: done; false: a message says why not
 */
bool run_tell(const char *name, const char *value);

/*
 * Put a word in front of those of a variable whose words have colons between them.
 *
 * returns: true: done; false: a message says why not
 */
bool run_put_first(const char *name, const char *word);

/*
 * Give the program the drop-in libraries.
 *
 * folder: of these; NULL: look for it
 * returns: true: done; false: a message says why not
 */
bool run_verbs(const char *folder);

/*
 * Let memory that the program registers be shared with urnicd.
 *
 * returns: true: done; false: a message says why not
 */
bool run_share(void);

/*
 * See whether the program will find a device: attach to urnicd as the environment says, and detach.
 *
 * returns: true: urnicd answers, and has the node; false: a message says why not, and what to do
 */
bool run_urnicd_answers(void);

#endif
