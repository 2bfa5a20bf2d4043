/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of attributes (transport/attr_words.h): those of libibverbs, within any room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "abi/control.h"
#include "transport/attr_words.h"

#include <infiniband/verbs.h>

#include <stdio.h>
#include <string.h>

#define ATTR(name)          \
	{                   \
		name, #name \
	}

static const struct {
	uint32_t mask;
	const char *name;
} attrs[] = {
	ATTR(IBV_QP_STATE),
	ATTR(IBV_QP_CUR_STATE),
	ATTR(IBV_QP_EN_SQD_ASYNC_NOTIFY),
	ATTR(IBV_QP_ACCESS_FLAGS),
	ATTR(IBV_QP_PKEY_INDEX),
	ATTR(IBV_QP_PORT),
	ATTR(IBV_QP_QKEY),
	ATTR(IBV_QP_AV),
	ATTR(IBV_QP_PATH_MTU),
	ATTR(IBV_QP_TIMEOUT),
	ATTR(IBV_QP_RETRY_CNT),
	ATTR(IBV_QP_RNR_RETRY),
	ATTR(IBV_QP_RQ_PSN),
	ATTR(IBV_QP_MAX_QP_RD_ATOMIC),
	ATTR(IBV_QP_ALT_PATH),
	ATTR(IBV_QP_MIN_RNR_TIMER),
	ATTR(IBV_QP_SQ_PSN),
	ATTR(IBV_QP_MAX_DEST_RD_ATOMIC),
	ATTR(IBV_QP_PATH_MIG_STATE),
	ATTR(IBV_QP_CAP),
	ATTR(IBV_QP_DEST_QPN),
};

/* Each bit has the name that a program's source has for it. */
static void
names(void **state)
{
	char out[64];

	(void)state;
	for (size_t i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++)
		assert_string_equal(urn_qp_attr_words(attrs[i].mask, out, 64), attrs[i].name);
	assert_string_equal(urn_qp_attr_words(0, out, 64), "");
}

/* However little room there is, each attribute is named or counted, and nothing is written behind.
 */
static void
room(void **state)
{
	char out[512];

	(void)state;
	assert_string_equal(urn_qp_attr_words(URN_QPM_AV | URN_QPM_DEST_QPN, out, 40),
			    "IBV_QP_AV, IBV_QP_DEST_QPN");
	for (size_t size = 40; size < 300; size++)
		for (uint32_t mask = 1; mask < 1u << 21; mask = mask * 3 + 1) {
			int named = 0, more = 0;
			const char *at;

			memset(out, 'x', sizeof(out));
			(void)urn_qp_attr_words(mask, out, size);
			assert_true(strlen(out) < size);
			assert_int_equal(out[size], 'x');
			for (at = out; (at = strstr(at, "IBV_QP_")); at++)
				named++;
			at = strstr(out, " more");
			while (at && at > out && at[-1] >= '0' && at[-1] <= '9')
				at--;
			if (at)
				(void)sscanf(at, "%d", &more);
			assert_int_equal(named + more, __builtin_popcount(mask));
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
