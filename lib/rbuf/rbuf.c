/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring buffer in a peer's memory (rbuf.h). */
#include "rbuf/rbuf.h"

#include <errno.h>
#include <string.h>

/* The peer is told of each part of the ring that was read: one of so many. */
enum { TELL_PARTS = 4 };

static bool
is_size(uint64_t size)
{
	return size >= 2 * URN_RBUF_LINE_MAX && (size & (size - 1)) == 0;
}

/* ---- writer */

int
urn_rbuf_out_init(struct urn_rbuf_out *o, const struct urn_rbuf_note *note, uint64_t size,
		  uint32_t line, uint32_t how)
{
	if (!is_size(size) || (line != 0 && line != 64 && line != 128 && line != 256))
		return EINVAL;
	*o = (struct urn_rbuf_out){.note = note, .size = size, .line = line, .how = how};
	return 0;
}

int
urn_rbuf_room(const struct urn_rbuf_out *o, uint64_t *room)
{
	/* Acquire: the program writes over no byte before the count that frees it was seen. */
	uint64_t read = atomic_load_explicit(&o->note->bytes, memory_order_acquire);
	uint64_t under_way = o->prod - read;

	if (under_way > o->size)
		return EPROTO;
	*room = o->size - under_way;
	return 0;
}

/* Bytes from a place in the ring to the next line; 0: on a line, or lines are not known. */
static uint32_t
to_line(const struct urn_rbuf_out *o, uint64_t at)
{
	return o->line ? (uint32_t)(-at & (o->line - 1)) : 0;
}

static struct urn_rbuf_write
data_write(uint64_t at, uint32_t from, uint32_t bytes)
{
	return (struct urn_rbuf_write){.at = at, .from = from, .bytes = bytes};
}

/*
 * Make the writes of bytes that lie in one piece in the ring. returns: their number, 1 or 2. The
 * bytes from the next line on come first, and those before it last (AW-3).
 */
static int
piece(const struct urn_rbuf_out *o, uint64_t at, uint32_t from, uint32_t bytes,
      struct urn_rbuf_write *w)
{
	uint32_t skip = to_line(o, at);
	bool reshape = (o->how & URN_RBUF_ROUND_UP) && skip && bytes >= skip + o->line;

	w[0] = data_write(at, from, bytes);
	if (!reshape)
		return 1;
	if (o->how & URN_RBUF_ONE) {
		w[0].reshape = true;
		return 1;
	}
	w[0] = data_write(at + skip, from + skip, bytes - skip);
	w[1] = data_write(at, from, skip);
	return 2;
}

/*
 * Bytes of pad behind data that ends at this count: to the end of the line, where all of that is
 * free. A line never crosses the end of the ring.
 */
static uint32_t
pad_behind(const struct urn_rbuf_out *o, uint64_t end, uint64_t room)
{
	uint32_t pad = o->how & URN_RBUF_PAD ? to_line(o, end) : 0;

	return pad <= room ? pad : 0;
}

int
urn_rbuf_append(struct urn_rbuf_out *o, uint32_t bytes, struct urn_rbuf_write *w, uint32_t *taken)
{
	uint64_t at = o->prod & (o->size - 1), room, here;
	struct urn_rbuf_write *last;
	int n;

	*taken = 0;
	if (urn_rbuf_room(o, &room) != 0)
		return -EPROTO;
	if (bytes > room)
		bytes = (uint32_t)room;
	if (bytes == 0)
		return 0;
	here = o->size - at < bytes ? o->size - at : bytes;
	n = piece(o, at, 0, (uint32_t)here, w);
	last = &w[0]; /* the write with the highest address of this piece */
	if (here < bytes) {
		last = &w[n];
		n += piece(o, 0, (uint32_t)here, bytes - (uint32_t)here, &w[n]);
	}
	last->pad = pad_behind(o, o->prod + bytes, room - bytes);
	o->prod += bytes;
	w[n++] = (struct urn_rbuf_write){.bytes = sizeof(o->prod), .note = true, .count = o->prod};
	*taken = bytes;
	return n;
}

/* ---- reader */

int
urn_rbuf_in_init(struct urn_rbuf_in *i, const uint8_t *ring, const struct urn_rbuf_note *note,
		 uint64_t size)
{
	if (!is_size(size) || (uintptr_t)ring % URN_RBUF_LINE_MAX != 0)
		return EINVAL;
	*i = (struct urn_rbuf_in){.ring = ring, .note = note, .size = size};
	return 0;
}

int
urn_rbuf_peek(const struct urn_rbuf_in *i, const uint8_t **at, uint64_t *bytes)
{
	/* Pairs with the store of the note by the dataplane, which placed the data before. */
	uint64_t there = atomic_load_explicit(&i->note->bytes, memory_order_acquire) - i->cons;
	uint64_t off = i->cons & (i->size - 1);

	if (there > i->size)
		return EPROTO;
	*at = i->ring + off;
	*bytes = i->size - off < there ? i->size - off : there;
	return 0;
}

bool
urn_rbuf_take(struct urn_rbuf_in *i, uint64_t bytes, struct urn_rbuf_write *w)
{
	i->cons += bytes;
	if (i->cons - i->told < i->size / TELL_PARTS)
		return false;
	i->told = i->cons;
	*w = (struct urn_rbuf_write){.bytes = sizeof(i->cons), .note = true, .count = i->cons};
	return true;
}
