/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SIGHUP: another program asks for the log's file to be opened again, and for the configuration to
 * be read again. The hang-up of urnicd's own terminal, which sends SIGHUP too, ends urnicd.
 */
#ifndef URNICD_HANGUP_H
#define URNICD_HANGUP_H

#include <stdbool.h>

/* Catch SIGHUP from now on, unless it is ignored, as under nohup. Call once, after
 * urn_stop_install(). returns: 0, or -1 with errno */
int nicd_hangup_install(void);
/* Take the request. returns: true: SIGHUP came since the last call, and the terminal is there */
bool nicd_hangup_taken(void);

#endif
