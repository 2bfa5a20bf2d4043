/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices and EAL arguments, checked by their text. */
#include "config/config_priv.h"

#include "pmd_glue/family.h"
#include "pmd_glue/netdev.h"
#include "pmd_glue/pci.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Arguments without which a device does not come up, with an example of each. */
static const struct {
	const char *prefix, *key, *example;
} wanted[] = {
	{"net_memif", "socket", "socket=/path/to/socket"},
	{"net_af_packet", "iface", "iface=eth0"},
	{"net_af_xdp", "iface", "iface=eth0"},
};

/* The role of a memif, by the PMD's new names. NULL: no role */
static const char *
memif_role(const char *device)
{
	char role[16];

	if (!urn_devargs_get(device, "role", role, sizeof(role)))
		return "client";
	if (strcmp(role, "server") == 0 || strcmp(role, "master") == 0)
		return "server";
	return strcmp(role, "client") == 0 || strcmp(role, "slave") == 0 ? "client" : NULL;
}

bool
urn_config_memif_clash(const char *device, const char *other, char *why, size_t size)
{
	char path[2][256], id[2][16];
	const char *const d[2] = {device, other};

	for (unsigned int i = 0; i < 2; i++) {
		if (strncmp(d[i], "net_memif", 9) != 0 || memif_role(d[i]) == NULL ||
		    !urn_devargs_get(d[i], "socket", path[i], sizeof(path[i])))
			return false;
		if (!urn_devargs_get(d[i], "id", id[i], sizeof(id[i])))
			snprintf(id[i], sizeof(id[i]), "0");
	}
	snprintf(why, size, "role=%s of the socket %s with id=%s", memif_role(device), path[0],
		 id[0]);
	return strcmp(path[0], path[1]) == 0 &&
	       strtoul(id[0], NULL, 0) == strtoul(id[1], NULL, 0) &&
	       strcmp(memif_role(device), memif_role(other)) == 0;
}

static int
check_wanted(const char *device, struct urn_err *err)
{
	char value[256], abstract[8] = "no";

	if (strncmp(device, "net_memif", 9) == 0 && memif_role(device) == NULL) {
		urn_err_set(err, "the role of a memif is neither server nor client; give one of "
				 "these");
		return -1;
	}
	for (size_t i = 0; i < RTE_DIM(wanted); i++) {
		if (strncmp(device, wanted[i].prefix, strlen(wanted[i].prefix)) != 0)
			continue;
		if (!urn_devargs_get(device, wanted[i].key, value, sizeof(value)) ||
		    value[0] == '\0') {
			urn_err_set(err, "the device wants %s; add ,%s", wanted[i].key,
				    wanted[i].example);
			return -1;
		}
		(void)urn_devargs_get(device, "socket-abstract", abstract, sizeof(abstract));
		if (strcmp(wanted[i].key, "socket") == 0 && value[0] != '/' &&
		    strcmp(abstract, "yes") != 0) {
			urn_err_set(err, "the socket %.64s is no absolute path; begin it with /",
				    value);
			return -1;
		}
	}
	return 0;
}

/* True when a name is that of an RDMA device of the kernel, here or on a server with mlx4 or mlx5.
 */
static bool
is_rdma(const char *name)
{
	char path[64];

	if ((strncmp(name, "mlx4_", 5) == 0 || strncmp(name, "mlx5_", 5) == 0) && name[5] != '\0' &&
	    name[5 + strspn(name + 5, "0123456789")] == '\0')
		return true;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s", name);
	return access(path, F_OK) == 0;
}

/* Say which device of DPDK an RDMA device is: that of its PCI address, which sysfs knows. */
static void
say_rdma(const char *name, struct urn_err *err)
{
	char path[64], link[256] = "";
	const char *addr;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device", name);
	if (readlink(path, link, sizeof(link) - 1) < 0)
		link[0] = '\0';
	addr = strrchr(link, '/');
	if (addr && urn_devargs_is_pci(addr + 1))
		urn_err_set(err, "%s is the name of an RDMA device; give its PCI address, %s", name,
			    addr + 1);
	else
		urn_err_set(err,
			    "%s is the name of an RDMA device; give the PCI address of its port, "
			    "such as 0000:3b:00.0 (readlink /sys/class/infiniband/%s/device)",
			    name, name);
}

static void
say_no_device(const char *device, struct urn_err *err)
{
	bool name = device[0] != '\0' && device[0] != '.' && strlen(device) <= 15 &&
		    strpbrk(device, ",:= /") == NULL && strncmp(device, "net_", 4) != 0;

	if (name && is_rdma(device))
		say_rdma(device, err);
	else if (name && urn_netdev_is_bridge(device))
		urn_err_set(err,
			    "%s is a bridge of this host, which takes ports and is none; give "
			    "net_tap0,iface=urn0, and put that in: ip link set urn0 master %s",
			    device, device);
	else if (name)
		urn_err_set(err,
			    "no device of DPDK; for an interface of that name give "
			    "net_af_packet0,iface=%s",
			    device);
	else
		urn_err_set(err,
			    "no device of DPDK; give net_memif, net_tap, net_af_packet, "
			    "net_af_xdp, net_pcap, net_null or net_ring with a number behind it, "
			    "or a PCI address such as 0000:3b:00.0");
}

int
urn_config_device_check(const char *device, struct urn_err *err)
{
	const struct urn_port_family *family;

	/* A PCI device can't be checked without looking at it. */
	if (urn_devargs_is_pci(device))
		return 0;
	family = urn_family_find(device);
	if (!family) {
		say_no_device(device, err);
		return -1;
	}
	if (urn_devargs_check(device, family->keys, err) != 0)
		return -1;
	return check_wanted(device, err);
}

void
urn_config_device_id(const char *device, char *out, size_t size)
{
	char addr[URN_PCI_ADDR];

	if (urn_pci_addr(device, addr) == 0)
		snprintf(out, size, "%s", addr);
	else
		urn_devargs_name(device, out, size);
}

/* EAL arguments that keys and urn_eal_start() set; by their beginning. */
static const struct {
	const char *option, *instead;
} ours[] = {
	{"-l", "cores"},
	{"-c", "cores"},
	{"--lcores", "cores"},
	{"-m", "memory"},
	{"--socket-mem", "memory"},
	{"--no-huge", "huge_pages"},
	{"--in-memory", "huge_pages"},
	{"--file-prefix", "file_prefix"},
	{"--log-level=*", "log_level in [urnicd]"},
	{"--no-telemetry", "telemetry in [urnicd]"},
	{"--vdev", "device in a [port NAME]"},
	{"-a", "device in a [port NAME]"},
	{"--allow", "device in a [port NAME]"},
	{"--no-pci", "device in a [port NAME]"},
};

/* "--lcores=0@1" begins with "--lcores", and "-l0" with "-l"; "--log" does not begin with "-l". */
static bool
begins(const char *word, size_t n, const char *option)
{
	size_t len = strlen(option);

	return n >= len && strncmp(word, option, len) == 0 &&
	       (option[1] != '-' || n == len || word[len] == '=' || option[len - 1] == '*');
}

int
urn_config_eal_check(const char *extra, struct urn_err *err)
{
	const char *word;
	size_t n;

	for (extra += strspn(extra, " \t"); *extra; extra += strspn(extra, " \t")) {
		word = extra;
		n = strcspn(word, " \t");
		extra += n;
		for (size_t i = 0; i < RTE_DIM(ours); i++) {
			if (!begins(word, n, ours[i].option))
				continue;
			urn_err_set(err, "%.*s is set by %s; give that", (int)RTE_MIN(n, 48u), word,
				    ours[i].instead);
			return -1;
		}
	}
	return 0;
}
