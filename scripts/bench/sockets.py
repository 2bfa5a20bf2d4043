#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure sockperf's ping-pong over UDP: by urnic's datagram sockets, and by the kernel's loopback, in turn.

usage: sockets.py [OPTION...]

Client and server are two processes on one urnicd, at two nodes of it with a switch between them (config/two-nodes.ini),
or with --own both on one node. The kernel's run has the same two processes on loopback. A round is one
run of each; the figures are medians over the rounds of the half round trip, in microseconds.

  --build DIR   the build folder (default: build, in the project's folder)
  --rounds N    number of rounds (default 5)
  --seconds N   whole seconds of each run (default 2)
  --size N      bytes of a datagram, 14 at least (default 14)
  --own         both processes on one node
  --idle I      what the engine does without work: spin, pause or sleep (default spin)
  --cores LIST  cores of urnicd, server and client, such as 0,1,2 (default: where the system puts them)
  --json        print JSON instead of text
  --help        this text

Exit code: 0 measured, 1 something failed, 2 wrong usage.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

PROJECT = pathlib.Path(__file__).resolve().parents[2]
PORT = "11111"
ANSI = re.compile(r"\x1b\[[\d;]*m")


class Failed(Exception):
    """A run that gave no figures."""


def options(argv):
    p = argparse.ArgumentParser(add_help=False, usage="sockets.py [OPTION...]; see --help")
    p.add_argument("--build", type=pathlib.Path, default=PROJECT / "build")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=int, default=2)
    p.add_argument("--size", type=int, default=14)
    p.add_argument("--own", action="store_true")
    p.add_argument("--idle", choices=("spin", "pause", "sleep"), default="spin")
    p.add_argument("--cores", type=lambda s: s.split(","), default=[])
    p.add_argument("--json", action="store_true")
    p.add_argument("--help", "-h", action="store_true")
    o = p.parse_args(argv)
    if o.help:
        print(__doc__.strip())
        sys.exit(0)
    if o.rounds < 1 or o.seconds < 1 or o.size < 14 or len(o.cores) not in (0, 3):
        p.error("rounds and seconds are 1 at least, a size 14, and cores are three")
    o.build = o.build.resolve()
    return o


def pinned(o, which, command):
    """The command on its core. which: 0 urnicd, 1 server, 2 client"""
    return ["taskset", "-c", o.cores[which], *command] if o.cores else command


def half(text):
    """Figures of sockperf: half the round trip in microseconds."""
    text = ANSI.sub("", text)
    mean = re.search(r"Summary: Latency is ([\d.]+) usec", text)
    ranks = {rank: float(us) for rank, us in re.findall(r"percentile ([\d.]+) =\s+([\d.]+)", text)}
    if not mean or "50.000" not in ranks:
        raise Failed(f"sockperf gave no figures:\n{text[-2000:]}")
    return {"mean": float(mean[1]), "p50": ranks["50.000"], "p99": ranks["99.000"]}


def ping_pong(o, address, run, env):
    """One run of sockperf. run: words before each command, for server and client"""
    server = subprocess.Popen(pinned(o, 1, [*run[0], "sockperf", "server", "-i", address, "-p", PORT]),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    try:
        time.sleep(0.7)
        client = [*run[1], "sockperf", "ping-pong", "-i", address, "-p", PORT, "-t", str(o.seconds), "-m", str(o.size)]
        got = subprocess.run(pinned(o, 2, client), capture_output=True, text=True, env=env, timeout=60 + o.seconds, check=False)
        return half(got.stdout + got.stderr)
    finally:
        server.kill()
        server.wait()


class Nicd:
    """An urnicd with two nodes, for a while."""

    def __init__(self, o):
        self.dir = tempfile.TemporaryDirectory(prefix="urnic-bench.")
        self.socket = os.path.join(self.dir.name, "nicd.sock")
        self.env = dict(os.environ, XDG_RUNTIME_DIR=self.dir.name, URNIC_SOCKET=self.socket)
        path = os.path.join(self.dir.name, "c.ini")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[urnicd]\nsocket = {self.socket}\nidle = {o.idle}\n" + (PROJECT / "config/two-nodes.ini").read_text("utf-8"))
        self.p = subprocess.Popen(pinned(o, 0, [o.build / "apps/urnicd/urnicd", "-c", path]), env=self.env,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = ""
        while "listening at" not in said:
            line = self.p.stderr.readline()
            if line == "":
                raise Failed(f"urnicd did not start:\n{said}")
            said += line

    def end(self):
        self.p.terminate()
        self.p.communicate()
        self.dir.cleanup()


def measure(o):
    """returns: {"urnic": [figures of each round], "kernel": [...]}"""
    out = {"urnic": [], "kernel": []}
    run = o.build / "apps/urnic-run/urnic-run"
    for _ in range(o.rounds):
        nicd = Nicd(o)
        try:
            nodes = [[run, "--sockets", "--node", name] for name in ("a", "a" if o.own else "b")]
            out["urnic"].append(ping_pong(o, "10.0.0.1", nodes, nicd.env))
        finally:
            nicd.end()
        out["kernel"].append(ping_pong(o, "127.0.0.1", [[], []], None))
    return out


def main(argv):
    o = options(argv)
    if shutil.which("sockperf") is None:
        print("sockets.py: sockperf is missing: scripts/setup.sh --bench installs it", file=sys.stderr)
        return 1
    try:
        rounds = measure(o)
    except (Failed, OSError, subprocess.TimeoutExpired) as e:
        print(f"sockets.py: {e}", file=sys.stderr)
        return 1
    medians = {who: {key: statistics.median(r[key] for r in got) for key in ("mean", "p50", "p99")} for who, got in rounds.items()}
    ratio = medians["kernel"]["p50"] / medians["urnic"]["p50"]
    if o.json:
        print(json.dumps({"rounds": rounds, "medians": medians, "kernel_to_urnic_p50": ratio}))
        return 0
    for who, m in medians.items():
        print(f"{who:7} half round trip: p50 {m['p50']:.2f} us, mean {m['mean']:.2f} us, p99 {m['p99']:.2f} us")
    print(f"kernel / urnic, p50: {ratio:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
