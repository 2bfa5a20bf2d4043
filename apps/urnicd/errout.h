/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The standard error of a dataplane, which waits for nobody who reads it. A pipe that is
 * full makes its writer wait, with stderr's lock, and so everybody who has something to
 * say: threads of DPDK's telemetry, which complain of each reader that went, and engines.
 */
#ifndef URNICD_ERROUT_H
#define URNICD_ERROUT_H

/*
 * From now on what finds no room in stderr is lost, and how many times is said when there
 * is some again. Does nothing without memory. Before there are threads.
 */
void nicd_errout_open(void);

#endif
