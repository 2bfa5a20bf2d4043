/* SPDX-License-Identifier: BSD-3-Clause */
#include "abi/urn_abi.h"
#include "wire/am.h"

#include "abi/am_codes.h"

#include <string.h>

#include <rte_byteorder.h>

enum { LEN_BYTES = 1 };

static const struct kind {
	bool known, reply;
	uint8_t data; /* bytes that follow the header; LEN_BYTES: those of `len` */
} kinds[URN_AM_KINDS] = {
#define X(name, number, reply, data) [URN_AM_K_##name] = {true, (reply) != 0, (data)},
	URN_AM_KIND_LIST(X)
#undef X
};

URN_FAST bool
urn_am_kind_is_reply(uint8_t kind)
{
	return kind < URN_AM_KINDS && kinds[kind].reply;
}

/* True when the code fits the kind. */
static bool
code_ok(uint8_t kind, uint8_t code)
{
	if (kind == URN_AM_K_ERROR || kind == URN_AM_K_TAG_ERROR || kind == URN_AM_K_TAG_CANCEL)
		return code != URN_AM_DONE && code < URN_AM_CODES;
	return code == 0;
}

/* Bytes between the header and the data. */
static uint32_t
more(uint8_t kind)
{
	return kind == URN_AM_K_PART ? (uint32_t)sizeof(struct urn_am_part_hdr) : 0;
}

/* Most bytes of memory in a message of the kind, or of its operation. */
static uint32_t
most(uint8_t kind)
{
	switch (kind) {
	case URN_AM_K_TAG_WRITE:
	case URN_AM_K_TAG_READ:
	case URN_AM_K_TAG_DONE:
	case URN_AM_K_TAG_ERROR:
	case URN_AM_K_TAG_CANCEL:
		return URN_AM_TOTAL_MAX;
	default:
		return URN_AM_CHUNK_MAX;
	}
}

/* True when address and key fit the kind, and the length, which is right. */
static bool
place_ok(const struct urn_am_msg *m)
{
	switch (m->kind) {
	case URN_AM_K_TAG_DATA:
	case URN_AM_K_TAG_BACK:
		return m->addr <= URN_AM_TOTAL_MAX - m->len;
	case URN_AM_K_TAG_DONE:
		return m->addr && m->addr <= m->len && m->key == 0;
	case URN_AM_K_TAG_ERROR:
		return m->addr <= m->len && m->key == 0;
	case URN_AM_K_TAG_CANCEL:
		return m->addr == 0 && m->key == 0;
	default:
		if (kinds[m->kind].reply)
			return m->addr == 0 && m->key == 0;
		return m->addr + (m->len - 1) >= m->addr;
	}
}

/* Read what follows the header of a PART. returns: false: malformed */
static bool
parse_part(const uint8_t *at, struct urn_am_msg *m)
{
	struct urn_am_part_hdr p;

	memcpy(&p, at, sizeof(p));
	m->total = rte_be_to_cpu_32(p.total);
	m->every = p.every;
	return m->every && m->len <= m->total && m->total <= URN_AM_TOTAL_MAX &&
	       !(p.rsvd[0] | p.rsvd[1] | p.rsvd[2]);
}

/* True when a word of an atomic operation has 4 or 8 bytes, and the value fits. */
static bool
word_ok(uint32_t len, uint64_t value)
{
	return len == 8 || (len == 4 && value >> 32 == 0);
}

/* True when the data fits the kind. m: with kind and length set */
static bool
data_ok(const struct urn_am_msg *m, const uint8_t *data)
{
	struct urn_am_atomic a;

	if (m->kind == URN_AM_K_ATOMIC)
		return urn_am_get_atomic(data, m->len, &a);
	if (m->kind == URN_AM_K_ATOMIC_REPLY)
		return word_ok(m->len, urn_am_get_old(data));
	return true;
}

/* Bytes that follow the header of a message. kind: known */
static uint32_t
data_bytes(uint8_t kind, uint32_t len)
{
	return kinds[kind].data == LEN_BYTES ? more(kind) + len : kinds[kind].data;
}

URN_FAST bool
urn_am_parse(const uint8_t *data, uint32_t len, struct urn_am_msg *m)
{
	struct urn_am_hdr h;

	if (len < sizeof(h))
		return false;
	memcpy(&h, data, sizeof(h));
	if (h.kind >= URN_AM_KINDS || !kinds[h.kind].known)
		return false;
	m->kind = h.kind;
	m->code = h.code;
	m->every = 0;
	m->len = rte_be_to_cpu_32(h.len);
	m->total = 0;
	m->tag = rte_be_to_cpu_64(h.tag);
	m->addr = rte_be_to_cpu_64(h.addr);
	m->key = rte_be_to_cpu_64(h.key);
	m->data = kinds[h.kind].data ? data + sizeof(h) + more(h.kind) : NULL;
	if (!code_ok(h.kind, h.code) || h.flags != 0)
		return false;
	if (m->len == 0 || m->len > most(h.kind) || len - sizeof(h) != data_bytes(h.kind, m->len) ||
	    !data_ok(m, data + sizeof(h)))
		return false;
	return place_ok(m) && (h.kind != URN_AM_K_PART || parse_part(data + sizeof(h), m));
}

uint32_t
urn_am_build(uint8_t *at, const struct urn_am_msg *m)
{
	urn_am_put_hdr(at, m->kind, m->code, m->len, m->tag, m->addr, m->key);
	if (m->kind == URN_AM_K_PART) {
		struct urn_am_part_hdr p = {.total = rte_cpu_to_be_32(m->total), .every = m->every};

		memcpy(at + sizeof(struct urn_am_hdr), &p, sizeof(p));
	}
	return (uint32_t)sizeof(struct urn_am_hdr) + data_bytes(m->kind, m->len);
}

/* ---- atomic operations */

void
urn_am_put_atomic(uint8_t *data, const struct urn_am_atomic *a)
{
	struct urn_am_atomic_hdr h = {
		.op = a->op,
		.value = rte_cpu_to_be_64(a->value),
		.compare = rte_cpu_to_be_64(a->compare),
	};

	memcpy(data, &h, sizeof(h));
}

bool
urn_am_get_atomic(const uint8_t *data, uint32_t len, struct urn_am_atomic *a)
{
	static const uint8_t none[sizeof(((struct urn_am_atomic_hdr *)0)->rsvd)];
	struct urn_am_atomic_hdr h;

	memcpy(&h, data, sizeof(h));
	a->op = h.op;
	a->value = rte_be_to_cpu_64(h.value);
	a->compare = rte_be_to_cpu_64(h.compare);
	return urn_am_op_is_atomic(h.op) && memcmp(h.rsvd, none, sizeof(none)) == 0 &&
	       word_ok(len, a->value) && word_ok(len, a->compare) &&
	       (h.op == URN_AM_COMPARE_SWAP || a->compare == 0);
}

void
urn_am_put_old(uint8_t *data, uint64_t old)
{
	uint64_t be = rte_cpu_to_be_64(old);

	memcpy(data, &be, sizeof(be));
}

uint64_t
urn_am_get_old(const uint8_t *data)
{
	uint64_t be;

	memcpy(&be, data, sizeof(be));
	return rte_be_to_cpu_64(be);
}
