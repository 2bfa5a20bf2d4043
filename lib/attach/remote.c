/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One question at a time, under a lock. The dataplane is trusted, but it may
 * die at any moment: then every call fails and says so, and nothing waits for ever. The
 * dataplane may also stop or hang: patience.h.
 */
#include "attach/remote.h"

#include "attach/alloc.h"
#include "attach/ask.h"
#include "attach/dev.h"
#include "attach/dial.h"
#include "attach/memory.h"
#include "attach/patience.h"
#include "attach/still.h"
#include "attach/thread.h"
#include "attach/trust.h"

#include <urnic/attach.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

struct urn_remote {
	struct urn_abi_channel channel;
	pthread_mutex_t lock;	   /* lock is held from a question to its answer; protects serial */
	int fd;                    /* the connection */
	int area_fd; /* the area's memory: names this client to the dataplane; -1: none */
	uint32_t serial;           /* serial of the last question; under lock */
	uint64_t area_size;        /* bytes mapped at channel.area */
	uint32_t engines;
	int wake_fd[URN_ABI_MAX_ENGINES];
	struct urn_segment_set shared; /* segments that the dataplane has mapped; under share_lock */
	struct urn_segment_set
		refused; /* segments that the dataplane does not map; under share_lock */
	bool keeps;	 /* the dataplane has not got this program's memory; under share_lock */
	struct urn_memory own; /* this program's memory, none once handed over; under share_lock */
	pthread_mutex_t share_lock; /* share_lock protects shared, refused, keeps and own */
	/* the watcher: a thread that waits for the dataplane's death */
	bool watched;              /* there is a watcher */
	pthread_t watcher;
	int stop_fd;               /* eventfd: written to end the watcher; -1: none */
	uint32_t bound_ms; /* ms: bound of each call once there is a watcher; 0: none; constant then
			    */
	_Atomic bool given_up; /* no answer came within that bound */
	const _Atomic uint32_t *waits; /* urn_abi_db.waits, in the area; NULL: not known yet; under
					  lock */
	void (*died)(void *arg);
	void *died_arg;
};

/* ---- connecting */

int
urn_remote_connect(const char *path, uint32_t *can)
{
	const struct urn_abi_offer own = URN_ABI_OFFER;
	struct urn_sock_ask q = {.hello = {.oldest = own.oldest, .newest = own.newest}};
	struct urn_sock_answer a;
	int fd = urn_dial(path), err;

	if (fd < 0)
		return -1;
	err = urn_trust_listener(fd, path);
	if (err == 0)
		err = urn_remote_ask(fd, &q, URN_SOCK_HELLO, NULL, 0, &a, NULL);
	if (err == 0)
		err = urn_dev_agree(
			&(struct urn_abi_offer){.oldest = a.hello.abi, .newest = a.hello.abi},
			NULL);
	if (err == 0) {
		if (can != NULL)
			*can = a.can;
		return fd;
	}
	close(fd);
	errno = err;
	return -1;
}

/* ---- the channel */

/*
 * Ask with the lock held. A dataplane that does not answer in time is given up: the watcher takes
 * the end of the connection for its death, and an answer that comes later is not read.
 * returns: 0 or an errno value with its text
 */
static int
urn_remote_ask_open(struct urn_remote *r, struct urn_sock_ask *q, uint16_t kind, const int *extra,
		    unsigned int count, struct urn_sock_answer *a, struct urn_remote_more *more)
{
	int err;

	more->waits = r->waits;
	err = urn_remote_ask(r->fd, q, kind, extra, count, a, more);
	if (err != ETIMEDOUT || r->bound_ms == 0)
		return err;
	atomic_store(&r->given_up, true);
	(void)shutdown(r->fd, SHUT_RDWR);
	return urn_fail(
		ENODEV,
		"the dataplane has not answered for %u ms, and is given up: close the device",
		r->bound_ms);
}

void
urn_remote_bound(struct urn_abi_channel *channel, uint32_t ms)
{
	struct urn_remote *r = channel->ctx;

	r->bound_ms = ms;
}

static int
urn_remote_may_live(void *ctx)
{
	struct urn_remote *r = ctx;

	return atomic_load(&r->given_up);
}

bool
urn_remote_given_up(const struct urn_abi_channel *channel)
{
	return urn_remote_may_live(channel->ctx) != 0;
}

/* Only a dataplane that was given up alive can still write to the area. */
static int
urn_remote_still(void *ctx)
{
	struct urn_remote *r = ctx;

	return urn_remote_may_live(r) ? urn_still(r->channel.area, r->area_size, r->area_fd) : 0;
}

/* Put the text of the call that failed into an answer. */
static void
urn_remote_say(struct urn_abi_rep *rep)
{
	snprintf(rep->why, sizeof(rep->why), "%.*s", (int)sizeof(rep->why) - 1, urn_attach_error());
}

/*
 * One control call; fd: room for the descriptors that come back. returns: 0 or an errno value; with
 * EMFILE rep->handle names the object that was made in vain
 */
static int
urn_remote_ask_call(struct urn_remote *r, const struct urn_abi_req *req, struct urn_abi_rep *rep, int *fd)
{
	struct urn_sock_ask q = {.call = *req};
	struct urn_sock_answer a = {0};
	struct urn_remote_more more = {.fds = fd,
				       .max_fds = fd != NULL ? urn_ctl_fds_out(req->op) : 0};
	int err;

	pthread_mutex_lock(&r->lock);
	q.head.serial = ++r->serial;
	err = urn_remote_ask_open(r, &q, URN_SOCK_CALL, &req->fd, urn_ctl_fds_in(req->op), &a,
				  &more);
	if (err == 0 && a.call.err == 0 && req->op == URN_CTL_HELLO)
		r->waits = urn_remote_waits(r->channel.area, r->area_size, &a.call.device);
	pthread_mutex_unlock(&r->lock);
	if (err == 0) {
		*rep = a.call;
		return rep->err == 0 && more.n_fds != more.max_fds ? EPROTO : rep->err;
	}
	rep->err = err;
	rep->handle = a.call.handle;
	urn_remote_say(rep);
	return err;
}

static void
urn_remote_call(void *ctx, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	(void)urn_remote_ask_call(ctx, req, rep, NULL);
}

static int
urn_remote_cm_events(void *ctx, struct urn_abi_cm_event *ev, uint32_t max, uint32_t *n,
	struct urn_abi_rep *rep)
{
	struct urn_remote *r = ctx;
	struct urn_sock_ask q = {.events.max = max};
	struct urn_remote_more more = {.ev = ev, .max_ev = max};
	struct urn_sock_answer a;
	int err;

	pthread_mutex_lock(&r->lock);
	q.head.serial = ++r->serial;
	err = urn_remote_ask_open(r, &q, URN_SOCK_EVENTS, NULL, 0, &a, &more);
	pthread_mutex_unlock(&r->lock);
	*n = err == 0 ? more.n_ev : 0;
	if (err != 0)
		urn_remote_say(rep);
	return err;
}

static int
urn_remote_pipe(void *ctx, enum urn_ctl_op op, struct urn_abi_rep *rep, int fd[2])
{
	struct urn_abi_req req = {.op = op};
	struct urn_abi_rep none;
	int err;

	if (op == URN_CTL_ASYNC_FD)
		req.async_fd.fd = -1;
	err = urn_remote_ask_call(ctx, &req, rep, fd);
	if (err == EMFILE && op == URN_CTL_CREATE_CHANNEL && rep->handle != 0) {
		req = (struct urn_abi_req){.op = URN_CTL_DESTROY_CHANNEL, .handle = rep->handle};
		urn_remote_call(ctx, &req, &none);
	}
	return err;
}

static void
urn_remote_wake(void *ctx, uint32_t engine)
{
	struct urn_remote *r = ctx;
	uint64_t one = 1;

	if (engine < r->engines && write(r->wake_fd[engine], &one, sizeof(one)) < 0) {
		/* The eventfd is full: the engine is being woken already. */
	}
}

/* The dataplane has mapped a segment. */
static void
urn_remote_shared(struct urn_remote *r, uint32_t id, struct urn_abi_rep *rep)
{
	struct urn_abi_req undo = {.op = URN_CTL_UNSHARE, .handle = rep->handle};

	if (urn_segment_set_add(&r->shared, id) == 0) {
		urn_segment_shared(id);
		return;
	}
	urn_remote_call(r, &undo, rep);
	rep->err = ENOMEM;
}

/*
 * Hand this program's memory over, once, when a region is about to lie in memory that is not
 * shared. share_lock is held. A refusal for good is told by the call that makes the region; any
 * other may pass, so it fails this call, and the next region asks again.
 */
static void
urn_remote_hand_over(struct urn_remote *r, struct urn_abi_rep *rep)
{
	struct urn_remote_more more = {0};
	struct urn_sock_ask q = {0};
	struct urn_sock_answer a;

	rep->err = urn_memory_open(&r->own);
	if (rep->err == 0) {
		pthread_mutex_lock(&r->lock);
		q.head.serial = ++r->serial;
		rep->err = urn_remote_ask_open(r, &q, URN_SOCK_MEMORY, r->own.fd, 2, &a, &more);
		pthread_mutex_unlock(&r->lock);
	}
	if (rep->err == 0 || rep->err == EALREADY) {
		r->keeps = false;
		urn_memory_close(&r->own);
	} else if (rep->err != EOPNOTSUPP) {
		urn_remote_say(rep);
		return;
	}
	rep->err = 0;
}

static int
urn_remote_share(void *ctx, const void *addr, size_t length, struct urn_abi_rep *rep)
{
	struct urn_remote *r = ctx;
	struct urn_abi_req req = {.op = URN_CTL_SHARE};
	struct urn_segment seg = {0};
	bool own = urn_segment_find(addr, length, &seg);

	pthread_mutex_lock(&r->share_lock);
	if (own && !urn_segment_set_has(&r->shared, seg.id) &&
	    !urn_segment_set_has(&r->refused, seg.id)) {
		req.share.fd = seg.fd;
		req.share.addr = (uintptr_t)seg.base;
		req.share.length = seg.length;
		urn_remote_call(r, &req, rep);
		if (rep->err == 0)
			urn_remote_shared(r, seg.id, rep);
		else if (rep->err == EPERM ||
			 rep->err == EMFILE) /* regions in it are foreign memory */
			rep->err = urn_segment_set_add(&r->refused, seg.id);
	}
	if (r->keeps && (!own || urn_segment_set_has(&r->refused, seg.id)))
		urn_remote_hand_over(r, rep);
	pthread_mutex_unlock(&r->share_lock);
	return rep->err;
}

/* Forget the shared segments, under share_lock, which is let go. */
static void
urn_remote_forget_shared(struct urn_remote *r)
{
	uint32_t i;

	for (i = 0; i < r->shared.n; i++)
		urn_segment_unshared(r->shared.id[i]);
	urn_segment_set_free(&r->shared);
	pthread_mutex_unlock(&r->share_lock);
}

/* The dataplane has none of our segments mapped any more: it died, or the connection is to end. */
static void
urn_remote_unshare_all(struct urn_remote *r)
{
	pthread_mutex_lock(&r->share_lock);
	urn_remote_forget_shared(r);
}

/* The lock may be held for ever in a child of fork(), or by a call that fails soon: then the
 * segments are forgotten when the channel is closed. */
static void
urn_remote_gone(void *ctx)
{
	struct urn_remote *r = ctx;

	if (pthread_mutex_trylock(&r->share_lock) == 0)
		urn_remote_forget_shared(r);
}

/* ---- watching */

/* Ask the dataplane something: only whether an answer comes in time matters. */
static void
urn_remote_look(struct urn_remote *r)
{
	const struct urn_abi_req req = {.op = URN_CTL_QUERY_PORT};
	struct urn_abi_rep rep;

	(void)urn_remote_ask_call(r, &req, &rep, NULL);
}

/*
 * The kernel shows the end of the connection once no thread of the dataplane runs any more: the
 * memory that the dataplane shares with us does not change after that. Where calls are bounded the
 * watcher asks each time that the bound has passed, so that a dataplane which is stopped is given
 * up though the program calls nothing, and no other thread waits for that.
 */
static void *
urn_remote_watcher(void *arg)
{
	struct urn_remote *r = arg;
	struct pollfd p[2] = {{.fd = r->fd, .events = POLLRDHUP}, {.fd = r->stop_fd, .events = POLLIN}};
	int wait = r->bound_ms != 0 ? (int)r->bound_ms : -1, n;

	while ((n = poll(p, 2, wait)) == 0 || (n < 0 && errno == EINTR))
		if (n == 0)
			urn_remote_look(r);
	if (p[1].revents == 0) {
		urn_remote_unshare_all(r);
		r->died(r->died_arg);
	}
	return NULL;
}

static int
urn_remote_watch(void *ctx, void (*died)(void *arg), void *arg)
{
	struct urn_remote *r = ctx;
	int err;

	r->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (r->stop_fd < 0)
		return urn_fail(
			errno,
			"no descriptor to watch the dataplane with: %s: raise RLIMIT_NOFILE "
			"(ulimit -n)",
			strerror(errno));
	r->died = died;
	r->died_arg = arg;
	urn_thread_stay();
	err = urn_thread_start(&r->watcher, urn_remote_watcher, r);
	if (err != 0)
		return urn_fail(err, "no thread to watch the dataplane with: %s", strerror(err));
	/* From here on the program has memory that the dataplane may change. */
	urn_patience_set(r->fd, r->bound_ms);
	(void)pthread_setname_np(r->watcher, "urnic-watch");
	r->watched = true;
	return 0;
}

static void
urn_remote_unwatch(struct urn_remote *r)
{
	uint64_t one = 1;

	if (r->watched && write(r->stop_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
		pthread_join(r->watcher, NULL);
	r->watched = false;
	if (r->stop_fd >= 0)
		close(r->stop_fd);
	r->stop_fd = -1;
}

/*
 * In a child of fork(), which has one thread. The child's copies of the descriptors would keep
 * the connection up when the parent has gone; the child's area is the parent's
 * itself, so private memory takes its place.
 */
static void
urn_remote_forked(void *ctx)
{
	struct urn_remote *r = ctx;
	uint32_t i;

	close(r->fd);
	r->fd = -1;
	urn_memory_close(&r->own); /* the parent's memory */
	for (i = 0; i < r->engines; i++)
		close(r->wake_fd[i]);
	r->engines = 0;
	r->watched = false;
	urn_remote_unwatch(r);
	(void)mmap(r->channel.area, r->area_size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	pthread_mutex_init(&r->lock, NULL);
	pthread_mutex_init(&r->share_lock, NULL);
}

/* No more questions come. The dataplane's end closes when it has taken everything back. */
static void
urn_remote_hang_up(void *ctx)
{
	const struct urn_remote *r = ctx;

	(void)shutdown(r->fd, SHUT_WR);
}

static int
urn_remote_proof(void *ctx)
{
	const struct urn_remote *r = ctx;

	return r->area_fd;
}

/*
 * Wait until the dataplane has taken everything back, or is dead: until then peers may still write
 * into the program's memory. There is no bound, for the same reason as with other calls of an
 * open device (patience.h).
 */
static void
urn_remote_await_end(struct urn_remote *r)
{
	struct pollfd p = {.fd = r->fd, .events = POLLRDHUP};

	urn_remote_hang_up(r);
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
}

static void
urn_remote_close(void *ctx)
{
	struct urn_remote *r = ctx;
	bool had_objects = r->watched;
	uint32_t i;

	urn_remote_unwatch(r);
	if (r->fd >= 0 && had_objects)
		urn_remote_await_end(r);
	if (r->fd >= 0)
		close(r->fd);
	if (r->area_fd >= 0)
		close(r->area_fd);
	if (r->channel.area != NULL)
		munmap(r->channel.area, r->area_size);
	for (i = 0; i < r->engines; i++)
		close(r->wake_fd[i]);
	urn_remote_unshare_all(r);
	urn_segment_set_free(&r->refused);
	urn_memory_close(&r->own);
	pthread_mutex_destroy(&r->lock);
	pthread_mutex_destroy(&r->share_lock);
	free(r);
}

/* Take over the dataplane's descriptors: the area, and an eventfd for each engine. */
static int
urn_remote_take(struct urn_remote *r, const struct urn_sock_answer *a, const int *fds, unsigned int n)
{
	void *area = MAP_FAILED;
	unsigned int i;
	int err = EPROTO;

	if (n > 0 && n == a->open.engines + 1u && n <= URN_SOCK_FDS) {
		area = mmap(NULL, a->open.area_size, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
		err = errno;
	}
	if (area == MAP_FAILED) {
		for (i = 0; i < n; i++)
			close(fds[i]);
		if (err == ENOMEM)
			return urn_fail(err,
					"no address space for the %" PRIu64
					" MiB of the area for queues: "
					"raise RLIMIT_AS (ulimit -v)",
					(uint64_t)a->open.area_size >> 20);
		return urn_fail(err, "the area for queues can't be mapped: %s", strerror(err));
	}
	r->channel.area = area;
	r->area_fd = fds[0];
	r->area_size = a->open.area_size;
	r->engines = a->open.engines;
	memcpy(r->wake_fd, fds + 1, r->engines * sizeof(int));
	return 0;
}

struct urn_abi_channel *
urn_remote_open(int fd, const char name[32], uint32_t can)
{
	struct urn_remote *r = calloc(1, sizeof(*r));
	struct urn_sock_ask q = {0};
	struct urn_sock_answer a;
	int fds[URN_SOCK_FDS], err;
	struct urn_remote_more more = {.fds = fds, .max_fds = URN_SOCK_FDS};

	if (r == NULL) {
		close(fd);
		urn_fail(ENOMEM, "no memory for a channel");
		return NULL;
	}
	pthread_mutex_init(&r->lock, NULL);
	pthread_mutex_init(&r->share_lock, NULL);
	r->fd = fd;
	r->area_fd = r->stop_fd = -1;
	r->channel = (struct urn_abi_channel){
		.ctx = r,
		.call = urn_remote_call,
		.wake = urn_remote_wake,
		.close = urn_remote_close,
		.share = urn_remote_share,
		.pipe = urn_remote_pipe,
		.cm_events = urn_remote_cm_events,
		.watch = urn_remote_watch,
		.forked = urn_remote_forked,
		.gone = urn_remote_gone,
		.hang_up = urn_remote_hang_up,
		.proof = urn_remote_proof,
		.given_up = urn_remote_may_live,
		.still = urn_remote_still,
	};
	memcpy(q.open.name, name, sizeof(q.open.name));
	q.open.name[sizeof(q.open.name) - 1] = '\0';
	r->keeps = (can & URN_SOCK_CAN_MEMORY) != 0;
	r->own = URN_MEMORY_NONE;
	if (!r->keeps)
		(void)urn_memory_open(&r->own);
	err = urn_remote_ask(fd, &q, URN_SOCK_OPEN, r->own.fd, urn_memory_count(&r->own), &a,
			     &more);
	urn_memory_close(&r->own);
	if (err == 0)
		err = urn_remote_take(r, &a, fds, more.n_fds);
	/* The program may give up the right to open them before its first foreign region. */
	if (err == 0 && r->keeps)
		(void)urn_memory_open(&r->own);
	if (err == 0)
		return &r->channel;
	urn_remote_close(r);
	errno = err;
	return NULL;
}
