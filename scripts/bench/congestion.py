# SPDX-License-Identifier: BSD-3-Clause
"""Many senders into one port of a switch: simulated (urnic-incast), and over net_ring, where one
urnicd has a node for each sender and a program for each runs at the same time. With gnuplot, the queue
and the rates over time are drawn from the simulation."""
import json
import os
import shutil
import subprocess

from attached import more_descriptors, said
from runner import Failed, Missing, last

LIMIT = "50us"          # delay limit
RING_RATE = 10**9       # bits a second of the wire to the receiver, over net_ring
RING_MOST = 8           # senders over net_ring: two ports of DPDK's 32 for each adapter, and few cores
SAMPLE = "100us"
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


def configuration(socket, senders, marks):
    """A urnicd whose node b is behind a wire with a rate, with so many other nodes."""
    text = f"[urnicd]\nsocket = {socket}\n"
    for i, node in enumerate(["b"] + [f"s{k}" for k in range(senders)]):
        text += (f"[adapter {node}0]\nnode = {node}\nswitch = wire\nipv4 = 10.0.0.{i + 1}\n"
                 f"congestion_control = {'yes' if marks else 'no'}\n")
    text += f"[switch wire]\nimpair b0.out = rate={RING_RATE // 10**6}M, queue=512\n"
    return text + ("kmin = 5000\nkmax = 200000\n" if marks else "")


def ring(runner, programs, t, senders, marks):
    """Run a program for each sender at the same time, all to node b."""
    if senders > RING_MOST:
        return []
    programs.need()
    more_descriptors()
    socket = os.path.join(runner.dir, "congestion.sock")
    path = os.path.join(runner.dir, "congestion.ini")
    with open(path, "w", encoding="utf-8") as f:
        f.write(configuration(socket, senders, marks))
    process = runner.start([programs.urnicd, "-c", path])
    try:
        said(process, "listening at")
        perf = [runner.start([programs.perf, "write_bw", "--attach", socket, "--nodes", f"s{k},b",
                              "--size", "16384", "--duration", f"{max(t, 1):g}", "--json"])
                for k in range(senders)]
        rates = [json.loads(runner.finish(p, 60 + 10 * t))["gbps"] for p in perf]
        if process.poll() is not None:
            raise Failed(f"urnicd ended with {process.returncode}{last(runner.end(process)[1])}")
    finally:
        runner.end(process)
    return [(senders, "jain", jain(rates)), (senders, "goodput", 1e11 * sum(rates) / RING_RATE)]


def measures(runner, programs, t, quick):
    """Series by name: functions of the number of senders."""
    simulated = Simulated(runner, programs, quick)
    found = {name: lambda n, mode=name: simulated.run(n, mode) for name in MODES}
    for name, marks in (("net_ring, DCQCN", True), ("net_ring, neither", False)):
        found[name] = lambda n, m=marks: ring(runner, programs, t, n, m)
    return found
