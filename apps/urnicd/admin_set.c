/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that change something. State that a thread owns is changed in that thread. */
#include "admin.h"
#include "apply.h"
#include "reload.h"

#include "dataplane/control/adapter.h"
#include "dataplane/near.h"
#include "dataplane/switch/impair_words.h"
#include "pmd_glue/eal_log.h"
#include "pmd_glue/plug.h"
#include "units.h"

#include <inttypes.h>
#include <string.h>

/* ---- set */

int
nicd_run_set_log(struct nicd_run *r)
{
	const char *level = admin_arg(&r->call, "LEVEL");

	if (urn_eal_log_level(level) == 0)
		return URN_REPORT_DONE;
	urn_err_set(&r->err, "%s is no level; give error, warning, notice, info or debug", level);
	return NICD_RUN_WRONG;
}

/* Take the idle policy, if one was given. returns: 0, or -1 with r->err */
static int
take_idle(struct nicd_run *r, enum urn_idle *idle)
{
	const char *name = admin_arg(&r->call, "idle");

	for (unsigned int i = 0; name && urn_idle_name(i); i++) {
		if (strcmp(urn_idle_name(i), name) == 0) {
			*idle = (enum urn_idle)i;
			return 0;
		}
	}
	if (name)
		urn_err_set(&r->err, "%s is no idle policy; give spin, pause or sleep", name);
	return name ? -1 : 0;
}

/* Take a number within bounds, if it was given. returns: 0, or -1 with r->err */
static int
take_number(struct nicd_run *r, const char *name, uint64_t min, uint64_t max, uint32_t *out)
{
	uint64_t v = admin_number(&r->call, name, *out);

	if (admin_arg(&r->call, name) && (v < min || v > max)) {
		urn_err_set(&r->err, "%s is from %" PRIu64 " to %" PRIu64 ", not %" PRIu64, name,
			    min, max, v);
		return -1;
	}
	*out = (uint32_t)v;
	return 0;
}

/* Take a time, in microseconds, if it was given. returns: 0, or -1 with r->err */
static int
take_time(struct nicd_run *r, const char *name, uint32_t max_us, uint32_t *us)
{
	const char *text = admin_arg(&r->call, name);
	uint64_t ns;

	if (text == NULL || urn_text_parse_time(text, &ns) != 0)
		return 0;
	if (ns < 1000 || ns / 1000 > max_us) {
		urn_err_set(&r->err, "%s is from 1us to %uus, not %s", name, max_us, text);
		return -1;
	}
	*us = (uint32_t)(ns / 1000);
	return 0;
}

int
nicd_run_set_engine(struct nicd_run *r)
{
	const struct urn_dp *dp = r->admin->rig->base.dp;
	uint64_t i = admin_number(&r->call, "ENGINE", UINT64_MAX);
	struct urn_engine_config cfg;
	struct urn_engine *e;

	if (i >= dp->engines_n) {
		urn_err_set(&r->err, "no engine has the number %s; there are %u",
			    admin_arg(&r->call, "ENGINE"), dp->engines_n);
		return URN_REPORT_FAILED;
	}
	e = dp->engine[i];
	cfg = e->cfg;
	if (take_idle(r, &cfg.idle) != 0 ||
	    take_number(r, "empty_polls", 1, 1u << 30, &cfg.empty_polls) ||
	    take_time(r, "sleep", 1000, &cfg.sleep_us))
		return NICD_RUN_WRONG;
	nicd_apply_engine(e, &cfg);
	return URN_REPORT_DONE;
}

/* Say that nothing of a kind has a name. what: also the word of the command that lists the kind */
static void
not_there(struct nicd_run *r, const char *what, const char *name, const struct urn_near *near)
{
	char hint[URN_NEAR_HINT], list[24];

	snprintf(list, sizeof(list), "show %s", what);
	urn_near_hint(near, list, hint);
	urn_err_set(&r->err, "no %s has the name %s; %s", what, name, hint);
}

static struct urn_adapter *
find_adapter(struct nicd_run *r)
{
	const struct urn_dp *dp = r->admin->rig->base.dp;
	const char *name = admin_arg(&r->call, "ADAPTER");
	struct urn_near near;

	urn_near_begin(&near, name);
	for (unsigned int i = 0; i < dp->adapters_n; i++) {
		if (strcmp(dp->adapter[i]->cfg.name, name) == 0)
			return dp->adapter[i];
		urn_near_try(&near, dp->adapter[i]->cfg.name);
	}
	not_there(r, "adapter", name, &near);
	return NULL;
}

int
nicd_run_set_adapter(struct nicd_run *r)
{
	struct urn_adapter *a = find_adapter(r);
	uint32_t window = 0, rto_us = 0;

	if (a == NULL)
		return URN_REPORT_FAILED;
	if (take_number(r, "window", 1, 1u << 20, &window) ||
	    take_time(r, "rto_floor", 1000000, &rto_us))
		return NICD_RUN_WRONG;
	nicd_apply_adapter(a, window, rto_us * 1000ull);
	return URN_REPORT_DONE;
}

/* ---- port */

int
nicd_run_port(struct nicd_run *r)
{
	const struct nicd_admin *a = r->admin;
	const char *name = admin_arg(&r->call, "PORT"), *how = admin_arg(&r->call, "up");
	enum urn_port_plug plug = strcmp(how, "up") == 0     ? URN_PORT_UP
				  : strcmp(how, "down") == 0 ? URN_PORT_DOWN
							     : URN_PORT_FAILED;
	struct urn_near near;

	urn_near_begin(&near, name);
	for (unsigned int i = 0; i < a->src.ports; i++) {
		if (strcmp(a->ports[i].name, name) == 0)
			return urn_port_plug(a->ports[i].port, plug, &r->err) == 0
				       ? URN_REPORT_DONE
				       : URN_REPORT_FAILED;
		urn_near_try(&near, a->ports[i].name);
	}
	not_there(r, "port", name, &near);
	return URN_REPORT_FAILED;
}

/* ---- impair */

/* Ports and directions that a command is about. */
struct impair_who {
	uint16_t port;
	bool dir[2]; /* by enum urn_switch_dir */
};

/* Parse "b0.in" into a port and directions. returns: 0, or -1 with r->err */
static int
take_who(struct nicd_run *r, const struct urn_config_switch *c, struct impair_who *s)
{
	const char *who = admin_arg(&r->call, "WHO");
	char name[64], mean[URN_NEAR_HINT];
	struct urn_near near;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(who, "."), who);
	urn_near_begin(&near, name);
	for (unsigned int i = 0; i < c->plugs; i++) {
		size_t n = strlen(c->plug[i].port.name);

		urn_near_try(&near, c->plug[i].port.name);
		if (strncmp(who, c->plug[i].port.name, n) != 0)
			continue;
		s->port = (uint16_t)i;
		s->dir[URN_SWITCH_IN] = who[n] == '\0' || strcmp(who + n, ".in") == 0;
		s->dir[URN_SWITCH_OUT] = who[n] == '\0' || strcmp(who + n, ".out") == 0;
		if (s->dir[0] || s->dir[1])
			return 0;
	}
	urn_err_set(&r->err,
		    "switch %s has no port %s; %swrite NAME, NAME.in or NAME.out of 'show "
		    "switch'",
		    c->sw.name, who, urn_near_mean(&near, mean));
	return -1;
}

int
nicd_run_impair(struct nicd_run *r)
{
	const char *name = admin_arg(&r->call, "SWITCH"), *spec = admin_arg(&r->call, "SPEC");
	const struct urn_config *c = r->admin->rig->cfg;
	struct urn_impair_config impair = {0};
	struct impair_who s = {0};
	struct urn_near near;
	char why[128];
	int rc;

	urn_near_begin(&near, name);
	for (unsigned int i = 0; i < c->switches; i++) {
		urn_near_try(&near, c->sw[i].sw.name);
		if (strcmp(c->sw[i].sw.name, name) != 0)
			continue;
		if (take_who(r, &c->sw[i], &s) != 0)
			return URN_REPORT_FAILED;
		if (strcmp(spec, "none") != 0 && urn_impair_take_list(&impair, spec, &r->err) != 0)
			return NICD_RUN_WRONG;
		if (urn_impair_check(&impair, why, sizeof(why)) != 0) {
			urn_err_set(&r->err, "%s", why);
			return NICD_RUN_WRONG;
		}
		rc = nicd_apply_impair(r->admin->rig, i, s.port, s.dir, &impair);
		if (rc == 0)
			return URN_REPORT_DONE;
		urn_err_set(&r->err, "switch %s: %s", name, strerror(-rc));
		return URN_REPORT_FAILED;
	}
	not_there(r, "switch", name, &near);
	return URN_REPORT_FAILED;
}

/* ---- the configuration */

static void
on_change(void *ctx, const struct nicd_reload_change *c)
{
	struct nicd_run *r = ctx;
	struct urn_report_sink *s = r->sink;
	char section[64];

	snprintf(section, sizeof(section), "%s%s%s", c->kind, c->name[0] ? " " : "", c->name);
	s->begin(s, "change", false);
	s->str(s, "section", section);
	s->str(s, "key", c->key ? c->key : "");
	s->str(s, "from", c->from ? c->from : "");
	s->str(s, "to", c->to ? c->to : "");
	s->str(s, "when", c->failed ? c->failed : c->now ? "now" : "with the next start of urnicd");
	s->end(s);
}

int
nicd_run_reload(struct nicd_run *r)
{
	nicd_admin_tell(r); /* a new level may hide it */
	return nicd_reload(r->admin->rig->reload, on_change, r, &r->err) == 0 ? URN_REPORT_DONE
									      : URN_REPORT_FAILED;
}

/* ---- the rest */

int
nicd_run_client(struct nicd_run *r)
{
	uint32_t id = (uint32_t)admin_number(&r->call, "CLIENT", 0);

	return urn_report_kick(&r->admin->src, id, &r->err) == 0 ? URN_REPORT_DONE
								 : URN_REPORT_FAILED;
}

int
nicd_run_quit(struct nicd_run *r)
{
	r->quit = r->console;
	if (r->quit)
		return URN_REPORT_DONE;
	urn_err_set(&r->err,
		    "quit is for the dataplane's own console (urnicd -i); else stop its process "
		    "with SIGTERM");
	return URN_REPORT_FAILED;
}
