/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses devices of the command line. */
#include "opts.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* True when all characters can stand in a driver's argument. */
static bool
is_plain(const char *s)
{
	if (*s == '\0')
		return false;
	for (; *s; s++) {
		if (!isalnum((unsigned char)*s) && !strchr("_-./:@", *s))
			return false;
	}
	return true;
}

/* Make the device of a kernel interface: tap makes the interface, af_packet and af_xdp find it. */
static int
interface(const char *kind, const char *arg, unsigned int index, char device[512], char name[32],
	  struct urn_err *err)
{
	if (!is_plain(arg) || strlen(arg) > 15 || strchr(arg, '/')) {
		urn_err_set(err,
			    "--port %.16s:%.32s: give the name of an interface, up to 15 "
			    "characters",
			    kind, arg);
		return -1;
	}
	snprintf(device, 512, "net_%s%u,iface=%s", kind, index, arg);
	snprintf(name, 32, "%s", arg);
	return 0;
}

/* Make a memif device from "PATH" or "PATH,client". */
static int
memif(const char *arg, unsigned int index, char device[512], char name[32], struct urn_err *err)
{
	const char *comma = strchr(arg, ',');
	char path[108] = "";
	int n = comma ? (int)(comma - arg) : (int)strlen(arg);

	if (n < (int)sizeof(path))
		snprintf(path, sizeof(path), "%.*s", n, arg);
	if (!is_plain(path) || path[0] != '/' ||
	    (comma && strcmp(comma, ",client") != 0 && strcmp(comma, ",server") != 0)) {
		urn_err_set(err,
			    "--port memif:%.100s: give the whole path of a socket, up to 107 "
			    "characters, and ,client if the other side makes it",
			    arg);
		return -1;
	}
	snprintf(device, 512, "net_memif%u,role=%s,socket=%s", index, comma ? comma + 1 : "server",
		 path);
	snprintf(name, 32, "memif%u", index);
	return 0;
}

int
sw_device(const char *spec, unsigned int index, char device[512], char name[32],
	  struct urn_err *err)
{
	static const char *const kinds[] = {"tap", "af_packet", "af_xdp"};
	const char *colon = strchr(spec, ':');
	size_t n = colon ? (size_t)(colon - spec) : 0;

	for (size_t i = 0; i < RTE_DIM(kinds); i++) {
		if (n == strlen(kinds[i]) && strncmp(spec, kinds[i], n) == 0)
			return interface(kinds[i], colon + 1, index, device, name, err);
	}
	if (n == 5 && strncmp(spec, "memif", n) == 0)
		return memif(colon + 1, index, device, name, err);
	if (n == 3 && strncmp(spec, "dev", n) == 0 && colon[1] != '\0' && strlen(colon + 1) < 512) {
		snprintf(device, 512, "%s", colon + 1);
		snprintf(name, 32, "port%u", index);
		return 0;
	}
	urn_err_set(err,
		    "--port %.48s: give tap:NAME, memif:PATH, af_packet:NAME, af_xdp:NAME or "
		    "dev:DEVICE",
		    spec);
	return -1;
}
