/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells the service manager our state (systemd's Type=notify). */
#ifndef URNICD_SD_NOTIFY_H
#define URNICD_SD_NOTIFY_H

/* Send one state, such as "READY=1". Does nothing without NOTIFY_SOCKET in the environment. */
void nicd_notify(const char *state);

#endif
