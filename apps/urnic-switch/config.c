/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a configuration of the options, for a rig. */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Refuse a link between two switches that are joined already. returns: 0, or -1 with *err */
static int
check_loops(const struct sw_opts *o, struct urn_err *err)
{
	struct urn_config_tree tree;

	urn_config_tree_init(&tree);
	for (unsigned int i = 0; i < o->links; i++) {
		unsigned int a = o->port[o->link[i].port[0]].sw, b = o->port[o->link[i].port[1]].sw;

		if (!urn_config_tree_join(&tree, a, b)) {
			urn_err_set(err,
				    "--link %s,%s: the two are joined already, by this or other "
				    "links, and frames would go round for ever; leave it out",
				    o->sw[a], o->sw[b]);
			return -1;
		}
	}
	return 0;
}

/* Make port i of the options a plug of its switch. number: gets the plug's. */
static void
add_port(struct urn_config *c, const struct sw_opts *o, unsigned int i, uint16_t *number)
{
	const struct sw_port_opts *p = &o->port[i];
	struct urn_config_switch *s = &c->sw[p->sw];
	struct urn_config_plug *plug = &s->plug[s->plugs];
	struct urn_config_port *port = &c->port[c->ports];

	if (s->plug == NULL)
		return; /* never: new_config() made room for each switch of the options */
	*number = (uint16_t)s->plugs++;
	snprintf(plug->port.name, sizeof(plug->port.name), "%s", p->name);
	memcpy(plug->port.impair, p->impair, sizeof(p->impair));
	plug->kind = p->device[0] != '\0' ? URN_CONFIG_PLUG_PORT : URN_CONFIG_PLUG_LINK;
	if (plug->kind == URN_CONFIG_PLUG_LINK)
		return;
	plug->index = c->ports++;
	snprintf(port->port.name, sizeof(port->port.name), "%s", p->name);
	snprintf(port->port.device, sizeof(port->port.device), "%s", p->device);
	port->port.queues = 1;
	port->port.mbufs = o->mbufs;
	port->pci = strncmp(p->device, "net_", 4) != 0;
	port->adapter = -1;
	port->sw = (int)p->sw;
	port->plug = *number;
}

/* Tell the plugs at the two ends of a link of each other. */
static void
add_link(struct urn_config *c, const struct sw_opts *o, const struct sw_link_opts *l,
	 const uint16_t *number)
{
	for (unsigned int k = 0; k < 2; k++) {
		unsigned int here = l->port[k], there = l->port[1 - k];
		struct urn_config_plug *plug = &c->sw[o->port[here].sw].plug[number[here]];

		plug->index = o->port[there].sw;
		plug->peer = number[there];
	}
}

static void
add_static(struct urn_config *c, const struct sw_opts *o, const struct sw_static_opts *f,
	   const uint16_t *number)
{
	struct urn_config_switch *s = &c->sw[o->port[f->port].sw];
	struct urn_config_static *fixed = &s->fixed[s->statics];

	if (s->fixed == NULL)
		return; /* never: new_config() made room for each switch of the options */
	s->statics++;
	fixed->plug = number[f->port];
	memcpy(fixed->mac, f->mac, sizeof(fixed->mac));
}

static void
add_route(struct urn_config *c, const struct sw_opts *o, const struct sw_route_opts *r,
	  const uint16_t *number)
{
	struct urn_config_switch *s = &c->sw[o->port[r->port].sw];
	struct urn_config_route *to = &s->route[s->routes];

	if (s->route == NULL)
		return; /* never: new_config() made room for each switch of the options */
	s->sw.routes = ++s->routes;
	to->plug = number[r->port];
	memcpy(to->gid, r->gid, sizeof(to->gid));
}

/* Make room for all that the options name. returns: NULL when there is no memory */
static struct urn_config *
new_config(const struct sw_opts *o)
{
	struct urn_config *c = calloc(1, sizeof(*c));
	bool ok = c != NULL;

	if (!ok)
		return NULL;
	c->port = calloc(o->ports + 1, sizeof(*c->port));
	c->sw = calloc(o->sws + 1, sizeof(*c->sw));
	c->switches = c->sw != NULL ? o->sws : 0;
	for (unsigned int i = 0; i < c->switches; i++) {
		struct urn_config_switch *s = &c->sw[i];

		*s = o->every;
		snprintf(s->sw.name, sizeof(s->sw.name), "%s", o->sw[i]);
		s->plug = calloc(o->ports + 1, sizeof(*s->plug));
		s->fixed = calloc(o->fixeds + 1, sizeof(*s->fixed));
		s->route = calloc(o->routes + 1, sizeof(*s->route));
		ok = ok && s->plug != NULL && s->fixed != NULL && s->route != NULL;
	}
	if (ok && c->port != NULL && c->sw != NULL)
		return c;
	urn_config_free(c);
	return NULL;
}

struct urn_config *
sw_config(const struct sw_opts *o, uint16_t *number, struct urn_err *err)
{
	struct urn_config *c;

	if (check_loops(o, err) != 0)
		return NULL;
	c = new_config(o);
	if (c == NULL) {
		urn_err_set(err, "no memory for %u switches", o->sws);
		return NULL;
	}
	c->urnicd.telemetry = true;
	for (unsigned int i = 0; i < o->ports; i++)
		add_port(c, o, i, &number[i]);
	for (unsigned int i = 0; i < o->links; i++)
		add_link(c, o, &o->link[i], number);
	for (unsigned int i = 0; i < o->fixeds; i++)
		add_static(c, o, &o->fixed[i], number);
	for (unsigned int i = 0; i < o->routes; i++)
		add_route(c, o, &o->route[i], number);
	return c;
}
