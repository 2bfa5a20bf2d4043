/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and answers that the tests of repairing losses share. */
#ifndef URN_TEST_REPAIR_BENCH_H
#define URN_TEST_REPAIR_BENCH_H

#include "sack.h"

enum { MS = 1000000 };

extern const struct probe_config usual;

/* Post n WRITEs of one packet, and expect their frames. */
void writes(struct probe *p, uint32_t first, uint32_t n);
/* Expect that these WRITEs have completed, and nothing else has. */
void all_sent(struct probe *p, uint32_t first, uint32_t n);
/* Post a READ of a number of packets, to the offset from which it reads. */
void post_read(struct probe *p, uint32_t off, uint32_t packets, uint64_t wr_id);
/* Expect that the node asks for a number of packets from `remote` on. */
void expect_read(struct probe *p, uint32_t psn, uint32_t remote, uint32_t packets);
/* Put packet n of a response of `packets` that begins at PSN first; op 0: the opcode that is due there. */
void respond(struct probe *p, uint32_t first, uint32_t n, uint32_t packets, uint8_t op);

#endif
