/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parts of urnic-run: the program that urnic-run becomes gets libraries and an environment. With
 * --start urnic-run stays: its child, the keeper, runs a urnicd in a private folder, and another
 * child is the program.
 */
#ifndef URN_RUN_H
#define URN_RUN_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The preload libraries, and the drop-in one that the folder of drop-in libraries is known by. */
#define RUN_SOCKETS "liburnic-sockets.so"
#define RUN_SHARE "liburnic-share.so"
#define RUN_VERBS "libibverbs.so.1"
/* The preload library in that folder, by which programs find devices in /dev and /sys. */
#define RUN_PATHS "liburnic-paths.so"

/*
 * Find a file of urnic's beside this program: installed, or in the folder of a build.
 *
 * name: RUN_SOCKETS, RUN_SHARE, RUN_VERBS, "urnicd" or a configuration's
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
 * Let programs start that were built with an address sanitizer: its run-time refuses libraries in
 * front of it, unless ASAN_OPTIONS says otherwise. The options of others stay. returns: as
 * run_tell()
 */
bool run_allow_asan(void);

/*
 * Tell the program its node, URNIC_NODE.
 *
 * list: a node; several with commas between them: a parallel program's process number r gets number
 *       r modulo their number, from 0; NULL: as the environment says
 * returns: true: done; false: a message says why not
 */
bool run_pick_node(const char *list);

/*
 * Tell the program the number of its instance, URNIC_SESSION_INSTANCE, by which it chooses among
 * pairs of adapters: a parallel program's process number. Without pairs or a number, or with the
 * variable set, the environment stays. returns: as run_pick_node()
 */
bool run_pick_pair(void);

/*
 * Put a word in front of those of a variable whose words have colons between them.
 *
 * returns: true: done; false: a message says why not
 */
bool run_put_first(const char *name, const char *word);

/*
 * Take words out of a variable whose words have colons between them: with their name alone, or in a
 * folder.
 *
 * word: the name of a file, which may be behind any folder; or the path of a folder, without a
 * slash at its end returns: true: done; false: a message says why not
 */
bool run_take_out(const char *name, const char *word);

/*
 * Find the folder of the drop-in libraries.
 *
 * folder: that the user names; NULL: look for it
 * full: room for the path
 * returns: true: found; false: a message says why not
 */
bool run_verbs_folder(const char *folder, char full[PATH_MAX]);

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

/* A urnicd of one command: its socket, messages and all else that it writes lie in a private
 * folder. */
struct run_nicd {
	char config[PATH_MAX];	/* path of its configuration */
	char program[PATH_MAX]; /* path of urnicd */
	char verbs[PATH_MAX]; /* folder of the drop-in libraries, which urnicd must not get; "": not
				 known */
	char folder[64];      /* the private folder */
	char socket[80];      /* in the folder */
	char log[80];	      /* its standard error, in the folder */
	pid_t keeper;	      /* process that starts and stops urnicd, and removes the folder */
	int ended;	      /* end of file here: urnicd ended */
};

/*
 * Be the keeper: run urnicd, stop it after SIGTERM or the death of urnic-run, remove the folder.
 * SIGTERM and SIGCHLD are blocked already.
 *
 * parent: number of urnic-run's process
 * ended: the keeper closes this descriptor when urnicd ends
 */
_Noreturn void run_keep(const struct run_nicd *n, pid_t parent, int ended);

/*
 * Start a urnicd, and wait until it answers. URNIC_SOCKET is set from then on.
 *
 * name: of a configuration that is installed or in the build, or a path
 * n: the rest, to be filled
 * before: the signal mask before, to be restored in the command
 * returns: true: it answers; false: nothing runs and is left, and a message says why
 */
bool run_nicd_start(struct run_nicd *n, const char *name, sigset_t *before);

/*
 * Stop it, and remove what it leaves.
 *
 * returns: true: done; false: urnicd failed before or now, and a message says so
 */
bool run_nicd_stop(struct run_nicd *n);

/*
 * Run a command as a child, and wait for its end; signals that other processes send to urnic-run go
 * to the command.
 *
 * before: signal mask of the command
 * returns: the status of waitpid()
 */
int run_command(char **argv, const sigset_t *before);

/*
 * Become the program that argv names.
 *
 * returns: exit code; a message says why it can't be run
 */
int run_become(char **argv);

/* Signals that go to the command, and SIGCHLD: blocked while it runs. */
void run_signals(sigset_t *set);

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
