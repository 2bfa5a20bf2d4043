/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that is killed cannot clean up, so each folder holds a lock file
 * whose lock dies with its process. The next start takes every lock that is
 * free and removes the folder; no pids are compared, so containers that share
 * a /tmp do not remove each other's folders. The lock file gets its name only when
 * the lock is held: a sweeper never finds a new folder's lock free.
 */
#include "pmd_glue/eal_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIR_PREFIX "urnic-rt-"
#define LOCK_NAME "lock"
/* Name of the lock file until its lock is held. */
#define LOCK_NEW "lock.new"
/* Room for the longest file below: /dpdk/urnic/ and a fbarray's name. */
#define BASE_MAX (URN_EAL_DIR_MAX - (int)sizeof("/" DIR_PREFIX "XXXXXX"))

/* Remove one entry, but neither the folder itself nor its lock. */
static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	if (ftw->level == 0 || (ftw->level == 1 && strcmp(path + ftw->base, LOCK_NAME) == 0))
		return 0;
	return remove(path) != 0 && errno != ENOENT ? -1 : 0;
}

/* Remove a folder. The lock goes last: the remains of a killed or failing remover can still be
 * swept. */
static void
remove_tree(const char *path)
{
	int fd;

	/* FTW_PHYS: a symbolic link is removed, never followed. Not FTW_MOUNT: in a container whose
	 * root is an overlay, files have another device number than their folder, and would stay.
	 */
	if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
		return;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0) {
		(void)unlinkat(fd, LOCK_NAME, 0);
		close(fd);
	}
	(void)rmdir(path);
}

/*
 * Take the lock of a folder whose process is gone. returns the lock's descriptor, or
 * -1 when the lock is held or missing. A lock file that is unlinked by now is missing:
 * another sweeper locked it first, and the folder is gone.
 */
static int
lock_take(const char *dir)
{
	char path[PATH_MAX + sizeof("/" LOCK_NAME)];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/" LOCK_NAME, dir);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -1;
	if (flock(fd, LOCK_EX | LOCK_NB) != 0 || fstat(fd, &st) != 0 || st.st_nlink == 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Make the lock of a new folder, and hold it. returns its descriptor, or -1 with errno set */
static int
lock_make(const char *dir)
{
	char path[PATH_MAX + sizeof("/" LOCK_NAME)], fresh[PATH_MAX + sizeof("/" LOCK_NEW)];
	int fd, why;

	snprintf(path, sizeof(path), "%s/" LOCK_NAME, dir);
	snprintf(fresh, sizeof(fresh), "%s/" LOCK_NEW, dir);
	fd = open(fresh, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return -1;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && rename(fresh, path) == 0)
		return fd;
	why = errno;
	close(fd);
	errno = why;
	return -1;
}

static void
sweep(const char *base)
{
	char path[PATH_MAX];
	struct dirent *e;
	struct stat st;
	DIR *d = opendir(base);
	int fd;

	if (d == NULL)
		return;
	while ((e = readdir(d)) != NULL) {
		if (strncmp(e->d_name, DIR_PREFIX, strlen(DIR_PREFIX)) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", base, e->d_name);
		/* Only folders that are ours alone: /tmp belongs to everybody. */
		if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
		    (st.st_mode & 07777) != 0700)
			continue;
		fd = lock_take(path);
		if (fd < 0)
			continue;
		remove_tree(path);
		close(fd);
	}
	closedir(d);
}

/* True when we may make folders in this folder, and its name is short enough. */
static bool
base_usable(const char *base)
{
	struct stat st;

	return base != NULL && base[0] == '/' && strlen(base) < BASE_MAX && stat(base, &st) == 0 &&
	       S_ISDIR(st.st_mode) && access(base, W_OK | X_OK) == 0;
}

static const char *
base_find(void)
{
	const char *tries[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};
	unsigned int i;

	for (i = 0; i < RTE_DIM(tries); i++)
		if (base_usable(tries[i]))
			return tries[i];
	return NULL;
}

int
urn_eal_dir_make(struct urn_eal_dir *dir, struct urn_err *err)
{
	const char *base = base_find();
	int why;

	dir->lock_fd = -1;
	dir->path[0] = '\0';
	if (base == NULL) {
		urn_err_set(err,
			    "no folder for runtime files: neither XDG_RUNTIME_DIR, TMPDIR nor "
			    "/tmp is a writable folder with a name under %d bytes; set TMPDIR",
			    BASE_MAX);
		return -1;
	}
	sweep(base);
	snprintf(dir->path, sizeof(dir->path), "%s/" DIR_PREFIX "XXXXXX", base);
	if (mkdtemp(dir->path) != NULL) {
		dir->lock_fd = lock_make(dir->path);
		if (dir->lock_fd >= 0)
			return 0;
		why = errno;
		remove_tree(dir->path);
		errno = why;
	}
	urn_err_set(err,
		    "cannot make a folder for runtime files in %s: %s; make room there or set "
		    "TMPDIR",
		    base, strerror(errno));
	dir->path[0] = '\0';
	return -1;
}

void
urn_eal_dir_remove(struct urn_eal_dir *dir)
{
	if (dir->path[0] == '\0')
		return;
	remove_tree(dir->path);
	dir->path[0] = '\0';
	close(dir->lock_fd);
	dir->lock_fd = -1;
}
