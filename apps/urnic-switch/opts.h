/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of the command line: switches, ports, links, impairments, checked against each other. */
#ifndef URNIC_SWITCH_OPTS_H
#define URNIC_SWITCH_OPTS_H

#include "control/dataplane.h"
#include "config/switch_keys.h"
#include "switch/fabric.h"

#include <stdbool.h>
#include <stdint.h>

#define SW_MAX_PORTS URN_CONFIG_MAX_PORTS /* devices of all switches together */
#define SW_MAX_LINKS 63u /* a tree of URN_FABRIC_MAX_SWITCHES */
#define SW_MAX_STATIC 1024u

/* A port of a switch: a device, or an end of a link. */
struct sw_port_opts {
	char name[32];
	char device[512];		    /* pmd_glue's device line; empty: a link */
	unsigned int sw;		    /* index of the switch */
	struct urn_impair_config impair[2]; /* by enum urn_switch_dir */
};

struct sw_link_opts {
	unsigned int port[2]; /* indices of the ports at its ends */
};

struct sw_static_opts {
	unsigned int port; /* index of the port */
	uint8_t mac[6];
};

struct sw_route_opts {
	unsigned int port; /* index of the port */
	uint8_t gid[16];   /* the IP address */
};

struct sw_opts {
	char sw[URN_FABRIC_MAX_SWITCHES][URN_CONFIG_NAME]; /* names */
	struct urn_config_switch
		every; /* values of [switch] keys, the same for each switch; no name, no plugs */
	struct sw_port_opts port[SW_MAX_PORTS + 2 * SW_MAX_LINKS];
	struct sw_link_opts link[SW_MAX_LINKS];
	struct sw_static_opts fixed[SW_MAX_STATIC];
	struct sw_route_opts route[SW_MAX_STATIC];
	unsigned int sws, ports, links, fixeds, routes;
	unsigned int devices; /* ports that are no link ends */
	uint64_t duration_ns; /* 0: until a signal */
	uint64_t interval_ns; /* time between prints of the counters; 0: never */
	uint32_t mbufs;	      /* packets in each port's pool, and in that of copies */
	enum urn_idle idle;
	int core; /* -1: the kernel chooses */
	bool json;
};

/* Next step after the command line was read. */
enum sw_parse { SW_RUN, SW_EXIT_OK, SW_EXIT_USAGE };

/*
 * Read the command line into *o. Prints help and version itself; a bad option
 * gives a message in *err and SW_EXIT_USAGE.
 */
enum sw_parse sw_opts_parse(int argc, char **argv, struct sw_opts *o, struct urn_err *err);

/*
 * Make a device from a specification, "tap:NAME" and the like. index: makes
 * the device's own name unique. name: gets the port's default name.
 * returns: 0, or -1 with *err
 */
int sw_device(const char *spec, unsigned int index, char device[512], char name[32],
	      struct urn_err *err);

#endif
