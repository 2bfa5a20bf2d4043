/* SPDX-License-Identifier: BSD-3-Clause */
/* The provider that counts, in lists of devices: its devices stand above others. */
#include "count_priv.h"

#include <string.h>

/* The origin of a device: `arg` is all that make() needs. */
static struct urn_verbs_origin
origin(struct count_device *d)
{
	return (struct urn_verbs_origin){.ops = &count_ops, .arg = d};
}

int
count_discover(void)
{
	int err = 0;

	count.calls[COUNT(discover)]++;
	if (count.fail)
		return urn_fail(count.fail, "the test wants it");
	for (int i = 0; i < COUNT_DEVICES && err == 0; i++) {
		struct count_device *d = &count.device[i];
		struct urn_verbs_origin from = origin(d);

		if (!d->open || d->offered)
			continue;
		err = urn_verbs_offer(&from);
		d->offered = err == 0;
	}
	return err;
}

void *
count_make(const struct urn_verbs_origin *from)
{
	const struct count_device *d = from->arg;

	count.calls[COUNT(make)]++;
	return d->open(d->arg);
}

void
count_register(void)
{
	static struct urn_provider provider = {.ops = &count_ops};
	static bool there;

	if (!there)
		urn_provider_add(&provider);
	there = true;
}

void
count_withdraw(void)
{
	for (int i = 0; i < COUNT_DEVICES; i++) {
		struct urn_verbs_origin from = origin(&count.device[i]);

		(void)urn_verbs_withdraw(&from);
		count.device[i].offered = false;
	}
}
