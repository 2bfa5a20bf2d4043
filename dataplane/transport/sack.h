/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading a selective acknowledgement from the wire: the runs of PSNs that the peer keeps ahead of
 * their turn, in order (doc/inside/recovery.md). The functions are pure.
 */
#ifndef URN_TRANSPORT_SACK_H
#define URN_TRANSPORT_SACK_H

#include "transport/psn.h"
#include "wire/hdr.h"

#include <stdbool.h>
#include <stdint.h>

/* A place in a selective acknowledgement; begins as all zeros. */
struct urn_sack_run {
	uint32_t at;         /* bits of the bitmap that were read, and then ranges */
	uint32_t first, end; /* PSNs of this run, end exclusive; valid after urn_sack_next() */
};

/* The PSN that the peer accepts next: it has all before. */
uint32_t urn_sack_expected(const struct urn_sack *s);
/* Read the next run of kept PSNs. s: one that is sound. returns: false when there is none */
bool urn_sack_next(const struct urn_sack *s, struct urn_sack_run *run);
/* True when all PSNs that are named lie before `next`, the first PSN never sent, and runs are in order. */
bool urn_sack_sound(const struct urn_sack *s, uint32_t next);

#endif
