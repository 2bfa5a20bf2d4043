# SPDX-License-Identifier: BSD-3-Clause
"""Many senders into one port of a switch: simulated (urnic-incast), and over net_ring, where one
urnicd has nodes for the senders and a program for each sender runs at the same time. With gnuplot, the queue
and the rates over time are drawn from the simulation."""
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import time

from attached import more_descriptors, said
from runner import Failed, Missing, last

LIMIT = "50us"          # delay limit
RING_RATE = 10**9       # bits a second of the wire to the receiver, over net_ring
# Nodes that send over net_ring: two ports of DPDK's 32 for each adapter, one adapter for the receiver. Beyond so
# many senders each node has several: a sender is a queue pair with a rate of its own, on any node.
RING_NODES = 8
POLITE = ("nice", "-n", "10") # the programs poll: urnicd must get a core whenever it has work
SAMPLE = "100us"
RING_SAMPLE = 0.002     # seconds between two looks at the queue of urnicd's switch
RING_MTU = 4096
PSNS = 1 << 24
PATIENCE = 60           # seconds until all senders send
FOR_EVER = 3600         # seconds that a program would send, if it were not stopped
MODES = {"DCQCN": (), "delay limit " + LIMIT: ("--no-dcqcn", "--delay-limit", LIMIT),
         "neither": ("--no-dcqcn",)}


def jain(rates):
    """Fairness (Jain, Chiu, Hawe 1984): 1 when all are equal, 1/n when one has all."""
    return sum(rates) ** 2 / (len(rates) * sum(r * r for r in rates)) if any(rates) else 0


class Simulated:
    """Runs of urnic-incast. programs.out: folder for the data and the picture of the plots."""

    def __init__(self, runner, programs, quick):
        self.runner, self.programs = runner, programs
        self.duration = "50ms" if quick else "200ms"
        self.drawn = {}  # senders: file with lines of the queue and rates, of DCQCN

    def run(self, senders, mode):
        program, folder = self.programs.incast, self.programs.out
        if not program or not os.access(program, os.X_OK):
            raise Missing("not built: there is no urnic-incast")
        more = []
        if mode == "DCQCN" and senders not in self.drawn:
            self.drawn[senders] = os.path.join(folder, f"congestion-{senders}.dat")
            more = ["--plot", self.drawn[senders], "--sample", SAMPLE]
        out = self.runner.run([program, "--senders", str(senders), "--duration", self.duration,
                               "--json", *MODES[mode], *more], 120)
        if more:
            draw(folder, self.drawn)
        r = json.loads(out)
        return [(senders, "jain", r["jain"]), (senders, "goodput", 100 * r["goodput"]),
                (senders, "queue", r["queue_mean"] / 1000), (senders, "queue_p99", r["queue_p99"] / 1000),
                (senders, "drops", r["drops"])]


def draw(out, files):
    """Draw the queue and the rates over time, a column for each number of senders, into congestion.png."""
    if not shutil.which("gnuplot"):
        return
    n = sorted(files)
    lines = ["set terminal pngcairo size %d,700 font 'sans,10'" % (420 * len(n)),
             f"set output '{os.path.join(out, 'congestion.png')}'",
             f"set multiplot layout 2,{len(n)} columnsfirst", "set grid", "unset key",
             "set xlabel 'ms'", "set xrange [0:*]", "set yrange [0:*]"]
    for k in n:
        lines += [f"set title '{k} senders: queue'", "set ylabel 'kB that wait'",
                  f"plot '{files[k]}' using ($1/1000):($2/1000) with lines lc rgb '#205080'",
                  f"set title '{k} senders: rates'", "set ylabel 'Gbit/s'",
                  f"plot for [i=3:{k + 2}] '{files[k]}' using ($1/1000):(column(i)/1000) "
                  "with lines lw 0.7"]
    text = "\n".join(lines + ["unset multiplot", ""])
    with open(os.path.join(out, "congestion.gp"), "w", encoding="utf-8") as f:
        f.write(text)
    subprocess.run(["gnuplot", os.path.join(out, "congestion.gp")], check=False,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def configuration(path, nodes, marks):
    """A urnicd whose node b is behind a wire with a rate, with so many other nodes."""
    text = f"[urnicd]\nsocket = {path}\n"
    for i, node in enumerate(["b"] + [f"s{k}" for k in range(nodes)]):
        text += (f"[adapter {node}0]\nnode = {node}\nswitch = wire\nipv4 = 10.0.0.{i + 1}\n"
                 f"congestion_control = {'yes' if marks else 'no'}\n")
    text += f"[switch wire]\nimpair b0.out = rate={RING_RATE // 10**6}M, queue=512\n"
    return text + ("kmin = 5000\nkmax = 200000\n" if marks else "")


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


def window(views, nodes, processes, t):
    """Watch the senders for t seconds while all of them send. returns: their rates in bits a second, and the bytes
    that waited in the switch for node b at each look"""
    end = time.monotonic() + PATIENCE
    while len(pairs := views.busy(nodes)) < len(processes):
        if any(p.poll() is not None for p in processes) or time.monotonic() > end:
            raise Failed(f"urnic-perf: {len(pairs)} of {len(processes)} senders sent at the same time")
    first, waited, end = views.acknowledged(pairs), [], time.monotonic() + t
    while time.monotonic() < end:
        waited.append(views.port().get("queue0_bytes", 0))
        time.sleep(RING_SAMPLE)
    last_look = views.acknowledged(pairs)
    if any(p.poll() is not None for p in processes) or None in (psn for _, psn in last_look):
        raise Failed("urnic-perf: a sender ended before its time")
    return [8 * RING_MTU * ((b[1] - a[1]) % PSNS) / (b[0] - a[0]) for a, b in zip(first, last_look)], waited


def stop(runner, processes):
    """End the senders, which must not have failed until then."""
    for p in processes:
        said_last = last(runner.end(p, signal.SIGINT)[1])
        if p.returncode not in (128 + signal.SIGINT, -signal.SIGKILL):
            raise Failed(f"urnic-perf ended with {p.returncode}{said_last}")


def ring(runner, programs, t, senders, marks):
    """Run a program for each sender at the same time, all to node b."""
    programs.need()
    more_descriptors()
    nodes = min(senders, RING_NODES)
    path = os.path.join(runner.dir, "congestion.sock")
    config = os.path.join(runner.dir, "congestion.ini")
    with open(config, "w", encoding="utf-8") as f:
        f.write(configuration(path, nodes, marks))
    process = runner.start([programs.urnicd, "-c", config])
    t = max(t, 1)
    try:
        said(process, "listening at")
        views = Views(runner)
        perf = [runner.start([*POLITE, programs.perf, "write_bw", "--attach", path, "--nodes", f"s{k % nodes},b",
                              "--size", "16384", "--mtu", str(RING_MTU), "--duration", str(FOR_EVER)])
                for k in range(senders)]
        rates, waited = window(views, nodes, perf, t)
        stop(runner, perf)
        dropped = views.port().get("out_drop_queue", 0)
        views.close()
        if process.poll() is not None:
            raise Failed(f"urnicd ended with {process.returncode}{last(runner.end(process)[1])}")
    finally:
        runner.end(process)
    return [(senders, "jain", jain(rates)), (senders, "goodput", 100 * sum(rates) / RING_RATE),
            (senders, "queue", sum(waited) / len(waited) / 1000),
            (senders, "queue_p99", sorted(waited)[len(waited) * 99 // 100] / 1000), (senders, "drops", dropped)]


def measures(runner, programs, t, quick):
    """Series by name: functions of the number of senders."""
    simulated = Simulated(runner, programs, quick)
    found = {name: lambda n, mode=name: simulated.run(n, mode) for name in MODES}
    for name, marks in (("net_ring, DCQCN", True), ("net_ring, neither", False)):
        found[name] = lambda n, m=marks: ring(runner, programs, t, n, m)
    return found
