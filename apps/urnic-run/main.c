/* SPDX-License-Identifier: BSD-3-Clause */
/* urnic-run: run an unmodified program on urnic, by the library that takes its calls. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NOT_RUN = 126, EXIT_NOT_FOUND = 127 };

#define RUN_SOCKETS "liburnic-sockets.so"

struct options {
	bool sockets;
	const char *socket, *node, *net; /* NULL: as the environment says */
	const char *library;		 /* NULL: look for it */
};

static void
help(void)
{
	fputs("Usage: urnic-run --sockets [OPTION...] PROGRAM [ARGUMENT...]\n"
	      "\n"
	      "Run an unmodified program on urnic (doc/reference/urnic-run.md).\n"
	      "\n"
	      "      --sockets        UDP sockets reach urnic's nodes as datagram sockets of "
	      "urnic's\n"
	      "  -s, --socket PATH    urnicd's socket (URNIC_SOCKET)\n"
	      "  -n, --node NAME      the node or adapter that the program is on (URNIC_NODE)\n"
	      "      --net LIST       networks of urnic's nodes, such as 10.0.0.0/24,fd00::/64\n"
	      "                       (URNIC_SOCKETS_NET)\n"
	      "      --library PATH   the library to preload; without this " RUN_SOCKETS "\n"
	      "                       beside urnic-run, in ../lib or where the system looks\n"
	      "      --help           this text\n"
	      "      --version        the version\n"
	      "\n"
	      "Exit code: that of PROGRAM; 1 failed, 2 wrong usage, 126 PROGRAM can't be run,\n"
	      "127 there is no PROGRAM.\n",
	      stdout);
}

/* returns: -1 to go on, or the exit code */
static int
parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{"sockets", no_argument, NULL, 'S'},	   {"socket", required_argument, NULL, 's'},
		{"node", required_argument, NULL, 'n'},	   {"net", required_argument, NULL, 'N'},
		{"library", required_argument, NULL, 'l'}, {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},	   {NULL, 0, NULL, 0},
	};
	int c;

	/* Words after the program's name belong to the program. */
	while ((c = getopt_long(argc, argv, "+s:n:h", longs, NULL)) != -1) {
		switch (c) {
		case 'S':
			o->sockets = true;
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
		case 'h':
			help();
			return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILED;
		case 'V':
			puts("urnic-run " URN_VERSION);
			return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILED;
		default:
			fputs("urnic-run: see urnic-run --help\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind == argc)
		fputs("urnic-run: no PROGRAM to run; see urnic-run --help\n", stderr);
	else if (!o->sockets)
		fputs("urnic-run: say by --sockets which calls of the program urnic is to take\n",
		      stderr);
	else
		return -1;
	return EXIT_USAGE;
}

/* Find the library beside this program: installed, or in the folder of a build. returns: path */
static const char *
find_library(char *path, size_t size)
{
	static const char *const places[] = {"",
					     "../lib/",
					     "../lib/urnic/",
					     "../lib/x86_64-linux-gnu/",
					     "../lib/aarch64-linux-gnu/",
					     "../../lib/sockets/"};
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;
	size_t i;

	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	if (slash != NULL)
		slash[1] = '\0';
	for (i = 0; slash != NULL && i < sizeof(places) / sizeof(places[0]); i++) {
		int len = snprintf(path, size, "%s%s" RUN_SOCKETS, self, places[i]);

		if (len > 0 && (size_t)len < size && access(path, R_OK) == 0)
			return path;
	}
	snprintf(path, size, RUN_SOCKETS);
	return path;
}

/* Set a variable of the program's environment. value: NULL: it stays as it is; returns: true: done
 */
static bool
tell(const char *name, const char *value)
{
	if (value == NULL || setenv(name, value, 1) == 0)
		return true;
	fprintf(stderr, "urnic-run: %s can't be set: %s\n", name, strerror(errno));
	return false;
}

/* Put the library in front of those that the program is to have loaded already. returns: true: done
 */
static bool
preload(const char *library)
{
	const char *before = getenv("LD_PRELOAD");
	char *all;
	bool ok;

	if (before == NULL || before[0] == '\0')
		return tell("LD_PRELOAD", library);
	if (asprintf(&all, "%s:%s", library, before) < 0)
		return false;
	ok = tell("LD_PRELOAD", all);
	free(all);
	return ok;
}

int
main(int argc, char **argv)
{
	struct options o = {0};
	char path[PATH_MAX];
	int code = parse(argc, argv, &o);

	if (code >= 0)
		return code;
	if (o.library == NULL) {
		o.library = find_library(path, sizeof(path));
	} else if (access(o.library, R_OK) != 0) {
		fprintf(stderr, "urnic-run: the library %s can't be read: %s\n", o.library,
			strerror(errno));
		return EXIT_FAILED;
	}
	if (strpbrk(o.library, ": ") != NULL) {
		fprintf(stderr,
			"urnic-run: the system loads no library whose path has a blank or a colon: "
			"%s\n",
			o.library);
		return EXIT_FAILED;
	}
	if (!tell("URNIC_SOCKET", o.socket) || !tell("URNIC_NODE", o.node) ||
	    !tell("URNIC_SOCKETS_NET", o.net) || !preload(o.library))
		return EXIT_FAILED;
	execvp(argv[optind], argv + optind);
	code = errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN;
	fprintf(stderr, "urnic-run: %s can't be run: %s\n", argv[optind], strerror(errno));
	return code;
}
