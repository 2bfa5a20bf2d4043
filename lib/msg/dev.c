/* SPDX-License-Identifier: BSD-3-Clause */
#include "msg/dev.h"

#include "attach/alloc.h"
#include "attach/pipe.h"
#include "attach/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Taken before all other locks here, by fork() and by those who take the lock of segments
 * (attach/alloc.c) behind one of calls. fork() takes the two in either order.
 */
static pthread_mutex_t urn_msg_gate = PTHREAD_MUTEX_INITIALIZER;
/* urn_msg_list_lock protects the list of open devices. */
static pthread_mutex_t urn_msg_list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct urn_msg_dev *urn_msg_list; /* under urn_msg_list_lock */
static pthread_once_t urn_msg_once = PTHREAD_ONCE_INIT;
static bool urn_msg_last; /* fork() takes the locks of calls last (attach/share); under
			     urn_msg_list_lock */

/* ---- locks between processes */

void
urn_msg_mutex_init(pthread_mutex_t *m)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(m, &attr);
	pthread_mutexattr_destroy(&attr);
}

bool
urn_msg_mutex_take(pthread_mutex_t *m)
{
	bool died = pthread_mutex_lock(m) == EOWNERDEAD;

	if (died)
		pthread_mutex_consistent(m);
	return died;
}

bool
urn_msg_mutex_try(pthread_mutex_t *m)
{
	int err = pthread_mutex_trylock(m);

	if (err == EOWNERDEAD)
		pthread_mutex_consistent(m);
	return err == 0 || err == EOWNERDEAD;
}

/* ---- fork(): no control call is under way while a child is made */

static void
urn_msg_hold_calls(void)
{
	struct urn_msg_dev *d;

	for (d = urn_msg_list; d != NULL; d = d->next)
		if (urn_msg_mutex_take(&d->calls->lock))
			atomic_store(&d->calls->broken, 1);
}

static void
urn_msg_free_calls(void)
{
	struct urn_msg_dev *d;

	for (d = urn_msg_list; d != NULL; d = d->next)
		pthread_mutex_unlock(&d->calls->lock);
}

static void
urn_msg_fork_hold(void)
{
	pthread_mutex_lock(&urn_msg_gate);
	pthread_mutex_lock(&urn_msg_list_lock);
	if (!urn_msg_last)
		urn_msg_hold_calls();
}

static void
urn_msg_fork_parent(void)
{
	if (!urn_msg_last)
		urn_msg_free_calls();
	pthread_mutex_unlock(&urn_msg_list_lock);
	pthread_mutex_unlock(&urn_msg_gate);
}

/* The locks of calls are the parent's to give back: they are in shared memory. */
static void
urn_msg_fork_child(void)
{
	pthread_mutex_init(&urn_msg_list_lock, NULL);
	pthread_mutex_init(&urn_msg_gate, NULL);
}

static void
urn_msg_fork_register(void)
{
	urn_alloc_forks(); /* its lock is taken behind the gate */
	(void)pthread_atfork(urn_msg_fork_hold, urn_msg_fork_parent, urn_msg_fork_child);
}

void
urn_msg_dev_forks(void)
{
	(void)pthread_once(&urn_msg_once, urn_msg_fork_register);
}

/* ---- calls */

void
urn_msg_dev_gone(struct urn_msg_dev *dev)
{
	const struct urn_abi_channel *ch = dev->dev.channel;
	uint32_t there = URN_DEV_THERE;

	if (atomic_compare_exchange_strong(&dev->dev.gone, &there, URN_DEV_DIED) &&
	    ch->gone != NULL)
		ch->gone(ch->ctx);
}

int
urn_msg_dev_call(struct urn_msg_dev *dev, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	bool was, died;
	int err;

	/* No lock over a call to an embedded dataplane (attach/dev.h), which takes calls of any
	 * thread. */
	if (!urn_msg_remote(dev))
		return urn_dev_call(&dev->dev, req, rep);
	if (urn_msg_mutex_take(&dev->calls->lock))
		atomic_store(&dev->calls->broken, 1);
	was = atomic_load(&dev->calls->broken);
	err = was ? EIO : urn_dev_call(&dev->dev, req, rep);
	died = err == ETIMEDOUT || err == EIO;
	if (died)
		atomic_store(&dev->calls->broken, 1);
	pthread_mutex_unlock(&dev->calls->lock);
	if (died)
		urn_msg_dev_gone(dev); /* takes the lock of segments, behind none of calls */
	return was ? urn_dev_call(&dev->dev, req, rep) : err; /* the former: only the answer */
}

/*
 * A call for those who move pages (urn_dev.call): they have a lock that others take behind the one
 * of this program's segments, so a death is noted only, and the next call of another one tells it.
 */
static int
urn_msg_dev_call_of(struct urn_dev *d, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	struct urn_msg_dev *dev =
		(struct urn_msg_dev *)(void *)((char *)d - offsetof(struct urn_msg_dev, dev));
	int err = EIO;

	*rep = (struct urn_abi_rep){.err = EIO};
	if (urn_msg_mutex_take(&dev->calls->lock))
		atomic_store(&dev->calls->broken, 1);
	if (!atomic_load(&dev->calls->broken))
		err = urn_dev_call(d, req, rep);
	if (err == ETIMEDOUT || err == EIO)
		atomic_store(&dev->calls->broken, 1);
	pthread_mutex_unlock(&dev->calls->lock);
	return err;
}

uintptr_t
urn_msg_dev_move(struct urn_msg_dev *dev, const void *addr, size_t len, struct urn_share_hold *hold)
{
	/* Under this lock no fork() has begun. */
	pthread_mutex_lock(&urn_msg_list_lock);
	if (!urn_msg_last)
		urn_msg_last = urn_share_fork_last(urn_msg_hold_calls, urn_msg_free_calls);
	pthread_mutex_unlock(&urn_msg_list_lock);
	return urn_share_take(&dev->dev, addr, len, hold);
}

int
urn_msg_dev_share(struct urn_msg_dev *dev, const void *addr, size_t len)
{
	int err;

	if (!urn_msg_remote(dev))
		return urn_dev_share(&dev->dev, addr, len);
	pthread_mutex_lock(&urn_msg_gate);
	if (urn_msg_mutex_take(&dev->calls->lock))
		atomic_store(&dev->calls->broken, 1);
	err = atomic_load(&dev->calls->broken)
		      ? urn_fail(EIO, "the dataplane is gone: close the device, and open it anew")
		      : urn_dev_share(&dev->dev, addr, len);
	pthread_mutex_unlock(&dev->calls->lock);
	pthread_mutex_unlock(&urn_msg_gate);
	return err;
}

/* Under the lock of calls, if the dataplane is in another process. */
static int
urn_msg_pipe(struct urn_msg_dev *dev, int *fd, int *write_fd, int32_t *handle)
{
	int err;

	if (!urn_msg_remote(dev))
		return urn_pipe_make(&dev->dev, URN_CTL_CREATE_CHANNEL, fd, write_fd, handle);
	if (urn_msg_mutex_take(&dev->calls->lock))
		atomic_store(&dev->calls->broken, 1);
	err = atomic_load(&dev->calls->broken)
		      ? urn_fail(EIO, "the dataplane is gone: close the device, and open it anew")
		      : urn_pipe_make(&dev->dev, URN_CTL_CREATE_CHANNEL, fd, write_fd, handle);
	pthread_mutex_unlock(&dev->calls->lock);
	return err;
}

int
urn_msg_channel_open(struct urn_msg_dev *dev, int *fd, int *write_fd, int32_t *handle)
{
	int err = urn_msg_pipe(dev, fd, write_fd, handle);

	if (err != 0)
		return err;
	(void)fcntl(*fd, F_SETFL, fcntl(*fd, F_GETFL) | O_NONBLOCK);
	if (urn_msg_remote(dev)) {
		close(*write_fd);
		*write_fd = -1;
	}
	return 0;
}

void
urn_msg_channel_close(struct urn_msg_dev *dev, int fd, int write_fd, int32_t handle)
{
	struct urn_abi_req req = {.op = URN_CTL_DESTROY_CHANNEL, .handle = (uint32_t)handle};
	struct urn_abi_rep rep;

	if (urn_msg_remote(dev))
		(void)urn_msg_dev_call(dev, &req, &rep);
	if (fd >= 0)
		close(fd);
	if (write_fd >= 0)
		close(write_fd);
}

/* ---- opening */

static void
urn_msg_read_gids(struct urn_msg_dev *dev)
{
	uint32_t i, n = dev->dev.info.gids < URN_MSG_GIDS ? dev->dev.info.gids : URN_MSG_GIDS;

	for (i = 0; i < n; i++) {
		struct urn_abi_req req = {.op = URN_CTL_QUERY_GID, .gid.index = i};
		struct urn_abi_rep rep;

		if (urn_msg_dev_call(dev, &req, &rep) == 0)
			memcpy(dev->gid[i], rep.gid.gid, sizeof(dev->gid[i]));
	}
	dev->gids = n;
}

static void
urn_msg_enlist(struct urn_msg_dev *dev)
{
	urn_msg_dev_forks();
	pthread_mutex_lock(&urn_msg_list_lock);
	dev->next = urn_msg_list;
	dev->at = &urn_msg_list;
	if (dev->next != NULL)
		dev->next->at = &dev->next;
	urn_msg_list = dev;
	pthread_mutex_unlock(&urn_msg_list_lock);
}

struct urn_msg_dev *
urn_msg_dev_open(struct urn_abi_channel *channel)
{
	struct urn_msg_dev *dev = calloc(1, sizeof(*dev));
	void *calls = mmap(NULL, sizeof(*dev->calls), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (dev == NULL || calls == MAP_FAILED) {
		channel->close(channel->ctx);
		urn_fail(ENOMEM, "no memory for a device");
		goto err;
	}
	if (urn_dev_open(&dev->dev, channel) != 0)
		goto err;
	if (urn_dev_need(&dev->dev, URN_ABI_FEATURE_MSG) != 0) {
		urn_dev_close(&dev->dev);
		errno = EOPNOTSUPP;
		goto err;
	}
	dev->calls = calls;
	dev->dev.call = urn_msg_dev_call_of;
	urn_msg_mutex_init(&dev->calls->lock);
	urn_msg_read_gids(dev);
	urn_msg_enlist(dev);
	return dev;
err:
	if (calls != MAP_FAILED)
		munmap(calls, sizeof(*dev->calls));
	free(dev);
	return NULL;
}

struct urn_msg_dev *
urn_msg_dev_connect(const char *path, const char *node)
{
	struct urn_abi_channel *channel = urn_remote_attach(path, node);

	return channel != NULL ? urn_msg_dev_open(channel) : NULL;
}

void
urn_msg_dev_close(struct urn_msg_dev *dev)
{
	if (dev == NULL)
		return;
	pthread_mutex_lock(&urn_msg_list_lock);
	*dev->at = dev->next;
	if (dev->next != NULL)
		dev->next->at = dev->at;
	pthread_mutex_unlock(&urn_msg_list_lock);
	urn_share_leave(&dev->dev); /* first: others' calls would use the channel (urn_dev.call) */
	urn_dev_close(&dev->dev);
	munmap(dev->calls, sizeof(*dev->calls));
	free(dev);
}

int
urn_msg_dev_gid(struct urn_msg_dev *dev, uint32_t index, uint8_t gid[16])
{
	if (index >= dev->gids)
		return EINVAL;
	memcpy(gid, dev->gid[index], 16);
	return 0;
}
