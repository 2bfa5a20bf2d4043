/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of the devices on offer, and the table of providers that are there from the start. */
#include "attach/alloc.h"
#include "verbs/adapter/adapter.h"
#include "verbs/front.h"
#include "verbs/polled_errors.h"
#include "verbs/provider/registry.h"
#include "verbs/session/session.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* The only place that names providers. */
static struct urn_provider urn_provider_table[] = {
	{.ops = &urn_adapter_ops},
};
static struct urn_provider urn_provider_session = {.ops = &urn_session_ops};
static pthread_once_t urn_provider_once = PTHREAD_ONCE_INIT;

static void
urn_provider_add_table(void)
{
	size_t i;

	/* The program sees the virtual device, and not the adapters under it (FO-1). */
	if (urn_session_wanted()) {
		urn_provider_add(&urn_provider_session);
		return;
	}
	for (i = 0; i < sizeof(urn_provider_table) / sizeof(urn_provider_table[0]); i++)
		urn_provider_add(&urn_provider_table[i]);
}

/* fork() runs its handlers in the order opposite to their registration, and each takes locks: one
 * whose locks are taken before those of verbs, and held meanwhile, is registered behind this. */
int
ibv_fork_init(void)
{
	(void)urn_polled_errors_wanted();
	urn_registry_forks();
	urn_alloc_forks();
	urn_gone_forks();
	urn_session_forks();
	return 0;
}

struct ibv_device **
ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list;
	size_t n;
	int err;

	urn_registry_forks();
	(void)pthread_once(&urn_provider_once, urn_provider_add_table);
	err = urn_providers_discover();
	list = urn_offers_list(&n);
	if (list != NULL && err != 0) {
		/* A dataplane that does not answer is not the same as none. The text is set. */
		errno = err;
		if (n == 0) {
			free(list);
			list = NULL;
		}
	}
	if (num_devices != NULL)
		*num_devices = (int)n;
	return list;
}

void
ibv_free_device_list(struct ibv_device **list)
{
	size_t i;

	for (i = 0; list != NULL && list[i] != NULL; i++)
		urn_device_put((struct urn_device *)list[i]);
	free(list);
}

const char *
ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

int
ibv_get_device_index(struct ibv_device *device)
{
	(void)device;
	return -1; /* the kernel knows no such device */
}

__be64
ibv_get_device_guid(struct ibv_device *device)
{
	return htobe64(((struct urn_device *)device)->guid);
}

struct ibv_context *
ibv_open_device(struct ibv_device *ibv)
{
	struct urn_device *device = (struct urn_device *)ibv;
	const struct urn_verbs_ops *ops;
	void *made = urn_offer_make(device, &ops);

	return made != NULL ? urn_verbs_open_device(ops, made, device) : NULL;
}
