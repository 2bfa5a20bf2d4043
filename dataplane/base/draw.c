/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/draw.h"

#include "base/rnd.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

/* returns: 0 or an errno value */
static int
fill(struct urn_draw *d)
{
	ssize_t n = getrandom(d->word, sizeof(d->word), 0);

	if (n != (ssize_t)sizeof(d->word))
		return n < 0 ? errno : EIO;
	d->left = URN_DRAW_WORDS;
	return 0;
}

int
urn_draw_init(struct urn_draw *d, uint64_t seed)
{
	memset(d, 0, sizeof(*d));
	d->state = seed;
	d->seeded = seed != 0;
	return d->seeded ? 0 : fill(d);
}

uint64_t
urn_draw(struct urn_draw *d)
{
	/* A kernel that gave random numbers once always does (random(7)). If this one does not, a
	 * sequence from the last number, which is never given out itself, goes on. */
	if (!d->seeded && d->left == 1 && fill(d) != 0) {
		d->state = d->word[0];
		d->seeded = true;
	}
	return d->seeded ? urn_rnd_next(&d->state) : d->word[--d->left];
}
