/* SPDX-License-Identifier: BSD-3-Clause */
#include "pp.h"

#include "common/json.h"
#include "common/text.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static double
us(uint64_t ns)
{
	return (double)ns / 1000;
}

/* Bytes both ways, counted as ibv_rc_pingpong does. */
static uint64_t
bytes_of(const struct pp_opts *o, const struct pp_result *res)
{
	return ((uint64_t)res->sent + res->received) * o->size;
}

static double
gbps_of(const struct pp_opts *o, const struct pp_result *res)
{
	return res->seconds_ns > 0 ? (double)bytes_of(o, res) * 8 / (double)res->seconds_ns : 0;
}

static double
us_per_iter(const struct pp_result *res)
{
	return res->received > 0 ? us(res->seconds_ns) / res->received : 0;
}

/* ---- JSON */

static void
json_side(struct urn_json *j, const char *key, const struct urn_ep_addr *addr)
{
	char gid[INET6_ADDRSTRLEN] = "";

	inet_ntop(AF_INET6, addr->gid, gid, sizeof(gid));
	urn_json_object(j, key);
	urn_json_u64(j, "qpn", addr->qpn);
	urn_json_u64(j, "psn", addr->psn);
	urn_json_str(j, "gid", gid);
	urn_json_end(j);
}

static void
report_json(const struct pp_opts *o, const struct pp_result *res)
{
	struct urn_json j;

	urn_json_init(&j, stdout);
	urn_json_object(&j, NULL);
	urn_json_str(&j, "op", "pingpong");
	urn_json_u64(&j, "size", o->size);
	urn_json_u64(&j, "mtu", o->mtu);
	urn_json_u64(&j, "messages", (uint64_t)res->sent + res->received);
	urn_json_u64(&j, "bytes", bytes_of(o, res));
	urn_json_num(&j, "seconds", (double)res->seconds_ns / 1e9, 6);
	urn_json_num(&j, "gbps", gbps_of(o, res), 3);
	urn_json_num(&j, "us_per_iter", us_per_iter(res), 3);
	urn_json_latency(&j, "round_trip_us", &res->hist);
	urn_json_bool(&j, "checked", res->checked > 0);
	urn_json_u64(&j, "checked_bytes", res->checked);
	urn_json_bool(&j, "echoed", res->role == PP_ECHOES);
	urn_json_bool(&j, "last_unacknowledged", res->last_unacknowledged);
	json_side(&j, "local", &res->local);
	json_side(&j, "peer", &res->peer);
	urn_json_counters(&j, "drops", "drop_", urn_counter_name, res->counters.v,
			  URN_COUNTER_COUNT);
	urn_json_counters(&j, "counters", "", urn_counter_name, res->counters.v, URN_COUNTER_COUNT);
	if (o->capture != NULL)
		urn_json_u64(&j, "capture_lost", res->capture_lost);
	urn_json_end(&j);
}

/* ---- for people */

static void
print_side(const char *who, const struct urn_ep_addr *addr)
{
	char gid[INET6_ADDRSTRLEN] = "";

	inet_ntop(AF_INET6, addr->gid, gid, sizeof(gid));
	printf("  %s QP 0x%06x, PSN 0x%06x, GID %s\n", who, addr->qpn, addr->psn, gid);
}

static void
print_check(const struct pp_opts *o, const struct pp_result *res)
{
	if (o->no_check)
		puts("  data checked: no (--no-check)");
	else if (res->role == PP_ECHOES)
		puts("  data checked: by the peer, whose messages were sent back");
	else
		printf("  data checked: yes, %" PRIu64 " bytes compared\n", res->checked);
	if (res->last_unacknowledged)
		puts("  the peer left without acknowledging the last message");
}

static void
print_counters(const struct urn_counters *c)
{
	bool any = false;

	printf("  repeated:     %" PRIu64 " packets, %" PRIu64 " timeouts, %" PRIu64
	       " NAKs; received again: %" PRIu64 "\n", c->v[URN_C_RETRANSMITS],
	       c->v[URN_C_TIMEOUTS], c->v[URN_C_RX_NAKS], c->v[URN_C_DUPLICATES]);
	printf("  drops:        ");
	for (unsigned int i = 0; i < URN_COUNTER_COUNT; i++) {
		if (c->v[i] == 0 || strncmp(urn_counter_name(i), "drop_", 5) != 0)
			continue;
		printf("%s%s %" PRIu64, any ? ", " : "", urn_counter_name(i) + 5, c->v[i]);
		any = true;
	}
	puts(any ? "" : "none");
}

static void
report_text(const struct pp_opts *o, const struct pp_result *res)
{
	const struct urn_hist *h = &res->hist;

	print_side("local:       ", &res->local);
	print_side("peer:        ", &res->peer);
	printf("%" PRIu64 " bytes in %.3f seconds = %.2f Gb/s\n", bytes_of(o, res),
	       (double)res->seconds_ns / 1e9, gbps_of(o, res));
	printf("%u iters of %u bytes, MTU %u: %.2f usec/iter\n", res->received, o->size, o->mtu,
	       us_per_iter(res));
	if (urn_hist_count(h) > 0)
		printf("  round trip us: min %.2f  p50 %.2f  p99 %.2f  p99.9 %.2f  max %.2f\n",
		       us(urn_hist_min(h)), us(urn_hist_quantile(h, 0.5)),
		       us(urn_hist_quantile(h, 0.99)), us(urn_hist_quantile(h, 0.999)),
		       us(urn_hist_max(h)));
	print_check(o, res);
	print_counters(&res->counters);
	if (o->capture != NULL)
		printf("  capture:      %s, %" PRIu64 " frames that did not fit\n", o->capture,
		       res->capture_lost);
}

void
pp_report(const struct pp_opts *o, const struct pp_result *res)
{
	if (o->json)
		report_json(o, res);
	else
		report_text(o, res);
	fflush(stdout);
}
