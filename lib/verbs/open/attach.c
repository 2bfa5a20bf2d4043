/* SPDX-License-Identifier: BSD-3-Clause */
/* The public calls of urnic/attach.h that open an adapter by its channel, or put it on offer. */
#include "attach/remote.h"
#include "verbs/adapter/adapter.h"
#include "verbs/front.h"

#include <urnic/attach.h>

#include <errno.h>

struct ibv_context *
urn_attach_open(struct urn_abi_channel *channel)
{
	if (channel == NULL) {
		urn_fail(EINVAL, "no channel to open a context on");
		return NULL;
	}
	return urn_verbs_open(&urn_adapter_ops, channel);
}

struct ibv_context *
urn_attach_connect(const char *path, const char *node)
{
	struct urn_abi_channel *channel = urn_remote_attach(path, node);

	return channel != NULL ? urn_attach_open(channel) : NULL;
}

int
urn_attach_offer(urn_attach_make_fn make, void *arg)
{
	struct urn_verbs_origin from = urn_adapter_origin(make, arg);

	return urn_verbs_offer(&from);
}

int
urn_attach_withdraw(urn_attach_make_fn make, void *arg)
{
	struct urn_verbs_origin from = urn_adapter_origin(make, arg);

	return urn_verbs_withdraw(&from);
}
