/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection management through the provider that counts. */
#include "count_priv.h"

#include <errno.h>
#include <stdlib.h>

struct count_end {
	struct urn_cm_end front;
	struct urn_cm_end *below; /* NULL: the end is made up, with ids that don't exist */
};

#define CALLED(op) (count.cm[COUNT_CM(op)]++)

static struct urn_cm_end *
end_below(struct urn_cm_end *end)
{
	return ((struct count_end *)end)->below;
}

static struct urn_cm_end *
end_open(struct ibv_context *c)
{
	struct count_end *end = count_object(sizeof(*end));

	CALLED(open);
	if (!end)
		return NULL;
	end->front.fd = -1;
	if (count.made_up)
		return &end->front;
	if (urn_cm_end_open(&end->below, count_below(c)) != 0) {
		free(end);
		return NULL;
	}
	end->front.fd = urn_cm_end_fd(end->below);
	return &end->front;
}

static void
end_close(struct urn_cm_end *end)
{
	CALLED(close);
	urn_cm_end_close(end_below(end));
	free(end);
}

static int
end_listen(struct urn_cm_end *end, uint64_t service, uint64_t cookie, uint32_t backlog,
	   uint32_t *id)
{
	struct urn_cm_end *under = end_below(end);

	CALLED(listen);
	return under ? urn_cm_end_listen(under, service, cookie, backlog, id) : 0;
}

static int
end_connect(struct urn_cm_end *end, struct urn_abi_cm_connect *p, uint32_t *id)
{
	CALLED(connect);
	return end_below(end) ? urn_cm_end_connect(end_below(end), p, id) : 0;
}

static int
end_resolve(struct urn_cm_end *end, struct urn_abi_cm_connect *p, uint32_t *id)
{
	CALLED(resolve);
	return end_below(end) ? urn_cm_end_resolve(end_below(end), p, id) : 0;
}

static int
end_accept(struct urn_cm_end *end, uint32_t id, const struct urn_abi_cm_accept *p)
{
	CALLED(accept);
	return end_below(end) ? urn_cm_end_accept(end_below(end), id, p) : 0;
}

static int
end_reject(struct urn_cm_end *end, uint32_t id, const struct urn_abi_cm_reject *p)
{
	CALLED(reject);
	return end_below(end) ? urn_cm_end_reject(end_below(end), id, p) : 0;
}

static int
end_establish(struct urn_cm_end *end, uint32_t id, const void *data, uint32_t len)
{
	CALLED(establish);
	return end_below(end) ? urn_cm_end_establish(end_below(end), id, data, len) : 0;
}

static int
end_disconnect(struct urn_cm_end *end, uint32_t id, const void *data, uint32_t len)
{
	CALLED(disconnect);
	return end_below(end) ? urn_cm_end_disconnect(end_below(end), id, data, len) : 0;
}

static int
end_destroy(struct urn_cm_end *end, uint32_t id)
{
	CALLED(destroy);
	return end_below(end) ? urn_cm_end_destroy(end_below(end), id) : 0;
}

static int
end_event(struct urn_cm_end *end, struct urn_abi_cm_event *ev)
{
	CALLED(event);
	return end_below(end) ? urn_cm_end_event(end_below(end), ev) : EAGAIN;
}

const struct urn_verbs_cm_ops count_cm_ops = {
	.open = end_open,
	.close = end_close,
	.listen = end_listen,
	.connect = end_connect,
	.resolve = end_resolve,
	.accept = end_accept,
	.reject = end_reject,
	.establish = end_establish,
	.disconnect = end_disconnect,
	.destroy = end_destroy,
	.event = end_event,
};
