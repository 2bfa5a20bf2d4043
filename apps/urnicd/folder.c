/* SPDX-License-Identifier: BSD-3-Clause */
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Name of the empty file that marks a folder as made by a dataplane. */
#define MARKER ".urnicd-made"

/* The part of a path before its last slash. returns: false when there is none, or it is the root */
static bool
folder_of(const char *socket, char dir[PATH_MAX])
{
	char *slash;

	snprintf(dir, PATH_MAX, "%s", socket);
	slash = strrchr(dir, '/');
	if (slash == NULL || slash == dir)
		return false;
	*slash = '\0';
	return true;
}

static void
mark(const char *dir)
{
	char path[PATH_MAX + sizeof("/" MARKER)];
	int fd;

	snprintf(path, sizeof(path), "%s/" MARKER, dir);
	fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0)
		(void)close(fd);
}

int
nicd_folder_make(const char *socket, bool shared, bool *made, struct urn_err *err)
{
	char dir[PATH_MAX];

	if (!folder_of(socket, dir))
		return 0;
	if (mkdir(dir, 0700) == 0) {
		*made = true;
		mark(dir);
		if (shared)
			(void)chmod(dir, 0755);
		return 0;
	}
	if (errno == EEXIST)
		return 0;
	urn_err_set(err, "%s: the folder of the socket can't be made: %s", dir, strerror(errno));
	return -1;
}

/* True when the marker in an open folder is this user's. */
static bool
marked(int fd)
{
	struct stat st;

	return fstatat(fd, MARKER, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       st.st_uid == geteuid();
}

/* True when a folder holds nothing but, perhaps, the marker. Closes fd. */
static bool
is_bare(int fd)
{
	DIR *d = fdopendir(fd);
	struct dirent *e;
	bool bare = d != NULL;

	if (d == NULL)
		(void)close(fd);
	while (bare && (e = readdir(d)) != NULL)
		bare = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		       strcmp(e->d_name, MARKER) == 0;
	if (d != NULL)
		closedir(d);
	return bare;
}

void
nicd_folder_leave(const char *socket, bool made)
{
	char dir[PATH_MAX], path[PATH_MAX + sizeof("/" MARKER)];
	struct stat st;
	int fd;

	if (!folder_of(socket, dir))
		return;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (fstat(fd, &st) != 0 || st.st_uid != geteuid() || (!made && !marked(fd))) {
		(void)close(fd);
		return;
	}
	if (!is_bare(fd))
		return;
	snprintf(path, sizeof(path), "%s/" MARKER, dir);
	(void)unlink(path);
	/* Another dataplane came in meanwhile: that one will remove the folder. */
	if (rmdir(dir) != 0 && errno == ENOTEMPTY)
		mark(dir);
}

bool
nicd_folder_gone(const char *socket)
{
	char dir[PATH_MAX];

	return folder_of(socket, dir) && access(dir, F_OK) != 0 && errno == ENOENT;
}
