/* SPDX-License-Identifier: BSD-3-Clause */
/* The number of slots in each side's memory, and the memory itself. */
#include "perf.h"

#include <urnic/attach.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* From this message size on, in bytes, the check gets no additional slots. */
#define HUGE_MESSAGE (16ull << 20)
#define HUGE_PAGE (2ull << 20)
/* Sends of a ping-pong; each fourth part ends with a signalled one. */
#define PINGPONG_SLOTS 32u
/* Receives of a shared queue: many times the arrivals of one engine turn. */
#define SRQ_MIN 1024u
#define SRQ_MAX 8192u
/* Receives of datagrams over all QPs, and their bytes: a sender does not wait for a late receiver. */
#define UD_RECEIVES 8192u
#define UD_BYTES (16ull << 20)

static uint32_t
pow2_ceil(uint32_t v)
{
	return v <= 1 ? 1 : 1u << (32 - __builtin_clz(v - 1));
}

/* Number of receives that are taken before their slots are posted again, together. */
static uint32_t
receive_batch(uint32_t slots)
{
	uint32_t n = slots / 4;

	return n < 1 ? 1 : n > 16 ? 16 : n;
}

/*
 * A receiver posts again in batches, so it needs a batch more than the
 * requester has in flight, or the last message would find no receive.
 */
static void
layout_receives(struct layout *l, bool use_srq)
{
	uint64_t all = (uint64_t)l->qps * l->src_slots, room = UD_BYTES / l->stride;

	l->rx_batch = receive_batch(l->src_slots);
	l->dst_slots = l->rx_slots = l->src_slots + l->rx_batch;
	/* A WRITE does not wait for a receive, its SEND does: one message more is there already. */
	if (l->tells)
		l->dst_slots += 2;
	if (room > UD_RECEIVES)
		room = UD_RECEIVES;
	if (l->grh != 0 && l->dst_slots < room / l->qps)
		l->dst_slots = l->rx_slots = (uint32_t)(room / l->qps);
	if (!use_srq)
		return;
	all = all < SRQ_MIN ? SRQ_MIN : all > SRQ_MAX ? SRQ_MAX : all;
	if (l->size > 65536 && (uint64_t)l->qps * l->src_slots < all)
		all = (uint64_t)l->qps * l->src_slots;
	l->rx_batch = PERF_BATCH;
	l->srq_slots = (uint32_t)all - 1 + PERF_BATCH;
}

void
layout_make(struct layout *l, const struct perf_opts *o)
{
	bool huge = o->size >= HUGE_MESSAGE;

	memset(l, 0, sizeof(*l));
	l->size = o->size;
	l->grh = o->ud ? PERF_GRH : 0;
	l->stride = (o->size + l->grh + PERF_SLOT_ALIGN - 1) & ~(uint64_t)(PERF_SLOT_ALIGN - 1);
	if (o->offset || o->align || o->count_stores)
		l->stride =
			(o->size + o->offset + PERF_LINE_MAX - 1) & ~(uint64_t)(PERF_LINE_MAX - 1);
	if (l->stride == 0)
		l->stride = PERF_SLOT_ALIGN;
	l->offset = o->offset;
	l->qps = o->qps;
	l->src_slots = pow2_ceil(o->depth);
	if (perf_op_is_pingpong(o->op) && o->size <= 65536 && o->qps <= 1024)
		l->src_slots = PINGPONG_SLOTS;
	else if (l->src_slots < 2 && !huge)
		l->src_slots = 2;
	l->dst_slots = l->src_slots + (huge ? 0 : 1);
	l->tells = o->op == PERF_WRITE_SEND_BW;
	if (perf_op_receives(o->op))
		layout_receives(l, o->use_srq);
}

uint64_t
layout_src_bytes(const struct layout *l)
{
	return layout_src_off(l, l->qps, 0);
}

uint64_t
layout_dst_bytes(const struct layout *l)
{
	return l->srq_slots ? l->srq_slots * l->stride : layout_dst_off(l, l->qps, 0);
}

/* Allocate anonymous memory, zeroed. Touches all pages, so that no page fault is measured. */
static uint8_t *
memory_get(uint64_t bytes, bool shared, struct urn_err *err)
{
	uint64_t have = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	void *p;

	if (bytes > have) {
		urn_err_set(err, "the messages in flight need %llu MiB and %llu MiB of memory are "
				 "free; give a smaller --depth, --qps or --size",
			    (unsigned long long)(bytes >> 20), (unsigned long long)(have >> 20));
		return NULL;
	}
	p = shared ? urn_alloc(bytes)
		   : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED || p == NULL) {
		urn_err_set(err, "cannot get %llu MiB for messages: %s",
			    (unsigned long long)(bytes >> 20), strerror(errno));
		return NULL;
	}
	if (bytes >= HUGE_PAGE)
		madvise(p, bytes, MADV_HUGEPAGE);
	memset(p, 0, bytes);
	return p;
}

static void
memory_put(uint8_t *p, uint64_t bytes, bool shared)
{
	if (shared)
		urn_free(p);
	else if (p != NULL)
		munmap(p, bytes);
}

static void
fill_source(uint8_t *src, const struct layout *l, const struct pattern *p)
{
	for (uint32_t qp = 0; qp < l->qps; qp++) {
		for (uint32_t slot = 0; slot < l->src_slots; slot++) {
			uint8_t *data = src + layout_src_off(l, qp, slot);

			pattern_fill(p, data, l->size, pattern_start(qp, slot));
			pattern_put_stamp(data, l->size, pattern_stamp(qp, slot));
		}
	}
}

int
buffers_make(struct buffers *b, const struct layout *l, const struct pattern *p, bool src, bool dst,
	     bool shared, struct urn_err *err)
{
	memset(b, 0, sizeof(*b));
	b->shared = shared;
	if (src) {
		b->src = memory_get(layout_src_bytes(l), shared, err);
		if (b->src == NULL)
			return -1;
		b->src_bytes = layout_src_bytes(l);
		fill_source(b->src, l, p);
	}
	if (dst) {
		b->dst = memory_get(layout_dst_bytes(l), shared, err);
		if (b->dst == NULL)
			return -1;
		b->dst_bytes = layout_dst_bytes(l);
	}
	return 0;
}

void
buffers_free(struct buffers *b)
{
	memory_put(b->src, b->src_bytes, b->shared);
	memory_put(b->dst, b->dst_bytes, b->shared);
	memset(b, 0, sizeof(*b));
}
