/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole dataplane: engines, ports, and adapters (virtual RNICs) of nodes.
 * A program that embeds urnic brings one up, and so does urnicd.
 */
#ifndef URN_CONTROL_DATAPLANE_H
#define URN_CONTROL_DATAPLANE_H

#include "abi/control.h"
#include "counters.h"
#include "engine/obey.h"
#include "engine/run.h"
#include "pmd_glue/port.h"
#include "transport/dcqcn.h"

#include <stdbool.h>
#include <stdint.h>

struct urn_dp;
struct urn_log;

/* One adapter: a virtual RNIC of a node, bound to one port. */
struct urn_adapter_config {
	char node[32];          /* the node that the adapter belongs to */
	char name[32];          /* device name, "urnic0"; empty: made from its index */
	struct urn_port *port;  /* owner: the caller; outlives the dataplane */
	uint32_t engines;       /* bit i: engine i serves the adapter */
	uint8_t ipv4[4];        /* all zero: none */
	uint8_t ipv6[16];       /* all zero: none but the link-local made from the MAC */
	/* Bits of the prefix of ipv4, ipv6 that is on the link; 0: every destination of the family
	 * is */
	uint8_t ipv4_bits, ipv6_bits;
	struct urn_neigh_route *route; /* routes to elsewhere (net/neigh.h); owner: the caller; read
					* by urn_dp_create() only */
	unsigned int routes;	       /* elements of route, at most URN_NEIGH_ROUTES - 2 */
	struct urn_neigh_fixed *neighbour; /* peers whose MAC addresses are fixed; owner: the caller; read by
					    * urn_dp_create() only */
	unsigned int neighbours; /* elements of neighbour, at most URN_NEIGH_STATIC */
	bool accept_ra;		 /* take routers and prefixes from router advertisements of IPv6 */
	uint16_t vlan;		 /* number of the VLAN that the adapter is in, 1 to 4094; 0: none */
	uint8_t priority; /* in the tags of its frames, 0 to 7; without a VLAN the tags have this
			     alone */
	uint32_t features_off;  /* URN_LINK_F_ bits (wire/link.h) not offered to peers; 0: all are */
	bool am_unregistered; /* endpoints may declare memory that peers reach without a key (AM-9)
			       */
	/* Bytes from which operations on remote memory are pipelined (0: from those on that one
	 * packet does not hold), and go under a tag (0: 256 KiB), unless their program says how
	 * (AM-8). */
	uint64_t am_pipelined_from, am_tagged_from;
	uint32_t cache_line;	/* bytes of the lines that peers are told of: 64, 128 or 256 (AW-1);
				 * 0: those of this machine */
	bool count_stores;	/* count the stores of packets into regions (urnic/align.h) */
	bool no_learn;		/* neither send nor answer link requests: a plain RoCEv2 adapter */
	bool no_cm;             /* no connection management: programs exchange queue pairs by hand */
	bool no_icrc;           /* neither send nor check the ICRC; both sides, benchmarks only */
	uint32_t max_qp;        /* 0: 65536 */
	uint32_t max_cm;        /* connection ids; 0: 32768 */
	uint32_t max_mr;        /* regions and windows; 0: 65536 */
	uint64_t area_size;     /* bytes of each client's area (queues); 0: 1 GiB of address space */
	uint32_t window;        /* packets in flight a QP; 0: 256 */
	bool no_congestion_control; /* send as fast as the window allows; send no CNP, and obey none */
	struct urn_dcqcn_config dcqcn; /* parameters of congestion control; 0: the published ones;
					  line is not used */
	uint64_t delay_limit_ns;       /* ns that a round trip may take before fewer packets are in
					  flight; 0: any time */
	struct urn_obey_config obey; /* flow control of the port's peer */
	uint32_t rto_floor_us;  /* least timeout by the measured round trip, microseconds; 0: 4000 */
	uint32_t work_in_flight; /* requests in flight an engine; 0: 65536 */
	uint64_t seed; /* not 0 in tests: random numbers are a sequence, after rte_srand() */
	/* Test knobs of the memory executor (memory/mem.h); 0: off. */
	uint64_t mem_delay_seed;
	uint32_t mem_delay_percent, mem_delay_polls, mem_fail_per_million;
	bool mem_foreign;       /* treat clients' memory as foreign memory */
};

struct urn_dp_config {
	unsigned int engines;   /* 1..URN_ABI_MAX_ENGINES */
	struct urn_engine_config engine[URN_ABI_MAX_ENGINES];
	unsigned int adapters;
	const struct urn_adapter_config *adapter;
};

/* Make a dataplane over ports that are up. NULL with *err on failure. */
struct urn_dp *urn_dp_create(const struct urn_dp_config *cfg, struct urn_err *err);
/*
 * Take the dataplane down. Engines must not be polled any more, and no control call be in
 * progress. Clients go first, then adapters, then engines. A channel that is still open loses all objects that were made over it: its calls
 * fail with ENODEV, posted requests go nowhere, and the channel must still be closed.
 */
void urn_dp_destroy(struct urn_dp *dp);
/*
 * For a process that ends while control calls are stalled (urn_server_close()): no control
 * call goes on from now on, for good. The engines are still polled. NULL is allowed.
 */
void urn_dp_freeze(struct urn_dp *dp);

/*
 * Let an adapter whose only engine is `engine` send frames without ICRC to `across`, the other end
 * of its port's pair of rings, and take such from there, where that engine's thread handles them,
 * too (urn_fabric_unseal()). Before engines are polled. returns: false: other engines serve the
 * adapter, or it has no ICRC
 */
bool urn_dp_unseal(struct urn_dp *dp, unsigned int adapter, unsigned int engine,
		   struct urn_port *across);

/*
 * Let events of programs go to a log, which outlives the dataplane. Call before the first program
 * attaches. log: NULL: to none
 */
void urn_dp_set_log(struct urn_dp *dp, struct urn_log *log);

struct urn_engine *urn_dp_engine(struct urn_dp *dp, unsigned int index);

/*
 * Attach to adapter number `adapter`, embedded: same process, any thread. The channel
 * goes to lib/attach, which closes it. NULL with *err on failure.
 */
struct urn_abi_channel *urn_dp_attach(struct urn_dp *dp, unsigned int adapter, struct urn_err *err);

/* Sum of an adapter's counters over its engines. */
void urn_dp_counters(struct urn_dp *dp, unsigned int adapter, struct urn_counters *out);
/* Bytes that the dataplane keeps for one idle RC QP, without its queues. */
uint64_t urn_dp_qp_bytes(struct urn_dp *dp, unsigned int adapter, unsigned int max_dest_rd_atomic);

#endif
