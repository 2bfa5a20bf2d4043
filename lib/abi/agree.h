/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Library and dataplane are built apart and age apart, so each says which versions of the
 * interface it speaks, and which features it knows. Both ends of a HELLO come to their agreement
 * here: the newest version and all features that both have.
 *
 * A version changes when a struct of lib/abi changes its layout or its meaning. A feature is
 * an addition that the other end can do without: it gets a bit, and leaves the version alone.
 *
 * Version 6 is from before ranges and features: its peers leave `newest` 0, and have
 * URN_ABI_FEATURES_6 without a word.
 */
#ifndef URN_ABI_AGREE_H
#define URN_ABI_AGREE_H

#include "abi/urn_abi.h"

#include <errno.h>
#include <stdio.h>

/* The version from which on a HELLO names features. */
#define URN_ABI_VERSION_FEATURES 7u

/*
 * All features: X(NAME, bit, word, text). A bit keeps its meaning for ever, and is never given
 * out again.
 */
/* clang-format off */
#define URN_ABI_FEATURE_LIST(X) \
	X(CM,         0, "cm",         "connection management") \
	X(CONNECT_QP, 1, "connect-qp", "bringing a queue pair up by one call") \
	X(CM_EVENTS,  2, "cm-events",  "fetching several events of connection management at a time") \
	X(SHARE,      3, "share",      "sharing memory of urn_alloc()") \
	X(MSG,        4, "msg",        "messages by register sets") \
	X(AM,         5, "am",         "remote memory access by endpoints") \
	X(MCAST,      6, "mcast",      "multicast") \
	X(REPLACE_MR, 7, "replace-mr", "changing a region that keeps its keys") \
	X(IMPORT,     8, "import",     "importing devices, protection domains and regions") \
	X(BESIDE,     9, "beside",     "short messages beside their completions") \
	X(ALIGN,     10, "align",      "writes on the peer's cache lines") \
	X(LEAVE,     11, "leave",      "taking leave of a dataplane that does not answer") \
	X(ATOMICS,   12, "atomics",    "numbered logs of atomics") \
	X(EXPLAIN,   13, "explain",    "sentences about errors") \
	X(HEIRS,     14, "heirs",      "services that related programs share")
/* clang-format on */

enum urn_abi_feature {
#define X(name, bit, word, text) URN_ABI_FEATURE_##name = 1u << (bit),
	URN_ABI_FEATURE_LIST(X)
#undef X
};

/* Every feature of this release. */
#define X(name, bit, word, text) | URN_ABI_FEATURE_##name
enum { URN_ABI_FEATURES = 0 URN_ABI_FEATURE_LIST(X) };
#undef X

/* Features of every peer of version 6. */
enum {
	URN_ABI_FEATURES_6 = URN_ABI_FEATURE_CM | URN_ABI_FEATURE_CONNECT_QP |
			     URN_ABI_FEATURE_CM_EVENTS | URN_ABI_FEATURE_SHARE,
};

/* One end's part of a HELLO. */
struct urn_abi_offer {
	uint32_t oldest; /* the oldest version that this end speaks; never 0 */
	uint32_t newest; /* the newest one; 0: of version 6 or before, and speaks `oldest` alone */
	uint32_t features; /* bits of enum urn_abi_feature, and bits that only newer ends know */
};

/* The offer of this release. */
#define URN_ABI_OFFER                                             \
	((struct urn_abi_offer){.oldest = URN_ABI_VERSION_OLDEST, \
				.newest = URN_ABI_VERSION,        \
				.features = URN_ABI_FEATURES})

/* The outcome. */
struct urn_abi_agreed {
	uint32_t version;  /* the newest version that both ends speak */
	uint32_t features; /* bits that both ends know */
};

/* The text for people of one feature's bit; "" for a bit that this release does not know. */
static inline const char *
urn_abi_feature_text(uint32_t bit)
{
	switch (bit) {
#define X(name, at, word, text)      \
	case URN_ABI_FEATURE_##name: \
		return text;
		URN_ABI_FEATURE_LIST(X)
#undef X
	}
	return "";
}

/* The features of an end, also of one that does not name its own. */
static inline uint32_t
urn_abi_offer_features(const struct urn_abi_offer *o)
{
	return o->newest < URN_ABI_VERSION_FEATURES ? (uint32_t)URN_ABI_FEATURES_6 : o->features;
}

/* Write the sentence about two ends that share no version. `before`: the library told no range. */
static inline void
urn_abi_disagree(const struct urn_abi_offer *library, const struct urn_abi_offer *dataplane,
		 int before, char *why, size_t size)
{
	char to[2][16] = {"", ""};
	const char *todo = library->newest < dataplane->oldest ? "upgrade the library"
							       : "upgrade the dataplane";

	if (dataplane->newest != dataplane->oldest)
		snprintf(to[0], sizeof(to[0]), " to %u", dataplane->newest);
	if (library->newest != library->oldest)
		snprintf(to[1], sizeof(to[1]), " to %u", library->newest);
	snprintf(why, size,
		 "the dataplane speaks version%s %u%s of the interface, the library %u%s: %s",
		 to[0][0] ? "s" : "", dataplane->oldest, to[0], library->oldest, to[1],
		 before ? "use the two of one release" : todo);
}

/* The agreement with a library that has not asked yet, which is taken for one of version 6. */
static inline struct urn_abi_agreed
urn_abi_unasked(const struct urn_abi_offer *dataplane)
{
	return (struct urn_abi_agreed){
		.version = URN_ABI_VERSION_FEATURES - 1,
		.features = (uint32_t)URN_ABI_FEATURES_6 & urn_abi_offer_features(dataplane),
	};
}

/*
 * Agree on a version and on features. Any values will do for either end: they may come from a peer
 * that is not trusted.
 *
 * library, dataplane: their offers
 * out: set on success alone
 * why, size: on failure the sentence for people, cut to `size` bytes
 * returns: 0; EPROTO: the ranges have no version in common, or one of them is none
 */
static inline int
urn_abi_agree(const struct urn_abi_offer *library, const struct urn_abi_offer *dataplane,
	      struct urn_abi_agreed *out, char *why, size_t size)
{
	struct urn_abi_offer l = *library, d = *dataplane;

	l.newest = l.newest ? l.newest : l.oldest;
	d.newest = d.newest ? d.newest : d.oldest;
	if (l.oldest == 0 || l.oldest > l.newest || d.oldest == 0 || d.oldest > d.newest) {
		snprintf(why, size,
			 "the library offers versions %u to %u of the interface, the dataplane "
			 "%u to %u: that is no range",
			 l.oldest, l.newest, d.oldest, d.newest);
		return EPROTO;
	}
	if (l.newest < d.oldest || d.newest < l.oldest) {
		urn_abi_disagree(&l, &d, library->newest == 0, why, size);
		return EPROTO;
	}
	out->version = l.newest < d.newest ? l.newest : d.newest;
	out->features = urn_abi_offer_features(&l) & urn_abi_offer_features(&d);
	return 0;
}

#endif
