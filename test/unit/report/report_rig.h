/* SPDX-License-Identifier: BSD-3-Clause */
/* A dataplane with one adapter on two engines, one client of it, and what reports say about them.
 */
#ifndef TEST_REPORT_RIG_H
#define TEST_REPORT_RIG_H

#include "control/client.h"
#include "report/report.h"

enum { ENGINES = 2 };

extern struct urn_dp *rig_dp;
extern struct urn_abi_channel *rig_channel; /* the client's */

/* Fixtures of a test group. */
int rig_setup(void **state);
int rig_teardown(void **state);
/* Make a control call, which succeeds. */
struct urn_abi_rep rig_ask(const struct urn_abi_req *req);
/* The place of an offset in the client's area. */
void *rig_at(uint64_t off);
/* Ring a doorbell of the first engine, and let that engine have a turn. */
void rig_ring(uint32_t db);
/* Ask in steps of `rows` objects. returns: the report as JSON, without spaces; valid until the next
 * one */
const char *rig_report(urn_report_fn *fn, uint32_t client, uint32_t rows);
/* Asking for a client that is not there fails. */
void rig_no_client(urn_report_fn *fn, uint32_t client);
/* Number of fields with that name in the last report. */
unsigned int rig_fields(const char *name);
/* Fails the test unless the last report has this text. */
void rig_has(const char *text);

#endif
