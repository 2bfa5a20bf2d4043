/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/explain.h"

#include "abi/queue.h"

#include <urnic/explain.h>

#include <stdio.h>

const char *
urn_explain_text(struct ibv_context *ctx, const struct ibv_wc *wc, char *text, size_t size)
{
	text[0] = '\0';
	/* Nobody is there to be asked, and the programs have a sentence of their own for that. */
	if (ctx != NULL && wc->status != IBV_WC_SUCCESS && wc->vendor_err != URN_VE_GONE)
		(void)urn_wc_explain(ctx, wc, text, size);
	return text;
}

void
urn_explain_print(const char *program, struct ibv_context *ctx, const struct ibv_wc *wc)
{
	char text[URN_EXPLAIN_TEXT];

	if (urn_explain_text(ctx, wc, text, sizeof(text))[0] != '\0')
		fprintf(stderr, "%s: %s\n", program, text);
}
