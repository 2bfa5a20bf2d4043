/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * liburnic-paths.so: files of /dev and /sys by which programs look for RDMA devices, made from what
 * the dataplane says. The files are in memory only, and so nothing is left of them whatever ends
 * the program. Calls of the C library with one of these paths are answered here; calls with any
 * other path go to the C library untouched.
 */
#ifndef URN_PATHS_H
#define URN_PATHS_H

#include <urnic/verbs.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Longest path of ours, longest text of a file, devices and entries of a GID table that are shown;
 * the files of one device have the names of its GIDs' numbers. */
enum { URN_PATHS_LEN = 256, URN_PATHS_TEXT = 128, URN_PATHS_DEVICES = 32, URN_PATHS_GIDS = 64 };

/* A device of the dataplane. */
struct urn_paths_device {
	char name[IBV_SYSFS_NAME_MAX];
	char fw_ver[64];
	uint64_t guid; /* host order */
	uint32_t gids; /* entries of gid[] */
	union ibv_gid gid[URN_PATHS_GIDS];
	struct ibv_port_attr port;
};

/* All devices of the program's node. */
struct urn_paths_devices {
	uint32_t n;
	struct urn_paths_device device[URN_PATHS_DEVICES];
};

enum urn_paths_kind { URN_PATHS_DIR, URN_PATHS_FILE, URN_PATHS_CHAR };

/* A row of the tree (tree.c). */
struct urn_paths_row;

/* A file or folder of ours. */
struct urn_paths_node {
	enum urn_paths_kind kind;
	const struct urn_paths_row *row;
	const struct urn_paths_device *device; /* NULL: above all devices */
	uint32_t index;			       /* number of a GID or a device file */
	char path[URN_PATHS_LEN];	       /* without ".", ".." and empty parts */
};

/* A folder's next entry. at: 0, then as it was left; name: set. returns: false: no more */
bool urn_paths_next(const struct urn_paths_node *dir, const struct urn_paths_devices *all,
		    uint32_t *at, char name[IBV_SYSFS_NAME_MAX], enum urn_paths_kind *kind);

/* ---- tree.c */

/*
 * True when a path of the program's is below a folder of ours, or is one.
 *
 * path: NULL: no
 * clean: gets the path without ".", ".." and empty parts
 */
bool urn_paths_ours(const char *path, char clean[URN_PATHS_LEN]);
/*
 * Find a file or folder.
 *
 * clean: from urn_paths_ours()
 * node: set; points into all
 * returns: 0, ENOENT or ENOTDIR
 */
int urn_paths_find(const char *clean, const struct urn_paths_devices *all,
		   struct urn_paths_node *node);
/*
 * Look a path of the program's up.
 *
 * node: set when the path is there; its device may be gone after the call
 * err: 0, or an errno value: the path is ours, and not there
 * returns: false: the path is not ours
 */
bool urn_paths_look(const char *path, struct urn_paths_node *node, int *err);
/* Write the text of a file. returns: its length; -EINVAL: nothing can be read, as of an empty GID
 */
int urn_paths_text(const struct urn_paths_node *node, char text[URN_PATHS_TEXT]);
/* Fill the attributes of a file or folder. */
void urn_paths_stat(const struct urn_paths_node *node, struct stat *st);

/* ---- devices.c */

/*
 * Hold what the dataplane says of devices; it may be a second old.
 *
 * returns: urn_paths_release() follows; NULL: this thread asks the dataplane just now, and what it
 *          opens for that is the system's
 */
const struct urn_paths_devices *urn_paths_hold(void);
void urn_paths_release(void);

#endif
