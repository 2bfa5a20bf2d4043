/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The configuration of a dataplane process: INI text in, a checked structure
 * out, or a list of every mistake. Pure: no device is opened, DPDK is not
 * called, and nothing that depends on the machine (that an interface exists, that this
 * process may run on a CPU) is checked here. doc/reference/urnicd.md is the reference,
 * and is made from the same table (config_schema.c).
 *
 * Users of a returned struct urn_config may rely on this:
 *  - there is at least one engine and one adapter; every index in it is valid;
 *  - names of ports, switches and adapters are unique, each among its kind;
 *  - every port is used by exactly one adapter or switch;
 *  - links between switches make a tree, and linked switches share an engine;
 *  - no address and no MAC is given twice.
 */
#ifndef URN_CONFIG_CONFIG_H
#define URN_CONFIG_CONFIG_H

#include "abi/urn_abi.h"
#include "config/config_errors.h"
#include "control/dataplane.h"
#include "pmd_glue/port.h"
#include "switch/switch.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define URN_CONFIG_NAME 16u	     /* bytes of a name, NUL included: letters, digits, _ . - */
#define URN_CONFIG_PATH 256u	     /* bytes of a path, NUL included */
#define URN_CONFIG_FILE_MAX 1048576u /* bytes of a file */
#define URN_CONFIG_MAX_PORTS 32u     /* ethdev ports of a process, two for a ring pair; asserted */
#define URN_CONFIG_MAX_SWITCHES 64u
#define URN_CONFIG_UNLIMITED UINT64_MAX /* value of a limit: none */

enum urn_config_huge {
	URN_CONFIG_HUGE_NEVER,
	URN_CONFIG_HUGE_AUTO, /* if there are enough free ones */
};

/* Lines of the log with priorities, as a journal reads them. */
enum urn_config_journal {
	URN_CONFIG_JOURNAL_AUTO, /* when the standard error is a journal's */
	URN_CONFIG_JOURNAL_YES,
	URN_CONFIG_JOURNAL_NO,
};

/* [urnicd] */
struct urn_config_daemon {
	char socket[108];	    /* path; "": urn_config_socket_default() */
	uint32_t mode;		    /* permissions of the socket, 0600 */
	char group[32];		    /* group of the socket; "": the process's */
	char control[108];	    /* path of the control socket; "": socket with .ctl behind it */
	char control_group[32];	    /* group that may use the control socket, too; "": none */
	char node[URN_CONFIG_NAME]; /* node of clients that name none; "": none, because there are several */
	char log_level[16];	    /* see urn_eal_config.log_level: "error", "warning", ... */
	char log[192];		    /* levels of the log of events: urn_log_parse() */
	char log_file[URN_CONFIG_PATH]; /* the log's file; "": the standard error */
	uint32_t log_journal;		/* enum urn_config_journal */
	bool telemetry;		    /* open rte_telemetry's socket */
	char prometheus_host[48];   /* address to listen on, without brackets; "": do not listen */
	uint16_t prometheus_port;
	char capture_dir[URN_CONFIG_PATH]; /* folder of captures; "": the current folder */
	char pid_file[URN_CONFIG_PATH];	   /* "": none */
	struct urn_engine_config idle; /* default for engines without their own; applied already */
};

/* [eal] */
struct urn_config_eal {
	uint64_t memory; /* bytes; 0: computed by ports and adapters */
	enum urn_config_huge huge_pages;
	cpu_set_t cores;      /* CPUs that threads may use; none set: all allowed */
	char file_prefix[32]; /* "": one of its own */
	char extra[512];      /* further EAL arguments, space separated */
};

/* Limits of a client or user; URN_CONFIG_UNLIMITED: no limit. */
struct urn_config_quota {
	uint64_t qp, cq, srq, mr; /* objects; memory windows count as regions */
	uint64_t pd, ah;	  /* protection domains, address handles */
	uint64_t cm;		  /* ids of connection management */
	uint64_t pinned;	  /* bytes of registered memory */
	uint64_t channel;	  /* completion channels */
	uint64_t share, shared;	  /* pieces and bytes of shared memory, registered or not */
	uint64_t area;		  /* bytes of areas for queues */
	uint64_t queue;		  /* bytes of them that queues had so far */
	uint64_t msg;		  /* register sets of messages */
};

/* [limits] */
struct urn_config_limits {
	uint64_t clients; /* clients attached at a time */
	uint64_t clients_per_uid;
	struct urn_config_quota per_client;
	struct urn_config_quota per_uid; /* for all clients of a user together */
	uint64_t queue; /* bytes of areas that queues of all clients together had so far */
	/* The file gives the limit, so that urn_config_notes() says when it can't hold. */
	struct {
		bool clients, clients_per_uid, channels_per_uid;
	} given;
};

/* [congestion]: copied into each adapter */
struct urn_config_congestion {
	struct urn_dcqcn_config dcqcn; /* line 0: each adapter has its own */
	uint64_t delay_limit_ns;       /* see struct urn_adapter_config */
};

/* [engine N]; N is its index */
struct urn_config_engine {
	int lcore; /* CPU that its thread runs on; -1: any of urn_config_eal.cores */
	struct urn_engine_config engine;
	unsigned int line; /* line of the section; 0: not in the file */
};

/* [port NAME]: a device; used by one adapter or plugged into one switch */
struct urn_config_port {
	struct urn_port_config port; /* name included: ready for urn_port_open() */
	bool pci;		     /* port.device is a PCI address: name it to urn_eal_start() */
	bool no_filter;		     /* take all frames of the interface */
	bool no_pfc; /* without frames of flow control on a lossless switch; valid when given */
	int adapter;		     /* index of the adapter that uses the port; -1: none */
	int sw, plug;		     /* index of the switch and of its plug; -1: none */
	unsigned int line;
};

/* Kinds of plugs. A plug's index in the switch's plug array is the number of the switch's port. */
enum urn_config_plug_kind {
	URN_CONFIG_PLUG_PORT,	 /* index: a port */
	URN_CONFIG_PLUG_ADAPTER, /* index: an adapter, by a pair of rings */
	URN_CONFIG_PLUG_LINK,	 /* index: another switch; peer: its plug */
};

struct urn_config_plug {
	enum urn_config_plug_kind kind;
	unsigned int index;
	unsigned int peer; /* LINK only: index of the plug at the other switch */
	bool second;	   /* ADAPTER only: the plug is that of the adapter's second port */
	struct urn_switch_port_config
		port; /* name of the port, adapter or switch that is plugged in; impairments; max_frame 0 */
	unsigned int line;
};

struct urn_config_static {
	unsigned int plug; /* index */
	uint8_t mac[6];
};

/* An IP address behind a plug. */
struct urn_config_route {
	unsigned int plug; /* index */
	uint8_t gid[16];
};

/* [switch NAME] */
struct urn_config_switch {
	struct urn_switch_config sw; /* all but copies and fdb.seed; routes: `routes` */
	unsigned int engine;	     /* engine whose thread polls the switch */
	unsigned int plugs;
	struct urn_config_plug *plug; /* in the order of ports, adapters, links */
	unsigned int statics;
	struct urn_config_static *fixed;
	unsigned int routes;
	struct urn_config_route *route;
	unsigned int line;
};

/* [adapter NAME]: a virtual RNIC of a node, on one or two ports, or on one or two switches */
struct urn_config_adapter {
	/*
	 * Ready for urn_dp_create() but for .port, which is NULL. name is the
	 * section's, engines is never 0.
	 */
	struct urn_adapter_config adapter;
	int port;     /* index of its port; -1: the adapter is on a switch */
	int sw, plug; /* index of the switch and of its plug; -1: the adapter is on a port */
	/*
	 * On a switch: the two ends for urn_port_open_ring_pair(), the adapter's
	 * first. On a port: all zero.
	 */
	struct urn_port_config ring[2];
	bool two; /* the adapter has a second port, on which it goes on when the first has no link
		   */
	int port2, sw2, plug2; /* port, sw and plug of the second port; valid when `two` */
	struct urn_port_config
		ring2[2];     /* the same as ring for the second port; valid when `two` */
	uint64_t failback_ns; /* struct urn_bond_choice (pmd_glue/bond.h); used when `two` */
	unsigned int node; /* index in urn_config.node */
	unsigned int line;
};

struct urn_config {
	char *file; /* the file's name that was given */
	struct urn_ini *ini; /* the text that it was made of; owner; NULL: a program made it */
	struct urn_config_daemon urnicd;
	struct urn_config_eal eal;
	struct urn_config_limits limits;
	struct urn_config_congestion congestion;
	unsigned int engines, ports, switches, adapters, nodes;
	struct urn_config_engine engine[URN_ABI_MAX_ENGINES];
	struct urn_config_port *port;
	struct urn_config_switch *sw;
	struct urn_config_adapter *adapter;
	char (*node)[URN_CONFIG_NAME]; /* each name once, in the order of the adapters */
};

/*
 * Read and check a file. errors: a list that is empty or to be added to; the caller
 * frees it. returns: the configuration, for urn_config_free(), or NULL
 * when there was any mistake, with all found mistakes in *errors
 */
struct urn_config *urn_config_read(const char *file, struct urn_config_errors *errors);
/* Read and check a text in memory. name: the text's name in sentences */
struct urn_config *urn_config_parse(const char *text, size_t len, const char *name,
				    struct urn_config_errors *errors);
/* True when users other than root and the process's own may attach. */
bool urn_config_shared(const struct urn_config *cfg);
/* Bytes of a note, with the 0 at its end; a longer one is cut. */
enum { URN_CONFIG_NOTE = 192 };
/*
 * Find limits by which one user can leave too little to the others, or that this process can't
 * keep, which are no mistakes.
 * note: gets a sentence for each, max of them at most. returns: their number
 */
unsigned int urn_config_notes(struct urn_config *cfg, char note[][URN_CONFIG_NOTE],
			      unsigned int max);
/* NULL is allowed. */
void urn_config_free(struct urn_config *cfg);

/*
 * Default path of the dataplane's socket: /run/urnic/urnicd.sock
 * for root, $XDG_RUNTIME_DIR/urnic/urnicd.sock for others. xdg: the value of
 * XDG_RUNTIME_DIR, or NULL. returns: 0, or -1 with a sentence in *err: there is no such folder or
 * the path is too long
 */
int urn_config_socket_default(bool root, const char *xdg, char path[108], struct urn_err *err);

/* Print all sections and keys with their kind, range, default and a line each, for --help-config.
 */
void urn_config_help(FILE *out);

#endif
