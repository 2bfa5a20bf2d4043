/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations between all kinds of memory, in all ways, and requests with payloads from there. */
#include "foreign.h"

#include <stdatomic.h>

enum { GUARD = 8, SMALL = 104, BIG = 300000, PACKET = 1000, HANDLER = 3 };

static uint8_t area[2][BIG + 2 * GUARD] __attribute__((aligned(4096)));

/* Memory of a kind, with guards in front and behind that are not added. */
struct piece {
	const char *kind;
	uint8_t *p; /* first byte that is added */
	size_t len;
	struct own own;
};

static void
guard(struct piece *x, uint8_t *p, size_t len, const char *kind)
{
	CHECK(p != NULL);
	memset(p, 0xee, len + 2 * GUARD);
	*x = (struct piece){.kind = kind, .p = p + GUARD, .len = len};
}

/* The neighbours on the same pages are as they were. */
static void
guarded(const struct piece *x)
{
	for (size_t i = 0; i < GUARD; i++)
		CHECK(x->p[-1 - (ptrdiff_t)i] == 0xee && x->p[x->len + i] == 0xee);
}

static void
fill(uint8_t *p, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 31 + i / 251 + seed * 77);
}

/* Write all bytes there, and read them back, in each way. */
static void
move(const struct piece *from, const struct piece *to)
{
	static uint8_t want[BIG];

	for (unsigned int w = URN_AM_AUTO; w < URN_AM_WAYS; w++) {
		uint8_t way = (uint8_t)w;
		size_t len = from->len < to->len ? from->len : to->len;

		if (way == URN_AM_DIRECT && len > PACKET)
			len = PACKET;
		fill(want, len, way + 1u);
		memcpy(from->p, want, len);
		memset(to->p, 0, to->len);
		EQUAL(put(&from->own, from->p, &to->own, to->p, len, way), URN_AM_DONE);
		CHECK(memcmp(to->p, want, len) == 0);
		memset(from->p, 0, from->len);
		EQUAL(get(&from->own, from->p, &to->own, to->p, len, way), URN_AM_DONE);
		CHECK(memcmp(from->p, want, len) == 0);
		guarded(from);
		guarded(to);
	}
}

/* A peer reaches no byte beside the memory, though it lies on the same page. */
static void
edges(const struct piece *from, const struct piece *to)
{
	for (unsigned int w = URN_AM_DIRECT; w < URN_AM_WAYS; w++) {
		uint8_t way = (uint8_t)w;

		EQUAL(put(&from->own, from->p, &to->own, to->p - 1, 2, way), URN_AM_RANGE);
		EQUAL(put(&from->own, from->p, &to->own, to->p + to->len - 1, 2, way),
		      URN_AM_RANGE);
		EQUAL(get(&from->own, from->p, &to->own, to->p + to->len, 1, way), URN_AM_RANGE);
	}
	guarded(to);
}

/* Words are changed in place: the program's own atomics see them at once, and vice versa. */
static void
words(const struct piece *to)
{
	_Atomic uint64_t *w8 = (void *)(((uintptr_t)to->p + 7) & ~(uintptr_t)7);
	_Atomic uint32_t *w4 = (void *)(w8 + 1);

	atomic_store(w8, UINT64_C(0x100000005));
	atomic_store(w4, 7);
	EQUAL(change(&to->own, w8, URN_AM_FETCH_ADD, 8, 3, 0), UINT64_C(0x100000005));
	EQUAL(atomic_fetch_add(w8, 1), UINT64_C(0x100000008));
	EQUAL(change(&to->own, w8, URN_AM_COMPARE_SWAP, 8, 50, UINT64_C(0x100000009)),
	      UINT64_C(0x100000009));
	EQUAL(change(&to->own, w8, URN_AM_COMPARE_SWAP, 8, 60, 51), 50);
	EQUAL(change(&to->own, w8, URN_AM_SWAP, 8, 70, 0), 50);
	EQUAL(atomic_load(w8), 70);
	EQUAL(change(&to->own, w4, URN_AM_FETCH_ADD, 4, 3, 0), 7);
	EQUAL(atomic_fetch_add(w4, 1), 10);
	EQUAL(change(&to->own, w4, URN_AM_COMPARE_SWAP, 4, 50, 11), 11);
	EQUAL(change(&to->own, w4, URN_AM_SWAP, 4, 70, 0), 50);
	EQUAL(atomic_load(w4), 70);
	guarded(to);
}

void
case_ways(void)
{
	enum { KINDS = 4 };
	struct piece piece[2][KINDS];

	for (size_t i = 0; i < 2; i++) {
		guard(&piece[i][0], malloc(SMALL + 2 * GUARD), SMALL, "small heap");
		guard(&piece[i][1], malloc(BIG + 2 * GUARD), BIG, "large heap");
		guard(&piece[i][2], fresh(BIG + 2 * GUARD), BIG, "mmap()");
		guard(&piece[i][3], area[i], BIG, "static");
		for (size_t k = 0; k < KINDS; k++) {
			struct piece *x = &piece[i][k];

			fill(x->p, x->len, 5);
			add(&x->own, &ends[i], x->p, x->len);
			CHECK(shared(x->p) && shared(x->p + x->len - 1));
			guarded(x);
			for (size_t b = 0; b < x->len; b += 97) /* adding moved the bytes */
				CHECK(x->p[b] == (uint8_t)(b * 31 + b / 251 + 5u * 77));
		}
	}
	for (size_t from = 0; from < KINDS; from++)
		for (size_t to = 0; to < KINDS; to++)
			move(&piece[0][from], &piece[1][to]);
	for (size_t k = 0; k < KINDS; k++) {
		edges(&piece[0][k], &piece[1][k]);
		words(&piece[1][k]);
	}
	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < KINDS; k++)
			take(&piece[i][k].own);
}

/* ---- requests */

static struct {
	uint8_t *to;	/* where the handler puts payloads */
	uint64_t bytes; /* length of the payload that came last */
	unsigned int came, answered;
} mail;

static void
on_message(struct urn_am_endpoint *ep, const struct urn_am_message *m, void *arg)
{
	(void)arg;
	if (m->token == 0) {
		mail.answered++;
		return;
	}
	memcpy(mail.to, m->data, m->len);
	mail.bytes = m->len;
	mail.came++;
	EQUAL(urn_am_reply(ep, m->token, HANDLER, NULL, 0, mail.to, m->len), 0);
}

void
case_requests(void)
{
	uint8_t *from = malloc(BIG), *to = malloc(BIG);
	struct own sender, target;

	CHECK(from != NULL && to != NULL);
	mail.to = to;
	add(&sender, &ends[0], from, BIG);
	add(&target, &ends[1], to, BIG);
	for (size_t i = 0; i < 2; i++)
		urn_am_handle(ends[i].ep, HANDLER, on_message, NULL);
	for (unsigned int i = 0; i < 20; i++) {
		uint32_t len = i * 1000 + 1;

		fill(from, len, i);
		EQUAL(urn_am_request(ends[0].ep, &ends[1].address, HANDLER, NULL, 0, from, len,
				     NULL),
		      0);
		until(&mail.answered, i + 1);
		EQUAL(mail.came, i + 1);
		EQUAL(mail.bytes, len);
		CHECK(memcmp(from, to, len) == 0);
		/* A peer reads what the handler wrote. */
		memset(from, 0, len);
		EQUAL(get(&sender, from, &target, to, len, URN_AM_AUTO), URN_AM_DONE);
		CHECK(memcmp(from, to, len) == 0);
	}
	take(&sender);
	take(&target);
}
