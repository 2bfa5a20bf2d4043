/* SPDX-License-Identifier: BSD-3-Clause */
/* Address spaces of clients: checking the descriptors that clients hand over, and counting references. */
#include "memory/foreign.h"
#include "memory/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

/* Process that a pidfd refers to, in this process's numbers; -1: has ended, 0: no pidfd. */
static long
pid_of(int pidfd)
{
	char path[64], line[128];
	long pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Pid: %ld", &pid) == 1)
			break;
	fclose(f);
	return pid;
}

/* True when the process of a pidfd has ended. */
static bool
ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

/* True when the file belongs to the file system that is mounted at /proc. */
static bool
in_proc(const struct statx *file)
{
	struct statfs fs;
	struct stat proc;

	return statfs("/proc", &fs) == 0 && (uint64_t)fs.f_type == PROC_SUPER_MAGIC &&
	       stat("/proc", &proc) == 0 && major(proc.st_dev) == file->stx_dev_major &&
	       minor(proc.st_dev) == file->stx_dev_minor;
}

/*
 * Check that the descriptor is that of /proc/PID/NAME. A mount in a namespace of the client's can
 * forge the name; device and inode can't be forged, because the descriptor keeps the inode, and
 * with it the directory's entry, in use.
 */
static int
check_file(int fd, pid_t pid, const char *name, int mode, char *why, size_t len)
{
	/*
	 * Attributes that the kernel has cached: the server of the file's file system is not asked,
	 * for it may not answer.
	 */
	const int how = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
	struct stat want;
	struct statx is;
	char path[64];
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || statx(fd, "", how, STATX_BASIC_STATS, &is) != 0) {
		snprintf(why, len, "the descriptor of %s is none: %s", name, strerror(errno));
		return EBADF;
	}
	snprintf(path, sizeof(path), "/proc/%ld/%s", (long)pid, name);
	if (!S_ISREG(is.stx_mode) || !in_proc(&is)) {
		snprintf(why, len, "the descriptor said to be of %s is of no file in /proc, or in that of a container",
			 path);
		return EBADF;
	}
	if (stat(path, &want) != 0) {
		snprintf(why, len, "%s can't be looked at: %s; is /proc mounted with hidepid?",
			 path, strerror(errno));
		return ESRCH;
	}
	if (is.stx_ino != want.st_ino) {
		snprintf(why, len,
			 "the descriptor said to be of %s is of another file, or process", path);
		return EBADF;
	}
	if ((flags & O_PATH) || ((flags & O_ACCMODE) != mode && (flags & O_ACCMODE) != O_RDWR)) {
		snprintf(why, len, "the descriptor of %s is not open for %s", path,
			 mode == O_RDWR ? "reading and writing" : "reading");
		return EBADF;
	}
	return 0;
}

static int
check_fds(const struct urn_space_fds *fds, char *why, size_t len)
{
	long pid = pid_of(fds->pidfd);
	int rc;

	if (pid == 0 || (pid > 0 && pid != fds->pid)) {
		snprintf(why, len, "descriptor %d is no pidfd of process %ld", fds->pidfd,
			 (long)fds->pid);
		return EBADF;
	}
	rc = check_file(fds->mem, fds->pid, "mem", O_RDWR, why, len);
	if (rc == 0)
		rc = check_file(fds->maps, fds->pid, "maps", O_RDONLY, why, len);
	/* Checked last: the process has lived all the time, so the paths were its own. */
	if (ended(fds->pidfd)) {
		snprintf(why, len, "process %ld has ended", (long)fds->pid);
		return ESRCH;
	}
	return rc;
}

/*
 * Open the same map once more, where this process has the right to read it. A reader of a
 * descriptor that is shared with the client waits, unkillable, while the client reads: for ever, if
 * the client reads into memory that stalls. The map is opened by the descriptor and not by a name,
 * so it belongs to the same process. The map is that of the process's present address space. `mem`
 * is checked after this and must be in use, so both belong to the same address space: a program
 * that executed another has left the one of `mem`.
 */
static void
own_maps(struct urn_space_fds *fds)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds->maps);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	/* At the number that the caller knows. */
	(void)dup3(fd, fds->maps, O_CLOEXEC);
	close(fd);
}

int
urn_space_create(const struct urn_space_fds *fds, struct urn_space **space, char *why, size_t len)
{
	int rc = check_fds(fds, why, len);
	struct urn_space *s;

	if (rc != 0)
		return rc;
	s = calloc(1, sizeof(*s));
	if (!s) {
		snprintf(why, len, "no memory for an address space");
		return ENOMEM;
	}
	s->fds = *fds;
	s->uid = (uid_t)-1;
	own_maps(&s->fds);
	if (!urn_space_alive(s)) {
		snprintf(why, len,
			 "process %ld executed another program since it opened its memory: "
			 "open it again",
			 (long)fds->pid);
		free(s);
		return ESRCH;
	}
	atomic_init(&s->refs, 1);
	pthread_mutex_init(&s->lock, NULL);
	*space = s;
	return 0;
}

void
urn_space_hold(struct urn_space *space)
{
	atomic_fetch_add_explicit(&space->refs, 1, memory_order_relaxed);
}

void
urn_space_set_user(struct urn_space *space, uid_t uid)
{
	space->uid = uid;
}

void
urn_space_release(struct urn_space *space)
{
	struct urn_lane *l, *next;

	if (!space || atomic_fetch_sub_explicit(&space->refs, 1, memory_order_acq_rel) != 1)
		return;
	urn_space_stop(space);
	for (l = atomic_load(&space->lanes); l; l = next) {
		next = l->next;
		free(l);
	}
	urn_space_close_fds(&space->fds);
	pthread_mutex_destroy(&space->lock);
	free(space);
}

void
urn_space_mark(struct urn_space *space, uint64_t *here, uint64_t there)
{
	if (atomic_load_explicit(&space->mark, memory_order_relaxed))
		return;
	space->mark_at = there;
	/* Pairs with the acquire in urn_direct_read(). */
	atomic_store_explicit(&space->mark, here, memory_order_release);
}

void
urn_space_leave_by(struct urn_space *space, const _Atomic uint32_t *left)
{
	space->left = left;
}

void
urn_space_stats(const struct urn_space *space, struct urn_space_stats *out)
{
	out->direct = atomic_load_explicit(&space->direct_reads, memory_order_relaxed);
	out->refused = atomic_load_explicit(&space->direct_refused, memory_order_relaxed);
}

bool
urn_space_alive(const struct urn_space *space)
{
	char c;

	/* 0: nobody uses the address space any more. Nothing mapped at address 0 gives EIO. */
	return pread(space->fds.mem, &c, 1, 0) != 0;
}

int
urn_space_check(const struct urn_space *space, uint64_t addr, uint64_t length, bool write,
		char *why, size_t len)
{
	if (!urn_space_alive(space)) {
		snprintf(why, len, "process %ld has ended, or executed another program",
			 (long)space->fds.pid);
		return EFAULT;
	}
	return urn_maps_check(space->fds.maps, space->fds.mem, addr, length, write, why, len);
}

int
urn_space_open_self(struct urn_space_fds *fds)
{
	int err;

	fds->pid = getpid();
	fds->mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	fds->maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	fds->pidfd = (int)syscall(SYS_pidfd_open, fds->pid, 0);
	if (fds->mem >= 0 && fds->maps >= 0 && fds->pidfd >= 0)
		return 0;
	err = errno;
	urn_space_close_fds(fds);
	return err;
}

void
urn_space_close_fds(struct urn_space_fds *fds)
{
	int *fd[] = {&fds->mem, &fds->maps, &fds->pidfd};

	for (size_t i = 0; i < sizeof(fd) / sizeof(fd[0]); i++) {
		if (*fd[i] >= 0)
			close(*fd[i]);
		*fd[i] = -1;
	}
}
