/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of urnic-run: the program that urnic-run becomes gets libraries and an environment. */
#ifndef URN_RUN_H
#define URN_RUN_H

#include <stdbool.h>
#include <stddef.h>

/* The preload library, and the drop-in one that the folder of drop-in libraries is known by. */
#define RUN_SOCKETS "liburnic-sockets.so"
#define RUN_VERBS "libibverbs.so.1"

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

/*
 * Add a fault of the command line to a list.
 *
 * list: faults with semicolons between them; NULL: none yet
 * returns: true: done; false: a message says what is wrong with it, and where
 */
bool run_fault(char **list, const char *fault);

/* returns: true: the text is a seed; false: a message says that it is none */
bool run_seed(const char *seed);

/* Take the faults of the environment over into a list: urnic-run itself is to be spared. returns:
 * as run_fault() */
bool run_fault_variable(char **list);

/*
 * Tell the program its faults.
 *
 * list, seed: NULL: none
 * returns: true: done; false: a message says why not
 */
bool run_faults(const char *list, const char *seed);

#endif
