/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/missing.h"

#include "attach/fail.h"
#include "attach/remote.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { URN_GROUP_BYTES = 1024 };

/* Nothing is at the path. Another place that was looked at, or could have been, is named, too. */
static int
urn_missing_nothing(const char *path, int err)
{
	const char *told = secure_getenv("URNIC_SOCKET"), *dir = secure_getenv("XDG_RUNTIME_DIR");
	char found[256];

	/* A program that names the path itself, and a variable that does, look at one place. */
	if ((told != NULL && told[0] != '\0') || dir == NULL || dir[0] == '\0' ||
	    urn_remote_path(found, sizeof(found)) == NULL || strcmp(found, path) != 0 ||
	    strncmp(path, dir, strlen(dir)) == 0)
		return urn_fail(
			err, "no dataplane at %s (%s): start urnicd, or say where by URNIC_SOCKET",
			path, strerror(err));
	return urn_fail(err,
			"no dataplane at %s (%s), nor in XDG_RUNTIME_DIR, which is %.64s%s: start "
			"urnicd, or say where by URNIC_SOCKET",
			path, strerror(err), dir,
			urn_runtime_dir_is_own(dir) ? "" : " and not this user's");
}

/* Name the group of a socket. returns: name, or its number */
static const char *
urn_missing_group(gid_t gid, char *name, size_t bytes)
{
	char buf[URN_GROUP_BYTES];
	struct group entry, *found = NULL;

	if (getgrgid_r(gid, &entry, buf, sizeof(buf), &found) == 0 && found != NULL)
		snprintf(name, bytes, "%s", found->gr_name);
	else
		snprintf(name, bytes, "%u", (unsigned int)gid);
	return name;
}

/* The user may not connect: because of the socket's own mode, or of a folder before it. */
static int
urn_missing_closed(const char *path, int err)
{
	struct stat st;
	char group[64];

	if (stat(path, &st) != 0)
		return urn_fail(err,
				"no dataplane at %s for user %u: a folder on the way is closed to "
				"this user (%s)",
				path, (unsigned int)geteuid(), strerror(err));
	return urn_fail(
		err,
		"no dataplane at %s for user %u: the socket is of user %u and group %s, mode "
		"%04o: \"mode\" and \"group\" of [urnicd] say who may",
		path, (unsigned int)geteuid(), (unsigned int)st.st_uid,
		urn_missing_group(st.st_gid, group, sizeof(group)),
		(unsigned int)(st.st_mode & 07777));
}

int
urn_missing(const char *path, int err)
{
	struct stat st;

	if (err == EACCES || err == EPERM)
		return urn_missing_closed(path, err);
	if (err == ENOENT)
		return urn_missing_nothing(path, err);
	if (err == ECONNREFUSED && stat(path, &st) == 0)
		return urn_fail(err, "no dataplane at %s: %s: start urnicd", path,
				S_ISSOCK(st.st_mode)
					? "its socket is there, and nobody listens any more"
					: "the file is no socket");
	return urn_fail(err, "no dataplane at %s (%s): start urnicd, or say where by URNIC_SOCKET",
			path, strerror(err));
}
