/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of all sections and keys of a configuration. Reading, checking, the
 * help and the reference in doc/reference/urnicd.md all come from this table.
 */
#include "config/config_priv.h"

#include "switch/fdb.h"
#include "transport/tp.h"
#include "wire/features.h"

#include <rte_config.h>

#define K 1024ull
#define M (K * K)
#define G (K * M)
#define US 1000ull
#define MS (1000 * US)
#define S (1000 * MS)

_Static_assert(URN_CONFIG_MAX_PORTS == RTE_MAX_ETHPORTS, "ethdev ports");

static const char *const idle_words[] = {
	[URN_IDLE_SPIN] = "spin", [URN_IDLE_PAUSE] = "pause", [URN_IDLE_SLEEP] = "sleep", NULL};
static const char *const huge_words[] = {
	[URN_CONFIG_HUGE_NEVER] = "never", [URN_CONFIG_HUGE_AUTO] = "auto", NULL};
static const char *const journal_words[] = {[URN_CONFIG_JOURNAL_AUTO] = "auto",
					    [URN_CONFIG_JOURNAL_YES] = "yes",
					    [URN_CONFIG_JOURNAL_NO] = "no",
					    NULL};
static const char *const level_words[] = {"error", "warning", "notice", "info", "debug", NULL};
static const char *const mtu_words[] = {"256", "512", "1024", "2048", "4096", NULL};
static const char *const line_words[] = {"64", "128", "256", NULL};
#define FEATURE_WORD(id, bit, word, text) " " word

/* offset and size of a field */
#define FIELD(type, field) .offset = offsetof(type, field), .size = sizeof(((type *)NULL)->field)
#define LATER .offset = URN_CONFIG_NO_FIELD

#define D(field) FIELD(struct urn_config_daemon, field)
static const struct urn_config_key urnicd_keys[] = {
	{"socket", .type = URN_CT_PATH, D(socket),
	 .preset = "($XDG_RUNTIME_DIR/urnic/urnicd.sock; of root /run/urnic/urnicd.sock)",
	 .help = "the UNIX socket that clients attach to"},
	{"mode", .type = URN_CT_MODE, D(mode), .preset = "(0600; with a group 0660)",
	 .help = "the socket's permissions, as chmod has them"},
	{"group", .type = URN_CT_TEXT, D(group), .preset = "(the process's)",
	 .help = "the group that the socket belongs to"},
	{"control", .type = URN_CT_PATH, D(control), .preset = "(socket with .ctl behind it)",
	 .help = "the UNIX socket of urnicctl; for root and the user of the process"},
	{"control_group", .type = URN_CT_TEXT, D(control_group), .preset = "(none)",
	 .help = "... and for the members of this group"},
	{"node", .type = URN_CT_NAME, D(node), .preset = "(the only one, if there is one)",
	 .help = "the node of clients that name none"},
	{"log_level", .type = URN_CT_LEVEL, D(log_level), .words = level_words, .preset = "error",
	 .help = "the lowest level of DPDK's messages that are shown"},
	{"log", .type = URN_CT_LOG, D(log), .preset = "info",
	 .help = "levels of the log of events: of all areas, or of some: info, qp:error, "
		 "client:off"},
	{"log_file", .type = URN_CT_PATH, D(log_file), .preset = "(the standard error)",
	 .help = "the file that the log is appended to; SIGHUP opens it again"},
	{"log_journal", .type = URN_CT_WORD, D(log_journal), .words = journal_words,
	 .preset = "auto",
	 .help = "lines begin with their priority, <N>; auto: on a journal's standard error"},
	{"idle", .type = URN_CT_WORD, D(idle.idle), .words = idle_words, .preset = "sleep",
	 .help = "an idle engine polls on, pauses and yields the CPU, "
		 "or sleeps"},
	{"empty_polls", .type = URN_CT_COUNT, D(idle.empty_polls), .min = 1, .max = G,
	 .preset = "1024", .help = "... after so many polls that found nothing"},
	{"sleep", .type = URN_CT_TIME, D(idle.sleep_us), .min = US, .max = MS, .unit = US,
	 .preset = "100us",
	 .help = "... for so long at a time, up to 1ms when nothing comes for long"},
	{"telemetry", .type = URN_CT_BOOL, D(telemetry), .preset = "yes",
	 .help = "answer DPDK's telemetry clients"},
	{"prometheus", .type = URN_CT_LISTEN, D(prometheus_host), .preset = "(nowhere)",
	 .help = "where to give counters to Prometheus: 127.0.0.1:9464, [::1]:9464"},
	{"capture_dir", .type = URN_CT_PATH, D(capture_dir), .preset = "(the current folder)",
	 .help = "the folder that captures are written to"},
	{"pid_file", .type = URN_CT_PATH, D(pid_file), .preset = "(none)",
	 .help = "a file to write the process id to"},
};

#define E(field) FIELD(struct urn_config_eal, field)
static const struct urn_config_key eal_keys[] = {
	{"memory", .type = URN_CT_SIZE, E(memory), .min = 64 * M, .max = 1024 * G,
	 .preset = "(the ports' need)", .help = "memory of DPDK, fixed at the start"},
	{"huge_pages", .type = URN_CT_WORD, E(huge_pages), .words = huge_words, .preset = "never",
	 .help = "auto: take them where enough are free"},
	{"cores", .type = URN_CT_CORES, E(cores), .preset = "(all that the process may use)",
	 .help = "the CPUs that threads may run on: 0-3,8"},
	{"file_prefix", .type = URN_CT_NAME, E(file_prefix), .preset = "(none)",
	 .help = "keep DPDK's runtime files where its tools look, under this name; else in a "
		 "folder "
		 "of its own"},
	{"extra", .type = URN_CT_EAL, E(extra), .preset = "(none)",
	 .help = "further EAL arguments, with spaces between"},
};

#define L(field) FIELD(struct urn_config_limits, field)
#define LIMIT(key, field, dflt, text)                                                           \
	{                                                                                       \
		key, .type = URN_CT_LIMIT, L(field), .min = 1, .preset = (dflt), .help = (text) \
	}
static const struct urn_config_key limits_keys[] = {
	LIMIT("clients", clients, "4k", "clients at a time"),
	LIMIT("clients_per_uid", clients_per_uid, "2k", "... of one user"),
	LIMIT("qp_per_client", per_client.qp, "16k", "queue pairs of one client"),
	LIMIT("qp_per_uid", per_uid.qp, "64k", "... of all clients of one user"),
	LIMIT("cq_per_client", per_client.cq, "16k", "completion queues of one client"),
	LIMIT("cq_per_uid", per_uid.cq, "64k", "... of all clients of one user"),
	LIMIT("srq_per_client", per_client.srq, "4k", "shared receive queues of one client"),
	LIMIT("srq_per_uid", per_uid.srq, "16k", "... of all clients of one user"),
	LIMIT("pd_per_client", per_client.pd, "256", "protection domains of one client"),
	LIMIT("pd_per_uid", per_uid.pd, "2k", "... of all clients of one user"),
	LIMIT("ah_per_client", per_client.ah, "8k", "address handles of one client"),
	LIMIT("ah_per_uid", per_uid.ah, "32k", "... of all clients of one user"),
	LIMIT("mr_per_client", per_client.mr, "32k", "memory regions and windows of one client"),
	LIMIT("mr_per_uid", per_uid.mr, "256k", "... of all clients of one user"),
	LIMIT("cm_per_client", per_client.cm, "16k",
	      "connection ids of one client, listeners among them"),
	LIMIT("cm_per_uid", per_uid.cm, "64k", "... of all clients of one user"),
	LIMIT("pinned_per_client", per_client.pinned, "16G",
	      "bytes in the memory regions of one client"),
	LIMIT("pinned_per_uid", per_uid.pinned, "64G", "... of all clients of one user"),
	LIMIT("channels_per_client", per_client.channel, "4k", "completion channels of one client"),
	LIMIT("channels_per_uid", per_uid.channel, "16k", "... of all clients of one user"),
	LIMIT("shares_per_client", per_client.share, "4k",
	      "pieces of memory that one client shares, registered or not"),
	LIMIT("shares_per_uid", per_uid.share, "16k", "... of all clients of one user"),
	LIMIT("shared_per_client", per_client.shared, "64G",
	      "bytes in the memory that one client shares"),
	LIMIT("shared_per_uid", per_uid.shared, "256G", "... of all clients of one user"),
	LIMIT("area_per_client", per_client.area, "unlimited",
	      "bytes of the area for the queues of one client, which is area_size of its adapter"),
	LIMIT("area_per_uid", per_uid.area, "2048G", "... of all clients of one user"),
	LIMIT("queues_per_client", per_client.queue, "unlimited",
	      "bytes of its area that queues of one client have, or had, while it is attached"),
	LIMIT("queues_per_uid", per_uid.queue, "(a quarter of the machine's memory)",
	      "... of all clients of one user; when not given at most half of queues"),
	LIMIT("queues", queue, "(half of the machine's memory)",
	      "... of all clients together; when not given and the adapters are one user's, at "
	      "least queues_per_uid"),
	LIMIT("msg_sets_per_client", per_client.msg, "16k",
	      "register sets of messages of one client"),
	LIMIT("msg_sets_per_uid", per_uid.msg, "32k", "... of all clients of one user"),
};

#define C(field) FIELD(struct urn_config_congestion, field)
#define Q(field) C(dcqcn.field)
static const struct urn_config_key congestion_keys[] = {
	{"cnp_interval", .type = URN_CT_TIME, Q(cnp_ns), .min = US, .max = 10 * MS, .unit = 1,
	 .preset = "50us",
	 .help = "a queue pair tells its peer of marks at most once in this time (N)"},
	{"gain_shift", .type = URN_CT_COUNT, Q(gain_shift), .min = 1, .max = 16, .preset = "8",
	 .help = "a notification moves alpha 1/2^gain_shift of the way to 1 (g = 1/256)"},
	{"alpha_time", .type = URN_CT_TIME, Q(alpha_ns), .min = US, .max = S, .unit = 1,
	 .preset = "55us", .help = "alpha falls after so long without a notification (K)"},
	{"raise_time", .type = URN_CT_TIME, Q(raise_ns), .min = US, .max = S, .unit = 1,
	 .preset = "55us", .help = "the rate rises a step each time this passes (T)"},
	{"raise_bytes", .type = URN_CT_SIZE, Q(raise_bytes), .min = 4 * K, .max = G,
	 .preset = "10M", .help = "... and each time so many bytes were sent (B)"},
	{"fast_steps", .type = URN_CT_COUNT, Q(fast), .min = 1, .max = 1000, .preset = "5",
	 .help = "steps that halve the way back to the rate before (F)"},
	{"additive", .type = URN_CT_RATE, Q(additive), .min = 1000000, .max = 100000000000,
	 .preset = "40M", .help = "a further step adds this to the rate (R_AI)"},
	{"hyper", .type = URN_CT_RATE, Q(hyper), .min = 1000000, .max = 100000000000,
	 .preset = "400M",
	 .help = "... or this, when time and bytes have both made such steps (R_HAI)"},
	{"least_rate", .type = URN_CT_RATE, Q(least), .min = 1000000, .max = 100000000000,
	 .preset = "10M", .help = "no notification makes a queue pair slower than this"},
	{"delay_limit", .type = URN_CT_TIME, C(delay_limit_ns), .min = US, .max = S, .unit = 1,
	 .preset = "(any time)",
	 .help = "send less while a round trip takes longer; give more than the longest one has "
		 "without queues. For switches that mark nothing"},
};

#define N(field) FIELD(struct urn_config_engine, field)
static const struct urn_config_key engine_keys[] = {
	{"lcore", .type = URN_CT_COUNT, N(lcore), .max = RTE_MAX_LCORE - 1,
	 .preset = "(any of [eal] cores)", .help = "the CPU that its thread runs on, alone"},
	{"idle", .type = URN_CT_WORD, N(engine.idle), .words = idle_words,
	 .preset = "(the value in [urnicd])",
	 .help = "spin, pause or sleep when there is nothing to do"},
	{"empty_polls", .type = URN_CT_COUNT, N(engine.empty_polls), .min = 1, .max = G,
	 .preset = "(the value in [urnicd])", .help = "... after so many polls that found nothing"},
	{"sleep", .type = URN_CT_TIME, N(engine.sleep_us), .min = US, .max = MS, .unit = US,
	 .preset = "(the value in [urnicd])",
	 .help = "... for so long at a time, up to 1ms when nothing comes for long"},
};

#define P(field) FIELD(struct urn_config_port, port.field)
static const struct urn_config_key port_keys[] = {
	{"device", .type = URN_CT_DEVICE, P(device), .preset = "(to be given)",
	 .help = "a DPDK device with its arguments, or a PCI address (ports.md)"},
	{"path_mtu", .type = URN_CT_NUMBER, P(roce_mtu), .words = mtu_words,
	 .preset = "(the most that it carries)",
	 .help = "the largest path MTU, bytes; below what the port carries, packets of "
		 "flows keep to it, too. The same on all nodes that send each other messages"},
	{"queues", .type = URN_CT_COUNT, P(queues), .min = 1, .max = 64,
	 .preset = "(one for each engine of its adapter)",
	 .help = "receive and transmit queues, so many each"},
	{"rx_desc", .type = URN_CT_COUNT, P(rx_desc), .min = 32, .max = 32 * K,
	 .preset = "(the driver's)", .help = "receive descriptors of each queue"},
	{"tx_desc", .type = URN_CT_COUNT, P(tx_desc), .min = 32, .max = 32 * K,
	 .preset = "(the driver's)", .help = "transmit descriptors of each queue"},
	{"mbufs", .type = URN_CT_COUNT, P(mbufs), .min = 1 * K, .max = 4 * M,
	 .preset = "(the queues' need)", .help = "packets in its pool"},
	{"mac", .type = URN_CT_MAC, P(mac), .preset = "(the device's, or random)",
	 .help = "its MAC address: 02:00:00:00:00:01"},
	{"steer", .type = URN_CT_BOOL, P(steer), .preset = "no",
	 .help = "take only RoCEv2, ARP and neighbour discovery, where the NIC can; the rest stays "
		 "with the kernel"},
	{"filter", .type = URN_CT_BOOL, FIELD(struct urn_config_port, no_filter), .invert = true,
	 .preset = "yes",
	 .help = "net_af_xdp and net_af_packet for an adapter: take only frames for its addresses; "
		 "the rest stays with the kernel. no: take every frame"},
	{"pfc", .type = URN_CT_BOOL, FIELD(struct urn_config_port, no_pfc), .invert = true,
	 .preset = "(the value of its switch)",
	 .help = "on a lossless switch: send and obey frames of priority-based flow control (IEEE "
		 "802.1Qbb); no: neither, for a wire that carries none"},
};

#define W(field) FIELD(struct urn_config_switch, field)
static const struct urn_config_key switch_keys[] = {
	{"ports", .type = URN_CT_NAMES, LATER, .preset = "(none)",
	 .help = "the ports that are plugged in, by name; adapters plug themselves in"},
	{"links", .type = URN_CT_NAMES, LATER, .preset = "(none)",
	 .help = "other switches that a wire leads to, by name; one of the two need say so"},
	{"learning", .type = URN_CT_BOOL, W(sw.no_learning), .invert = true, .preset = "yes",
	 .help = "learn which addresses are behind which port; else frames to addresses that "
		 "are not static are flooded"},
	{"age", .type = URN_CT_TIME, W(sw.fdb.age_ns), .min = MS, .max = 366 * 86400 * S, .unit = 1,
	 .preset = "300s", .help = "forget an address that was not seen for so long"},
	{"addresses", .type = URN_CT_COUNT, W(sw.fdb.max), .min = 1, .max = URN_FDB_MAX,
	 .preset = "4k", .help = "room in its table of addresses"},
	{"kmin", .type = URN_CT_SIZE, W(sw.mark.kmin), .max = URN_MARK_MAX_BYTES, .preset = "5000",
	 .help = "bytes that wait for a port up to which no frame gets a congestion mark"},
	{"kmax", .type = URN_CT_SIZE, W(sw.mark.kmax), .max = URN_MARK_MAX_BYTES, .preset = "0",
	 .help = "... and above which each frame gets one; 0: no frame ever does (DCQCN has "
		 "200000)"},
	{"pmax", .type = URN_CT_PERCENT, W(sw.mark.pmax), .preset = "1%",
	 .help = "share of frames that get one just below kmax; fewer, the fewer bytes wait"},
	{"lossless", .type = URN_CT_SET, W(sw.lossless.priorities), .max = URN_SWQ_PRIORITIES - 1,
	 .preset = "(none)",
	 .help = "priorities of which no frame is dropped; their senders stop instead"},
	{"dscp", .arg = "PRIORITY", .type = URN_CT_SET, LATER, .max = URN_DSCPS - 1,
	 .preset = "(eight each: 0 to 7 are priority 0)",
	 .help = "with lossless: DSCPs of IP frames that have a priority"},
	{"pcp", .arg = "PRIORITY", .type = URN_CT_SET, LATER, .max = URN_PCPS - 1,
	 .preset = "(its own number)",
	 .help = "with lossless: code points of VLAN tags that have a priority"},
	{"share", .type = URN_CT_SIZE, W(sw.lossless.share), .min = 16 * K, .max = G,
	 .preset = "64k",
	 .help = "bytes of an input that may wait for each output before they count"},
	{"xoff", .type = URN_CT_SIZE, W(sw.lossless.xoff), .min = 16 * K, .max = G,
	 .preset = "256k", .help = "bytes above shares at which an input's sender is to stop"},
	{"xon", .type = URN_CT_SIZE, W(sw.lossless.xon), .max = G, .preset = "192k",
	 .help = "bytes at which it goes on"},
	{"headroom", .type = URN_CT_SIZE, W(sw.lossless.headroom), .max = G, .preset = "256k",
	 .help = "bytes above xoff that are still on their way when the sender stops"},
	{"queue", .type = URN_CT_SIZE, W(sw.lossless.queue), .min = 16 * K, .max = G,
	 .preset = "(4096 frames)",
	 .help = "bytes that wait at an output in a priority that is not lossless"},
	{"watchdog", .type = URN_CT_TIME, W(sw.lossless.watchdog_ns), .min = MS, .max = 60 * S,
	 .unit = 1, .preset = "200ms",
	 .help = "frames of a lossless priority that stands still for so long are dropped"},
	{"restore", .type = URN_CT_TIME, W(sw.lossless.restore_ns), .min = MS, .max = 60 * S,
	 .unit = 1, .preset = "200ms",
	 .help = "... which then ignores pauses until none has come for so long"},
	{"pfc", .type = URN_CT_BOOL, W(sw.lossless.no_pfc), .invert = true, .preset = "yes",
	 .help = "stop senders by frames of priority-based flow control (IEEE 802.1Qbb)"},
	{"route", .arg = "WHO", .type = URN_CT_IPS, LATER, .preset = "(none)",
	 .help = "IP addresses behind a port, adapter or switch, for frames to unknown MAC "
		 "addresses"},
	{"engine", .type = URN_CT_COUNT, W(engine), .max = URN_ABI_MAX_ENGINES - 1,
	 .preset = "(the engine of linked switches, or 0)",
	 .help = "the engine whose thread runs it"},
	{"static", .arg = "WHO", .type = URN_CT_MACS, LATER, .preset = "(none)",
	 .help = "MAC addresses that are behind a port, adapter or switch for good"},
	{"impair", .arg = "WHO[.in|.out]", .type = URN_CT_IMPAIR, LATER, .preset = "(nothing)",
	 .help = "faults for frames from a port, adapter or switch (in), to it (out), or "
		 "both: drop=1%, delay=200us"},
};

#define A(field) FIELD(struct urn_config_adapter, adapter.field)
#define R(field) FIELD(struct urn_config_adapter, ring[0].field)
static const struct urn_config_key adapter_keys[] = {
	{"node", .type = URN_CT_NAME, A(node), .preset = "host",
	 .help = "the node that it belongs to; clients choose a node, and see its adapters"},
	{"port", .type = URN_CT_NAMES, LATER, .preset = "(this or switch)",
	 .help = "the port that it has, by name; or two: it goes on over the other one when the "
		 "one in use has no link"},
	{"switch", .type = URN_CT_NAMES, LATER, .preset = "(this or port)",
	 .help = "the switch that it is plugged into, by name, in this process; or two, by a port "
		 "to each"},
	{"failback", .type = URN_CT_TIME, FIELD(struct urn_config_adapter, failback_ns), .min = 0,
	 .max = 3600 * S, .unit = 1, .preset = "5s",
	 .help = "with two ports: the first is used again after it has had a link for so long; "
		 "0: only when the second has none"},
	{"engines", .type = URN_CT_ENGINES, A(engines), .preset = "all",
	 .help = "the engines that serve it: 0,1"},
	{"ipv4", .type = URN_CT_IPV4, A(ipv4), .preset = "(none)",
	 .help = "its IPv4 address, and the length of the prefix that is on the link; without a "
		 "length every IPv4 address is"},
	{"ipv6", .type = URN_CT_IPV6, A(ipv6), .preset = "(none but the link-local one)",
	 .help = "its IPv6 address, and the length of the prefix that is on the link; without a "
		 "length every IPv6 address is"},
	{"gateway", .type = URN_CT_IPS, LATER, .preset = "(none)",
	 .help = "routers on the link for all destinations that no prefix or route has: one of "
		 "IPv4, one of IPv6, or both"},
	{"route", .arg = "PREFIX", .type = URN_CT_ROUTER, LATER, .preset = "(none)",
	 .help = "the router on the link for the destinations of a prefix: 10.1.0.0/16; the "
		 "longest prefix wins"},
	{"accept_ra", .type = URN_CT_BOOL, A(accept_ra), .preset = "no",
	 .help = "look for routers of IPv6, and take them and prefixes on the link from their "
		 "advertisements; a gateway here goes first"},
	{"neighbour", .arg = "ADDRESS", .type = URN_CT_MAC, LATER, .preset = "(asked for)",
	 .help = "the MAC address of a peer, or of the router before it; the network is not asked"},
	{"vlan", .type = URN_CT_COUNT, A(vlan), .min = 1, .max = 4094, .preset = "(none)",
	 .help = "the VLAN that it is in (IEEE 802.1Q): frames are sent with its tag, and others "
		 "than its are dropped"},
	{"priority", .type = URN_CT_COUNT, A(priority), .max = 7, .preset = "0",
	 .help = "the priority in the tags of its frames; without vlan, tags have this alone"},
	{"max_qp", .type = URN_CT_COUNT, A(max_qp), .min = 1,
	 .max = (1u << URN_TP_ENGINE_SHIFT) - 2, .preset = "64k",
	 .help = "queue pairs of all clients together"},
	{"max_mr", .type = URN_CT_COUNT, A(max_mr), .min = 1, .max = 0xfffffe, .preset = "64k",
	 .help = "memory regions and windows of all clients together"},
	{"window", .type = URN_CT_COUNT, A(window), .min = 1, .max = M, .preset = "256",
	 .help = "packets of a queue pair that are on their way at a time"},
	{"rto_floor", .type = URN_CT_TIME, A(rto_floor_us), .min = US, .max = S, .unit = US,
	 .preset = "4ms", .help = "the least time to a repeat, whatever the round trip"},
	{"congestion_control", .type = URN_CT_BOOL, A(no_congestion_control), .invert = true,
	 .preset = "yes", .help = "let switches mark packets, and slow down as DCQCN has it"},
	{"pfc", .type = URN_CT_BOOL, A(obey.on), .preset = "(on a lossless switch)",
	 .help = "obey priority-based flow control (IEEE 802.1Qbb) of the port's peer"},
	{"area_size", .type = URN_CT_SIZE, A(area_size), .min = M, .max = 1024 * G, .preset = "1G",
	 .help = "address space for the queues of one client"},
	{"work_in_flight", .type = URN_CT_COUNT, A(work_in_flight), .min = 64, .max = 16 * M,
	 .preset = "64k", .help = "work requests under way in one engine"},
	{"features_off", .type = URN_CT_FEATURES, A(features_off), .features = &urn_link_features,
	 .preset = "(none)",
	 .help = "features that other urnic adapters are not offered:" URN_LINK_FEATURES(
		 FEATURE_WORD)},
	{"link", .type = URN_CT_BOOL, A(no_learn), .invert = true, .preset = "yes",
	 .help = "look whether a peer is urnic, and answer when asked; no: plain RoCEv2"},
	{"cache_line", .type = URN_CT_NUMBER, A(cache_line), .words = line_words,
	 .preset = "(this machine's)",
	 .help = "bytes of the cache lines that other urnic adapters are told of, for their "
		 "aligned writes"},
	{"count_stores", .type = URN_CT_BOOL, A(count_stores), .preset = "no",
	 .help = "count the cache lines that packets store to whole and in part, by region"},
	{"am_unregistered", .type = URN_CT_BOOL, A(am_unregistered), .preset = "no",
	 .help = "endpoints may offer memory that peers reach without an access key"},
	{"am_pipelined_from", .type = URN_CT_SIZE, A(am_pipelined_from), .min = 1, .max = 2 * G,
	 .preset = "(more than one packet)",
	 .help = "bytes from which remote memory is written and read packet by packet"},
	{"am_tagged_from", .type = URN_CT_SIZE, A(am_tagged_from), .min = 1, .max = 2 * G,
	 .preset = "256k",
	 .help = "bytes from which remote memory is written and read under a "
		 "tag, where one packet does not hold all"},
	{"icrc", .type = URN_CT_BOOL, A(no_icrc), .invert = true, .preset = "yes",
	 .help = "send and check ICRCs; no is for measurements, at both ends"},
	{"path_mtu", .type = URN_CT_NUMBER, R(roce_mtu), .words = mtu_words, .preset = "4096",
	 .help = "on a switch: the largest path MTU, bytes"},
	{"mbufs", .type = URN_CT_COUNT, R(mbufs), .min = 1 * K, .max = 4 * M,
	 .preset = "(the queues' need)", .help = "on a switch: packets in its pool"},
	{"mac", .type = URN_CT_MAC, R(mac), .preset = "(random)",
	 .help = "on a switch: its MAC address"},
};

#define KEYS(table) .key = (table), .keys = RTE_DIM(table)
const struct urn_config_kind urn_config_kinds[URN_CONFIG_KINDS] = {
	[URN_CK_URNICD] = {"urnicd", NULL, 1, sizeof(struct urn_config_daemon), KEYS(urnicd_keys),
			   .help = "The process: its socket, its log, its views."},
	[URN_CK_EAL] = {"eal", NULL, 1, sizeof(struct urn_config_eal), KEYS(eal_keys),
			.help = "DPDK's environment."},
	[URN_CK_LIMITS] = {"limits", NULL, 1, sizeof(struct urn_config_limits), KEYS(limits_keys),
			   .help = "Limits of clients. \"unlimited\" is one of the values."},
	[URN_CK_CONGESTION] = {"congestion", NULL, 1, sizeof(struct urn_config_congestion),
			       KEYS(congestion_keys),
			       .help = "Congestion control of all adapters: DCQCN, whose names of "
				       "parameters stand in parentheses."},
	[URN_CK_ENGINE] = {"engine", "N", URN_ABI_MAX_ENGINES, sizeof(struct urn_config_engine),
			   KEYS(engine_keys),
			   .help = "A thread that polls, numbered from 0 on without a gap. Without "
				   "any such section there is one."},
	[URN_CK_PORT] = {"port", "NAME", URN_CONFIG_MAX_PORTS, sizeof(struct urn_config_port),
			 KEYS(port_keys),
			 .help = "A network port. One adapter has it, or one switch."},
	[URN_CK_SWITCH] = {"switch", "NAME", URN_CONFIG_MAX_SWITCHES,
			   sizeof(struct urn_config_switch), KEYS(switch_keys),
			   .help = "An Ethernet switch inside the process, for ports and "
				   "adapters."},
	[URN_CK_ADAPTER] = {"adapter", "NAME", URN_CONFIG_MAX_PORTS,
			    sizeof(struct urn_config_adapter), KEYS(adapter_keys),
			    .help = "An RDMA NIC, as programs see it: on a port, or on a "
				    "switch; or on two, of which it uses one at a time."},
};
