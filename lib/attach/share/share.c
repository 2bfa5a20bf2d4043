/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/share/share.h"

#include "attach/alloc.h"
#include "attach/share/window.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * urn_share_lock protects windows and the list of holds. While it is held no memory is allocated,
 * because a thread that has a lock of the heap may call madvise(), and so wait for this lock.
 */
static pthread_mutex_t urn_share_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool urn_share_inside; /* this thread has the lock */
static int urn_share_cancel;	 /* the owner's state of cancellation; under urn_share_lock */
static uint64_t urn_share_clock; /* windows that became idle; under urn_share_lock */
static uint32_t urn_share_era;	 /* forks between the first program and this process */
static bool urn_share_is_on, urn_share_explains; /* set once */
/* Why nothing is shared; set once. */
static const char *urn_share_off = "the program was not started by urnic-run --share";
static urn_share_hook_fn *urn_share_hand;	 /* takes the table; set once */

struct urn_share_hold *urn_share_holds;
struct urn_share_stats urn_share_count;

const struct urn_share_hooks urn_share_hook_table = {
	.prepare = urn_share_fork_prepare,
	.parent = urn_share_fork_parent,
	.child = urn_share_fork_child,
	.holds = urn_share_call_holds,
	.advise = urn_share_call_advise,
	.remap = urn_share_call_remap,
};

/* ---- the lock */

bool
urn_share_enter(void)
{
	int cancel;

	if (urn_share_inside)
		return false;
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&urn_share_lock);
	urn_share_cancel = cancel;
	urn_share_inside = true;
	return true;
}

void
urn_share_exit(bool entered)
{
	int cancel = urn_share_cancel;

	if (!entered)
		return;
	urn_share_inside = false;
	pthread_mutex_unlock(&urn_share_lock);
	(void)pthread_setcancelstate(cancel, NULL);
}

void
urn_share_reset(void)
{
	urn_share_holds = NULL;
	urn_share_era++;
}

/* ---- whether at all */

void
urn_share_tell(const char *line)
{
	if (urn_share_explains && write(STDERR_FILENO, line, strlen(line)) < 0) {
		/* Nobody can be told. */
	}
}

void
urn_share_explain(const char *why)
{
	enum { REASONS = 32 };
	static const char *told[REASONS];
	char text[256];
	unsigned int i;
	int n;

	for (i = 0; i < REASONS && told[i] != NULL && told[i] != why; i++)
		;
	if (!urn_share_explains || i == REASONS || told[i] == why)
		return;
	told[i] = why;
	n = snprintf(text, sizeof(text), "urnic: a region is not shared, so it is slower: %s\n",
		     why);
	if (n > 0)
		urn_share_tell(text);
}

static bool
urn_share_told(const char *name)
{
	const char *value = secure_getenv(name);

	return value != NULL && strcmp(value, "1") == 0;
}

/*
 * When the library is loaded, because the loader is asked: a thread that has the loader's lock may
 * register memory, and so wait for urn_share_lock.
 */
__attribute__((constructor)) static void
urn_share_start(void)
{
	urn_share_hook_fn *hook;

	urn_share_explains = urn_share_told("URNIC_EXPLAIN");
	if (!urn_share_told("URNIC_SHARE"))
		return;
	*(void **)&hook = dlsym(RTLD_DEFAULT, URN_SHARE_HOOK);
	if (hook == NULL || sysconf(_SC_PAGESIZE) != (long)URN_SHARE_PAGE) {
		urn_share_off = hook == NULL ? "liburnic-share.so is not preloaded: start the "
					       "program by urnic-run --share"
					     : "pages of this machine are not of 4 KiB";
		urn_share_explain(urn_share_off);
		return;
	}
	urn_share_move_start();
	urn_share_hand = hook;
	urn_share_is_on = true;
}

/* returns: why nothing is shared over the device, or NULL */
static const char *
urn_share_not(const struct urn_dev *dev)
{
	if (!urn_share_is_on)
		return urn_share_off;
	if (dev->channel->share == NULL || !urn_dev_has(dev, URN_ABI_FEATURE_SHARE) ||
	    urn_dev_gone(dev) != URN_DEV_THERE)
		return "the dataplane takes no shared memory";
	return NULL;
}

/* ---- windows and devices */

static int
urn_share_ask(struct urn_dev *dev, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	return dev->call != NULL ? dev->call(dev, req, rep) : urn_dev_call(dev, req, rep);
}

/* Let the dataplane map the window's memfd, if it has not. returns: NULL, or why not */
static const char *
urn_share_with(struct urn_share_window *w, struct urn_dev *dev)
{
	struct urn_abi_req req = {.op = URN_CTL_SHARE};
	struct urn_abi_rep rep;
	unsigned int i;

	for (i = 0; i < w->n_at; i++)
		if (w->at[i].dev == dev)
			return NULL;
	if (w->n_at == URN_SHARE_DEVS)
		return "the program has too many devices open";
	if (!urn_share_fd_ok(w))
		return "the program has closed a descriptor of the library's";
	req.share.fd = w->fd;
	req.share.addr = (uintptr_t)w->home;
	req.share.length = w->end - w->start;
	if (urn_share_ask(dev, &req, &rep) != 0)
		return rep.err == EPERM ? "another dataplane has its pages"
					: "the dataplane takes no more shared memory "
					  "(shared_per_client, shared_per_uid)";
	w->at[w->n_at].dev = dev;
	w->at[w->n_at++].handle = rep.handle;
	return NULL;
}

/* The dataplane lets go of all windows' memory that this one device has. */
static void
urn_share_without(struct urn_share_window *w)
{
	while (w->n_at > 0) {
		struct urn_abi_req req = {.op = URN_CTL_UNSHARE, .handle = w->at[--w->n_at].handle};
		struct urn_abi_rep rep;

		(void)urn_share_ask((struct urn_dev *)(uintptr_t)w->at[w->n_at].dev, &req, &rep);
	}
}

/* True when a region lies on the window's addresses, be it foreign memory: its pages must stay. */
static bool
urn_share_lies_on(const struct urn_share_window *w)
{
	const struct urn_share_hold *h;

	for (h = urn_share_holds; h != NULL; h = h->next)
		if (h->start < w->end && w->start < h->end)
			return true;
	return false;
}

/* End a window without regions. returns: false: its pages can't be moved back now */
static bool
urn_share_end(struct urn_share_window *w)
{
	const char *why;

	if (w->holds > 0 || (w->bytes > 0 && urn_share_lies_on(w)))
		return false;
	why = urn_share_move_back(w, 0, 0);
	if (why != NULL) {
		urn_share_explain(why);
		return false;
	}
	urn_share_without(w);
	urn_share_unmake(w);
	return true;
}

/* End windows without regions that meet start..end. */
static void
urn_share_end_idle(uintptr_t start, uintptr_t end)
{
	unsigned int i;

	for (i = 0; i < urn_share_top; i++) {
		struct urn_share_window *w = &urn_share_windows[i];

		if (w->end != 0 && w->idle != 0 && start < w->end && w->start < end)
			(void)urn_share_end(w);
	}
}

/* End windows without regions, the one that is idle for longest first, until few bytes and windows
 * are left. */
static void
urn_share_trim(void)
{
	for (;;) {
		struct urn_share_window *oldest = NULL;
		unsigned int i, n = 0;
		uint64_t bytes = 0;

		for (i = 0; i < urn_share_top; i++) {
			struct urn_share_window *w = &urn_share_windows[i];

			if (w->end == 0 || w->idle == 0)
				continue;
			n++;
			bytes += w->bytes;
			if (oldest == NULL || w->idle < oldest->idle)
				oldest = w;
		}
		if ((bytes <= URN_SHARE_IDLE && n <= URN_SHARE_IDLE_WINDOWS) ||
		    !urn_share_end(oldest))
			return;
	}
}

bool
urn_share_fork_last(void (*hold)(void), void (*go_on)(void))
{
	bool entered;

	if (!urn_share_is_on)
		return false;
	entered = urn_share_enter();
	urn_share_fork_more(hold, go_on);
	urn_share_hand(&urn_share_hook_table); /* forks begin to ask this library */
	urn_share_exit(entered);
	return true;
}

/* ---- regions */

/*
 * Give the program its pages of start..end back that other windows than `keep` have, unless a
 * region lies on them. returns: true when there are such windows
 */
static bool
urn_share_end_spare(const struct urn_share_window *keep, uintptr_t start, uintptr_t end)
{
	const struct urn_share_hold *h;
	bool found = false;
	unsigned int i;

	for (h = urn_share_holds; h != NULL; h = h->next)
		if (start < h->end && h->start < end)
			return false;
	for (i = 0; i < urn_share_top; i++) {
		struct urn_share_window *w = &urn_share_windows[i];

		if (w == keep || start >= w->end || w->start >= end)
			continue;
		found = true;
		if (w->idle == 0 || !urn_share_end(w))
			(void)urn_share_move_back(w, start, end);
	}
	return found;
}

/* Find or make a window for start..end, shared with the device. NULL: *why says why not */
static struct urn_share_window *
urn_share_window_for(struct urn_dev *dev, uintptr_t start, uintptr_t end, const char **why)
{
	struct urn_share_window *w = urn_share_find(start, end);
	bool made = w == NULL;

	if (made) {
		w = urn_share_make(start, end);
		*why = "no more descriptors or memory for shared memory";
		if (w == NULL)
			return NULL;
		w->idle = ++urn_share_clock;
	}
	*why = urn_share_with(w, dev);
	if (*why == NULL)
		return w;
	if (made)
		urn_share_unmake(w);
	return NULL;
}

/* Share the pages. NULL: *why says why not */
static struct urn_share_window *
urn_share_pages(struct urn_dev *dev, uintptr_t start, uintptr_t end, const char **why)
{
	struct urn_share_window *w = urn_share_window_for(dev, start, end, why);

	if (w == NULL) {
		/* Windows that are kept for the next region may be too much. */
		urn_share_end_idle(0, UINTPTR_MAX);
		w = urn_share_window_for(dev, start, end, why);
	}
	if (w == NULL)
		return NULL;
	*why = urn_share_move_in(w, start, end);
	if (*why != NULL && urn_share_end_spare(w, start, end))
		*why = urn_share_move_in(w, start, end);
	if (*why == NULL)
		return w;
	if (w->holds == 0 && w->bytes == 0)
		(void)urn_share_end(w); /* made in vain */
	return NULL;
}

static void
urn_share_list(struct urn_share_hold *h)
{
	h->next = urn_share_holds;
	h->at = &urn_share_holds;
	if (h->next != NULL)
		h->next->at = &h->next;
	urn_share_holds = h;
}

static void
urn_share_unlist(struct urn_share_hold *h)
{
	*h->at = h->next;
	if (h->next != NULL)
		h->next->at = h->at;
	h->dev = NULL;
	if (h->window != NULL && --h->window->holds == 0)
		h->window->idle = ++urn_share_clock;
}

uintptr_t
urn_share_take(struct urn_dev *dev, const void *addr, size_t length, struct urn_share_hold *hold)
{
	uintptr_t at = (uintptr_t)addr, start = at & ~(URN_SHARE_PAGE - 1);
	uintptr_t end = (at + length + URN_SHARE_PAGE - 1) & ~(URN_SHARE_PAGE - 1);
	struct urn_share_window *w;
	const char *why = NULL;
	bool entered;

	if (length == 0 || at + length < at || end <= start)
		return at;
	hold->why = urn_share_not(dev);
	if (hold->why != NULL)
		return at;
	entered = urn_share_enter();
	/* A copy of this library in another one, which registers nothing, leaves the calls to this.
	 */
	urn_share_hand(&urn_share_hook_table);
	w = urn_share_pages(dev, start, end, &why);
	*hold = (struct urn_share_hold){.dev = dev,
					.window = w,
					.start = start,
					.end = end,
					.era = urn_share_era,
					.why = why};
	if (w != NULL) {
		/* Without memory for it the dataplane refuses the region, and says so. */
		(void)urn_populate(w->home + (start - w->start), end - start);
		w->holds++;
		w->idle = 0;
		urn_share_count.shared++;
		at = (uintptr_t)w->home + (at - w->start);
	} else {
		urn_share_count.foreign++;
		urn_share_explain(why);
	}
	urn_share_list(hold);
	urn_share_trim();
	urn_share_exit(entered);
	return at;
}

void
urn_share_drop(struct urn_share_hold *hold)
{
	bool entered;

	if (hold->dev == NULL || hold->era != urn_share_era)
		return;
	entered = urn_share_enter();
	if (hold->dev != NULL) { /* the device may have been closed */
		urn_share_unlist(hold);
		urn_share_trim();
	}
	urn_share_exit(entered);
}

void
urn_share_pass(struct urn_share_hold *from, struct urn_share_hold *to)
{
	bool entered = urn_share_enter();

	*to = *from;
	if (to->dev != NULL && to->era == urn_share_era) {
		*to->at = to;
		if (to->next != NULL)
			to->next->at = &to->next;
	}
	memset(from, 0, sizeof(*from));
	urn_share_exit(entered);
}

/* A device goes, and with it what its dataplane had mapped over that device. */
static void
urn_share_forget(struct urn_share_window *w, const struct urn_dev *dev)
{
	unsigned int i;

	for (i = 0; i < w->n_at; i++)
		if (w->at[i].dev == dev)
			w->at[i--] = w->at[--w->n_at];
}

void
urn_share_part(const struct urn_dev *dev)
{
	bool entered;
	unsigned int i;

	if (!urn_share_is_on)
		return;
	entered = urn_share_enter();
	for (i = 0; i < urn_share_top; i++)
		urn_share_forget(&urn_share_windows[i], dev);
	urn_share_exit(entered);
}

void
urn_share_leave(struct urn_dev *dev)
{
	struct urn_share_hold *h, *next;
	bool entered;
	unsigned int i;

	if (!urn_share_is_on)
		return;
	entered = urn_share_enter();
	for (h = urn_share_holds; h != NULL; h = next) {
		next = h->next;
		if (h->dev == dev)
			urn_share_unlist(h);
	}
	for (i = 0; i < urn_share_top; i++) {
		struct urn_share_window *w = &urn_share_windows[i];

		urn_share_forget(w, dev);
		if (w->end != 0 && w->n_at == 0 && w->idle != 0)
			(void)urn_share_end(w);
	}
	urn_share_exit(entered);
}

void
urn_share_stats(struct urn_share_stats *out)
{
	bool entered = urn_share_enter();

	*out = urn_share_count;
	urn_share_exit(entered);
}
