/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the results at the end, for people or as JSON. */
#include "perf.h"

#include "common/json.h"
#include "common/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void
rates(struct result *res)
{
	if (res->seconds <= 0)
		return;
	res->rate = (double)res->messages / res->seconds;
	res->gbps = (double)res->bytes * 8 / 1e9 / res->seconds;
}

void
result_from_meter(struct result *res, const struct perf_opts *o, const struct meter *m)
{
	res->op = o->op;
	res->messages = m->measured;
	res->bytes = m->measured * o->size;
	res->seconds = meter_seconds(m);
	res->hist = m->hist;
	rates(res);
}

void
result_merge(struct result *dst, const struct result *src)
{
	dst->messages += src->messages;
	dst->bytes += src->bytes;
	dst->seconds += src->seconds;
	dst->checked += src->checked;
	dst->moved += src->moved;
	dst->interrupted |= src->interrupted;
	urn_hist_merge(&dst->hist, &src->hist);
	rates(dst);
}

/* Name of the interval that the latencies measure. */
static const char *
latency_kind(const struct perf_opts *o)
{
	if (perf_op_is_pingpong(o->op) || o->lat)
		return "half round trip";
	if (perf_op_is_lat(o->op))
		return "round trip";
	if (perf_op_is_msg(o->op))
		return "doorbell to answer";
	if (perf_op_is_am(o->op))
		return "request to reply";
	if (perf_op_is_rma(o->op))
		return o->chain > 1 ? "issue to completion of a chain" : "issue to completion";
	return o->chain > 1 ? "post to completion, last message of each chain" : "post to completion";
}

static double
us(uint64_t ns)
{
	return (double)ns / 1000;
}

/*
 * The result as a share of the limit: of bandwidth or rate for streams. For
 * latency, a multiple of the bare port's: half a round trip against half, a
 * whole one against two halves. 0: unknown
 */
static double
ratio_of(const struct perf_opts *o, const struct result *res, const struct result *limit)
{
	double bare;

	if (!perf_op_is_lat(o->op))
		return limit->rate > 0 ? res->rate / limit->rate : 0;
	bare = (double)urn_hist_quantile(&limit->hist, 0.5);
	if (!perf_op_is_pingpong(o->op))
		bare *= 2;
	return bare > 0 ? (double)urn_hist_quantile(&res->hist, 0.5) / bare : 0;
}

/* The word for the way between the nodes. */
static const char *
link_name(const struct perf_opts *o)
{
	if (o->session != NULL)
		return "session";
	return o->attach != NULL ? "attached" : perf_link_name(o->link);
}

static bool
data_checked(const struct perf_opts *o)
{
	return o->check != PERF_CHECK_NONE && o->link != PERF_NULL && o->size > 0;
}

/* ---- JSON */

/* Print [[ns, count], ...]: the middle of each bucket that is not empty. */
static void
json_hist(struct urn_json *j, const struct urn_hist *h)
{
	urn_json_array(j, "hist_ns");
	for (unsigned int i = 0; i < URN_HIST_BUCKETS; i++) {
		if (h->bucket[i] == 0)
			continue;
		urn_json_array(j, NULL);
		urn_json_u64(j, NULL, urn_hist_value(i));
		urn_json_u64(j, NULL, h->bucket[i]);
		urn_json_end(j);
	}
	urn_json_end(j);
}

/* Print cycles per data packet, of both threads; one thread does all when both nodes share it. */
static void
json_stages(struct urn_json *j, const struct perf_opts *o, const struct result *res)
{
	unsigned int threads = o->core[0] == o->core[1] ? 1 : 2;
	static const char *const names[] = {"a", "b"};

	urn_json_object(j, "stages");
	for (unsigned int t = 0; t < threads; t++) {
		urn_json_object(j, names[t]);
		for (unsigned int i = 0; i < URN_STAGE_COUNT && res->packets > 0; i++)
			urn_json_num(j, urn_stage_name(i),
				     (double)res->stages[t].cycles[i] / (double)res->packets, 2);
		urn_json_end(j);
	}
	urn_json_end(j);
}

/* Print what a measurement of messages has beside the others': settings, and answers by code. */
static void
json_msg(struct urn_json *j, const struct perf_opts *o, const struct result *res)
{
	urn_json_u64(j, "sets", o->sets);
	urn_json_u64(j, "senders", o->senders);
	urn_json_u64(j, "entries", o->entries);
	urn_json_object(j, "answers");
	for (unsigned int i = URN_MSG_DONE; i < URN_MSG_CODES; i++)
		if (i == URN_MSG_DONE || res->answers[i] > 0)
			urn_json_u64(j, urn_msg_code_word((uint8_t)i), res->answers[i]);
	urn_json_end(j);
	urn_json_u64(j, "may_be_there", res->maybe);
}

/* The word for a number of packets that one reply answers. room: bytes of text */
static const char *
every_text(const struct perf_opts *o, char *text, size_t room)
{
	if (o->every == 0 || o->every == UINT8_MAX)
		return o->every == 0 ? "packet" : "transfer";
	snprintf(text, room, "%u", o->every);
	return text;
}

/* Print what a measurement by endpoints has beside the others'. */
static void
json_am(struct urn_json *j, const struct perf_opts *o, const struct result *res)
{
	char text[8];

	if (perf_op_is_am(o->op)) {
		urn_json_u64(j, "handled", res->handled);
		urn_json_bool(j, "prepare", o->prepare);
		return;
	}
	urn_json_str(j, "rma", perf_way_names[o->way]);
	urn_json_str(j, "reply_every", every_text(o, text, sizeof(text)));
}

static void
json_settings(struct urn_json *j, const struct perf_opts *o)
{
	urn_json_str(j, "link", link_name(o));
	if (o->role != PERF_BOTH)
		urn_json_str(j, "connect", o->by_cm ? "cm" : "oob");
	urn_json_bool(j, "icrc", !o->no_icrc);
	urn_json_bool(j, "foreign", o->foreign);
	urn_json_bool(j, "ud", o->ud);
	urn_json_str(j, "recovery", o->go_back_n ? "gbn" : "selective");
	urn_json_str(j, "ip", o->ipv6 ? "6" : "4");
	urn_json_array(j, "lcores");
	for (unsigned int i = 0; i < 2 && (o->attach == NULL || o->pinned); i++)
		urn_json_u64(j, NULL, (uint64_t)o->core[i]);
	urn_json_end(j);
	urn_json_u64(j, "chain", o->chain);
	if (o->op == PERF_WRITE_BW) {
		urn_json_u64(j, "offset", o->offset);
		urn_json_bool(j, "align", o->align);
	}
}

static void
json_limit(struct urn_json *j, const struct perf_opts *o, const struct result *res,
	   const struct result *limit)
{
	urn_json_num(j, "limit_gbps", limit->gbps, 3);
	urn_json_num(j, "limit_msg_rate", limit->rate, 0);
	if (perf_op_is_lat(o->op))
		urn_json_latency(j, "limit_lat_us", &limit->hist);
	urn_json_num(j, "ratio", ratio_of(o, res, limit), 4);
}

static void
report_json(const struct perf_opts *o, const struct result *res, const struct result *limit,
	    uint64_t capture_lost)
{
	struct urn_json j;

	urn_json_init(&j, stdout);
	urn_json_object(&j, NULL);
	urn_json_str(&j, "op", perf_op_name(o->op));
	urn_json_u64(&j, "size", o->size);
	urn_json_u64(&j, "qps", perf_op_is_flow(o->op) ? 0 : o->qps);
	urn_json_u64(&j, "idle_qps", o->idle_qps);
	urn_json_u64(&j, "depth", o->depth);
	urn_json_u64(&j, "mtu", o->mtu);
	urn_json_u64(&j, "messages", res->messages);
	urn_json_u64(&j, "bytes", res->bytes);
	urn_json_num(&j, "seconds", res->seconds, 6);
	urn_json_num(&j, "gbps", res->gbps, 3);
	urn_json_num(&j, "msg_rate", res->rate, 0);
	urn_json_latency(&j, "lat_us", &res->hist);
	urn_json_u64(&j, "retransmits", res->retransmits);
	if (perf_op_is_am(o->op) || o->op == PERF_WRITE_SEND_BW)
		urn_json_bool(&j, "fill", o->fill);
	if (o->ud) {
		urn_json_u64(&j, "sent", res->sent);
		urn_json_u64(&j, "lost", res->lost);
	}
	if (perf_op_is_msg(o->op))
		json_msg(&j, o, res);
	if (perf_op_is_rma(o->op) || perf_op_is_am(o->op))
		json_am(&j, o, res);
	urn_json_counters(&j, "drops", "drop_", urn_counter_name, res->counters.v,
			  URN_COUNTER_COUNT);
	urn_json_str(&j, "lat_kind", latency_kind(o));
	urn_json_bool(&j, "checked", data_checked(o));
	urn_json_u64(&j, "checked_bytes", res->checked);
	json_settings(&j, o);
	if (limit != NULL)
		json_limit(&j, o, res, limit);
	if (res->have_counters) {
		if (!perf_op_is_flow(o->op))
			urn_json_u64(&j, "qp_bytes", res->qp_bytes);
		urn_json_counters(&j, "counters", "", urn_counter_name, res->counters.v,
				  URN_COUNTER_COUNT);
		urn_json_bool(&j, "only_early", result_only_early(res));
	}
	perf_wire_json(&j, &o->wire, &res->wire);
	if (o->hist)
		json_hist(&j, &res->hist);
	if (o->stages)
		json_stages(&j, o, res);
	if (o->capture != NULL)
		urn_json_u64(&j, "capture_lost", capture_lost);
	if (res->setup_ns != 0)
		urn_json_num(&j, "setup_seconds", (double)res->setup_ns / 1e9, 6);
	if (res->failover != NULL)
		urn_failover_json(res->failover, &j);
	urn_json_bool(&j, "interrupted", res->interrupted);
	urn_json_end(&j);
}

/* ---- for people */

static void
print_latency(const char *what, const struct urn_hist *h)
{
	if (urn_hist_count(h) == 0)
		return;
	printf("  latency us:   min %.2f  p50 %.2f  p99 %.2f  p99.9 %.2f  max %.2f  (%s)\n",
	       us(urn_hist_min(h)), us(urn_hist_quantile(h, 0.5)), us(urn_hist_quantile(h, 0.99)),
	       us(urn_hist_quantile(h, 0.999)), us(urn_hist_max(h)), what);
}

/* Print how operations on remote memory go. */
static void
print_way(const struct perf_opts *o)
{
	char every[8];

	printf("%s, ", perf_way_names[o->way]);
	if (o->every != 0)
		printf("a reply for each %s%s, ", every_text(o, every, sizeof(every)),
		       o->every != UINT8_MAX ? " packets" : "");
	printf("depth %u, ", o->depth);
}

static void
print_head(const struct perf_opts *o)
{
	char size[32];

	urn_text_size(size, sizeof(size), o->size);
	printf("urnic-perf %s%s%s%s%s%s: %s, ", perf_op_name(o->op), o->ud ? " --ud" : "",
	       o->lat ? " --lat" : "", o->no_sender_copy ? " --no-sender-copy" : "",
	       o->foreign ? " --foreign" : "",
	       o->prepare ? " --prepare"
	       : o->fill  ? " --fill"
			  : "",
	       size);
	if (perf_op_is_msg(o->op))
		printf("%u node%s with %u register set%s, a queue of %u entries, ", o->senders,
		       o->senders == 1 ? "" : "s", o->sets, o->sets == 1 ? "" : "s", o->entries);
	else if (perf_op_is_am(o->op))
		printf("depth %u, ", o->depth);
	else if (perf_op_is_rma(o->op))
		print_way(o);
	else
		printf("%u QP%s, depth %u, ", o->qps, o->qps == 1 ? "" : "s", o->depth);
	if (o->attach == NULL || !perf_op_is_flow(o->op))
		printf("MTU %u, ", o->mtu);
	printf("%s, IPv%c", link_name(o), o->ipv6 ? '6' : '4');
	if (o->attach == NULL)
		printf(", ICRC %s", o->no_icrc ? "off" : "on");
	if (o->role != PERF_BOTH)
		printf(", met %s", o->by_cm ? "by connection management" : "over TCP");
	if (o->attach == NULL || o->pinned)
		printf(", core%s %d", o->core[0] == o->core[1] ? "" : "s", o->core[0]);
	if ((o->attach == NULL || o->pinned) && o->core[0] != o->core[1])
		printf(" and %d", o->core[1]);
	putchar('\n');
}

/* Print answers that were no DONE. */
static void
print_answers(const struct result *res)
{
	uint64_t errors = 0;

	printf("  answers:      done %" PRIu64, res->answers[URN_MSG_DONE]);
	for (unsigned int i = URN_MSG_DONE + 1; i < URN_MSG_CODES; i++) {
		if (res->answers[i] > 0)
			printf(", %s %" PRIu64, urn_msg_code_word((uint8_t)i), res->answers[i]);
		errors += res->answers[i];
	}
	if (res->maybe > 0)
		printf(" (%" PRIu64 " of those may be there)", res->maybe);
	puts(errors > 0 ? "" : ", no errors");
}

static void
print_check(const struct perf_opts *o, const struct result *res)
{
	if (o->link == PERF_NULL)
		puts("  data checked: no, net_null delivers nothing that was sent");
	else if (o->check == PERF_CHECK_NONE)
		puts("  data checked: no (--no-check)");
	else if (o->size == 0)
		puts("  data checked: no, there is none in messages of 0 bytes");
	else
		printf("  data checked: yes, %" PRIu64 " bytes compared of %" PRIu64 " moved\n",
		       res->checked, res->moved);
}

static void
print_stages(const struct perf_opts *o, const struct result *res)
{
	unsigned int threads = o->core[0] == o->core[1] ? 1 : 2;

	printf("  cycles a packet, %" PRIu64 " packets:%s\n", res->packets,
	       threads == 1 ? "" : "  node A     node B");
	for (unsigned int i = 0; i < URN_STAGE_COUNT && res->packets > 0; i++) {
		printf("    %-24s", urn_stage_name(i));
		for (unsigned int t = 0; t < threads; t++)
			printf(" %10.1f", (double)res->stages[t].cycles[i] / (double)res->packets);
		putchar('\n');
	}
}

/* Print a count, or "-" for one that this family of operations has not. */
static void
print_count(const char *what, uint64_t n, bool counted)
{
	if (counted)
		printf("%s%" PRIu64, what, n);
	else
		printf("%s-", what);
}

static void
print_counters(const struct perf_opts *o, const struct result *res)
{
	uint64_t drops = 0;

	if (!res->have_counters)
		return;
	/* Datagrams are not repeated, and only receives of connections can be missing. */
	print_count("  retransmits:  ", res->retransmits, !o->ud);
	print_count(", timeouts ", res->counters.v[URN_C_TIMEOUTS], !o->ud);
	print_count(", RNR NAKs ", res->counters.v[URN_C_RX_RNR_NAKS],
		    !o->ud && !perf_op_is_flow(o->op));
	putchar('\n');
	if (result_only_early(res))
		puts("  repeats:      only early: the peer had each of these packets already, "
		     "and none was lost");
	printf("  drops:        ");
	for (unsigned int i = 0; i < URN_COUNTER_COUNT; i++) {
		if (res->counters.v[i] == 0 || strncmp(urn_counter_name(i), "drop_", 5) != 0)
			continue;
		printf("%s%s %" PRIu64, drops ? ", " : "", urn_counter_name(i) + 5,
		       res->counters.v[i]);
		drops += res->counters.v[i];
	}
	puts(drops ? "" : "none");
}

static void
print_limit(const struct perf_opts *o, const struct result *res, const struct result *limit)
{
	char rate[32];

	if (perf_op_is_lat(o->op)) {
		printf("  limit:        p50 %.2f us half round trip; this took %.2f times as long\n",
		       us(urn_hist_quantile(&limit->hist, 0.5)), ratio_of(o, res, limit));
		return;
	}
	printf("  limit:        %.2f Gb/s, %s; this is %.1f %% of it\n", limit->gbps,
	       urn_text_rate(rate, sizeof(rate), limit->rate), 100 * ratio_of(o, res, limit));
}

static void
report_text(const struct perf_opts *o, const struct result *res, const struct result *limit,
	    uint64_t capture_lost)
{
	char rate[32];

	print_head(o);
	if (res->interrupted)
		puts("  interrupted:  the figures below were measured until then");
	printf("  %14s %16s %10s %10s %12s\n", "messages", "bytes", "seconds", "Gb/s", "rate");
	printf("  %14" PRIu64 " %16" PRIu64 " %10.3f %10.2f %12s\n", res->messages, res->bytes,
	       res->seconds, res->gbps, urn_text_rate(rate, sizeof(rate), res->rate));
	if (o->ud)
		printf("  datagrams:    %" PRIu64 " sent in all, %" PRIu64
		       " of them lost (%.2f %%); rates count "
		       "those sent\n",
		       res->sent, res->lost,
		       res->sent > 0 ? 100.0 * (double)res->lost / (double)res->sent : 0.0);
	print_latency(latency_kind(o), &res->hist);
	if (limit != NULL)
		print_limit(o, res, limit);
	print_check(o, res);
	if (perf_op_is_msg(o->op))
		print_answers(res);
	print_counters(o, res);
	if (res->have_counters && (o->qps > 1 || o->show_mem) && !perf_op_is_flow(o->op))
		printf("  memory per idle QP: %" PRIu64 " bytes in the dataplane, queues aside\n",
		       res->qp_bytes);
	perf_wire_print(&res->wire);
	if (o->stages)
		print_stages(o, res);
	if (res->failover != NULL)
		urn_failover_print(res->failover, "  ", stdout);
	if (o->capture != NULL)
		printf("  capture:      %s, %" PRIu64 " frames that did not fit\n", o->capture,
		       capture_lost);
}

void
report(const struct perf_opts *o, const struct result *res, const struct result *limit,
       uint64_t capture_lost)
{
	if (o->json)
		report_json(o, res, limit, capture_lost);
	else
		report_text(o, res, limit, capture_lost);
	fflush(stdout);
}
