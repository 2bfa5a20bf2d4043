/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The standard error of a dataplane, which does not wait for its reader. A full pipe
 * would make its writer wait with stderr's lock, and so every thread with a message:
 * threads of DPDK's telemetry, which complain of each reader that went, and engines.
 */
#ifndef URNICD_ERROUT_H
#define URNICD_ERROUT_H

/*
 * From now on messages that find no room in stderr are lost; their number is printed when
 * there is room again. Does nothing without memory. Call before there are threads.
 */
void nicd_errout_open(void);

#endif
