/* SPDX-License-Identifier: BSD-3-Clause */
/* Two devices, a0 and b0, in the dataplane's place. */
#ifndef FAKE_H
#define FAKE_H

#include "dropin/paths/paths.h"

/* Devices that are there, 0 to 2. */
extern uint32_t fake_devices;
/* Holds without a release. */
extern int fake_held;
/* urn_paths_hold() tells that this thread asks the dataplane. */
extern bool fake_asking;

#endif
