/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls in the C library's place that follow symbolic links. None of our files is one. */
#include "dropin/paths/call.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* True when a path is ours; errno says why it leads nowhere. */
static bool
readlink_ours(const char *path)
{
	struct urn_paths_node node;
	int err;

	if (!urn_paths_look(path, &node, &err))
		return false;
	errno = err == 0 ? EINVAL : err;
	return true;
}

URN_CALL ssize_t
readlink(const char *restrict path, char *restrict buf, size_t size)
{
	return readlink_ours(path) ? -1 : urn_paths_real()->readlink(path, buf, size);
}

URN_CALL ssize_t
readlinkat(int dir, const char *restrict path, char *restrict buf, size_t size)
{
	return readlink_ours(path) ? -1 : urn_paths_real()->readlinkat(dir, path, buf, size);
}

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)
URN_CALL ssize_t
__readlink_chk(const char *path, char *buf, size_t size, size_t room)
{
	return readlink_ours(path) ? -1 : urn_paths_real()->__readlink_chk(path, buf, size, room);
}

URN_CALL ssize_t
__readlinkat_chk(int dir, const char *path, char *buf, size_t size, size_t room)
{
	return readlink_ours(path) ? -1
				   : urn_paths_real()->__readlinkat_chk(dir, path, buf, size, room);
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)

/* pass: set when the path is the system's. result: NULL: allocate */
static char *
realpath_ours(const char *path, char *result, bool *pass)
{
	struct urn_paths_node node;
	int err;

	*pass = !urn_paths_look(path, &node, &err);
	if (*pass)
		return NULL;
	if (err != 0) {
		errno = err;
		return NULL;
	}
	/* The caller's room is PATH_MAX bytes. */
	return result == NULL ? strdup(node.path)
			      : memcpy(result, node.path, strlen(node.path) + 1);
}

URN_CALL char *
realpath(const char *restrict path, char *restrict result)
{
	bool pass;
	char *p = realpath_ours(path, result, &pass);

	return pass ? urn_paths_real()->realpath(path, result) : p;
}

// NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)
URN_CALL char *
__realpath_chk(const char *path, char *result, size_t room)
{
	bool pass = room < PATH_MAX;
	char *p = pass ? NULL : realpath_ours(path, result, &pass);

	return pass ? urn_paths_real()->__realpath_chk(path, result, room) : p;
}

URN_CALL char *
canonicalize_file_name(const char *path)
{
	bool pass;
	char *p = realpath_ours(path, NULL, &pass);

	return pass ? urn_paths_real()->canonicalize_file_name(path) : p;
}
