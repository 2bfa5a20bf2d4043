/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices and EAL arguments, checked by their text. */
#include "config/config_priv.h"

#include "pmd_glue/family.h"
#include "pmd_glue/pci.h"

#include <stdio.h>
#include <string.h>

/* Arguments without which a device does not come up, with an example of each. */
static const struct {
	const char *prefix, *key, *example;
} wanted[] = {
	{"net_memif", "socket", "socket=/path/to/socket"},
	{"net_af_packet", "iface", "iface=eth0"},
	{"net_af_xdp", "iface", "iface=eth0"},
};

static int
check_wanted(const char *device, struct urn_err *err)
{
	char value[256], abstract[8] = "no";

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

static void
say_no_device(const char *device, struct urn_err *err)
{
	if (strlen(device) <= 15 && strpbrk(device, ",:= /") == NULL &&
	    strncmp(device, "net_", 4) != 0)
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
