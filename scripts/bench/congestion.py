# SPDX-License-Identifier: BSD-3-Clause
"""Many senders into one port of a switch: simulated (urnic-incast), and over net_ring, where one
urnicd has a node for each of a few programs, and a sender is a queue pair with a rate of its own. With gnuplot,
the queue and the rates over time are drawn, of both."""
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections import namedtuple

from attached import more_descriptors, said
from runner import Failed, Missing, last

LIMIT = "50us"          # delay limit
# Programs that send over net_ring, each with a node of its own, which share the queue pairs: more than that would
# take turns on the cores, and the scheduler, not congestion control, would say who sends.
RING_PROGRAMS = 2
RING_SIZE = 256 * 1024  # bytes of a write: a program has little to do, and its queue pairs always have work
POLITE = ("nice", "-n", "10") # the programs poll: urnicd must get a core whenever it has work
SAMPLE = "100us"
RING_SAMPLE = 0.002     # seconds between two looks at the queue of urnicd's switch
RING_RATES = 0.05       # seconds between two looks at the queue pairs
RING_MTU = 4096
PSNS = 1 << 24
PATIENCE = 60           # seconds until all senders send
FOR_EVER = 3600         # seconds that a program would send, if it were not stopped
MODES = {"DCQCN": (), "delay limit " + LIMIT: ("--no-dcqcn", "--delay-limit", LIMIT),
         "neither": ("--no-dcqcn",)}
MODES.update({"messages, " + name: (*args, "--over", "msg") for name, args in MODES.items()})
PICTURES = {"DCQCN": "congestion", "messages, DCQCN": "congestion-msg"}

# The published steps are made for 10 Gbit/s and more. On a wire with a tenth of that a packet takes ten times as
# long, so marks come ten times slower: the steps are as much slower, and smaller.
SLOW = ("[congestion]\nalpha_time = 550us\nraise_time = 550us\nraise_bytes = 1M\n"
        "additive = 4M\nhyper = 40M\nleast_rate = 1M\n")
# rate: Mbit/s of the wire to the receiver. marks: congestion control is on. more: of the configuration
Wire = namedtuple("Wire", "rate marks more", defaults=[""])
WIRES = {"net_ring, DCQCN": Wire(10000, True), "net_ring, neither": Wire(10000, False),
         "net_ring 1 Gbit/s, DCQCN with slower steps": Wire(1000, True, SLOW),
         "net_ring 1 Gbit/s, DCQCN": Wire(1000, True), "net_ring 1 Gbit/s, neither": Wire(1000, False)}
DRAWN = "net_ring, DCQCN"


def jain(rates):
    """Fairness (Jain, Chiu, Hawe 1984): 1 when all are equal, 1/n when one has all."""
    return sum(rates) ** 2 / (len(rates) * sum(r * r for r in rates)) if any(rates) else 0


class Simulated:
    """Runs of urnic-incast. programs.out: folder for the data and the pictures of the plots."""

    def __init__(self, runner, programs, quick):
        self.runner, self.programs = runner, programs
        self.duration = "50ms" if quick else "200ms"
        self.drawn = {mode: {} for mode in PICTURES} # senders: file with lines of the queue and rates
        self.figures = {mode: {} for mode in MODES}  # senders: fairness, and kB that wait on average

    def run(self, senders, mode):
        program, folder = self.programs.incast, self.programs.out
        if not program or not os.access(program, os.X_OK):
            raise Missing("not built: there is no urnic-incast")
        more, drawn = [], self.drawn.get(mode)
        if drawn is not None and senders not in drawn:
            drawn[senders] = os.path.join(folder, f"{PICTURES[mode]}-{senders}.dat")
            more = ["--plot", drawn[senders], "--sample", SAMPLE]
        out = self.runner.run([program, "--senders", str(senders), "--duration", self.duration,
                               "--json", *MODES[mode], *more], 120)
        if more:
            draw(folder, PICTURES[mode], drawn)
        r = json.loads(out)
        self.figures[mode][senders] = r["jain"], r["queue_mean"] / 1000
        draw_by_senders(folder, self.figures)
        return [(senders, "jain", r["jain"]), (senders, "goodput", 100 * r["goodput"]),
                (senders, "queue", r["queue_mean"] / 1000), (senders, "queue_p99", r["queue_p99"] / 1000),
                (senders, "drops", r["drops"])]


def draw(out, name, files):
    """Draw the queue and the rates over time, a column for each number of senders, into NAME.png."""
    if not shutil.which("gnuplot"):
        return
    n = sorted(files)
    lines = ["set terminal pngcairo size %d,700 font 'sans,10'" % (420 * len(n)),
             f"set output '{os.path.join(out, name + '.png')}'",
             f"set multiplot layout 2,{len(n)} columnsfirst", "set grid", "unset key",
             "set xlabel 'ms'", "set xrange [0:*]", "set yrange [0:*]"]
    for k in n:
        lines += [f"set title '{k} senders: queue'", "set ylabel 'kB that wait'",
                  f"plot '{files[k]}' using ($1/1000):($2/1000) with lines lc rgb '#205080'",
                  f"set title '{k} senders: rates'", "set ylabel 'Gbit/s'",
                  f"plot for [i=3:{k + 2}] '{files[k]}' using ($1/1000):(column(i)/1000) "
                  "with lines lw 0.7"]
    plot(out, name, lines)


def draw_by_senders(out, figures):
    """Draw fairness and queue of the simulated series by the number of senders into congestion-senders.png."""
    if not shutil.which("gnuplot"):
        return
    lines = ["set terminal pngcairo size 1300,520 font 'sans,11'",
             "set output 'congestion-senders.png'", "set multiplot layout 1,2", "set grid",
             "set xlabel 'senders'", "set logscale x 2", "set xrange [1.8:18]"]
    found = {mode: by for mode, by in figures.items() if by}
    for i, by in enumerate(found.values()):
        lines += [f"$of{i} << EOD"] + [f"{n} {fair:.4f} {queue:.1f}" for n, (fair, queue) in sorted(by.items())] + ["EOD"]
    for column, label, more in (
            (2, "fairness (Jain)", "set key bottom left\nset yrange [0.9:1.005]"),
            (3, "kB that wait, on average", "set key top left\nset logscale y\nset yrange [10:2000]")):
        lines += [f"set ylabel '{label}'", more, "plot " + ", ".join(
            f"$of{i} using 1:{column} with linespoints lw 2 pt 7 ps 0.7 dt {1 + mode.startswith('messages')} "
            f"title '{mode}'" for i, mode in enumerate(found))]
    plot(out, "congestion-senders", lines)


def plot(out, name, lines):
    """Write a multiplot's lines into NAME.gp, and let gnuplot run them."""
    path = os.path.join(out, name + ".gp")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines + ["unset multiplot", ""]))
    subprocess.run(["gnuplot", path], check=False, cwd=out, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def configuration(path, nodes, wire):
    """A urnicd whose node b is behind a wire with a rate, with so many other nodes."""
    text = f"[urnicd]\nsocket = {path}\n"
    for i, node in enumerate(["b"] + [f"s{k}" for k in range(nodes)]):
        text += (f"[adapter {node}0]\nnode = {node}\nswitch = wire\nipv4 = 10.0.0.{i + 1}\n"
                 f"congestion_control = {'yes' if wire.marks else 'no'}\n")
    text += f"[switch wire]\nimpair b0.out = rate={wire.rate}M, queue=512\n"
    return text + ("kmin = 5000\nkmax = 200000\n" if wire.marks else "") + wire.more


class Views:
    """Telemetry of this runner's urnicd: the wire to node b and of the senders' queue pairs."""

    def __init__(self, runner):
        paths = glob.glob(os.path.join(runner.dir, "urnic-rt-*", "dpdk", "*", "dpdk_telemetry.v2"))
        if len(paths) != 1:
            raise Failed(f"urnicd has {len(paths)} telemetry sockets, not one")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(paths[0])
        self.room = json.loads(self.socket.recv(65536))["max_output_len"]

    def ask(self, command):
        self.socket.send(command.encode())
        return next(iter(json.loads(self.socket.recv(self.room)).values()))

    def port(self):
        return self.ask("/urnic/switch/info,wire,b0")

    def busy(self, nodes):
        """The queue pairs of the senders that have moved data: (adapter, number)."""
        found = []
        for adapter in (f"s{k}0" for k in range(nodes)):
            for number in self.ask(f"/urnic/qp/list,{adapter}"):
                qp = self.ask(f"/urnic/qp/info,{adapter},{number}")
                if qp.get("una_psn", 0) != qp.get("first_sq_psn", 0):
                    found.append((adapter, number))
        return found

    def acknowledged(self, pairs):
        """For each queue pair, the time of the look and the first PSN that is not acknowledged; None: it is gone."""
        return [(time.monotonic(), self.ask(f"/urnic/qp/info,{a},{n}").get("una_psn")) for a, n in pairs]

    def close(self):
        self.socket.close()


def rates_of(first, then):
    """Bits a second of each queue pair between two looks; 0 for one that is gone."""
    return [8 * RING_MTU * ((b[1] - a[1]) % PSNS) / (b[0] - a[0]) if None not in (a[1], b[1]) else 0
            for a, b in zip(first, then)]


def window(views, nodes, senders, processes, t):
    """Watch the senders for t seconds while all of them send. returns: their rates in bits a second, and for each
    look at the switch its time in seconds, the bytes that waited for node b, and the rates of then"""
    end = time.monotonic() + PATIENCE
    while len(pairs := views.busy(nodes)) < senders:
        if any(p.poll() is not None for p in processes) or time.monotonic() > end:
            raise Failed(f"urnic-perf: {len(pairs)} of {senders} senders sent at the same time")
    first = before = views.acknowledged(pairs)
    start, now, looks = time.monotonic(), [0] * len(pairs), []
    while (at := time.monotonic() - start) < t:
        if at - (before[0][0] - start) >= RING_RATES:
            then = views.acknowledged(pairs)
            now, before = rates_of(before, then), then
        looks.append((at, views.port().get("queue0_bytes", 0), now))
        time.sleep(RING_SAMPLE)
    last_look = views.acknowledged(pairs)
    if any(p.poll() is not None for p in processes) or None in (psn for _, psn in last_look):
        raise Failed("urnic-perf: a sender ended before its time")
    return rates_of(first, last_look), looks


def save(path, looks):
    """Write the looks in the format of urnic-incast: us, bytes that wait, a rate in Mbit/s for each sender."""
    with open(path, "w", encoding="utf-8") as f:
        for at, waited, rates in looks:
            f.write(" ".join([f"{at * 1e6:.0f}", str(waited), *(f"{r / 1e6:.1f}" for r in rates)]) + "\n")


def stop(runner, processes):
    """End the senders, which must not have failed until then."""
    for p in processes:
        said_last = last(runner.end(p, signal.SIGINT)[1])
        if p.returncode not in (128 + signal.SIGINT, -signal.SIGKILL):
            raise Failed(f"urnic-perf ended with {p.returncode}{said_last}")


def senders_of(programs, path, senders):
    """Commands of the programs whose queue pairs are the senders."""
    n = min(senders, RING_PROGRAMS)
    return [[*POLITE, programs.perf, "write_bw", "--attach", path, "--nodes", f"s{k},b", "--qps",
             str(senders // n + (k < senders % n)), "--size", str(RING_SIZE), "--mtu", str(RING_MTU), "--duration",
             str(FOR_EVER)] for k in range(n)]


def ring(runner, programs, t, senders, wire, drawn):
    """Run programs whose queue pairs write to node b at the same time. drawn: files of data that are drawn, by
    number of senders; None: this run is not"""
    programs.need()
    more_descriptors()
    path = os.path.join(runner.dir, "congestion.sock")
    config = os.path.join(runner.dir, "congestion.ini")
    commands = senders_of(programs, path, senders)
    with open(config, "w", encoding="utf-8") as f:
        f.write(configuration(path, len(commands), wire))
    process = runner.start([programs.urnicd, "-c", config])
    t = max(t, 1)
    try:
        said(process, "listening at")
        views = Views(runner)
        perf = [runner.start(c) for c in commands]
        rates, looks = window(views, len(commands), senders, perf, t)
        stop(runner, perf)
        dropped = views.port().get("out_drop_queue", 0)
        views.close()
        if process.poll() is not None:
            raise Failed(f"urnicd ended with {process.returncode}{last(runner.end(process)[1])}")
    finally:
        runner.end(process)
    if drawn is not None:
        drawn[senders] = os.path.join(programs.out, f"congestion-ring-{senders}.dat")
        save(drawn[senders], looks)
        draw(programs.out, "congestion-ring", drawn)
    waited = sorted(w for _, w, _ in looks)
    return [(senders, "jain", jain(rates)), (senders, "goodput", sum(rates) / wire.rate / 10**4),
            (senders, "queue", sum(waited) / len(waited) / 1000),
            (senders, "queue_p99", waited[len(waited) * 99 // 100] / 1000), (senders, "drops", dropped)]


def measures(runner, programs, t, quick):
    """Series by name: functions of the number of senders."""
    simulated = Simulated(runner, programs, quick)
    found = {name: lambda n, mode=name: simulated.run(n, mode) for name in MODES}
    for name, wire in WIRES.items():
        drawn = {} if name == DRAWN else None
        found[name] = lambda n, w=wire, d=drawn: ring(runner, programs, t, n, w, d)
    return found
