/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of the wire. */
#include "wire.h"

#include "common/options.h"
#include "common/text.h"
#include "switch/impair_words.h"

#include <string.h>

static int
take_percent(const char *name, const char *arg, double *out, struct urn_err *err)
{
	if (urn_impair_parse_percent(arg, out) == 0)
		return 0;
	urn_err_set(err, "--%s %.32s: give percent from 0 to 100, such as 0.1 or 5", name, arg);
	return -1;
}

/* Read a delay: in microseconds, unless it has a unit. */
static int
take_delay(const char *arg, uint64_t *ns, struct urn_err *err)
{
	char text[32];
	size_t n = strlen(arg);

	if (n + 3 <= sizeof(text)) {
		memcpy(text, arg, n + 1);
		if (strspn(arg, "0123456789.") == n)
			memcpy(text + n, "us", 3);
		if (urn_text_parse_time(text, ns) == 0 && *ns <= URN_IMPAIR_MAX_NS)
			return 0;
	}
	urn_err_set(err, "--delay %.32s: give microseconds up to 60000000, or a time such as 2ms",
		    arg);
	return -1;
}

int
perf_wire_take(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct perf_wire_opts *w = (struct perf_wire_opts *)((char *)to + row->offset);
	struct urn_impair_config *c = &w->cfg;

	w->on = true;
	w->impaired |= row->id != PERF_WIRE_SWITCH;
	switch (row->id) {
	case PERF_WIRE_LOSS:
		return take_percent("loss", arg, &c->drop, err);
	case PERF_WIRE_DUP:
		return take_percent("dup", arg, &c->dup, err);
	case PERF_WIRE_REORDER:
		return take_percent("reorder", arg, &c->reorder, err);
	case PERF_WIRE_CORRUPT:
		return take_percent("corrupt", arg, &c->corrupt, err);
	case PERF_WIRE_DELAY:
		return take_delay(arg, &c->delay_ns, err);
	case PERF_WIRE_SEED:
		w->seeded = true;
		return urn_opt_number("seed", arg, 0, UINT64_MAX, &c->seed, err);
	case PERF_WIRE_DEPTH:
		w->seeded = true;
		c->reorder_min = 1;
		return urn_opt_u32("reorder-depth", arg, 1, URN_IMPAIR_MAX_PASS, &c->reorder_max,
				   err);
	default: /* PERF_WIRE_SWITCH */
		return 0;
	}
}

int
perf_wire_check(const struct perf_wire_opts *w, struct urn_err *err)
{
	const struct urn_impair_config *c = &w->cfg;

	if (c->reorder_max && c->reorder == 0) {
		urn_err_set(err, "--reorder-depth goes with --reorder; give that, too");
		return -1;
	}
	if (w->seeded && c->reorder == 0 && c->drop == 0 && c->dup == 0 && c->corrupt == 0) {
		urn_err_set(err, "--seed goes with --loss, --dup, --reorder or --corrupt; give one "
				 "of these");
		return -1;
	}
	return 0;
}
