/* SPDX-License-Identifier: BSD-3-Clause */
/* --start: a urnicd for the time of one command. */
#include "urnic-run/run.h"

#include <urnic/attach.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	START_SECONDS = 60,
	TURN_MS = 20,
	TAIL_LINES = 10,  /* last lines of urnicd's messages that people get */
	TAIL_BYTES = 4096 /* ... within so many bytes */
};

/* Show urnicd's last messages. */
static void
show_tail(const struct run_nicd *n)
{
	int fd = open(n->log, O_RDONLY | O_CLOEXEC), lines = 0;
	char text[TAIL_BYTES + 1], *at;
	ssize_t got = -1;

	if (fd >= 0) {
		(void)(lseek(fd, -TAIL_BYTES, SEEK_END) < 0 && lseek(fd, 0, SEEK_SET));
		got = read(fd, text, TAIL_BYTES);
		close(fd);
	}
	if (got <= 0) {
		fputs("urnic-run: urnicd left no message\n", stderr);
		return;
	}
	text[got] = '\0';
	if (text[got - 1] == '\n')
		text[got - 1] = '\0';
	for (at = text + strlen(text); at > text; at--)
		if (at[-1] == '\n' && ++lines == TAIL_LINES)
			break;
	fprintf(stderr, "urnic-run: the last messages of urnicd:\n%s\n", at);
}

/* Find urnicd and its configuration. returns: false: a message says what is missing */
static bool
find_parts(struct run_nicd *n, const char *name)
{
	const char *end = strrchr(name, '.');
	bool whole = end != NULL && strcmp(end, ".ini") == 0;
	char file[NAME_MAX];

	if (strchr(name, '/') != NULL || access(name, R_OK) == 0) {
		if (realpath(name, n->config) == NULL || access(n->config, R_OK) != 0) {
			fprintf(stderr, "urnic-run: the configuration %s can't be read: %s\n", name,
				strerror(errno));
			return false;
		}
	} else if ((size_t)snprintf(file, sizeof(file), "%s%s", name, whole ? "" : ".ini") >=
			   sizeof(file) ||
		   run_find(file, n->config, sizeof(n->config)) == NULL) {
		fprintf(stderr,
			"urnic-run: there is no configuration %s%s of urnic's; give --start "
			"two-nodes, or the path of a file\n",
			name, whole ? "" : ".ini");
		return false;
	}
	if (run_find("urnicd", n->program, sizeof(n->program)) == NULL)
		strcpy(n->program, "urnicd"); /* where the shell finds programs */
	return true;
}

/* Make the private folder. returns: false: a message says why not */
static bool
make_folder(struct run_nicd *n)
{
	const char *const places[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int len = places[i] == NULL || places[i][0] != '/'
				  ? -1
				  : snprintf(n->folder, sizeof(n->folder), "%s/urnic-run.XXXXXX",
					     places[i]);

		if (len < 0 || (size_t)len >= sizeof(n->folder) || mkdtemp(n->folder) == NULL)
			continue;
		snprintf(n->socket, sizeof(n->socket), "%s/nicd.sock", n->folder);
		snprintf(n->log, sizeof(n->log), "%s/nicd.log", n->folder);
		return true;
	}
	fprintf(stderr, "urnic-run: no private folder for urnicd can be made in /tmp: %s\n",
		strerror(errno));
	return false;
}

/* Start the keeper, which starts urnicd. returns: false: a message says why not */
static bool
start_keeper(struct run_nicd *n)
{
	pid_t parent = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) == 0) {
		n->keeper = fork();
		if (n->keeper == 0) {
			close(ends[0]);
			run_keep(n, parent, ends[1]);
		}
		close(ends[1]);
		n->ended = ends[0];
		if (n->keeper > 0)
			return true;
		close(ends[0]);
	}
	fprintf(stderr, "urnic-run: no process for urnicd: %s\n", strerror(errno));
	rmdir(n->folder);
	return false;
}

/* True when urnicd ended within so many milliseconds. */
static bool
has_ended(const struct run_nicd *n, int ms)
{
	struct pollfd p = {.fd = n->ended};

	return poll(&p, 1, ms) > 0;
}

/* Wait until something answers at the socket. returns: false: a message says why nothing does */
static bool
wait_for_answer(const struct run_nicd *n)
{
	time_t end = time(NULL) + START_SECONDS;
	struct ibv_context *c;

	while (!has_ended(n, TURN_MS)) {
		c = urn_attach_connect(n->socket, NULL);
		if (c != NULL) {
			ibv_close_device(c);
			return true;
		}
		/* Another error is one of the program's start: run_urnicd_answers() tells it. */
		if (errno != ENOENT && errno != ECONNREFUSED)
			return true;
		if (time(NULL) > end) {
			fprintf(stderr, "urnic-run: urnicd did not answer within %d seconds\n",
				START_SECONDS);
			show_tail(n);
			return false;
		}
	}
	fprintf(stderr, "urnic-run: urnicd -c %s ended at its start\n", n->config);
	show_tail(n);
	return false;
}

/* End the keeper. returns: its exit code, that of urnicd */
static int
end_keeper(struct run_nicd *n)
{
	int status = 0;

	kill(n->keeper, SIGTERM);
	while (waitpid(n->keeper, &status, 0) < 0 && errno == EINTR)
		;
	close(n->ended);
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

bool
run_nicd_start(struct run_nicd *n, const char *name, sigset_t *before)
{
	sigset_t set;

	if (!find_parts(n, name) || !make_folder(n))
		return false;
	run_signals(&set);
	sigprocmask(SIG_BLOCK, &set, before);
	if (!start_keeper(n))
		return false;
	if (wait_for_answer(n) && run_tell("URNIC_SOCKET", n->socket))
		return true;
	end_keeper(n);
	return false;
}

/* True when no process has the socket any more. */
static bool
nobody_listens(const struct run_nicd *n)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	/* A socket of another type than urnicd's is refused, and urnicd sees no connection. */
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool nobody;

	if (fd < 0)
		return false;
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", n->socket);
	nobody = connect(fd, (const struct sockaddr *)&at, sizeof(at)) != 0 &&
		 (errno == ECONNREFUSED || errno == ENOENT);
	close(fd);
	return nobody;
}

bool
run_nicd_stop(struct run_nicd *n)
{
	/* The keeper may learn a little later than others that urnicd is dead. */
	bool early = has_ended(n, 0) || (nobody_listens(n) && has_ended(n, START_SECONDS * 1000));
	int code;

	if (early) {
		fputs("urnic-run: urnicd ended before the command\n", stderr);
		show_tail(n);
	}
	code = end_keeper(n);
	if (!early && code != 0)
		fprintf(stderr, "urnic-run: urnicd ended with exit code %d\n", code);
	return !early && code == 0;
}
