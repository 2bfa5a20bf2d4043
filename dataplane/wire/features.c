/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/features.h"

#include <string.h>

static const struct urn_feature features[] = {
#define X(id, bit, word, text) {URN_LINK_F_##id, word, text},
	URN_LINK_FEATURES(X)
#undef X
};

const struct urn_features urn_link_features = {features, sizeof(features) / sizeof(features[0])};

const struct urn_feature *
urn_feature_find(const struct urn_features *list, const char *word, size_t n)
{
	for (unsigned int i = 0; i < list->n; i++)
		if (strlen(list->at[i].word) == n && memcmp(list->at[i].word, word, n) == 0)
			return &list->at[i];
	return NULL;
}
