/* SPDX-License-Identifier: BSD-3-Clause */
/* A rig that is reported on, and a sink that remembers: "qp qpn=2 state=RTS \n" for each object. */
#ifndef URN_TEST_REPORT_BENCH_H
#define URN_TEST_REPORT_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "report/report.h"
#include "rig.h"

struct report_notes {
	struct urn_report_sink sink;
	char text[1 << 20];
	size_t len;
	unsigned int objects, cards;
	bool inside;
};

extern struct rig report_rig;
extern struct urn_report_source report_src;
extern struct report_notes report_notes;

/* Forget what the sink remembers. */
void report_forget(void);
/* Make a whole report, over as many parts as it takes. returns: the parts; 0: it failed, with err
 */
unsigned int report_ask(urn_report_fn *fn, struct urn_report_query *q, struct urn_err *err);
/* Make a whole report, which must not fail. */
void report_all_of(urn_report_fn *fn);
/* The report has this text. */
void report_has(const char *text);
/* The report fails, with these words. */
void report_fails(urn_report_fn *fn, struct urn_report_query q, const char *words);
/* A rig in this process, one over the socket, one with several engines. */
int report_setup(void **state);
int report_setup_remote(void **state);
int report_setup_engines(void **state);
int report_teardown(void **state);

#endif
