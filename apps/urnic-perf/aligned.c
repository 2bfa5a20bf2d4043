/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * urnic-perf aligned_table: writes to targets on and off the cache lines of B, as they are posted,
 * and on the lines as two messages and as one (AW-3, AW-4): lines that B's dataplane stored to
 * whole and in part for each write (AW-7), and the rate.
 *
 * Each row is a run of write_bw of its own. One run of plain writes serves the rows of all three
 * lines, because stores are counted for each of them.
 */
#include "perf.h"

#include "common/json.h"
#include "common/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINES = 3, LINE_MIN = 64 };

struct table {
	struct rig *rig;	   /* owner: the caller of aligned_run() */
	const struct perf_opts *o; /* the same */
	struct urn_json j;	   /* valid with o->json */
	bool interrupted;	   /* by a signal: no further rows */
};

/* ---- rows */

static void
head(struct table *t)
{
	if (t->o->json) {
		urn_json_init(&t->j, stdout);
		urn_json_object(&t->j, NULL);
		urn_json_str(&t->j, "op", perf_op_name(t->o->op));
		urn_json_u64(&t->j, "size", t->o->size);
		urn_json_array(&t->j, "rows");
		return;
	}
	printf("writes of %" PRIu64 " bytes; lines stored to for each, whole and in part\n\n",
	       t->o->size);
	printf("   MTU  offset  line  strategy       full   partial     Gb/s\n");
}

/* Print the row of a line. line: its index among LINES */
static void
row(struct table *t, const struct perf_opts *o, const struct result *r, unsigned int line)
{
	double full = (double)r->stores.full[line] / (double)r->stored;
	double partial = (double)r->stores.partial[line] / (double)r->stored;
	const char *strategy = !o->align ? "plain" : o->two ? "two" : "one";

	if (!t->o->json) {
		printf("%6u  %6u  %4u  %-9s %9.2f %9.2f %8.1f\n", o->mtu, o->offset,
		       LINE_MIN << line, strategy, full, partial, r->gbps);
		fflush(stdout);
		return;
	}
	urn_json_object(&t->j, NULL);
	urn_json_u64(&t->j, "mtu", o->mtu);
	urn_json_u64(&t->j, "offset", o->offset);
	urn_json_u64(&t->j, "line", LINE_MIN << line);
	urn_json_str(&t->j, "strategy", strategy);
	urn_json_num(&t->j, "full", full, 4);
	urn_json_num(&t->j, "partial", partial, 4);
	urn_json_num(&t->j, "gbps", r->gbps, 2);
	urn_json_end(&t->j);
}

static void
tail(struct table *t)
{
	if (!t->o->json)
		return;
	urn_json_end(&t->j);
	urn_json_bool(&t->j, "interrupted", t->interrupted);
	urn_json_end(&t->j);
}

/* ---- runs */

/* Measure with these options, and print rows from..to-1 of the lines. */
static int
cell(struct table *t, const struct perf_opts *o, unsigned int from, unsigned int to,
     struct urn_err *err)
{
	struct result *r = calloc(1, sizeof(*r));
	int rc = -1;

	if (r == NULL) {
		urn_err_set(err, "no memory for results");
		return -1;
	}
	rc = verbs_run(t->rig, o, r, err);
	for (unsigned int line = from; rc == 0 && r->stored > 0 && line < to; line++)
		row(t, o, r, line);
	t->interrupted |= r->interrupted;
	free(r);
	return rc;
}

/* The rows of one path MTU and offset. */
static int
rows_of(struct table *t, uint32_t mtu, uint32_t offset, struct urn_err *err)
{
	struct perf_opts o = *t->o;

	o.op = PERF_WRITE_BW;
	o.mtu = mtu;
	o.offset = offset;
	o.count_stores = true;
	if (cell(t, &o, 0, LINES, err) != 0)
		return -1;
	o.align = true;
	for (unsigned int i = 0; i < 2 * LINES && !t->interrupted; i++) {
		o.two = i % 2 == 0;
		o.line = LINE_MIN << i / 2;
		if (cell(t, &o, i / 2, i / 2 + 1, err) != 0)
			return -1;
	}
	return 0;
}

int
aligned_run(struct rig *rig, const struct perf_opts *o, struct urn_err *err)
{
	static const uint32_t mtus[] = {1024, 2048, 4096};
	static const uint32_t offsets[] = {0, 1, 77};
	struct table t = {.rig = rig, .o = o};
	int rc = 0;

	head(&t);
	for (unsigned int m = 0; m < (o->mtu_given ? 1 : RTE_DIM(mtus)); m++) {
		uint32_t mtu = o->mtu_given ? o->mtu : mtus[m];

		if (mtu > o->mtu)
			break; /* more than the ports carry */
		for (unsigned int k = 0; k < (o->offset_given ? 1 : RTE_DIM(offsets)); k++)
			if (rc == 0 && !t.interrupted)
				rc = rows_of(&t, mtu, o->offset_given ? o->offset : offsets[k],
					     err);
	}
	tail(&t);
	return rc;
}
