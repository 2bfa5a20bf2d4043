/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences about completions with errors (urnic/explain.h). */
#include <urnic/explain.h>

#include "abi/queue.h"
#include "verbs/front.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *
urn_vendor_err_name(uint32_t vendor_err)
{
	return urn_abi_vendor_err_name(vendor_err);
}

/* Say what the completion itself tells. */
static void
explain_alone(const struct ibv_wc *wc, char *text, size_t size)
{
	const char *more = urn_abi_vendor_err_text(wc->vendor_err);

	if (wc->vendor_err == URN_VE_NONE || more[0] == '\0')
		snprintf(text, size, "QP 0x%x: %s", wc->qp_num, ibv_wc_status_str(wc->status));
	else
		snprintf(text, size, "QP 0x%x: %s: %s", wc->qp_num, ibv_wc_status_str(wc->status),
			 more);
}

/* True when the library made the error up: the dataplane knows nothing of it. */
static bool
is_made_up(const struct ibv_wc *wc)
{
	return wc->vendor_err == URN_VE_GONE || wc->vendor_err == URN_VE_FAULT ||
	       wc->vendor_err == URN_VE_UNKNOWN;
}

int
urn_wc_explain(struct ibv_context *ctx, const struct ibv_wc *wc, char *text, size_t size)
{
	char record[URN_EXPLAIN_TEXT];
	int err;

	explain_alone(wc, text, size);
	if (wc->status == IBV_WC_SUCCESS || is_made_up(wc))
		return 0;
	if (urn_ops(ctx)->explain == NULL)
		return urn_fail(EOPNOTSUPP, "this device keeps no records of errors");
	err = urn_ops(ctx)->explain(ctx, wc->qp_num, wc->status, record, sizeof(record));
	if (err == 0)
		snprintf(text, size, "%s", record);
	else if (err == ENOENT && size > 0)
		snprintf(text + strlen(text), size - strlen(text),
			 "; no record is left: newer errors took its place, or the queue pair was "
			 "ended by its program or a disconnect");
	return err;
}
