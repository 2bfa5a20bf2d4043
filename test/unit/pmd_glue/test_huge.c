/* SPDX-License-Identifier: BSD-3-Clause */
/* The hugetlbfs that an EAL gets: one that its user may write to, whichever was mounted first. */
#include "test/unit/pmd_glue/harness.h"
#include "pmd_glue/huge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Write a table of mounts, and look what the EAL has to be told. returns: the path, ""; static */
static const char *
told(const char *table)
{
	static char dir[256];
	char path[] = P_tmpdir "/urnic-huge.XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;

	check(f != NULL && fputs(table, f) >= 0 && fclose(f) == 0);
	if (!urn_huge_dir(path, dir, sizeof(dir)))
		dir[0] = '\0';
	unlink(path);
	return dir;
}

/* P_tmpdir is writable for everybody, and a folder that is not there for nobody. */
static void
takes_a_writable_mount(void *arg)
{
	(void)arg;
	check(strcmp(told("proc /proc proc rw 0 0\n"
			  "huge /nowhere/huge hugetlbfs rw,pagesize=2M 0 0\n"
			  "mine " P_tmpdir " hugetlbfs rw,pagesize=2M 0 0\n"),
		     P_tmpdir) == 0);
	check(strcmp(told("a /nowhere/a hugetlbfs rw 0 0\nb /nowhere/b hugetlbfs rw 0 0\n"
			  "tmp " P_tmpdir " tmpfs rw 0 0\n"),
		     "") == 0);
}

/* Where the first one is writable the EAL finds it, and may take further ones of other page sizes.
 */
static void
says_nothing_without_need(void *arg)
{
	(void)arg;
	check(strcmp(told("mine " P_tmpdir " hugetlbfs rw 0 0\nx /nowhere hugetlbfs rw 0 0\n"),
		     "") == 0);
	check(strcmp(told("mine " P_tmpdir " hugetlbfs rw 0 0\ntoo /dev/shm hugetlbfs rw 0 0\n"),
		     "") == 0);
	check(strcmp(told(""), "") == 0);
	check(!urn_huge_dir("/nowhere/mounts", NULL, 0));
}

CHILD_TEST(takes_a_writable_mount)
CHILD_TEST(says_nothing_without_need)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_takes_a_writable_mount),
		cmocka_unit_test(test_says_nothing_without_need),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
