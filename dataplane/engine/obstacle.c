/* SPDX-License-Identifier: BSD-3-Clause */
/* The reason why frames of a shard may not reach the wire. */
#include "engine/engine.h"
#include "pmd_glue/plug.h"
#include "transport/failure.h"

uint8_t
urn_shard_obstacle(void *ctx)
{
	const struct urn_port *port = ((const struct urn_shard *)ctx)->port;

	switch (urn_port_plugged(port)) {
	case URN_PORT_DOWN:
		return URN_OBSTACLE_PORT_DOWN;
	case URN_PORT_FAILED:
		return URN_OBSTACLE_PORT_FAILED;
	case URN_PORT_UP:
		break;
	}
	return __atomic_load_n(&port->link_up, __ATOMIC_RELAXED) ? URN_OBSTACLE_NONE
								 : URN_OBSTACLE_NO_LINK;
}
