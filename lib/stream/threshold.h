/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The size from which on a transfer goes by zero copy (SF-9). Each end has one for its source and
 * one for its sink, and moves both by what the other end does.
 */
#ifndef URN_STREAM_THRESHOLD_H
#define URN_STREAM_THRESHOLD_H

#include <stdbool.h>
#include <stdint.h>

#define URN_ST_INFINITE UINT64_MAX /* value of a threshold: BCopy only */

enum {
	URN_ST_DOWN_AFTER =
		16, /* transfers that the threshold kept from zero copy, before it halves */
};

/* A threshold. */
struct urn_st_threshold {
	uint64_t value;	  /* bytes, floor to ceiling; URN_ST_INFINITE: nothing is large enough */
	uint64_t floor;	  /* bytes; at least 1 */
	uint64_t ceiling; /* bytes */
	bool frozen;	  /* value stays; an infinite one always does */
	uint32_t kept;	  /* transfers of floor or more that stayed below value since it moved */
};

/* True when the numbers are those of a threshold. */
bool urn_st_threshold_ok(const struct urn_st_threshold *t);
/* Double the value, up to the ceiling. returns: true when it moved */
bool urn_st_threshold_raise(struct urn_st_threshold *t);
/* Double the value until it is over `bytes`, up to the ceiling. returns: true when it moved */
bool urn_st_threshold_raise_over(struct urn_st_threshold *t, uint64_t bytes);
/* Halve the value, down to the floor. returns: true when it moved */
bool urn_st_threshold_lower(struct urn_st_threshold *t);
/*
 * A transfer went by BCopy because of the threshold. Many of them lower it, so that a value that
 * was raised long ago is tried again.
 *
 * bytes: of the transfer
 * returns: true when the value moved
 */
bool urn_st_threshold_kept(struct urn_st_threshold *t, uint64_t bytes);

#endif
