/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork() of a program with shared pages. The pages are marked MADV_DONTFORK, so that a child can't
 * write its parent's memory: the child begins with holes. The first access to a hole, which may be
 * the C library's own before any handler of fork() runs, or else our handler, puts private memory
 * with the same contents into all holes. The source is the window's `home`, which the child
 * inherits. The parent's thread waits inside fork() until the child has its copy, so that the child
 * sees none of what that thread, or a thread that follows it, writes later. There is no bound to
 * that wait, though the lock is held: a thread that went on would write what a slow child has yet
 * to copy, and so would one that registers memory, or advises about it, at an address of the
 * child's holes. The wait ends when the child has its copy, or is gone.
 *
 * A child that is made past fork() (a bare clone() without CLONE_VM) keeps the holes.
 */
#include "attach/stop.h"
#include "attach/share/window.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A piece of shared memory that the child needs. */
struct urn_share_hole {
	uintptr_t start, end;
	uint64_t off; /* bytes into the memfd of the window */
	int prot;
	const struct urn_share_window *window;
};

enum { URN_SHARE_FORK_MS = 2000 }; /* a longer wait for the child is told */

/* State of a fork, under urn_share_lock. */
static struct {
	bool entered; /* this thread took the lock */
	bool busy;    /* there are windows: everything below is set */
	bool filled;  /* in the child: the holes are filled */
	pid_t parent;
	int pipe[2];	       /* a byte says that the child has its copy; -1: there is none */
	sigset_t mask;	       /* the thread's before */
	struct sigaction segv; /* the program's */
	struct urn_share_hole *holes;
	size_t n_holes, max_holes;
	/* Locks of others (urn_share_fork_last()); NULL: none. */
	void (*hold)(void), (*go_on)(void);
} urn_share_forking;

/* ---- holes */

/* Make room for more holes. returns: false: no memory */
static bool
urn_share_holes_grow(void)
{
	size_t size = urn_share_forking.max_holes * sizeof(*urn_share_forking.holes);
	size_t more = size > 0 ? 2 * size : 16 * URN_SHARE_PAGE;
	void *p = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return false;
	if (size > 0) {
		memcpy(p, urn_share_forking.holes, size);
		munmap(urn_share_forking.holes, size);
	}
	urn_share_forking.holes = p;
	urn_share_forking.max_holes = more / sizeof(*urn_share_forking.holes);
	return true;
}

/* List the pieces of all windows. */
static void
urn_share_holes_find(void)
{
	int maps = urn_maps_open();
	struct urn_maps walk;
	struct urn_own_mapping m;

	urn_share_forking.n_holes = 0;
	urn_maps_start(&walk, maps);
	while (maps >= 0 && urn_maps_next(&walk, &m)) {
		const struct urn_share_window *w = urn_share_window_at(&m);

		if (w == NULL)
			continue;
		if (urn_share_forking.n_holes == urn_share_forking.max_holes &&
		    !urn_share_holes_grow())
			break;
		urn_share_forking.holes[urn_share_forking.n_holes++] = (struct urn_share_hole){
			.start = m.start,
			.end = m.end,
			.off = m.off,
			.prot = (m.read ? PROT_READ : 0) | (m.write ? PROT_WRITE : 0) |
				(m.exec ? PROT_EXEC : 0),
			.window = w,
		};
	}
	if (maps >= 0)
		close(maps);
}

static void
urn_share_holes_free(void)
{
	if (urn_share_forking.holes != NULL)
		munmap(urn_share_forking.holes,
		       urn_share_forking.max_holes * sizeof(*urn_share_forking.holes));
	urn_share_forking.holes = NULL;
	urn_share_forking.n_holes = urn_share_forking.max_holes = 0;
}

/* Put private memory into start..end, part of a hole, unless something is mapped there by now.
 * returns: true: done */
static bool
urn_share_fill(const struct urn_share_hole *h, uintptr_t start, uintptr_t end)
{
	uint64_t at = h->off + (start - h->start), first = at, last = at + (end - start), to;
	void *p = mmap((void *)start, end - start, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (p != (void *)start) {
		if (p != MAP_FAILED)
			munmap(p, end - start); /* a kernel without MAP_FIXED_NOREPLACE */
		return false;
	}
	for (; urn_share_data(h->window, &at, &to, last); at = to)
		memcpy((uint8_t *)p + (at - first), h->window->home + at, to - at);
	if (h->prot != (PROT_READ | PROT_WRITE))
		mprotect(p, end - start, h->prot);
	return true;
}

/* In the child: fill all holes. */
static void
urn_share_fill_all(void)
{
	size_t i;

	urn_share_forking.filled = true;
	for (i = 0; i < urn_share_forking.n_holes; i++) {
		const struct urn_share_hole *h = &urn_share_forking.holes[i];
		uintptr_t at;

		/* Another thread of the parent unmapped a part meanwhile, and mapped something else
		 * there. */
		if (!urn_share_fill(h, h->start, h->end))
			for (at = h->start; at < h->end; at += URN_SHARE_PAGE)
				(void)urn_share_fill(h, at, at + URN_SHARE_PAGE);
	}
}

static bool
urn_share_in_hole(uintptr_t at)
{
	size_t i;

	for (i = 0; i < urn_share_forking.n_holes; i++)
		if (at >= urn_share_forking.holes[i].start && at < urn_share_forking.holes[i].end)
			return true;
	return false;
}

/* SIGSEGV while a fork is in progress: of the child, in a hole, or another one, which is the
 * program's. */
static void
urn_share_segv(int sig, siginfo_t *info, void *context)
{
	int err = errno;

	(void)context;
	if ((pid_t)syscall(SYS_getpid) != urn_share_forking.parent && !urn_share_forking.filled &&
	    info->si_code > 0 && urn_share_in_hole((uintptr_t)info->si_addr))
		urn_share_fill_all();
	else
		(void)sigaction(sig, &urn_share_forking.segv, NULL); /* the access is tried again */
	errno = err;
}

static bool
urn_share_meets_object(uintptr_t start, uintptr_t end, const void *object, size_t size)
{
	return (uintptr_t)object < end && start < (uintptr_t)object + size;
}

bool
urn_share_fork_needs(uintptr_t start, uintptr_t end)
{
	return urn_share_meets_object(start, end, &urn_share_forking, sizeof(urn_share_forking)) ||
	       urn_share_meets_object(start, end, urn_share_windows, sizeof(urn_share_windows));
}

void
urn_share_fork_more(void (*hold)(void), void (*go_on)(void))
{
	urn_share_forking.hold = hold;
	urn_share_forking.go_on = go_on;
}

/* ---- handlers */

/* Block all signals of this thread but that of a hole. */
static void
urn_share_block(void)
{
	sigset_t set;

	sigfillset(&set);
	sigdelset(&set, SIGSEGV);
	(void)pthread_sigmask(SIG_SETMASK, &set, &urn_share_forking.mask);
}

static bool
urn_share_any(void)
{
	unsigned int i;

	for (i = 0; i < urn_share_top; i++)
		if (urn_share_windows[i].end != 0)
			return true;
	return false;
}

void
urn_share_fork_prepare(void)
{
	struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_NODEFER};

	urn_share_forking.entered = urn_share_enter();
	if (urn_share_forking.hold != NULL)
		urn_share_forking.hold();
	urn_share_forking.busy = urn_share_any();
	if (!urn_share_forking.busy)
		return;
	urn_share_block();
	urn_share_forking.filled = false;
	urn_share_forking.parent = (pid_t)syscall(SYS_getpid);
	urn_share_holes_find();
	if (pipe2(urn_share_forking.pipe, O_CLOEXEC) != 0)
		urn_share_forking.pipe[0] = urn_share_forking.pipe[1] = -1;
	ours.sa_sigaction = urn_share_segv;
	(void)sigaction(SIGSEGV, &ours, &urn_share_forking.segv);
}

/* Go back to the program's own handler and mask. */
static void
urn_share_fork_end(void)
{
	(void)sigaction(SIGSEGV, &urn_share_forking.segv, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &urn_share_forking.mask, NULL);
}

/* Wait until the child has its copy, or there is none: the end of a child that died is closed. */
static void
urn_share_fork_wait(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int n, patience = URN_SHARE_FORK_MS;

	while ((n = poll(&p, 1, patience)) == 0 || (n < 0 && errno == EINTR)) {
		if (n == 0) {
			urn_share_tell("urnic: fork() waits until the child has its copy of shared "
				       "memory; does a debugger hold the child?\n");
			patience = -1;
		}
	}
}

void
urn_share_fork_parent(void)
{
	int err = errno;

	/* First: other processes wait for these locks, and the child copies without them. */
	if (urn_share_forking.hold != NULL)
		urn_share_forking.go_on();
	if (urn_share_forking.busy) {
		if (urn_share_forking.pipe[1] >= 0) {
			close(urn_share_forking.pipe[1]);
			urn_share_fork_wait(urn_share_forking.pipe[0]);
			close(urn_share_forking.pipe[0]);
		}
		urn_share_holes_free();
		urn_share_fork_end();
	}
	urn_share_exit(urn_share_forking.entered);
	errno = err;
}

/* The windows are the parent's. */
static void
urn_share_forget_all(void)
{
	unsigned int i;

	for (i = 0; i < urn_share_top; i++)
		if (urn_share_windows[i].end != 0)
			urn_share_unmake(&urn_share_windows[i]);
}

void
urn_share_fork_child(void)
{
	if (urn_share_forking.busy) {
		if (!urn_share_forking.filled)
			urn_share_fill_all();
		urn_share_holes_free();
		if (urn_share_forking.pipe[1] >= 0) {
			/* Closing is not enough: a child that another thread made past fork() may
			 * have this end, too. */
			while (write(urn_share_forking.pipe[1], "", 1) < 0 && errno == EINTR)
				;
			close(urn_share_forking.pipe[1]);
			close(urn_share_forking.pipe[0]);
		}
		urn_share_forget_all();
		urn_share_fork_end();
	}
	urn_stop_forked();
	urn_share_reset();
	urn_share_exit(urn_share_forking.entered);
}
