/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BACKLOG = 128, LOCK_TRIES = 100, GREETING_MS = 3000 };

/* ---- the lock */

/* True when the descriptor's file is still the file that the path names. */
static bool
is_there(int fd, const char *path)
{
	struct stat is, named;

	return fstat(fd, &is) == 0 && lstat(path, &named) == 0 && is.st_dev == named.st_dev &&
	       is.st_ino == named.st_ino;
}

/* Take the lock. A former holder removes the file before it unlocks it: then a new file must be locked. */
static int
take_lock(struct urn_listen *l, struct urn_err *err)
{
	for (unsigned int i = 0; i < LOCK_TRIES; i++) {
		l->lock_fd = open(l->lock_path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
		if (l->lock_fd < 0) {
			urn_err_set(err, "%s: can't be made, to keep others from the socket: %s", l->lock_path,
				    strerror(errno));
			return -1;
		}
		if (flock(l->lock_fd, LOCK_EX | LOCK_NB) != 0)
			break;
		if (is_there(l->lock_fd, l->lock_path))
			return 0;
		close(l->lock_fd);
		l->lock_fd = -1;
		errno = EWOULDBLOCK;
	}
	if (errno == EWOULDBLOCK)
		urn_err_set(err, "%s: another dataplane listens here; stop it or give another path",
			    l->addr.sun_path);
	else
		urn_err_set(err, "%s: can't be locked: %s", l->lock_path, strerror(errno));
	if (l->lock_fd >= 0)
		close(l->lock_fd); /* and the file stays: it is another process's */
	l->lock_fd = -1;
	return -1;
}

static void
drop_lock(struct urn_listen *l)
{
	if (l->lock_fd < 0)
		return;
	if (is_there(l->lock_fd, l->lock_path))
		(void)unlink(l->lock_path);
	close(l->lock_fd);
	l->lock_fd = -1;
}

/* ---- the socket */

/*
 * Find out whether a process listens at the address, by connecting. The process gets time to send
 * a greeting: net_memif does, and DPDK 22.11 takes the whole process down when it can't.
 * returns: 0: it listens; ECONNREFUSED: nobody, the socket was left behind; EPROTOTYPE: a
 * socket of another kind, of another program; another errno value: unknown
 */
static int
knock(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err = fd >= 0 && connect(fd, (const void *)addr, sizeof(*addr)) == 0 ? 0 : errno;
	struct pollfd greeting = {.fd = fd, .events = POLLIN};

	if (err == 0)
		(void)poll(&greeting, 1, GREETING_MS);
	if (fd >= 0)
		close(fd);
	return err == EAGAIN ? 0 : err; /* EAGAIN: a listener that is busy */
}

/*
 * Check that the file at the path may be removed. returns: NULL: it may, because it is a
 * SOCK_SEQPACKET socket at which nobody listens any more; else why not, and what to do. Takes
 * seconds when somebody listens.
 */
static const char *
stays(const struct sockaddr_un *addr)
{
	struct stat st;

	if (lstat(addr->sun_path, &st) != 0 || !S_ISSOCK(st.st_mode))
		return "the socket can't be made: something is there that is no socket; take it away or give another path";
	switch (knock(addr)) {
	case 0: /* the listener does not use the lock */
		return "another dataplane listens here; stop it or give another path";
	case ECONNREFUSED:
		return NULL;
	case EPROTOTYPE:
		return "the path is the socket of another program; give another path";
	default:
		return "there is a socket, and whether somebody listens there can't be found out; take it away or give "
		       "another path";
	}
}

static int
bind_path(struct urn_listen *l, struct urn_err *err)
{
	const char *path = l->addr.sun_path, *why;

	if (bind(l->fd, (const void *)&l->addr, sizeof(l->addr)) == 0)
		return 0;
	if (errno == EADDRINUSE) {
		why = stays(&l->addr);
		if (why) {
			urn_err_set(err, "%s: %s", path, why);
			return -1;
		}
		l->left = unlink(path) == 0 &&
			  bind(l->fd, (const void *)&l->addr, sizeof(l->addr)) == 0;
		if (l->left)
			return 0;
	}
	urn_err_set(err, "%s: the socket can't be made: %s", path, strerror(errno));
	return -1;
}

/*
 * Set mode and group of the socket at the path, through a descriptor: in a folder where others may
 * write, a link that took the socket's place would lead to another file. returns: 0, or -1 with
 * errno
 */
static int
give_rights(const char *path, mode_t mode, gid_t gid)
{
	int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), rc = -1;
	char name[32];
	struct stat st;

	if (fd < 0)
		return -1;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	if (fstat(fd, &st) != 0 || !S_ISSOCK(st.st_mode))
		errno = EEXIST;
	else if (chmod(name, mode) == 0 &&
		 (gid == (gid_t)-1 || fchownat(fd, "", (uid_t)-1, gid, AT_EMPTY_PATH) == 0))
		rc = 0;
	close(fd);
	return rc;
}

int
urn_listen_open(struct urn_listen *l, const char *path, mode_t mode, gid_t gid, struct urn_err *err)
{
	memset(l, 0, sizeof(*l));
	l->fd = l->lock_fd = -1;
	l->addr.sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(l->addr.sun_path)) {
		urn_err_set(err, "%s: a socket's path has at most %zu bytes", path,
			    sizeof(l->addr.sun_path) - 1);
		return -1;
	}
	memcpy(l->addr.sun_path, path, strlen(path) + 1);
	snprintf(l->lock_path, sizeof(l->lock_path), "%s.lock", l->addr.sun_path);
	l->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* The file of the socket gets this mode when bind() makes it, whatever the umask. */
	if (l->fd < 0 || fchmod(l->fd, 0600) != 0) {
		urn_err_set(err, "no socket to listen with: %s", strerror(errno));
		return -1;
	}
	if (take_lock(l, err) != 0 || bind_path(l, err) != 0)
		return -1;
	l->bound = lstat(path, &l->made) == 0;
	/* Mode and group are set before listen(), so before anybody can connect. */
	if (give_rights(path, mode ? mode : 0600, gid) != 0 || listen(l->fd, BACKLOG) != 0) {
		urn_err_set(err, "%s: mode and group can't be set, or not listened at: %s", path,
			    strerror(errno));
		return -1;
	}
	return 0;
}

void
urn_listen_remove(struct urn_listen *l)
{
	struct stat st;

	/* The file at the path may be another process's by now. */
	if (l->bound && lstat(l->addr.sun_path, &st) == 0 && st.st_ino == l->made.st_ino &&
	    st.st_dev == l->made.st_dev)
		(void)unlink(l->addr.sun_path);
	l->bound = false;
	drop_lock(l);
}

void
urn_listen_close(struct urn_listen *l)
{
	urn_listen_remove(l);
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}
