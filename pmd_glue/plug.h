/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cable of a port that runs, pulled and plugged in again by a person. Unlike
 * urn_port_stop(), urn_port_plug() takes nothing from the driver: no descriptor is given
 * back and no queue is set up anew, so any thread may call it while others poll.
 */
#ifndef URN_PMD_GLUE_PLUG_H
#define URN_PMD_GLUE_PLUG_H

#include "pmd_glue/port.h"

/*
 * Pull the cable, or plug it in. While the cable is pulled no frame comes in or goes
 * out: frames that the device receives are dropped, frames to be sent are not taken,
 * and the link is down (urn_port_poll_link()); of two ports joined by rings both links
 * are down. URN_PORT_DOWN takes the device's own link down, too, where its driver can.
 * returns: 0, or -1 with *err: the driver does not bring the link up
 */
int urn_port_plug(struct urn_port *port, enum urn_port_plug plug, struct urn_err *err);
/* State of the port's cable now. */
enum urn_port_plug urn_port_plugged(const struct urn_port *port);
/* "up", "down" or "failed" */
const char *urn_port_plug_name(enum urn_port_plug plug);

#endif
