/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls in the C library's place that open files. */
#include "dropin/paths/call.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Result of a function that leaves a path to the C library: the path is the system's. */
enum { URN_PATHS_PASS = -2 };

/* The argument of open() behind the flags. */
#define MODE_OF(mode, flags)                                             \
	do {                                                             \
		va_list args;                                            \
                                                                         \
		va_start(args, flags);                                   \
		if ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE) \
			(mode) = va_arg(args, mode_t);                   \
		va_end(args);                                            \
	} while (0)

/* Make a file in memory that has a text, and that nobody can write to. -1 with errno */
static int
file_of(const char *text, size_t n, int flags)
{
	int fd = memfd_create("urnic", MFD_ALLOW_SEALING | (flags & O_CLOEXEC ? MFD_CLOEXEC : 0));
	int err;

	if (fd < 0)
		return -1;
	if (write(fd, text, n) == (ssize_t)n && lseek(fd, 0, SEEK_SET) == 0 &&
	    fchmod(fd, 0444) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0)
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

/* Open a file of ours. returns: a descriptor, or a negative errno value */
static int
open_node(const char *path, int flags)
{
	char text[URN_PATHS_TEXT], clean[URN_PATHS_LEN];
	struct urn_paths_node node;
	int n = 0, err;

	(void)urn_paths_ours(path, clean);
	err = urn_paths_find(clean, urn_paths_hold(), &node);
	if (err == 0 && node.kind == URN_PATHS_FILE)
		n = urn_paths_text(&node, text);
	urn_paths_release();
	if (err != 0)
		return -err;
	if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return -EEXIST;
	if (node.kind == URN_PATHS_DIR)
		return -EACCES; /* there is no such descriptor to give; opendir() works */
	if (flags & O_DIRECTORY)
		return -ENOTDIR;
	if (node.kind == URN_PATHS_CHAR)
		n = urn_paths_real()->open("/dev/null", flags & ~O_CREAT);
	else if ((flags & O_ACCMODE) != O_RDONLY)
		return -EACCES;
	else if (n >= 0)
		n = file_of(text, (size_t)n, flags);
	else
		return n;
	return n >= 0 ? n : -errno;
}

/* returns: a descriptor; -1 with errno set; URN_PATHS_PASS */
static int
open_ours(const char *path, int flags)
{
	struct urn_paths_node node;
	int err, fd;

	if (!urn_paths_look(path, &node, &err))
		return URN_PATHS_PASS;
	err = errno;
	fd = open_node(path, flags);
	errno = fd < 0 ? -fd : err;
	return fd < 0 ? -1 : fd;
}

URN_CALL int
open(const char *path, int flags, ...)
{
	int fd = open_ours(path, flags);
	mode_t mode = 0;

	MODE_OF(mode, flags);
	return fd != URN_PATHS_PASS ? fd : urn_paths_real()->open(path, flags, mode);
}

URN_CALL int
open64(const char *path, int flags, ...)
{
	int fd = open_ours(path, flags);
	mode_t mode = 0;

	MODE_OF(mode, flags);
	return fd != URN_PATHS_PASS ? fd : urn_paths_real()->open64(path, flags, mode);
}

URN_CALL int
openat(int dir, const char *path, int flags, ...)
{
	int fd = open_ours(path, flags);
	mode_t mode = 0;

	MODE_OF(mode, flags);
	return fd != URN_PATHS_PASS ? fd : urn_paths_real()->openat(dir, path, flags, mode);
}

URN_CALL int
openat64(int dir, const char *path, int flags, ...)
{
	int fd = open_ours(path, flags);
	mode_t mode = 0;

	MODE_OF(mode, flags);
	return fd != URN_PATHS_PASS ? fd : urn_paths_real()->openat64(dir, path, flags, mode);
}

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)
URN_CALL int
__open_2(const char *path, int flags)
{
	int fd = open_ours(path, flags);

	return fd != URN_PATHS_PASS ? fd : urn_paths_real()->__open_2(path, flags);
}

URN_CALL int
__open64_2(const char *path, int flags)
{
	int fd = open_ours(path, flags);

	return fd != URN_PATHS_PASS ? fd : urn_paths_real()->__open64_2(path, flags);
}

URN_CALL int
__openat_2(int dir, const char *path, int flags)
{
	int fd = open_ours(path, flags);

	return fd != URN_PATHS_PASS ? fd : urn_paths_real()->__openat_2(dir, path, flags);
}

URN_CALL int
__openat64_2(int dir, const char *path, int flags)
{
	int fd = open_ours(path, flags);

	return fd != URN_PATHS_PASS ? fd : urn_paths_real()->__openat64_2(dir, path, flags);
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,clang-diagnostic-reserved-identifier)

/* Open a file of ours as a stream. pass: set when the path is the system's */
static FILE *
fopen_ours(const char *path, const char *mode, bool *pass)
{
	int flags = (strchr(mode, '+') != NULL ? O_RDWR
		     : mode[0] == 'r'	       ? O_RDONLY
					       : O_WRONLY) |
		    (strchr(mode, 'e') != NULL ? O_CLOEXEC : 0);
	int fd = open_ours(path, flags), err;
	FILE *f;

	*pass = fd == URN_PATHS_PASS;
	if (fd < 0)
		return NULL;
	f = fdopen(fd, mode);
	if (f == NULL) {
		err = errno;
		close(fd);
		errno = err;
	}
	return f;
}

URN_CALL FILE *
fopen(const char *restrict path, const char *restrict mode)
{
	bool pass;
	FILE *f = fopen_ours(path, mode, &pass);

	return pass ? urn_paths_real()->fopen(path, mode) : f;
}

URN_CALL FILE *
fopen64(const char *restrict path, const char *restrict mode)
{
	bool pass;
	FILE *f = fopen_ours(path, mode, &pass);

	return pass ? urn_paths_real()->fopen64(path, mode) : f;
}
