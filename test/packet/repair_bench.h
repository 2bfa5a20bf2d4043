/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of repairing losses post, and how their peer answers. */
#ifndef URN_TEST_REPAIR_BENCH_H
#define URN_TEST_REPAIR_BENCH_H

#include "sack.h"

enum { MS = 1000000 };

extern const struct probe_config usual;

/* n WRITEs of one packet, looked at. */
void writes(struct probe *p, uint32_t first, uint32_t n);
/* They have completed, and nothing else has. */
void all_sent(struct probe *p, uint32_t first, uint32_t n);
/* A READ of so many packets, to the offset from which it reads. */
void post_read(struct probe *p, uint32_t off, uint32_t packets, uint64_t wr_id);
/* The node asks for so many packets from `remote` on. */
void expect_read(struct probe *p, uint32_t psn, uint32_t remote, uint32_t packets);
/* Packet n of a response of `packets` that begins at PSN first; op 0: as it is due there. */
void respond(struct probe *p, uint32_t first, uint32_t n, uint32_t packets, uint8_t op);

#endif
