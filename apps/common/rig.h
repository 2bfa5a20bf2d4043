/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything that a struct urn_config names, brought up in this process: the EAL, ports,
 * switches, the dataplane. The configuration comes from a file (urnicd) or is made by the program.
 *
 * Beside what urn_config_read() makes, a program's own configuration may have no adapter: the
 * rig then has no dataplane; and ports without a device: two in a row, joined by rings.
 */
#ifndef URN_APPS_COMMON_RIG_H
#define URN_APPS_COMMON_RIG_H

#include "config/config.h"
#include "pmd_glue/capture.h"
#include "switch/fabric.h"

struct urn_rig_opts {
	const char *program; /* argv[0] of the EAL; owner: the caller */
	uint64_t mbufs;	     /* packets that the program needs beside those of ports and switches */
	uint32_t copies;     /* packets in the switches' pool of copies; 0: 4096 */
	bool tap_stays_up;   /* a switch ignores the link of a net_tap, whose interface may move to
				another namespace */
};

struct urn_rig {
	const struct urn_config *cfg; /* owner: the caller, until urn_rig_close() */
	struct urn_rig_opts opts;     /* given to urn_rig_start(), defaults filled in */
	struct urn_port **port;	      /* by number in cfg->port; owner: this struct */
	/* By number in cfg->adapter: the adapter's end, the switch's; behind them likewise those of
	 * second ports. Owner: this struct */
	struct urn_port *(*ring)[2];
	/* By number in cfg->adapter: its two ports as one (pmd_glue/bond.h); NULL: it has one.
	 * Owner: this struct */
	struct urn_port **bond;
	struct rte_mempool *copies; /* pool of the switches; NULL: there are none */
	struct urn_fabric
		*fabric[URN_ABI_MAX_ENGINES]; /* by engine; NULL: the engine polls no switch */
	struct urn_switch **sw;		      /* by number in cfg->sw; owner: the switch's fabric */
	struct urn_capture *capture;	      /* opened by urn_rig_capture(); or NULL */
	struct urn_dp *dp;		      /* NULL: there are no adapters */
	bool eal_up;			      /* urn_rig_start() succeeded */
};

/*
 * Start the EAL for a configuration: its ports' number, pools and PCI addresses must be known.
 * returns: 0, or -1 with *err. urn_rig_close() in either case, here and below
 */
int urn_rig_start(struct urn_rig *rig, const struct urn_config *cfg,
		  const struct urn_rig_opts *opts, struct urn_err *err);
/* Open ports and switches; devices may have been named since urn_rig_start(). returns: 0, or -1
 * with *err */
int urn_rig_ports(struct urn_rig *rig, struct urn_err *err);
/* Write what crosses the ports, but for those on a switch, to a pcapng file. path "-": to the
 * standard output; then what else is printed goes to the standard error. A slow reader of a pipe is
 * waited for when the rig is closed, until it leaves, or urn_stop_flag(). returns: 0, or -1 with
 * *err
 */
int urn_rig_capture(struct urn_rig *rig, const char *path, struct urn_err *err);
/* Make the dataplane of the configuration's engines and adapters. returns: 0, or -1 with *err */
int urn_rig_dataplane(struct urn_rig *rig, struct urn_err *err);
/*
 * Take the dataplane down, as urn_dp_destroy() does; ports, switches and capture stay. Adapters and
 * engines may then be configured anew, and urn_rig_dataplane() called again. No dataplane is
 * allowed.
 */
void urn_rig_dataplane_down(struct urn_rig *rig);
/* Ask all ports for their links, while no engine and no switch is polled. returns: true when all
 * links are up */
bool urn_rig_links_up(struct urn_rig *rig);
/*
 * Take all but the EAL down; no engine and no switch is polled any more. lost: frames that the
 * capture misses; NULL is allowed. returns: 0, or -1 with *err: the capture is not whole
 */
int urn_rig_down(struct urn_rig *rig, uint64_t *lost, struct urn_err *err);
/* urn_rig_down(), and stop the EAL. */
int urn_rig_close(struct urn_rig *rig, uint64_t *lost, struct urn_err *err);
/* Close devices and stop the EAL, but free nothing; the process must end after this. */
void urn_rig_abandon(struct urn_rig *rig);

#endif
