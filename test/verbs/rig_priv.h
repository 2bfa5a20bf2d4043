/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the rig share. */
#ifndef URN_TEST_RIG_PRIV_H
#define URN_TEST_RIG_PRIV_H

#include "rig.h"

/* Fail the test. */
void rig_die(const char *what, const char *why);

/* ---- rig_wire.c */

/* Carry frames between the nodes' ports, of a rig with a bad wire. */
void rig_wire_turn(struct rig *r);
/*
 * Take all frames off it: those under way lie in buffers of the one node and on the
 * rings of the other, and none may outlive those.
 */
void rig_wire_drain(struct rig *r);

#endif
