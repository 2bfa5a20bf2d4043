/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DCQCN, the sender's side: the rate of one channel under congestion notification packets (CNPs)
 * (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 5.1;
 * names of its parameters in brackets).
 *
 *   CNP           target := rate, rate falls by alpha/2, alpha rises
 *   no CNP        alpha falls each alpha_ns
 *   each step     rate := (rate + target) / 2; a step is due each raise_ns, and each raise_bytes
 *     up to `fast` steps of either     target stays: fast recovery
 *     more of one                      target += additive
 *     more of both                     target += hyper
 *
 * The functions are pure: they read no clock and send nothing.
 */
#ifndef URN_TRANSPORT_DCQCN_H
#define URN_TRANSPORT_DCQCN_H

#include <stdbool.h>
#include <stdint.h>

#define URN_DCQCN_ONE (1u << 16) /* alpha 1 */

/* Parameters of an adapter; the same for all its channels. Configured: 0 stands for the published
 * value. */
struct urn_dcqcn_config {
	uint64_t line;        /* bytes a second that the port carries; no rate is higher */
	uint64_t least;       /* bytes a second; no rate is lower */
	uint32_t gain_shift;  /* a CNP moves alpha 2^-gain_shift of the way to 1 [g] */
	uint32_t fast;        /* steps of fast recovery [F] */
	uint64_t alpha_ns;    /* ns without CNP after which alpha falls [K] */
	uint64_t raise_ns;    /* ns from step to step [T] */
	uint64_t raise_bytes; /* bytes sent from step to step [B] */
	uint64_t additive;    /* bytes a second [R_AI] */
	uint64_t hyper;       /* bytes a second [R_HAI] */
	uint64_t cnp_ns; /* ns from one CNP of a receiver of marks to its next, for a channel [N] */
};

/* The rate of a channel. */
struct urn_dcqcn {
	uint64_t rate;       /* bytes a second at which the channel may send [R_C] */
	uint64_t target;     /* bytes a second that steps lead to [R_T] */
	uint64_t alpha_due;  /* ns: alpha falls next */
	uint64_t raise_due;  /* ns: next step by time */
	uint64_t bytes;      /* bytes sent since the last step by bytes */
	uint32_t alpha;      /* extent of congestion, 0 .. URN_DCQCN_ONE */
	uint16_t by_time;    /* steps since the last CNP, at most fast + 1 */
	uint16_t by_bytes;   /* the same by bytes */
};

/* The published parameters, with `line`, bytes a second, as given. */
void urn_dcqcn_defaults(struct urn_dcqcn_config *c, uint64_t line);
/* Set the parameters that are 0 to the published ones, and `line`, bytes a second, in any case. */
void urn_dcqcn_complete(struct urn_dcqcn_config *c, uint64_t line);
/* A channel that sent at `rate`, bytes a second, until now (ns) gets its first CNP. */
void urn_dcqcn_begin(struct urn_dcqcn *d, const struct urn_dcqcn_config *c, uint64_t rate, uint64_t now);
/* A further CNP came. now: ns */
void urn_dcqcn_cnp(struct urn_dcqcn *d, const struct urn_dcqcn_config *c, uint64_t now);
/* The channel sent so many bytes. returns: true when that raised the rate */
bool urn_dcqcn_sent(struct urn_dcqcn *d, const struct urn_dcqcn_config *c, uint32_t bytes);
/* Take the steps that are due at `now`, ns. returns: true when the rate rose */
bool urn_dcqcn_advance(struct urn_dcqcn *d, const struct urn_dcqcn_config *c, uint64_t now);

/* True when the channel is back at the port's rate, and needs no pace. */
static inline bool
urn_dcqcn_over(const struct urn_dcqcn *d, const struct urn_dcqcn_config *c)
{
	return d->rate >= c->line;
}

#endif
