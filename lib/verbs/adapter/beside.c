/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbs/adapter/beside.h"

#include "verbs/adapter/poll.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/*
 * Copy as the worker does, into pages that the program has protected against its own writing:
 * private ones take the bytes. returns: false when there is no such page
 */
static bool
urn_beside_force(const struct urn_abi_beside *b)
{
	int fd = open("/proc/self/mem", O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && pwrite(fd, b->data, b->length, (off_t)b->addr) == (ssize_t)b->length;

	if (fd >= 0)
		close(fd);
	return done;
}

/* preadv(), which is no point at which a thread ends that was cancelled: locks are held here. */
static ssize_t
urn_beside_preadv(int fd, const struct iovec *to, int n, off_t at)
{
	return syscall(SYS_preadv, fd, to, n, (long)at, 0L);
}

/*
 * Read the message from the file of the client's area into the program's memory: half the work of
 * process_vm_writev() for the kernel. A program may have closed the library's descriptor
 * and opened another file at its number. So the head in front of the message is read along, and
 * bytes behind another head are not believed, and that file is not read again. returns: false when
 * the message was not read
 */
static bool
urn_beside_read(struct urn_adapter_cq *cq, const struct urn_abi_beside *b)
{
	const struct urn_dev *dev = urn_ctx_dev(cq->ibv.context);
	const struct urn_abi_channel *channel = dev->channel;
	uint8_t head[offsetof(struct urn_abi_beside, data)];
	struct iovec to[] = {
		{head, sizeof(head)},
		{(void *)(uintptr_t)b->addr, b->length}, // NOLINT(performance-no-int-to-ptr)
	};
	ssize_t all = (ssize_t)(sizeof(head) + b->length), got;

	/* Without its dataplane the area may be a copy (urn_still()). */
	if (channel->proof == NULL || cq->beside_foreign || urn_dev_gone(dev) != URN_DEV_THERE)
		return false;
	got = urn_beside_preadv(channel->proof(channel->ctx), to, 2,
				(const uint8_t *)b - dev->area);
	/* The program's memory may be gone: the other way tells. */
	if (got < 0 && errno == EFAULT)
		return false;
	cq->beside_foreign = got < (ssize_t)sizeof(head) || memcmp(head, b, sizeof(head)) != 0;
	return got == all && !cq->beside_foreign;
}

/*
 * The kernel copies, slower than the library itself would: a program may have unmapped
 * memory that is registered, which is an error of the request and no fault of the program.
 */
static bool
urn_beside_write(struct urn_adapter_cq *cq, const struct urn_abi_beside *b)
{
	/* clang-format off */
	struct iovec from = {(void *)(uintptr_t)b->data, b->length}; // NOLINT(performance-no-int-to-ptr)
	struct iovec to = {(void *)(uintptr_t)b->addr, b->length};   // NOLINT(performance-no-int-to-ptr)
	/* clang-format on */

	if (b->length > sizeof(b->data))
		return false;
	return URN_LIKELY(urn_beside_read(cq, b)) ||
	       process_vm_writev(urn_ctx(cq->ibv.context)->pid, &from, 1, &to, 1, 0) ==
		       (ssize_t)b->length ||
	       urn_beside_force(b);
}

void
urn_beside_copy(struct urn_adapter_cq *cq, uint32_t i)
{
	struct urn_abi_cqe *cqe = &cq->cqe[i & cq->mask];

	cqe->wc_flags &= (uint8_t)~URN_WCF_BESIDE;
	if (cq->beside == NULL || urn_beside_write(cq, &cq->beside[i & cq->mask]))
		return;
	cqe->status = URN_WC_LOC_PROT_ERR;
	cqe->vendor_err = URN_VE_MEMORY;
	cqe->byte_len = 0;
}

/* Copy all that waits in a queue. returns: false while the queue is being resized */
static bool
urn_beside_settle_cq(struct urn_adapter_cq *cq)
{
	bool there;
	uint32_t i, n;

	urn_beside_lock(cq);
	there = !cq->resizing;
	i = atomic_load_explicit(&cq->hdr->cons, memory_order_relaxed);
	for (n = 0; there && n < cq->entries && urn_cq_at(cq, i) != NULL; n++)
		urn_beside_take(cq, i++);
	urn_beside_unlock(cq);
	return there;
}

/* Copy all that waits in the queues of a context. returns: false when a queue was being resized */
static bool
urn_beside_settle_all(struct urn_ctx *ctx)
{
	bool all = true;

	pthread_mutex_lock(&ctx->objs.lock);
	for (uint32_t i = 0; i < ctx->objs.slots; i++) {
		struct urn_adapter_cq *cq = ctx->objs.slot[i].obj;

		if (ctx->objs.slot[i].kind == URN_OBJ_CQ && cq->beside != NULL)
			all = urn_beside_settle_cq(cq) && all;
	}
	pthread_mutex_unlock(&ctx->objs.lock);
	return all;
}

void
urn_beside_settle(struct urn_ctx *ctx)
{
	if (!atomic_load_explicit(&ctx->has_beside, memory_order_relaxed))
		return;
	while (!urn_beside_settle_all(ctx))
		sched_yield(); /* another thread resizes a queue, and waits for nobody */
}
