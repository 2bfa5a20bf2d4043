/* SPDX-License-Identifier: BSD-3-Clause */
/* urnic-incast: many senders into one port of a switch, simulated; fairness, goodput, queue. */
#include "incast.h"

#include "common/json.h"
#include "common/option_table.h"
#include "common/test_eal.h"
#include "units.h"

#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2 };

struct incast_options {
	struct incast_config c;
	const char *plot;
	bool json, no_marks, no_dcqcn;
};

static int
take_rate(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct incast_options *o = to;

	if (urn_text_parse_rate(arg, &o->c.rate_bps) == 0 && o->c.rate_bps >= 100000000 &&
	    o->c.rate_bps <= 400000000000)
		return 0;
	urn_err_set(err, "--%s %.32s: give bits a second from 100M to 400G", row->name, arg);
	return -1;
}

static int
take_over(const struct urn_option *row, const char *arg, void *to, struct urn_err *err)
{
	struct incast_options *o = to;

	o->c.over_msg = strcmp(arg, "msg") == 0;
	if (o->c.over_msg || strcmp(arg, "rc") == 0)
		return 0;
	urn_err_set(err, "--%s %.32s: give rc or msg", row->name, arg);
	return -1;
}

#define O(field) offsetof(struct incast_options, field)
static const struct urn_option rows[] = {
	{"senders", "N", "nodes that send, 1 to 64 (16)", urn_take_u32, O(c.senders), .min = 1,
	 .max = INCAST_SENDERS},
	{"over", "rc|msg", "senders post WRITEs of queue pairs, or messages over flows (rc)",
	 take_over},
	{"message", "BYTES", "of a WRITE, or of a message (16K)", urn_take_u32, O(c.message),
	 .min = 1, .max = 1 << 20},
	{"rate", "R", "bits a second of each port (10G)", take_rate},
	{"delay", "T", "of each wire, one way (1us)", urn_take_time, O(c.delay_ns),
	 .max = 10000000},
	URN_OPTION_MTU(struct incast_options, c.mtu, "1024"),
	{"window", "N", "packets in flight of a sender, at most (256)", urn_take_u32, O(c.window),
	 .min = 1, .max = 1024},
	{"queue", "N", "frames that may wait for a port (512)", urn_take_u32, O(c.queue), .min = 1,
	 .max = 1 << 16},
	{"kmin", "BYTES", "marks, as in [switch] (5000)", urn_take_size, O(c.mark.kmin),
	 .max = URN_MARK_MAX_BYTES},
	{"kmax", "BYTES", "(200000)", urn_take_size, O(c.mark.kmax), .max = URN_MARK_MAX_BYTES},
	{"no-marks", NULL, "the switch marks nothing", urn_take_flag, O(no_marks)},
	{"no-dcqcn", NULL, "senders obey no notifications, and are not marked", urn_take_flag,
	 O(no_dcqcn)},
	{"delay-limit", "T", "as in [congestion] (none)", urn_take_time, O(c.delay_limit),
	 .max = 1000000000},
	{"duration", "T", "time measured, after a fifth of it that is not (100ms)", urn_take_time,
	 O(c.run_ns), .min = 1000000, .max = 10000000000},
	{"seed", "N", "of all random choices (1)", urn_take_number, O(c.seed), .max = UINT64_MAX},
	{"plot", "FILE", "write lines: time in us, queue in bytes, Mbit/s of each sender",
	 urn_take_text, O(plot)},
	{"sample", "T", "from line to line (50us)", urn_take_time, O(c.sample_ns), .min = 1000,
	 .max = 1000000000},
	URN_OPTION_JSON(struct incast_options, json),
};

static const struct urn_options table = {rows, RTE_DIM(rows), 20, "--help"};

static void
print_json(const struct incast_config *c, const struct incast_result *r)
{
	struct urn_json j;

	urn_json_init(&j, stdout);
	urn_json_object(&j, NULL);
	urn_json_u64(&j, "senders", c->senders);
	urn_json_num(&j, "jain", r->jain, 4);
	urn_json_num(&j, "goodput", r->goodput, 4);
	urn_json_num(&j, "least", r->least, 4);
	urn_json_num(&j, "most", r->most, 4);
	urn_json_u64(&j, "drops", r->drops);
	urn_json_u64(&j, "marks", r->marks);
	urn_json_u64(&j, "frames", r->frames);
	urn_json_u64(&j, "cnps", r->cnps);
	urn_json_u64(&j, "repeats", r->repeats);
	urn_json_u64(&j, "queue_mean", r->queue_mean);
	urn_json_u64(&j, "queue_p99", r->queue_p99);
	urn_json_u64(&j, "queue_max", r->queue_max);
	urn_json_end(&j);
}

static void
print_text(const struct incast_config *c, const struct incast_result *r)
{
	printf("%u senders: fairness %.4f (slowest %.2f, fastest %.2f of a fair share), goodput "
	       "%.1f %%\n"
	       "  %llu frames, %llu marked, %llu dropped, %llu notifications, %llu repeats\n"
	       "  queue %llu bytes on average, 99 %% below %llu, %llu at most\n",
	       c->senders, r->jain, r->least, r->most, r->goodput * 100,
	       (unsigned long long)r->frames, (unsigned long long)r->marks,
	       (unsigned long long)r->drops, (unsigned long long)r->cnps,
	       (unsigned long long)r->repeats, (unsigned long long)r->queue_mean,
	       (unsigned long long)r->queue_p99, (unsigned long long)r->queue_max);
}

/* returns: as urn_options_parse(); the configuration is complete with RUN */
static enum urn_options_rc
parse(int argc, char **argv, struct incast_options *o)
{
	struct urn_err err;
	uint64_t given;
	enum urn_options_rc rc;

	memset(o, 0, sizeof(*o));
	incast_defaults(&o->c);
	rc = urn_options_parse(&table, argc, argv, o, &given, &err);
	if (rc == URN_OPTIONS_RUN && optind < argc) {
		urn_err_set(&err, "'%.64s' is not an option", argv[optind]);
		rc = URN_OPTIONS_BAD;
	}
	if (rc == URN_OPTIONS_BAD)
		fprintf(stderr, "urnic-incast: %s\n", err.text);
	o->c.warm_ns = o->c.run_ns / 5;
	o->c.dcqcn = !o->no_dcqcn;
	if (o->no_marks)
		o->c.mark.kmax = 0;
	return rc;
}

int
main(int argc, char **argv)
{
	struct incast_result r;
	struct incast_options o;

	switch (parse(argc, argv, &o)) {
	case URN_OPTIONS_HELP:
		puts("usage: urnic-incast [option...]\n\nSimulates many senders into one port of a "
		     "switch.\n");
		urn_options_help(&table, stdout);
		return EXIT_SUCCESS;
	case URN_OPTIONS_VERSION:
		puts("urnic-incast " URN_VERSION);
		return EXIT_SUCCESS;
	case URN_OPTIONS_BAD:
		return EXIT_USAGE;
	case URN_OPTIONS_RUN:
		break;
	}
	if (o.plot) {
		o.c.plot = fopen(o.plot, "w");
		if (!o.c.plot) {
			perror(o.plot);
			return EXIT_FAILURE;
		}
	}
	(void)test_eal_pool();
	if (!incast_run(&o.c, &r)) {
		fprintf(stderr, "urnic-incast: %s\n", r.why);
		return EXIT_FAILURE;
	}
	if (o.c.plot && fclose(o.c.plot) != 0) {
		perror(o.plot);
		return EXIT_FAILURE;
	}
	o.json ? print_json(&o.c, &r) : print_text(&o.c, &r);
	return EXIT_SUCCESS;
}
