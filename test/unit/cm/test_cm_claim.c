/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The owner of a connection with a remote queue pair, in each state of the connection: only the
 * peer's answer makes it stand, nothing that a program does alone (cm/cm.h).
 */
#include "cm_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

static const struct {
	const char *name;
	uint32_t (*to)(void);
	enum urn_cm_claim own, other; /* the answer to its owner, and to another one */
} rows[] = {
	{"req_sent", to_req_sent, URN_CM_CLAIM_NONE, URN_CM_CLAIM_NONE},
	{"rep_rcvd", to_rep_rcvd, URN_CM_CLAIM_OWN, URN_CM_CLAIM_OTHER},
	{"active", to_active, URN_CM_CLAIM_OWN, URN_CM_CLAIM_OTHER},
	{"req_rcvd", to_req_rcvd, URN_CM_CLAIM_ASKED, URN_CM_CLAIM_NONE},
	{"rep_sent", to_rep_sent, URN_CM_CLAIM_ASKED, URN_CM_CLAIM_NONE},
	{"passive", to_passive, URN_CM_CLAIM_OWN, URN_CM_CLAIM_OTHER},
	{"dreq_sent", to_dreq_sent, URN_CM_CLAIM_OWN, URN_CM_CLAIM_OTHER},
	{"dreq_rcvd", to_dreq_rcvd, URN_CM_CLAIM_NONE, URN_CM_CLAIM_NONE},
	{"timewait", to_timewait, URN_CM_CLAIM_NONE, URN_CM_CLAIM_NONE},
	{"sidr_req_rcvd", to_sidr_req_rcvd, URN_CM_CLAIM_NONE, URN_CM_CLAIM_NONE},
};

static void
claims(void **state)
{
	struct urn_cm_owner other;
	uint8_t gid[16];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bench_make(64, 0);
		urn_cm_owner_init(&other, 0, &b);
		rows[i].to();
		memcpy(gid, b.peer, 16);
		if (urn_cm_claimed(b.cm, &b.o, gid, PEER_QPN) != rows[i].own ||
		    urn_cm_claimed(b.cm, &other, gid, PEER_QPN) != rows[i].other)
			fail_msg("%s: %u, %u", rows[i].name, urn_cm_claimed(b.cm, &b.o, gid, PEER_QPN),
				 urn_cm_claimed(b.cm, &other, gid, PEER_QPN));
		/* A connection says nothing of another queue pair, or of another adapter's. */
		assert_int_equal(urn_cm_claimed(b.cm, &b.o, gid, PEER_QPN + 1), URN_CM_CLAIM_NONE);
		gid[15]++;
		assert_int_equal(urn_cm_claimed(b.cm, &b.o, gid, PEER_QPN), URN_CM_CLAIM_NONE);
	}
}

/*
 * A connection is reported when it begins to stand: with the REP, the RTU, or the program's
 * call in place of the RTU.
 */
static void
begins_to_stand(void **state)
{
	struct urn_abi_cm_data p = {0};
	uint32_t id;

	(void)state;
	to_req_sent();
	assert_int_equal(b.stood, 0);
	bench_make(64, 0);
	to_rep_rcvd();
	assert_int_equal(b.stood, 1);
	bench_make(64, 0);
	to_passive();
	assert_int_equal(b.stood, 1);
	bench_make(64, 0);
	id = to_rep_sent();
	assert_int_equal(b.stood, 0);
	assert_int_equal(urn_cm_establish(b.cm, &b.o, id, &p, b.now), 0);
	assert_int_equal(b.stood, 1);
}

/* A connection whose program is gone belongs to nobody, however long its messages to the peer last. */
static void
owner_gone(void **state)
{
	struct urn_cm_owner other;

	(void)state;
	urn_cm_owner_init(&other, 0, &b);
	to_active();
	while (urn_cm_owner_goes(b.cm, &b.o, b.now))
		;
	assert_int_equal(urn_cm_claimed(b.cm, &other, b.peer, PEER_QPN), URN_CM_CLAIM_NONE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(claims, setup, teardown),
		cmocka_unit_test_setup_teardown(begins_to_stand, setup, teardown),
		cmocka_unit_test_setup_teardown(owner_gone, setup, teardown),
	};

	return cmocka_run_group_tests_name("cm_claim", tests, NULL, NULL);
}
