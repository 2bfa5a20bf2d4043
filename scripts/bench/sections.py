# SPDX-License-Identifier: BSD-3-Clause
"""The measurements. A section has points (sizes, numbers of QPs, ...); at each point its series
are measured one after the other, so that series to compare are measured in the same seconds.

A series measures a point and returns [(x, metric, value), ...]; x is the point itself, or where
in the plot the value stands (a percentile, a stage)."""
from collections import namedtuple

import am
import congestion
import dropin
import msg
import peers
import session
import speed
import switched
import urnicd

# once: measured at the first point only, and holds for all. first: in the first round only
Series = namedtuple("Series", "name measure once first", defaults=[False, False])
# kind: lines, or bars (stacked, a bar for each point and series)
Plot = namedtuple("Plot", "metric title xlabel ylabel logx logy kind scale",
                  defaults=[True, True, "lines", 1])
# rows: of a table of figures with marks (speed.Row), or nothing
Section = namedtuple("Section", "name title points series plots note rows", defaults=[()])

METRICS = ("gbps", "msg_rate", "us")
RANKS = (25, 50, 75, 90, 99, 99.9, 99.99)
RANKS_QUICK = (50, 99, 99.9)
LOSS = (0, 0.01, 0.1, 1, 5)


def at(point, found, *metrics):
    """The metrics that were found, at the point itself."""
    return [(point, m, found[m]) for m in metrics if m in found]


def size(urnic, runner, t, quick):
    def perf(op, *args):
        return lambda p: at(p, urnic.rate(op, t, "--size", str(p), *args), "gbps", "msg_rate")

    def ucx(env):
        return lambda p: at(p, peers.ucx(runner, env, "tag_bw", p, t), "gbps", "msg_rate")

    def pingpong(provider, kind):
        return lambda p: at(p, peers.fi_pingpong(runner, provider, kind, p, t), "gbps", "msg_rate")

    def sockperf(p):
        if p > 65000:
            return []
        return at(p, peers.sockperf(runner, "throughput", p, t), "gbps", "msg_rate")

    return Section(
        "size", "Bandwidth and message rate by size",
        (64, 4096, 65536) if quick else (8, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576),
        [
            Series("urnic WRITE", perf("write_bw")),
            Series("urnic READ", perf("read_bw")),
            Series("urnic SEND, 16 QPs", perf("send_bw", "--qps", "16")),
            Series("limit: no protocol", perf("limit")),
            Series("memcpy, one core", perf("memcpy")),
            Series("ucx tag_bw, posix", ucx(peers.POSIX)),
            Series("ucx tag_bw, tcp", ucx(peers.TCP)),
            Series("fi_pingpong shm", pingpong("shm", "rdm")),
            Series("fi_pingpong tcp", pingpong("tcp", "msg")),
            Series("iperf3, loopback", lambda p: at(p, peers.iperf3(runner, p, t),
                                                    "gbps", "msg_rate")),
            Series("sockperf tcp, loopback", sockperf),
            Series("testpmd io, net_ring", lambda p: at(p, peers.testpmd(runner, t), "msg_rate"),
                   once=True),
        ],
        [Plot("gbps", "Bandwidth by size", "bytes a message", "Gb/s"),
         Plot("msg_rate", "Message rate by size", "bytes a message", "million messages/s",
              scale=1e-6)],
        "fi_pingpong has one message in flight. memcpy and limit move the same messages through "
        "the same memory. testpmd passes on packets without looking at them: it bounds the rate "
        "of rings and bursts, whatever the size. iperf3 writes that many bytes a call.")


def qps(urnic, runner, t, quick):
    def perf(op):
        return lambda p: at(p, urnic.rate(op, t, "--size", "64", "--qps", str(p)), "msg_rate")

    def alone(op):
        return lambda p: at(p, urnic.rate(op, t, "--size", "64"), "msg_rate")

    def ucx(p):
        return at(p, peers.ucx(runner, peers.POSIX, "tag_bw", 64, t), "msg_rate")

    return Section(
        "qps", "Message rate by number of QPs, 64 bytes",
        (1, 16, 1024, 65536) if quick else (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536),
        [Series("urnic SEND", perf("send_bw")),
         Series("urnic WRITE", perf("write_bw")),
         Series("limit: no protocol", alone("limit"), once=True),
         Series("ucx tag_bw, posix, one connection", ucx, once=True)],
        [Plot("msg_rate", "Message rate by number of QPs, 64 bytes", "QPs", "million messages/s",
              logy=False, scale=1e-6)],
        "All QPs are busy. SEND takes its receives from one shared queue above 32 QPs.")


def latency(urnic, runner, t, quick):
    ranks = RANKS_QUICK if quick else RANKS

    def perf(op, *args):
        return lambda p: [(r, "us", us) for r, us in
                          urnic.ranks(op, t, ranks, "--size", str(p), *args).items()]

    def ucx(env):
        # ucx_perftest prints one percentile a run, of the last 2,048 messages: there is no 99.99th.
        return lambda p: [(r, "us", peers.ucx(runner, env, "tag_lat", p, t / 2, r)["percentile"])
                          for r in ranks if r <= 99.9]

    def mean(provider, kind):
        return lambda p: [(50, "mean_us", peers.fi_pingpong(runner, provider, kind, p, t)["us"])]

    def sockperf(p):
        found = peers.sockperf(runner, "ping-pong", p, t)["ranks"]
        return [(r, "us", found[r]) for r in ranks if r in found]

    return Section(
        "latency", "Latency distribution, 8 bytes, half the round trip", (8,),
        [Series("urnic SEND", perf("send_lat")),
         Series("urnic WRITE", perf("write_lat")),
         Series("limit: a bare frame", perf("limit", "--lat")),
         Series("ucx tag_lat, posix", ucx(peers.POSIX)),
         Series("ucx tag_lat, tcp", ucx(peers.TCP)),
         Series("fi_pingpong shm, mean", mean("shm", "rdm")),
         Series("fi_pingpong tcp, mean", mean("tcp", "msg")),
         Series("sockperf tcp, 14 bytes", sockperf)],
        [Plot("us", "Latency distribution, 8 bytes", "percentile", "us, half the round trip",
              logx="nines")],
        "ucx_perftest keeps the last 2,048 samples and tells one percentile a run. fi_pingpong "
        "tells the mean only, which is in the tables and not in the plot.")


def loss(urnic, runner, t, quick):
    def perf(recovery):
        return lambda p: at(p, urnic.rate("write_bw", max(t, 0.5), "--loss", str(p), "--recovery",
                                          recovery), "gbps", "retransmits")

    return Section(
        "loss", "Goodput by loss rate, 64 KiB WRITE", (0, 0.1, 1) if quick else LOSS,
        [Series("urnic, selective repeat", perf("selective")),
         Series("urnic, go-back-N", perf("gbn")),
         Series("kernel TCP (iperf3) through the switch", lambda p: at(
             p, switched.iperf3(runner, urnic.switch, p, t), "gbps", "retransmits"))],
        [Plot("gbps", "Goodput by loss rate", "% of packets lost", "Gb/s", logx="loss",
              logy=False)],
        "All lose packets in the same code, by seeded chance, in each direction. TCP has frames of "
        "1500 bytes and the kernel's TAP between it and the switch.")


WORKLOADS = {
    "64 B SEND, 16 QPs": ("send_bw", "--size", "64", "--qps", "16"),
    "64 KiB WRITE": ("write_bw", "--size", "65536"),
}


def stages(urnic, runner, t, quick):
    del runner, quick

    def measure(*more):
        def run(point):
            op, *args = WORKLOADS[point]
            found = urnic.stages(op, t, *args, *more)
            return [(f"node {node.upper()}: {stage}", "cycles", cycles)
                    for node, of in found.items() for stage, cycles in of.items()]
        return run

    return Section(
        "stages", "Cost per packet by stage", tuple(WORKLOADS),
        [Series("ICRC on", measure()), Series("ICRC off", measure("--no-icrc"))],
        [Plot("cycles", "Cycles a data packet, by stage", "", "TSC cycles a data packet",
              kind="bars")],
        "From a second build that reads the TSC where a burst goes from stage to stage. Node A "
        "sends, node B receives. The difference of the two series is the cost of the ICRC. "
        "Idle is time in turns that found nothing to do.")


def table(urnic, runner, t, quick):
    return Section("speed", "Figures that urnic is held to",
                   [row.key for row in speed.ROWS if not (quick and row.slow)],
                   [Series(name, measure) for name, measure in
                    speed.measures(urnic, runner, t).items()], [],
                   "Each figure is a ratio within a round; the medians of these ratios count.",
                   speed.ROWS)


def attached(urnic, runner, t, quick):
    return Section("urnicd", "Programs attached to a dataplane process: figures it is held to",
                   [row.key for row in urnicd.ROWS],
                   [Series(name, measure, first=name in urnicd.FIRST) for name, measure in
                    urnicd.measures(urnic, runner, t, quick).items()], [],
                   "One urnicd with two nodes and its default configuration, started anew for each "
                   "run; each node's program is a process of its own. Values that are compared are of "
                   "one round. Less is better where the aim is below the mark.",
                   urnicd.ROWS)


def congestion_of(urnic, runner, t, quick):
    return Section(
        "congestion", "Many senders into one port", (2, 4, 8, 16),
        [Series(name, measure) for name, measure in
         congestion.measures(runner, urnic.programs, t, quick).items()],
        [Plot("jain", "Fairness by senders", "senders", "Jain's index", logy=False),
         Plot("goodput", "Goodput of the port by senders", "senders", "% of its rate", logy=False),
         Plot("queue", "Bytes that wait, on average", "senders", "kB", logy=False),
         Plot("queue_p99", "Bytes that wait, 99th percentile", "senders", "kB", logy=False),
         Plot("drops", "Frames dropped", "senders", "frames", logy=False)],
        "The first six series are simulated: ports of 10 Gbit/s, MTU 1024, a queue of 512 frames, "
        "published parameters; senders have a queue pair each, or a flow of messages. Over net_ring the receiver's wire has 10 Gbit/s, or 1 where it says so, with MTU "
        "4096; the slower steps are a tenth as fast and a tenth as large as those published. All senders share the cores of this machine with the switch. There rates are what was acknowledged "
        "in one window in which all send, and the queue is the switch's own account, looked at each 2 ms "
        "at most; drops are those of the whole run, its start among them. The senders are queue pairs of two "
        "programs, each with a node of its own, so that the scheduler does not say who sends. "
        "congestion.png, congestion-msg.png (simulated) and congestion-ring.png (net_ring, DCQCN) have the queue and "
        "the rates over time, and congestion-senders.png has fairness and queue by the number of senders, when gnuplot "
        "is there.")


def messages(urnic, runner, t, quick):
    del runner, quick
    return Section("msg", "Messages without connections, beside a queue pair",
                   [row.key for row in msg.ROWS],
                   [Series(name, measure) for name, measure in msg.measures(urnic, t).items()], [],
                   "64 B messages between two nodes of one process over net_ring, one lcore a node. A message counts "
                   "when it was answered and its reader has compared it.",
                   msg.ROWS)


def endpoints(urnic, runner, t, quick):
    del runner, quick
    return Section("am", "Active messages and remote memory access, beside queue pairs",
                   [row.key for row in am.ROWS],
                   [Series(name, measure) for name, measure in am.measures(urnic, t).items()], [],
                   "Two nodes of one process over net_ring, one lcore a node. An operation counts when its event came, a "
                   "request when its reply came; all bytes are those that were to be moved. WRITE then SEND is an empty "
                   "SEND behind each WRITE.",
                   am.ROWS)


def ways_of(kind, urnic, t, quick):
    section = am.BY_SIZE[kind][0]
    return Section(section, f"Ways of a remote {kind} by size", am.sizes(quick),
                   [Series(name, measure) for name, measure in am.ways(urnic, t, kind).items()],
                   [Plot("gbps", f"Bandwidth of RMA {kind}s by size and way", f"bytes a {kind}", "Gb/s"),
                    Plot("us", f"Time of one RMA {kind} by size and way", f"bytes a {kind}", "us, p50")],
                   f"Direct holds all bytes in one packet, so that way ends at 4,096 bytes. {section}.png has both plots, "
                   "when gnuplot is there.")


def ways(urnic, runner, t, quick):
    del runner
    return ways_of("write", urnic, t, quick)


def ways_read(urnic, runner, t, quick):
    del runner
    return ways_of("read", urnic, t, quick)


def unmodified(urnic, runner, t, quick):
    return Section("dropin", "Unmodified programs under urnic-run: figures they are held to",
                   [row.key for row in dropin.ROWS if not (quick and row.slow)],
                   [Series(name, measure) for name, measure in
                    dropin.measures(runner, urnic.programs, t).items()], [],
                   "Two programs on the two nodes of one urnicd (config/two-nodes.ini), which is started anew for each run, "
                   f"with idle = {dropin.IDLE}: its engine yields the core when it finds nothing to do. No program is bound "
                   "to a core. Values that are compared are of one round. Registered memory was written before; the figure is "
                   "the sum of the medians of both calls, and the first time is in the table of values.",
                   dropin.ROWS)


def sessions(urnic, runner, t, quick):
    runs = session.Runs(urnic, runner, t, quick)
    table = session.rows(runs.kills, runs.others)
    return Section("session", "Sessions that lose an adapter, and what they cost when none is lost",
                   [row.key for row in table],
                   [Series(name, measure, first=name in session.ONCE) for name, measure in session.measures(runs, table).items()],
                   [],
                   "Adapters are lost in the first round alone: each is of a urnicd of its own, the four are on one urnic-switch, and "
                   f"urnic-perf send_bw loses the primary one of its side (64 queue pairs for a kill, else one). {session.LISTED} has "
                   "each loss. Times are those of the log of steps. A flap takes the link of the adapter in use down, until its "
                   "connection has moved, and then up, until both ends trust all four paths again; rates are those of a stream of "
                   "64 KiB WRITEs between two flaps. Simulated are two sessions with up to five faults each at named points, with "
                   "healing and fail-back (urnic-session-sim, scenario storm). The cost without a loss is that of two programs on "
                   "one urnicd (config/sessions.ini), with the virtual device and with the primary adapter alone, in one round. "
                   "Less is better where the aim is below the mark.",
                   table)


# A section whose name goes on after `_` is chosen by the word before.
ALL = {"size": size, "qps": qps, "latency": latency, "loss": loss, "stages": stages,
       "speed": table, "urnicd": attached, "congestion": congestion_of, "msg": messages,
       "am": endpoints, "am_ways": ways, "am_ways_read": ways_read, "dropin": unmodified, "session": sessions}
