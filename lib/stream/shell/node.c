/* SPDX-License-Identifier: BSD-3-Clause */
/* The part that the streams of a device share, and the options of streams. */
#include "stream/shell/shell.h"

#include "attach/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	BUFFERS = 16,
	BUFFERS_MAX = 4096,
	SIZE = 8192,
	SIZE_MIN = 256,
	SIZE_MAX_ = 1 << 20,
	PATIENCE_MS = 10,
	LINGER_MS = 10000,
	READS = 16, /* reads of a queue pair, at most */
};

static const uint64_t zero_copy_from = 256 << 10; /* bytes */

static bool
is_between(uint64_t value, uint64_t least, uint64_t most)
{
	return value >= least && value <= most;
}

int
urn_sh_options(struct urn_stream_options *to, const struct urn_stream_options *from)
{
	*to = from ? *from : (struct urn_stream_options){0};
	to->buffers = to->buffers ? to->buffers : BUFFERS;
	to->size = to->size ? to->size : SIZE;
	to->zero_copy = to->zero_copy ? to->zero_copy : zero_copy_from;
	to->patience_ms = to->patience_ms ? to->patience_ms : PATIENCE_MS;
	to->linger_ms = to->linger_ms ? to->linger_ms : LINGER_MS;
	if (!is_between(to->buffers, 2, BUFFERS_MAX))
		return urn_fail(EINVAL, "a stream has 2 to %d buffers, not %u", BUFFERS_MAX,
				to->buffers);
	if (!is_between(to->size, SIZE_MIN, SIZE_MAX_))
		return urn_fail(EINVAL, "buffers of a stream have %d to %d bytes, not %u", SIZE_MIN,
				SIZE_MAX_, to->size);
	if (to->zero_copy != URN_STREAM_NEVER &&
	    !is_between(to->zero_copy, URN_SH_FLOOR, URN_SH_CEILING))
		return urn_fail(EINVAL,
				"transfers without a copy begin at %d to %d bytes, not %llu",
				URN_SH_FLOOR, URN_SH_CEILING, (unsigned long long)to->zero_copy);
	if (to->transfer >= URN_STREAM_TRANSFERS || to->frozen > 1)
		return urn_fail(EINVAL, "no such kind of transfer, or `frozen` is not 0 or 1");
	if (to->linger_ms > INT32_MAX)
		return urn_fail(EINVAL, "linger_ms is longer than 24 days");
	return 0;
}

static uint16_t
line_of_machine(void)
{
	long n = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);

	return n == 64 || n == 128 || n == 256 ? (uint16_t)n : 0;
}

/* Learn what the device can. returns: 0 or an errno value */
static int
learn(struct urn_stream_node *n)
{
	struct ibv_device_attr dev;
	int err = ibv_query_device(n->ctx, &dev);

	if (!err)
		err = ibv_query_port(n->ctx, URN_SH_PORT, &n->port);
	if (err)
		return err;
	n->rd_atomic = READS;
	if (dev.max_qp_rd_atom < READS)
		n->rd_atomic = (uint8_t)(dev.max_qp_rd_atom > 0 ? dev.max_qp_rd_atom : 1);
	if (dev.max_qp_init_rd_atom < n->rd_atomic)
		n->rd_atomic = (uint8_t)(dev.max_qp_init_rd_atom > 0 ? dev.max_qp_init_rd_atom : 1);
	n->line = line_of_machine();
	return 0;
}

int
urn_stream_node_open(struct urn_stream_node **out, struct ibv_context *ctx)
{
	struct urn_stream_node *n = calloc(1, sizeof(*n));
	int err = ENOMEM;

	*out = NULL;
	if (!n)
		return urn_fail(ENOMEM, "no memory for streams");
	n->ctx = ctx;
	TAILQ_INIT(&n->streams);
	TAILQ_INIT(&n->listeners);
	TAILQ_INIT(&n->memory);
	pthread_mutex_init(&n->lock, NULL);
	n->pd = ibv_alloc_pd(ctx);
	err = n->pd ? learn(n) : errno;
	if (!err)
		err = urn_cm_end_open(&n->cm, ctx);
	if (!err) {
		*out = n;
		return 0;
	}
	if (n->pd)
		(void)ibv_dealloc_pd(n->pd);
	pthread_mutex_destroy(&n->lock);
	free(n);
	errno = err;
	return err;
}

int
urn_stream_node_close(struct urn_stream_node *n)
{
	bool busy;

	if (!n)
		return 0;
	pthread_mutex_lock(&n->lock);
	busy = !TAILQ_EMPTY(&n->streams) || !TAILQ_EMPTY(&n->listeners) || !TAILQ_EMPTY(&n->memory);
	pthread_mutex_unlock(&n->lock);
	if (busy)
		return urn_fail(EBUSY, "streams, listeners or memory of the node are left");
	urn_cm_end_close(n->cm);
	(void)ibv_dealloc_pd(n->pd);
	pthread_mutex_destroy(&n->lock);
	free(n);
	return 0;
}
