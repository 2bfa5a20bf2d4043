/* SPDX-License-Identifier: BSD-3-Clause */
/* base/fair.h: clients that hoard leave entries of a pool to those that come later (DB-6). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fair.h"
#include "base/rnd.h"

enum { CLIENTS = 64 };

struct pool {
	struct urn_fair fair;
	uint32_t size, left;
};

static void
make(struct pool *p, uint32_t size)
{
	urn_fair_init(&p->fair, size);
	p->size = p->left = size;
}

/* A client takes entries while it may. returns: how many it holds then */
static uint32_t
hoard(struct pool *p, uint32_t held)
{
	while (urn_fair_has(&p->fair, p->left, held)) {
		assert_true(p->left > 0);
		p->left--;
		held++;
	}
	return held;
}

/* Levels of the rule. */
static uint32_t
levels(const struct urn_fair *f)
{
	uint32_t n = 0;

	while (n < URN_FAIR_LEVELS && f->least[n] != UINT32_MAX)
		n++;
	return n;
}

/* The rule as the page says it, at the edges of its levels. */
static void
rule(void **state)
{
	struct pool p;

	(void)state;
	make(&p, 65536);
	assert_int_equal(p.fair.kept, 8192);
	assert_int_equal(levels(&p.fair), 12);
	assert_true(urn_fair_has(&p.fair, 8192 + 501, 4000));
	assert_false(urn_fair_has(&p.fair, 8192 + 500, 4000));
	assert_false(urn_fair_has(&p.fair, 8192, 2048));
	assert_true(urn_fair_has(&p.fair, 8192, 2047));
	assert_true(urn_fair_has(&p.fair, 8192 * 11 / 12 + 1, 1024));
	assert_false(urn_fair_has(&p.fair, 8192 * 11 / 12, 1024));
	assert_true(urn_fair_has(&p.fair, 8192 / 12 + 1, 1));
	assert_false(urn_fair_has(&p.fair, 8192 / 12, 1));
	assert_true(urn_fair_has(&p.fair, 1, 0));
	assert_false(urn_fair_has(&p.fair, 0, 0));
	assert_false(urn_fair_has(&p.fair, 65536, UINT32_MAX)); /* no client holds so many */
}

static void
alone(void **state)
{
	struct pool p;

	(void)state;
	for (uint32_t size = 8; size < 1 << 24; size = size * 5 / 3) {
		make(&p, size);
		assert_in_range(hoard(&p, 0), size / 9 * 7, size / 9 * 7 + 8);
	}
}

/* Client n that comes after others, which keep all they got, gets its part at once. */
static void
one_after_another(void **state)
{
	static const uint32_t size[] = {64, 100, 1000, 1024, 4096, 16448, 65536, 100000, 1 << 20};
	struct pool p;

	(void)state;
	for (unsigned int i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		make(&p, size[i]);
		for (uint32_t n = 1; n <= size[i]; n++)
			assert_true((uint64_t)(hoard(&p, 0) + 1) * n * levels(&p.fair) >
				    p.fair.kept);
	}
}

/* The table in doc/inside/messages.md. */
static void
documented(void **state)
{
	static const struct {
		uint32_t before, gets;
	} row[] = {{0, 50973}, {1, 5664}, {2, 1390}, {3, 683}, {4, 512},
		   {16, 64},   {100, 8},  {1000, 1}, {1370, 0}};
	struct pool p;
	uint32_t n = 0;

	(void)state;
	make(&p, 65536);
	for (unsigned int i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		for (; n < row[i].before; n++)
			hoard(&p, 0);
		assert_int_equal(hoard(&p, 0), row[i].gets);
		n++;
	}
}

/* Entries that n clients leave if they come one after another. */
static uint32_t
least_left(uint32_t size, uint32_t n)
{
	struct pool p;

	make(&p, size);
	while (n--)
		hoard(&p, 0);
	return p.left;
}

/* Clients take and give back at random, also all they can and all they have. */
static void
at_random(struct pool *p, uint32_t held[], uint32_t n, uint64_t *seed)
{
	uint32_t i = (uint32_t)(urn_rnd_next(seed) % n),
		 some = (uint32_t)(urn_rnd_next(seed) % 200);

	switch (urn_rnd_next(seed) % 4) {
	case 0:
		held[i] = hoard(p, held[i]);
		return;
	case 1:
		some = some < held[i] ? some : held[i];
		held[i] -= some;
		p->left += some;
		return;
	case 2:
		p->left += held[i];
		held[i] = 0;
		return;
	default:
		for (; some && urn_fair_has(&p->fair, p->left, held[i]); some--) {
			held[i]++;
			p->left--;
		}
	}
}

/* n clients that do anything leave as much as if they came one after another. */
static void
any_order(void **state)
{
	uint32_t held[CLIENTS], least, next;
	uint64_t seed = 1;
	struct pool p;

	(void)state;
	for (uint32_t n = 1; n <= CLIENTS; n = n * 3 / 2 + 1) {
		least = least_left(4096, n);
		next = least - least_left(4096, n + 1);
		make(&p, 4096);
		for (uint32_t i = 0; i < n; i++)
			held[i] = 0;
		for (unsigned int i = 0; i < 20000; i++) {
			uint32_t newcomer, left;

			at_random(&p, held, n, &seed);
			assert_true(p.left >= least);
			left = p.left;
			newcomer = hoard(&p, 0);
			assert_true(newcomer >= next);
			p.left = left;
		}
	}
}

/* Clients take turns, an entry each, while any of them may. */
static void
take_turns(struct pool *p, uint32_t held[], uint32_t n)
{
	bool any = true;

	while (any) {
		any = false;
		for (uint32_t i = 0; i < n; i++)
			if (urn_fair_has(&p->fair, p->left, held[i])) {
				held[i]++;
				p->left--;
				any = true;
			}
	}
}

/* Clients whose entries come back get the same in the end, whoever came first. */
static void
busy_clients_are_equal(void **state)
{
	uint32_t held[4] = {0};
	struct pool p;

	(void)state;
	make(&p, 65536);
	for (unsigned int i = 0; i < 4; i++)
		held[i] = hoard(&p, 0);
	for (unsigned int turn = 0; turn < 100; turn++) {
		for (unsigned int i = 0; i < 4; i++) {
			p.left += held[i] / 4;
			held[i] -= held[i] / 4;
		}
		take_turns(&p, held, 4);
	}
	for (unsigned int i = 0; i < 4; i++)
		assert_in_range(held[i], 13500, 14500);
}

/* ---- users */

/* A client, whose user's clients hold `all`, takes entries while it may. returns: how many it took
 */
static uint32_t
hoard_as(struct pool *p, uint32_t *all)
{
	uint32_t held = 0;

	for (; urn_fair_user_has(&p->fair, p->left, held, *all); held++) {
		assert_true(p->left > 0);
		p->left--;
		++*all;
	}
	return held;
}

/* A user with one client has what a client has. */
static void
user_of_one(void **state)
{
	struct pool p;

	(void)state;
	for (uint32_t size = 1; size < 1 << 20; size = size * 5 / 3 + 1) {
		make(&p, size);
		for (uint32_t left = 0; left < size; left += size / 97 + 1)
			for (uint32_t held = 0; held <= size - left; held += held / 3 + 1)
				assert_int_equal(urn_fair_has(&p.fair, left, held),
						 urn_fair_user_has(&p.fair, left, held, held));
	}
}

/* A user with any number of clients leaves 2 entries of 17, less the rounding of levels. */
static void
user_of_many(void **state)
{
	struct pool p;

	(void)state;
	for (uint32_t size = 64; size < 1 << 20; size = size * 5 / 3) {
		uint32_t all = 0;

		make(&p, size);
		for (uint32_t n = 0; n < size; n++)
			hoard_as(&p, &all);
		assert_true(17ull * p.left + 34 >= 2ull * size);
	}
}

/* Users come one after another, each with many clients that take all they can: the n-th user gets
 * half of the n-th client's part at least, and so does the n-th client of one user. */
static void
users_in_turn(void **state)
{
	enum { MANY = 300 };
	static const uint32_t size[] = {1024, 4096, 16448, 65536, 1 << 20};
	struct pool p;

	(void)state;
	for (unsigned int i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		uint32_t all = 0;

		make(&p, size[i]);
		for (uint32_t n = 1; n <= 100; n++) {
			all = 0;
			for (uint32_t c = 0; c < MANY; c++)
				hoard_as(&p, &all);
			assert_true(2ull * (all + 1) * n * levels(&p.fair) > p.fair.kept);
		}
		make(&p, size[i]);
		all = 0;
		for (uint32_t n = 1; n <= 100; n++)
			assert_true(2ull * (hoard_as(&p, &all) + 1) * n * levels(&p.fair) >
				    p.fair.kept);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule),
		cmocka_unit_test(alone),
		cmocka_unit_test(one_after_another),
		cmocka_unit_test(documented),
		cmocka_unit_test(user_of_one),
		cmocka_unit_test(user_of_many),
		cmocka_unit_test(users_in_turn),
		cmocka_unit_test(any_order),
		cmocka_unit_test(busy_clients_are_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
