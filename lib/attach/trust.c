/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/trust.h"

#include "attach/dev.h"

#include <errno.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Folder of the machine's dataplane: root's, or made by root for the user of a service. */
#define URN_MACHINE_DIR "/run/urnic"

enum { URN_USER_BYTES = 64, URN_PASSWD_BYTES = 4096, URN_PASSWD_MOST = 1 << 20 };

/* Look a user up by name. returns: 0, or an errno value with its text */
static int
urn_user_look_up(const char *name, uid_t *uid)
{
	struct passwd entry, *found = NULL;
	char *buf = NULL, *larger;
	int err = ERANGE;

	for (size_t size = URN_PASSWD_BYTES; err == ERANGE && size <= URN_PASSWD_MOST; size *= 4) {
		larger = realloc(buf, size);
		err = larger == NULL ? ENOMEM : 0;
		buf = larger != NULL ? larger : buf;
		if (err == 0)
			err = getpwnam_r(name, &entry, buf, size, &found);
	}
	if (err == 0 && found != NULL)
		*uid = found->pw_uid;
	free(buf);
	if (err != 0)
		return urn_fail(EINVAL, "URNIC_TRUST: user %s can't be looked up: %s", name,
				strerror(err));
	return found != NULL ? 0 : urn_fail(EINVAL, "URNIC_TRUST: there is no user %s", name);
}

/* The number of the user that a word of n bytes names. returns: 0, or an errno value with its text
 */
static int
urn_user_find(const char *word, size_t n, uid_t *uid)
{
	char name[URN_USER_BYTES], *end;
	unsigned long number;

	if (n == 0 || n >= sizeof(name))
		return urn_fail(EINVAL,
				"URNIC_TRUST: %.*s: give names or numbers of users with "
				"commas between them",
				(int)n, word);
	memcpy(name, word, n);
	name[n] = '\0';
	if (name[0] < '0' || name[0] > '9')
		return urn_user_look_up(name, uid);
	errno = 0;
	number = strtoul(name, &end, 10);
	if (*end != '\0' || errno != 0 || number >= UINT32_MAX)
		return urn_fail(EINVAL, "URNIC_TRUST: %s is no number of a user", name);
	*uid = (uid_t)number;
	return 0;
}

int
urn_trust_named(const char *names, uid_t uid)
{
	bool named = false;
	uid_t one = 0;

	/* All entries are read: a wrong one must not hide behind the right one. */
	while (names != NULL && names[0] != '\0') {
		size_t n = strcspn(names, ",");

		if (urn_user_find(names, n, &one) != 0)
			return -1;
		named = named || one == uid;
		names += n;
		if (names[0] == ',' && *++names == '\0')
			return urn_fail(EINVAL, "URNIC_TRUST: ends with a comma"), -1;
	}
	return named;
}

/* True when `at` is a folder, no link, in which root alone can make and rename files. */
static bool
urn_folder_of_root(const char *at)
{
	struct stat st;

	return lstat(at, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == 0 &&
	       (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool
urn_trust_given(const char *path, uid_t *owner)
{
	char at[108];
	struct stat st;
	size_t n = strlen(path);

	if (path[0] != '/' || n >= sizeof(at) || !urn_folder_of_root("/"))
		return false;
	for (const char *end = strchr(path + 1, '/'); end != NULL; end = strchr(end + 1, '/')) {
		memcpy(at, path, (size_t)(end - path));
		at[end - path] = '\0';
		if (!urn_folder_of_root(at))
			return false;
	}
	if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode))
		return false;
	*owner = st.st_uid;
	return true;
}

/* True when the path lies right in the folder of the machine's dataplane, which belongs to `uid`.
 */
static bool
urn_trust_machine(const char *path, uid_t uid)
{
	static const char dir[] = URN_MACHINE_DIR "/";
	uid_t owner = 0;

	return strncmp(path, dir, sizeof(dir) - 1) == 0 &&
	       strchr(path + sizeof(dir) - 1, '/') == NULL &&
	       urn_trust_given(URN_MACHINE_DIR, &owner) && owner == uid;
}

bool
urn_trust_mapped(const char *map, uid_t uid)
{
	FILE *f = fopen(map, "re");
	unsigned long from, outside, n;
	bool mapped = f == NULL; /* a kernel without user namespaces */

	while (f != NULL && !mapped && fscanf(f, "%lu %lu %lu", &from, &outside, &n) == 3)
		mapped = uid >= from && uid - from < n;
	if (f != NULL)
		fclose(f);
	return mapped;
}

/* True when the user is this program's, and not one of those whom its namespace shows by one
 * number. */
static bool
urn_trust_own(uid_t uid)
{
	return uid == geteuid() && urn_trust_mapped("/proc/self/uid_map", uid);
}

int
urn_trust_listener(int fd, const char *path)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	int named;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
		return urn_fail(errno, "%s: the kernel does not say who listens: %s", path,
				strerror(errno));
	if (peer.uid == 0 || urn_trust_own(peer.uid) || urn_trust_machine(path, peer.uid))
		return 0;
	named = urn_trust_named(secure_getenv("URNIC_TRUST"), peer.uid);
	if (named != 0)
		return named > 0 ? 0 : errno;
	return urn_fail(EACCES,
			"%s: user %u listens there, who could read and write all memory of this "
			"program: if you trust that user, set URNIC_TRUST=%u",
			path, (unsigned int)peer.uid, (unsigned int)peer.uid);
}
