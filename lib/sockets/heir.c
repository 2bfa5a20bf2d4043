/* SPDX-License-Identifier: BSD-3-Clause */
#include "sockets/heir.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- writing: in a child of vfork() and in handlers of signals, too */

/* Write name and peer of a urnic socket, or of one that is still to be made after exec(). */
static void
urn_heir_names(struct urn_heir_entry *e, const struct urn_twin *t)
{
	const struct urn_sock *s = atomic_load(&t->sock);
	bool pending = s == NULL && atomic_load(&t->pending);
	const struct urn_addr *local = pending ? &t->local : s != NULL ? &s->local : NULL;
	const struct urn_addr *peer = pending ? &t->peer : s != NULL ? &s->peer : NULL;

	if (local != NULL && (pending ? t->heir_bound : s->bound != 0)) {
		e->flags |= URN_HEIR_BOUND;
		memcpy(e->local_gid, local->gid, sizeof(e->local_gid));
		e->local_port = local->port;
	}
	if (peer != NULL && (pending ? t->heir_connected : atomic_load(&s->connected) != 0)) {
		e->flags |= URN_HEIR_CONNECTED;
		memcpy(e->peer_gid, peer->gid, sizeof(e->peer_gid));
		e->peer_port = peer->port;
	}
}

/* Write the entry of a descriptor. returns: false: it has no twin, or closes at exec() and is not
 * wanted */
static bool
urn_heir_entry(struct urn_heir_entry *e, int fd, bool all)
{
	const struct urn_twin *t = urn_twin_glance(fd);
	uint32_t shut;
	int bits;

	if (t == NULL)
		return false;
	bits = all ? 0 : urn_real()->fcntl(fd, F_GETFD);
	if (bits < 0 || (bits & FD_CLOEXEC) != 0)
		return false;
	memset(e, 0, sizeof(*e));
	e->cookie = t->cookie;
	e->family = (uint32_t)t->family;
	urn_heir_names(e, t);
	shut = atomic_load(&t->shut);
	e->flags |= (atomic_load(&t->kernel) ? URN_HEIR_KERNEL : 0) |
		    (shut & URN_TWIN_SHUT_RD ? URN_HEIR_SHUT_RD : 0) |
		    (shut & URN_TWIN_SHUT_WR ? URN_HEIR_SHUT_WR : 0);
	/* Another thread may have closed the descriptor meanwhile. */
	return e->cookie != 0 && urn_twin_has(t, fd);
}

/* Make the table's file, whose descriptor exec() keeps, out of the way of the program's. */
static int
urn_heir_file(void)
{
	const struct urn_real *real = urn_real();
	int high, fd = (int)real->syscall(SYS_memfd_create, "urnic-sockets-exec",
					  (long)MFD_ALLOW_SEALING, 0L, 0L, 0L, 0L);

	high = fd >= 0 ? real->fcntl(fd, F_DUPFD, 512) : -1;
	if (high < 0)
		return fd;
	(void)real->close(fd);
	return high;
}

/* Write bytes behind those before. fd: in, out: -1: the table can't be written, and is closed */
static void
urn_heir_put(int *fd, const void *data, size_t len)
{
	if (*fd < 0 || urn_real()->write(*fd, data, len) == (ssize_t)len)
		return;
	(void)urn_real()->close(*fd);
	*fd = -1;
}

/* Write the entries of all descriptors. returns: their number; *file: the table's descriptor, made
 * with the first one; -1: it could not be written, or there is none */
static uint32_t
urn_heir_entries(int *file, const struct urn_heir_head *head, bool all)
{
	struct urn_heir_entry e;
	uint32_t count = 0;
	int fd;

	for (fd = 0; fd < urn_twin_top() && count < URN_HEIR_MAX; fd++) {
		if (!urn_heir_entry(&e, fd, all))
			continue;
		if (count++ == 0) {
			*file = urn_heir_file();
			urn_heir_put(file, head, sizeof(*head));
		}
		urn_heir_put(file, &e, sizeof(e));
		if (*file < 0)
			break;
	}
	return count;
}

/* True when this program has a urnic socket. */
static bool
urn_heir_some(void)
{
	int fd;

	for (fd = 0; fd < urn_twin_top(); fd++) {
		const struct urn_twin *t = urn_twin_glance(fd);

		if (t != NULL && atomic_load(&t->sock) != NULL)
			return true;
	}
	return false;
}

int
urn_heir_write(bool all)
{
	struct urn_heir_head head = {.pid = all ? 0 : (uint32_t)getpid()};
	int file = -1;

	memcpy(head.magic, urn_heir_magic, sizeof(head.magic));
	head.count = urn_heir_entries(&file, &head, all);
	/* A program whose sockets all end may bind new ones to their ports. */
	if (head.count == 0 && !all && urn_heir_some()) {
		file = urn_heir_file();
		urn_heir_put(&file, &head, sizeof(head));
	}
	if (file >= 0 && pwrite(file, &head, sizeof(head), 0) != (ssize_t)sizeof(head)) {
		(void)urn_real()->close(file);
		return -1;
	}
	return file;
}

/* ---- the variable */

size_t
urn_heir_env_count(char *const envp[])
{
	size_t n = 0;

	while (envp != NULL && envp[n] != NULL)
		n++;
	return n;
}

/* True when a variable is the table's. */
static bool
urn_heir_is_variable(const char *text)
{
	return strncmp(text, URN_HEIR_VARIABLE "=", sizeof(URN_HEIR_VARIABLE)) == 0;
}

void
urn_heir_env(char *env[], char text[URN_HEIR_TEXT], char *const envp[], int fd)
{
	char digits[12], *d = digits + sizeof(digits);
	size_t i, n = 0;

	*--d = '\0';
	do {
		*--d = (char)('0' + fd % 10);
		fd /= 10;
	} while (fd > 0);
	memcpy(text, URN_HEIR_VARIABLE "=", sizeof(URN_HEIR_VARIABLE));
	memcpy(text + sizeof(URN_HEIR_VARIABLE), d, (size_t)(digits + sizeof(digits) - d));
	for (i = 0; envp != NULL && envp[i] != NULL; i++)
		if (!urn_heir_is_variable(envp[i]))
			env[n++] = envp[i];
	env[n++] = text;
	env[n] = NULL;
}

/* ---- reading: at the new program's start */

/* The value of an option of the kernel's socket; 0: off, or unknown. */
static int
urn_heir_option(int fd, int level, int option)
{
	int v = 0;
	socklen_t len = sizeof(v);

	return urn_real()->getsockopt(fd, level, option, &v, &len) == 0 ? v : 0;
}

/* Get an address of an entry. returns: true when it is one that a socket of the family has */
static bool
urn_heir_addr(struct urn_addr *a, const uint8_t gid[16], uint16_t port, uint32_t family)
{
	memcpy(a->gid, gid, sizeof(a->gid));
	a->port = port;
	return port != 0 && (family == AF_INET6 || urn_addr_is_any(gid) || urn_addr_is_v4(gid));
}

/* True when an entry makes sense. */
static bool
urn_heir_is_sane(const struct urn_heir_entry *e)
{
	struct urn_addr a;

	return e->cookie != 0 && (e->family == AF_INET || e->family == AF_INET6) &&
	       (e->flags & ~(uint32_t)URN_HEIR_BITS) == 0 && e->zero == 0 &&
	       (!(e->flags & URN_HEIR_BOUND) ||
		urn_heir_addr(&a, e->local_gid, e->local_port, e->family)) &&
	       (!(e->flags & URN_HEIR_CONNECTED) ||
		(urn_heir_addr(&a, e->peer_gid, e->peer_port, e->family) &&
		 !urn_addr_is_any(a.gid)));
}

/* True when the descriptor is the socket of an entry. */
static bool
urn_heir_is(const struct urn_heir_entry *e, int fd)
{
	return urn_heir_option(fd, SOL_SOCKET, SO_TYPE) == SOCK_DGRAM &&
	       urn_heir_option(fd, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_UDP &&
	       urn_heir_option(fd, SOL_SOCKET, SO_DOMAIN) == (int)e->family;
}

/* Options of the kernel's socket that urnic minds, too. */
static void
urn_heir_options(struct urn_twin *t, int fd)
{
	struct timeval tv = {0};
	socklen_t len = sizeof(tv);
	int flags = urn_real()->fcntl(fd, F_GETFL);

	atomic_store(&t->nonblock, flags >= 0 && (flags & O_NONBLOCK) != 0);
	atomic_store(&t->info4, urn_heir_option(fd, IPPROTO_IP, IP_PKTINFO) != 0);
	atomic_store(&t->cork, urn_heir_option(fd, IPPROTO_UDP, UDP_CORK) != 0);
	atomic_store(&t->segment, (uint32_t)urn_heir_option(fd, IPPROTO_UDP, UDP_SEGMENT));
	if (t->family == AF_INET6)
		atomic_store(&t->info6, urn_heir_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO) != 0);
	if (urn_real()->getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, &len) == 0)
		atomic_store(&t->sndtimeo_ns,
			     (uint64_t)tv.tv_sec * 1000000000u + (uint64_t)tv.tv_usec * 1000u);
}

/* Write a twin by its entry. */
static void
urn_heir_tell(struct urn_twin *t, int fd, const void *arg)
{
	const struct urn_heir_entry *e = arg;

	urn_heir_options(t, fd);
	atomic_store(&t->kernel, (e->flags & URN_HEIR_KERNEL) != 0);
	atomic_store(&t->shut, (e->flags & URN_HEIR_SHUT_RD ? URN_TWIN_SHUT_RD : 0u) |
				       (e->flags & URN_HEIR_SHUT_WR ? URN_TWIN_SHUT_WR : 0u));
	t->heir_bound = (e->flags & URN_HEIR_BOUND) != 0;
	t->heir_connected = (e->flags & URN_HEIR_CONNECTED) != 0;
	(void)urn_heir_addr(&t->local, e->local_gid, e->local_port, e->family);
	(void)urn_heir_addr(&t->peer, e->peer_gid, e->peer_port, e->family);
	atomic_store(&t->v6only, t->heir_bound && urn_addr_is_any(t->local.gid) &&
					 t->family == AF_INET6 &&
					 urn_heir_option(fd, IPPROTO_IPV6, IPV6_V6ONLY) != 0);
	atomic_store(&t->pending, t->heir_bound || t->heir_connected);
}

/* A table that was read. */
struct urn_heirs {
	uint32_t count;
	struct urn_heir_entry *entry; /* count of them */
	int *first; /* the first descriptor of each entry's socket; -1: none so far; count of them
		     */
};

/* Make one descriptor's twin, or give it that of its copy. */
static void
urn_heir_match(const struct urn_heirs *h, int fd)
{
	uint64_t cookie = urn_twin_cookie(fd);
	uint32_t i = 0;

	while (i < h->count && h->entry[i].cookie != cookie)
		i++;
	if (cookie == 0 || i == h->count || urn_twin_glance(fd) != NULL ||
	    !urn_heir_is_sane(&h->entry[i]) || !urn_heir_is(&h->entry[i], fd))
		return;
	if (h->first[i] >= 0) {
		urn_twin_dup(h->first[i], fd);
		return;
	}
	urn_twin_add_heir(fd, (int)h->entry[i].family, urn_heir_tell, &h->entry[i]);
	h->first[i] = fd;
}

/* Look at all descriptors of the program. */
static void
urn_heir_match_all(const struct urn_heirs *h)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *d;
	int fd;

	while (dir != NULL && (d = readdir(dir)) != NULL)
		if (d->d_name[0] >= '0' && d->d_name[0] <= '9')
			urn_heir_match(h, (int)strtol(d->d_name, NULL, 10));
	for (fd = 0; dir == NULL && fd < URN_HEIR_MAX; fd++)
		urn_heir_match(h, fd);
	if (dir != NULL)
		(void)closedir(dir);
}

bool
urn_heir_read(int fd)
{
	struct urn_heir_head head;
	struct urn_heirs h = {0};
	ssize_t len;
	uint32_t i;

	/* A file that takes seals is one without a name in memory. */
	if (urn_real()->fcntl(fd, F_GET_SEALS) < 0 ||
	    pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    memcmp(head.magic, urn_heir_magic, sizeof(head.magic)) != 0)
		return false;
	if (head.pid == (uint32_t)getpid())
		urn_twin_replaced();
	if (head.count == 0 || head.count > URN_HEIR_MAX)
		return true;
	h.count = head.count;
	h.entry = calloc(h.count, sizeof(*h.entry));
	h.first = calloc(h.count, sizeof(*h.first));
	len = (ssize_t)(h.count * sizeof(*h.entry));
	if (h.entry != NULL && h.first != NULL &&
	    pread(fd, h.entry, (size_t)len, sizeof(head)) == len) {
		for (i = 0; i < h.count; i++)
			h.first[i] = -1;
		urn_heir_match_all(&h);
	}
	free(h.entry);
	free(h.first);
	return true;
}

/* The program begins: it may have sockets of the one before. */
__attribute__((constructor)) static void
urn_heir_begin(void)
{
	const char *text = secure_getenv(URN_HEIR_VARIABLE);
	char *end = NULL;
	long fd;

	(void)urn_real(); /* not first in a child of vfork() or a handler of a signal */
	(void)pthread_atfork(NULL, NULL, urn_real_settle); /* a child may have the first socket */
	if (text == NULL)
		return;
	fd = strtol(text, &end, 10);
	if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && fd <= INT32_MAX &&
	    urn_heir_read((int)fd))
		(void)urn_real()->close((int)fd);
	(void)unsetenv(URN_HEIR_VARIABLE);
}
