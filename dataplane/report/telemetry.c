/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A reply is at most 16 KiB of JSON and 512 numbers, keys are letters, digits, _
 * and / (rte_telemetry.h): so lists come in parts, and objects one by one.
 */
#include "report/telemetry.h"

#include "control/objects.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_telemetry.h>

enum {
	LIST_NUMBERS = RTE_TEL_MAX_ARRAY_ENTRIES,
	LIST_STRINGS = 256, /* strings of up to 48 bytes in a list: under 16 KiB */
	FIELDS = 256,	    /* fields of an object */
	ARGS = 2,	    /* arguments of a command, without the FROM of lists */
	PARAMS = 256,	    /* bytes of a command's parameters */
};

_Static_assert(URN_COUNTER_COUNT + 1 <= FIELDS && FIELDS <= RTE_TEL_MAX_DICT_ENTRIES,
	       "all counters of an adapter are one object");

/* Meaning of a command's argument. */
enum arg { ARG_END, ARG_NAME, ARG_ADAPTER, ARG_CLIENT, ARG_QPN, ARG_KEY };

struct command {
	const char *name;
	urn_report_fn *report;
	bool list;	  /* gives the values of `key`, from the FROMth on; false: one object */
	const char *key;  /* lists: the field to give; objects: the field that ARG_KEY is compared with */
	const char *key2; /* lists: field put behind the first, with a colon; NULL: none */
	enum arg arg[ARGS];
	const char *help;
};

/* Report how busy an engine is: only the values that change all the time. */
static int
report_usage(const struct urn_report_source *src, struct urn_report_query *q,
	     struct urn_report_sink *s, struct urn_err *err)
{
	struct urn_engine_usage u;
	char number[16];

	for (unsigned int i = 0; i < src->dp->engines_n; i++) {
		snprintf(number, sizeof(number), "%u", i);
		if (strcmp(q->name, number) != 0)
			continue;
		urn_engine_usage(urn_dp_engine(src->dp, i), &u);
		s->begin(s, "usage", true);
		s->u64(s, "turns", u.turns);
		s->u64(s, "busy_ns", u.busy_ns);
		s->u64(s, "ns", u.ns);
		s->end(s);
		return URN_REPORT_DONE;
	}
	urn_err_set(err, "no engine has the number %.20s; there are %u", q->name,
		    src->dp->engines_n);
	return URN_REPORT_FAILED;
}

static const struct command commands[] = {
	{"/urnic/version", urn_report_version, .help = "versions. No parameters"},
	{"/urnic/server", urn_report_server,
	 .help = "counters of the socket of clients. No parameters"},
	{"/urnic/adapter/list", urn_report_adapters, true, "name",
	 .help = "names of adapters. No parameters"},
	{"/urnic/adapter/info", urn_report_adapters, .arg = {ARG_NAME},
	 .help = "an adapter. Parameters: NAME"},
	{"/urnic/adapter/counters", urn_report_counters, .arg = {ARG_ADAPTER},
	 .help = "all counters of an adapter. Parameters: NAME"},
	{"/urnic/engine/list", urn_report_engines, true, "engine",
	 .help = "numbers of engines. No parameters"},
	{"/urnic/engine/info", urn_report_engines, .arg = {ARG_NAME},
	 .help = "an engine. Parameters: NUMBER"},
	{"/urnic/engine/usage", report_usage, .arg = {ARG_NAME},
	 .help = "turns of an engine, ns of those that found something, ns in all. Parameters: "
		 "NUMBER"},
	{"/urnic/port/list", urn_report_ports, true, "name",
	 .help = "names of ports. No parameters"},
	{"/urnic/port/info", urn_report_ports, .arg = {ARG_NAME},
	 .help = "a port. Parameters: NAME"},
	{"/urnic/client/list", urn_report_clients, true, "client",
	 .help = "numbers of clients. Parameters: [FROM], the place in the list to begin at"},
	{"/urnic/client/info", urn_report_clients, .arg = {ARG_CLIENT},
	 .help = "a client. Parameters: NUMBER"},
	{"/urnic/qp/list", urn_report_qps, true, "qpn", .arg = {ARG_ADAPTER},
	 .help = "numbers of queue pairs. Parameters: ADAPTER[,FROM]"},
	{"/urnic/qp/info", urn_report_qps, .arg = {ARG_ADAPTER, ARG_QPN},
	 .help = "a queue pair. Parameters: ADAPTER,NUMBER"},
	{"/urnic/cq/list", urn_report_cqs, true, "cq", .arg = {ARG_CLIENT},
	 .help = "numbers of completion queues. Parameters: CLIENT[,FROM]"},
	{"/urnic/cq/info", urn_report_cqs, .key = "cq", .arg = {ARG_CLIENT, ARG_KEY},
	 .help = "a completion queue. Parameters: CLIENT,NUMBER"},
	{"/urnic/srq/list", urn_report_srqs, true, "srq", .arg = {ARG_CLIENT},
	 .help = "numbers of shared receive queues. Parameters: CLIENT[,FROM]"},
	{"/urnic/srq/info", urn_report_srqs, .key = "srq", .arg = {ARG_CLIENT, ARG_KEY},
	 .help = "a shared receive queue. Parameters: CLIENT,NUMBER"},
	{"/urnic/msg/list", urn_report_msgs, true, "set", .arg = {ARG_ADAPTER},
	 .help = "numbers of register sets of messages. Parameters: ADAPTER[,FROM]"},
	{"/urnic/msg/info", urn_report_msgs, .key = "set", .arg = {ARG_ADAPTER, ARG_KEY},
	 .help = "a register set. Parameters: ADAPTER,NUMBER"},
	{"/urnic/am/list", urn_report_ams, true, "endpoint", .arg = {ARG_ADAPTER},
	 .help = "numbers of endpoints of remote memory access. Parameters: ADAPTER[,FROM]"},
	{"/urnic/am/info", urn_report_ams, .key = "endpoint", .arg = {ARG_ADAPTER, ARG_KEY},
	 .help = "an endpoint of remote memory access. Parameters: ADAPTER,NUMBER"},
	{"/urnic/mr/list", urn_report_mrs, true, "key", .arg = {ARG_ADAPTER},
	 .help = "keys of memory regions and windows. Parameters: ADAPTER[,FROM]"},
	{"/urnic/mr/info", urn_report_mrs, .key = "key", .arg = {ARG_ADAPTER, ARG_KEY},
	 .help = "a memory region or window. Parameters: ADAPTER,KEY"},
	{"/urnic/neighbour/list", urn_report_neighbours, true, "address", .arg = {ARG_ADAPTER},
	 .help = "addresses of neighbours. Parameters: ADAPTER[,FROM]"},
	{"/urnic/neighbour/info", urn_report_neighbours, .key = "address",
	 .arg = {ARG_ADAPTER, ARG_KEY}, .help = "a neighbour. Parameters: ADAPTER,ADDRESS"},
	{"/urnic/switch/list", urn_report_switches, true, "switch", "port",
	 .help = "ports of switches, as SWITCH:PORT. Parameters: [FROM]"},
	{"/urnic/switch/info", urn_report_switches, .key = "port", .arg = {ARG_NAME, ARG_KEY},
	 .help = "a port of a switch, with its counters. Parameters: SWITCH,PORT"},
};

/* DPDK's callbacks of commands have no argument: hence static. `lock` protects told and registered;
 * held while a command is answered. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct urn_telemetry_config told; /* under lock; src NULL: not started, or stopped */
static bool registered;			 /* under lock */

/* ---- the sink */

struct field {
	char key[48];
	bool number;
	uint64_t u64;
	char text[RTE_TEL_MAX_STRING_LEN];
};

struct sink {
	struct urn_report_sink sink;
	const struct command *cmd;
	struct rte_tel_data *out;
	const char *want;  /* ARG_KEY: the value; NULL: the first object is right */
	uint64_t skip;	   /* lists: entries before the first */
	unsigned int n;	   /* lists: entries; objects: 1: the object was found */
	unsigned int room; /* lists: entries still to go */
	bool number;	   /* lists: entries are numbers; known after the first entry */
	unsigned int fields;
	struct field field[FIELDS]; /* fields of the present object */
};

static struct sink *
sink_of(struct urn_report_sink *s)
{
	return (struct sink *)(void *)((char *)s - offsetof(struct sink, sink));
}

static void
sink_begin(struct urn_report_sink *s, const char *kind, bool card)
{
	(void)kind;
	(void)card;
	sink_of(s)->fields = 0;
}

static struct field *
add(struct urn_report_sink *s, const char *key)
{
	struct sink *t = sink_of(s);

	if (t->fields == FIELDS)
		return NULL;
	t->field[t->fields] = (struct field){.number = false};
	snprintf(t->field[t->fields].key, sizeof(t->field[0].key), "%s", key);
	return &t->field[t->fields++];
}

static void
sink_u64(struct urn_report_sink *s, const char *key, uint64_t value)
{
	struct field *f = add(s, key);

	if (f) {
		f->number = true;
		f->u64 = value;
	}
}

static void
sink_flag(struct urn_report_sink *s, const char *key, bool value)
{
	sink_u64(s, key, value);
}

/*
 * Make text safe for every version of the telemetry library: characters that it would have to
 * escape, and bytes that are no UTF-8, become '?'; a long text is cut.
 */
static const char *
plain(char to[RTE_TEL_MAX_STRING_LEN], const char *from)
{
	size_t n = 0;

	for (; *from && n < RTE_TEL_MAX_STRING_LEN - 1; from++) {
		bool safe = *from >= ' ' && *from <= '~' && *from != '"' && *from != '\\';

		to[n++] = (char)(safe ? *from : '?');
	}
	to[n] = '\0';
	return to;
}

static void
sink_str(struct urn_report_sink *s, const char *key, const char *value)
{
	struct field *f = add(s, key);

	if (f)
		(void)plain(f->text, value);
}

static const struct field *
find(const struct sink *t, const char *key)
{
	for (unsigned int i = 0; i < t->fields; i++)
		if (strcmp(t->field[i].key, key) == 0)
			return &t->field[i];
	return NULL;
}

static void
list_entry(struct sink *t)
{
	const struct field *f = find(t, t->cmd->key),
			   *g = t->cmd->key2 ? find(t, t->cmd->key2) : NULL;
	char text[RTE_TEL_MAX_STRING_LEN];

	if (f == NULL || t->skip > 0) {
		t->skip -= f != NULL;
		return;
	}
	if (t->n == 0) {
		t->number = f->number;
		t->room = f->number ? LIST_NUMBERS : LIST_STRINGS;
		rte_tel_data_start_array(t->out, f->number ? RTE_TEL_U64_VAL : RTE_TEL_STRING_VAL);
	}
	t->n++;
	if (t->room == 0)
		return;
	t->room--;
	snprintf(text, sizeof(text), "%.60s%s%.60s", f->text, g ? ":" : "", g ? g->text : "");
	if (t->number)
		(void)rte_tel_data_add_array_u64(t->out, f->u64);
	else
		(void)rte_tel_data_add_array_string(t->out, text);
}

/* True when the present object is the one that was asked for. */
static bool
matches(const struct sink *t)
{
	const struct field *f = t->want ? find(t, t->cmd->key) : NULL;
	char *end;

	if (t->want == NULL || f == NULL)
		return t->want == NULL;
	return f->number ? strtoull(t->want, &end, 0) == f->u64 && *end == '\0'
			 : strcmp(t->want, f->text) == 0;
}

static void
sink_end(struct urn_report_sink *s)
{
	struct sink *t = sink_of(s);

	if (t->cmd->list) {
		list_entry(t);
		return;
	}
	if (t->n > 0 || !matches(t))
		return;
	t->n = 1;
	rte_tel_data_start_dict(t->out);
	for (unsigned int i = 0; i < t->fields; i++) {
		const struct field *f = &t->field[i];

		if (f->number)
			(void)rte_tel_data_add_dict_u64(t->out, f->key, f->u64);
		else
			(void)rte_tel_data_add_dict_string(t->out, f->key, f->text);
	}
}

/* ---- questions */

static int
sorry(struct rte_tel_data *out, const char *why)
{
	char text[RTE_TEL_MAX_STRING_LEN];

	/* The sentence may repeat the question's text. */
	rte_tel_data_start_dict(out);
	(void)rte_tel_data_add_dict_string(out, "error", plain(text, why));
	return 0;
}

static int
number(const char *text, uint64_t max, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 0);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *out <= max ? 0
											     : -1;
}

/* Take one argument. returns: 0, or -1: the argument makes no sense */
static int
take(enum arg what, const char *arg, struct urn_report_query *q, struct sink *t)
{
	uint64_t n = 0;

	switch (what) {
	case ARG_NAME:
		q->name = arg;
		return 0;
	case ARG_ADAPTER:
		q->adapter = arg;
		return 0;
	case ARG_CLIENT:
		/* 0 would mean all clients. */
		if (number(arg, UINT32_MAX, &n) != 0 || n == 0)
			return -1;
		q->client = (uint32_t)n;
		return 0;
	case ARG_QPN:
		q->by_qpn = true;
		if (number(arg, UINT32_MAX, &n) != 0)
			return -1;
		q->qpn = (uint32_t)n;
		return 0;
	case ARG_KEY:
		t->want = arg;
		return 0;
	case ARG_END:
		break;
	}
	/* Behind the arguments: the place in the list to begin at. */
	return t->cmd->list ? number(arg, UINT64_MAX, &t->skip) : -1;
}

/* Split the parameters, in place. returns: 0, or -1: the command does not take such parameters */
static int
take_all(char *params, struct urn_report_query *q, struct sink *t)
{
	unsigned int n = 0;
	char *arg;

	while ((arg = strsep(&params, ",")) != NULL && n <= ARGS) {
		enum arg what = n < ARGS ? t->cmd->arg[n] : ARG_END;

		if (arg[0] == '\0' || take(what, arg, q, t) != 0)
			return -1;
		n++;
		if (what == ARG_END && params != NULL)
			return -1; /* a parameter too many */
	}
	return n >= ARGS || t->cmd->arg[n] == ARG_END ? 0 : -1;
}

static int
report(const struct command *cmd, const char *params, struct rte_tel_data *out)
{
	struct urn_report_query q = {.all = true};
	struct urn_err err = {""};
	char copy[PARAMS] = "";
	struct sink *t = calloc(1, sizeof(*t));
	int rc;

	if (t == NULL)
		return -ENOMEM;
	t->sink = (struct urn_report_sink){sink_begin, sink_str, sink_u64, sink_flag, sink_end};
	t->cmd = cmd;
	t->out = out;
	if (params)
		snprintf(copy, sizeof(copy), "%s", params);
	/* A name that was cut may be another object's. */
	if ((params && strlen(params) >= sizeof(copy)) ||
	    take_all(copy[0] ? copy : NULL, &q, t) != 0) {
		free(t);
		return sorry(out, cmd->help);
	}
	do
		rc = cmd->report(told.src, &q, &t->sink, &err);
	while (rc == URN_REPORT_MORE && (cmd->list ? t->n == 0 || t->room > 0 : t->n == 0));
	if (rc == URN_REPORT_FAILED)
		rc = sorry(out, err.text);
	else if (t->n == 0 && cmd->list)
		rc = rte_tel_data_start_array(out, RTE_TEL_U64_VAL);
	else
		rc = t->n > 0 ? 0 : sorry(out, "there is none such");
	free(t);
	return rc;
}

static int
on_report(const char *name, const char *params, struct rte_tel_data *out)
{
	int rc = -EINVAL;

	pthread_mutex_lock(&lock);
	if (told.src == NULL)
		rc = sorry(out, "no dataplane runs");
	for (unsigned int i = 0; told.src && i < RTE_DIM(commands); i++)
		if (strcmp(name, commands[i].name) == 0)
			rc = report(&commands[i], params, out);
	pthread_mutex_unlock(&lock);
	return rc;
}

static int
on_capture(const char *name, const char *params, struct rte_tel_data *out)
{
	struct urn_capture_status st = {0};
	char text[RTE_TEL_MAX_STRING_LEN];

	(void)name;
	(void)params;
	pthread_mutex_lock(&lock);
	if (told.captures)
		urn_capture_status(told.captures, &st);
	pthread_mutex_unlock(&lock);
	rte_tel_data_start_dict(out);
	(void)rte_tel_data_add_dict_u64(out, "running", st.running);
	(void)rte_tel_data_add_dict_u64(out, "ended", st.ended);
	(void)rte_tel_data_add_dict_string(out, "file", st.file);
	(void)rte_tel_data_add_dict_string(out, "port", st.port);
	(void)rte_tel_data_add_dict_u64(out, "frames", st.frames);
	(void)rte_tel_data_add_dict_u64(out, "bytes", st.bytes);
	(void)rte_tel_data_add_dict_u64(out, "dropped", st.dropped);
	(void)rte_tel_data_add_dict_string(out, "failure", plain(text, st.failure));
	return 0;
}

int
urn_telemetry_start(const struct urn_telemetry_config *cfg, struct urn_err *err)
{
	int rc = 0;

	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; !registered && rc == 0 && i < RTE_DIM(commands); i++)
		rc = rte_telemetry_register_cmd(commands[i].name, on_report, commands[i].help);
	if (!registered && rc == 0)
		rc = rte_telemetry_register_cmd(
			"/urnic/capture", on_capture,
			"the capture that runs, or the last. No parameters");
	registered = true;
	if (rc == 0)
		told = *cfg;
	pthread_mutex_unlock(&lock);
	if (rc == 0)
		return 0;
	urn_err_set(err, "DPDK's telemetry takes no commands of ours: %s", strerror(-rc));
	return -1;
}

void
urn_telemetry_stop(void)
{
	pthread_mutex_lock(&lock);
	memset(&told, 0, sizeof(told));
	pthread_mutex_unlock(&lock);
}
