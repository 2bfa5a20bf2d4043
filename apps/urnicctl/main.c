/* SPDX-License-Identifier: BSD-3-Clause */
/* urnicctl: commands to a running urnicd, from a shell. */
#include "urnicd/admin_proto.h"
#include "where.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Bounds of a wait for urnicd, seconds: unless URNIC_TIMEOUT is set, and the longest. */
enum { PATIENCE_S = 60, PATIENCE_MOST_S = 86400 };

struct options {
	const char *socket; /* NULL, "auto": look for the socket */
	const char *file;   /* commands, a line each; "-": the standard input; NULL: one command */
	bool json;
};

static void
help(void)
{
	fputs("Usage: urnicctl [OPTION...] COMMAND...\n"
	      "       urnicctl [OPTION...] -f FILE\n"
	      "\n"
	      "Ask a running urnicd, or tell it something (doc/reference/urnicctl.md).\n"
	      "\n"
	      "  -s, --socket PATH   urnicd's control socket, or its socket for programs; auto, "
	      "the\n"
	      "                      default: of URNIC_SOCKET, $XDG_RUNTIME_DIR/urnic/ or "
	      "/run/urnic/\n"
	      "  -f, --file FILE     take commands from a file, a line each; -: from the standard "
	      "input\n"
	      "      --json          answer as an array of objects\n"
	      "      --help          this text\n"
	      "      --version       the version\n"
	      "\n"
	      "Commands:\n",
	      stdout);
	admin_help(stdout);
	fputs("\nExit code: 0 done, 1 failed, 2 wrong usage.\n", stdout);
}

/* returns: -1 to go on, or the exit code */
static int
parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{"socket", required_argument, NULL, 's'}, {"file", required_argument, NULL, 'f'},
		{"json", no_argument, NULL, 'j'},	  {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},	  {NULL, 0, NULL, 0},
	};
	int c;

	/* Options come first: words after a command belong to the command. */
	while ((c = getopt_long(argc, argv, "+s:f:h", longs, NULL)) != -1) {
		switch (c) {
		case 's':
			o->socket = optarg;
			break;
		case 'f':
			o->file = optarg;
			break;
		case 'j':
			o->json = true;
			break;
		case 'h':
			help();
			return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILED;
		case 'V':
			puts("urnicctl " URN_VERSION);
			return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILED;
		default:
			fputs("urnicctl: see urnicctl --help\n", stderr);
			return EXIT_USAGE;
		}
	}
	return -1;
}

/* ---- connecting */

/* Seconds that urnicd has for an answer. returns: 0 after a message: URNIC_TIMEOUT is wrong */
static unsigned long
patience(void)
{
	const char *told = getenv("URNIC_TIMEOUT");
	unsigned long seconds;
	char *end;

	if (!told || !told[0])
		return PATIENCE_S;
	seconds = strtoul(told, &end, 10);
	if (told[0] >= '0' && told[0] <= '9' && !*end && seconds && seconds <= PATIENCE_MOST_S)
		return seconds;
	fprintf(stderr, "urnicctl: URNIC_TIMEOUT is '%.32s'; it is a number of seconds, 1 to %d\n",
		told, PATIENCE_MOST_S);
	return 0;
}

/* Say that urnicd is there, and is silent. */
static void
tell_silent(const char *path, unsigned long seconds)
{
	fprintf(stderr,
		"urnicctl: the urnicd at %s has not answered for %lu s: is it stopped? "
		"(URNIC_TIMEOUT)\n",
		path, seconds);
}

/* seconds: bound of each wait; returns: a connection, or -1 after a message */
static int
dial(const struct ctl_where *w, unsigned long seconds)
{
	const char *path = w->path;
	const struct timeval tv = {.tv_sec = (time_t)seconds};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(addr.sun_path)) {
		fprintf(stderr, "urnicctl: %s: the path of a socket has at most %zu bytes\n", path,
			sizeof(addr.sun_path) - 1);
		return -1;
	}
	memcpy(addr.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) == 0 &&
	    connect(fd, (const void *)&addr, sizeof(addr)) == 0)
		return fd;
	if (errno == EAGAIN) /* others wait to be let in, as many as may */
		tell_silent(path, seconds);
	else
		ctl_where_tell(w, errno);
	if (fd >= 0)
		close(fd);
	return -1;
}

/* ---- asking */

static int
ask(int fd, bool json, char *const *words, unsigned int n)
{
	struct admin_ask q = {.magic = ADMIN_MAGIC, .version = ADMIN_VERSION, .json = json};
	struct iovec iov[1 + ADMIN_WORDS] = {{&q, sizeof(q)}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 1 + n};

	for (unsigned int i = 0; i < n; i++)
		iov[1 + i] = (struct iovec){words[i], strlen(words[i]) + 1};
	/* urnicd may have hung up already, after sending the reason. */
	if (sendmsg(fd, &msg, MSG_NOSIGNAL) >= 0 || errno == EPIPE || errno == ECONNRESET)
		return 0;
	fprintf(stderr, "urnicctl: urnicd does not take the command: %s\n", strerror(errno));
	return -1;
}

/* The descriptor that a message carries. returns: -1: none */
static int
carried(struct msghdr *msg)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	int fd = -1;

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(fd)))
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* Receive the next piece of the answer. *carries: its descriptor, or -1. returns: as recvmsg() */
static ssize_t
piece(int fd, struct msghdr *msg, int *carries)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))];
	bool reset = false;
	ssize_t n;

	msg->msg_control = room;
	msg->msg_controllen = sizeof(room);

	/* An urnicd that turns us away without reading our question resets the connection; the
	 * reason follows, once. */
	do {
		n = recvmsg(fd, msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && (errno == EINTR || (errno == ECONNRESET && !reset && (reset = true))));
	*carries = n < 0 ? -1 : carried(msg);
	return n;
}

/* Say why no whole piece came. n: as recvmsg() returned it */
static void
tell_no_piece(ssize_t n, const char *path, unsigned long seconds)
{
	if (n < 0 && errno == EAGAIN)
		tell_silent(path, seconds);
	else if (n > 0)
		fputs("urnicctl: the answer is not urnicd's: is the socket its control socket?\n",
		      stderr);
	else
		fputs("urnicctl: urnicd hung up: urnicd ends, or the socket is not its control "
		      "socket\n",
		      stderr);
}

/* A place in a pcapng file: blocks of type, length, body, length; in urnicd's byte order, ours. */
struct block_place {
	char head[8];	   /* type and length of the block, as far as they came */
	size_t head_bytes; /* bytes of the head that came; 0: between two blocks */
	size_t left;	   /* bytes to the block's end, once the head is whole */
};

/* Go n bytes on in a file. The blocks are urnicd's own, and nothing relies on their lengths. */
static void
go_on(struct block_place *p, const char *data, size_t n)
{
	while (n > 0) {
		size_t part =
			p->head_bytes < sizeof(p->head) ? sizeof(p->head) - p->head_bytes : p->left;

		part = part < n ? part : n;
		if (p->head_bytes < sizeof(p->head)) {
			uint32_t len;

			memcpy(p->head + p->head_bytes, data, part);
			p->head_bytes += part;
			memcpy(&len, p->head + 4, sizeof(len));
			p->left = len > sizeof(p->head) ? len - sizeof(p->head) : 0;
		} else {
			p->left -= part;
		}
		if (p->head_bytes == sizeof(p->head) && p->left == 0)
			p->head_bytes = 0;
		data += part;
		n -= part;
	}
}

/* Copy a capture to the standard output until it ends, or nobody reads there. returns: the exit
 * code */
static int
copy_capture(int fd)
{
	static char data[65536];
	struct block_place place = {.head_bytes = 0};
	ssize_t n, done;

	while ((n = read(fd, data, sizeof(data))) != 0) {
		if (n < 0 && errno != EINTR) {
			fprintf(stderr, "urnicctl: can't read the capture: %s\n", strerror(errno));
			return EXIT_FAILED;
		}
		if (n > 0)
			go_on(&place, data, (size_t)n);
		for (const char *at = data; n > 0; at += done, n -= done) {
			done = write(STDOUT_FILENO, at, (size_t)n);
			if (done < 0 && errno == EPIPE)
				return EXIT_SUCCESS; /* Wireshark was closed */
			if (done < 0 && errno != EINTR) {
				fprintf(stderr, "urnicctl: can't write the capture: %s\n",
					strerror(errno));
				return EXIT_FAILED;
			}
			done = done < 0 ? 0 : done;
		}
	}
	if (place.head_bytes != 0) {
		fputs("urnicctl: the capture is not whole: it ends within a frame, because "
		      "urnicd ended, or stopped it while nobody read\n",
		      stderr);
		return EXIT_FAILED;
	}
	return EXIT_SUCCESS;
}

/* Print the end of an answer. pipe: a capture, or -1. returns: the exit code */
static int
finish(const struct admin_answer *a, const char *text, int pipe)
{
	int rc = a->status;

	if (fflush(stdout) != 0) {
		fprintf(stderr, "urnicctl: can't write the answer: %s\n", strerror(errno));
		rc = EXIT_FAILED;
	} else if (rc) {
		fprintf(stderr, "urnicctl: %s\n", text);
	} else if (pipe >= 0) {
		rc = copy_capture(pipe);
	}
	if (pipe >= 0)
		close(pipe);
	return rc;
}

/* Print the answer. returns: the exit code */
static int
answer(int fd, const char *path, unsigned long seconds)
{
	static char text[ADMIN_PIECE + 1];
	struct admin_answer a;
	struct iovec iov[2] = {{&a, sizeof(a)}, {text, ADMIN_PIECE}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

	for (;;) {
		int carries;
		ssize_t n = piece(fd, &msg, &carries);

		if (n < (ssize_t)sizeof(a) || a.magic != ADMIN_MAGIC) {
			tell_no_piece(n, path, seconds);
			return EXIT_FAILED;
		}
		n -= (ssize_t)sizeof(a);
		if (a.kind == ADMIN_OUT) {
			if (fwrite(text, 1, (size_t)n, stdout) == (size_t)n)
				continue;
			fprintf(stderr, "urnicctl: can't write the answer: %s\n", strerror(errno));
			return EXIT_FAILED;
		}
		text[n] = '\0';
		return finish(&a, text, carries);
	}
}

/* True when a command's answer is a capture. */
static bool
is_stream(const struct admin_call *call)
{
	const char *file = admin_arg(call, "FILE");

	return call->id == ADMIN_capture_start && file && strcmp(file, "-") == 0;
}

/* The urnicd that is asked. */
struct target {
	struct ctl_where where;
	unsigned long seconds; /* bound of a wait */
};

/* Carry out one command. returns: the exit code */
static int
run(const struct target *t, bool json, char *const *words, unsigned int n)
{
	struct admin_call call;
	struct admin_why why;
	size_t bytes = 0;
	int rc, fd;

	/* Refuse a wrong command here, without asking; urnicd checks again. */
	if (admin_parse(&call, words, n, &why) != 0) {
		fprintf(stderr, "urnicctl: %s\n", why.text);
		return EXIT_USAGE;
	}
	if (is_stream(&call) && isatty(STDOUT_FILENO)) {
		fputs("urnicctl: a capture is nothing for a terminal; add: | wireshark -k -i -\n",
		      stderr);
		return EXIT_USAGE;
	}
	json &= !is_stream(&call); /* only the capture goes to the standard output */
	for (unsigned int i = 0; i < n; i++)
		bytes += strlen(words[i]) + 1;
	if (bytes > ADMIN_LINE || n > ADMIN_WORDS) {
		fprintf(stderr, "urnicctl: a command has at most %d bytes\n", ADMIN_LINE);
		return EXIT_USAGE;
	}
	fd = dial(&t->where, t->seconds);
	if (fd < 0)
		return EXIT_FAILED;
	rc = ask(fd, json, words, n) == 0 ? answer(fd, t->where.path, t->seconds) : EXIT_FAILED;
	close(fd);
	return rc;
}

/* Carry out one line of a file. size: its bytes, with those behind a NUL. returns: the exit code */
static int
run_line(const struct target *t, bool json, char *line, size_t size)
{
	char *words[ADMIN_WORDS];
	struct admin_why why;
	int n;

	if (strlen(line) != size) {
		fputs("urnicctl: a line with a NUL byte is no command; is this text?\n", stderr);
		return EXIT_USAGE;
	}
	n = admin_split(line, words, &why);
	if (n < 0) {
		fprintf(stderr, "urnicctl: %s\n", why.text);
		return EXIT_USAGE;
	}
	return n == 0 ? EXIT_SUCCESS : run(t, json, words, (unsigned int)n);
}

/*
 * Carry out the commands of a file, and go on after one that failed. returns: the exit code: that
 * of the first command that failed
 */
static int
run_file(const struct target *t, const struct options *o)
{
	bool input = strcmp(o->file, "-") == 0;
	FILE *f = input ? stdin : fopen(o->file, "re");
	unsigned int at = 0;
	int rc = EXIT_SUCCESS, one;
	char *line = NULL;
	size_t room = 0;
	ssize_t n;

	errno = f ? 0 : errno;
	while (f && (n = getline(&line, &room, f)) >= 0) {
		at++;
		one = run_line(t, o->json, line, (size_t)n);
		if (one != EXIT_SUCCESS)
			fprintf(stderr, "urnicctl: line %u of %s failed\n", at,
				input ? "the standard input" : o->file);
		rc = rc ? rc : one;
	}
	if (!f || ferror(f)) {
		fprintf(stderr, "urnicctl: %s can't be read: %s\n", o->file, strerror(errno));
		rc = EXIT_USAGE;
	}
	free(line);
	if (f && !input)
		fclose(f);
	return rc;
}

int
main(int argc, char **argv)
{
	struct options o = {0};
	int rc = parse(argc, argv, &o);
	struct target t;

	if (rc >= 0)
		return rc;
	if (o.file && optind < argc) {
		fputs("urnicctl: give a command, or a file of them, not both\n", stderr);
		return EXIT_USAGE;
	}
	signal(SIGPIPE, SIG_IGN);
	if (!ctl_where_find(o.socket, &t.where)) {
		fputs("urnicctl: the path of the socket is too long\n", stderr);
		return EXIT_FAILED;
	}
	t.seconds = patience();
	if (t.seconds == 0)
		return EXIT_USAGE;
	return o.file ? run_file(&t, &o)
		      : run(&t, o.json, argv + optind, (unsigned int)(argc - optind));
}
