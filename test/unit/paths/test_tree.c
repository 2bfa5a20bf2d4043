/* SPDX-License-Identifier: BSD-3-Clause */
/* The tree of files by which programs look for devices. */
#include "fake.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include <cmocka.h>

/* Find a path of ours, as a call of the C library would. returns: 0 or an errno value */
static int
find(const char *path, struct urn_paths_node *node)
{
	int err = -1;

	assert_true(urn_paths_look(path, node, &err));
	assert_int_equal(fake_held, 0);
	return err;
}

/* Whole paths are told apart from those that only begin alike; ".", ".." and "//" are followed. */
static void
owns(void **state)
{
	static const char *const yes[] = {"/dev/infiniband",
					  "/dev/infiniband/",
					  "/dev/infiniband/a0",
					  "/dev/infiniband/none",
					  "/sys/class/infiniband",
					  "//sys/./class//infiniband/a0",
					  "/sys/class/net/../infiniband/a0",
					  "/sys/class/infiniband_verbs/abi_version",
					  "/dev/../sys/class/infiniband"};
	static const char *const no[] = {"",
					 "/",
					 "/dev",
					 "/dev/",
					 "/dev/null",
					 "/dev/infiniband2",
					 "/dev/infinibandx/a0",
					 "/sys/class/infiniband_mad",
					 "/sys/class",
					 "/sys/class/net",
					 "dev/infiniband",
					 "/sys/class/infiniband/..",
					 "/sys/class/infiniband/../net/lo",
					 "/proc/infiniband",
					 "/sys/../etc/dev/infiniband",
					 "/devices/infiniband"};
	char clean[URN_PATHS_LEN], longer[2 * URN_PATHS_LEN];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		if (!urn_paths_ours(yes[i], clean))
			fail_msg("%s", yes[i]);
	for (i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (urn_paths_ours(no[i], clean))
			fail_msg("%s", no[i]);
	assert_false(urn_paths_ours(NULL, clean));
	snprintf(longer, sizeof(longer), "/dev/infiniband/%0*d", URN_PATHS_LEN, 0);
	assert_false(urn_paths_ours(longer, clean));
	snprintf(longer, sizeof(longer), "/dev/infiniband/%0*d", URN_PATHS_LEN - 17, 0);
	assert_true(urn_paths_ours(longer, clean));
	assert_int_equal(strlen(clean), URN_PATHS_LEN - 1);
}

/* Texts of files are those of the kernel. */
static void
texts(void **state)
{
	static const char *const file[][2] = {
		{"infiniband/a0/node_type", "1: CA\n"},
		{"infiniband/a0/node_guid", "0002:c903:000a:0b0c\n"},
		{"infiniband/a0/sys_image_guid", "0002:c903:000a:0b0c\n"},
		{"infiniband/a0/fw_ver", "1.2\n"},
		{"infiniband/a0/node_desc", "a0\n"},
		{"infiniband/a0/ports/1/state", "4: ACTIVE\n"},
		{"infiniband/b0/ports/1/state", "1: DOWN\n"},
		{"infiniband/a0/ports/1/phys_state", "5: LinkUp\n"},
		{"infiniband/a0/ports/1/link_layer", "Ethernet\n"},
		{"infiniband/a0/ports/1/rate", "40 Gb/sec (4X QDR)\n"},
		{"infiniband/b0/ports/1/rate", "2.5 Gb/sec (1X SDR)\n"},
		{"infiniband/a0/ports/1/lid", "0x0\n"},
		{"infiniband/a0/ports/1/pkeys/0", "0xffff\n"},
		{"infiniband/a0/ports/1/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n"},
		{"infiniband/a0/ports/1/gids/1", "0000:0000:0000:0000:0000:ffff:0a00:0001\n"},
		{"infiniband/a0/ports/1/gids/2", "0000:0000:0000:0000:0000:0000:0000:0000\n"},
		{"infiniband/a0/ports/1/gid_attrs/types/1", "RoCE v2\n"},
		{"infiniband/a0/ports/1/gid_attrs/ndevs/1", "a0\n"},
		{"infiniband_verbs/abi_version", "6\n"},
		{"infiniband_verbs/b0/abi_version", "1\n"},
		{"infiniband_verbs/b0/ibdev", "b0\n"},
	};
	struct urn_paths_node node;
	char path[URN_PATHS_LEN], text[URN_PATHS_TEXT];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(file) / sizeof(file[0]); i++) {
		snprintf(path, sizeof(path), "/sys/class/%s", file[i][0]);
		assert_int_equal(find(path, &node), 0);
		assert_int_equal(node.kind, URN_PATHS_FILE);
		assert_int_equal(urn_paths_text(&node, text), strlen(file[i][1]));
		assert_string_equal(text, file[i][1]);
	}
	/* The kernel has no interface of an empty entry. */
	assert_int_equal(find("/sys/class/infiniband/a0/ports/1/gid_attrs/ndevs/2", &node), 0);
	assert_int_equal(urn_paths_text(&node, text), -EINVAL);
}

static void
missing(void **state)
{
	static const char *const none[] = {"/dev/infiniband/c0",
					   "/dev/infiniband/a",
					   "/dev/infiniband/a00",
					   "/sys/class/infiniband/a0/ports/2",
					   "/sys/class/infiniband/a0/device",
					   "/sys/class/infiniband/a0/ports/1/gids/3",
					   "/sys/class/infiniband/a0/ports/1/gids/01",
					   "/sys/class/infiniband/a0/ports/1/gids/x",
					   "/sys/class/infiniband/a0/ports/1/gids/-1",
					   "/sys/class/infiniband/a0/ports/1/gids/99999999999",
					   "/sys/class/infiniband/a0/ports/1/pkeys/1"};
	struct urn_paths_node node;
	int err;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		if (find(none[i], &node) != ENOENT)
			fail_msg("%s", none[i]);
	assert_int_equal(find("/dev/infiniband/a0/x", &node), ENOTDIR);
	assert_int_equal(find("/sys/class/infiniband/a0/node_type/x", &node), ENOTDIR);
	/* Without a dataplane it is a machine without devices. */
	fake_devices = 0;
	assert_int_equal(find("/sys/class/infiniband", &node), ENOENT);
	assert_int_equal(find("/sys/class/infiniband_verbs/abi_version", &node), ENOENT);
	fake_devices = 2;
	fake_asking = true;
	assert_false(urn_paths_look("/sys/class/infiniband", &node, &err));
	fake_asking = false;
}

/* Each name that a folder shows is one that is found. */
static uint32_t
walk(const char *path, uint32_t *files)
{
	struct urn_paths_node node, below;
	char name[IBV_SYSFS_NAME_MAX], full[URN_PATHS_LEN + IBV_SYSFS_NAME_MAX];
	const struct urn_paths_devices *all;
	enum urn_paths_kind kind;
	uint32_t at = 0, n = 0;

	assert_int_equal(find(path, &node), 0);
	all = urn_paths_hold();
	while (urn_paths_next(&node, all, &at, name, &kind)) {
		snprintf(full, sizeof(full), "%s/%s", path, name);
		urn_paths_release();
		assert_int_equal(find(full, &below), 0);
		assert_int_equal(below.kind, kind);
		if (kind == URN_PATHS_DIR)
			walk(full, files);
		else
			(*files)++;
		n++;
		(void)urn_paths_hold();
	}
	urn_paths_release();
	return n;
}

static void
folders(void **state)
{
	uint32_t files = 0;

	(void)state;
	assert_int_equal(walk("/dev/infiniband", &files), 2);
	assert_int_equal(walk("/sys/class/infiniband", &files), 2);
	assert_int_equal(walk("/sys/class/infiniband_verbs", &files), 3);
	assert_int_equal(walk("/sys/class/infiniband/b0/ports/1/gids", &files), 12);
	/* 2 of /dev; 5 of a device, 9 and a P_Key of a port, 3 of a GID; 1 + 2 a device. */
	assert_int_equal(files, 2 + 2 * (5 + 10) + 3 * (3 + 12) + 1 + 2 * 2 + 12);
}

static void
attributes(void **state)
{
	struct urn_paths_node node;
	struct stat a, b;

	(void)state;
	assert_int_equal(find("/dev/infiniband/b0", &node), 0);
	urn_paths_stat(&node, &a);
	assert_int_equal(a.st_mode, S_IFCHR | 0666);
	assert_int_equal(minor(a.st_rdev), 193);
	assert_int_equal(find("/dev//infiniband/b0", &node), 0);
	urn_paths_stat(&node, &b);
	assert_int_equal(a.st_ino, b.st_ino);
	assert_int_equal(find("/dev/infiniband/a0", &node), 0);
	urn_paths_stat(&node, &b);
	assert_int_not_equal(a.st_ino, b.st_ino);
	assert_int_equal(find("/sys/class/infiniband/a0/ports", &node), 0);
	urn_paths_stat(&node, &a);
	assert_int_equal(a.st_mode, S_IFDIR | 0555);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owns),	   cmocka_unit_test(texts),	 cmocka_unit_test(missing),
		cmocka_unit_test(folders), cmocka_unit_test(attributes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
