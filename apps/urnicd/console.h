/* SPDX-License-Identifier: BSD-3-Clause */
/* The console of urnicd -i: commands from the standard input. */
#ifndef URNICD_CONSOLE_H
#define URNICD_CONSOLE_H

#include "admin.h"

/*
 * Take commands until quit, the end of the input, or a signal (urn_stop_requested()).
 * At a terminal lines are edited and completed (rte_cmdline); else each line is
 * a command, and the next one follows even after a failure. returns: number of failed
 * commands, at a terminal 0; -1 with *err
 */
int nicd_console(struct nicd_admin *a, struct urn_err *err);

#endif
