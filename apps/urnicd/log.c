/* SPDX-License-Identifier: BSD-3-Clause */
#include "log.h"

#include "common/clock.h"
#include "dataplane/control/objects.h"
#include "dataplane/log/log.h"
#include "dataplane/log/writer.h"
#include "pmd_glue/bond.h"
#include "pmd_glue/plug.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Time between looks, of which there are ten a second, that is told: programs with sessions may
 * have taken urnicd for silent by then. */
enum { STOOD_MS = 1000 };

/* Where lines go by the configuration. */
static struct urn_log_out
out_of(const struct urn_config_daemon *d)
{
	struct urn_log_out out = {.name = "urnicd"};

	snprintf(out.file, sizeof(out.file), "%s", d->log_file);
	out.priorities = d->log_journal == URN_CONFIG_JOURNAL_YES ||
			 (d->log_journal == URN_CONFIG_JOURNAL_AUTO && !d->log_file[0] &&
			  urn_log_is_journal(STDERR_FILENO));
	return out;
}

int
nicd_log_start(struct nicd_rig *rig, struct urn_err *err)
{
	const struct urn_config_daemon *d = &rig->cfg->urnicd;
	const struct urn_log_out out = out_of(d);
	uint8_t level[URN_LOG_AREA_COUNT];
	char why[200];

	rig->log = urn_log_create(rig->cfg->engines);
	if (rig->log == NULL) {
		urn_err_set(err, "no memory for the log");
		return -1;
	}
	urn_log_defaults(level);
	(void)urn_log_parse(d->log, level, why, sizeof(why)); /* the file was checked */
	for (unsigned int i = 0; i < URN_LOG_AREA_COUNT; i++)
		urn_log_set(rig->log, (enum urn_log_area)i, (enum urn_log_level)level[i]);
	urn_dp_set_log(rig->base.dp, rig->log);
	if (urn_log_start(rig->log, &out, why, sizeof(why)) == 0)
		return 0;
	urn_err_set(err, "%s", why);
	return -1;
}

/* ---- ports, routers and captures */

/* Tell that urnicd, or its log alone, did not run, when the time since the last look is far longer
 * than a tick: this thread writes the log, too. */
static void
look_at_time(struct nicd_admin *a, uint64_t now)
{
	uint64_t ms = a->looked_at != 0 ? (now - a->looked_at) / 1000000 : 0;

	a->looked_at = now;
	if (ms >= STOOD_MS)
		urn_log_say(
			a->rig->log, URN_LOG_STOOD, NULL,
			"no port was looked at for %u.%u s: urnicd was stopped, got no processor, "
			"or waited for a disk or the reader of its log",
			(unsigned int)(ms / 1000), (unsigned int)(ms % 1000 / 100));
}

/* The adapter whose port, or one of whose ports, this is. returns: NULL: none's */
static const char *
adapter_of(const struct nicd_admin *a, const struct urn_port *port)
{
	for (unsigned int i = 0; i < a->src.dp->adapters_n; i++) {
		const struct urn_adapter_config *cfg = &a->src.dp->adapter[i]->cfg;

		if (cfg->port == port || urn_bond_member(cfg->port, 0) == port ||
		    urn_bond_member(cfg->port, 1) == port)
			return cfg->name;
	}
	return NULL;
}

static const char *
why_down(const struct urn_port *port)
{
	switch (urn_port_plugged(port)) {
	case URN_PORT_DOWN:
		return "a command took it down";
	case URN_PORT_FAILED:
		return "a command unplugged it";
	case URN_PORT_UP:
		break;
	}
	return "its device says so";
}

static void
look_at_port(const struct nicd_admin *a, unsigned int i)
{
	const struct urn_port *port = a->ports[i].port;
	struct nicd_admin_seen *seen = &a->seen[i];
	bool up = __atomic_load_n(&port->link_up, __ATOMIC_RELAXED);
	uint32_t changes = __atomic_load_n(&port->link_changes, __ATOMIC_RELAXED);
	uint32_t n = changes - seen->changes;
	const char *adapter = adapter_of(a, port);
	char more[64] = "", whose[80] = "";

	if (seen->known && seen->up == up && n == 0)
		return;
	if (adapter != NULL && strcmp(adapter, a->ports[i].name) != 0)
		snprintf(whose, sizeof(whose), " of adapter %s", adapter);
	/* One change is the one that is told. */
	if (seen->known && n > 1)
		snprintf(more, sizeof(more), "; it changed %u times in between", n - 1);
	if (up)
		urn_log_say(a->rig->log, URN_LOG_PORT_UP, NULL, "port %s%s has a link%s",
			    a->ports[i].name, whose, more);
	else
		urn_log_say(a->rig->log, URN_LOG_PORT_DOWN, NULL, "port %s%s has no link: %s%s",
			    a->ports[i].name, whose, why_down(port), more);
	*seen = (struct nicd_admin_seen){.known = true, .up = up, .changes = changes};
}

/* The reason why an adapter uses its port `active` in place of the other one. */
static const char *
why_moved(const struct urn_port *bond, const struct urn_port *active, const struct urn_port *other)
{
	bool up = __atomic_load_n(&other->link_up, __ATOMIC_RELAXED) &&
		  urn_port_plugged(other) == URN_PORT_UP;

	/* The second port is taken for one reason only, which may be over by now. */
	return up && active == urn_bond_member(bond, 0) ? "the first port has a link again"
							: "no link there";
}

/* Tell of the port that an adapter with two ports uses, when that has changed. */
static void
look_at_moves(const struct nicd_admin *a, unsigned int i)
{
	const struct urn_adapter *ad = a->src.dp->adapter[i];
	const struct urn_port *bond = ad->cfg.port;
	uint32_t n = __atomic_load_n(&bond->moves, __ATOMIC_RELAXED) - a->moved[i];
	const struct urn_port *active = urn_bond_active(bond);
	const struct urn_port *other = urn_bond_member(bond, active == urn_bond_member(bond, 0));
	char more[64] = "";

	if (n == 0)
		return;
	if (n > 1)
		snprintf(more, sizeof(more), "; it changed %u times in between", n - 1);
	urn_log_say(a->rig->log, URN_LOG_PORT_MOVED, NULL,
		    "adapter %s uses port %s instead of %s: %s%s", ad->cfg.name, active->cfg.name,
		    other->cfg.name, why_moved(bond, active, other), more);
	a->moved[i] += n;
}

/* Write what news are about: "router fe80::1", or "prefix fd00::/64". */
static void
write_route(const struct urn_neigh_route *r, char *out, size_t size)
{
	bool router = r->kind == URN_NEIGH_ROUTE_ROUTER;
	char text[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, router ? r->via : r->prefix, text, sizeof(text));
	if (router)
		snprintf(out, size, "router %s", text);
	else
		snprintf(out, size, "prefix %s/%u", text, r->len);
}

/* Write for how long something is advertised. */
static const char *
lasting(uint32_t left_s, char *out, size_t size)
{
	if (left_s == 0)
		return "without an end";
	snprintf(out, size, "for %u s", left_s);
	return out;
}

static void
tell_router(struct urn_log *log, const char *adapter, const struct urn_router_news *n)
{
	static const uint8_t nobody[16];
	char what[64], before[INET6_ADDRSTRLEN], more[80] = "", time[32];

	write_route(&n->route, what, sizeof(what));
	switch (n->what) {
	case URN_ROUTER_CAME:
		urn_log_say(log, URN_LOG_ROUTER_CAME, NULL, "adapter %s: %s is advertised %s",
			    adapter, what, lasting(n->route.left_s, time, sizeof(time)));
		break;
	case URN_ROUTER_USED:
		if (memcmp(n->before, nobody, 16) != 0)
			snprintf(more, sizeof(more), " instead of %s",
				 inet_ntop(AF_INET6, n->before, before, sizeof(before)));
		urn_log_say(log, URN_LOG_ROUTER_USED, NULL, "adapter %s uses %s from now on%s",
			    adapter, what, more);
		break;
	default:
		urn_log_say(log, URN_LOG_ROUTER_GONE, NULL, "adapter %s: %s is gone: %s", adapter,
			    what,
			    n->what == URN_ROUTER_ENDED ? "an advertisement ended it"
							: "no advertisement came in time");
		break;
	}
}

/* Tell of the routers that advertise themselves to an adapter. */
static void
look_at_routers(const struct nicd_admin *a, unsigned int i)
{
	const struct urn_adapter *ad = a->src.dp->adapter[i];
	struct urn_router_news news[URN_ROUTER_NEWS];
	uint32_t lost;
	unsigned int n =
		urn_neigh_router_news(ad->neigh, &a->heard[i], news, URN_ROUTER_NEWS, &lost);

	if (lost != 0)
		urn_log_say(a->rig->log, URN_LOG_LOST, NULL,
			    "adapter %s: %u changes of advertised routers", ad->cfg.name, lost);
	for (unsigned int k = 0; k < n; k++)
		tell_router(a->rig->log, ad->cfg.name, &news[k]);
}

static void
look(void *arg)
{
	struct nicd_admin *a = arg;

	look_at_time(a, urn_clock_ns());
	for (unsigned int i = 0; i < a->src.dp->adapters_n; i++)
		look_at_routers(a, i);
	for (unsigned int i = 0; i < a->src.ports; i++)
		look_at_port(a, i);
	for (unsigned int i = 0; i < a->src.dp->adapters_n; i++)
		look_at_moves(a, i);
	urn_captures_watch(a->rig->captures);
	urn_report_base_sample(a->base, &a->src, urn_clock_ns());
}

void
nicd_log_watch(struct nicd_admin *a)
{
	urn_log_set_tick(a->rig->log, look, a);
}

void
nicd_log_unwatch(struct nicd_admin *a)
{
	urn_log_set_tick(a->rig->log, NULL, NULL);
}

void
nicd_log_stop(struct nicd_rig *rig)
{
	urn_log_stop(rig->log);
}

void
nicd_log_free(struct nicd_rig *rig)
{
	if (rig->log)
		urn_dp_set_log(rig->base.dp, NULL);
	urn_log_free(rig->log);
	rig->log = NULL;
}
