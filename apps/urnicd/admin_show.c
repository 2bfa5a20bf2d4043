/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that show. */
#include "admin.h"

#include <string.h>

/* Fill in the arguments that all reports have; the report keeps its position in the query. */
static struct urn_report_query *
query(struct nicd_run *r, const char *name)
{
	struct urn_report_query *q = &r->query;

	q->name = name ? admin_arg(&r->call, name) : NULL;
	q->adapter = admin_arg(&r->call, "adapter");
	q->client = (uint32_t)admin_number(&r->call, "client", 0);
	q->state = admin_arg(&r->call, "state");
	q->all = admin_arg(&r->call, "all") != NULL;
	q->base = r->admin->base;
	return q;
}

static int
report(struct nicd_run *r, urn_report_fn *fn, const char *name)
{
	return fn(&r->admin->src, query(r, name), r->sink, &r->err);
}

int
nicd_run_show_port(struct nicd_run *r)
{
	return report(r, urn_report_ports, "PORT");
}

int
nicd_run_show_adapter(struct nicd_run *r)
{
	return report(r, urn_report_adapters, "ADAPTER");
}

int
nicd_run_show_engine(struct nicd_run *r)
{
	return report(r, urn_report_engines, "ENGINE");
}

int
nicd_run_show_qp(struct nicd_run *r)
{
	r->query.by_qpn = admin_arg(&r->call, "QPN") != NULL;
	r->query.qpn = (uint32_t)admin_number(&r->call, "QPN", 0);
	return report(r, urn_report_qps, NULL);
}

int
nicd_run_show_errors(struct nicd_run *r)
{
	r->query.by_qpn = admin_arg(&r->call, "qp") != NULL;
	r->query.qpn = (uint32_t)admin_number(&r->call, "qp", 0);
	return report(r, urn_report_errors, NULL);
}

int
nicd_run_show_cq(struct nicd_run *r)
{
	return report(r, urn_report_cqs, NULL);
}

int
nicd_run_show_srq(struct nicd_run *r)
{
	return report(r, urn_report_srqs, NULL);
}

int
nicd_run_show_msg(struct nicd_run *r)
{
	return report(r, urn_report_msgs, NULL);
}

int
nicd_run_show_am(struct nicd_run *r)
{
	return report(r, urn_report_ams, NULL);
}

int
nicd_run_show_mr(struct nicd_run *r)
{
	return report(r, urn_report_mrs, NULL);
}

int
nicd_run_show_client(struct nicd_run *r)
{
	struct urn_report_query *q = query(r, NULL);

	q->client = (uint32_t)admin_number(&r->call, "CLIENT", 0);
	if (admin_arg(&r->call, "CLIENT") && q->client == 0) {
		urn_err_set(&r->err, "clients are numbered from 1 on; 'show client' lists them");
		return URN_REPORT_FAILED;
	}
	return urn_report_clients(&r->admin->src, q, r->sink, &r->err);
}

int
nicd_run_show_switch(struct nicd_run *r)
{
	return report(r, urn_report_switches, "SWITCH");
}

int
nicd_run_show_address(struct nicd_run *r)
{
	return report(r, urn_report_addresses, "SWITCH");
}

int
nicd_run_show_neigh(struct nicd_run *r)
{
	r->query.adapter = admin_arg(&r->call, "ADAPTER");
	return urn_report_neighbours(&r->admin->src, &r->query, r->sink, &r->err);
}

int
nicd_run_show_route(struct nicd_run *r)
{
	r->query.adapter = admin_arg(&r->call, "ADAPTER");
	return urn_report_routes(&r->admin->src, &r->query, r->sink, &r->err);
}

int
nicd_run_show_counters(struct nicd_run *r)
{
	struct urn_report_query *q = query(r, NULL);

	q->adapter = admin_arg(&r->call, "ADAPTER");
	return urn_report_counters(&r->admin->src, q, r->sink, &r->err);
}

int
nicd_run_show_limits(struct nicd_run *r)
{
	return report(r, urn_report_limits, NULL);
}

int
nicd_run_show_server(struct nicd_run *r)
{
	return report(r, urn_report_server, NULL);
}

int
nicd_run_show_version(struct nicd_run *r)
{
	return report(r, urn_report_version, NULL);
}

int
nicd_run_clear_counters(struct nicd_run *r)
{
	urn_report_base_set(r->admin->base, &r->admin->src);
	return URN_REPORT_DONE;
}

int
nicd_run_help(struct nicd_run *r)
{
	struct urn_report_sink *s = r->sink;
	char usage[128];

	for (unsigned int i = 0; i < ADMIN_COMMAND_COUNT; i++) {
		const struct admin_command *c = &admin_commands[i];

		snprintf(usage, sizeof(usage), "%s%s%s", c->words, c->args[0] ? " " : "", c->args);
		s->begin(s, "command", false);
		s->str(s, "command", usage);
		s->str(s, "help", c->help);
		s->end(s);
	}
	return URN_REPORT_DONE;
}
