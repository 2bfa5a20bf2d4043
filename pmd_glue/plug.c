/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmd_glue/plug.h"

#include "pmd_glue/bond.h"
#include "pmd_glue/family.h"

#include <rte_errno.h>

#include <errno.h>
#include <pthread.h>

/* plug_lock serialises urn_port_plug(): two people may handle one cable. Slow path. */
static pthread_mutex_t plug_lock = PTHREAD_MUTEX_INITIALIZER;

enum urn_port_plug
urn_port_plugged(const struct urn_port *port)
{
	return (enum urn_port_plug)__atomic_load_n(&port->plug, __ATOMIC_RELAXED);
}

const char *
urn_port_plug_name(enum urn_port_plug plug)
{
	static const char *const names[] = {
		[URN_PORT_UP] = "up",
		[URN_PORT_DOWN] = "down",
		[URN_PORT_FAILED] = "failed",
	};

	return plug <= URN_PORT_FAILED ? names[plug] : "?";
}

/* Set the device's own link. returns: 0, or the driver's error; 0 also when the driver can't set it */
static int
device_link(const struct urn_port *port, bool up)
{
	int rc = up ? rte_eth_dev_set_link_up(port->id) : rte_eth_dev_set_link_down(port->id);

	return rc == -ENOTSUP ? 0 : rc;
}

static int
plug_in(struct urn_port *port, struct urn_err *err)
{
	int rc = urn_port_plugged(port) == URN_PORT_DOWN ? device_link(port, true) : 0;

	if (rc != 0) {
		urn_err_set(err, "the driver does not bring the link up: %s", rte_strerror(-rc));
		urn_err_name(err, &port->cfg);
		return -1;
	}
	__atomic_store_n(&port->plug, (uint8_t)URN_PORT_UP, __ATOMIC_RELEASE);
	if (__atomic_load_n(&port->started, __ATOMIC_ACQUIRE))
		__atomic_store_n(&port->direct, !port->family->faults, __ATOMIC_RELEASE);
	return 0;
}

int
urn_port_plug(struct urn_port *port, enum urn_port_plug plug, struct urn_err *err)
{
	int rc = 0;

	pthread_mutex_lock(&plug_lock);
	if (plug == urn_port_plugged(port)) {
		pthread_mutex_unlock(&plug_lock);
		return 0;
	}
	if (plug == URN_PORT_UP) {
		rc = plug_in(port, err);
	} else {
		/* Release: a burst that sees one field sees the other. */
		__atomic_store_n(&port->plug, (uint8_t)plug, __ATOMIC_RELEASE);
		__atomic_store_n(&port->direct, false, __ATOMIC_RELEASE);
		/* Frames stop even when the driver reports an error. */
		if (plug == URN_PORT_DOWN)
			(void)device_link(port, false);
	}
	if (rc == 0 && port->family->plugged != NULL)
		port->family->plugged(port, plug == URN_PORT_UP);
	if (port->bond != NULL)
		urn_bond_settle(port->bond);
	pthread_mutex_unlock(&plug_lock);
	return rc;
}
