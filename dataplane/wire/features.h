/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Features that an adapter may have besides RoCEv2: each is a bit of the link request
 * (wire/link.h), a word of the configuration and of reports, and a text for people. A row here is
 * all that these three need of a new feature.
 */
#ifndef URN_WIRE_FEATURES_H
#define URN_WIRE_FEATURES_H

#include <stddef.h>
#include <stdint.h>

/* X(ID, bit, "word", "text"), by bit. The page doc/inside/link.md lists the same. */
/* clang-format off */
#define URN_LINK_FEATURES(X) \
	X(SACK, 0, "sack", "selective acknowledgements and selective repeat") \
	X(WRITE_TWO, 1, "write_two", "writes whose last packet has an address of its own") \
	X(UC_WINDOW, 2, "uc_window", "UC receivers with slow memory tell how much they take")
/* clang-format on */

/*
 * URN_LINK_F_ID: the feature as a bit of a mask. A pair uses the features that both
 * offer; unknown bits are ignored.
 */
enum {
#define X(id, bit, word, text) URN_LINK_F_##id = 1 << (bit),
	URN_LINK_FEATURES(X)
#undef X
};
#define URN_LINK_FEATURE_OR(id, bit, word, text) | 1u << (bit)
#define URN_LINK_F_ALL (0u URN_LINK_FEATURES(URN_LINK_FEATURE_OR))
/* Features whose packets end a queue pair of a peer that does not know them: a response must have
 * named them, with the transaction id that its request had drawn. A request is easily forged. */
#define URN_LINK_F_PROVED ((uint32_t)URN_LINK_F_WRITE_TWO)

#define X(id, bit, word, text) \
	_Static_assert((bit) >= 0 && (bit) <= 30, #id ": bits of a positive int");
URN_LINK_FEATURES(X)
#undef X
enum {
#define X(id, bit, word, text) URN_LINK_FEATURE_##id,
	URN_LINK_FEATURES(X)
#undef X
	URN_LINK_FEATURE_COUNT /* features in the list */
};
_Static_assert(__builtin_popcount(URN_LINK_F_ALL) == URN_LINK_FEATURE_COUNT, "each feature has a bit of its own");

struct urn_feature {
	uint32_t mask;	  /* the one bit */
	const char *word; /* in the configuration and in reports; lower case with _ between words */
	const char *text; /* a line for people */
};

/* A list of features; constant. */
struct urn_features {
	const struct urn_feature *at; /* n of them, by bit */
	unsigned int n;
};

/* URN_LINK_FEATURES. */
extern const struct urn_features urn_link_features;

/* Find a feature by its word of n bytes. NULL: there is none */
const struct urn_feature *urn_feature_find(const struct urn_features *list, const char *word,
					   size_t n);

#endif
