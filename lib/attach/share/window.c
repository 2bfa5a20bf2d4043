/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/share/window.h"

#include "abi/fd.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

struct urn_share_window urn_share_windows[URN_SHARE_WINDOWS];
_Atomic unsigned int urn_share_top;

struct urn_share_window *
urn_share_find(uintptr_t start, uintptr_t end)
{
	unsigned int i;

	for (i = 0; i < urn_share_top; i++) {
		struct urn_share_window *w = &urn_share_windows[i];

		if (w->end != 0 && start >= w->start && end <= w->end)
			return w;
	}
	return NULL;
}

static struct urn_share_window *
urn_share_free_window(void)
{
	unsigned int i;

	for (i = 0; i < URN_SHARE_WINDOWS; i++)
		if (urn_share_windows[i].end == 0)
			return &urn_share_windows[i];
	return NULL;
}

/* Choose the addresses of a window for start..end. */
static void
urn_share_place(uintptr_t *start, uintptr_t *end)
{
	if (*end - *start > URN_SHARE_SMALL)
		return;
	/* A small region lies in a window that is aligned to its size, or in one that begins half
	 * of that earlier. */
	if (*end <= (*start & ~(URN_SHARE_WINDOW - 1)) + URN_SHARE_WINDOW)
		*start &= ~(URN_SHARE_WINDOW - 1);
	else
		*start &= ~(URN_SHARE_WINDOW / 2 - 1);
	*end = *start + URN_SHARE_WINDOW;
}

/* Bytes of the bits of a window's pages. */
static size_t
urn_share_bits(size_t length)
{
	return (length / URN_SHARE_PAGE + 63) / 64 * sizeof(uint64_t);
}

struct urn_share_window *
urn_share_make(uintptr_t start, uintptr_t end)
{
	struct urn_share_window *w = urn_share_free_window();
	struct stat st;
	size_t length;

	if (w == NULL)
		return NULL;
	urn_share_place(&start, &end);
	length = end - start;
	*w = (struct urn_share_window){.fd = urn_fd_memory("urnic-shared", length)};
	if (w->fd < 0)
		return NULL;
	w->home = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, w->fd, 0);
	if (w->home == MAP_FAILED || fstat(w->fd, &st) != 0)
		goto err_close;
	w->used = mmap(NULL, urn_share_bits(length), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (w->used == MAP_FAILED)
		goto err_close;
	w->ino = st.st_ino;
	w->major = major(st.st_dev);
	w->minor = minor(st.st_dev);
	w->start = start;
	w->end = end;
	if (w - urn_share_windows >= (long)urn_share_top)
		urn_share_top = (unsigned int)(w - urn_share_windows) + 1;
	return w;

err_close:
	if (w->home != MAP_FAILED)
		munmap(w->home, length);
	close(w->fd);
	return NULL;
}

bool
urn_share_fd_ok(const struct urn_share_window *w)
{
	struct stat st;

	return fstat(w->fd, &st) == 0 && st.st_ino == w->ino && major(st.st_dev) == w->major &&
	       minor(st.st_dev) == w->minor;
}

void
urn_share_unmake(struct urn_share_window *w)
{
	size_t length = w->end - w->start;

	w->end = 0;
	munmap(w->home, length);
	munmap(w->used, urn_share_bits(length));
	if (urn_share_fd_ok(w)) /* the number may be the program's by now */
		close(w->fd);
}

bool
urn_share_in_window(const struct urn_share_window *w, const struct urn_own_mapping *m)
{
	uintptr_t home = (uintptr_t)w->home;

	return m->shared && m->ino == w->ino && m->major == w->major && m->minor == w->minor &&
	       (m->start < home || m->start >= home + (w->end - w->start));
}

bool
urn_share_in_place(const struct urn_share_window *w, const struct urn_own_mapping *m)
{
	return urn_share_in_window(w, m) && m->start == w->start + m->off;
}

bool
urn_share_data(const struct urn_share_window *w, uint64_t *from, uint64_t *to, uint64_t end)
{
	off_t at, hole;

	if (*from >= end)
		return false;
	*to = end;
	if (!urn_share_fd_ok(w))
		return true; /* all of it */
	at = lseek(w->fd, (off_t)*from, SEEK_DATA);
	if (at < 0)
		return errno != ENXIO;
	if ((uint64_t)at >= end)
		return false;
	*from = (uint64_t)at;
	hole = lseek(w->fd, at, SEEK_HOLE);
	if (hole > at && (uint64_t)hole < end)
		*to = (uint64_t)hole;
	return true;
}

const struct urn_share_window *
urn_share_window_at(const struct urn_own_mapping *m)
{
	unsigned int i;

	for (i = 0; i < urn_share_top; i++)
		if (urn_share_windows[i].end != 0 && urn_share_in_window(&urn_share_windows[i], m))
			return &urn_share_windows[i];
	return NULL;
}
