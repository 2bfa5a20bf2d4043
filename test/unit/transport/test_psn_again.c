/* SPDX-License-Identifier: BSD-3-Clause */
/* transport/psn_again.c: packets of a lost gap (doc/inside/recovery.md). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/psn_again.h"

#include <string.h>

#define BASE 0xfffff8u /* the PSN wraps */
#define P(n) urn_psn_add(BASE, (uint32_t)(n))

enum { NOW = 7 };

/* A WRITE of 4 PSNs, a READ of 8, local work, a WRITE of 6, a READ of 2; all sent. */
struct sender {
	struct urn_psn_tx tx;
	struct urn_work work[5];
};

static void
start(struct sender *l)
{
	static const uint32_t npsn[5] = {4, 8, 0, 6, 2};

	memset(l, 0, sizeof(*l));
	urn_psn_tx_start(&l->tx, P(0));
	for (unsigned int i = 0; i < 5; i++) {
		urn_psn_tx_append(&l->tx, &l->work[i], npsn[i]);
		l->work[i].state = URN_WORK_SENT;
		l->work[i].kind = i == 1 || i == 4 ? URN_WK_FETCH : 0;
		l->tx.next = urn_psn_add(l->tx.next, npsn[i]);
	}
	l->tx.cur.psn = l->tx.next;
	l->tx.fetch = &l->work[1];
}

static struct urn_gap
lost(uint32_t first, uint32_t end)
{
	return (struct urn_gap){.first = P(first), .end = P(end), .cur = P(first), .state = URN_GAP_LOST};
}

static void
requests(void **state)
{
	struct urn_gap g = lost(3, 14);
	struct sender l;

	(void)state;
	start(&l);
	assert_ptr_equal(urn_psn_again(&l.tx, &g, NULL), &l.work[0]);
	urn_board_asked(&g, P(4), NOW);
	assert_ptr_equal(urn_psn_again(&l.tx, &g, &l.work[0]), &l.work[1]);
	urn_board_asked(&g, P(12), NOW); /* a READ goes whole */
	assert_ptr_equal(urn_psn_again(&l.tx, &g, &l.work[1]), &l.work[3]);
	urn_board_asked(&g, P(14), NOW);
	assert_null(urn_psn_again(&l.tx, &g, &l.work[3]));
	assert_int_equal(g.state, URN_GAP_ASKED);
}

static void
requests_left_to_others(void **state)
{
	struct urn_gap g = lost(3, 14);
	struct sender l;

	(void)state;
	start(&l);
	l.tx.cur.psn = P(3); /* everything from here on is being repeated */
	assert_null(urn_psn_again(&l.tx, &g, NULL));
	start(&l);
	g = lost(20, 21); /* behind all work */
	l.tx.cur.psn = P(30);
	assert_null(urn_psn_again(&l.tx, &g, NULL));
	g = lost(3, 14);
	g.state = URN_GAP_SEEN;
	assert_null(urn_psn_again(&l.tx, &g, NULL));
}

static void
responses(void **state)
{
	struct urn_gap g = lost(5, 20);
	uint32_t first = 0, end = 0;
	struct sender l;

	(void)state;
	start(&l);
	l.work[1].accepted = 3; /* PSN 6 has come */
	assert_ptr_equal(urn_psn_again_response(&l.tx, &g, NULL, &first, &end), &l.work[1]);
	assert_int_equal(first, P(7));
	assert_int_equal(end, P(12));
	urn_board_asked(&g, end, NOW);
	assert_ptr_equal(urn_psn_again_response(&l.tx, &g, &l.work[1], &first, &end), &l.work[4]);
	assert_int_equal(first, P(18));
	assert_int_equal(end, P(20));

	g = lost(8, 10); /* within a READ */
	assert_ptr_equal(urn_psn_again_response(&l.tx, &g, NULL, &first, &end), &l.work[1]);
	assert_int_equal(first, P(8));
	assert_int_equal(end, P(10));
}

static void
responses_not_waited_for(void **state)
{
	struct urn_gap g = lost(12, 18); /* WRITEs have none */
	uint32_t first, end;
	struct sender l;

	(void)state;
	start(&l);
	assert_null(urn_psn_again_response(&l.tx, &g, NULL, &first, &end));
	g = lost(4, 12);
	l.work[1].accepted = 8;
	assert_null(urn_psn_again_response(&l.tx, &g, NULL, &first, &end));
	l.work[1].accepted = 0;
	l.work[1].state = URN_WORK_BROKEN;
	assert_null(urn_psn_again_response(&l.tx, &g, NULL, &first, &end));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests),
		cmocka_unit_test(requests_left_to_others),
		cmocka_unit_test(responses),
		cmocka_unit_test(responses_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
