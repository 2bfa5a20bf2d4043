/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations shared by the rig's files. */
#ifndef URN_TEST_RIG_PRIV_H
#define URN_TEST_RIG_PRIV_H

#include "rig.h"

/* Fail the test. */
_Noreturn void rig_die(const char *what, const char *why);

/* ---- rig_wire.c */

/* Carry frames between the nodes' ports, in a rig with a bad wire. */
void rig_wire_turn(struct rig *r);
/*
 * Take all frames off the wire: they lie in buffers of one node and on rings of the
 * other, and must not outlive those.
 */
void rig_wire_drain(struct rig *r);

#endif
