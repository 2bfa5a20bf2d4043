/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors handed over by a client, and the memory of it that may be registered. */
#include "foreign_child.h"

#include "memory/maps.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, RW = PROT_READ | PROT_WRITE };

static void
refuse(const struct urn_space_fds *fds, int want, const char *says)
{
	struct urn_space *s = NULL;
	char why[256] = "";

	assert_int_equal(urn_space_create(fds, &s, why, sizeof(why)), want);
	assert_null(s);
	if (!strstr(why, says))
		fail_msg("\"%s\" does not say \"%s\"", why, says);
}

/* Descriptors of mem that are not that of child c are refused. */
static void
wrong_mem(const struct child *c, const struct child *d)
{
	struct urn_space_fds fds = c->fds;
	char path[64];

	fds.mem = -1;
	refuse(&fds, EBADF, "descriptor of mem is none");
	fds.mem = open("/dev/zero", O_RDWR | O_CLOEXEC);
	refuse(&fds, EBADF, "no file in /proc");
	close(fds.mem);
	fds.mem = memfd_create("mem", MFD_CLOEXEC);
	refuse(&fds, EBADF, "no file in /proc");
	close(fds.mem);
	fds.mem = open("/proc/sys/kernel/hostname", O_RDONLY | O_CLOEXEC);
	refuse(&fds, EBADF, "another file");
	close(fds.mem);
	fds.mem = d->fds.mem;
	refuse(&fds, EBADF, "another file, or process");
	fds.mem = c->fds.maps;
	refuse(&fds, EBADF, "another file");
	snprintf(path, sizeof(path), "/proc/%d/mem", c->pid);
	fds.mem = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fds.mem >= 0);
	refuse(&fds, EBADF, "not open for reading and writing");
	close(fds.mem);
	fds.mem = open(path, O_PATH | O_CLOEXEC);
	refuse(&fds, EBADF, "not open for");
	close(fds.mem);
	/* A thread's file has another name, and another inode: only the process's own is accepted.
	 */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/mem", c->pid, c->pid);
	fds.mem = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fds.mem >= 0);
	refuse(&fds, EBADF, "another file");
	close(fds.mem);
}

/* Each descriptor must be of the right kind, whatever its name is. */
static void
test_descriptors(void **state)
{
	int theirs;
	struct child c = child_start(), d = child_start();
	struct urn_space_fds fds = c.fds, own;
	struct urn_space *s = NULL;
	char why[256];

	(void)state;
	wrong_mem(&c, &d);
	fds.maps = d.fds.maps;
	refuse(&fds, EBADF, "another file, or process");
	fds.maps = c.fds.maps;
	fds.pidfd = d.fds.pidfd;
	refuse(&fds, EBADF, "no pidfd of process");
	fds.pidfd = c.sock;
	refuse(&fds, EBADF, "no pidfd");
	fds.pidfd = c.fds.pidfd;
	fds.pid = d.pid;
	refuse(&fds, EBADF, "no pidfd of process");

	theirs = dup(c.fds.maps);
	assert_int_equal(urn_space_create(&c.fds, &s, why, sizeof(why)), 0);
	/* The map is now opened as a separate file: a reader of the shared one holds up nobody. */
	assert_int_equal(lseek(c.fds.maps, 10, SEEK_SET), 10);
	assert_int_equal(lseek(theirs, 0, SEEK_CUR), 0);
	close(theirs);
	assert_true(urn_space_alive(s));
	urn_space_hold(s);
	urn_space_release(s);
	assert_true(urn_space_alive(s));
	child_end(&c);
	assert_false(urn_space_alive(s));
	assert_int_equal(urn_space_check(s, CHILD_AT, 8, false, why, sizeof(why)), EFAULT);
	assert_non_null(strstr(why, "has ended"));
	int mem = c.fds.mem;
	urn_space_release(s);
	assert_int_equal(fcntl(mem, F_GETFD), -1); /* closed with the last user */

	/* The client is dead before the space is made. */
	child_end(&d);
	refuse(&d.fds, ESRCH, "");
	urn_space_close_fds(&d.fds);

	assert_int_equal(urn_space_open_self(&own), 0);
	assert_int_equal(urn_space_create(&own, &s, why, sizeof(why)), 0);
	urn_space_release(s);
	urn_space_release(NULL);
}

/* A descriptor that was opened before an exec is refused: its memory is gone, its process is not.
 */
static void
test_before_exec(void **state)
{
	struct child c = child_start();

	(void)state;
	assert_int_equal(child_do(&c, CHILD_EXEC, CHILD_AT, PAGE, 0), 0);
	refuse(&c.fds, ESRCH, "executed another program");
	child_end(&c);
	urn_space_close_fds(&c.fds);
}

/*
 * A process number is reused: the descriptors stay those of the process that died.
 * Numbers are given out in turn, so the test asks for this one (Linux 5.5); a user
 * without that right gets a message.
 */
static void
test_pid_again(void **state)
{
	struct child c = child_start();
	struct urn_space *s = NULL;
	struct {
		uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls,
			set_tid, set_tid_size;
	} args = {0};
	char why[256], byte = 0;
	int gate[2], status;
	pid_t want = c.pid, pid;

	(void)state;
	assert_int_equal(child_do(&c, CHILD_MAP, CHILD_AT, PAGE, RW), 0);
	assert_int_equal(urn_space_create(&c.fds, &s, why, sizeof(why)), 0);
	child_end(&c);
	assert_int_equal(pipe(gate), 0);
	args.exit_signal = SIGCHLD;
	args.set_tid = (uintptr_t)&want;
	args.set_tid_size = 1;
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0) {
		uint8_t *p = mmap((void *)CHILD_AT, PAGE, RW,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

		close(gate[1]);
		if (p == MAP_FAILED || read(gate[0], &byte, 1) != 0)
			_exit(2);
		for (int i = 0; i < PAGE; i++)
			if (p[i])
				_exit(3);
		_exit(0);
	}
	close(gate[0]);
	if (pid < 0) {
		print_message("no process of a number of one's choice: %s\n", strerror(errno));
		close(gate[1]);
		urn_space_release(s);
		if (geteuid() == 0)
			fail_msg("root may");
		skip();
	}
	assert_int_equal(pid, want);
	assert_false(urn_space_alive(s));
	assert_int_equal(pwrite(c.fds.mem, "xx", 2, (off_t)CHILD_AT), 0);
	assert_int_equal(urn_space_check(s, CHILD_AT, 8, true, why, sizeof(why)), EFAULT);
	refuse(&c.fds, ESRCH, "has ended");
	close(gate[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	urn_space_release(s);
}

/* ---- rights */

static int
check(struct urn_space *s, uint64_t at, uint64_t len, bool write, const char *says)
{
	char why[256] = "";
	int rc = urn_space_check(s, at, len, write, why, sizeof(why));

	if (!strstr(why, says))
		fail_msg("\"%s\" does not say \"%s\"", why, says);
	return rc;
}

static void
test_rights(void **state)
{
	const uint64_t at = CHILD_AT;
	struct child c = child_start();
	struct urn_space *s = NULL;
	char why[256];
	uint64_t special;

	(void)state;
	assert_int_equal(urn_space_create(&c.fds, &s, why, sizeof(why)), 0);
	/* Pages: rw rw r- -- (none) rw rwx w- shared rw, shared r */
	assert_int_equal(child_do(&c, CHILD_MAP, at, 12 * PAGE, RW), 0);
	assert_int_equal(child_do(&c, CHILD_PROTECT, at + 2 * PAGE, PAGE, PROT_READ), 0);
	assert_int_equal(child_do(&c, CHILD_PROTECT, at + 3 * PAGE, PAGE, PROT_NONE), 0);
	assert_int_equal(child_do(&c, CHILD_UNMAP, at + 4 * PAGE, PAGE, 0), 0);
	assert_int_equal(child_do(&c, CHILD_PROTECT, at + 6 * PAGE, PAGE, RW | PROT_EXEC), 0);
	assert_int_equal(child_do(&c, CHILD_PROTECT, at + 7 * PAGE, PAGE, PROT_WRITE), 0);
	assert_int_equal(child_do(&c, CHILD_MAP, at + 8 * PAGE, PAGE, RW | 0x100), 0);
	assert_int_equal(child_do(&c, CHILD_MAP, at + 9 * PAGE, PAGE, PROT_READ | 0x100), 0);

	assert_int_equal(check(s, at, 2 * PAGE, true, ""), 0);
	assert_int_equal(check(s, at + 1, 2 * PAGE - 1, true, ""), 0);
	assert_int_equal(check(s, at, 2 * PAGE + 1, true, "not writable (r--p)"), EFAULT);
	assert_int_equal(check(s, at, 3 * PAGE, false, ""), 0);
	assert_int_equal(check(s, at, 3 * PAGE + 1, false, "not readable (---p)"), EFAULT);
	assert_int_equal(check(s, at + 3 * PAGE, 1, true, "not readable"), EFAULT);
	assert_int_equal(check(s, at + 4 * PAGE, 1, false, "nothing is mapped at 0x7e9000004000"),
			 EFAULT);
	assert_int_equal(check(s, at + 5 * PAGE - 1, 2, false, "nothing is mapped"), EFAULT);
	assert_int_equal(check(s, at + 5 * PAGE, 2 * PAGE, true, ""), 0);
	assert_int_equal(check(s, at + 5 * PAGE, 2 * PAGE + 1, true, "not readable (-w-p)"),
			 EFAULT);
	assert_int_equal(check(s, at + 8 * PAGE, PAGE, true, ""), 0);
	assert_int_equal(check(s, at + 9 * PAGE, PAGE, false, ""), 0);
	assert_int_equal(check(s, at + 9 * PAGE, 1, true, "not writable (r--s)"), EFAULT);
	assert_int_equal(
		check(s, at + 11 * PAGE, PAGE + 1, false, "nothing is mapped at 0x7e900000c000"),
		EFAULT);
	assert_int_equal(check(s, UINT64_MAX - 4095, 4096, false, "nothing is mapped"), EFAULT);
	assert_int_equal(check(s, 0, UINT64_MAX, false, "nothing is mapped at 0x0"), EFAULT);
	assert_int_equal(check(s, at, 0, true, ""), 0);
	assert_int_equal(check(s, 0, 0, true, ""), 0);

	special = child_find(&c, "[stack]");
	assert_int_equal(check(s, special, PAGE, true, ""), 0);
	special = child_find(&c, "[vdso]");
	if (special)
		assert_int_equal(check(s, special, PAGE, false, "kernel's own"), EFAULT);
	special = child_find(&c, "[vvar]");
	if (special)
		assert_int_equal(check(s, special, PAGE, false, "kernel's own"), EFAULT);
	special = child_find(&c, "[vsyscall]");
	if (special)
		assert_int_equal(check(s, special, PAGE, false, "kernel's own"), EFAULT);
	urn_space_release(s);
	child_end(&c);
}

/* Registration asks for the memory rights that it needs, and counts as a user of the space. */
static void
test_register(void **state)
{
	struct ft f;
	struct urn_region *r;
	char why[256];
	uint32_t key;

	(void)state;
	ft_open(&f, 4 * PAGE);
	assert_int_equal(child_do(&f.child, CHILD_MAP, CHILD_AT, 4 * PAGE, PROT_READ), 0);
	const uint32_t write[] = {URN_ACCESS_LOCAL_WRITE,
				  URN_ACCESS_LOCAL_WRITE | URN_ACCESS_REMOTE_WRITE,
				  URN_ACCESS_LOCAL_WRITE | URN_ACCESS_REMOTE_ATOMIC};
	for (int i = 0; i < 3; i++) {
		assert_int_equal(test_reg_foreign(f.mem, f.pd, f.space, CHILD_AT, PAGE, 0,
						     write[i], &key, why, sizeof(why)),
				 EFAULT);
		assert_non_null(strstr(why, "not writable"));
	}
	assert_int_equal(test_reg_foreign(f.mem, f.pd, f.space, CHILD_AT, PAGE, 0,
					     URN_ACCESS_REMOTE_WRITE, &key, why, sizeof(why)),
			 EINVAL);
	assert_non_null(strstr(why, "need local write"));
	assert_int_equal(test_reg_foreign(f.mem, f.pd, f.space, UINT64_MAX - 10, PAGE, 0, 0,
					     &key, why, sizeof(why)),
			 EINVAL);
	assert_non_null(strstr(why, "wrap around"));
	assert_int_equal(test_reg_foreign(f.mem, 77, f.space, CHILD_AT, PAGE, 0, 0, &key, why,
					     sizeof(why)),
			 EINVAL);
	assert_non_null(strstr(why, "no protection domain 77"));
	assert_int_equal(urn_mem_dealloc_pd(f.mem, f.pd), 0); /* no refusal has left a user of the domain */
	f.pd = test_pd(f.mem);

	assert_int_equal(test_reg_foreign(f.mem, f.pd, f.space, CHILD_AT + 8, PAGE, 1 << 20,
					     URN_ACCESS_REMOTE_READ | URN_ACCESS_ZERO_BASED, &key,
					     why, sizeof(why)),
			 0);
	assert_int_equal(urn_mem_check(f.mem, key, f.pd, 0, 0, PAGE, URN_ACCESS_REMOTE_READ, 1, &r),
			 0);
	assert_int_equal(urn_mem_check(f.mem, key, f.pd, 0, 0, 1, URN_ACCESS_LOCAL_WRITE, 0, &r),
			 URN_MEM_ACCESS);
	urn_space_release(f.space); /* the region keeps the space */
	struct urn_memop op = {.region = r,
			       .addr = 0,
			       .frame = f.frame->data,
			       .m = &f.frame->m,
			       .len = 8,
			       .kind = URN_MEMOP_GATHER};
	ft_run(&f, &op, 1);
	assert_int_equal(op.status, URN_MEMOP_DONE);
	test_dereg(f.mem, key);
	assert_int_equal(fcntl(f.child.fds.mem, F_GETFD), -1); /* and releases it */
	f.space = NULL;
	ft_close(&f);
}

/* A table that is destroyed releases its spaces. */
static void
test_destroy(void **state)
{
	struct ft f;

	(void)state;
	ft_open(&f, PAGE);
	assert_int_equal(child_do(&f.child, CHILD_MAP, CHILD_AT, PAGE, RW), 0);
	ft_reg(&f, RIGHTS);
	f.region = NULL;
	ft_close(&f);
}

/* ---- the text */

static void
test_lines(void **state)
{
	static const char *const bad[] = {"",
					  "x",
					  "10-20",
					  "10-20 rw",
					  "20-10 rw-p 0 0:0 0 ",
					  "10-20 rwyp 0 0:0 0 ",
					  "10 20 rw-p 0 0:0 0 x"};
	struct urn_map m;

	(void)state;
	assert_true(urn_map_parse("7f00-8f00 rw-s 00000000 00:1f 1234567   /tmp/a b", &m));
	assert_true(m.start == 0x7f00 && m.end == 0x8f00);
	assert_string_equal(m.perms, "rw-s");
	assert_string_equal(m.name, "/tmp/a b");
	assert_true(urn_map_parse(
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]", &m));
	assert_non_null(urn_map_special(&m));
	assert_true(urn_map_parse("1000-2000 r--p 00000000 00:00 0 ", &m));
	assert_string_equal(m.name, "");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(urn_map_parse(bad[i], &m));

	static const struct {
		const char *name;
		bool special;
	} names[] = {
		{"", false},
		{"[heap]", false},
		{"[stack]", false},
		{"[anon:x]", false},
		{"/memfd:x (deleted)", false},
		{"/dev/shm/x", false},
		{"/dev/zero (deleted)", false},
		{"/dev/hugepages/x", false},
		{"/SYSV00000000 (deleted)", false},
		{"/usr/lib/x.so", false},
		{"[vvar]", true},
		{"[vvar_vclock]", true},
		{"[vdso]", true},
		{"/dev/mem", true},
		{"/dev/dri/card0", true},
		{"anon_inode:[io_uring]", true},
		{"anon_inode:[perf_event]", true},
		{"/dmabuf:x", true},
		{"socket:[5]", true},
		{"/dev/infiniband/uverbs0", true},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		m.name = names[i].name;
		assert_int_equal(urn_map_special(&m) != NULL, names[i].special);
	}
}

static int
file_of(const char *text, size_t n)
{
	int fd = memfd_create("maps", MFD_CLOEXEC);

	assert_int_equal(write(fd, text, n), n);
	return fd;
}

/* Lines in any portions, long paths, and senseless text. */
static void
test_text(void **state)
{
	enum { LINES = 3000 };
	char *text = malloc(LINES * 60 + 20000), why[256];
	size_t n = 0;
	int fd;

	(void)state;
	for (unsigned long i = 0; i < LINES; i++) {
		n += (size_t)sprintf(text + n, "%lx-%lx rw-p 0 00:00 0 %.*s", i << 12,
				     (i + 1) << 12, (int)(i % 17), "/abcdefghijklmnopq");
		if (i == 100) { /* longer than any path */
			memset(text + n, 'x', 12000);
			n += 12000;
		}
		text[n++] = '\n';
	}
	fd = file_of(text, n);
	assert_int_equal(urn_maps_check(fd, -1, 0, (uint64_t)LINES << 12, true, why, sizeof(why)),
			 0);
	assert_int_equal(urn_maps_check(fd, -1, 50 << 12, 60ul << 12, true, why, sizeof(why)), 0);
	assert_int_equal(
		urn_maps_check(fd, -1, 0, ((uint64_t)LINES << 12) + 1, true, why, sizeof(why)),
		EFAULT);
	close(fd);
	fd = file_of("1000-2000 rw-p 0 0:0 0 \nnonsense\n3000-4000 rw-p 0 0:0 0 \n", 57);
	assert_int_equal(urn_maps_check(fd, -1, 0x1000, 0x1000, true, why, sizeof(why)), 0);
	assert_int_equal(urn_maps_check(fd, -1, 0x3000, 0x1000, true, why, sizeof(why)), EFAULT);
	assert_non_null(strstr(why, "\"nonsense\""));
	close(fd);
	assert_int_equal(urn_maps_check(fd, -1, 0x3000, 0x1000, true, why, sizeof(why)), EFAULT);
	assert_non_null(strstr(why, "can't be read"));
	free(text);
}

/* A file that ends before its mapping does. */
static void
test_end_of_file(void **state)
{
	struct urn_space_fds fds;
	char why[256];
	uint64_t at;
	int fd = memfd_create("short", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(ftruncate(fd, 5000), 0);
	at = (uintptr_t)mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_int_equal(urn_space_open_self(&fds), 0);
	/* The rest of the last page belongs to the mapping. */
	assert_int_equal(urn_maps_check(fds.maps, fds.mem, at, 8192, true, why, sizeof(why)), 0);
	assert_int_equal(urn_maps_check(fds.maps, fds.mem, at, 8193, true, why, sizeof(why)),
			 EFAULT);
	assert_non_null(strstr(why, "behind the end of the file /memfd:short"));
	assert_int_equal(urn_maps_check(fds.maps, fds.mem, at + 12288, 1, false, why, sizeof(why)),
			 EFAULT);
	assert_int_equal(ftruncate(fd, 16384), 0);
	assert_int_equal(urn_maps_check(fds.maps, fds.mem, at, 16384, true, why, sizeof(why)), 0);
	urn_space_close_fds(&fds);
	munmap((void *)(uintptr_t)at, 16384);
	close(fd);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_descriptors), cmocka_unit_test(test_before_exec),
		cmocka_unit_test(test_pid_again),   cmocka_unit_test(test_rights),
		cmocka_unit_test(test_register),    cmocka_unit_test(test_destroy),
		cmocka_unit_test(test_lines),	    cmocka_unit_test(test_text),
		cmocka_unit_test(test_end_of_file),
	};

	child_be_victim(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
