/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmd_glue/huge.h"

#include <glob.h>
#include <limits.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HUGE_SYS "/sys/kernel/mm/hugepages/hugepages-"

/* Find the next mount of hugetlbfs that we may write to. returns 0 at the end */
static int
mount_next(FILE *mounts, char *dir, size_t size)
{
	struct mntent m;
	char buf[2 * PATH_MAX];

	while (getmntent_r(mounts, &m, buf, sizeof(buf)) != NULL) {
		if (strcmp(m.mnt_type, "hugetlbfs") != 0 || access(m.mnt_dir, W_OK) != 0)
			continue;
		snprintf(dir, size, "%s", m.mnt_dir);
		return 1;
	}
	return 0;
}

bool
urn_huge_dir(const char *mounts, char *dir, size_t size)
{
	FILE *f = setmntent(mounts, "r");
	char first[PATH_MAX];
	struct mntent m;
	char buf[2 * PATH_MAX];
	bool any = false;

	if (f == NULL)
		return false;
	while (!any && getmntent_r(f, &m, buf, sizeof(buf)) != NULL) {
		any = strcmp(m.mnt_type, "hugetlbfs") == 0;
		snprintf(first, sizeof(first), "%s", m.mnt_dir);
	}
	any = any && access(first, W_OK) != 0 && mount_next(f, dir, size);
	endmntent(f);
	return any;
}

static unsigned long
pages_mb(const char *path)
{
	unsigned long kb = 0, pages = 0;
	FILE *f = fopen(path, "r");

	if (f == NULL)
		return 0;
	if (sscanf(path, HUGE_SYS "%lukB", &kb) != 1 || fscanf(f, "%lu", &pages) != 1)
		pages = 0;
	fclose(f);
	return kb * pages / 1024;
}

unsigned int
urn_huge_free_mb(void)
{
	FILE *mounts = setmntent("/proc/self/mounts", "r");
	char dir[PATH_MAX];
	unsigned long mb = 0;
	glob_t g;
	size_t i;
	int any;

	if (mounts == NULL)
		return 0;
	any = mount_next(mounts, dir, sizeof(dir));
	endmntent(mounts);
	if (!any || glob(HUGE_SYS "*/free_hugepages", 0, NULL, &g) != 0)
		return 0;
	for (i = 0; i < g.gl_pathc; i++)
		mb += pages_mb(g.gl_pathv[i]);
	globfree(&g);
	return mb > UINT_MAX ? UINT_MAX : (unsigned int)mb;
}

static void
remove_in(const char *dir, const char *prefix)
{
	char pattern[PATH_MAX + 64];
	glob_t g;
	size_t i;

	snprintf(pattern, sizeof(pattern), "%s/%smap_*", dir, prefix);
	if (glob(pattern, 0, NULL, &g) != 0)
		return;
	for (i = 0; i < g.gl_pathc; i++)
		unlink(g.gl_pathv[i]);
	globfree(&g);
}

void
urn_huge_remove(const char *prefix)
{
	FILE *mounts = setmntent("/proc/self/mounts", "r");
	char dir[PATH_MAX];

	if (mounts == NULL)
		return;
	while (mount_next(mounts, dir, sizeof(dir)))
		remove_in(dir, prefix);
	endmntent(mounts);
}
