/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * URN_CTL_EXPLAIN: the sentence about the last error of a queue pair. The dataplane writes it from
 * a record that it keeps for each error that ended a request or a queue pair.
 */
#ifndef URN_ABI_EXPLAIN_H
#define URN_ABI_EXPLAIN_H

#include <stddef.h>
#include <stdint.h>

/* Request; the handle is the QPN, also of a queue pair that is gone. */
struct urn_abi_explain {
	/* enum urn_abi_wc_status of the completion: the newest error of that status is meant; of
	 * URN_WC_WR_FLUSH_ERR: the error that ended the queue pair, or put it into SQE. Above any
	 * status: the queue pair's newest error */
	uint32_t status;
};

/* Reply. ENOENT: no error of such a queue pair of this client's is on record. */
struct urn_abi_explained {
	uint64_t ago_ns;     /* ns since the error */
	uint16_t vendor_err; /* enum urn_abi_vendor_err of the error */
	uint8_t status; /* enum urn_abi_wc_status of the error; URN_WC_SUCCESS: it has no completion
			 */
	uint8_t rsvd[5];
	char text[328]; /* the sentence, ended by a zero */
};
_Static_assert(sizeof(struct urn_abi_explained) == 344, "fits into a reply");
_Static_assert(offsetof(struct urn_abi_explained, text) == 16, "explained");

#endif
