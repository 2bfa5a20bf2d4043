/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/ctl.h"

#include "abi/admin.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { WORDS = 8, PATIENCE_S = 10 };

/* returns: a connection, or -1 with *err */
static int
dial(const char *socket_path, struct urn_err *err)
{
	const struct timeval tv = {.tv_sec = PATIENCE_S};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int n = snprintf(addr.sun_path, sizeof(addr.sun_path), "%s" ADMIN_SUFFIX, socket_path);
	int fd;

	if (n < 0 || (size_t)n >= sizeof(addr.sun_path)) {
		urn_err_set(err, "the path of the control socket is too long: %.120s" ADMIN_SUFFIX,
			    socket_path);
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) == 0 &&
	    connect(fd, (const void *)&addr, sizeof(addr)) == 0)
		return fd;
	urn_err_set(err, "cannot reach the control socket %s: %s", addr.sun_path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

int
urn_ctl_send(const char *socket_path, const char *const *words, unsigned int n, struct urn_err *err)
{
	struct admin_ask q = {.magic = ADMIN_MAGIC, .version = ADMIN_VERSION};
	struct iovec iov[1 + WORDS] = {{&q, sizeof(q)}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 1 + n};
	int fd = n <= WORDS ? dial(socket_path, err) : -1;

	if (fd < 0)
		return -1;
	for (unsigned int i = 0; i < n; i++)
		iov[1 + i] = (struct iovec){(void *)(uintptr_t)words[i], strlen(words[i]) + 1};
	/* A dataplane that hangs up has sent its reason before. */
	if (sendmsg(fd, &msg, MSG_NOSIGNAL) >= 0 || errno == EPIPE || errno == ECONNRESET)
		return fd;
	urn_err_set(err, "the dataplane at %s does not take a command: %s", socket_path,
		    strerror(errno));
	close(fd);
	return -1;
}

bool
urn_ctl_ready(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

/* Add a piece to the text, as far as there is room. returns: the text's length */
static size_t
add(char text[URN_CTL_TEXT], size_t length, const char *piece, size_t bytes)
{
	if (bytes > URN_CTL_TEXT - 1 - length)
		bytes = URN_CTL_TEXT - 1 - length;
	memcpy(text + length, piece, bytes);
	text[length + bytes] = '\0';
	return length + bytes;
}

int
urn_ctl_answer(int fd, char text[URN_CTL_TEXT], struct urn_err *err)
{
	char piece[ADMIN_PIECE];
	struct admin_answer a = {0};
	struct iovec iov[2] = {{&a, sizeof(a)}, {piece, sizeof(piece)}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	size_t length = 0;
	ssize_t n;

	text[0] = '\0';
	do {
		do
			n = recvmsg(fd, &msg, 0);
		while (n < 0 && errno == EINTR);
		if (n < (ssize_t)sizeof(a) || a.magic != ADMIN_MAGIC) {
			urn_err_set(err, "the dataplane does not answer a command: %s",
				    n < 0 ? strerror(errno) : "no more answer");
			close(fd);
			return -1;
		}
		n -= (ssize_t)sizeof(a);
		if (a.kind == ADMIN_OUT)
			length = add(text, length, piece, (size_t)n);
	} while (a.kind != ADMIN_END);
	close(fd);
	if (a.status == 0)
		return 0;
	urn_err_set(err, "the dataplane refuses: %.*s", (int)(n < 300 ? n : 300), piece);
	return -1;
}

int
urn_ctl_port(const char *text, const char *adapter, char name[32], char port[32],
	     struct urn_err *err)
{
	char node[32];
	int n = 0;

	/* The first line has the heads of the columns: name, node, port and others. */
	if (sscanf(text, " name node port %n", &n) < 0 || n == 0) {
		urn_err_set(err, "the dataplane does not list its adapters as this release does; "
				 "use one release of urnic");
		return -1;
	}
	for (text = strchr(text, '\n'); text != NULL; text = strchr(text + 1, '\n')) {
		if (sscanf(text + 1, " %31s %31s %31s", name, node, port) != 3)
			continue;
		if (adapter[0] == '\0' || strcmp(adapter, name) == 0 || strcmp(adapter, node) == 0)
			return 0;
	}
	urn_err_set(err, "the dataplane has no adapter and no node '%.32s'", adapter);
	return -1;
}
