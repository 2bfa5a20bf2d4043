/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "Did you mean": the best match of a list for a word that is not in it. Common typing errors are
 * letters left out, added, changed or swapped; other case, - for _; a part of the right word.
 */
#ifndef URN_NEAR_H
#define URN_NEAR_H

enum { URN_NEAR_HINT = 128 }; /* bytes of a hint, NUL included */

/* A search. */
struct urn_near {
	const char *word;  /* the word; "": it is too long to be compared */
	const char *best;  /* the best candidate so far, the caller's; NULL: nothing is near */
	unsigned int cost; /* edits that a better one has less than */
};

/* Begin a search for a word, which stays the caller's. */
void urn_near_begin(struct urn_near *near, const char *word);
/* Compare a candidate. The first of equally near ones is taken. */
void urn_near_try(struct urn_near *near, const char *candidate);

/* Ask for the nearest name, with a blank behind; "": nothing is near. out: room for it. returns:
 * out */
const char *urn_near_mean(const struct urn_near *near, char out[URN_NEAR_HINT]);
/*
 * Say what a person does about the word, behind a sentence that it is not there.
 *
 * lists: the command that lists what there is
 * out: set to the nearest name, if there is one, and that command
 */
void urn_near_hint(const struct urn_near *near, const char *lists, char out[URN_NEAR_HINT]);

#endif
