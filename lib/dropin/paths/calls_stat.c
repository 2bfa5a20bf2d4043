/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls in the C library's place that ask what a path is. */
#include "dropin/paths/call.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Both are one struct on the machines that urnic runs on. */
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "struct stat has 64-bit fields");

/* Result of a function that leaves a path to the C library: the path is the system's. */
enum { URN_PATHS_PASS = 1 };

/* returns: 0; -1 with errno set; URN_PATHS_PASS */
static int
stat_ours(const char *path, struct stat *st)
{
	struct urn_paths_node node;
	int err;

	if (!urn_paths_look(path, &node, &err))
		return URN_PATHS_PASS;
	if (err == 0)
		urn_paths_stat(&node, st);
	else
		errno = err;
	return err == 0 ? 0 : -1;
}

static int
stat64_ours(const char *path, struct stat64 *st)
{
	struct stat one;
	int result = stat_ours(path, &one);

	if (result == 0)
		memcpy(st, &one, sizeof(one));
	return result;
}

URN_CALL int
stat(const char *restrict path, struct stat *restrict st)
{
	int result = stat_ours(path, st);

	return result != URN_PATHS_PASS ? result : urn_paths_real()->stat(path, st);
}

URN_CALL int
lstat(const char *restrict path, struct stat *restrict st)
{
	int result = stat_ours(path, st);

	return result != URN_PATHS_PASS ? result : urn_paths_real()->lstat(path, st);
}

URN_CALL int
fstatat(int dir, const char *restrict path, struct stat *restrict st, int flags)
{
	int result = stat_ours(path, st);

	return result != URN_PATHS_PASS ? result : urn_paths_real()->fstatat(dir, path, st, flags);
}

URN_CALL int
stat64(const char *restrict path, struct stat64 *restrict st)
{
	int result = stat64_ours(path, st);

	return result != URN_PATHS_PASS ? result : urn_paths_real()->stat64(path, st);
}

URN_CALL int
lstat64(const char *restrict path, struct stat64 *restrict st)
{
	int result = stat64_ours(path, st);

	return result != URN_PATHS_PASS ? result : urn_paths_real()->lstat64(path, st);
}

URN_CALL int
fstatat64(int dir, const char *restrict path, struct stat64 *restrict st, int flags)
{
	int result = stat64_ours(path, st);

	return result != URN_PATHS_PASS ? result
					: urn_paths_real()->fstatat64(dir, path, st, flags);
}

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)
URN_CALL int
__xstat(int version, const char *path, struct stat *st)
{
	int result = stat_ours(path, st);

	return result != URN_PATHS_PASS ? result : urn_paths_real()->__xstat(version, path, st);
}

URN_CALL int
__lxstat(int version, const char *path, struct stat *st)
{
	int result = stat_ours(path, st);

	return result != URN_PATHS_PASS ? result : urn_paths_real()->__lxstat(version, path, st);
}

URN_CALL int
__fxstatat(int version, int dir, const char *path, struct stat *st, int flags)
{
	int result = stat_ours(path, st);

	return result != URN_PATHS_PASS
		       ? result
		       : urn_paths_real()->__fxstatat(version, dir, path, st, flags);
}

URN_CALL int
__xstat64(int version, const char *path, struct stat64 *st)
{
	int result = stat64_ours(path, st);

	return result != URN_PATHS_PASS ? result : urn_paths_real()->__xstat64(version, path, st);
}

URN_CALL int
__lxstat64(int version, const char *path, struct stat64 *st)
{
	int result = stat64_ours(path, st);

	return result != URN_PATHS_PASS ? result : urn_paths_real()->__lxstat64(version, path, st);
}

URN_CALL int
__fxstatat64(int version, int dir, const char *path, struct stat64 *st, int flags)
{
	int result = stat64_ours(path, st);

	return result != URN_PATHS_PASS
		       ? result
		       : urn_paths_real()->__fxstatat64(version, dir, path, st, flags);
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)

URN_CALL int
statx(int dir, const char *restrict path, int flags, unsigned int mask, struct statx *restrict sx)
{
	struct stat st;
	int result = stat_ours(path, &st);

	if (result == URN_PATHS_PASS)
		return urn_paths_real()->statx(dir, path, flags, mask, sx);
	if (result != 0)
		return result;
	memset(sx, 0, sizeof(*sx));
	sx->stx_mask = STATX_BASIC_STATS;
	sx->stx_blksize = (uint32_t)st.st_blksize;
	sx->stx_nlink = (uint32_t)st.st_nlink;
	sx->stx_mode = (uint16_t)st.st_mode;
	sx->stx_ino = st.st_ino;
	sx->stx_size = (uint64_t)st.st_size;
	sx->stx_rdev_major = major(st.st_rdev);
	sx->stx_rdev_minor = minor(st.st_rdev);
	return 0;
}

/* returns: 0; -1 with errno set; URN_PATHS_PASS */
static int
access_ours(const char *path, int mode)
{
	struct stat st;
	int result = stat_ours(path, &st);

	/* The rights of all users: also root writes to none of the files. */
	if (result == 0 && (~st.st_mode & (mode_t)(mode & (R_OK | W_OK | X_OK))) != 0) {
		errno = EACCES;
		return -1;
	}
	return result;
}

URN_CALL int
access(const char *path, int mode)
{
	int result = access_ours(path, mode);

	return result != URN_PATHS_PASS ? result : urn_paths_real()->access(path, mode);
}

URN_CALL int
euidaccess(const char *path, int mode)
{
	int result = access_ours(path, mode);

	return result != URN_PATHS_PASS ? result : urn_paths_real()->euidaccess(path, mode);
}

URN_CALL int
eaccess(const char *path, int mode)
{
	int result = access_ours(path, mode);

	return result != URN_PATHS_PASS ? result : urn_paths_real()->eaccess(path, mode);
}

URN_CALL int
faccessat(int dir, const char *path, int mode, int flags)
{
	int result = access_ours(path, mode);

	return result != URN_PATHS_PASS ? result
					: urn_paths_real()->faccessat(dir, path, mode, flags);
}
