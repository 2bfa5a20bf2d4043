/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmd_glue/filter.h"
#include "pmd_glue/bond.h"
#include "pmd_glue/family.h"

#include <string.h>

static int
filter_one(struct urn_port *port, const uint8_t (*gid)[16], unsigned int n, uint16_t vlan,
	   struct urn_err *err)
{
	static const uint8_t none[16];
	struct urn_filter_key key[URN_FILTER_ADDRESSES];
	unsigned int keys = 0;

	/* A device may let in the VLANs alone that it was told, or all when it is promiscuous
	 * (virtio in QEMU). */
	if (vlan != 0 && port->family == &urn_family_pci)
		(void)rte_eth_promiscuous_enable(port->id);
	if (port->filter == URN_PORT_FILTER_NONE || port->family->filter == NULL)
		return 0;
	for (unsigned int i = 0; i < n; i++) {
		if (memcmp(gid[i], none, sizeof(none)) == 0)
			continue;
		if (keys == URN_FILTER_ADDRESSES) {
			urn_err_set(err, "a filter has room for %u addresses, not for %u",
				    URN_FILTER_ADDRESSES, n);
			urn_err_name(err, &port->cfg);
			return -1;
		}
		memcpy(key[keys++].gid, gid[i], sizeof(key->gid));
	}
	if (port->family->filter(port, key, keys, vlan, err) == 0)
		return 0;
	urn_err_name(err, &port->cfg);
	return -1;
}

int
urn_port_filter(struct urn_port *port, const uint8_t (*gid)[16], unsigned int n, uint16_t vlan,
		struct urn_err *err)
{
	int rc = 0;

	if (port->active == NULL)
		return filter_one(port, gid, n, vlan, err);
	for (unsigned int i = 0; i < URN_BOND_MEMBERS && rc == 0; i++)
		rc = filter_one(urn_bond_member(port, i), gid, n, vlan, err);
	return rc;
}

const char *
urn_port_filter_name(const struct urn_port *port)
{
	switch (port->filter) {
	case URN_PORT_FILTER_SOCKET:
		return "socket";
	case URN_PORT_FILTER_XDP:
		return "xdp";
	default:
		return "none";
	}
}

bool
urn_port_filter_counts(const struct urn_port *port, struct urn_port_filter_counts *out)
{
	memset(out, 0, sizeof(*out));
	return port->filter != URN_PORT_FILTER_NONE && port->family->filter_counts != NULL &&
	       port->family->filter_counts(port, out);
}
