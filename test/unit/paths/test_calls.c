/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of the C library with paths of ours, and with others, to which they do what they always
 * did. */
#include "dropin/paths/call.h"
#include "fake.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define TYPE "/sys/class/infiniband/a0/node_type"
#define FAILS(call, error)                      \
	do {                                    \
		errno = 0;                      \
		assert_true((call) == -1);      \
		assert_int_equal(errno, error); \
	} while (0)
#define NONE(call, error)                       \
	do {                                    \
		errno = 0;                      \
		assert_null(call);              \
		assert_int_equal(errno, error); \
	} while (0)

/* All forms of stat(), of a path of ours. */
static void
stats(void **state)
{
	struct stat st;
	struct stat64 st64;
	struct statx sx;
	int i;

	(void)state;
	errno = 77;
	for (i = 0; i < 6; i++) {
		memset(&st, 0, sizeof(st));
		assert_int_equal(i == 0	  ? stat(TYPE, &st)
				 : i == 1 ? lstat(TYPE, &st)
				 : i == 2 ? fstatat(AT_FDCWD, TYPE, &st, AT_SYMLINK_NOFOLLOW)
				 : i == 3 ? __xstat(1, TYPE, &st)
				 : i == 4 ? __lxstat(1, TYPE, &st)
					  : __fxstatat(1, AT_FDCWD, TYPE, &st, 0),
				 0);
		assert_int_equal(st.st_mode, S_IFREG | 0444);
		memset(&st64, 0, sizeof(st64));
		assert_int_equal(i == 0	  ? stat64("/dev/infiniband/b0", &st64)
				 : i == 1 ? lstat64("/dev/infiniband/b0", &st64)
				 : i == 2 ? fstatat64(3, "/dev/infiniband/b0", &st64, 0)
				 : i == 3 ? __xstat64(1, "/dev/infiniband/b0", &st64)
				 : i == 4 ? __lxstat64(1, "/dev/infiniband/b0", &st64)
					  : __fxstatat64(1, 3, "/dev/infiniband/b0", &st64, 0),
				 0);
		assert_int_equal(st64.st_mode, S_IFCHR | 0666);
	}
	assert_int_equal(statx(AT_FDCWD, "/dev/infiniband/b0", 0, STATX_ALL, &sx), 0);
	assert_int_equal(sx.stx_mode, S_IFCHR | 0666);
	assert_int_equal(sx.stx_rdev_major, 231);
	assert_int_equal(errno, 77);
	FAILS(stat("/dev/infiniband/c0", &st), ENOENT);
	FAILS(lstat(TYPE "/x", &st), ENOTDIR);
	FAILS(statx(AT_FDCWD, "/dev/infiniband/c0", 0, 0, &sx), ENOENT);
}

static void
accesses(void **state)
{
	(void)state;
	assert_int_equal(access("/dev/infiniband/a0", R_OK | W_OK), 0);
	assert_int_equal(access("/dev/infiniband", R_OK | X_OK), 0);
	assert_int_equal(euidaccess(TYPE, R_OK), 0);
	assert_int_equal(eaccess(TYPE, F_OK), 0);
	assert_int_equal(faccessat(AT_FDCWD, TYPE, R_OK, AT_EACCESS), 0);
	FAILS(access(TYPE, W_OK), EACCES);
	FAILS(access("/dev/infiniband/a0", X_OK), EACCES);
	FAILS(access("/dev/infiniband/c0", F_OK), ENOENT);
}

/* A file's descriptor has the text, and nobody changes it. */
static void
opens(void **state)
{
	char text[64];
	int fd, i;

	(void)state;
	for (i = 0; i < 8; i++) {
		fd = i == 0   ? open(TYPE, O_RDONLY)
		     : i == 1 ? open64(TYPE, O_RDONLY | O_CLOEXEC)
		     : i == 2 ? openat(AT_FDCWD, TYPE, O_RDONLY)
		     : i == 3 ? openat64(AT_FDCWD, TYPE, O_RDONLY | O_CLOEXEC)
		     : i == 4 ? __open_2(TYPE, O_RDONLY)
		     : i == 5 ? __open64_2(TYPE, O_RDONLY | O_CLOEXEC)
		     : i == 6 ? __openat_2(3, TYPE, O_RDONLY)
			      : __openat64_2(3, TYPE, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		assert_int_equal(fcntl(fd, F_GETFD), i % 2 ? FD_CLOEXEC : 0);
		assert_int_equal(read(fd, text, sizeof(text)), 6);
		assert_memory_equal(text, "1: CA\n", 6);
		assert_int_equal(read(fd, text, sizeof(text)), 0);
		assert_true(write(fd, "x", 1) < 0);
		FAILS(ftruncate(fd, 0), EPERM);
		close(fd);
	}
	fd = open("/dev/infiniband/a0", O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, 1), 0);
	close(fd);
	FAILS(open(TYPE, O_RDWR), EACCES);
	FAILS(open(TYPE, O_WRONLY | O_CREAT | O_TRUNC, 0600), EACCES);
	FAILS(open(TYPE, O_WRONLY | O_CREAT | O_EXCL, 0600), EEXIST);
	FAILS(open(TYPE, O_RDONLY | O_DIRECTORY), ENOTDIR);
	FAILS(open("/sys/class/infiniband", O_RDONLY), EACCES);
	FAILS(open("/dev/infiniband/new", O_WRONLY | O_CREAT, 0600), ENOENT);
	FAILS(open("/sys/class/infiniband/a0/ports/1/gid_attrs/ndevs/2", O_RDONLY), EINVAL);
}

static void
streams(void **state)
{
	char line[64];
	FILE *f = fopen(TYPE, "r"), *g = fopen64(TYPE, "re");

	(void)state;
	assert_non_null(f);
	assert_non_null(g);
	assert_non_null(fgets(line, sizeof(line), f));
	assert_string_equal(line, "1: CA\n");
	assert_int_equal(fcntl(fileno(g), F_GETFD), FD_CLOEXEC);
	fclose(f);
	fclose(g);
	NONE(fopen(TYPE, "w"), EACCES);
	NONE(fopen(TYPE, "r+"), EACCES);
	NONE(fopen("/dev/infiniband/c0", "r"), ENOENT);
}

static void
links(void **state)
{
	char buf[PATH_MAX], *p;

	(void)state;
	FAILS(readlink(TYPE, buf, sizeof(buf)), EINVAL);
	FAILS(readlinkat(3, "/dev/infiniband/c0", buf, sizeof(buf)), ENOENT);
	FAILS(__readlink_chk(TYPE, buf, sizeof(buf), sizeof(buf)), EINVAL);
	FAILS(__readlinkat_chk(3, TYPE, buf, sizeof(buf), sizeof(buf)), EINVAL);
	assert_ptr_equal(realpath("/sys//class/./infiniband/a0/", buf), buf);
	assert_string_equal(buf, "/sys/class/infiniband/a0");
	assert_ptr_equal(__realpath_chk(TYPE, buf, sizeof(buf)), buf);
	p = canonicalize_file_name("/dev/infiniband/b0");
	assert_string_equal(p, "/dev/infiniband/b0");
	free(p);
	NONE(realpath("/dev/infiniband/c0", NULL), ENOENT);
}

static int
not_dots(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static int
backwards(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*b)->d_name, (*a)->d_name);
}

static void
folders(void **state)
{
	static const char *const want[] = {".", "..", "a0", "b0"};
	struct dirent **names;
	struct dirent64 **names64;
	struct dirent *e;
	DIR *d = opendir("/dev/infiniband"), *other;
	int i, n;

	(void)state;
	assert_non_null(d);
	for (n = 0; (e = n % 2 ? readdir(d) : (struct dirent *)readdir64(d)) != NULL; n++) {
		assert_string_equal(e->d_name, want[n]);
		assert_int_equal(e->d_type, n < 2 ? DT_DIR : DT_CHR);
	}
	assert_int_equal(n, 4);
	rewinddir(d);
	(void)readdir(d);
	(void)readdir(d);
	seekdir(d, telldir(d) + 1);
	assert_string_equal(readdir(d)->d_name, "b0");
	FAILS(dirfd(d), ENOTSUP);
	/* A folder of the system's beside it. */
	other = opendir("/proc/self");
	assert_true(dirfd(other) >= 0);
	assert_non_null(readdir(other));
	rewinddir(other);
	seekdir(other, telldir(other));
	assert_int_equal(closedir(other), 0);
	assert_int_equal(closedir(d), 0);
	n = scandir("/sys/class/infiniband", &names, not_dots, backwards);
	assert_int_equal(n, 2);
	assert_string_equal(names[0]->d_name, "b0");
	for (i = 0; i < n; i++)
		free(names[i]);
	free((void *)names);
	n = scandir64("/sys/class/infiniband", &names64, NULL, NULL);
	assert_int_equal(n, 4);
	for (i = 0; i < n; i++)
		free(names64[i]);
	free((void *)names64);
	NONE(opendir(TYPE), ENOTDIR);
	NONE(opendir("/dev/infiniband/c0"), ENOENT);
	FAILS(scandir("/dev/infiniband/c0", &names, NULL, NULL), ENOENT);
}

/* So many folders can be open at once; then opendir() fails as without descriptors. */
static void
many_folders(void **state)
{
	DIR *d[17];
	int i;

	(void)state;
	for (i = 0; i < 16; i++)
		assert_non_null(d[i] = opendir("/dev/infiniband"));
	NONE(opendir("/dev/infiniband"), EMFILE);
	while (i-- > 0)
		closedir(d[i]);
	d[0] = opendir("/dev/infiniband");
	assert_non_null(d[0]);
	closedir(d[0]);
}

/* Paths that are not ours: results are the kernel's, and the dataplane is not asked. */
static void
others(void **state)
{
	static const char *const paths[] = {"/",
					    "/dev/null",
					    "/sys",
					    "/sys/class",
					    "/etc/passwd",
					    ".",
					    "none",
					    "/dev/infiniband2",
					    "/sys/class/infiniband/../net",
					    ""};
	struct stat st, raw;
	char text[PATH_MAX], *p;
	size_t i;
	int fd;

	(void)state;
	fake_asking = true; /* urn_paths_find() would crash */
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		long want = syscall(SYS_newfstatat, AT_FDCWD, paths[i], &raw, 0);
		int err = errno;

		errno = 0;
		assert_int_equal(stat(paths[i], &st), want);
		if (want != 0) {
			assert_int_equal(errno, err);
			continue;
		}
		assert_int_equal(st.st_ino, raw.st_ino);
		assert_int_equal(st.st_dev, raw.st_dev);
		assert_int_equal(access(paths[i], F_OK), 0);
		p = realpath(paths[i], NULL);
		assert_non_null(p);
		free(p);
	}
	fd = open("/tmp", O_TMPFILE | O_RDWR, 0640);
	if (fd >= 0) {
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_mode & 0700, 0600);
		close(fd);
	}
	assert_true(readlink("/proc/self/exe", text, sizeof(text)) > 0);
	fake_asking = false;
	assert_int_equal(fake_held, 0);
}

/* Interfaces: nobody but libfabric sees those of devices. */
static void
interfaces(void **state)
{
	struct ifaddrs *list, *i;

	(void)state;
	assert_int_equal(getifaddrs(&list), 0);
	for (i = list; i != NULL; i = i->ifa_next)
		assert_string_not_equal(i->ifa_name, "a0");
	freeifaddrs(list);
	freeifaddrs(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stats),	cmocka_unit_test(accesses),
		cmocka_unit_test(opens),	cmocka_unit_test(streams),
		cmocka_unit_test(links),	cmocka_unit_test(folders),
		cmocka_unit_test(many_folders), cmocka_unit_test(others),
		cmocka_unit_test(interfaces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
