/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of urnic-run: the program that urnic-run becomes gets libraries and an environment. */
#ifndef URN_RUN_H
#define URN_RUN_H

#include <stdbool.h>
#include <stddef.h>

/* The preload library, and the drop-in one that the folder of drop-in libraries is known by. */
#define RUN_SOCKETS "liburnic-sockets.so"
#define RUN_VERBS "libibverbs.so.1"
/* The preload library in that folder, by which programs find devices in /dev and /sys. */
#define RUN_PATHS "liburnic-paths.so"

/*
 * Find a file of urnic's beside this program: installed, or in the folder of a build.
 *
 * name: RUN_SOCKETS or RUN_VERBS
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
 * Tell the program its node, URNIC_NODE.
 *
 * list: a node; several with commas between them: a parallel program's process number r gets number
 *       r modulo their number, from 0; NULL: as the environment says
 * returns: true: done; false: a message says why not
 */
bool run_pick_node(const char *list);

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
 * See whether the program will find a device: attach to urnicd as the environment says, and detach.
 *
 * returns: true: urnicd answers, and has the node; false: a message says why not, and what to do
 */
bool run_urnicd_answers(void);

#endif
