/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One adapter, for messages: control calls that processes related by fork() may share.
 *
 * No thread watches the dataplane. The death shows at the channels of sets: these hang up because
 * the library keeps no end of theirs to write to, and at control calls.
 */
#ifndef URN_MSG_DEV_H
#define URN_MSG_DEV_H

#include "attach/dev.h"
#include "attach/share/share.h"

#include <urnic/msg.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Entries of the table of addresses that are kept. */
enum { URN_MSG_GIDS = 8 };

/* In memory that children of fork() share with the parent. */
struct urn_msg_calls {
	pthread_mutex_t
		lock; /* one control call at a time over a connection; robust, between processes */
	_Atomic uint32_t
		broken; /* 1: an answer was not waited for, so the connection is good for nothing */
};

struct urn_msg_dev {
	struct urn_dev dev;
	struct urn_msg_calls *calls;	/* mapped; used for a dataplane in another process only */
	uint32_t gids;			/* entries of gid */
	uint8_t gid[URN_MSG_GIDS][16];	/* the adapter's addresses, as they were at its opening */
	struct urn_msg_dev *next, **at; /* in the list of open devices */
};

/* Make a mutex in shared memory, which survives the death of a holder. */
void urn_msg_mutex_init(pthread_mutex_t *m);
/* Take such a mutex. returns: true when its last holder died with it */
bool urn_msg_mutex_take(pthread_mutex_t *m);
/* Try to take such a mutex. returns: true: taken */
bool urn_msg_mutex_try(pthread_mutex_t *m);

/* Register the handlers of fork(), once; those that are registered later take their locks earlier.
 */
void urn_msg_dev_forks(void);
/* A control call, like urn_dev_call(), serialised between processes. */
int urn_msg_dev_call(struct urn_msg_dev *dev, const struct urn_abi_req *req,
		     struct urn_abi_rep *rep);
/* Let the dataplane reach memory, like urn_dev_share(), serialised likewise. returns: 0, or an
 * errno value */
int urn_msg_dev_share(struct urn_msg_dev *dev, const void *addr, size_t len);
/*
 * Memory is about to be registered with a dataplane in another process, which does not map it yet:
 * move its pages to memory that the dataplane maps, if that can be (attach/share).
 *
 * hold: as for urn_share_take() and urn_share_drop()
 * returns: the memory's address for the dataplane
 */
uintptr_t urn_msg_dev_move(struct urn_msg_dev *dev, const void *addr, size_t len,
			   struct urn_share_hold *hold);
/*
 * Make a channel for events. *fd: its end to read from, which does not block; *write_fd: the other
 * end, or -1 when the dataplane alone has it; *handle: the dataplane's name. returns: 0, or an
 * errno value
 */
int urn_msg_channel_open(struct urn_msg_dev *dev, int *fd, int *write_fd, int32_t *handle);
void urn_msg_channel_close(struct urn_msg_dev *dev, int fd, int write_fd, int32_t handle);

/* True when the dataplane is in another process. */
static inline bool
urn_msg_remote(const struct urn_msg_dev *dev)
{
	return dev->dev.channel->pipe != NULL;
}

/* Note that the dataplane is gone: memory of urn_alloc() from here on is not memory that it had. */
void urn_msg_dev_gone(struct urn_msg_dev *dev);

#endif
