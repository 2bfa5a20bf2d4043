/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * While a thread waits in rt_sigtimedwait(), which sigwait() and its like are made of, the kernel
 * takes the signals that are waited for out of the thread's blocked ones: the line "SigBlk:" of its
 * status says that the signal would be handled, and yet the call would return it. So what a thread
 * waits in counts, too.
 */
#include "attach/task.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Looks at a thread that is on a processor, and so shows no system call. */
enum { URN_TASK_LOOKS = 2 };

/* The thread's number in a directory entry; 0: "." or "..". */
static pid_t
urn_tasks_number(const char *name)
{
	pid_t n = 0;

	for (; *name >= '0' && *name <= '9'; name++)
		n = n * 10 + (*name - '0');
	return n;
}

pid_t
urn_tasks_next(struct urn_tasks *w)
{
	for (;;) {
		const struct dirent64 *d = (const void *)(w->buf + w->used);
		pid_t tid;

		if (w->used >= w->have) {
			w->used = 0;
			w->have = syscall(SYS_getdents64, w->fd, w->buf, sizeof(w->buf));
			if (w->have <= 0)
				return (pid_t)w->have;
			continue;
		}
		w->used += d->d_reclen;
		tid = urn_tasks_number(d->d_name);
		if (tid > 0)
			return tid;
	}
}

/* Write "TID/NAME" to path[32]. name: of at most 16 bytes */
static void
urn_task_path(char path[32], pid_t tid, const char *name)
{
	char digits[12];
	int n = 0, at = 0;

	for (; tid > 0; tid /= 10)
		digits[n++] = (char)('0' + tid % 10);
	while (n > 0)
		path[at++] = digits[--n];
	path[at++] = '/';
	memcpy(path + at, name, strlen(name) + 1);
}

/* Read a file of a thread, with a 0 at its end. returns: 0; ESRCH: the thread ended; else another
 * errno value */
static int
urn_task_read(int tasks, pid_t tid, const char *name, char *text, size_t size)
{
	char path[32];
	ssize_t n;
	int fd, err;

	urn_task_path(path, tid, name);
	fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? ESRCH : errno;
	n = read(fd, text, size - 1);
	err = n > 0 ? 0 : n == 0 ? ESRCH : errno;
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return err;
}

/* State by the lines "State:" and "SigBlk:". */
static enum urn_task_state
urn_task_status(int tasks, pid_t tid, int sig)
{
	char text[4096];
	const char *at;
	int err = urn_task_read(tasks, tid, "status", text, sizeof(text));

	if (err != 0)
		return err == ESRCH ? URN_TASK_ENDED : URN_TASK_BLOCKS;
	at = strstr(text, "\nState:\t");
	if (at != NULL && (at[8] == 'Z' || at[8] == 'X'))
		return URN_TASK_ENDED;
	at = strstr(text, "\nSigBlk:\t");
	return at == NULL || strtoull(at + 9, NULL, 16) >> (sig - 1) & 1 ? URN_TASK_BLOCKS
									 : URN_TASK_RUNS;
}

/* True when a thread that waits for the signals of the kernel's set at `set` waits for this one, or
 * may do so. */
static bool
urn_task_wants(uintptr_t set, int sig)
{
	uint64_t bits;
	struct iovec to = {.iov_base = &bits, .iov_len = sizeof(bits)};
	struct iovec from = {.iov_base = (void *)set, .iov_len = sizeof(bits)};

	/* The program's memory may be gone by now. */
	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) != sizeof(bits) ||
	       (bits >> (sig - 1) & 1) != 0;
}

/* State by the system call that a thread is in: "NUMBER 0xARGUMENT ...", or "running". running: set
 * when there is none to see */
static enum urn_task_state
urn_task_call(int tasks, pid_t tid, int sig, bool *running)
{
	char text[256], *at;
	int err = urn_task_read(tasks, tid, "syscall", text, sizeof(text));
	long number;

	*running = false;
	if (err != 0) /* the file itself may be missing */
		return urn_task_status(tasks, tid, sig) == URN_TASK_ENDED ? URN_TASK_ENDED
									  : URN_TASK_HIDDEN;
	number = strtol(text, &at, 10);
	*running = at == text;
	if (*running || number != SYS_rt_sigtimedwait)
		return URN_TASK_RUNS;
	return urn_task_wants(strtoull(at, NULL, 16), sig) ? URN_TASK_TAKES : URN_TASK_RUNS;
}

enum urn_task_state
urn_task_state(int tasks, pid_t tid, int sig)
{
	enum urn_task_state state = URN_TASK_RUNS;
	bool running = true;
	unsigned int i;

	for (i = 0; i < URN_TASK_LOOKS && running && state == URN_TASK_RUNS; i++) {
		state = urn_task_status(tasks, tid, sig);
		if (state == URN_TASK_RUNS)
			state = urn_task_call(tasks, tid, sig, &running);
	}
	return state;
}
