/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Questions of telemetry, as DPDK's library passes them. The test replaces the library:
 * instead of JSON it writes "key=number" and "key='text'". The test also replaces the report on
 * queue pairs, with as many queue pairs as a test likes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "control/objects.h"
#include "report/telemetry.h"
#include "counters.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_telemetry.h>

/* ---- the library */

struct known {
	char name[64];
	telemetry_cb cb;
};

static struct known known[64];
static unsigned int known_n;

struct rte_tel_data {
	char kind; /* 'd' dict, 'u' array of numbers, 's' of strings */
	unsigned int n;
	char text[65536];
	size_t len;
};

static struct rte_tel_data answer;
/* A mistake found by the replaced functions, which may not jump out of telemetry's lock; NULL: none. */
static const char *wrong;

int __wrap_rte_telemetry_register_cmd(const char *cmd, telemetry_cb fn, const char *help);
int __wrap_rte_tel_data_start_dict(struct rte_tel_data *d);
int __wrap_rte_tel_data_start_array(struct rte_tel_data *d, enum rte_tel_value_type type);
int __wrap_rte_tel_data_add_dict_string(struct rte_tel_data *d, const char *name, const char *val);
int __wrap_rte_tel_data_add_dict_u64(struct rte_tel_data *d, const char *name, uint64_t val);
int __wrap_rte_tel_data_add_array_string(struct rte_tel_data *d, const char *str);
int __wrap_rte_tel_data_add_array_u64(struct rte_tel_data *d, uint64_t x);
urn_report_fn __wrap_urn_report_qps;

int
__wrap_rte_telemetry_register_cmd(const char *cmd, telemetry_cb fn, const char *help)
{
	if (known_n == 64 || strlen(cmd) >= 56 || strlen(help) >= RTE_TEL_MAX_STRING_LEN)
		return -ENOSPC;
	snprintf(known[known_n].name, sizeof(known[0].name), "%s", cmd);
	known[known_n++].cb = fn;
	return 0;
}

static void __attribute__((format(printf, 2, 3)))
put(struct rte_tel_data *d, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (d->len < sizeof(d->text) - 512)
		d->len += (size_t)vsnprintf(d->text + d->len, 512, fmt, ap);
	else
		wrong = "too much of an answer";
	va_end(ap);
	d->n++;
}

/* Text that any version of the library can make JSON of. */
static const char *
sound(const char *s)
{
	if (strlen(s) >= RTE_TEL_MAX_STRING_LEN)
		wrong = "text that is too long";
	for (const char *p = s; *p; p++)
		if (*p < ' ' || *p > '~' || *p == '"' || *p == '\\')
			wrong = "text that is no JSON";
	return s;
}

static const char *
key(const char *s)
{
	if (s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_/")] != '\0')
		wrong = "a key that the library refuses";
	return s;
}

int
__wrap_rte_tel_data_start_dict(struct rte_tel_data *d)
{
	if (d->kind != 0)
		wrong = "an answer begun twice";
	d->kind = 'd';
	return 0;
}

int
__wrap_rte_tel_data_start_array(struct rte_tel_data *d, enum rte_tel_value_type type)
{
	if (d->kind != 0)
		wrong = "an answer begun twice";
	d->kind = type == RTE_TEL_U64_VAL ? 'u' : 's';
	return 0;
}

int
__wrap_rte_tel_data_add_dict_string(struct rte_tel_data *d, const char *name, const char *val)
{
	if (d->kind != 'd' || d->n >= RTE_TEL_MAX_DICT_ENTRIES)
		wrong = "more than the library takes, or of another kind";
	put(d, " %s='%s'", key(name), sound(val));
	return 0;
}

int
__wrap_rte_tel_data_add_dict_u64(struct rte_tel_data *d, const char *name, uint64_t val)
{
	if (d->kind != 'd' || d->n >= RTE_TEL_MAX_DICT_ENTRIES)
		wrong = "more than the library takes, or of another kind";
	put(d, " %s=%" PRIu64, key(name), val);
	return 0;
}

int
__wrap_rte_tel_data_add_array_string(struct rte_tel_data *d, const char *str)
{
	if (d->kind != 's' || d->n >= RTE_TEL_MAX_ARRAY_ENTRIES)
		wrong = "more than the library takes, or of another kind";
	put(d, " '%s'", sound(str));
	return 0;
}

int
__wrap_rte_tel_data_add_array_u64(struct rte_tel_data *d, uint64_t x)
{
	if (d->kind != 'u' || d->n >= RTE_TEL_MAX_ARRAY_ENTRIES)
		wrong = "more than the library takes, or of another kind";
	put(d, " %" PRIu64, x);
	return 0;
}

/* ---- queue pairs, numbered from 1 on; a report comes in parts */

static uint32_t qps, rows;
static const char *state = "RTS";

int
__wrap_urn_report_qps(const struct urn_report_source *src, struct urn_report_query *q,
		      struct urn_report_sink *s, struct urn_err *err)
{
	if (src == NULL || !q->all)
		wrong = "a question without its source, or not for all";
	if (strcmp(q->adapter, "a0") != 0) {
		urn_err_set(err, "no adapter has the name %s", q->adapter);
		return URN_REPORT_FAILED;
	}
	for (uint32_t i = 0; i < rows; i++) {
		if (q->at.inner == qps)
			return URN_REPORT_DONE;
		q->at.inner++;
		if (q->by_qpn && q->qpn != q->at.inner)
			continue;
		s->begin(s, "qp", false);
		s->u64(s, "qpn", q->at.inner);
		s->str(s, "state", state);
		s->end(s);
	}
	return URN_REPORT_MORE;
}

/* ---- the tests */

static struct urn_port port;
static struct urn_adapter adapter = {.cfg = {.name = "a0", .port = &port}};
static struct urn_adapter *list[1] = {&adapter};
static struct urn_dp dp = {.adapters_n = 1, .adapter = list};
static struct urn_report_source src = {.dp = &dp};

static const char *
ask(const char *command, const char *params)
{
	memset(&answer, 0, sizeof(answer));
	for (unsigned int i = 0; i < known_n; i++) {
		if (strcmp(known[i].name, command) != 0)
			continue;
		assert_int_equal(known[i].cb(command, params, &answer), 0);
		assert_int_not_equal(answer.kind, 0);
		if (wrong)
			fail_msg("%s: %s", command, wrong);
		return answer.text;
	}
	fail_msg("%s is no command", command);
	return "";
}

static int
setup(void **state_)
{
	const struct urn_telemetry_config cfg = {.src = &src};
	struct urn_err err = {""};

	(void)state_;
	wrong = NULL;
	qps = 0;
	rows = 100;
	state = "RTS";
	return urn_telemetry_start(&cfg, &err);
}

static int
teardown(void **state_)
{
	(void)state_;
	urn_telemetry_stop();
	return 0;
}

/* Each command is registered once, however often it is started; after the stop, each answers that. */
static void
test_commands(void **state_)
{
	const struct urn_telemetry_config cfg = {.src = &src};
	unsigned int n = known_n;
	struct urn_err err = {""};

	(void)state_;
	assert_true(n > 20);
	for (unsigned int i = 0; i < n; i++)
		for (unsigned int k = 0; k < i; k++)
			assert_string_not_equal(known[i].name, known[k].name);
	urn_telemetry_stop();
	for (unsigned int i = 0; i < n; i++) {
		bool capture = strcmp(known[i].name, "/urnic/capture") == 0;

		ask(known[i].name, NULL);
		if (!capture)
			assert_string_equal(answer.text, " error='no dataplane runs'");
	}
	assert_int_equal(urn_telemetry_start(&cfg, &err), 0);
	assert_int_equal(known_n, n);
	assert_non_null(strstr(ask("/urnic/version", NULL), " urnic='" URN_VERSION "'"));
}

/* Lists come in parts, from any place, with as many numbers as the library takes. */
static void
test_lists(void **state_)
{
	char params[32], want[32];

	(void)state_;
	assert_string_equal(ask("/urnic/qp/list", "a0"), "");
	assert_int_equal(answer.kind, 'u');
	qps = 3;
	assert_string_equal(ask("/urnic/qp/list", "a0"), " 1 2 3");
	assert_string_equal(ask("/urnic/qp/list", "a0,2"), " 3");
	assert_string_equal(ask("/urnic/qp/list", "a0,3"), "");
	assert_int_equal(answer.kind, 'u');
	for (rows = 1; rows < 2000; rows = rows * 3 + 1) {
		qps = 1300;
		for (unsigned int from = 0; from < 1536; from += 512) {
			snprintf(params, sizeof(params), "a0,%u", from);
			ask("/urnic/qp/list", params);
			assert_int_equal(answer.n, from < 1024 ? RTE_TEL_MAX_ARRAY_ENTRIES : 276);
			snprintf(want, sizeof(want), " %u ", from + 1);
			assert_int_equal(strncmp(answer.text, want, strlen(want)), 0);
		}
	}
	assert_string_equal(ask("/urnic/adapter/list", NULL), " 'a0'");
	assert_int_equal(answer.kind, 's');
}

static void
test_objects(void **state_)
{
	(void)state_;
	qps = 1000;
	rows = 7;
	assert_string_equal(ask("/urnic/qp/info", "a0,999"), " qpn=999 state='RTS'");
	assert_string_equal(ask("/urnic/qp/info", "a0,0x10"), " qpn=16 state='RTS'");
	assert_string_equal(ask("/urnic/qp/info", "a0,1001"), " error='there is none such'");
}

/* All counters are one object, whatever their values are. */
static void
test_counters(void **state_)
{
	struct urn_shard shard = {0};
	struct urn_tp *tp = calloc(1, sizeof(*tp));
	char want[96];

	(void)state_;
	assert_non_null(tp);
	shard.tp = tp;
	adapter.shard[0] = &shard;
	for (unsigned int i = 0; i < URN_COUNTER_COUNT; i++)
		tp->c.v[i] = UINT64_MAX - i;
	ask("/urnic/adapter/counters", "a0");
	assert_int_equal(answer.n, URN_COUNTER_COUNT + 1);
	for (unsigned int i = 0; i < URN_COUNTER_COUNT; i++) {
		snprintf(want, sizeof(want), " %s=%" PRIu64, urn_counter_name(i), UINT64_MAX - i);
		assert_non_null(strstr(answer.text, want));
	}
	adapter.shard[0] = NULL;
	free(tp);
}

/* Names and questions that are not valid text do not change the JSON's meaning. */
static void
test_odd_text(void **state_)
{
	char longer[400];

	(void)state_;
	qps = 1;
	state = "a\"b\\c\nd\xff\x7f";
	assert_string_equal(ask("/urnic/qp/info", "a0,1"), " qpn=1 state='a?b?c?d?" "?'");
	assert_string_equal(ask("/urnic/qp/info", "\"}\\\xc3\x28,1"),
			    " error='no adapter has the name ?}?" "?('");
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	state = longer;
	assert_int_equal(strlen(ask("/urnic/qp/info", "a0,1")), strlen(" qpn=1 state=''") + 127);
	/* A question that is cut short could be another one. */
	assert_non_null(strstr(ask("/urnic/qp/list", longer), "error='numbers of queue pairs."));
}

static void
test_wrong_questions(void **state_)
{
	static const struct {
		const char *command, *params;
	} t[] = {
		{"/urnic/qp/info", NULL}, {"/urnic/qp/info", ""}, {"/urnic/qp/info", "a0"},
		{"/urnic/qp/info", "a0,"}, {"/urnic/qp/info", "a0,x"}, {"/urnic/qp/info", "a0,-1"},
		{"/urnic/qp/info", "a0,+1"}, {"/urnic/qp/info", "a0, 1"}, {"/urnic/qp/info", "a0,1,2"},
		{"/urnic/qp/info", "a0,4294967296"}, {"/urnic/qp/list", ",1"}, {"/urnic/qp/list", "a0,1,"},
		{"/urnic/qp/list", "a0,99999999999999999999"}, {"/urnic/adapter/list", "1,"},
		{"/urnic/client/info", "0"}, {"/urnic/adapter/counters", "a0,a0"},
	};

	(void)state_;
	qps = 5;
	for (unsigned int i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		ask(t[i].command, t[i].params);
		if (strstr(answer.text, "arameters") == NULL)
			fail_msg("%s,%s: %s", t[i].command, t[i].params ? t[i].params : "", answer.text);
	}
	assert_string_equal(ask("/urnic/capture", NULL),
			    " running=0 ended=0 file='' port='' frames=0 bytes=0 dropped=0 failure=''");
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_commands), T(test_lists),    T(test_objects),
		T(test_counters), T(test_odd_text), T(test_wrong_questions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
