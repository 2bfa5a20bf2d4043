/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of a rig that builds its switches; for rig.c. */
#ifndef URN_APPS_COMMON_RIG_SWITCHES_H
#define URN_APPS_COMMON_RIG_SWITCHES_H

#include "common/rig.h"

/* Build the switches of the configuration on the rig's open ports, and link them. returns: 0, or -1
 * with *err */
int urn_rig_switches(struct urn_rig *rig, struct urn_err *err);
/*
 * Let adapters send each other frames without ICRC over switches that their own engine polls, if
 * nothing but adapters is plugged in there. The dataplane is up; its engines are not polled yet.
 */
void urn_rig_unseal(const struct urn_rig *rig);

#endif
