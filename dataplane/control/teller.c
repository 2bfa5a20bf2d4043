/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/teller.h"

#include "control/handles.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/*
 * The share of a teller: a wake-up that took longer than SLOW_NS of the thread's time is followed
 * by a rest of REST times as long, at most REST_MAX_NS. A wake-up of one reader takes some
 * microseconds, one of 20,000 watchers some 50 ms: their teller uses a tenth of a processor at
 * most.
 */
#define SLOW_NS 200000ull
#define REST 9
#define REST_MAX_NS 1000000000ull
#define NO_MEMORY_NS 1000000ull /* rest when the system has no memory for a record */

enum {
	STACK = 256 << 10, /* bytes; the thread touches some 12 KiB of them */
	STOP = 0,	   /* epoll's data of the eventfd that ends the thread; no way has it */
};
/* The least buffer that the system allows (4,608 bytes) takes a piece of 2,240 bytes whole. */
_Static_assert(URN_TELLER_BATCH * sizeof(struct urn_abi_event) <= 2048, "records are sent whole");

/* All fields but the first line are the thread's, until it has left the way for ever. */
struct urn_teller_way {
	int near, in, out; /* constant */
	uint32_t handle;   /* in the teller's table; constant */
	uint32_t serial;   /* number of the way among all that its teller had; constant */
	bool merges;	   /* constant */
	bool closed;	   /* the client reads no more: the way is not served */
	bool deaf;	   /* `in` is not watched, because the queue is full */
	bool waits;	   /* `out` is watched, because records wait for it */
	uint32_t queue_n;  /* records in queue[] */
	struct urn_abi_event queue[URN_TELLER_QUEUE]; /* records to be sent, oldest first */
	_Atomic uint32_t users; /* queues that use the way; any thread sets it */
};

struct urn_teller {
	struct urn_teller_counts *counts; /* constant, like all fields up to the lock */
	int epoll_fd, stop_fd;
	pthread_t thread;
	pthread_mutex_t lock;	   /* the teller's lock protects the next four fields */
	pthread_cond_t left;	   /* signalled when the thread leaves a way; with lock */
	struct urn_handles ways;   /* struct urn_teller_way */
	struct urn_teller_way *at; /* the way that the thread serves; NULL: none */
	uint32_t serial;	   /* number of the newest way */
	uint64_t rest_ns;	   /* the thread's: its next rest; 0: none */
	uint64_t used_ns; /* the thread's: processor time that it had used by its last turn */
};

/* ---- sending; in the teller's thread */

static bool
same(const struct urn_abi_event *a, const struct urn_abi_event *b)
{
	return a->type == b->type && a->handle == b->handle && a->cookie == b->cookie;
}

/* True when a record is an event of a completion queue. */
static bool
is_completion(const struct urn_teller_way *w, const struct urn_abi_event *ev)
{
	return w->merges && ev->type == 0;
}

/* True when an event of a completion queue waits already; other records are never merged. */
static bool
waits_already(const struct urn_teller_way *w, const struct urn_abi_event *ev)
{
	if (!is_completion(w, ev))
		return false;
	for (uint32_t i = 0; i < w->queue_n; i++)
		if (same(&w->queue[i], ev))
			return true;
	return false;
}

/* Take records over from the inner pair, as many as the queue has room for. */
static void
fetch(struct urn_teller *t, struct urn_teller_way *w)
{
	struct urn_abi_event ev[URN_TELLER_QUEUE];
	size_t room = URN_TELLER_QUEUE - w->queue_n;
	ssize_t n = room ? recv(w->in, ev, room * sizeof(ev[0]), MSG_DONTWAIT) : 0;

	/* Each record was sent whole, so whole ones are received. */
	for (size_t i = 0; n > 0 && i < (size_t)n / sizeof(ev[0]); i++) {
		if (waits_already(w, &ev[i]))
			atomic_fetch_add_explicit(&t->counts->merged, 1, memory_order_relaxed);
		else
			w->queue[w->queue_n++] = ev[i];
	}
}

/* The client reads no more: let the engines' writes fail, and drop the records that wait. */
static void
close_way(struct urn_teller *t, struct urn_teller_way *w)
{
	w->closed = true;
	(void)shutdown(w->in, SHUT_RD);
	do {
		atomic_fetch_add_explicit(&t->counts->lost, w->queue_n, memory_order_relaxed);
		w->queue_n = 0;
		fetch(t, w);
	} while (w->queue_n);
	(void)epoll_ctl(t->epoll_fd, EPOLL_CTL_DEL, w->in, NULL);
	(void)epoll_ctl(t->epoll_fd, EPOLL_CTL_DEL, w->out, NULL);
}

/* Bytes that may be unread in the outer pair for the oldest record to be written. */
static uint32_t
room(const struct urn_teller_way *w)
{
	uint64_t users = atomic_load_explicit(&w->users, memory_order_relaxed);
	uint64_t bytes = URN_TELLER_BASE + users * URN_TELLER_USER;

	/* The record that is written comes on top of them: it has the room of the last user. */
	if (users && is_completion(w, &w->queue[0]))
		bytes = URN_TELLER_NONE + (users - 1) * URN_TELLER_USER;
	return bytes < URN_TELLER_OUTER ? (uint32_t)bytes : URN_TELLER_OUTER;
}

/* True when the client has as much unread as it may have, its own library's records included. */
static bool
is_full(const struct urn_teller_way *w)
{
	int bytes;

	return ioctl(w->out, SIOCOUTQ, &bytes) == 0 && bytes >= (int)room(w);
}

/* Number of the oldest records that are written at once: all are events of completion queues, or
 * none is. */
static uint32_t
batch(const struct urn_teller_way *w)
{
	bool kind = is_completion(w, &w->queue[0]);
	uint32_t n = 1;

	while (n < w->queue_n && n < URN_TELLER_BATCH && is_completion(w, &w->queue[n]) == kind)
		n++;
	return n;
}

/* Write the oldest n records, all or none. returns: 0 or an errno value */
static int
write_some(struct urn_teller_way *w, uint32_t n)
{
	ssize_t rc;

	do
		rc = send(w->out, w->queue, n * sizeof(w->queue[0]), MSG_DONTWAIT | MSG_NOSIGNAL);
	while (rc < 0 && errno == EINTR);
	if (rc < 0)
		return errno;
	w->queue_n -= n;
	memmove(w->queue, w->queue + n, w->queue_n * sizeof(w->queue[0]));
	return 0;
}

/* Write records that wait, as far as the outer pair has room. */
static void
place(struct urn_teller *t, struct urn_teller_way *w)
{
	int err = 0;

	while (err == 0 && w->queue_n && !is_full(w))
		err = write_some(w, batch(w));
	if (err == ENOBUFS || err == ENOMEM) {
		/* Watched anew, the outer pair wakes the thread as soon as it has rested. */
		w->waits = false;
		t->rest_ns = NO_MEMORY_NS;
	} else if (err != 0 && err != EAGAIN) {
		close_way(t, w);
	}
}

/* Watch, or no longer watch, a descriptor of a way; a change reports what is there already. */
static void
watch(const struct urn_teller *t, const struct urn_teller_way *w, int fd, uint32_t events)
{
	struct epoll_event ev = {.events = events,
				 .data.u64 = (uint64_t)w->serial << 32 | w->handle};

	(void)epoll_ctl(t->epoll_fd, EPOLL_CTL_MOD, fd, &ev); /* changes of what is there succeed */
}

/*
 * Watch the descriptors that the way waits for. `out` is watched edge by edge: the system may call
 * it writable where is_full() holds. Edges come with reads, the last of them when all has been
 * read.
 */
static void
look_out(const struct urn_teller *t, struct urn_teller_way *w)
{
	bool waits = w->queue_n > 0, deaf = w->queue_n == URN_TELLER_QUEUE;

	if (waits != w->waits)
		watch(t, w, w->out, EPOLLET | (waits ? EPOLLOUT : 0));
	if (deaf != w->deaf)
		watch(t, w, w->in, deaf ? 0 : EPOLLIN);
	w->waits = waits;
	w->deaf = deaf;
}

static void
serve(struct urn_teller *t, struct urn_teller_way *w, uint32_t events)
{
	if (w->closed)
		return;
	if (events & (EPOLLHUP | EPOLLERR)) {
		close_way(t, w);
		return;
	}
	fetch(t, w);
	place(t, w);
	if (!w->closed)
		look_out(t, w);
}

/* ---- the thread */

/* Take hold of a way by epoll's data. returns: NULL: the way was removed */
static struct urn_teller_way *
enter(struct urn_teller *t, uint64_t data)
{
	struct urn_teller_way *w;

	pthread_mutex_lock(&t->lock);
	w = urn_handles_get(&t->ways, (uint32_t)data);
	if (w && w->serial != data >> 32)
		w = NULL;
	t->at = w;
	pthread_mutex_unlock(&t->lock);
	return w;
}

static void
leave(struct urn_teller *t)
{
	pthread_mutex_lock(&t->lock);
	t->at = NULL;
	pthread_cond_broadcast(&t->left);
	pthread_mutex_unlock(&t->lock);
}

static uint64_t
used_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Earn a rest by a turn that took long. */
static void
account(struct urn_teller *t)
{
	uint64_t used = used_ns(), turn = used - t->used_ns;

	t->used_ns = used;
	if (turn <= SLOW_NS)
		return;
	t->rest_ns = turn < REST_MAX_NS / REST ? turn * REST : REST_MAX_NS;
	atomic_fetch_add_explicit(&t->counts->rests, 1, memory_order_relaxed);
}

/* Rest, unless the thread is to end. returns: true when the thread goes on */
static bool
rest(struct urn_teller *t)
{
	struct pollfd stop = {.fd = t->stop_fd, .events = POLLIN};
	struct timespec ts = {.tv_sec = (time_t)(t->rest_ns / 1000000000u),
			      .tv_nsec = (long)(t->rest_ns % 1000000000u)};

	t->rest_ns = 0;
	return ppoll(&stop, 1, &ts, NULL) <= 0;
}

static void *
teller_main(void *arg)
{
	struct urn_teller *t = arg;
	struct urn_teller_way *w;
	struct epoll_event ev;
	int n;

	(void)pthread_setname_np(pthread_self(), "urnic-teller");
	t->used_ns = used_ns();
	for (;;) {
		if (t->rest_ns && !rest(t))
			return NULL;
		/* One at a time: a way that was reported may be removed meanwhile. */
		n = epoll_wait(t->epoll_fd, &ev, 1, -1);
		if (n < 1)
			continue;
		if (ev.data.u64 == STOP)
			return NULL;
		w = enter(t, ev.data.u64);
		if (w)
			serve(t, w, ev.events);
		leave(t);
		account(t);
	}
}

/* Start the thread; it takes no signals. returns: 0 or an errno value */
static int
start(struct urn_teller *t, const cpu_set_t *cpus)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = EINVAL;
	if (cpus && pthread_attr_setaffinity_np(&attr, sizeof(*cpus), cpus) == 0)
		rc = pthread_create(&t->thread, &attr, teller_main, t);
	if (rc == EINVAL) { /* none of these processors may be used */
		pthread_attr_destroy(&attr);
		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, STACK);
		rc = pthread_create(&t->thread, &attr, teller_main, t);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return rc;
}

/* ---- calls of other threads */

static void
free_teller(struct urn_teller *t)
{
	if (t->epoll_fd >= 0)
		close(t->epoll_fd);
	if (t->stop_fd >= 0)
		close(t->stop_fd);
	pthread_cond_destroy(&t->left);
	pthread_mutex_destroy(&t->lock);
	urn_handles_fini(&t->ways);
	free(t);
}

struct urn_teller *
urn_teller_create(struct urn_teller_counts *counts, const cpu_set_t *cpus)
{
	struct epoll_event stop = {.events = EPOLLIN, .data.u64 = STOP};
	struct urn_teller *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return NULL;
	t->counts = counts;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->left, NULL);
	t->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	t->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (t->epoll_fd < 0 || t->stop_fd < 0 ||
	    epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, t->stop_fd, &stop) != 0)
		rc = errno;
	else
		rc = start(t, cpus);
	if (rc == 0)
		return t;
	free_teller(t);
	errno = rc;
	return NULL;
}

/* Close the descriptors of a way that the thread does not serve, and free it. */
static void
free_way(const struct urn_teller *t, struct urn_teller_way *w)
{
	/* The client has `out` as well, so that closing it here ends no watch. */
	if (!w->closed) {
		(void)epoll_ctl(t->epoll_fd, EPOLL_CTL_DEL, w->in, NULL);
		(void)epoll_ctl(t->epoll_fd, EPOLL_CTL_DEL, w->out, NULL);
	}
	close(w->near);
	close(w->in);
	close(w->out);
	free(w);
}

void
urn_teller_destroy(struct urn_teller *t)
{
	uint64_t one = 1;

	if (!t)
		return;
	if (write(t->stop_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
		pthread_join(t->thread, NULL);
	for (uint32_t i = 0; i < t->ways.cap; i++)
		if (t->ways.v[i])
			free_way(t, t->ways.v[i]);
	free_teller(t);
}

/* Make the inner pair of a way. returns: 0 or an errno value */
static int
make_inner(struct urn_teller_way *w)
{
	const int room = URN_TELLER_INNER / 2; /* the system doubles it */
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0)
		return errno;
	w->near = fd[0];
	w->in = fd[1];
	(void)setsockopt(w->near, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	return 0;
}

/* Watch both descriptors of a new way. returns: 0 or an errno value */
static int
join(const struct urn_teller *t, const struct urn_teller_way *w)
{
	uint64_t data = (uint64_t)w->serial << 32 | w->handle;
	struct epoll_event in = {.events = EPOLLIN, .data.u64 = data};
	struct epoll_event out = {.events = EPOLLET, .data.u64 = data}; /* its end only */

	int rc;

	if (epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, w->in, &in) != 0)
		return errno;
	if (epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, w->out, &out) == 0)
		return 0;
	rc = errno;
	(void)epoll_ctl(t->epoll_fd, EPOLL_CTL_DEL, w->in, NULL);
	return rc;
}

int
urn_teller_add(struct urn_teller *t, int out, bool merges, struct urn_teller_way **way, int *near)
{
	struct urn_teller_way *w = calloc(1, sizeof(*w));
	int rc = w ? make_inner(w) : ENOMEM;

	if (rc != 0) {
		free(w);
		return rc;
	}
	w->out = out;
	w->merges = merges;
	atomic_init(&w->users, 0);
	pthread_mutex_lock(&t->lock);
	w->serial = ++t->serial;
	rc = urn_handles_put(&t->ways, w, UINT32_MAX, &w->handle);
	if (rc == 0 && (rc = join(t, w)) != 0)
		urn_handles_remove(&t->ways, w->handle);
	pthread_mutex_unlock(&t->lock);
	if (rc != 0) {
		close(w->near);
		close(w->in);
		free(w);
		return rc;
	}
	*way = w;
	*near = w->near;
	return 0;
}

void
urn_teller_users(struct urn_teller_way *way, uint32_t users)
{
	/* A way that waits has something unread, and looks again when that is read. */
	atomic_store_explicit(&way->users, users, memory_order_relaxed);
}

void
urn_teller_remove(struct urn_teller *t, struct urn_teller_way *way)
{
	pthread_mutex_lock(&t->lock);
	urn_handles_remove(&t->ways, way->handle);
	while (t->at == way)
		pthread_cond_wait(&t->left, &t->lock);
	pthread_mutex_unlock(&t->lock);
	free_way(t, way);
}
