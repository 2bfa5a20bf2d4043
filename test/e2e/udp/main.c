/* SPDX-License-Identifier: BSD-3-Clause */
/* Usage: udp-calls OWN FOREIGN OWN6 [CASE...] */
#include "udp.h"

#include <arpa/inet.h>
#include <stdio.h>

/* Seconds that a case may take: it hangs. */
enum { CASE_SECONDS = 8 };

struct udp_where udp_where;
static const char *case_name;

long
udp_say(const char *step, long r)
{
	int err = errno;
	char line[256];
	int n = snprintf(line, sizeof(line), "%s: %s: %ld%s%s\n", case_name, step, r,
			 r < 0 ? " " : "", r < 0 ? strerrorname_np(err) : "");

	if (write(1, line, (size_t)n) != n)
		_exit(3);
	return r;
}

void
udp_die(const char *why)
{
	dprintf(1, "%s: cannot run: %s: %s\n", case_name, why, strerror(errno));
	_exit(0);
}

struct sockaddr_in
udp_in(const char *text, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	if (inet_pton(AF_INET, text, &in.sin_addr) != 1)
		udp_die(text);
	return in;
}

struct sockaddr_in6
udp_in6(const char *text, uint16_t port)
{
	struct sockaddr_in6 in = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	if (inet_pton(AF_INET6, text, &in.sin6_addr) != 1)
		udp_die(text);
	return in;
}

int
udp_new(int flags)
{
	int fd = socket(AF_INET, SOCK_DGRAM | flags, 0);

	if (fd < 0)
		udp_die("socket");
	return fd;
}

int
udp_bound(struct sockaddr_in *in)
{
	socklen_t len = sizeof(*in);
	int fd = udp_new(0);

	*in = udp_in(udp_where.own, 0);
	if (bind(fd, (struct sockaddr *)in, sizeof(*in)) != 0 ||
	    getsockname(fd, (struct sockaddr *)in, &len) != 0)
		udp_die("bind");
	return fd;
}

long
udp_to(int fd, const char *text, const struct sockaddr_in *to)
{
	return sendto(fd, text, strlen(text), 0, (const struct sockaddr *)to, sizeof(*to));
}

void
udp_got(const char *step, int fd, size_t room, int flags)
{
	char buf[64] = "", text[160];
	long n;

	errno = 0;
	n = recv(fd, buf, room < sizeof(buf) ? room : sizeof(buf) - 1, flags);
	snprintf(text, sizeof(text), "%s \"%s\"", step, buf);
	udp_say(text, n);
}

bool
udp_same(const struct sockaddr_in *a, const struct sockaddr_in *b)
{
	return a->sin_family == b->sin_family && a->sin_port == b->sin_port &&
	       a->sin_addr.s_addr == b->sin_addr.s_addr;
}

uint64_t
udp_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void
udp_sleep_ms(unsigned int ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
		;
}

void
udp_timeout(int fd, unsigned int ms)
{
	struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000};

	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) != 0)
		udp_die("SO_RCVTIMEO");
}

/* ---- running */

/* Run a case in a child. */
static void
run(const struct udp_case *c)
{
	int status;
	pid_t pid;

	case_name = c->name;
	pid = fork();
	if (pid == 0) {
		alarm(CASE_SECONDS);
		c->run();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		udp_die("fork");
	if (WIFSIGNALED(status))
		dprintf(1, "%s: ended by signal %d%s\n", c->name, WTERMSIG(status),
			WTERMSIG(status) == SIGALRM ? ": a call hangs" : "");
}

static bool
wanted(const char *name, char **list)
{
	if (*list == NULL)
		return true;
	for (; *list != NULL; list++)
		if (strcmp(*list, name) == 0)
			return true;
	return false;
}

int
main(int argc, char **argv)
{
	const struct udp_case *const all[] = {udp_name_cases, udp_data_cases, udp_wait_cases,
					      udp_share_cases};
	const struct udp_case *c;
	size_t i;

	if (argc == 3 && strcmp(argv[1], "--inherited") == 0) {
		case_name = "exec";
		return (int)SAY("inherited is a socket", fcntl(atoi(argv[2]), F_GETFD)) != 0;
	}
	if (argc < 4)
		return 2;
	udp_where = (struct udp_where){argv[1], argv[2], argv[3], argv[0]};
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (c = all[i]; c->name != NULL; c++)
			if (wanted(c->name, argv + 4))
				run(c);
	return 0;
}
