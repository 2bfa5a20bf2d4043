/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/rig_switches.h"

#include "pmd_glue/pool.h"

#include <string.h>

/* The port that is plugged in here; NULL: a link. */
static struct urn_port *
plugged(const struct urn_rig *rig, const struct urn_config_plug *p)
{
	switch (p->kind) {
	case URN_CONFIG_PLUG_PORT:
		return rig->port[p->index];
	case URN_CONFIG_PLUG_ADAPTER:
		return rig->ring[(p->second ? rig->cfg->adapters : 0) + p->index][1];
	case URN_CONFIG_PLUG_LINK:
		break;
	}
	return NULL;
}

/* True when the switch's port goes up and down with the link of the port that is plugged in. */
static bool
follows_link(const struct urn_rig *rig, const struct urn_port *dev)
{
	return !rig->opts.tap_stays_up || strncmp(dev->cfg.device, "net_tap", 7) != 0;
}

/* Make port k of a switch. returns: 0, or a negative errno */
static int
plug_up(struct urn_rig *rig, unsigned int i, unsigned int k)
{
	const struct urn_config_switch *s = &rig->cfg->sw[i];
	struct urn_switch_port_config port = s->plug[k].port;
	struct urn_port *dev = plugged(rig, &s->plug[k]);
	int rc;

	port.max_frame = dev ? urn_fabric_max_frame(dev) : 0;
	if (dev) {
		port.speed = urn_port_speed(dev);
		memcpy(port.mac, dev->mac, sizeof(port.mac));
	}
	/* An adapter's frames can stay in its ring. */
	port.credits = s->plug[k].kind == URN_CONFIG_PLUG_ADAPTER;
	rc = urn_switch_add_port(rig->sw[i], &port);
	if (rc < 0 || dev == NULL)
		return rc < 0 ? rc : 0;
	return urn_fabric_plug(rig->fabric[s->engine], rig->sw[i], (uint16_t)k, dev,
			       follows_link(rig, dev));
}

static int
switch_up(struct urn_rig *rig, unsigned int i, struct urn_err *err)
{
	const struct urn_config_switch *s = &rig->cfg->sw[i];
	struct urn_fabric **f = &rig->fabric[s->engine];
	struct urn_switch_config cfg = s->sw;
	int rc = 0;

	cfg.copies = rig->copies;
	if (*f == NULL)
		*f = urn_fabric_create(rig->copies);
	rig->sw[i] = *f ? urn_switch_create(&cfg) : NULL;
	if (rig->sw[i] == NULL || urn_fabric_add(*f, rig->sw[i]) < 0) {
		urn_err_set(err, "switch %s: no memory", s->sw.name);
		return -1;
	}
	for (unsigned int k = 0; k < s->plugs && rc >= 0; k++)
		rc = plug_up(rig, i, k);
	for (unsigned int k = 0; k < s->statics && rc >= 0; k++)
		rc = urn_fdb_set(urn_switch_fdb(rig->sw[i]), urn_mac(s->fixed[k].mac),
				 (uint16_t)s->fixed[k].plug);
	for (unsigned int k = 0; k < s->routes && rc >= 0; k++)
		rc = urn_switch_route(rig->sw[i], s->route[k].gid, (uint16_t)s->route[k].plug);
	if (rc < 0)
		urn_err_set(err, "switch %s: %s", s->sw.name, strerror(-rc));
	return rc < 0 ? -1 : 0;
}

/* Make each link once, from the switch with the lower number. */
static int
links_up(struct urn_rig *rig, struct urn_err *err)
{
	for (unsigned int i = 0; i < rig->cfg->switches; i++) {
		const struct urn_config_switch *s = &rig->cfg->sw[i];

		for (unsigned int k = 0; k < s->plugs; k++) {
			const struct urn_config_plug *p = &s->plug[k];
			int rc;

			if (p->kind != URN_CONFIG_PLUG_LINK || p->index < i)
				continue;
			rc = urn_switch_link(rig->sw[i], (uint16_t)k, rig->sw[p->index],
					     (uint16_t)p->peer);
			if (rc != 0) {
				urn_err_set(err, "switches %s and %s can't be linked: %s",
					    s->sw.name, rig->cfg->sw[p->index].sw.name,
					    strerror(-rc));
				return -1;
			}
		}
	}
	return 0;
}

/* True when a plug leads to where frames need an ICRC: a port, and an adapter that is not its
 * engine's alone, or has two ports. */
static bool
wants_icrc(const struct urn_config *c, const struct urn_config_plug *p, unsigned int engine)
{
	return p->kind == URN_CONFIG_PLUG_PORT ||
	       (p->kind == URN_CONFIG_PLUG_ADAPTER &&
		(c->adapter[p->index].two || c->adapter[p->index].adapter.engines != 1u << engine));
}

/* True when no plug of the switches that an engine polls leads to where frames need an ICRC. */
static bool
among_ours(const struct urn_config *c, unsigned int engine)
{
	for (unsigned int i = 0; i < c->switches; i++)
		for (unsigned int k = 0; k < c->sw[i].plugs; k++)
			if (c->sw[i].engine == engine && wants_icrc(c, &c->sw[i].plug[k], engine))
				return false;
	return true;
}

/* Frames that leave for elsewhere get their ICRC in a pass of its own: so none lacks one where some
 * leave. */
void
urn_rig_unseal(const struct urn_rig *rig)
{
	const struct urn_config *c = rig->cfg;

	for (unsigned int i = 0; i < c->switches; i++) {
		const struct urn_config_switch *s = &c->sw[i];

		for (unsigned int k = 0; k < s->plugs; k++) {
			unsigned int a = s->plug[k].index;
			bool on = s->plug[k].kind == URN_CONFIG_PLUG_ADAPTER &&
				  among_ours(c, s->engine) &&
				  urn_dp_unseal(rig->dp, a, s->engine, rig->ring[a][1]);

			(void)urn_fabric_unseal(rig->fabric[s->engine], rig->sw[i], (uint16_t)k,
						on ? rig->ring[a][0] : NULL);
		}
	}
}

int
urn_rig_switches(struct urn_rig *rig, struct urn_err *err)
{
	const struct urn_pool_config pool = {.name = "copies", .mbufs = rig->opts.copies};

	if (rig->cfg->switches == 0)
		return 0;
	rig->copies = urn_pool_create(&pool, err);
	if (rig->copies == NULL)
		return -1;
	for (unsigned int i = 0; i < rig->cfg->switches; i++)
		if (switch_up(rig, i, err) != 0)
			return -1;
	return links_up(rig, err);
}
