/* SPDX-License-Identifier: BSD-3-Clause */
#include "store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of the aligned pieces in which zeros become holes: whole pages of any file system. */
#define HOLE 65536u

/* ---- the folder */

/* Remove a hidden file unless a receiver holds its lock. */
static void
clear_part(int dir, const char *name)
{
	struct stat st;
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    flock(fd, LOCK_EX | LOCK_NB) == 0)
		unlinkat(dir, name, 0);
	close(fd);
}

static void
clear_parts(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	if (d == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(d)) != NULL)
		if (strncmp(e->d_name, CP_PART_PREFIX, strlen(CP_PART_PREFIX)) == 0)
			clear_part(dir, e->d_name);
	closedir(d);
}

int
cp_store_open(struct cp_store *s, const char *path, bool force, struct urn_err *err)
{
	memset(s, 0, sizeof(*s));
	s->path = path;
	s->force = force;
	s->umask = umask(0);
	umask(s->umask);
	if (mkdir(path, 0777) != 0 && errno != EEXIST) {
		s->dir = -1;
		urn_err_set(err, "cannot make the folder '%.120s': %s.", path, strerror(errno));
		return -1;
	}
	s->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir < 0 && errno == ENOTDIR) {
		urn_err_set(err, "'%.120s' is not a folder; name one with --to.", path);
		return -1;
	}
	if (s->dir < 0 || faccessat(s->dir, ".", W_OK | X_OK, AT_EACCESS) != 0) {
		urn_err_set(err, "cannot write to the folder '%.120s': %s.", path, strerror(errno));
		if (s->dir >= 0)
			close(s->dir);
		s->dir = -1;
		return -1;
	}
	clear_parts(s->dir);
	return 0;
}

int
cp_store_close(struct cp_store *s, struct urn_err *err)
{
	int rc;

	if (s->dir < 0)
		return 0;
	/* EINVAL: the file system does not sync folders. */
	rc = fsync(s->dir) != 0 && errno != EINVAL ? -1 : 0;
	if (rc != 0)
		urn_err_set(err, "the folder '%.120s' did not reach the disk: %s.", s->path,
			    strerror(errno));
	close(s->dir);
	s->dir = -1;
	return rc;
}

/* ---- files */

/* Keep the first failure. returns -1 */
static int failed(struct cp_store_file *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int
failed(struct cp_store_file *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (f->err.text[0] == '\0')
		vsnprintf(f->err.text, sizeof(f->err.text), fmt, ap);
	va_end(ap);
	cp_store_abort(f);
	return -1;
}

/* Explain a failed write, and what to do, in f->err. returns -1 */
static int
write_failed(struct cp_store_file *f, int code)
{
	switch (code) {
	case ENOSPC:
		return failed(f, "'%.120s' is full; make room and send the file again.", f->store->path);
	case EDQUOT:
		return failed(f, "the disk quota for '%.120s' is used up; make room and send the file "
				 "again.", f->store->path);
	case EFBIG:
		return failed(f, "the file is larger than the file system or the limit of the "
				 "receiver's shell (ulimit -f) allows.");
	default:
		return failed(f, "cannot write to '%.120s': %s.", f->store->path, strerror(code));
	}
}

/* Make a hidden file, locked, for file systems without unnamed files. */
static int
open_part(struct cp_store *s, struct cp_store_file *f)
{
	for (unsigned int i = 0; i < 100; i++) {
		int fd;

		snprintf(f->part, sizeof(f->part), CP_PART_PREFIX "%d-%u.part", (int)getpid(),
			 s->made++);
		fd = openat(s->dir, f->part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0) {
			flock(fd, LOCK_EX | LOCK_NB);
			return fd;
		}
		if (errno != EEXIST)
			break;
	}
	f->part[0] = '\0';
	return -1;
}

static int
open_unfinished(struct cp_store *s, struct cp_store_file *f)
{
	int fd = -1;

	f->part[0] = '\0';
	if (!s->named)
		fd = openat(s->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	/* EISDIR: a kernel before O_TMPFILE; ENOENT: some network file systems. */
	if (fd < 0 && (s->named || errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT ||
		       errno == EINVAL))
		fd = open_part(s, f);
	return fd;
}

static int
refused(struct cp_store_file *f)
{
	f->refused = true;
	return -1;
}

int
cp_store_begin(struct cp_store *s, struct cp_store_file *f, const char *name, uint64_t size,
	       uint32_t mode)
{
	struct stat st;

	memset(f, 0, sizeof(*f));
	f->store = s;
	f->fd = -1;
	f->size = size;
	f->mode = mode;
	snprintf(f->name, sizeof(f->name), "%s", name);
	if (fstatat(s->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISDIR(st.st_mode)) {
			failed(f, "a folder of that name is in '%.120s' already.", s->path);
			return refused(f);
		}
		if (!s->force) {
			failed(f,
			       "a file of that name is in '%.120s' already; --force replaces it.",
			       s->path);
			return refused(f);
		}
	}
	f->fd = open_unfinished(s, f);
	if (f->fd < 0) {
		write_failed(f, errno);
		return refused(f);
	}
	return 0;
}

static bool
all_zero(const uint8_t *data, size_t len)
{
	return data[0] == 0 && memcmp(data, data + 1, len - 1) == 0;
}

int
cp_store_write(struct cp_store_file *f, const uint8_t *data, size_t len, uint64_t offset)
{
	if (f->fd < 0)
		return -1;
	while (len > 0) {
		size_t piece = len < HOLE ? len : HOLE;
		ssize_t n;

		if (piece == HOLE && all_zero(data, piece))
			n = (ssize_t)piece;
		else
			n = pwrite(f->fd, data, piece, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return write_failed(f, n < 0 ? errno : EIO);
		data += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

/* Give an open file a name that must be free. */
static int
link_as(struct cp_store_file *f, const char *name)
{
	char proc[64];

	if (f->part[0] != '\0')
		return linkat(f->store->dir, f->part, f->store->dir, name, 0);
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", f->fd);
	return linkat(AT_FDCWD, proc, f->store->dir, name, AT_SYMLINK_FOLLOW);
}

/* Replace the file that has the name: link() can't replace, hence link a hidden name and rename it. */
static int
replace(struct cp_store_file *f)
{
	struct cp_store *s = f->store;

	if (f->part[0] == '\0') {
		snprintf(f->part, sizeof(f->part), CP_PART_PREFIX "%d-%u.part", (int)getpid(),
			 s->made++);
		flock(f->fd, LOCK_EX | LOCK_NB);
		unlinkat(s->dir, f->part, 0);
		char part[sizeof(f->part)];

		memcpy(part, f->part, sizeof(part));
		f->part[0] = '\0';
		if (link_as(f, part) != 0)
			return -1;
		memcpy(f->part, part, sizeof(part));
	}
	if (renameat(s->dir, f->part, s->dir, f->name) != 0)
		return -1;
	f->part[0] = '\0';
	return 0;
}

static int
give_name(struct cp_store_file *f)
{
	if (link_as(f, f->name) == 0) {
		if (f->part[0] != '\0')
			unlinkat(f->store->dir, f->part, 0);
		f->part[0] = '\0';
		return 0;
	}
	if (errno == EEXIST && f->store->force && replace(f) == 0)
		return 0;
	if (errno == EEXIST)
		return failed(f, "a file of that name is in '%.120s' by now; --force replaces it.",
			      f->store->path);
	return failed(f, "cannot give it its name in '%.120s': %s.", f->store->path, strerror(errno));
}

int
cp_store_commit(struct cp_store_file *f)
{
	if (f->fd < 0)
		return -1;
	if (ftruncate(f->fd, (off_t)f->size) != 0 ||
	    fchmod(f->fd, (mode_t)f->mode & 0777 & ~f->store->umask) != 0)
		return write_failed(f, errno);
	/* The file is on disk before it has its name: a name never stands for half a file. */
	if (fsync(f->fd) != 0)
		return write_failed(f, errno);
	if (give_name(f) != 0)
		return -1;
	/* Some file systems report a failed write only at close(). */
	if (close(f->fd) != 0 && errno != EINTR) {
		f->fd = -1;
		unlinkat(f->store->dir, f->name, 0);
		return write_failed(f, errno);
	}
	f->fd = -1;
	return 0;
}

void
cp_store_abort(struct cp_store_file *f)
{
	if (f->store == NULL)
		return;
	if (f->part[0] != '\0')
		unlinkat(f->store->dir, f->part, 0);
	f->part[0] = '\0';
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}
