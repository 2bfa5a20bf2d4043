/* SPDX-License-Identifier: BSD-3-Clause */
/* The tree: which files there are, and what they say. The names and texts are those of the kernel's
 * sysfs for RDMA devices. */
#include "dropin/paths/paths.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

/* How many entries a row stands for: one, one for each device, or one for each entry of the GID
 * table. */
enum urn_paths_each { URN_PATHS_ONE, URN_PATHS_EACH_DEVICE, URN_PATHS_EACH_GID };

struct urn_paths_row {
	const char *name; /* the entry's, in a row for one */
	enum urn_paths_kind kind;
	enum urn_paths_each each;
	const struct urn_paths_row *below; /* rows of a folder */
	size_t rows;			   /* number of these */
	/* Writes a file's text. returns: like snprintf(), or -EINVAL */
	int (*text)(const struct urn_paths_node *node, char *text, size_t size);
};

#define ROWS(list) .kind = URN_PATHS_DIR, .below = (list), .rows = sizeof(list) / sizeof((list)[0])
#define FILE_OF(file, function)                                            \
	{                                                                  \
		.name = (file), .kind = URN_PATHS_FILE, .text = (function) \
	}

static int
text_node_type(const struct urn_paths_node *node, char *text, size_t size)
{
	(void)node;
	return snprintf(text, size, "1: CA\n");
}

static int
text_guid(const struct urn_paths_node *node, char *text, size_t size)
{
	uint64_t g = node->device->guid;

	return snprintf(text, size, "%04x:%04x:%04x:%04x\n", (unsigned int)(g >> 48),
			(unsigned int)(g >> 32 & 0xffff), (unsigned int)(g >> 16 & 0xffff),
			(unsigned int)(g & 0xffff));
}

static int
text_name(const struct urn_paths_node *node, char *text, size_t size)
{
	return snprintf(text, size, "%s\n", node->device->name);
}

static int
text_fw_ver(const struct urn_paths_node *node, char *text, size_t size)
{
	return snprintf(text, size, "%s\n", node->device->fw_ver);
}

static int
text_abi_version(const struct urn_paths_node *node, char *text, size_t size)
{
	/* 6 is the kernel's version of the interface, 1 that of a device's driver. */
	return snprintf(text, size, "%d\n", node->device == NULL ? 6 : 1);
}

static int
text_state(const struct urn_paths_node *node, char *text, size_t size)
{
	return snprintf(text, size, "%s\n",
			node->device->port.state == IBV_PORT_ACTIVE ? "4: ACTIVE" : "1: DOWN");
}

static int
text_phys_state(const struct urn_paths_node *node, char *text, size_t size)
{
	return snprintf(text, size, "%s\n",
			node->device->port.state == IBV_PORT_ACTIVE ? "5: LinkUp" : "3: Disabled");
}

static int
text_rate(const struct urn_paths_node *node, char *text, size_t size)
{
	/* Tenths of Gbit/s of a lane: by the bits of active_speed, and lanes by those of
	 * active_width. */
	static const struct {
		unsigned int bit, tenths;
		const char *name;
	} speed[] = {{1, 25, "SDR"},   {2, 50, "DDR"},	 {4, 100, "QDR"}, {8, 100, "FDR10"},
		     {16, 140, "FDR"}, {32, 250, "EDR"}, {64, 500, "HDR"}};
	static const unsigned int lanes[] = {1, 4, 8, 12, 2};
	const struct ibv_port_attr *p = &node->device->port;
	size_t s = 0, w = 0;
	unsigned int tenths;

	while (s < sizeof(speed) / sizeof(speed[0]) - 1 && speed[s].bit != p->active_speed)
		s++;
	while (w < sizeof(lanes) / sizeof(lanes[0]) - 1 && 1u << w != p->active_width)
		w++;
	tenths = speed[s].tenths * lanes[w];
	if (tenths % 10 != 0)
		return snprintf(text, size, "%u.%u Gb/sec (%uX %s)\n", tenths / 10, tenths % 10,
				lanes[w], speed[s].name);
	return snprintf(text, size, "%u Gb/sec (%uX %s)\n", tenths / 10, lanes[w], speed[s].name);
}

static int
text_link_layer(const struct urn_paths_node *node, char *text, size_t size)
{
	(void)node;
	return snprintf(text, size, "Ethernet\n");
}

static int
text_hex_zero(const struct urn_paths_node *node, char *text, size_t size)
{
	(void)node;
	return snprintf(text, size, "0x0\n");
}

static int
text_zero(const struct urn_paths_node *node, char *text, size_t size)
{
	(void)node;
	return snprintf(text, size, "0\n");
}

static int
text_cap_mask(const struct urn_paths_node *node, char *text, size_t size)
{
	return snprintf(text, size, "0x%08x\n", node->device->port.port_cap_flags);
}

static int
text_pkey(const struct urn_paths_node *node, char *text, size_t size)
{
	(void)node;
	return snprintf(text, size, "0xffff\n");
}

static int
text_gid(const struct urn_paths_node *node, char *text, size_t size)
{
	const uint8_t *g = node->device->gid[node->index].raw;
	size_t i, at = 0;

	for (i = 0; i < 16; i += 2)
		at += (size_t)snprintf(text + at, size - at, "%02x%02x%c", g[i], g[i + 1],
				       i < 14 ? ':' : '\n');
	return (int)at;
}

static int
text_gid_type(const struct urn_paths_node *node, char *text, size_t size)
{
	(void)node;
	return snprintf(text, size, "RoCE v2\n");
}

static int
text_gid_ndev(const struct urn_paths_node *node, char *text, size_t size)
{
	static const union ibv_gid none;

	if (memcmp(&node->device->gid[node->index], &none, sizeof(none)) == 0)
		return -EINVAL;
	return snprintf(text, size, "%s\n", node->device->name);
}

static const struct urn_paths_row gids[] = {
	{.kind = URN_PATHS_FILE, .each = URN_PATHS_EACH_GID, .text = text_gid},
};
static const struct urn_paths_row gid_types[] = {
	{.kind = URN_PATHS_FILE, .each = URN_PATHS_EACH_GID, .text = text_gid_type},
};
static const struct urn_paths_row gid_ndevs[] = {
	{.kind = URN_PATHS_FILE, .each = URN_PATHS_EACH_GID, .text = text_gid_ndev},
};
static const struct urn_paths_row gid_attrs[] = {
	{.name = "ndevs", ROWS(gid_ndevs)},
	{.name = "types", ROWS(gid_types)},
};
static const struct urn_paths_row pkeys[] = {
	FILE_OF("0", text_pkey),
};
static const struct urn_paths_row port[] = {
	FILE_OF("cap_mask", text_cap_mask),
	{.name = "gid_attrs", ROWS(gid_attrs)},
	{.name = "gids", ROWS(gids)},
	FILE_OF("lid", text_hex_zero),
	FILE_OF("lid_mask_count", text_zero),
	FILE_OF("link_layer", text_link_layer),
	FILE_OF("phys_state", text_phys_state),
	{.name = "pkeys", ROWS(pkeys)},
	FILE_OF("rate", text_rate),
	FILE_OF("sm_lid", text_hex_zero),
	FILE_OF("sm_sl", text_zero),
	FILE_OF("state", text_state),
};
static const struct urn_paths_row ports[] = {
	{.name = "1", ROWS(port)},
};
static const struct urn_paths_row device[] = {
	FILE_OF("fw_ver", text_fw_ver),	 FILE_OF("node_desc", text_name),
	FILE_OF("node_guid", text_guid), FILE_OF("node_type", text_node_type),
	{.name = "ports", ROWS(ports)},	 FILE_OF("sys_image_guid", text_guid),
};
static const struct urn_paths_row devices[] = {
	{.each = URN_PATHS_EACH_DEVICE, ROWS(device)},
};
static const struct urn_paths_row verbs_device[] = {
	FILE_OF("abi_version", text_abi_version),
	FILE_OF("ibdev", text_name),
};
static const struct urn_paths_row verbs_devices[] = {
	FILE_OF("abi_version", text_abi_version),
	{.each = URN_PATHS_EACH_DEVICE, ROWS(verbs_device)},
};
static const struct urn_paths_row dev_files[] = {
	{.kind = URN_PATHS_CHAR, .each = URN_PATHS_EACH_DEVICE},
};
/* The names are whole paths. */
static const struct urn_paths_row tops[] = {
	{.name = "/dev/infiniband", ROWS(dev_files)},
	{.name = "/sys/class/infiniband", ROWS(devices)},
	{.name = "/sys/class/infiniband_verbs", ROWS(verbs_devices)},
};

/* The row of the folder that a path is below, or is; NULL: none */
static const struct urn_paths_row *
top_of(const char *clean)
{
	size_t i;

	for (i = 0; i < sizeof(tops) / sizeof(tops[0]); i++) {
		size_t n = strlen(tops[i].name);

		if (strncmp(clean, tops[i].name, n) == 0 && (clean[n] == '/' || clean[n] == '\0'))
			return &tops[i];
	}
	return NULL;
}

bool
urn_paths_ours(const char *path, char clean[URN_PATHS_LEN])
{
	size_t n, at = 0;

	if (path == NULL || path[0] != '/')
		return false;
	path += strspn(path, "/");
	if (strncmp(path, "dev/", 4) != 0 && strncmp(path, "sys/", 4) != 0)
		return false;
	for (clean[0] = '\0'; *path != '\0'; path += strspn(path, "/")) {
		n = strcspn(path, "/");
		if (at + 1 + n >= URN_PATHS_LEN)
			return false;
		if (n == 2 && path[0] == '.' && path[1] == '.') {
			while (at > 0 && clean[--at] != '/')
				;
		} else if (n != 1 || path[0] != '.') {
			clean[at++] = '/';
			memcpy(clean + at, path, n);
			at += n;
		}
		clean[at] = '\0';
		path += n;
	}
	return top_of(clean) != NULL;
}

/* The number of a part of a path that the kernel would write so. returns: false: it is none */
static bool
number(const char *part, size_t len, uint32_t *value)
{
	char text[8];

	if (len == 0 || len >= sizeof(text))
		return false;
	memcpy(text, part, len);
	text[len] = '\0';
	*value = (uint32_t)strtoul(text, NULL, 10);
	return text[strspn(text, "0123456789")] == '\0' && (len == 1 || text[0] != '0');
}

/* True when a part of a path names an entry of a row; the node gets device and index. */
static bool
matches(const struct urn_paths_row *row, const char *part, size_t len,
	const struct urn_paths_devices *all, struct urn_paths_node *node)
{
	uint32_t i;

	switch (row->each) {
	case URN_PATHS_ONE:
		return strlen(row->name) == len && memcmp(row->name, part, len) == 0;
	case URN_PATHS_EACH_GID:
		return number(part, len, &node->index) && node->index < node->device->gids;
	case URN_PATHS_EACH_DEVICE:
		for (i = 0; i < all->n; i++)
			if (strlen(all->device[i].name) == len &&
			    memcmp(all->device[i].name, part, len) == 0) {
				node->device = &all->device[i];
				node->index = i;
				return true;
			}
		break;
	}
	return false;
}

int
urn_paths_find(const char *clean, const struct urn_paths_devices *all, struct urn_paths_node *node)
{
	const struct urn_paths_row *row = top_of(clean);
	const char *part = clean + strlen(row->name);
	size_t i, len;

	memset(node, 0, sizeof(*node));
	if (all->n == 0)
		return ENOENT; /* a machine without RDMA devices has no such folders */
	while (*part == '/') {
		len = strcspn(++part, "/");
		if (row->kind != URN_PATHS_DIR)
			return ENOTDIR;
		for (i = 0; i < row->rows; i++)
			if (matches(&row->below[i], part, len, all, node))
				break;
		if (i == row->rows)
			return ENOENT;
		row = &row->below[i];
		part += len;
	}
	node->row = row;
	node->kind = row->kind;
	snprintf(node->path, sizeof(node->path), "%s", clean);
	return 0;
}

bool
urn_paths_look(const char *path, struct urn_paths_node *node, int *err)
{
	const struct urn_paths_devices *all;
	char clean[URN_PATHS_LEN];

	if (!urn_paths_ours(path, clean))
		return false;
	all = urn_paths_hold();
	if (all == NULL)
		return false;
	*err = urn_paths_find(clean, all, node);
	urn_paths_release();
	return true;
}

int
urn_paths_text(const struct urn_paths_node *node, char text[URN_PATHS_TEXT])
{
	int n = node->row->text(node, text, URN_PATHS_TEXT);

	return n < URN_PATHS_TEXT ? n : URN_PATHS_TEXT - 1;
}

bool
urn_paths_next(const struct urn_paths_node *dir, const struct urn_paths_devices *all, uint32_t *at,
	       char name[IBV_SYSFS_NAME_MAX], enum urn_paths_kind *kind)
{
	uint32_t skip = (*at)++, have;
	size_t i;

	for (i = 0; i < dir->row->rows; i++, skip -= have) {
		const struct urn_paths_row *row = &dir->row->below[i];

		*kind = row->kind;
		have = row->each == URN_PATHS_ONE	    ? 1
		       : row->each == URN_PATHS_EACH_DEVICE ? all->n
							    : dir->device->gids;
		if (skip >= have)
			continue;
		if (row->each == URN_PATHS_EACH_GID)
			snprintf(name, IBV_SYSFS_NAME_MAX, "%" PRIu32, skip);
		else
			snprintf(name, IBV_SYSFS_NAME_MAX, "%s",
				 row->each == URN_PATHS_ONE ? row->name : all->device[skip].name);
		return true;
	}
	return false;
}

void
urn_paths_stat(const struct urn_paths_node *node, struct stat *st)
{
	static const mode_t modes[] = {[URN_PATHS_DIR] = S_IFDIR | 0555,
				       [URN_PATHS_FILE] = S_IFREG | 0444,
				       [URN_PATHS_CHAR] = S_IFCHR | 0666};
	const char *p;

	memset(st, 0, sizeof(*st));
	st->st_mode = modes[node->kind];
	st->st_nlink = node->kind == URN_PATHS_DIR ? 2 : 1;
	st->st_blksize = 4096;
	st->st_size = node->kind == URN_PATHS_FILE ? 4096 : 0; /* sysfs has it so */
	/* The kernel's numbers for such files. */
	if (node->kind == URN_PATHS_CHAR)
		st->st_rdev = makedev(231, 192 + node->index);
	/* FNV-1a: the same file has the same number. */
	st->st_ino = 1469598103934665603u;
	for (p = node->path; *p != '\0'; p++)
		st->st_ino = (st->st_ino ^ (uint8_t)*p) * 1099511628211u;
}
