/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of a byte stream as they travel (wire.h). */
#include "stream/wire.h"

#include <endian.h>
#include <stddef.h>
#include <string.h>

/* A message in network byte order: the head, and the advert of a transaction. */
struct urn_st_wire {
	uint32_t magic;	     /* URN_ST_WIRE_MAGIC */
	uint8_t version;     /* URN_ST_WIRE_VERSION */
	uint8_t kind;	     /* enum urn_st_kind */
	uint16_t flags;	     /* enum urn_st_flag */
	uint32_t credit;     /* from here on the fields of struct urn_st_msg */
	uint32_t length;     /* bytes */
	uint64_t offset;     /* bytes from the start of the stream */
	uint64_t bytes;	     /* bytes, or a reason */
	uint64_t addr;	     /* address */
	uint32_t key;	     /* remote key */
	uint32_t seen;	     /* messages */
	uint64_t rev_offset; /* advert, from here on; valid with F_ADVERT */
	uint64_t rev_bytes;  /* bytes */
	uint64_t rev_addr;   /* address */
	uint32_t rev_key;    /* remote key */
	uint32_t zero;	     /* 0 */
};

/* A greeting in network byte order. */
struct urn_st_wire_hello {
	uint32_t magic;	   /* URN_ST_WIRE_MAGIC */
	uint8_t version;   /* URN_ST_WIRE_VERSION */
	uint8_t abilities; /* enum urn_st_ability */
	uint16_t zero;	   /* 0 */
	uint32_t buffers;  /* BCopy buffers */
	uint32_t size;	   /* bytes of each */
};

_Static_assert(sizeof(struct urn_st_wire) == URN_ST_WIRE_MAX, "message");
_Static_assert(offsetof(struct urn_st_wire, flags) == 6, "head");
_Static_assert(offsetof(struct urn_st_wire, offset) == 16, "head");
_Static_assert(offsetof(struct urn_st_wire, key) == 40, "head");
_Static_assert(offsetof(struct urn_st_wire, rev_offset) == URN_ST_WIRE_HEAD, "advert");
_Static_assert(URN_ST_WIRE_HEAD + URN_ST_WIRE_ADVERT == URN_ST_WIRE_MAX, "advert");
_Static_assert(sizeof(struct urn_st_wire_hello) == URN_ST_WIRE_HELLO, "greeting");

/* Bytes of the stream in a message of a kind. */
enum load { NO_LOAD, MAY_LOAD, MUST_LOAD };

/* One kind of message: fields that it has beside credit and seen. */
struct shape {
	uint16_t flags; /* flags that it may have */
	uint8_t load;	/* enum load */
	bool offset;	/* has a place in the stream */
	bool bytes;	/* has a number of bytes, or a reason */
	bool memory;	/* has an address and a key, for `bytes` bytes */
	bool some;	/* bytes is at least 1 */
};

#define TEXT(name, number, text) [(number)] = (text),
static const char *const kind_text[URN_ST_KIND_COUNT] = {URN_ST_KINDS(TEXT)};
#undef TEXT

static const struct shape shape_of[URN_ST_KIND_COUNT] = {
	[URN_ST_DATA] = {.flags = URN_ST_F_ADVERT, .load = MUST_LOAD, .offset = true},
	[URN_ST_SRC_AVAIL] = {.flags = URN_ST_F_READ | URN_ST_F_WRITE,
			      .load = MAY_LOAD,
			      .offset = true,
			      .bytes = true,
			      .memory = true,
			      .some = true},
	[URN_ST_SINK_AVAIL] = {.offset = true, .bytes = true, .memory = true, .some = true},
	[URN_ST_SEND_SM] = {.offset = true, .bytes = true},
	[URN_ST_RD_COMPL] = {.offset = true, .bytes = true, .some = true},
	[URN_ST_WR_COMPL] = {.offset = true, .bytes = true, .some = true},
	[URN_ST_CREDIT] = {.offset = true},
	[URN_ST_FIN] = {.offset = true},
	[URN_ST_STOP] = {.offset = true},
	[URN_ST_ABORT] = {.offset = true, .bytes = true},
};

static const char *const verdict_text[URN_ST_V_COUNT] = {
#define X(name, text) text,
	URN_ST_VERDICTS(X)
#undef X
};

const char *
urn_st_kind_text(unsigned int kind)
{
	return kind < URN_ST_KIND_COUNT && kind_text[kind] ? kind_text[kind] : "?";
}

const char *
urn_st_verdict_text(unsigned int verdict)
{
	return verdict < URN_ST_V_COUNT ? verdict_text[verdict] : "?";
}

/* ---- writing */

uint32_t
urn_st_wire_put(void *to, const struct urn_st_msg *m)
{
	uint32_t bytes = m->flags & URN_ST_F_ADVERT ? URN_ST_WIRE_MAX : URN_ST_WIRE_HEAD;
	const struct urn_st_wire w = {
		.magic = htobe32(URN_ST_WIRE_MAGIC),
		.version = URN_ST_WIRE_VERSION,
		.kind = m->kind,
		.flags = htobe16(m->flags),
		.credit = htobe32(m->credit),
		.length = htobe32(m->length),
		.offset = htobe64(m->offset),
		.bytes = htobe64(m->bytes),
		.addr = htobe64(m->addr),
		.key = htobe32(m->key),
		.seen = htobe32(m->seen),
		.rev_offset = htobe64(m->advert.offset),
		.rev_bytes = htobe64(m->advert.bytes),
		.rev_addr = htobe64(m->advert.addr),
		.rev_key = htobe32(m->advert.key),
	};

	memcpy(to, &w, bytes);
	return bytes;
}

uint32_t
urn_st_hello_put(void *to, const struct urn_st_hello *h)
{
	const struct urn_st_wire_hello w = {
		.magic = htobe32(URN_ST_WIRE_MAGIC),
		.version = URN_ST_WIRE_VERSION,
		.abilities = h->abilities,
		.buffers = htobe32(h->buffers),
		.size = htobe32(h->size),
	};

	memcpy(to, &w, sizeof(w));
	return sizeof(w);
}

/* ---- reading */

static enum urn_st_verdict
check_head(const struct urn_st_wire *w)
{
	if (be32toh(w->magic) != URN_ST_WIRE_MAGIC)
		return URN_ST_V_MAGIC;
	if (w->version != URN_ST_WIRE_VERSION)
		return URN_ST_V_VERSION;
	if (w->kind >= URN_ST_KIND_COUNT || !kind_text[w->kind])
		return URN_ST_V_KIND;
	if (be16toh(w->flags) & ~shape_of[w->kind].flags)
		return URN_ST_V_FLAGS;
	return URN_ST_V_OK;
}

static void
get_fields(const struct urn_st_wire *w, struct urn_st_msg *m)
{
	*m = (struct urn_st_msg){
		.kind = w->kind,
		.flags = be16toh(w->flags),
		.credit = be32toh(w->credit),
		.seen = be32toh(w->seen),
		.length = be32toh(w->length),
		.offset = be64toh(w->offset),
		.bytes = be64toh(w->bytes),
		.addr = be64toh(w->addr),
		.key = be32toh(w->key),
	};
	if (m->flags & URN_ST_F_ADVERT)
		m->advert = (struct urn_st_advert){
			.offset = be64toh(w->rev_offset),
			.bytes = be64toh(w->rev_bytes),
			.addr = be64toh(w->rev_addr),
			.key = be32toh(w->rev_key),
		};
}

/* True when a range of bytes does not run over the end of 64 bits. */
static bool
fits(uint64_t at, uint64_t bytes)
{
	return bytes <= UINT64_MAX - at;
}

static enum urn_st_verdict
check_advert(const struct urn_st_wire *w, const struct urn_st_msg *m)
{
	const struct urn_st_advert *a = &m->advert;

	if (!(m->flags & URN_ST_F_ADVERT))
		return URN_ST_V_OK;
	if (w->zero)
		return URN_ST_V_RESERVED;
	if (a->bytes == 0)
		return URN_ST_V_EMPTY;
	return fits(a->offset, a->bytes) && fits(a->addr, a->bytes) ? URN_ST_V_OK : URN_ST_V_RANGE;
}

/* Hold the fields against the kind's shape. load: bytes behind the head. */
static enum urn_st_verdict
check_fields(const struct urn_st_msg *m, uint32_t load)
{
	const struct shape *s = &shape_of[m->kind];

	if (m->length != load || (load && s->load == NO_LOAD) || (!load && s->load == MUST_LOAD))
		return URN_ST_V_LENGTH;
	if ((!s->offset && m->offset) || (!s->bytes && m->bytes) ||
	    (!s->memory && (m->addr || m->key)))
		return URN_ST_V_RESERVED;
	if (s->some && m->bytes == 0)
		return URN_ST_V_EMPTY;
	if (!fits(m->offset, s->memory ? m->bytes : m->length) ||
	    (s->memory && !fits(m->addr, m->bytes)))
		return URN_ST_V_RANGE;
	/* A SrcAvail leaves something to be fetched; the bytes done end at the offset. */
	if (m->kind == URN_ST_SRC_AVAIL && m->bytes <= load)
		return URN_ST_V_RANGE;
	if ((m->kind == URN_ST_SEND_SM || m->kind == URN_ST_RD_COMPL) && m->bytes > m->offset)
		return URN_ST_V_RANGE;
	return URN_ST_V_OK;
}

enum urn_st_verdict
urn_st_wire_get(const void *from, uint32_t bytes, struct urn_st_msg *m, uint32_t *at)
{
	struct urn_st_wire w = {0};
	enum urn_st_verdict v;
	uint32_t head;

	*m = (struct urn_st_msg){0};
	*at = 0;
	if (bytes < URN_ST_WIRE_HEAD)
		return URN_ST_V_SHORT;
	memcpy(&w, from, bytes < sizeof(w) ? bytes : sizeof(w));
	v = check_head(&w);
	if (v != URN_ST_V_OK)
		return v;
	get_fields(&w, m);
	head = m->flags & URN_ST_F_ADVERT ? URN_ST_WIRE_MAX : URN_ST_WIRE_HEAD;
	v = bytes < head ? URN_ST_V_SHORT : check_fields(m, bytes - head);
	if (v == URN_ST_V_OK)
		v = check_advert(&w, m);
	if (v != URN_ST_V_OK)
		*m = (struct urn_st_msg){0};
	else
		*at = head;
	return v;
}

enum urn_st_verdict
urn_st_hello_get(const void *from, uint32_t bytes, struct urn_st_hello *h)
{
	const uint8_t all = URN_ST_CAN_READ | URN_ST_ON_DEMAND | URN_ST_RESUMES;
	struct urn_st_wire_hello w;
	uint32_t buffers, size;

	*h = (struct urn_st_hello){0};
	if (bytes < sizeof(w))
		return URN_ST_V_SHORT;
	memcpy(&w, from, sizeof(w));
	if (be32toh(w.magic) != URN_ST_WIRE_MAGIC)
		return URN_ST_V_MAGIC;
	if (w.version != URN_ST_WIRE_VERSION)
		return URN_ST_V_VERSION;
	if (w.abilities & ~all)
		return URN_ST_V_FLAGS;
	if (w.zero)
		return URN_ST_V_RESERVED;
	buffers = be32toh(w.buffers);
	size = be32toh(w.size);
	if (buffers - 1 >= URN_ST_BUFFERS_MAX || size - 1 >= URN_ST_SIZE_MAX)
		return URN_ST_V_BUFFERS;
	*h = (struct urn_st_hello){.buffers = buffers, .size = size, .abilities = w.abilities};
	return URN_ST_V_OK;
}
