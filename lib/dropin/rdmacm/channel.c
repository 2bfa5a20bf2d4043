/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event channels. The descriptor is an eventfd that counts the queued events: readable while there
 * is one, and a program's O_NONBLOCK works on it. rdma_get_cm_event() takes one off the count,
 * which blocks as the descriptor says, and then an event off the queue.
 */
#include "dropin/rdmacm/rdmacm.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

/* Destroyed channels that stay in memory. */
#define GONE_MOST 64

/* Signalled when the program acknowledged an event. */
static pthread_cond_t acked = PTHREAD_COND_INITIALIZER;

/*
 * The last channels that were destroyed, the oldest at `gone_next`; under the lock. Programs end
 * with a thread in rdma_get_cm_event(), or just before it (rping of rdma-core 44): memory that
 * stays lets the thread see that its channel is gone.
 */
static struct urn_cma_channel *gone[GONE_MOST];
static uint32_t gone_next;

struct urn_cma_channel *
urn_cma_channel_new(void)
{
	struct urn_cma_channel *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	TAILQ_INIT(&c->queue);
	c->forks = urn_cma_forks;
	c->pub.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	if (c->pub.fd < 0) {
		free(c);
		return NULL;
	}
	return c;
}

void
urn_cma_channel_free(struct urn_cma_channel *c)
{
	struct urn_cma_event *e;

	if (c->forks != urn_cma_forks)
		TAILQ_INIT(&c->queue); /* a thread of the parent may have half changed it */
	while ((e = TAILQ_FIRST(&c->queue)) != NULL) {
		TAILQ_REMOVE(&c->queue, e, next);
		free(e);
	}
	close(c->pub.fd);
	c->pub.fd = -1;
	free(gone[gone_next]);
	gone[gone_next] = c;
	gone_next = (gone_next + 1) % GONE_MOST;
}

void
urn_cma_channels_forked(void)
{
	pthread_cond_init(&acked, NULL);
	memset(gone, 0, sizeof(gone));
}

/* Open the devices and start the listener of ends. returns: 0, or an errno value */
static int
ready(void)
{
	int err = urn_cma_devices_open();

	return err != 0 ? err : urn_cma_dispatch_start();
}

/* Put a descriptor of this process's own under a foreign channel's number. returns: 0, or an errno
 * value. The lock is held */
static int
adopt(struct urn_cma_channel *c)
{
	int flags = fcntl(c->pub.fd, F_GETFL), fd, err;

	if (flags < 0)
		return errno;
	fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE | (flags & O_NONBLOCK ? EFD_NONBLOCK : 0));
	if (fd < 0)
		return errno;
	err = dup3(fd, c->pub.fd, O_CLOEXEC) < 0 ? errno : 0;
	close(fd);
	if (err != 0)
		return err;
	TAILQ_INIT(&c->queue);
	c->forks = urn_cma_forks;
	return 0;
}

int
urn_cma_channel_own(struct urn_cma_channel *c)
{
	int err;

	if (c->forks == urn_cma_forks)
		return 0;
	err = ready();
	if (err != 0)
		return err;
	pthread_mutex_lock(&urn_cma_lock);
	if (c->forks != urn_cma_forks)
		err = adopt(c);
	pthread_mutex_unlock(&urn_cma_lock);
	return err;
}

struct rdma_event_channel *
rdma_create_event_channel(void)
{
	struct urn_cma_channel *c;
	int err = ready();

	if (err != 0) {
		errno = err;
		return NULL;
	}
	c = urn_cma_channel_new();
	return c == NULL ? NULL : &c->pub;
}

void
rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	if (channel == NULL)
		return;
	pthread_mutex_lock(&urn_cma_lock);
	urn_cma_channel_free((struct urn_cma_channel *)channel);
	pthread_mutex_unlock(&urn_cma_lock);
}

static void
count_up(struct urn_cma_channel *c)
{
	uint64_t one = 1;

	if (write(c->pub.fd, &one, sizeof(one)) < 0)
		return; /* not before 2^64 - 1 events wait */
}

/* Take one off the count without a wait, whatever the descriptor's mode. */
static void
count_down(struct urn_cma_channel *c)
{
	uint64_t one;
	struct iovec v = {.iov_base = &one, .iov_len = sizeof(one)};

	if (preadv2(c->pub.fd, &v, 1, -1, RWF_NOWAIT) < 0)
		return; /* another thread took the count, and will find no event */
}

static void
enqueue(struct urn_cma_channel *c, struct urn_cma_event *e)
{
	TAILQ_INSERT_TAIL(&c->queue, e, next);
	count_up(c);
}

static void
dequeue(struct urn_cma_channel *c, struct urn_cma_event *e)
{
	TAILQ_REMOVE(&c->queue, e, next);
	count_down(c);
}

struct urn_cma_event *
urn_cma_post(struct urn_cma_id *id, enum rdma_cm_event_type type, int status, const void *data,
	     uint32_t len)
{
	struct urn_cma_event *e = calloc(1, sizeof(*e));
	bool asks = type == RDMA_CM_EVENT_CONNECT_REQUEST;

	if (e == NULL)
		return NULL;
	e->id = id;
	e->owner = asks ? id->listener : id;
	e->pub.id = &id->pub;
	e->pub.listen_id = asks ? &id->listener->pub : NULL;
	e->pub.event = type;
	e->pub.status = status;
	if (len > sizeof(e->data))
		len = sizeof(e->data);
	if (data != NULL && len != 0) {
		memcpy(e->data, data, len);
		e->pub.param.conn.private_data = e->data;
		e->pub.param.conn.private_data_len = (uint8_t)(len > UINT8_MAX ? UINT8_MAX : len);
	}
	enqueue(asks ? id->listener->channel : id->channel, e);
	return e;
}

void
urn_cma_drop_events(struct urn_cma_id *id)
{
	struct urn_cma_event *e, *after;

	for (e = TAILQ_FIRST(&id->channel->queue); e != NULL; e = after) {
		after = TAILQ_NEXT(e, next);
		if (e->owner != id && e->id != id)
			continue;
		dequeue(id->channel, e);
		free(e);
	}
}

/* Take the oldest event off the queue, and do all that its delivery means. */
static struct urn_cma_event *
take(struct urn_cma_channel *c)
{
	struct urn_cma_event *e = TAILQ_FIRST(&c->queue);

	if (e == NULL)
		return NULL;
	TAILQ_REMOVE(&c->queue, e, next);
	e->owner->unacked++;
	if (e->reply)
		urn_cma_finish(e);
	e->id->reported = true;
	return e;
}

/* Wait until the program ends, as a reader of a device's descriptor does that was closed. */
static void
wait_for_the_end(void)
{
	for (;;)
		pause();
}

int
rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct urn_cma_event *e = NULL;
	bool counted, is_gone;
	uint64_t one;
	int err;

	if (channel == NULL || event == NULL)
		return urn_cma_result(EINVAL);
	if (((struct urn_cma_channel *)channel)->forks != urn_cma_forks)
		return urn_cma_result(EBADF); /* the descriptor's count is the parent's */
	while (e == NULL) {
		counted = read(channel->fd, &one, sizeof(one)) > 0;
		err = errno;
		pthread_mutex_lock(&urn_cma_lock);
		is_gone = channel->fd < 0;
		if (counted)
			e = take((struct urn_cma_channel *)channel);
		pthread_mutex_unlock(&urn_cma_lock);
		if (is_gone)
			wait_for_the_end();
		if (!counted) {
			errno = err;
			return -1;
		}
	}
	*event = &e->pub;
	return 0;
}

int
rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct urn_cma_event *e = (struct urn_cma_event *)event;

	if (event == NULL)
		return urn_cma_result(EINVAL);
	pthread_mutex_lock(&urn_cma_lock);
	e->owner->unacked--;
	pthread_cond_broadcast(&acked);
	pthread_mutex_unlock(&urn_cma_lock);
	free(e);
	return 0;
}

void
urn_cma_wait_acks(struct urn_cma_id *id)
{
	while (id->unacked != 0)
		pthread_cond_wait(&acked, &urn_cma_lock);
}

/* Move the events of an id that the program has not fetched to another channel. */
static void
move_events(struct urn_cma_id *id, struct urn_cma_channel *to)
{
	struct urn_cma_event *e, *after;

	for (e = TAILQ_FIRST(&id->channel->queue); e != NULL; e = after) {
		after = TAILQ_NEXT(e, next);
		if (e->owner != id)
			continue;
		dequeue(id->channel, e);
		enqueue(to, e);
	}
	id->channel = to;
	id->pub.channel = &to->pub;
}

int
rdma_migrate_id(struct rdma_cm_id *pub, struct rdma_event_channel *channel)
{
	struct urn_cma_channel *to = (struct urn_cma_channel *)channel, *from;
	struct urn_cma_id *id = urn_cma_of(pub), *request;
	bool was_sync;
	int err;

	if (id == NULL || urn_cma_foreign(id))
		return urn_cma_result(EINVAL);
	if (id->sync && to == NULL)
		return urn_cma_result(EINVAL);
	if (id->sync && pub->event != NULL) {
		rdma_ack_cm_event(pub->event);
		pub->event = NULL;
	}
	if (to == NULL)
		to = urn_cma_channel_new();
	err = to == NULL ? ENOMEM : urn_cma_channel_own(to);
	if (err != 0)
		return urn_cma_result(err);
	pthread_mutex_lock(&urn_cma_lock);
	from = id->channel;
	was_sync = id->sync;
	move_events(id, to);
	LIST_FOREACH(request, &urn_cma_all, next)
		if (request->listener == id && !request->reported)
			move_events(request, to);
	id->sync = channel == NULL;
	/* The program has acknowledged what it fetched from the old channel, before it goes. */
	urn_cma_wait_acks(id);
	if (was_sync)
		urn_cma_channel_free(from);
	pthread_mutex_unlock(&urn_cma_lock);
	return 0;
}

int
urn_cma_complete(struct urn_cma_id *id)
{
	int status;

	if (!id->sync)
		return 0;
	if (id->pub.event != NULL) {
		rdma_ack_cm_event(id->pub.event);
		id->pub.event = NULL;
	}
	if (rdma_get_cm_event(id->pub.channel, &id->pub.event) != 0)
		return -1;
	status = id->pub.event->status;
	if (status == 0)
		return 0;
	if (id->pub.event->event == RDMA_CM_EVENT_REJECTED)
		return urn_cma_result(ECONNREFUSED);
	return urn_cma_result(status < 0 ? -status : status);
}

static const char *const event_names[] = {
	[RDMA_CM_EVENT_ADDR_RESOLVED] = "RDMA_CM_EVENT_ADDR_RESOLVED",
	[RDMA_CM_EVENT_ADDR_ERROR] = "RDMA_CM_EVENT_ADDR_ERROR",
	[RDMA_CM_EVENT_ROUTE_RESOLVED] = "RDMA_CM_EVENT_ROUTE_RESOLVED",
	[RDMA_CM_EVENT_ROUTE_ERROR] = "RDMA_CM_EVENT_ROUTE_ERROR",
	[RDMA_CM_EVENT_CONNECT_REQUEST] = "RDMA_CM_EVENT_CONNECT_REQUEST",
	[RDMA_CM_EVENT_CONNECT_RESPONSE] = "RDMA_CM_EVENT_CONNECT_RESPONSE",
	[RDMA_CM_EVENT_CONNECT_ERROR] = "RDMA_CM_EVENT_CONNECT_ERROR",
	[RDMA_CM_EVENT_UNREACHABLE] = "RDMA_CM_EVENT_UNREACHABLE",
	[RDMA_CM_EVENT_REJECTED] = "RDMA_CM_EVENT_REJECTED",
	[RDMA_CM_EVENT_ESTABLISHED] = "RDMA_CM_EVENT_ESTABLISHED",
	[RDMA_CM_EVENT_DISCONNECTED] = "RDMA_CM_EVENT_DISCONNECTED",
	[RDMA_CM_EVENT_DEVICE_REMOVAL] = "RDMA_CM_EVENT_DEVICE_REMOVAL",
	[RDMA_CM_EVENT_MULTICAST_JOIN] = "RDMA_CM_EVENT_MULTICAST_JOIN",
	[RDMA_CM_EVENT_MULTICAST_ERROR] = "RDMA_CM_EVENT_MULTICAST_ERROR",
	[RDMA_CM_EVENT_ADDR_CHANGE] = "RDMA_CM_EVENT_ADDR_CHANGE",
	[RDMA_CM_EVENT_TIMEWAIT_EXIT] = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
};

const char *
rdma_event_str(enum rdma_cm_event_type event)
{
	if ((unsigned int)event < sizeof(event_names) / sizeof(event_names[0]))
		return event_names[event];
	return "UNKNOWN EVENT";
}
