/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peer's process: urnicd's control socket tells which program has the queue pair at the other
 * end, and the kernel decides whether this user may end that program.
 */
#include "verbs/fault/state.h"

#include "abi/admin.h"
#include "attach/remote.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	PATIENCE_S = 10,       /* for each piece of an answer */
	ANSWER_MAX = 16 << 20, /* bytes of an answer, at most */
	WORDS = 8,	       /* words of a question, at most */
};

/* Fail with a sentence. returns: err */
static int fail(int err, char *why, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static int
fail(int err, char *why, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, size, fmt, ap);
	va_end(ap);
	return err;
}

/* ---- the control socket */

/* returns: a connection, or -1 with errno set */
static int
dial(void)
{
	const struct timeval tv = {.tv_sec = PATIENCE_S};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	char path[256];
	int fd, n;

	if (urn_remote_path(path, sizeof(path)) == NULL) {
		errno = ENAMETOOLONG;
		return -1;
	}
	n = snprintf(addr.sun_path, sizeof(addr.sun_path), "%s" ADMIN_SUFFIX, path);
	if (n < 0 || (size_t)n >= sizeof(addr.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) == 0 &&
	    connect(fd, (const void *)&addr, sizeof(addr)) == 0)
		return fd;
	n = errno;
	if (fd >= 0)
		close(fd);
	errno = n;
	return -1;
}

/* Receive an answer. returns: the text, which free() takes; NULL with errno set */
static char *
answer(int fd)
{
	struct admin_answer a = {0};
	char *text = NULL, *more;
	size_t len = 0;

	for (;;) {
		struct iovec iov[2] = {{&a, sizeof(a)}, {NULL, ADMIN_PIECE}};
		struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
		ssize_t n;

		more = len < ANSWER_MAX ? realloc(text, len + ADMIN_PIECE + 1) : NULL;
		if (more == NULL)
			break;
		text = more;
		iov[1].iov_base = text + len;
		n = recvmsg(fd, &msg, 0);
		if (n < (ssize_t)sizeof(a) || a.magic != ADMIN_MAGIC)
			break;
		if (a.kind == ADMIN_OUT)
			len += (size_t)n - sizeof(a);
		text[len] = '\0';
		if (a.kind == ADMIN_END && a.status == 0)
			return text;
		if (a.kind == ADMIN_END)
			break;
	}
	free(text);
	errno = EPROTO;
	return NULL;
}

/* Ask a command of a few words. returns: the answer in JSON, which free() takes; NULL with errno
 * set */
static char *
ask(const char *const *words, unsigned int n)
{
	struct admin_ask q = {.magic = ADMIN_MAGIC, .version = ADMIN_VERSION, .json = 1};
	struct iovec iov[1 + WORDS] = {{&q, sizeof(q)}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 1 + n};
	int fd = dial();
	char *text = NULL;
	unsigned int i;

	if (fd < 0)
		return NULL;
	for (i = 0; i < n; i++)
		iov[1 + i] = (struct iovec){(void *)(uintptr_t)words[i], strlen(words[i]) + 1};
	if (sendmsg(fd, &msg, MSG_NOSIGNAL) >= 0)
		text = answer(fd);
	close(fd);
	return text;
}

/* ---- its JSON: an array of objects with words and numbers */

/* Behind a word in quotation marks; at: the first one. */
static const char *
behind(const char *at)
{
	for (at++; *at != '\0' && *at != '"'; at++)
		if (*at == '\\' && at[1] != '\0')
			at++;
	return *at == '"' ? at + 1 : at;
}

/* The value of a key in the object that begins at `at`. returns: NULL: there is none */
static const char *
value(const char *at, const char *key)
{
	size_t len = strlen(key);

	while (*at != '\0' && *at != '}') {
		const char *start = at;

		if (*at != '"') {
			at++;
			continue;
		}
		at = behind(at);
		if ((size_t)(at - start) != len + 2 || memcmp(start + 1, key, len) != 0)
			continue;
		while (isspace((unsigned char)*at))
			at++;
		if (*at != ':')
			continue; /* a value that looks like the key */
		for (at++; isspace((unsigned char)*at); at++)
			;
		return at;
	}
	return NULL;
}

static uint64_t
value_number(const char *at, const char *key)
{
	const char *v = value(at, key);

	return v != NULL ? strtoull(v, NULL, 10) : 0;
}

/* Copy a word. returns: false: there is none, or it has escaped characters */
static bool
value_word(const char *at, const char *key, char *word, size_t size)
{
	const char *v = value(at, key), *end;

	if (v == NULL || *v != '"')
		return false;
	end = behind(v) - 1;
	return (size_t)snprintf(word, size, "%.*s", (int)(end - v - 1), v + 1) < size &&
	       strchr(word, '\\') == NULL;
}

/* The object behind the one at `at`, or the first. returns: NULL: no more */
static const char *
next_object(const char *at)
{
	while (*at != '\0' && *at != '{')
		at = *at == '"' ? behind(at) : at + 1;
	return *at == '{' ? at + 1 : NULL;
}

/* ---- the peer */

/* True when a report's address is one of the pair's adapter. */
static bool
is_ours(const struct urn_fault_pair *pair, const char *address)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	char own[INET6_ADDRSTRLEN];
	uint32_t i;

	for (i = 0; i < pair->gids; i++) {
		const uint8_t *gid = pair->gid[i].raw;
		bool v4 = memcmp(gid, mapped, sizeof(mapped)) == 0;

		if (inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? gid + 12 : gid, own, sizeof(own)) !=
			    NULL &&
		    strcmp(own, address) == 0)
			return true;
	}
	return false;
}

/* The number of the client whose queue pair has this pair's as its peer. returns: 0: there is none
 */
static uint64_t
find_client(const struct urn_fault_pair *pair, const char *qps)
{
	char address[INET6_ADDRSTRLEN];
	const char *at;

	for (at = qps; (at = next_object(at)) != NULL;)
		if (value_number(at, "peer_qpn") == pair->qpn &&
		    value_word(at, "peer", address, sizeof(address)) && is_ours(pair, address))
			return value_number(at, "client");
	return 0;
}

/* True when a process has the name that the report says: its number has the same meaning here. */
static bool
is_process(pid_t pid, const char *name)
{
	char path[40], comm[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	f = fopen(path, "re");
	if (f == NULL)
		return false;
	if (fgets(comm, sizeof(comm), f) != NULL)
		comm[strcspn(comm, "\n")] = '\0';
	fclose(f);
	return strcmp(comm, name) == 0;
}

static int
kill_client(uint64_t client, char *why, size_t size)
{
	char number[24], name[64] = "";
	const char *words[] = {"show", "client", number};
	const char *at;
	char *text;
	pid_t pid;

	snprintf(number, sizeof(number), "%llu", (unsigned long long)client);
	text = ask(words, 3);
	at = text != NULL ? next_object(text) : NULL;
	pid = at != NULL ? (pid_t)value_number(at, "pid") : 0;
	if (pid <= 1 || !value_word(at, "program", name, sizeof(name)) || !is_process(pid, name)) {
		free(text);
		return fail(ESRCH, why, size, "the peer's process is not to be found");
	}
	free(text);
	if (pid == getpid())
		return fail(EPERM, why, size, "the peer is in this very process");
	if (kill(pid, SIGKILL) != 0)
		return fail(errno, why, size, "process %d (%s) can't be ended: %s", (int)pid, name,
			    strerror(errno));
	return 0;
}

int
urn_fault_kill_peer(const struct urn_fault_pair *pair, char *why, size_t size)
{
	static const char *const words[] = {"show", "qp"};
	char *text = ask(words, 2);
	uint64_t client;

	if (text == NULL)
		return fail(errno, why, size, "urnicd's control socket does not tell the peer: %s",
			    strerror(errno));
	client = find_client(pair, text);
	free(text);
	if (client == 0)
		return fail(ESRCH, why, size,
			    "no program of this urnicd has the queue pair at the other end");
	return kill_client(client, why, size);
}
