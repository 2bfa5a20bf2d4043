/* SPDX-License-Identifier: BSD-3-Clause */
#include "rig.h"

#include "pmd_glue/eal.h"
#include "pmd_glue/pool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int
eal_up(const struct sw_opts *o, struct urn_err *err)
{
	struct urn_eal_config cfg = {
		.program = "urnic-switch",
		.memory_mb = urn_eal_memory_mb((uint64_t)(o->devices + 1) * o->mbufs),
	};
	const char *pci[SW_MAX_PORTS];

	for (unsigned int i = 0; i < o->ports; i++) {
		const char *device = o->port[i].device;

		if (device[0] != '\0' && strncmp(device, "net_", 4) != 0)
			pci[cfg.pci_count++] = device;
	}
	cfg.pci = pci;
	return urn_eal_start(&cfg, err);
}

static int
copies_up(struct sw_rig *rig, struct urn_err *err)
{
	const struct urn_pool_config cfg = {.name = "copies", .mbufs = rig->o->mbufs};

	rig->copies = urn_pool_create(&cfg, err);
	return rig->copies ? 0 : -1;
}

static int
switches_up(struct sw_rig *rig, struct urn_err *err)
{
	const struct sw_opts *o = rig->o;

	rig->fabric = urn_fabric_create(rig->copies);
	for (unsigned int i = 0; rig->fabric && i < o->sws; i++) {
		struct urn_switch_config cfg = {
			.copies = rig->copies,
			.fdb = {.age_ns = o->age_ns},
			.no_learning = o->no_learning,
		};

		snprintf(cfg.name, sizeof(cfg.name), "%s", o->sw[i]);
		rig->sw[i] = urn_switch_create(&cfg);
		if (!rig->sw[i])
			break;
		urn_fabric_add(rig->fabric, rig->sw[i]);
	}
	if (rig->fabric && urn_fabric_switches(rig->fabric) == o->sws)
		return 0;
	urn_err_set(err, "no memory for %u switches", o->sws);
	return -1;
}

static int
port_up(struct sw_rig *rig, unsigned int i, struct urn_err *err)
{
	const struct sw_port_opts *p = &rig->o->port[i];
	struct urn_port_config dev = {.queues = 1, .mbufs = rig->o->mbufs};
	struct urn_switch_port_config cfg = {.max_frame = 0};
	int number;

	if (p->device[0] != '\0') {
		snprintf(dev.name, sizeof(dev.name), "%s", p->name);
		snprintf(dev.device, sizeof(dev.device), "%s", p->device);
		rig->dev[i] = urn_port_open(&dev, err);
		if (!rig->dev[i])
			return -1;
		cfg.max_frame = urn_fabric_max_frame(rig->dev[i]);
	}
	snprintf(cfg.name, sizeof(cfg.name), "%s", p->name);
	memcpy(cfg.impair, p->impair, sizeof(cfg.impair));
	number = urn_switch_add_port(rig->sw[p->sw], &cfg);
	if (number >= 0)
		rig->number[i] = (uint16_t)number;
	if (number >= 0 && rig->dev[i])
		number = urn_fabric_plug(rig->fabric, rig->sw[p->sw], rig->number[i], rig->dev[i],
					 !p->tap);
	if (number >= 0)
		return 0;
	urn_err_set(err, "port %s: cannot be plugged into switch %s: %s", p->name,
		    rig->o->sw[p->sw], strerror(-number));
	return -1;
}

static int
link_up(struct sw_rig *rig, const struct sw_link_opts *l, struct urn_err *err)
{
	const struct sw_port_opts *p = rig->o->port;
	unsigned int a = l->port[0], b = l->port[1];
	int rc =
		urn_switch_link(rig->sw[p[a].sw], rig->number[a], rig->sw[p[b].sw], rig->number[b]);

	if (rc == 0)
		return 0;
	urn_err_set(err, "--link %s,%s: %s", rig->o->sw[p[a].sw], rig->o->sw[p[b].sw],
		    rc == -ELOOP ? "the two are joined already, by this or other links, and frames "
				   "would go round for ever; leave it out"
				 : strerror(-rc));
	return -1;
}

static int
fixed_up(struct sw_rig *rig, const struct sw_static_opts *f, struct urn_err *err)
{
	const struct sw_port_opts *p = &rig->o->port[f->port];

	if (urn_fdb_set(urn_switch_fdb(rig->sw[p->sw]), urn_mac(f->mac), rig->number[f->port]) == 0)
		return 0;
	urn_err_set(err, "--static %s: no room in the table of switch %s", p->name,
		    rig->o->sw[p->sw]);
	return -1;
}

int
sw_rig_open(struct sw_rig *rig, const struct sw_opts *o, struct urn_err *err)
{
	memset(rig, 0, sizeof(*rig));
	rig->o = o;
	if (eal_up(o, err) || copies_up(rig, err) || switches_up(rig, err))
		return -1;
	for (unsigned int i = 0; i < o->ports; i++) {
		if (port_up(rig, i, err))
			return -1;
	}
	for (unsigned int i = 0; i < o->links; i++) {
		if (link_up(rig, &o->link[i], err))
			return -1;
	}
	for (unsigned int i = 0; i < o->fixeds; i++) {
		if (fixed_up(rig, &o->fixed[i], err))
			return -1;
	}
	return 0;
}

void
sw_rig_close(struct sw_rig *rig)
{
	/* Packets go back before their pools are freed. */
	urn_fabric_destroy(rig->fabric);
	for (unsigned int i = 0; i < rig->o->ports; i++)
		urn_port_close(rig->dev[i]);
	urn_pool_free(rig->copies);
	urn_eal_stop();
}
