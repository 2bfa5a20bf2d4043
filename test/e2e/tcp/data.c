/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases of bytes: calls that move them, and ends. */
#include "tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MUCH = 6 << 20, FILE_BYTES = 300000 };

/* ---- peek */

static void
client_peek(int fd)
{
	char buf[16];

	(void)tcp_say("write", write(fd, "abcdef", 6));
	(void)tcp_say("write nothing", write(fd, "", 0));
	tcp_say_bytes("answer", buf, recv(fd, buf, 3, MSG_WAITALL));
}

static void
server_peek(int fd)
{
	char buf[16];
	int bytes = 0;

	(void)tcp_say("poll", tcp_ready(fd, POLLIN, 5000));
	tcp_say_bytes("peek", buf, recv(fd, buf, 4, MSG_PEEK));
	(void)tcp_say("FIONREAD", ioctl(fd, FIONREAD, &bytes));
	(void)tcp_say("bytes", bytes);
	(void)tcp_say("poll behind", tcp_ready(fd, POLLIN, 0));
	tcp_say_bytes("read", buf, read(fd, buf, 2));
	tcp_say_bytes("peek rest", buf, recv(fd, buf, sizeof(buf), MSG_PEEK));
	tcp_say_bytes("rest", buf, recv(fd, buf, 4, MSG_WAITALL));
	(void)tcp_say("no more", recv(fd, buf, 1, MSG_DONTWAIT));
	(void)tcp_say("read nothing", read(fd, buf, 0));
	(void)tcp_say("send", send(fd, "xyz", 3, 0));
	(void)tcp_say("the end", read(fd, buf, sizeof(buf)));
	(void)tcp_say("the end again", recv(fd, buf, 1, MSG_PEEK));
}

/* ---- pieces */

static void
client_pieces(int fd)
{
	char a[] = "one", b[] = "two!", c[40];
	struct iovec iov[] = {{a, 3}, {c, 0}, {b, 4}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 3};

	(void)tcp_say("writev", writev(fd, iov, 3));
	(void)tcp_say("writev of nothing", writev(fd, iov + 1, 1));
	(void)tcp_say("sendmsg", sendmsg(fd, &msg, 0));
	(void)tcp_say("sendto", sendto(fd, "end", 3, 0, NULL, 0));
	tcp_say_bytes("answer", c, recv(fd, c, 17, MSG_WAITALL));
}

static void
server_pieces(int fd)
{
	char a[5], b[30] = "";
	struct iovec iov[] = {{a, sizeof(a)}, {b, 12}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

	(void)tcp_say("recvmsg", recvmsg(fd, &msg, MSG_WAITALL));
	(void)tcp_say("flags", msg.msg_flags & MSG_CTRUNC);
	tcp_say_bytes("first", a, sizeof(a));
	tcp_say_bytes("second", b, 12);
	(void)tcp_say("write", write(fd, a, sizeof(a)));
	(void)tcp_say("write", write(fd, b, 12));
}

/* ---- receives of all that waits */

enum { SHORT_PARTS = 40, SHORT_BYTES = 100 };

static void
client_whole(int fd)
{
	static char buf[SHORT_PARTS * SHORT_BYTES];

	(void)tcp_say("send", send(fd, "abcdef", 6, 0));
	tcp_meet(fd);
	(void)tcp_say("send much", send(fd, buf, sizeof(buf), 0));
	tcp_meet(fd);
}

static void
server_whole(int fd)
{
	static char buf[SHORT_PARTS * SHORT_BYTES];
	struct iovec iov[SHORT_PARTS];
	int bytes = 0;

	for (size_t i = 0; i < SHORT_PARTS; i++)
		iov[i] = (struct iovec){buf + i * SHORT_BYTES, SHORT_BYTES};
	(void)tcp_say("poll", tcp_ready(fd, POLLIN, 5000));
	tcp_say_bytes("peek", buf, recv(fd, buf, 2, MSG_PEEK));
	tcp_say_bytes("read", buf, recv(fd, buf, 6, 0));
	tcp_meet(fd);
	while (ioctl(fd, FIONREAD, &bytes) == 0 && bytes < (int)sizeof(buf))
		usleep(1000);
	(void)tcp_say("readv", readv(fd, iov, SHORT_PARTS));
	tcp_meet(fd);
}

/* ---- half-close */

static void
client_half(int fd)
{
	char buf[16];

	(void)tcp_say("send", send(fd, "question", 8, 0));
	(void)tcp_say("shutdown", shutdown(fd, SHUT_WR));
	(void)tcp_say("send behind", send(fd, "x", 1, MSG_NOSIGNAL));
	tcp_say_bytes("answer", buf, recv(fd, buf, 6, MSG_WAITALL));
	(void)tcp_say("the end", recv(fd, buf, 1, 0));
}

static void
server_half(int fd)
{
	char buf[16];

	tcp_say_bytes("question", buf, recv(fd, buf, sizeof(buf), MSG_WAITALL));
	(void)tcp_say("poll at the end", tcp_ready(fd, POLLIN, 0));
	(void)tcp_say("the end", recv(fd, buf, 1, 0));
	(void)tcp_say("answer", send(fd, "answer", 6, 0));
}

/* ---- much, both ways at once */

static uint8_t
byte_at(size_t i, unsigned int seed)
{
	return (uint8_t)(i * 2654435761u >> 13 ^ i ^ seed);
}

/* Send what fits. returns: bytes, or -1 */
static ssize_t
much_out(int fd, size_t at, unsigned int seed)
{
	uint8_t buf[50000];
	size_t n = 1 + at % sizeof(buf);

	n = n < MUCH - at ? n : MUCH - at;
	for (size_t i = 0; i < n; i++)
		buf[i] = byte_at(at + i, seed);
	return write(fd, buf, n);
}

/* returns: bytes, or -1; -2: they are wrong */
static ssize_t
much_in(int fd, size_t at, unsigned int seed)
{
	uint8_t buf[40000];
	size_t room = 1 + at * 7 % sizeof(buf);
	ssize_t n = read(fd, buf, room < MUCH - at ? room : MUCH - at);

	for (ssize_t i = 0; i < n; i++)
		if (buf[i] != byte_at(at + (size_t)i, seed))
			return -2;
	return n;
}

static void
much(int fd, unsigned int own, unsigned int other)
{
	size_t out = 0, in = 0;
	ssize_t n = 0;

	tcp_block(fd, false);
	while ((out < MUCH || in < MUCH) && n >= 0) {
		int r = tcp_ready(
			fd, (short)((out < MUCH ? POLLOUT : 0) | (in < MUCH ? POLLIN : 0)), 5000);

		if (r <= 0)
			break;
		n = r & POLLOUT ? much_out(fd, out, own) : 0;
		out += n > 0 ? (size_t)n : 0;
		n = n < 0 && errno == EAGAIN ? 0 : n;
		if (n < 0 || !(r & POLLIN))
			continue;
		n = much_in(fd, in, other);
		if (n == 0)
			break;
		in += n > 0 ? (size_t)n : 0;
		n = n == -1 && errno == EAGAIN ? 0 : n;
	}
	(void)tcp_say("last", n < 0 ? n : 0);
	(void)tcp_say("sent", (long)out);
	(void)tcp_say("received", (long)in);
	tcp_block(fd, true);
	tcp_meet(fd);
}

static void
client_much(int fd)
{
	much(fd, 1, 2);
}

static void
server_much(int fd)
{
	much(fd, 2, 1);
}

/* ---- files */

static void
client_file(int fd)
{
	int file = memfd_create("file", 0), pipes[2];
	off_t at = 1000;
	uint8_t b;

	for (size_t i = 0; i < FILE_BYTES; i++) {
		b = byte_at(i, 3);
		if (write(file, &b, 1) != 1)
			return;
	}
	(void)tcp_say("sendfile at", sendfile(fd, file, &at, 5000));
	(void)tcp_say("place", (long)at);
	(void)lseek(file, 6000, SEEK_SET);
	(void)tcp_say("sendfile", sendfile(fd, file, NULL, FILE_BYTES));
	(void)tcp_say("place", (long)lseek(file, 0, SEEK_CUR));
	(void)tcp_say("sendfile at the end", sendfile(fd, file, NULL, 10));
	close(file);
	(void)tcp_say("sendfile of no file", sendfile(fd, file, NULL, 10));
	if (pipe(pipes) == 0) {
		(void)tcp_say("sendfile of a pipe", sendfile(fd, pipes[0], NULL, 10));
		close(pipes[0]);
		close(pipes[1]);
	}
	tcp_meet(fd);
}

static void
server_file(int fd)
{
	static uint8_t buf[FILE_BYTES];
	long wrong = 0;
	ssize_t n = recv(fd, buf, FILE_BYTES - 1000, MSG_WAITALL);

	(void)tcp_say("receive", n);
	for (ssize_t i = 0; i < n; i++)
		wrong += buf[i] != byte_at((size_t)i + 1000, 3);
	(void)tcp_say("wrong", wrong);
	tcp_meet(fd);
}

/* ---- ends */

static void
client_reset(int fd)
{
	char buf[4];

	tcp_meet(fd);
	(void)tcp_say("reset", recv(fd, buf, sizeof(buf), 0));
	(void)tcp_say("send", send(fd, "x", 1, MSG_NOSIGNAL) < 0);
}

static void
server_reset(int fd)
{
	const struct linger linger = {1, 0};

	tcp_meet(fd);
	(void)tcp_say("SO_LINGER", setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
}

static void
client_error(int fd)
{
	int err = -1;
	socklen_t len = sizeof(err);

	tcp_meet(fd);
	(void)tcp_say("poll", tcp_ready(fd, POLLIN, 5000) & POLLERR);
	(void)tcp_say("SO_ERROR", getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len));
	(void)tcp_say("its value", err);
	(void)tcp_say("SO_ERROR", getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len));
	(void)tcp_say("its value", err);
}

static void
client_gone(int fd)
{
	char buf[4];
	ssize_t n = 0;

	tcp_meet(fd);
	(void)tcp_say("the end", recv(fd, buf, sizeof(buf), 0));
	for (int i = 0; i < 500 && n >= 0; i++) {
		n = send(fd, "x", 1, MSG_NOSIGNAL);
		usleep(1000);
	}
	(void)tcp_say("send to nobody", n < 0 && (errno == EPIPE || errno == ECONNRESET));
}

static void
server_gone(int fd)
{
	tcp_meet(fd);
}

/* ---- copies */

static void
client_copies(int fd)
{
	int other = dup(fd);
	char buf[8];

	(void)tcp_say("close", close(fd));
	(void)tcp_say("send by a copy", send(other, "copy", 4, 0));
	tcp_say_bytes("answer", buf, recv(other, buf, 4, MSG_WAITALL));
	(void)tcp_say("dup2", dup2(other, fd) == fd ? 0 : -1);
	close(other);
	(void)tcp_say("send", send(fd, "last", 4, 0));
	tcp_say_bytes("answer", buf, recv(fd, buf, 4, MSG_WAITALL));
}

static void
server_copies(int fd)
{
	char buf[8];

	for (int i = 0; i < 2; i++) {
		tcp_say_bytes("came", buf, recv(fd, buf, 4, MSG_WAITALL));
		(void)tcp_say("send", send(fd, buf, 4, 0));
	}
	(void)tcp_say("the end", recv(fd, buf, 4, 0));
}

const struct tcp_case tcp_data_cases[] = {{"peek", server_peek, client_peek},
					  {"pieces", server_pieces, client_pieces},
					  {"whole", server_whole, client_whole},
					  {"half", server_half, client_half},
					  {"much", server_much, client_much},
					  {"file", server_file, client_file},
					  {"reset", server_reset, client_reset},
					  {"error", server_reset, client_error},
					  {"gone", server_gone, client_gone},
					  {"copies", server_copies, client_copies},
					  {NULL, NULL, NULL}};
