/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmd_glue/pci.h"
#include "pmd_glue/family.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PCI_SYS "/sys/bus/pci/devices/"

int
urn_pci_addr(const char *device, char addr[URN_PCI_ADDR])
{
	unsigned int domain, bus, dev, fn;

	if (!urn_devargs_is_pci(device))
		return -1;
	if (sscanf(device, "%4x:%2x:%2x.%1x", &domain, &bus, &dev, &fn) != 4) {
		domain = 0;
		if (sscanf(device, "%2x:%2x.%1x", &bus, &dev, &fn) != 3)
			return -1;
	}
	snprintf(addr, URN_PCI_ADDR, "%04x:%02x:%02x.%x", domain & 0xffff, bus & 0xff, dev & 0xff,
		 fn & 0xf);
	return 0;
}

bool
urn_pci_there(const char *addr)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), PCI_SYS "%s", addr);
	return access(path, F_OK) == 0;
}

/* Read a number in hexadecimal from a file of the device. returns: 0: there is none */
static unsigned int
number_of(const char *addr, const char *file)
{
	char path[PATH_MAX];
	unsigned int v = 0;
	FILE *f;

	snprintf(path, sizeof(path), PCI_SYS "%s/%s", addr, file);
	f = fopen(path, "r");
	if (f == NULL)
		return 0;
	if (fscanf(f, "%x", &v) != 1)
		v = 0;
	fclose(f);
	return v;
}

unsigned int
urn_pci_vendor(const char *addr)
{
	return number_of(addr, "vendor");
}

unsigned int
urn_pci_class(const char *addr)
{
	return number_of(addr, "class");
}

/* Read the last name of what a link of the device leads to; "": there is no such link. */
static void
link_of(const char *addr, const char *link, char *out, size_t size)
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *base;
	ssize_t n;

	snprintf(path, sizeof(path), PCI_SYS "%s/%s", addr, link);
	n = readlink(path, target, sizeof(target) - 1);
	target[n < 0 ? 0 : n] = '\0';
	base = strrchr(target, '/');
	snprintf(out, size, "%s", base != NULL ? base + 1 : "");
}

void
urn_pci_driver(const char *addr, char *out, size_t size)
{
	link_of(addr, "driver", out, size);
}

bool
urn_pci_vfio(const char *addr, char *path, size_t size)
{
	char group[16];

	link_of(addr, "iommu_group", group, sizeof(group));
	snprintf(path, size, "%s%s", group[0] != '\0' ? "/dev/vfio/" : "", group);
	return group[0] != '\0' && access(path, R_OK | W_OK) == 0;
}

void
urn_pci_child(const char *addr, const char *folder, char *out, size_t size)
{
	char path[PATH_MAX];
	struct dirent *e;
	DIR *d;

	out[0] = '\0';
	snprintf(path, sizeof(path), PCI_SYS "%s/%s", addr, folder);
	d = opendir(path);
	if (d == NULL)
		return;
	while (out[0] == '\0' && (e = readdir(d)) != NULL)
		if (e->d_name[0] != '.')
			snprintf(out, size, "%s", e->d_name);
	closedir(d);
}
