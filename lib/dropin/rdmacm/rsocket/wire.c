/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocol's data: private data, entries of target lists, map entries. */
#include "dropin/rdmacm/rsocket/wire.h"

#include <byteswap.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

/* A number above half of what `SCALE_BITS` bits hold loses its low bits, and has the top bit. */
#define SCALE_BITS 8
#define SCALE_TOP (1u << (SCALE_BITS - 1))

static uint8_t
scale(uint32_t n)
{
	return (uint8_t)(n <= SCALE_TOP ? n : SCALE_TOP | n >> SCALE_BITS);
}

static uint32_t
unscale(uint8_t v)
{
	return v <= SCALE_TOP ? v : (v & ~SCALE_TOP) << SCALE_BITS;
}

uint32_t
urn_rs_iomaps_round(uint32_t n)
{
	/* SCALE_TOP alone means itself, so a number that scales to it becomes that. */
	return unscale(scale(n < URN_RS_IOMAPS_MOST ? n : URN_RS_IOMAPS_MOST));
}

static struct urn_rs_sge
sge_net(const struct urn_rs_sge *s)
{
	return (struct urn_rs_sge){
		.addr = htobe64(s->addr), .key = htobe32(s->key), .length = htobe32(s->length)};
}

void
urn_rs_conn_write(const struct urn_rs_conn *c, struct urn_rs_conn_wire *out)
{
	memset(out, 0, sizeof(*out));
	out->version = URN_RS_VERSION;
	out->flags = (uint8_t)(URN_RS_FLAG_IOMAP | (c->big ? URN_RS_FLAG_BIG : 0));
	out->credits[0] = (uint8_t)(c->credits >> 8);
	out->credits[1] = (uint8_t)c->credits;
	out->iomaps = scale(c->iomaps);
	out->targets = sge_net(&c->targets);
	out->buffer = sge_net(&c->buffer);
}

int
urn_rs_conn_read(const void *data, size_t len, struct urn_rs_conn *out)
{
	struct urn_rs_conn_wire w;

	if (data == NULL || len < sizeof(w))
		return EPROTO;
	memcpy(&w, data, sizeof(w));
	out->credits = (uint16_t)(w.credits[0] << 8 | w.credits[1]);
	out->big = (w.flags & URN_RS_FLAG_BIG) != 0;
	out->iomaps = w.flags & URN_RS_FLAG_IOMAP ? unscale(w.iomaps) : 0;
	out->targets = sge_net(&w.targets);
	out->buffer = sge_net(&w.buffer);
	if (w.version != URN_RS_VERSION || out->credits == 0)
		return EPROTO;
	if (out->targets.length < URN_RS_TARGETS || out->targets.length > URN_RS_TARGETS_MOST)
		return EPROTO;
	return 0;
}

void
urn_rs_sge_write(struct urn_rs_sge *out, uint64_t addr, uint32_t key, uint32_t length, bool swap)
{
	out->addr = swap ? bswap_64(addr) : addr;
	out->key = swap ? bswap_32(key) : key;
	out->length = swap ? bswap_32(length) : length;
}

struct urn_rs_sge
urn_rs_sge_read(const struct urn_rs_sge *shared)
{
	struct urn_rs_sge s;

	/* The length first: an entry that is being written has none yet. */
	s.length = __atomic_load_n(&shared->length, __ATOMIC_ACQUIRE);
	s.key = __atomic_load_n(&shared->key, __ATOMIC_RELAXED);
	s.addr = __atomic_load_n(&shared->addr, __ATOMIC_RELAXED);
	return s;
}

bool
urn_rs_map_find(const struct urn_rs_map *shared, uint32_t n, uint64_t offset,
		struct urn_rs_sge *sge)
{
	for (uint32_t i = 0; i < n; i++) {
		struct urn_rs_sge s = urn_rs_sge_read(&shared[i].sge);
		uint64_t begin = __atomic_load_n(&shared[i].offset, __ATOMIC_RELAXED);

		if (offset < begin || offset - begin >= s.length)
			continue;
		sge->addr = s.addr + (offset - begin);
		sge->key = s.key;
		sge->length = s.length - (uint32_t)(offset - begin);
		return true;
	}
	return false;
}
