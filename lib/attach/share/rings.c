/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the kernel may write to the program's memory while all threads are stopped: requests of
 * io_uring and AIO that are under way do, and a ring has nothing that tells whether there are any.
 */
#include "attach/share/window.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A thread may have unmapped its ring, or never mapped it. returns: true when the entry of
 * /proc/self/fd leads to a ring */
static bool
urn_share_ring_fd(int folder, const char *entry)
{
	char to[64];
	ssize_t n = readlinkat(folder, entry, to, sizeof(to) - 1);

	if (n < 0)
		return false; /* "." and "..", or closed by now */
	to[n] = '\0';
	return urn_maps_ring(to);
}

/* returns: 1: a descriptor of the program is a ring; 0: none is; -1: they can't be read */
static int
urn_share_ring_fds(void)
{
	int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC), found = 0;
	_Alignas(struct dirent64) char buf[4096];
	long n = folder >= 0 ? 0 : -1, at;

	while (folder >= 0 && found == 0 &&
	       (n = syscall(SYS_getdents64, folder, buf, sizeof(buf))) > 0) {
		for (at = 0; found == 0 && at < n;) {
			const struct dirent64 *d = (const void *)(buf + at);

			found = urn_share_ring_fd(folder, d->d_name);
			at += d->d_reclen;
		}
	}
	if (folder >= 0)
		close(folder);
	return n < 0 ? -1 : found;
}

const char *
urn_share_rings(int maps)
{
	struct urn_own_mapping m;
	struct urn_maps walk;
	int fds;

	urn_maps_start(&walk, maps);
	while (urn_maps_next(&walk, &m))
		if (m.ring)
			return URN_SHARE_RINGS;
	fds = urn_share_ring_fds();
	if (fds < 0)
		return "/proc/self/fd can't be read";
	return fds > 0 ? URN_SHARE_RINGS : NULL;
}
