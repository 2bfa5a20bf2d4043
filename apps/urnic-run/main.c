/* SPDX-License-Identifier: BSD-3-Clause */
/* urnic-run: run an unmodified program on urnic, by the libraries that take its calls. */
#include "urnic-run/run.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct options {
	bool sockets, verbs, share, explain;
	const char *socket, *node, *net; /* NULL: as the environment says */
	const char *library, *folder;	 /* NULL: look for it */
	const char *start;		 /* configuration of a urnicd to start; NULL: start none */
	const char *seed;		 /* faults' seed; NULL: 0 */
	char *faults;			 /* with semicolons between them; NULL: none */
	bool failed;			 /* an option is wrong, after a message */
};

static void
help(void)
{
	fputs("Usage: urnic-run [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
	      "\n"
	      "Run an unmodified program on urnic (doc/reference/urnic-run.md).\n"
	      "\n"
	      "      --verbs          the program gets urnic's " RUN_VERBS " in place of the\n"
	      "                       system's, and must find a urnicd that answers; so without\n"
	      "                       --sockets, too\n"
	      "      --sockets        UDP sockets reach urnic's nodes as datagram sockets of "
	      "urnic's,\n"
	      "                       TCP sockets as byte streams where both ends are urnic's\n"
	      "      --share          memory that the program registers becomes shared with "
	      "urnicd,\n"
	      "                       where that can be done: faster (with --verbs, or alone)\n"
	      "  -s, --socket PATH    urnicd's socket (URNIC_SOCKET)\n"
	      "  -n, --node NAME      the node or adapter that the program is on (URNIC_NODE);\n"
	      "                       a,b,...: ranks of a parallel program get these in turn\n"
	      "      --net LIST       networks of urnic's nodes, such as 10.0.0.0/24,fd00::/64\n"
	      "                       (URNIC_SOCKETS_NET)\n"
	      "      --library PATH   the library that --sockets preloads; without this\n"
	      "                       " RUN_SOCKETS " beside urnic-run, in ../lib or where\n"
	      "                       the system looks\n"
	      "      --folder PATH    the folder with the " RUN_VERBS " of --verbs; without\n"
	      "                       this urnic/verbs in ../lib, or that of the build\n"
	      "      --start CONFIG   start a urnicd for PROGRAM alone and stop it afterwards; "
	      "CONFIG is\n"
	      "                       the name of a configuration of urnic's, such as two-nodes, "
	      "or the\n"
	      "                       path of a file. Several run at once, each with its own "
	      "socket\n"
	      "      --explain        completions with errors that the program polls are explained "
	      "on the\n"
	      "                       standard error (with --verbs, or alone)\n"
	      "      --fault FAULT    a call, completion or event fails on demand, such as\n"
	      "                       post_send:3=ENOMEM or wc:100=RNR_RETRY_EXC; as often as\n"
	      "                       wanted (doc/reference/faults.md)\n"
	      "      --seed N         of faults with a probability\n"
	      "      --help           this text\n"
	      "      --version        the version\n"
	      "\n"
	      "Exit code: that of PROGRAM; 1 failed, 2 wrong usage, 126 PROGRAM can't be run,\n"
	      "127 there is no PROGRAM.\n",
	      stdout);
}

/* Keep what an option says. c: its letter */
static void
take(struct options *o, int c)
{
	switch (c) {
	case 'v':
		o->verbs = true;
		break;
	case 'S':
		o->sockets = true;
		break;
	case 'H':
		o->share = true;
		o->verbs = true;
		break;
	case 'x':
		o->explain = true;
		o->verbs = true;
		break;
	case 's':
		o->socket = optarg;
		break;
	case 'n':
		o->node = optarg;
		break;
	case 'N':
		o->net = optarg;
		break;
	case 'l':
		o->library = optarg;
		break;
	case 'f':
		o->folder = optarg;
		break;
	case 'T':
		o->start = optarg;
		break;
	case 'F':
		o->failed |= !run_fault(&o->faults, optarg);
		break;
	case 'e':
		o->seed = optarg;
		o->failed |= !run_seed(optarg);
		break;
	}
}

/* returns: -1 to go on, or the exit code */
static int
parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{"verbs", no_argument, NULL, 'v'},
		{"sockets", no_argument, NULL, 'S'},
		{"explain", no_argument, NULL, 'x'},
		{"share", no_argument, NULL, 'H'},
		{"socket", required_argument, NULL, 's'},
		{"node", required_argument, NULL, 'n'},
		{"net", required_argument, NULL, 'N'},
		{"library", required_argument, NULL, 'l'},
		{"folder", required_argument, NULL, 'f'},
		{"start", required_argument, NULL, 'T'},
		{"fault", required_argument, NULL, 'F'},
		{"seed", required_argument, NULL, 'e'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	int c;

	/* Words after the program's name belong to the program. */
	while ((c = getopt_long(argc, argv, "+s:n:h", longs, NULL)) != -1) {
		if (c == '?') {
			fputs("urnic-run: see urnic-run --help\n", stderr);
			return EXIT_USAGE;
		}
		if (c == 'h' || c == 'V') {
			if (c == 'h')
				help();
			else
				puts("urnic-run " URN_VERSION);
			return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILED;
		}
		take(o, c);
		if (o->failed)
			return EXIT_USAGE;
	}
	if (!o->sockets)
		o->verbs = true;
	if (o->start != NULL && o->socket != NULL) {
		fputs("urnic-run: the urnicd of --start has a socket of its own; give no "
		      "--socket\n",
		      stderr);
		return EXIT_USAGE;
	}
	if (optind < argc)
		return -1;
	fputs("urnic-run: no PROGRAM to run; see urnic-run --help\n", stderr);
	return EXIT_USAGE;
}

/* Give the program the preload library. returns: true: done; false: a message says why not */
static bool
run_sockets(const char *library)
{
	char path[PATH_MAX];

	if (library == NULL) {
		library = run_find(RUN_SOCKETS, path, sizeof(path));
		if (library == NULL)
			library = RUN_SOCKETS; /* where the system looks */
	} else if (access(library, R_OK) != 0) {
		fprintf(stderr, "urnic-run: the library %s can't be read: %s\n", library,
			strerror(errno));
		return false;
	}
	if (strpbrk(library, ": ") == NULL)
		return run_put_first("LD_PRELOAD", library);
	fprintf(stderr,
		"urnic-run: the system loads no library whose path has a blank or a colon: %s\n",
		library);
	return false;
}

/* Give the program its environment and libraries, and see that urnicd answers. returns: false: a
 * message says why not */
static bool
prepare(const struct options *o)
{
	if (!run_allow_asan() || !run_tell("URNIC_SOCKET", o->socket) || !run_pick_node(o->node) ||
	    !run_pick_pair() || !run_tell("URNIC_SOCKETS_NET", o->net))
		return false;
	if (o->sockets && !run_sockets(o->library))
		return false;
	if (o->share && !run_share())
		return false;
	if (o->explain && !run_tell("URNIC_EXPLAIN_ERRORS", "1"))
		return false;
	return !o->verbs ||
	       (run_verbs(o->folder) && run_urnicd_answers() && run_faults(o->faults, o->seed));
}

/* Run the program beside a urnicd of its own. returns: the exit code; a program that a signal ended
 * is followed by it */
static int
run_beside(const struct options *o, char **argv)
{
	struct run_nicd nicd = {0};
	sigset_t before;
	int status = EXIT_FAILED << 8; /* a child exits with this code: no child ran */

	if (o->verbs && !run_verbs_folder(o->folder, nicd.verbs))
		return EXIT_FAILED;
	if (!run_nicd_start(&nicd, o->start, &before))
		return EXIT_FAILED;
	if (prepare(o))
		status = run_command(argv, &before);
	if (!run_nicd_stop(&nicd) && status == 0)
		return EXIT_FAILED;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	/* The caller sees the signal. The program has dumped its core already. */
	setrlimit(RLIMIT_CORE, &(struct rlimit){0});
	signal(WTERMSIG(status), SIG_DFL);
	sigprocmask(SIG_SETMASK, &before, NULL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

int
main(int argc, char **argv)
{
	struct options o = {0};
	int code = parse(argc, argv, &o);

	if (code >= 0)
		return code;
	if (!run_fault_variable(&o.faults))
		return EXIT_USAGE;
	if (o.start != NULL)
		return run_beside(&o, argv + optind);
	if (!prepare(&o))
		return EXIT_FAILED;
	return run_become(argv + optind);
}
