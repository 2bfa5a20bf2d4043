/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The XDP program of net_af_xdp: hands urnic's frames (filter_rules.h) to the socket of their
 * receive queue, and leaves all others to the kernel. Compiled by clang for the kernel's BPF
 * machine, carried inside the programs, loaded by DPDK's PMD.
 *
 * The program fails towards the kernel: no address, no socket on the queue, a dead urnic, or a
 * frame that is cut short all mean XDP_PASS.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "pmd_glue/filter_rules.h"

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, URN_FILTER_QUEUES);
	__type(key, __u32);
	__type(value, __u32);
} URN_FILTER_MAP_SOCKETS SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, URN_FILTER_ADDRESSES);
	__type(key, struct urn_filter_key);
	__type(value, __u32);
} URN_FILTER_MAP_ADDRESSES SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, URN_FILTER_COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} URN_FILTER_MAP_COUNTS SEC(".maps");

/* One entry: the VLAN of the port's adapter; 0: none. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} URN_FILTER_MAP_VLAN SEC(".maps");

static __always_inline __u32
look(const void *ctx, const struct urn_filter_key *key)
{
	const __u32 *share = bpf_map_lookup_elem(&URN_FILTER_MAP_ADDRESSES, key);

	(void)ctx;
	return share != NULL ? *share : URN_FILTER_NOTHING;
}

static __always_inline void
count(__u32 which)
{
	__u64 *n = bpf_map_lookup_elem(&URN_FILTER_MAP_COUNTS, &which);

	if (n != NULL)
		(*n)++;
}

SEC("xdp")
int
urnic_filter(struct xdp_md *ctx)
{
	const __u8 *frame = (const __u8 *)(long)ctx->data;
	const __u8 *end = (const __u8 *)(long)ctx->data_end;
	const __u32 first = 0;
	const __u32 *vlan = bpf_map_lookup_elem(&URN_FILTER_MAP_VLAN, &first);
	int action;

	if (vlan == NULL || !urn_filter_ours(frame, end, *vlan, look, NULL)) {
		count(URN_FILTER_PASSED);
		return XDP_PASS;
	}
	/* The last argument is the action where the queue has no socket. */
	action = (int)bpf_redirect_map(&URN_FILTER_MAP_SOCKETS, ctx->rx_queue_index, XDP_PASS);
	count(action == XDP_REDIRECT ? URN_FILTER_TAKEN : URN_FILTER_MISSED);
	return action;
}

char program_license[] SEC("license") = "Dual BSD/GPL";
