/* SPDX-License-Identifier: BSD-3-Clause */
#include "attach/dev.h"

#include "abi/clock.h"
#include "attach/alloc.h"

#include <urnic/attach.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static _Thread_local char urn_error_text[URN_ERROR_TEXT];

const char *
urn_attach_error(void)
{
	return urn_error_text;
}

int
urn_fail(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(urn_error_text, sizeof(urn_error_text), fmt, ap);
	va_end(ap);
	errno = err;
	return err;
}

/* Answer for a dataplane that is gone. */
static void
urn_dev_answer_gone(enum urn_dev_gone how, struct urn_abi_rep *rep)
{
	rep->err = ENODEV;
	snprintf(rep->why, sizeof(rep->why), "%s", how == URN_DEV_FORKED
		? "the device was opened before fork(), and is the parent's: open it in this process"
		: "the dataplane is gone: close the device, and open it anew");
}

/* True when no engine writes anything for this client any more. */
static bool
urn_dev_ended(const struct urn_dev *dev)
{
	for (uint32_t i = 0; i < dev->info.engines; i++) {
		const struct urn_abi_db *db = dev->db[i];

		/* An engine on which the client never had a queue pair does not answer. Acquire:
		 * pairs with the release in dataplane/engine/left.c. */
		if (db != NULL && atomic_load(&db->tops) != 0 &&
		    atomic_load_explicit(&db->ended, memory_order_acquire) == 0)
			return false;
	}
	return true;
}

/* Wait until a dataplane that was given up alive has ended this client's queue pairs. */
static void
urn_dev_await_end(struct urn_dev *dev)
{
	const struct timespec step = {.tv_nsec = 500000};
	uint64_t start = urn_clock_ms();

	while (!atomic_load(&dev->left) && !urn_dev_ended(dev) &&
	       urn_clock_ms() - start < URN_LEAVE_MS)
		(void)nanosleep(&step, NULL);
	atomic_store(&dev->left, true);
}

void
urn_dev_leave(struct urn_dev *dev)
{
	const struct urn_abi_channel *channel = dev->channel;

	for (uint32_t i = 0; i < dev->info.engines; i++)
		if (dev->db[i] != NULL && atomic_exchange(&dev->db[i]->left, 1) == 0)
			urn_dev_ring(dev, i, 0); /* an engine that runs on looks now */
	if (channel->given_up != NULL && channel->given_up(channel->ctx))
		urn_dev_await_end(dev);
}

/* Set the error text of a call that failed. returns: the errno value */
static int
urn_dev_failed(struct urn_dev *dev, struct urn_abi_rep *rep)
{
	if (rep->err == ENODEV && dev->channel->watch != NULL)
		urn_dev_leave(dev);
	/* A dataplane in another process died: for the program that is the same as a broken device. */
	int err = rep->err == ENODEV && dev->channel->watch != NULL ? EIO : rep->err;

	rep->why[sizeof(rep->why) - 1] = '\0';
	return urn_fail(err, "%s", rep->why[0] ? rep->why : strerror(err));
}

int
urn_dev_need(const struct urn_dev *dev, uint32_t feature)
{
	uint32_t lacks = feature & ~dev->info.features;

	return lacks == 0 ? 0
			  : urn_fail(EOPNOTSUPP, "the dataplane lacks %s: upgrade the dataplane",
				     urn_abi_feature_text(lacks));
}

int
urn_dev_call(struct urn_dev *dev, const struct urn_abi_req *req, struct urn_abi_rep *rep)
{
	enum urn_dev_gone gone = urn_dev_gone(dev);

	memset(rep, 0, sizeof(*rep));
	rep->err = urn_dev_need(dev, urn_ctl_feature(req->op));
	if (rep->err != 0) {
		snprintf(rep->why, sizeof(rep->why), "%.*s", (int)sizeof(rep->why) - 1, urn_error_text);
		return rep->err;
	}
	if (gone == URN_DEV_THERE)
		dev->channel->call(dev->channel->ctx, req, rep);
	else
		urn_dev_answer_gone(gone, rep);
	return rep->err == 0 ? 0 : urn_dev_failed(dev, rep);
}

int
urn_dev_cm_events(struct urn_dev *dev, struct urn_abi_cm_event *ev, uint32_t max, uint32_t *n)
{
	enum urn_dev_gone gone = urn_dev_gone(dev);
	struct urn_abi_rep rep = {0};

	*n = 0;
	if (gone == URN_DEV_THERE)
		rep.err = dev->channel->cm_events(dev->channel->ctx, ev, max, n, &rep);
	else
		urn_dev_answer_gone(gone, &rep);
	return rep.err == 0 ? 0 : urn_dev_failed(dev, &rep);
}

int
urn_dev_call_handle(struct urn_dev *dev, enum urn_ctl_op op, uint32_t handle)
{
	struct urn_abi_req req = {.op = op, .handle = handle};
	struct urn_abi_rep rep;
	int err = urn_dev_call(dev, &req, &rep);

	/* The object went with its dataplane. */
	return rep.err == ENODEV ? 0 : err;
}

int
urn_dev_share(struct urn_dev *dev, const void *addr, size_t length)
{
	struct urn_abi_rep rep = {0};
	struct urn_segment seg;
	int err;

	if (dev->channel->share == NULL || !urn_dev_has(dev, URN_ABI_FEATURE_SHARE))
		return 0;
	if (urn_dev_gone(dev) != URN_DEV_THERE)
		return 0; /* the control call that follows fails and tells */
	err = length != 0 && urn_segment_find(addr, length, &seg) ? urn_populate(addr, length) : 0;
	if (err != 0)
		return urn_fail(err, "no memory for the %zu bytes at %p: %s", length, addr,
				strerror(err));
	rep.err = dev->channel->share(dev->channel->ctx, addr, length, &rep);
	return rep.err == 0 ? 0 : urn_dev_failed(dev, &rep);
}

int
urn_dev_agree(const struct urn_abi_offer *dataplane, struct urn_abi_agreed *agreed)
{
	const struct urn_abi_offer own = URN_ABI_OFFER;
	struct urn_abi_agreed outcome;
	char why[128];

	if (urn_abi_agree(&own, dataplane, &outcome, why, sizeof(why)) != 0)
		return urn_fail(EPROTO, "%s", why);
	if (agreed != NULL)
		*agreed = outcome;
	return 0;
}

/* Check those fields of the dataplane's answer to HELLO that the library builds on. */
static int
urn_dev_check(struct urn_dev *dev)
{
	struct urn_abi_device *info = &dev->info;
	struct urn_abi_agreed agreed = {0};
	int err = urn_dev_agree(&(struct urn_abi_offer){.oldest = info->version,
							.newest = info->version,
							.features = info->features},
				&agreed);

	if (err != 0)
		return err;
	info->features = agreed.features;
	if (info->engines == 0 || info->engines > URN_ABI_MAX_ENGINES)
		return urn_fail(EPROTO, "the dataplane says it has %u engines; 1 to %u make sense",
			info->engines, (unsigned int)URN_ABI_MAX_ENGINES);
	if (dev->area == NULL)
		return urn_fail(EPROTO, "the channel has no area for queues");
	return 0;
}

int
urn_dev_open(struct urn_dev *dev, struct urn_abi_channel *channel)
{
	const struct urn_abi_offer own = URN_ABI_OFFER;
	struct urn_abi_req req = {
		.op = URN_CTL_HELLO,
		.hello = {.oldest = own.oldest,
			  .newest = own.newest,
			  .area = (uintptr_t)channel->area,
			  .features = own.features},
	};
	struct urn_abi_rep rep;
	uint32_t i;
	int err;

	memset(dev, 0, sizeof(*dev));
	dev->channel = channel;
	dev->area = channel->area;
	err = urn_dev_call(dev, &req, &rep);
	if (err == 0) {
		dev->info = rep.device;
		dev->info.name[sizeof(dev->info.name) - 1] = '\0';
		dev->info.fw_ver[sizeof(dev->info.fw_ver) - 1] = '\0';
		err = urn_dev_check(dev);
	}
	if (err != 0) {
		urn_dev_close(dev);
		errno = err;
		return err;
	}
	for (i = 0; i < dev->info.engines; i++)
		dev->db[i] = urn_dev_at(dev, dev->info.db_off[i]);
	return 0;
}

void
urn_dev_close(struct urn_dev *dev)
{
	/* The thread that watches the dataplane uses the channel until this has ended it. */
	if (dev->channel != NULL)
		dev->channel->close(dev->channel->ctx);
	dev->channel = NULL;
}
