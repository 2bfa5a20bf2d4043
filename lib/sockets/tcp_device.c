/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device of the program's streams: an adapter, or with URNIC_SESSION the virtual device above
 * two adapters (doc/reference/sessions.md), and its addresses. Datagram sockets use an adapter in
 * both cases (net.c).
 */
#include "sockets/tcp.h"

#include <urnic/attach.h>

#include <stdlib.h>
#include <string.h>

/* True when an environment variable has a value. */
static bool
urn_tcp_is_set(const char *name)
{
	const char *value = secure_getenv(name);

	return value != NULL && value[0] != '\0';
}

bool
urn_tcp_in_session(void)
{
	return urn_tcp_is_set("URNIC_SESSION");
}

struct ibv_context *
urn_tcp_device_open(void)
{
	struct ibv_context *ctx = NULL;
	struct ibv_device **list;
	int n = 0;

	if (!urn_tcp_in_session())
		return urn_attach_connect(NULL, NULL);
	/* The list has the virtual device alone. */
	list = ibv_get_device_list(&n);
	if (list != NULL && n == 1)
		ctx = ibv_open_device(list[0]);
	if (list != NULL)
		ibv_free_device_list(list);
	return ctx;
}

/* True when an address of the virtual device, all of which outlive its adapters, stands in a
 * relation to another address. */
static bool
urn_tcp_some_gid(bool (*is)(const uint8_t own[16], const struct urn_addr *a),
		 const struct urn_addr *a)
{
	const struct urn_stream_node *n = urn_tcp_node();
	union ibv_gid own;
	bool found = false;
	int i;

	for (i = 0; n != NULL && i < n->port.gid_tbl_len && !found; i++)
		found = ibv_query_gid(n->ctx, URN_SH_PORT, i, &own) == 0 && is(own.raw, a);
	return found;
}

static bool
urn_tcp_same_gid(const uint8_t own[16], const struct urn_addr *a)
{
	return memcmp(own, a->gid, sizeof(a->gid)) == 0;
}

bool
urn_tcp_net_has(const struct urn_addr *a)
{
	if (!urn_tcp_in_session() || urn_tcp_is_set("URNIC_SOCKETS_NET"))
		return urn_net_has(a);
	return urn_tcp_some_gid(urn_net_near, a);
}

bool
urn_tcp_net_own(const struct urn_addr *a)
{
	if (!urn_tcp_in_session())
		return urn_net_own(a);
	return urn_tcp_net_has(a) && urn_tcp_some_gid(urn_tcp_same_gid, a);
}
