/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the dataplane's socket, and the adapter that the program means. */
#include "attach/ask.h"
#include "attach/dev.h"
#include "attach/remote.h"

#include <urnic/attach.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define URN_DEFAULT_DIR "/run"
#define URN_SOCKET_NAME "urnic/urnicd.sock"

bool
urn_runtime_dir_is_own(const char *dir)
{
	struct stat st;

	return stat(dir, &st) == 0 && st.st_uid == geteuid();
}

/* The folder for runtime files of the program's user. NULL: none */
static const char *
urn_own_runtime_dir(void)
{
	const char *dir = secure_getenv("XDG_RUNTIME_DIR");

	return dir != NULL && urn_runtime_dir_is_own(dir) ? dir : NULL;
}

const char *
urn_remote_path(char *buf, size_t size)
{
	const char *told = secure_getenv("URNIC_SOCKET"), *dir = urn_own_runtime_dir();
	int n;

	if (told != NULL && told[0] != '\0') {
		n = snprintf(buf, size, "%s", told);
	} else {
		/* The user's own dataplane takes precedence over the machine's. */
		n = snprintf(buf, size, "%s/" URN_SOCKET_NAME, dir != NULL ? dir : URN_DEFAULT_DIR);
		if (n > 0 && (size_t)n < size && dir != NULL && access(buf, F_OK) != 0)
			n = snprintf(buf, size, URN_DEFAULT_DIR "/" URN_SOCKET_NAME);
	}
	return n > 0 && (size_t)n < size ? buf : NULL;
}

int
urn_remote_list(int fd, uint32_t index, struct urn_sock_device *out)
{
	struct urn_sock_ask q = {.list.index = index};
	struct urn_sock_answer a;
	int err = urn_remote_ask(fd, &q, URN_SOCK_LIST, NULL, 0, &a, NULL);

	if (err != 0)
		return err;
	*out = a.device;
	out->name[sizeof(out->name) - 1] = '\0';
	out->node[sizeof(out->node) - 1] = '\0';
	return 0;
}

/* Names of the adapters and their nodes, as many as have room, for a message. */
static void
urn_remote_names(int fd, char *to, size_t size)
{
	struct urn_sock_device d;
	size_t at = 0;

	snprintf(to, size, "none");
	for (uint32_t i = 0; at < size && urn_remote_list(fd, i, &d) == 0; i++) {
		int n = snprintf(to + at, size - at, "%s%s (node %s)", i > 0 ? ", " : "", d.name,
				 d.node);

		if (n < 0 || (size_t)n >= size - at) {
			snprintf(to + at, size - at, "%s", i > 0 ? ", ..." : "...");
			return;
		}
		at += (size_t)n;
	}
}

/*
 * Find the adapter that `node` names, or the first. told: URNIC_NODE named it
 * returns: 0, or an errno value with its text
 */
static int
urn_remote_pick(int fd, const char *node, bool told, struct urn_sock_device *out)
{
	char names[128];
	uint32_t i;
	int err;

	for (i = 0; (err = urn_remote_list(fd, i, out)) == 0; i++)
		if (node == NULL || strcmp(node, out->node) == 0 || strcmp(node, out->name) == 0)
			return 0;
	if (err != ENOENT)
		return err;
	if (node == NULL)
		return urn_fail(ENODEV, "the dataplane has no adapter");
	urn_remote_names(fd, names, sizeof(names));
	return urn_fail(ENODEV, "the dataplane has no node or adapter '%.40s'%s: it has %s", node,
			told ? ", which URNIC_NODE names" : "", names);
}

struct urn_abi_channel *
urn_remote_attach(const char *path, const char *node)
{
	struct urn_sock_device device;
	char buf[256];
	uint32_t can;
	int fd, err;
	bool told;

	if (path == NULL)
		path = urn_remote_path(buf, sizeof(buf));
	if (path == NULL) {
		urn_fail(ENAMETOOLONG, "the path of the dataplane's socket is too long");
		return NULL;
	}
	told = node == NULL;
	if (told)
		node = secure_getenv("URNIC_NODE");
	fd = urn_remote_connect(path, &can);
	if (fd < 0)
		return NULL;
	err = urn_remote_pick(fd, node, told, &device);
	if (err != 0) {
		close(fd);
		errno = err;
		return NULL;
	}
	return urn_remote_open(fd, device.name, can);
}
