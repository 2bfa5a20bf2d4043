/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/attr_words.h"

#include "abi/control.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* By bit; the numbers are those of enum ibv_qp_attr_mask. */
static const char *const names[] = {
	"STATE",
	"CUR_STATE",
	"EN_SQD_ASYNC_NOTIFY",
	"ACCESS_FLAGS",
	"PKEY_INDEX",
	"PORT",
	"QKEY",
	"AV",
	"PATH_MTU",
	"TIMEOUT",
	"RETRY_CNT",
	"RNR_RETRY",
	"RQ_PSN",
	"MAX_QP_RD_ATOMIC",
	"ALT_PATH",
	"MIN_RNR_TIMER",
	"SQ_PSN",
	"MAX_DEST_RD_ATOMIC",
	"PATH_MIG_STATE",
	"CAP",
	"DEST_QPN",
};

_Static_assert(1u << (sizeof(names) / sizeof(names[0]) - 1) == URN_QPM_DEST_QPN, "names by bit");

enum { REST = 15 }; /* bytes of a comma, a blank, and " and 20 more" with its NUL */

const char *
urn_qp_attr_words(uint32_t mask, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (unsigned int i = 0; mask; i++, mask &= mask - 1) {
		unsigned int bit = (unsigned int)__builtin_ctz(mask);
		const char *name = bit < sizeof(names) / sizeof(names[0]) ? names[bit] : "?";
		bool last = (mask & (mask - 1)) == 0;

		if (used + strlen("IBV_QP_") + strlen(name) + (last ? 3 : REST) > size) {
			snprintf(out + used, size - used, "%s%d more", used ? " and " : "",
				 __builtin_popcount(mask));
			break;
		}
		used += (size_t)snprintf(out + used, size - used, "%sIBV_QP_%s", i ? ", " : "",
					 name);
	}
	return out;
}
