/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock of programs: urn_clock_ns(). */
#ifndef URN_APPS_COMMON_CLOCK_H
#define URN_APPS_COMMON_CLOCK_H

#include "abi/clock.h"

#endif
