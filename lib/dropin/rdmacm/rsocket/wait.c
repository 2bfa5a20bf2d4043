/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting. A thread that sleeps for a socket has an eventfd of its own in the socket's list. The
 * descriptors of the socket wake any sleeper, but the first one that takes a step may fetch what
 * another one waits for: so a step that changes something writes to all eventfds in the list.
 */
#include "dropin/rdmacm/rsocket/rs.h"

#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* its destructor closes a thread's eventfd */
static __thread int own_fd;
static __thread bool has_fd;

static void
thread_ends(void *arg)
{
	(void)arg;
	if (has_fd)
		close(own_fd);
	has_fd = false;
}

static void
start(void)
{
	(void)pthread_key_create(&key, thread_ends);
}

int
urn_rs_wake_fd(void)
{
	if (has_fd)
		return own_fd;
	pthread_once(&once, start);
	own_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (own_fd < 0)
		return -1;
	has_fd = true;
	(void)pthread_setspecific(key, &own_fd);
	return own_fd;
}

void
urn_rs_wake_forked(void)
{
	if (has_fd)
		close(own_fd);
	has_fd = false;
}

static uint64_t
now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t
urn_rs_now_ms(void)
{
	return now_us() / 1000;
}

void
urn_rs_wake(struct urn_rs *rs)
{
	struct urn_rs_waiter *w;
	uint64_t one = 1;

	LIST_FOREACH(w, &rs->waiters, next)
		if (write(w->fd, &one, sizeof(one)) < 0)
			continue; /* it is awake already */
}

void
urn_rs_watch(struct urn_rs *rs, struct urn_rs_waiter *w)
{
	LIST_INSERT_HEAD(&rs->waiters, w, next);
	if (rs->cq != NULL && !rs->armed && rs->state != URN_RS_DOWN)
		rs->armed = ibv_req_notify_cq(rs->cq, 0) == 0;
}

/* The completion queue's descriptor told of a completion. */
static void
disarm(struct urn_rs *rs)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(rs->comp, &cq, &context) != 0)
		return; /* another thread took the event */
	ibv_ack_cq_events(cq, 1);
	rs->armed = false;
	/* Other sleepers may not have seen the event, and nothing wakes them before the queue is
	 * armed. */
	urn_rs_wake(rs);
}

void
urn_rs_unwatch(struct urn_rs *rs, struct urn_rs_waiter *w, const struct pollfd *fds, uint32_t n)
{
	LIST_REMOVE(w, next);
	for (uint32_t i = 0; i < n; i++)
		if (rs->comp != NULL && fds[i].fd == rs->comp->fd && fds[i].revents != 0)
			disarm(rs);
}

uint32_t
urn_rs_watch_fds(const struct urn_rs *rs, struct pollfd fds[URN_RS_WATCH_FDS])
{
	uint32_t n = 0;

	if (rs->channel != NULL)
		fds[n++] = (struct pollfd){.fd = rs->channel->fd, .events = POLLIN};
	if (rs->comp != NULL && rs->state != URN_RS_DOWN)
		fds[n++] = (struct pollfd){.fd = rs->comp->fd, .events = POLLIN};
	return n;
}

/* Take steps for a short while. returns: true when the test came true */
static bool
spin(struct urn_rs *rs, urn_rs_test *test)
{
	uint64_t end = now_us() + URN_RS_SPIN_US;

	do {
		urn_rs_step(rs);
		if (test(rs))
			return true;
	} while (now_us() < end && !rs->closed);
	return false;
}

/* Sleep until something may have changed. ms: at most; -1: without end. returns: 0, or EINTR */
static int
sleep_once(struct urn_rs *rs, urn_rs_test *test, int ms)
{
	struct pollfd fds[URN_RS_WATCH_FDS + 1];
	struct urn_rs_waiter w;
	uint64_t count;
	uint32_t n;
	int err = 0;

	w.fd = urn_rs_wake_fd();
	if (w.fd < 0)
		return errno;
	urn_rs_watch(rs, &w);
	n = urn_rs_watch_fds(rs, fds);
	/* A completion before the queue was armed makes no event. */
	if (rs->cq != NULL && urn_rs_completions(rs))
		urn_rs_wake(rs);
	if (test(rs))
		ms = 0;
	fds[n] = (struct pollfd){.fd = w.fd, .events = POLLIN};
	pthread_mutex_unlock(&rs->lock);
	if (poll(fds, n + 1, ms) < 0) {
		err = errno;
		fds[0].revents = fds[1].revents = 0;
	} else if (fds[n].revents != 0 && read(w.fd, &count, sizeof(count)) < 0) {
		err = 0; /* nothing was counted */
	}
	pthread_mutex_lock(&rs->lock);
	urn_rs_unwatch(rs, &w, fds, n);
	return err;
}

int
urn_rs_wait(struct urn_rs *rs, urn_rs_test *test, int ms)
{
	uint64_t end = ms > 0 ? urn_rs_now_ms() + (uint64_t)ms : 0;
	int err = 0;

	urn_rs_step(rs);
	while (!test(rs)) {
		int left = ms;

		if (rs->closed)
			return EBADF;
		if (ms > 0) {
			uint64_t now = urn_rs_now_ms();

			left = now < end ? (int)(end - now) : 0;
		}
		if (left == 0)
			return EAGAIN;
		if (spin(rs, test))
			return 0;
		err = sleep_once(rs, test, left);
		urn_rs_step(rs);
		if (err != 0 && !test(rs))
			return err;
	}
	return 0;
}
