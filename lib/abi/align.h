/* SPDX-License-Identifier: BSD-3-Clause */
/* Cache lines: writes of a queue pair on those of its peer, and counts of stores (AW-3, AW-7). */
#ifndef URN_ABI_ALIGN_H
#define URN_ABI_ALIGN_H

#include <stdint.h>

/* Values of align_qp.line that are no number of bytes. */
enum urn_abi_align {
	URN_ALIGN_OFF = 0,  /* writes go as they are posted */
	URN_ALIGN_PEER = 1, /* on the line that the peer told; as posted while that is not known */
};

/* Lines that stores are counted for: 64, 128 and 256 bytes. */
enum { URN_ABI_STORES_LINES = 3 };

/* Lines of a region that placements stored to, by size of line; one packet is one placement. */
struct urn_abi_stores {
	uint64_t full[URN_ABI_STORES_LINES];	/* lines covered whole by a placement */
	uint64_t partial[URN_ABI_STORES_LINES]; /* lines touched by a placement, and not covered */
};
_Static_assert(sizeof(struct urn_abi_stores) == 48, "stores");

#endif
