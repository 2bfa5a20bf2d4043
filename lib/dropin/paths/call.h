/* SPDX-License-Identifier: BSD-3-Clause */
/* The beginning of every file that puts functions in the C library's place. */
#ifndef URN_PATHS_CALL_H
#define URN_PATHS_CALL_H

// NOLINTBEGIN(clang-diagnostic-reserved-macro-identifier): both names are the C library's
/* The C library's checked inline functions would define these names, too. */
#undef _FORTIFY_SOURCE
/* The macro would make stat() another name of stat64(). */
#undef _FILE_OFFSET_BITS
// NOLINTEND(clang-diagnostic-reserved-macro-identifier)

#include "dropin/paths/paths.h"
#include "dropin/paths/real.h"

/* A function that liburnic-paths.so shows. */
#define URN_CALL __attribute__((visibility("default")))

/* Functions of the C library that its headers do not declare: programs that were built with an
 * older C library, or with checks of lengths, call them. */
// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)
int __xstat(int version, const char *path, struct stat *st);
int __lxstat(int version, const char *path, struct stat *st);
int __fxstatat(int version, int dir, const char *path, struct stat *st, int flags);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat64(int version, const char *path, struct stat64 *st);
int __fxstatat64(int version, int dir, const char *path, struct stat64 *st, int flags);
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t room);
ssize_t __readlinkat_chk(int dir, const char *path, char *buf, size_t size, size_t room);
char *__realpath_chk(const char *path, char *result, size_t room);
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)

#endif
