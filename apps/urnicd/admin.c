/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin.h"

#include "dataplane/log/log.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- objects */

static int
no_memory(struct nicd_admin *a, struct urn_err *err)
{
	urn_err_set(err, "no memory for the control of the dataplane");
	nicd_admin_fini(a);
	return -1;
}

int
nicd_admin_init(struct nicd_admin *a, struct nicd_rig *rig, struct urn_err *err)
{
	const struct urn_config *c = rig->cfg;
	unsigned int n = 0;

	memset(a, 0, sizeof(*a));
	a->rig = rig;
	a->ports = calloc(c->ports + 2 * c->adapters, sizeof(*a->ports));
	a->port = calloc(c->ports + 2 * c->adapters, sizeof(struct urn_port *));
	a->seen = calloc(c->ports + 2 * c->adapters, sizeof(*a->seen));
	a->moved = calloc(c->adapters, sizeof(*a->moved));
	a->heard = calloc(c->adapters + 1, sizeof(*a->heard));
	a->sw = calloc(c->switches + 1, sizeof(*a->sw));
	if (a->ports == NULL || a->port == NULL || a->seen == NULL || a->moved == NULL ||
	    a->heard == NULL || a->sw == NULL)
		return no_memory(a, err);
	for (unsigned int i = 0; i < c->ports; i++)
		a->ports[n++] = (struct nicd_admin_port){c->port[i].port.name, rig->base.port[i]};
	for (unsigned int i = 0; i < 2 * c->adapters; i++)
		if (rig->base.ring[i][0] != NULL)
			a->ports[n++] = (struct nicd_admin_port){rig->base.ring[i][0]->cfg.name,
								 rig->base.ring[i][0]};
	for (unsigned int i = 0; i < n; i++)
		a->port[i] = a->ports[i].port;
	for (unsigned int i = 0; i < c->switches; i++)
		a->sw[i] = (struct urn_report_switch){
			.sw = rig->base.sw[i],
			.fabric = rig->base.fabric[c->sw[i].engine],
			.engine = c->sw[i].engine,
		};
	a->src = (struct urn_report_source){
		.dp = rig->base.dp,
		.port = a->port,
		.ports = n,
		.sw = a->sw,
		.switches = c->switches,
		.server = rig->server,
		.server_config = &rig->server_config,
	};
	a->base = urn_report_base_create(&a->src, err);
	if (a->base != NULL)
		return 0;
	nicd_admin_fini(a);
	return -1;
}

void
nicd_admin_fini(struct nicd_admin *a)
{
	free(a->ports);
	free(a->port);
	free(a->seen);
	free(a->moved);
	free(a->heard);
	free(a->sw);
	urn_report_base_destroy(a->base);
	memset(a, 0, sizeof(*a));
}

/* ---- running */

static nicd_run_fn *const functions[ADMIN_COMMAND_COUNT] = {
#define X(fn, words, args, help) [ADMIN_##fn] = nicd_run_##fn,
	ADMIN_COMMANDS(X)
#undef X
};

void
nicd_run_begin(struct nicd_run *r, struct nicd_admin *a, bool json, bool console,
	       char *const *words, unsigned int n)
{
	struct admin_why why;

	memset(r, 0, sizeof(*r));
	r->admin = a;
	r->console = console;
	r->fd = -1;
	urn_report_text_init(&r->text, &r->out);
	urn_report_json_init(&r->json, &r->out);
	r->sink = json ? &r->json.sink : &r->text.sink;
	nicd_admin_note(r, words, n);
	if (admin_parse(&r->call, words, n, &why) != 0) {
		urn_err_set(&r->err, "%s", why.text);
		r->status = NICD_RUN_USAGE;
	}
}

/* Move the text that is still in the sink into r->out; last: end the JSON. */
static void
flush(struct nicd_run *r, bool last)
{
	if (r->sink != &r->text.sink) {
		if (last && (r->status == NICD_RUN_OK || r->json.open))
			urn_report_json_finish(&r->json);
		return;
	}
	urn_report_text_flush(&r->text);
	if (last && r->status == NICD_RUN_OK)
		nicd_admin_head(r);
}

bool
nicd_run_step(struct nicd_run *r)
{
	int rc;

	if (r->status != NICD_RUN_OK)
		return false; /* the command was wrong from the start */
	rc = functions[r->call.id](r);
	if (rc == URN_REPORT_FAILED)
		r->status = NICD_RUN_FAILED;
	else if (rc == NICD_RUN_WRONG)
		r->status = NICD_RUN_USAGE;
	flush(r, rc != URN_REPORT_MORE);
	if (r->out.failed) {
		urn_err_set(&r->err, "no memory for the answer");
		r->status = NICD_RUN_FAILED;
	}
	if (rc == URN_REPORT_DONE && r->status == NICD_RUN_OK)
		nicd_admin_tell(r);
	return rc == URN_REPORT_MORE && r->status == NICD_RUN_OK;
}

void
nicd_run_end(struct nicd_run *r)
{
	urn_report_text_free(&r->text);
	urn_report_buf_free(&r->out);
	if (r->fd >= 0)
		close(r->fd);
}

/* ---- completion */

/* Copy the i-th of n strings. returns: true when there is one */
static bool
one_of(const char *const *list, unsigned int n, unsigned int i, char value[ADMIN_VALUE])
{
	if (i < n)
		snprintf(value, ADMIN_VALUE, "%s", list[i]);
	return i < n;
}

static bool
states(unsigned int i, char value[ADMIN_VALUE])
{
	static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

	return one_of(names, sizeof(names) / sizeof(names[0]), i, value);
}

static bool
levels(unsigned int i, char value[ADMIN_VALUE])
{
	static const char *const names[] = {"error", "warning", "notice", "info", "debug"};

	return one_of(names, sizeof(names) / sizeof(names[0]), i, value);
}

static bool
areas(unsigned int i, char value[ADMIN_VALUE])
{
	if (i <= URN_LOG_AREA_COUNT)
		snprintf(value, ADMIN_VALUE, "%s",
			 i ? urn_log_area_word((enum urn_log_area)(i - 1)) : "all");
	return i <= URN_LOG_AREA_COUNT;
}

static bool
idles(unsigned int i, char value[ADMIN_VALUE])
{
	if (urn_idle_name(i))
		snprintf(value, ADMIN_VALUE, "%s", urn_idle_name(i));
	return urn_idle_name(i) != NULL;
}

/* The i-th port name of all switches: each port bare and for each direction. */
static bool
plugs(const struct nicd_admin *a, unsigned int i, char value[ADMIN_VALUE])
{
	static const char *const ends[] = {"", ".in", ".out"};
	unsigned int n = i / 3;

	for (unsigned int k = 0; k < a->src.switches; k++) {
		const struct urn_config_switch *s = &a->rig->cfg->sw[k];

		if (n < s->plugs) {
			snprintf(value, ADMIN_VALUE, "%s%s", s->plug[n].port.name, ends[i % 3]);
			return true;
		}
		n -= s->plugs;
	}
	return false;
}

bool
nicd_admin_values(void *admin, const char *kind, unsigned int i, char value[ADMIN_VALUE])
{
	const struct nicd_admin *a = admin;
	const struct urn_config *c = a->rig->cfg;
	const char *name = NULL;

	if (strcmp(kind, "STATE") == 0)
		return states(i, value);
	if (strcmp(kind, "LEVEL") == 0)
		return levels(i, value);
	if (strcmp(kind, "AREA") == 0)
		return areas(i, value);
	if (strcmp(kind, "IDLE") == 0)
		return idles(i, value);
	if (strcmp(kind, "WHO") == 0)
		return plugs(a, i, value);
	if (strcmp(kind, "PORT") == 0 && i < a->src.ports)
		name = a->ports[i].name;
	else if (strcmp(kind, "ADAPTER") == 0 && i < c->adapters)
		name = c->adapter[i].adapter.name;
	else if (strcmp(kind, "SWITCH") == 0 && i < c->switches)
		name = c->sw[i].sw.name;
	if (name)
		snprintf(value, ADMIN_VALUE, "%s", name);
	else if (strcmp(kind, "ENGINE") == 0 && i < c->engines)
		snprintf(value, ADMIN_VALUE, "%u", i);
	else
		return false;
	return true;
}
