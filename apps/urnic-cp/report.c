/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include "common/json.h"
#include "common/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The progress bar on standard error, and the name of the side that complains. Main thread only. */
static struct urn_progress *shown;
static const char *speaker = "";

void
cp_complain_over(struct urn_progress *bar)
{
	shown = bar;
}

void
cp_complain_as(const char *who)
{
	speaker = who;
}

void
cp_complain(const char *fmt, ...)
{
	char text[1024];
	size_t len;
	va_list ap;

	if (shown != NULL)
		urn_progress_end(shown);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	len = strlen(text);
	/* Messages come from several layers; some end with a full stop and some don't. */
	fprintf(stderr, "urnic-cp: %s%s%s\n", speaker, text,
		len > 0 && (text[len - 1] == '.' || text[len - 1] == '?') ? "" : ".");
}

static bool
is_drop(unsigned int id)
{
	return strncmp(urn_counter_name(id), "drop_", 5) == 0;
}

/* Packets sent again, of queue pairs and of flows. */
static uint64_t
retransmits(const struct urn_counters *c)
{
	return c->v[URN_C_RETRANSMITS] + c->v[URN_C_FLOW_RETRANSMITS];
}

static uint64_t
transfer_ns(const struct cp_result *r)
{
	return r->ns > r->store_ns ? r->ns - r->store_ns : 1;
}

/* Gbit/s without the wait for the disk at the end of each file, which is no part of the NIC. */
static double
gbps(const struct cp_result *r)
{
	return (double)r->bytes * 8 / (double)transfer_ns(r);
}

/* Print a number with its thousands separated: 65,792. returns buf */
static const char *
grouped(char *buf, size_t n, uint64_t v)
{
	char digits[32];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, v);
	size_t out = 0;

	for (int i = 0; i < len && out + 2 < n; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			buf[out++] = ',';
		buf[out++] = digits[i];
	}
	buf[out] = '\0';
	return buf;
}

static void
print_drops(const char *label, const struct urn_counters *c)
{
	bool any = false;

	printf("%s", label);
	for (unsigned int i = 0; i < URN_COUNTER_COUNT; i++) {
		if (!is_drop(i) || c->v[i] == 0)
			continue;
		printf("%s%s %" PRIu64, any ? ", " : "", urn_counter_text(i), c->v[i]);
		any = true;
	}
	printf("%s", any ? "" : "none");
}

static void
print_headline(const struct cp_result *r)
{
	char size[32], of[32] = "";
	const char *verified = "SHA-256 NOT compared (--no-check)";

	if (r->ok < r->files)
		snprintf(of, sizeof(of), " of %u", r->files);
	if (r->checked)
		verified = r->sender ? "SHA-256 verified by the receiver" : "SHA-256 verified";
	printf("%s %u%s file%s, %s", r->sender ? "sent" : "received", r->ok, of,
	       r->files == 1 ? "" : "s", urn_text_size(size, sizeof(size), r->bytes));
	if (r->ok > 0)
		printf(" in %.2f s: %.1f Gb/s, %s", (double)transfer_ns(r) / 1e9, gbps(r), verified);
	if (r->ok > 0 && r->to != NULL)
		printf(", in %s/", r->to);
	printf("\n");
}

void
cp_report_text(const struct cp_result *r)
{
	char a[40], b[40], c[40];

	print_headline(r);
	if (r->ok > 0 && r->store_ns > 0)
		printf("bringing to disk took another %s\n",
		       urn_text_time(a, sizeof(a), r->store_ns));
	printf("messages %s of up to %s", grouped(a, sizeof(a), r->messages),
	       urn_text_size(b, sizeof(b), r->chunk));
	if (urn_hist_count(&r->latency) > 0)
		printf(", latency p50/p99/p99.9 %.0f/%.0f/%.0f us",
		       (double)urn_hist_quantile(&r->latency, 0.5) / 1e3,
		       (double)urn_hist_quantile(&r->latency, 0.99) / 1e3,
		       (double)urn_hist_quantile(&r->latency, 0.999) / 1e3);
	printf("; path MTU %u%s%s\n", r->mtu, r->attached || r->icrc ? "" : ", no ICRC",
	       r->over_msg ? ", without a connection" : "");
	if (r->failover != NULL)
		urn_failover_print(r->failover, "", stdout);
	if (r->attached)
		return;
	printf("packets %s sent, %s received, %s retransmitted; ",
	       grouped(a, sizeof(a), r->own.v[URN_C_TX_PACKETS]),
	       grouped(b, sizeof(b), r->own.v[URN_C_RX_PACKETS]),
	       grouped(c, sizeof(c), retransmits(&r->own)));
	print_drops("drops: ", &r->own);
	if (r->complete) {
		printf("; ");
		print_drops(r->sender ? "at the receiver: " : "at the sender: ", &r->peer);
	}
	printf("\n");
}

static void
json_dataplane(struct urn_json *j, const struct urn_counters *c)
{
	urn_json_u64(j, "packets_sent", c->v[URN_C_TX_PACKETS]);
	urn_json_u64(j, "packets_received", c->v[URN_C_RX_PACKETS]);
	urn_json_u64(j, "retransmits", retransmits(c));
	urn_json_object(j, "drops");
	for (unsigned int i = 0; i < URN_COUNTER_COUNT; i++)
		if (is_drop(i) && c->v[i] > 0)
			urn_json_u64(j, urn_counter_name(i), c->v[i]);
	urn_json_end(j);
	/* All counters, for readers who want more detail. */
	urn_json_counters(j, "counters", "", urn_counter_name, c->v, URN_COUNTER_COUNT);
}

static void
json_files(struct urn_json *j, const struct cp_result *r)
{
	char hex[2 * CP_DIGEST + 1];

	urn_json_array(j, "list");
	for (unsigned int i = 0; i < r->files; i++) {
		const struct cp_source *src = &r->sources[i];

		urn_json_object(j, NULL);
		urn_json_str(j, "path", src->path);
		urn_json_bool(j, "sent", src->state == CP_SENT);
		urn_json_u64(j, "size", src->size);
		if (src->state == CP_SENT && r->checked)
			urn_json_str(j, "sha256", cp_digest_text(hex, src->digest));
		if (src->state != CP_SENT)
			urn_json_str(j, "error", src->why.text);
		urn_json_end(j);
	}
	urn_json_end(j);
}

void
cp_report_json(const struct cp_result *r)
{
	struct urn_json j;

	urn_json_init(&j, stdout);
	urn_json_object(&j, NULL);
	urn_json_str(&j, "role", r->sender ? "sender" : "receiver");
	urn_json_bool(&j, "ok", r->complete && r->ok == r->files);
	urn_json_bool(&j, "checked", r->checked);
	urn_json_bool(&j, "attached", r->attached);
	urn_json_str(&j, "over", r->over_msg ? "msg" : "verbs");
	if (!r->attached)
		urn_json_bool(&j, "icrc", r->icrc);
	urn_json_u64(&j, "files", r->files);
	urn_json_u64(&j, "files_ok", r->ok);
	urn_json_u64(&j, "bytes", r->bytes);
	urn_json_num(&j, "seconds", (double)transfer_ns(r) / 1e9, 6);
	urn_json_num(&j, "store_seconds", (double)r->store_ns / 1e9, 6);
	urn_json_num(&j, "gbps", gbps(r), 3);
	urn_json_u64(&j, "mtu", r->mtu);
	urn_json_u64(&j, "chunk", r->chunk);
	urn_json_u64(&j, "depth", r->depth);
	urn_json_u64(&j, "messages", r->messages);
	if (r->sender)
		urn_json_latency(&j, "lat_us", &r->latency);
	if (r->failover != NULL)
		urn_failover_json(r->failover, &j);
	if (!r->attached)
		json_dataplane(&j, &r->own);
	if (r->complete && !r->attached) {
		urn_json_object(&j, "peer");
		json_dataplane(&j, &r->peer);
		urn_json_end(&j);
	}
	if (r->sources != NULL)
		json_files(&j, r);
	urn_json_end(&j);
}
