/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The registry: providers, the devices that they put on offer, and references to these. Providers
 * add to it (provider.h); the calls here are for those that list and open devices.
 */
#ifndef URN_VERBS_REGISTRY_H
#define URN_VERBS_REGISTRY_H

#include "verbs/provider/provider.h"

struct urn_offer;

/*
 * A device that lists and contexts show; lives until the last reference goes.
 * Programs' provider libraries look behind struct ibv_device for their own
 * operations, and must find zeros there.
 */
struct urn_device {
	struct ibv_device ibv;
	uint8_t zeros[512];
	uint64_t guid;		 /* host order */
	uint32_t refs;		 /* lists and contexts; under the registry's lock */
	struct urn_offer *offer; /* NULL: not on offer; under the registry's lock */
};

/* Make a device that is not on offer, with one reference. returns: NULL with errno and text set */
struct urn_device *urn_device_make(const struct urn_verbs_id *id);
/* Give one reference to a device back. */
void urn_device_put(struct urn_device *device);

/* Keep the registry's locks usable in children of fork() from now on. */
void urn_registry_forks(void);
/* Ask all providers for devices. returns: 0, or the first failure's errno value, with its text */
int urn_providers_discover(void);
/*
 * Make a list of the devices on offer, which ends with NULL, with one reference to each.
 *
 * n: set to the number of devices
 * returns: the list, which free() takes; NULL with errno and text set
 */
struct ibv_device **urn_offers_list(size_t *n);
/*
 * Ask the origin of a device on offer for what a context is opened over.
 *
 * ops: set to the table of the device's provider, whose open() takes the result
 * returns: the result, and the caller has one more reference to the device; NULL with errno
 *          and text set (ENODEV: the device is no longer on offer)
 */
void *urn_offer_make(struct urn_device *device, const struct urn_verbs_ops **ops);

#endif
