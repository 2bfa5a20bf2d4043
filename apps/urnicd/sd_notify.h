/* SPDX-License-Identifier: BSD-3-Clause */
/* Telling the service manager what we are at (systemd's Type=notify). */
#ifndef URNICD_SD_NOTIFY_H
#define URNICD_SD_NOTIFY_H

/* Send one state, such as "READY=1". Nothing happens where nobody asked for it (NOTIFY_SOCKET). */
void nicd_notify(const char *state);

#endif
