/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults on demand at the boundary of verbs (doc/reference/faults.md), for the front.
 *
 * With faults named in URNIC_FAULT, a context gets a table of operations that stands above its
 * provider's and decides call by call. Without any, contexts have their provider's own table, and
 * nothing costs anything.
 */
#ifndef URN_VERBS_FAULT_H
#define URN_VERBS_FAULT_H

#include "verbs/provider/provider.h"

/* Set by a library that has a copy of this one for itself, and must see what is there: no faults.
 */
extern bool urn_faults_off;

/*
 * Read the faults once a process. returns: 0; EINVAL with its text: URNIC_FAULT or
 * URNIC_FAULT_SEED makes no sense
 */
int urn_faults_read(void);

/*
 * Put the table of faults above the provider's, if faults are named.
 *
 * v: a context that was just opened, with its ops set
 * returns: 0; an errno value with its text: opening is to fail, and v->ops are the provider's
 */
int urn_faults_above(struct urn_verbs_ctx *v);

#endif
