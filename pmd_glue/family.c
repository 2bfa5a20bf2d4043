/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmd_glue/family.h"
#include "pmd_glue/pci.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct urn_port_family *const families[] = {
	&urn_family_null,      &urn_family_ring,   &urn_family_memif, &urn_family_tap,
	&urn_family_af_packet, &urn_family_af_xdp, &urn_family_pcap,
};

bool
urn_devargs_is_pci(const char *device)
{
	unsigned int domain, bus, dev, fn;
	int end = -1;

	if (sscanf(device, "%x:%2x:%2x.%1x%n", &domain, &bus, &dev, &fn, &end) != 4 &&
	    sscanf(device, "%2x:%2x.%1x%n", &bus, &dev, &fn, &end) != 3)
		return false;
	return end > 0 && isxdigit((unsigned char)device[0]) &&
	       (device[end] == '\0' || device[end] == ',');
}

const struct urn_port_family *
urn_family_find(const char *device)
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(families); i++)
		if (strncmp(device, families[i]->prefix, strlen(families[i]->prefix)) == 0)
			return families[i];
	if (urn_devargs_is_pci(device))
		return urn_mlx5_is(device) ? &urn_family_mlx5 : &urn_family_pci;
	return NULL;
}

void
urn_devargs_name(const char *args, char *out, size_t size)
{
	snprintf(out, size, "%.*s", (int)strcspn(args, ","), args);
}

bool
urn_devargs_get(const char *args, const char *key, char *out, size_t size)
{
	size_t len = strlen(key);
	const char *p = args;

	while ((p = strchr(p, ',')) != NULL) {
		p++;
		if (strncmp(p, key, len) != 0 || p[len] != '=')
			continue;
		p += len + 1;
		snprintf(out, size, "%.*s", (int)strcspn(p, ","), p);
		return true;
	}
	return false;
}

int
urn_devargs_default(char args[URN_DEVARGS_MAX], const char *key, const char *fmt, ...)
{
	char value[256];
	size_t len = strlen(args);
	va_list ap;
	int n;

	if (urn_devargs_get(args, key, value, sizeof(value)))
		return 0;
	va_start(ap, fmt);
	n = vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(value) ||
	    len + strlen(key) + (size_t)n + 3 > URN_DEVARGS_MAX)
		return -1;
	snprintf(args + len, URN_DEVARGS_MAX - len, ",%s=%s", key, value);
	return 0;
}

int
urn_devargs_check(const char *args, const char *keys, struct urn_err *err)
{
	const char *p = strchr(args, ',');
	char key[32];
	size_t len;

	for (; keys != NULL && p != NULL; p = strchr(p, ',')) {
		p++;
		len = strcspn(p, "=,");
		/* The list has spaces around each name. */
		snprintf(key, sizeof(key), " %.*s ", (int)len, p);
		if (len == 0 || p[len] != '=' || len > sizeof(key) - 3 ||
		    memchr(p, ' ', len) != NULL || strstr(keys, key) == NULL) {
			urn_err_set(err,
				    "\"%.*s\" is no argument of this device; it takes "
				    "key=value with the keys%s",
				    (int)strcspn(p, ","), p, keys);
			return -1;
		}
	}
	return 0;
}
