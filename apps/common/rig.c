/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/rig.h"

#include "common/rig_switches.h"
#include "common/text.h"

#include "pmd_glue/bond.h"
#include "pmd_glue/eal.h"
#include "pmd_glue/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READER_MS 1000 /* for a slow reader of a capture, once a signal came */

enum { DEFAULT_MBUFS = 8192, DEFAULT_COPIES = 4096 };

/* ---- EAL */

/* The adapter that has a port as one of two; NULL: none. other: number of its other port. */
static const struct urn_config_adapter *
one_of_two(const struct urn_config *c, unsigned int port, unsigned int *other)
{
	for (unsigned int i = 0; i < c->adapters; i++) {
		const struct urn_config_adapter *a = &c->adapter[i];

		if (!a->two || a->port < 0 || (a->port != (int)port && a->port2 != (int)port))
			continue;
		*other = (unsigned int)(a->port == (int)port ? a->port2 : a->port);
		return a;
	}
	return NULL;
}

/* How to open a port, but for its addresses. */
static struct urn_port_config
port_config(const struct urn_config *c, unsigned int port)
{
	struct urn_port_config cfg = c->port[port].port;
	unsigned int other;

	if (one_of_two(c, port, &other) != NULL)
		cfg.other_tx_desc = urn_port_tx_desc(&c->port[other].port);
	return cfg;
}

/* Packets of a port's pool. With a PCI device all of them lie in the EAL's memory (pool.c). */
static uint64_t
pool_of(const struct urn_port_config *port, bool pci)
{
	if (port->mbufs)
		return port->mbufs;
	return pci ? RTE_MAX(urn_port_mbufs(port), (uint32_t)DEFAULT_MBUFS) : DEFAULT_MBUFS;
}

/* Number of packets in all pools together, for the EAL's memory. */
static uint64_t
mbufs_of(const struct urn_rig *rig)
{
	const struct urn_config *c = rig->cfg;
	uint64_t n = (c->switches ? rig->opts.copies : 0) + rig->opts.mbufs;
	bool pci = false;

	for (unsigned int i = 0; i < c->ports; i++)
		pci = pci || c->port[i].pci;
	for (unsigned int i = 0; i < c->ports; i++) {
		struct urn_port_config port = port_config(c, i);
		uint64_t own = pool_of(&port, pci);

		/* A card's packets are longer than others, by a sixth at most (net_pci.c). */
		n += c->port[i].pci ? own + own / 6 : own;
	}
	for (unsigned int i = 0; i < c->adapters; i++)
		for (unsigned int k = 0; c->adapter[i].port < 0 && k < 2; k++)
			n += pool_of(&c->adapter[i].ring[k], pci) * (c->adapter[i].two ? 2 : 1);
	return n;
}

static int
eal_up(struct urn_rig *rig, const char **pci, struct urn_err *err)
{
	const struct urn_config *c = rig->cfg;
	struct urn_eal_config cfg = {
		.program = rig->opts.program,
		.memory_mb = c->eal.memory ? (unsigned int)(c->eal.memory >> 20)
					   : urn_eal_memory_mb(mbufs_of(rig)),
		.huge_pages = c->eal.huge_pages == URN_CONFIG_HUGE_AUTO,
		.extra = c->eal.extra[0] ? c->eal.extra : NULL,
		.log_level = c->urnicd.log_level[0] ? c->urnicd.log_level : NULL,
		.file_prefix = c->eal.file_prefix[0] ? c->eal.file_prefix : NULL,
		.no_telemetry = !c->urnicd.telemetry,
		.pdump = true,
		.workers = c->engines,
		.pci = pci,
	};

	for (unsigned int i = 0; i < c->ports; i++)
		if (c->port[i].pci)
			pci[cfg.pci_count++] = c->port[i].port.device;
	if (urn_eal_start(&cfg, err) != 0)
		return -1;
	rig->eal_up = true;
	return 0;
}

int
urn_rig_start(struct urn_rig *rig, const struct urn_config *cfg, const struct urn_rig_opts *opts,
	      struct urn_err *err)
{
	const char **pci = calloc(cfg->ports + 1, sizeof(*pci));
	int rc = -1;

	memset(rig, 0, sizeof(*rig));
	rig->cfg = cfg;
	rig->opts = *opts;
	if (rig->opts.copies == 0)
		rig->opts.copies = DEFAULT_COPIES;
	rig->port = calloc(cfg->ports + 1, sizeof(*rig->port));
	rig->ring = calloc(2 * cfg->adapters + 1, sizeof(*rig->ring));
	rig->bond = calloc(cfg->adapters + 1, sizeof(*rig->bond));
	rig->sw = calloc(cfg->switches + 1, sizeof(struct urn_switch *));
	if (pci == NULL || rig->port == NULL || rig->ring == NULL || rig->bond == NULL ||
	    rig->sw == NULL)
		urn_err_set(err, "no memory");
	else
		rc = eal_up(rig, pci, err);
	free(pci);
	return rc;
}

/* ---- ports */

/* Open two ports that follow each other as the ends of a pair of rings. */
static int
pair_up(struct urn_rig *rig, unsigned int first, struct urn_err *err)
{
	struct urn_port_config cfg[2] = {rig->cfg->port[first].port,
					 rig->cfg->port[first + 1].port};

	return urn_port_open_ring_pair(cfg, &rig->port[first], err);
}

/*
 * True when a port is to take only its adapter's frames, where its family can. A port of a switch
 * takes all frames.
 */
static bool
wants_filter(const struct urn_config *c, unsigned int port)
{
	for (unsigned int i = 0; i < c->adapters; i++)
		if (c->adapter[i].port == (int)port ||
		    (c->adapter[i].two && c->adapter[i].port2 == (int)port))
			return !c->port[port].no_filter;
	return false;
}

/*
 * Have a port that is one of two of an adapter come up with the MAC address of the other one: that
 * which the other one got, or else the one that the file gives to the first.
 */
static void
share_mac(const struct urn_rig *rig, unsigned int port, uint8_t mac[6])
{
	const struct urn_config *c = rig->cfg;
	unsigned int other;
	const struct urn_config_adapter *a = one_of_two(c, port, &other);

	if (a != NULL)
		memcpy(mac, rig->port[other] ? rig->port[other]->mac : c->port[a->port].port.mac,
		       6);
}

/* Open the rings between adapter i and its switch, or each of two. */
static int
rings_up(struct urn_rig *rig, unsigned int i, struct urn_err *err)
{
	const struct urn_config_adapter *a = &rig->cfg->adapter[i];
	struct urn_port_config second[2];

	if (urn_port_open_ring_pair(a->ring, rig->ring[i], err) != 0)
		return -1;
	if (!a->two)
		return 0;
	memcpy(second, a->ring2, sizeof(second));
	memcpy(second[0].mac, rig->ring[i][0]->mac, 6);
	return urn_port_open_ring_pair(second, rig->ring[rig->cfg->adapters + i], err);
}

/* Make one port of the two that an adapter has. */
static int
bond_up(struct urn_rig *rig, unsigned int i, struct urn_err *err)
{
	const struct urn_config_adapter *a = &rig->cfg->adapter[i];
	struct urn_port *const member[URN_BOND_MEMBERS] = {
		a->port < 0 ? rig->ring[i][0] : rig->port[a->port],
		a->port < 0 ? rig->ring[rig->cfg->adapters + i][0] : rig->port[a->port2],
	};

	rig->bond[i] = urn_bond_create(member, a->failback_ns, err);
	return rig->bond[i] ? 0 : -1;
}

int
urn_rig_ports(struct urn_rig *rig, struct urn_err *err)
{
	const struct urn_config *c = rig->cfg;

	for (unsigned int i = 0; i < c->ports; i++) {
		struct urn_port_config port = port_config(c, i);

		if (c->port[i].port.device[0] == '\0' && i + 1 < c->ports) {
			if (pair_up(rig, i++, err) != 0)
				return -1;
			continue;
		}
		port.filter = wants_filter(c, i);
		share_mac(rig, i, port.mac);
		rig->port[i] = urn_port_open(&port, err);
		if (rig->port[i] == NULL)
			return -1;
	}
	for (unsigned int i = 0; i < c->adapters; i++)
		if ((c->adapter[i].port < 0 && rings_up(rig, i, err) != 0) ||
		    (c->adapter[i].two && bond_up(rig, i, err) != 0))
			return -1;
	return urn_rig_switches(rig, err);
}

/* Move a capture to the standard output; other output goes to the standard error then. returns: its
 * descriptor, or -1 with *err */
static int
take_stdout(struct urn_err *err)
{
	int fd;

	if (isatty(STDOUT_FILENO)) {
		urn_err_set(err, "a capture is nothing for a terminal; write: --capture - | "
				 "wireshark -k -i -");
		return -1;
	}
	fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (fd >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
		return fd;
	urn_err_set(err, "the standard output can't take a capture: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Begin a capture of n ports. returns: NULL with *err */
static struct urn_capture *
capture_begin(const char *path, struct urn_port *const *port, unsigned int n, struct urn_err *err)
{
	/* The reader of a pipe is all that a tool works for: it is waited for, until a signal. */
	struct urn_capture_config cfg = {.fd = -1,
					 .path = path,
					 .ports = port,
					 .n = n,
					 .patience_ms = READER_MS,
					 .hurry = urn_stop_flag()};

	if (strcmp(path, "-") == 0) {
		cfg.fd = take_stdout(err);
		if (cfg.fd < 0)
			return NULL;
	}
	return urn_capture_begin(&cfg, err);
}

int
urn_rig_capture(struct urn_rig *rig, const char *path, struct urn_err *err)
{
	const struct urn_config *c = rig->cfg;
	struct urn_port **port = calloc(c->ports + 1, sizeof(*port));
	unsigned int n = 0;

	if (port == NULL) {
		urn_err_set(err, "no memory");
		return -1;
	}
	for (unsigned int i = 0; i < c->ports; i++)
		if (c->port[i].sw < 0)
			port[n++] = rig->port[i];
	rig->capture = capture_begin(path, port, n, err);
	free(port);
	return rig->capture ? 0 : -1;
}

/* ---- dataplane */

int
urn_rig_dataplane(struct urn_rig *rig, struct urn_err *err)
{
	const struct urn_config *c = rig->cfg;
	struct urn_adapter_config *a = calloc(c->adapters, sizeof(*a));
	struct urn_dp_config dp = {.engines = c->engines, .adapters = c->adapters, .adapter = a};

	if (a == NULL) {
		urn_err_set(err, "no memory for %u adapters", c->adapters);
		return -1;
	}
	for (unsigned int i = 0; i < c->engines; i++)
		dp.engine[i] = c->engine[i].engine;
	for (unsigned int i = 0; i < c->adapters; i++) {
		a[i] = c->adapter[i].adapter;
		a[i].port = rig->bond[i]	     ? rig->bond[i]
			    : c->adapter[i].port < 0 ? rig->ring[i][0]
						     : rig->port[c->adapter[i].port];
	}
	rig->dp = urn_dp_create(&dp, err);
	free(a);
	if (rig->dp)
		urn_rig_unseal(rig);
	return rig->dp ? 0 : -1;
}

void
urn_rig_dataplane_down(struct urn_rig *rig)
{
	urn_dp_destroy(rig->dp);
	rig->dp = NULL;
}

bool
urn_rig_links_up(struct urn_rig *rig)
{
	bool up = true;

	for (unsigned int i = 0; i < rig->cfg->ports; i++) {
		urn_port_poll_link(rig->port[i]);
		up = up && rig->port[i]->link_up;
	}
	return up;
}

/* ---- down */

int
urn_rig_down(struct urn_rig *rig, uint64_t *lost, struct urn_err *err)
{
	int rc = 0;

	if (lost != NULL)
		*lost = 0;
	urn_rig_dataplane_down(rig);
	if (rig->capture != NULL)
		rc = urn_capture_close(rig->capture, lost, err);
	/* Packets go back before their pools are freed. */
	for (unsigned int i = 0; i < URN_ABI_MAX_ENGINES; i++)
		urn_fabric_destroy(rig->fabric[i]);
	for (unsigned int i = 0; rig->bond != NULL && i < rig->cfg->adapters; i++)
		urn_bond_destroy(rig->bond[i]);
	for (unsigned int i = 0; rig->ring != NULL && i < 2 * rig->cfg->adapters; i++) {
		urn_port_close(rig->ring[i][0]);
		urn_port_close(rig->ring[i][1]);
	}
	for (unsigned int i = 0; rig->port != NULL && i < rig->cfg->ports; i++)
		urn_port_close(rig->port[i]);
	urn_pool_free(rig->copies);
	free(rig->port);
	free(rig->ring);
	free(rig->bond);
	free(rig->sw);
	*rig = (struct urn_rig){.eal_up = rig->eal_up};
	return rc;
}

int
urn_rig_close(struct urn_rig *rig, uint64_t *lost, struct urn_err *err)
{
	int rc = urn_rig_down(rig, lost, err);

	if (rig->eal_up)
		urn_eal_stop();
	rig->eal_up = false;
	return rc;
}

/* Close a port but keep its pool: stalled copies of foreign memory may still use the packets. */
static void
abandon_port(struct urn_port *p)
{
	if (p == NULL)
		return;
	p->pool = NULL;
	urn_port_close(p);
}

void
urn_rig_abandon(struct urn_rig *rig)
{
	for (unsigned int i = 0; rig->ring != NULL && i < 2 * rig->cfg->adapters; i++) {
		abandon_port(rig->ring[i][0]);
		abandon_port(rig->ring[i][1]);
	}
	for (unsigned int i = 0; rig->port != NULL && i < rig->cfg->ports; i++)
		abandon_port(rig->port[i]);
	urn_eal_stop();
}
