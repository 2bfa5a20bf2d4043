/* SPDX-License-Identifier: BSD-3-Clause */
/* The text: read line by line by its format (0.0.4), with names and figures of any kind. */
#include "test/unit/pmd_glue/harness.h"
#include "control/objects.h"
#include "report/capture.h"
#include "report/prometheus_text.h"
#include "counters.h"
#include "switch/fabric.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
	struct urn_port *port[2];
	struct urn_dp *dp;
	struct urn_fabric *fabric;
	struct urn_metrics_switch sw[1];
	struct urn_captures *captures;
	struct urn_metrics_source src;
	char *text;
	size_t len;
};

static void
up(struct node *n)
{
	struct urn_port_config cfg[2] = {port_cfg("p0", ""), port_cfg("p1", "")};
	struct urn_adapter_config a[2] = {{.node = "n", .name = "a0", .engines = 1, .max_qp = 64},
					  {.node = "m", .name = "b0", .engines = 1, .max_qp = 64}};
	const struct urn_switch_config sc = {.name = "wire"};
	const struct urn_switch_port_config pc[2] = {{.name = "x"}, {.name = "y"}};
	struct urn_dp_config dp = {.engines = 1, .adapters = 2, .adapter = a};
	struct urn_err err = {""};

	memset(n, 0, sizeof(*n));
	eal_up();
	check_ok(urn_port_open_ring_pair(cfg, n->port, &err), &err);
	a[0].port = n->port[0];
	a[1].port = n->port[1];
	n->dp = urn_dp_create(&dp, &err);
	check_ok(n->dp == NULL, &err);
	n->sw[0].sw = urn_switch_create(&sc);
	n->fabric = urn_fabric_create(NULL);
	n->sw[0].fabric = n->fabric;
	check(n->fabric != NULL && urn_fabric_add(n->fabric, n->sw[0].sw) == 0);
	for (int i = 0; i < 2; i++)
		check(urn_switch_add_port(n->sw[0].sw, &pc[i]) == i);
	n->captures = urn_captures_create("/tmp", NULL, &err);
	check_ok(n->captures == NULL, &err);
	n->src = (struct urn_metrics_source){.dp = n->dp, .port = n->port, .ports = 2, .sw = n->sw,
					     .switches = 1, .captures = n->captures};
}

static void
down(struct node *n)
{
	urn_captures_destroy(n->captures);
	urn_fabric_destroy(n->fabric);
	urn_dp_destroy(n->dp);
	urn_port_close(n->port[0]);
	urn_port_close(n->port[1]);
	free(n->text);
}

static const char *
text_of(struct node *n)
{
	FILE *f;

	free(n->text);
	n->text = NULL;
	f = open_memstream(&n->text, &n->len);
	check(f != NULL);
	urn_prometheus_text(&n->src, f);
	check(fclose(f) == 0 && strlen(n->text) == n->len && n->len > 0);
	return n->text;
}

/* ---- reading it */

static size_t
name_length(const char *s)
{
	size_t n = 0;

	while (isalpha((unsigned char)s[n]) || s[n] == '_' || s[n] == ':' ||
	       (n > 0 && isdigit((unsigned char)s[n])))
		n++;
	return n;
}

/* Read a sample's labels, in braces. returns: the text behind them */
static const char *
labels(const char *s)
{
	do {
		s++; /* the brace, or a comma */
		s += name_length(s);
		check(s[0] == '=' && s[1] == '"');
		for (s += 2; *s != '"'; s++) {
			check(*s != '\0' && *s != '\n');
			if (*s == '\\') {
				s++;
				check(*s == '\\' || *s == '"' || *s == 'n');
			}
		}
		s++;
	} while (*s == ',');
	check(*s == '}');
	return s + 1;
}

/* Read one line of a family's samples. */
static void
sample(const char *line, const char *family)
{
	size_t n = name_length(line);
	const char *s = line + n;
	char *end;

	check(n == strlen(family) && strncmp(line, family, n) == 0);
	if (*s == '{')
		s = labels(s);
	check(*s == ' ' && isdigit((unsigned char)s[1]));
	(void)strtod(s + 1, &end);
	check(*end == '\n');
}

/* Families one after the other: help, type, samples. returns: the number of families */
static unsigned int
read_all(const char *text)
{
	static char seen[400][96];
	const char *total;
	unsigned int n = 0;
	char type[16];

	for (const char *s = text; *s;) {
		check(n < 400 && sscanf(s, "# HELP %95s ", seen[n]) == 1);
		check(name_length(seen[n]) == strlen(seen[n]) && strncmp(seen[n], "urnic_", 6) == 0);
		for (unsigned int i = 0; i < n; i++)
			check(strcmp(seen[i], seen[n]) != 0);
		s += strlen("# HELP ") + strlen(seen[n]);
		check(s[0] == ' ' && s[1] != '\n');
		s = strchr(s, '\n');
		check(s != NULL);
		check(strncmp(++s, "# TYPE ", 7) == 0 && strncmp(s + 7, seen[n], strlen(seen[n])) == 0);
		check(sscanf(s + 7 + strlen(seen[n]), " %15s", type) == 1);
		total = strstr(seen[n], "_total");
		check(strcmp(type, total && total[6] == '\0' ? "counter" : "gauge") == 0);
		for (s = strchr(s, '\n') + 1; *s && *s != '#'; s = strchr(s, '\n') + 1)
			sample(s, seen[n]);
		n++;
	}
	return n;
}

static void
has(const struct node *n, const char *line)
{
	char want[256];

	snprintf(want, sizeof(want), "\n%s\n", line);
	if (!strstr(n->text, want))
		fprintf(stderr, "no line: %s\n", line);
	check(strstr(n->text, want) != NULL);
}

/* ---- tests */

static void
families(void *arg)
{
	struct node n;
	unsigned int fewer;

	(void)arg;
	up(&n);
	check(read_all(text_of(&n)) > URN_COUNTER_COUNT + URN_SWITCH_COUNTER_COUNT + URN_IMPAIR_COUNTER_COUNT);
	check(strstr(n.text, "\nurnic_build_info{version=\"" URN_VERSION "\",dpdk=\"DPDK ") != NULL);
	has(&n, "urnic_adapter_qps{adapter=\"b0\",node=\"m\"} 0");
	has(&n, "urnic_adapter_msg_sets{adapter=\"a0\",node=\"n\"} 0");
	has(&n, "urnic_adapter_flows{adapter=\"b0\",node=\"m\"} 0");
	has(&n, "urnic_port_up{port=\"p0\"} 1");
	has(&n, "urnic_switch_up{switch=\"wire\",port=\"y\"} 1");
	has(&n, "urnic_switch_impair_popped_total{switch=\"wire\",port=\"y\",direction=\"out\"} 0");
	/* A priority of a queue stands for itself once it has counted; priority 0 always does. */
	has(&n,
	    "urnic_switch_queue_drop_frames_total{switch=\"wire\",port=\"y\",priority=\"0\"} 0");
	check(strstr(n.text, "priority=\"5\"") == NULL);
	urn_switch_pause(n.sw[0].sw, 1, 5, true, 0);
	check(read_all(text_of(&n)) > 0);
	has(&n, "urnic_switch_queue_pauses_total{switch=\"wire\",port=\"y\",priority=\"0\"} 0");
	has(&n, "urnic_switch_queue_pauses_total{switch=\"wire\",port=\"y\",priority=\"5\"} 1");
	check(strstr(n.text, "queue_waited_total{switch=\"wire\",port=\"y\",priority=\"5\"") ==
	      NULL);
	has(&n, "urnic_capture_dropped_total 0");
	/* Objects that do not exist have no family. */
	n.src.ports = n.src.switches = 0;
	n.src.captures = NULL;
	fewer = read_all(text_of(&n));
	check(fewer > URN_COUNTER_COUNT && strstr(n.text, "urnic_port_") == NULL);
	check(strstr(n.text, "urnic_switch_") == NULL && strstr(n.text, "urnic_capture_") == NULL);
	down(&n);
}

/* Lines stay distinct, whatever names and figures have. */
static void
odd_names_and_huge_counts(void *arg)
{
	struct node n;

	(void)arg;
	up(&n);
	strcpy(n.dp->adapter[0]->cfg.name, "a\"b\\c\nd");
	strcpy(n.dp->adapter[0]->cfg.node, "},x=\"");
	strcpy(n.port[1]->cfg.name, "\xc3\xa4 {}#");
	n.dp->adapter[0]->shard[0]->tp->c.v[URN_C_RX_BYTES] = UINT64_MAX;
	n.dp->adapter[1]->shard[0]->tp->c.v[URN_C_DROP_ICRC] = 7;
	(void)read_all(text_of(&n));
	has(&n, "urnic_adapter_rx_bytes_total{adapter=\"a\\\"b\\\\c\\nd\",node=\"},x=\\\"\"} "
		"18446744073709551615");
	has(&n, "urnic_adapter_drop_icrc_total{adapter=\"b0\",node=\"m\"} 7");
	has(&n, "urnic_port_up{port=\"\xc3\xa4 {}#\"} 1");
	down(&n);
}

/* Nanoseconds become decimals of a second, without loss. */
static void
seconds(void *arg)
{
	struct urn_engine_usage u;
	char line[128];
	struct node n;

	(void)arg;
	up(&n);
	for (int i = 0; i < 10; i++)
		(void)urn_engine_poll(urn_dp_engine(n.dp, 0));
	(void)read_all(text_of(&n));
	urn_engine_usage(urn_dp_engine(n.dp, 0), &u);
	snprintf(line, sizeof(line), "urnic_engine_busy_seconds_total{engine=\"0\"} %llu.%09llu",
		 (unsigned long long)u.busy_ns / 1000000000u, (unsigned long long)u.busy_ns % 1000000000u);
	has(&n, line);
	has(&n, "urnic_engine_turns_total{engine=\"0\"} 10");
	down(&n);
}

CHILD_TEST(families)
CHILD_TEST(odd_names_and_huge_counts)
CHILD_TEST(seconds)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_families),
		cmocka_unit_test(test_odd_names_and_huge_counts),
		cmocka_unit_test(test_seconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
