/* SPDX-License-Identifier: BSD-3-Clause */
/* Holds each action of a fuzzed stream machine against what its surroundings allow. */
#include "stream_check.h"

#include <string.h>

struct stream_world stream_w;

static uint8_t
byte_at(uint64_t place)
{
	return (uint8_t)(place * 7 + (place >> 8) * 13 + 1);
}

void
stream_fill(uint8_t *to, uint64_t bytes, uint64_t place)
{
	for (uint64_t i = 0; i < bytes; i++)
		to[i] = byte_at(place + i);
}

/* ---- actions */

/* The open area of the program with these bytes. */
static struct stream_area *
area_of(uint64_t addr, uint64_t bytes, bool send)
{
	uint64_t i = addr >> STREAM_AREA_SHIFT, from = addr & ((1u << STREAM_AREA_SHIFT) - 1);

	fuzz_check(i > 0 && i < STREAM_AREAS);
	fuzz_check(stream_w.area[i].live && stream_w.area[i].send == send);
	fuzz_check(from <= stream_w.area[i].bytes && bytes <= stream_w.area[i].bytes - from);
	return &stream_w.area[i];
}

static uint8_t *
mem_of(struct stream_area *a, uint64_t addr)
{
	return a->mem + (addr & ((1u << STREAM_AREA_SHIFT) - 1));
}

static uint64_t
place_of(const struct stream_area *a, uint64_t addr)
{
	return a->at + (addr & ((1u << STREAM_AREA_SHIFT) - 1));
}

/* Memory that the peer named, with all these bytes. */
static const struct stream_named *
named_of(uint32_t key, uint64_t addr, uint64_t bytes)
{
	const struct stream_named *n = &stream_w.named[key % STREAM_NAMED];

	fuzz_check(key && n->key == key);
	fuzz_check(addr >= n->addr && addr - n->addr <= n->bytes);
	fuzz_check(bytes <= n->bytes - (addr - n->addr));
	return n;
}

static void
post(enum urn_st_act act, uint32_t area)
{
	fuzz_check(!stream_w.died && !stream_w.closed &&
		   stream_w.posted - stream_w.completed < STREAM_OPS);
	stream_w.op[stream_w.posted++ % STREAM_OPS] = (struct stream_op){act, area};
}

static void
act_send(const struct urn_st_action *a)
{
	uint8_t bytes[STREAM_SLOT];
	struct urn_st_msg m;
	uint32_t at, head = urn_st_wire_put(bytes, a->message);

	fuzz_check(a->message->length <= stream_w.st.cfg.peer.size);
	fuzz_check(urn_st_wire_get(bytes, head + a->message->length, &m, &at) == URN_ST_V_OK);
	fuzz_check(head + m.length <= stream_w.st.cfg.send_slot);
	if (m.length)
		fuzz_check(place_of(area_of(a->addr, m.length, true), a->addr) == m.offset);
	/* The peer's writes are bytes of the stream at their place, so they may come at once. */
	if (m.kind == URN_ST_SINK_AVAIL)
		stream_fill(mem_of(area_of(m.addr, m.bytes, false), m.addr), m.bytes, m.offset);
	if (m.flags & URN_ST_F_ADVERT && m.kind == URN_ST_DATA)
		stream_fill(mem_of(area_of(m.advert.addr, m.advert.bytes, false), m.advert.addr),
			    m.advert.bytes, m.advert.offset);
	/* Abort takes no slot: nothing follows it. */
	fuzz_check(stream_w.messages < stream_w.st.cfg.slots || m.kind == URN_ST_ABORT);
	stream_w.messages++;
	post(URN_ST_A_SEND, 0);
}

static void
act_write(const struct urn_st_action *a)
{
	const struct stream_named *n = named_of(a->rkey, a->raddr, a->bytes);
	const struct stream_area *from = area_of(a->addr, a->bytes, true);

	fuzz_check(a->bytes && place_of(from, a->addr) == n->offset + (a->raddr - n->addr));
	post(URN_ST_A_WRITE, 0);
}

static void
act_read(const struct urn_st_action *a)
{
	const struct stream_named *n = named_of(a->rkey, a->raddr, a->bytes);
	struct stream_area *to = area_of(a->addr, a->bytes, false);

	fuzz_check(a->bytes > 0);
	stream_fill(mem_of(to, a->addr), a->bytes, n->offset + (a->raddr - n->addr));
	to->reads++;
	post(URN_ST_A_READ, (uint32_t)(to - stream_w.area));
}

static struct stream_slot *
held(uint32_t slot)
{
	fuzz_check(slot < STREAM_RECVS && stream_w.slot[slot].held);
	return &stream_w.slot[slot];
}

static void
act_copy(const struct urn_st_action *a)
{
	const struct stream_slot *s = held(a->slot);
	struct stream_area *to = area_of(a->addr, a->bytes, false);

	fuzz_check(a->bytes > 0 && a->from + a->bytes <= s->bytes);
	memcpy(mem_of(to, a->addr), s->mem + a->from, a->bytes);
}

static void
act_merge(const struct urn_st_action *a)
{
	const struct stream_slot *from = held(a->slot);
	struct stream_slot *to = held(a->into);

	fuzz_check(from != to && a->from + a->bytes <= from->bytes);
	fuzz_check(a->at == to->bytes && a->at + a->bytes <= stream_w.st.cfg.recv_slot);
	memcpy(to->mem + a->at, from->mem + a->from, a->bytes);
	to->bytes += (uint32_t)a->bytes;
}

/* Receives that are posted or have a message. */
static uint32_t
receives(void)
{
	uint32_t n = stream_w.waiting;

	for (uint32_t i = 0; i < STREAM_RECVS; i++)
		n += stream_w.slot[i].held;
	return n;
}

static void
act_post(const struct urn_st_action *a)
{
	fuzz_check(a->bytes <= STREAM_RECVS);
	stream_w.waiting += (uint32_t)a->bytes;
	fuzz_check(receives() <= URN_ST_CONTROL + stream_w.st.cfg.self.buffers);
}

static struct stream_area *
ended(const struct urn_st_action *a, bool send)
{
	struct stream_area *area;

	fuzz_check(a->id > 0 && a->id < STREAM_AREAS);
	area = &stream_w.area[a->id];
	fuzz_check(area->live && area->send == send && area->reads == 0);
	fuzz_check(a->bytes <= area->bytes);
	area->live = false;
	return area;
}

static void
act_sent(const struct urn_st_action *a)
{
	const struct stream_area *area = ended(a, true);

	fuzz_check(stream_w.sends-- > 0);
	fuzz_check(a->status != URN_ST_OK || a->bytes == area->bytes);
	fuzz_check(a->status != URN_ST_FAILED || stream_w.died);
}

static void
act_received(const struct urn_st_action *a)
{
	const struct stream_area *area = ended(a, false);

	fuzz_check(stream_w.recvs-- > 0);
	fuzz_check(a->status != URN_ST_FAILED || stream_w.died);
	if (a->status != URN_ST_OK)
		return;
	fuzz_check(!stream_w.told_end || a->bytes == 0);
	stream_w.told_end |= a->bytes == 0;
	for (uint64_t i = 0; i < a->bytes; i++)
		fuzz_check(area->mem[i] == byte_at(stream_w.got + i));
	stream_w.got += a->bytes;
}

void
stream_act(void *arg, const struct urn_st_action *a)
{
	static void (*const take[URN_ST_ACTS])(const struct urn_st_action *) = {
		[URN_ST_A_SEND] = act_send,   [URN_ST_A_WRITE] = act_write,
		[URN_ST_A_READ] = act_read,   [URN_ST_A_COPY] = act_copy,
		[URN_ST_A_MERGE] = act_merge, [URN_ST_A_POST] = act_post,
		[URN_ST_A_SENT] = act_sent,   [URN_ST_A_RECEIVED] = act_received,
	};

	(void)arg;
	if (a->act == URN_ST_A_FREE) {
		held(a->slot)->held = false;
	} else if (a->act == URN_ST_A_DIED) {
		fuzz_check(!stream_w.died && !stream_w.closed);
		stream_w.died = true;
	} else if (a->act == URN_ST_A_CLOSED) {
		fuzz_check(!stream_w.died && !stream_w.closed && stream_w.sends == 0 &&
			   stream_w.recvs == 0);
		stream_w.closed = true;
	} else if (take[a->act]) {
		take[a->act](a);
	}
}
