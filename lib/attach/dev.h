/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library's end of one channel: control calls, the client's area, the
 * doorbells. Everything above (lib/verbs) reaches the dataplane through here.
 *
 * No lock of the library is held across a control call: in an embedded program
 * the thread that polls the engine may be waiting for that very lock, while the
 * call waits for its next poll.
 */
#ifndef URN_ATTACH_DEV_H
#define URN_ATTACH_DEV_H

#include "abi/agree.h"
#include "abi/control.h"
#include "abi/doorbell.h"
#include "abi/queue.h"
#include "attach/fail.h"

#include <errno.h>
#include <stdbool.h>

/* The reason why there is no dataplane any more. */
enum urn_dev_gone {
	URN_DEV_THERE,
	URN_DEV_DIED,    /* the dataplane's process is gone */
	URN_DEV_FORKED,  /* this process is a child that fork() made: the dataplane is the parent's */
};

struct urn_dev {
	struct urn_abi_channel *channel;  /* owned until urn_dev_close() */
	uint8_t *area;                    /* the client's area, mapped in this process */
	struct urn_abi_db *db[URN_ABI_MAX_ENGINES]; /* in the area; [0, info.engines) */
	struct urn_abi_device info; /* answer to URN_CTL_HELLO; .features: also when it told none */
	_Atomic uint32_t gone;            /* enum urn_dev_gone; set once */
	_Atomic bool left; /* urn_dev_leave() has returned once: nothing is waited for any more */
	/* Control calls over a channel that other processes use as well, one at a time (lib/msg);
	 * set after opening. NULL: urn_dev_call() does */
	int (*call)(struct urn_dev *dev, const struct urn_abi_req *req, struct urn_abi_rep *rep);
};

/*
 * Say hello and find the doorbells. Takes the channel over, also when it fails.
 * returns: 0, or an errno value
 */
int urn_dev_open(struct urn_dev *dev, struct urn_abi_channel *channel);

/*
 * Check the version that the dataplane says is agreed on, and the features.
 *
 * dataplane: its answer, as an offer of that version alone
 * agreed: the outcome; NULL: not wanted
 * returns: 0; EPROTO with its text: this library does not speak that version
 */
int urn_dev_agree(const struct urn_abi_offer *dataplane, struct urn_abi_agreed *agreed);

/* Give the channel back, and with it everything made over it. */
void urn_dev_close(struct urn_dev *dev);

/*
 * One control call. rep is filled in on success and on failure.
 * returns: 0, or an errno value, which errno holds too; EOPNOTSUPP: the dataplane lacks the
 * feature that the call belongs to, and was not asked; EIO: the dataplane of another
 * process is gone, and will not come back for this device
 */
int urn_dev_call(struct urn_dev *dev, const struct urn_abi_req *req, struct urn_abi_rep *rep);

/* A control call that takes one object back and answers nothing but success. */
int urn_dev_call_handle(struct urn_dev *dev, enum urn_ctl_op op, uint32_t handle);

/*
 * Fetch up to max events of connection management; only with urn_dev_has_cm_events().
 * returns: 0, *n: how many, or an errno value like urn_dev_call()
 */
int urn_dev_cm_events(struct urn_dev *dev, struct urn_abi_cm_event *ev, uint32_t max, uint32_t *n);

/* Time, ms, that urn_dev_leave() waits for at most. An engine that has not answered then is in the
 * middle of a turn, or stood still for so long that it looks itself (dataplane/engine/left.c). */
enum { URN_LEAVE_MS = 50 };

/*
 * Tell a dataplane that is gone, and may live all the same, to write nothing more into the
 * program's memory (urn_abi_db.left): before the program learns that the dataplane is gone. If the
 * dataplane was given up alive, wait until its engines have answered that they write nothing, for
 * URN_LEAVE_MS at most.
 */
void urn_dev_leave(struct urn_dev *dev);

/*
 * Let a dataplane in another process reach this memory; one that can't share memory
 * reaches the region as foreign memory. returns: 0, or an errno value
 */
int urn_dev_share(struct urn_dev *dev, const void *addr, size_t length);

static inline enum urn_dev_gone
urn_dev_gone(const struct urn_dev *dev)
{
	return (enum urn_dev_gone)atomic_load_explicit(&dev->gone, memory_order_acquire);
}

/*
 * Check that library and dataplane agreed on a feature; 0: nothing is needed.
 * returns: 0; EOPNOTSUPP with its text
 */
int urn_dev_need(const struct urn_dev *dev, uint32_t feature);

/* True when library and dataplane agreed on the feature. */
static inline bool
urn_dev_has(const struct urn_dev *dev, enum urn_abi_feature bit)
{
	return (dev->info.features & bit) != 0;
}

/* True when events of connection management are fetched several at a time, by urn_dev_cm_events().
 */
static inline bool
urn_dev_has_cm_events(const struct urn_dev *dev)
{
	return dev->channel->cm_events != NULL && urn_dev_has(dev, URN_ABI_FEATURE_CM_EVENTS);
}

/* The errno value of posting to a queue that takes nothing: its QP is in the wrong state, or the dataplane is gone. */
static inline int
urn_dev_refusal(const struct urn_dev *dev)
{
	return urn_dev_gone(dev) != URN_DEV_THERE ? EIO : EINVAL;
}

/* The address `off` bytes into the client's area. */
static inline void *
urn_dev_at(const struct urn_dev *dev, uint64_t off)
{
	return dev->area + off;
}

/*
 * Ring doorbell `id` of an engine, and wake the engine if it sleeps: the only
 * place of the post path that may make a system call.
 */
static inline void
urn_dev_ring(const struct urn_dev *dev, uint32_t engine, uint32_t id)
{
	if (__builtin_expect(urn_abi_db_ring(dev->db[engine], id), 0))
		dev->channel->wake(dev->channel->ctx, engine);
}

#endif
