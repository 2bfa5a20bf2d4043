/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ways to stall the kernel: pages, files, sockets. All of them run in an attacker's process, which
 * ends with a message when one fails.
 */
#include "hostile.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void
can(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "an attacker: %s: %s\n", what, strerror(errno));
	_exit(9);
}

void
hostile_thread(void *(*fn)(void *arg), void *arg)
{
	pthread_t t;

	can(pthread_create(&t, NULL, fn, arg) == 0, "thread");
}

/* ---- pages */

bool
hostile_has_userfaultfd(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0 || geteuid() == 0;
}

void *
hostile_page(int *fd)
{
	struct uffdio_api api = {.api = UFFD_API};
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register reg = {
		.range = {(uintptr_t)p, 4096}, .mode = UFFDIO_REGISTER_MODE_MISSING};

	*fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	can(*fd >= 0 && ioctl(*fd, UFFDIO_API, &api) == 0 && ioctl(*fd, UFFDIO_REGISTER, &reg) == 0,
	    "userfaultfd");
	return p;
}

struct stalled_reader {
	int fd;
	void *to;
};

static void *
read_slowly(void *arg)
{
	struct stalled_reader *rd = arg;

	return read(rd->fd, rd->to, 16) < 0 ? arg : NULL;
}

void
hostile_read(int fd)
{
	static struct stalled_reader rd;
	int uffd;

	rd = (struct stalled_reader){fd, hostile_page(&uffd)};
	hostile_thread(read_slowly, &rd);
	usleep(300000);
}

/* ---- files */

/* A namespace of its own to mount in; a user who is not root has to become root in there. */
static bool
own_mounts(void)
{
	char map[64];
	uid_t uid = geteuid();
	int fd;

	if (unshare(uid == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0)
		return false;
	if (uid != 0) {
		snprintf(map, sizeof(map), "0 %u 1", uid);
		fd = open("/proc/self/uid_map", O_WRONLY);
		if (fd < 0 || write(fd, map, strlen(map)) < 0)
			return false;
		close(fd);
	}
	return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* Mount a FUSE file system of one file over an ordinary file. returns: the server process's end, or -1 */
static int
mount_file(void)
{
	int dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char opts[64];

	snprintf(opts, sizeof(opts), "fd=%d,rootmode=100000,user_id=0,group_id=0", dev);
	if (dev < 0 || !own_mounts() ||
	    mount("fuse", "/dev/null", "fuse", MS_NOSUID | MS_NODEV, opts) != 0)
		return -1;
	return dev;
}

bool
hostile_has_fuse(void)
{
	int status = 1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(mount_file() < 0);
	return (waitpid(pid, &status, 0) == pid && status == 0) || geteuid() == 0;
}

struct keeper {
	int dev;
	_Atomic bool *mute;
};

static void
reply(const struct keeper *k, uint64_t unique, const void *body, size_t len)
{
	struct fuse_out_header h = {.len = (uint32_t)(sizeof(h) + len), .unique = unique};
	struct iovec v[2] = {{&h, sizeof(h)}, {(void *)(uintptr_t)body, len}};

	can(writev(k->dev, v, 2) == (ssize_t)h.len, "answer of a file system");
}

/* Serve opening and stat of the file: no reading, writing or closing. */
static void
keep(const struct keeper *k)
{
	static char buf[FUSE_MIN_READ_BUFFER + 4096];
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096};
	struct fuse_open_out opened = {0};
	struct fuse_attr_out attr = {
		.attr = {.ino = FUSE_ROOT_ID, .size = 4096, .mode = S_IFREG | 0666, .nlink = 1}};

	for (;;) {
		const struct fuse_in_header *h = (const void *)buf;

		if (read(k->dev, buf, sizeof(buf)) < (ssize_t)sizeof(*h)) {
			if (errno == ENODEV)
				_exit(0);
			continue;
		}
		if (h->opcode == FUSE_INIT)
			reply(k, h->unique, &init, sizeof(init));
		else if (h->opcode == FUSE_OPEN)
			reply(k, h->unique, &opened, sizeof(opened));
		else if (h->opcode == FUSE_GETATTR && !*k->mute)
			reply(k, h->unique, &attr, sizeof(attr));
	}
}

/*
 * The FUSE server is a process of its own: its end frees all that wait for it, and the attacker
 * does not wait for itself.
 */
int
hostile_file(_Atomic bool **mute)
{
	struct keeper k = {.dev = mount_file()};
	pid_t pid, parent = getpid();
	int fd;

	can(k.dev >= 0, "FUSE");
	k.mute = *mute = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	can(k.mute != MAP_FAILED, "memory");
	pid = fork();
	can(pid >= 0, "fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* the test kills the server first, with the attacker's group */
		if (getppid() == parent)
			keep(&k);
		_exit(0);
	}
	close(k.dev);
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	can(fd >= 0, "open a file of FUSE");
	return fd;
}

/* ---- sockets */

int
hostile_lingering(void)
{
	struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct linger hour = {.l_onoff = 1, .l_linger = 3600};
	int from = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(addr);
	static char bytes[65536];

	can(bind(from, (void *)&addr, sizeof(addr)) == 0 && listen(from, 1) == 0 &&
	    getsockname(from, (void *)&addr, &len) == 0 &&
	    connect(fd, (void *)&addr, sizeof(addr)) == 0 && accept(from, NULL, NULL) >= 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour)) == 0, "TCP");
	/* The other end reads nothing, so the bytes left here are never sent. */
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	close(from);
	return fd;
}
