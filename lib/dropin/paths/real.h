/* SPDX-License-Identifier: BSD-3-Clause */
/* The C library's own functions behind those that liburnic-paths.so puts in their place. */
#ifndef URN_PATHS_REAL_H
#define URN_PATHS_REAL_H

#include <dirent.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

typedef int urn_paths_select(const struct dirent *);
typedef int urn_paths_compare(const struct dirent **, const struct dirent **);
typedef int urn_paths_select64(const struct dirent64 *);
typedef int urn_paths_compare64(const struct dirent64 **, const struct dirent64 **);

/* X(returns, name, parameters) */
/* clang-format off */
#define URN_PATHS_REAL_LIST(X) \
	X(int, stat, (const char *, struct stat *)) \
	X(int, lstat, (const char *, struct stat *)) \
	X(int, fstatat, (int, const char *, struct stat *, int)) \
	X(int, stat64, (const char *, struct stat64 *)) \
	X(int, lstat64, (const char *, struct stat64 *)) \
	X(int, fstatat64, (int, const char *, struct stat64 *, int)) \
	X(int, __xstat, (int, const char *, struct stat *)) \
	X(int, __lxstat, (int, const char *, struct stat *)) \
	X(int, __fxstatat, (int, int, const char *, struct stat *, int)) \
	X(int, __xstat64, (int, const char *, struct stat64 *)) \
	X(int, __lxstat64, (int, const char *, struct stat64 *)) \
	X(int, __fxstatat64, (int, int, const char *, struct stat64 *, int)) \
	X(int, statx, (int, const char *, int, unsigned int, struct statx *)) \
	X(int, access, (const char *, int)) \
	X(int, euidaccess, (const char *, int)) \
	X(int, eaccess, (const char *, int)) \
	X(int, faccessat, (int, const char *, int, int)) \
	X(int, open, (const char *, int, ...)) \
	X(int, open64, (const char *, int, ...)) \
	X(int, openat, (int, const char *, int, ...)) \
	X(int, openat64, (int, const char *, int, ...)) \
	X(int, __open_2, (const char *, int)) \
	X(int, __open64_2, (const char *, int)) \
	X(int, __openat_2, (int, const char *, int)) \
	X(int, __openat64_2, (int, const char *, int)) \
	X(FILE *, fopen, (const char *, const char *)) \
	X(FILE *, fopen64, (const char *, const char *)) \
	X(ssize_t, readlink, (const char *, char *, size_t)) \
	X(ssize_t, readlinkat, (int, const char *, char *, size_t)) \
	X(ssize_t, __readlink_chk, (const char *, char *, size_t, size_t)) \
	X(ssize_t, __readlinkat_chk, (int, const char *, char *, size_t, size_t)) \
	X(char *, realpath, (const char *, char *)) \
	X(char *, __realpath_chk, (const char *, char *, size_t)) \
	X(char *, canonicalize_file_name, (const char *)) \
	X(DIR *, opendir, (const char *)) \
	X(struct dirent *, readdir, (DIR *)) \
	X(struct dirent64 *, readdir64, (DIR *)) \
	X(int, closedir, (DIR *)) \
	X(void, rewinddir, (DIR *)) \
	X(long, telldir, (DIR *)) \
	X(void, seekdir, (DIR *, long)) \
	X(int, dirfd, (DIR *)) \
	X(int, scandir, (const char *, struct dirent ***, urn_paths_select *, urn_paths_compare *)) \
	X(int, getifaddrs, (struct ifaddrs **)) \
	X(void, freeifaddrs, (struct ifaddrs *)) \
	X(int, scandir64, (const char *, struct dirent64 ***, urn_paths_select64 *, urn_paths_compare64 *))
/* clang-format on */

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)
struct urn_paths_real {
#define X(ret, name, params) ret(*name) params; // NOLINT(bugprone-macro-parentheses)
	URN_PATHS_REAL_LIST(X)
#undef X
};
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)

/* The functions, found at the first call. Works in constructors of other libraries, too. */
const struct urn_paths_real *urn_paths_real(void);

#endif
