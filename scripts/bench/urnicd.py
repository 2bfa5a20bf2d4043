# SPDX-License-Identifier: BSD-3-Clause
"""The figures that a dataplane process and its programs must reach: the runs and marks of each.
Rows, ratios and verdicts are those of speed."""
import statistics

from attached import Nicd, kill
from runner import Failed
from speed import WRITE, Row, alone, micro, percent, rate, share

CLIENTS = 1000     # attached and idle
SLEEPERS = 16      # clients asleep while the dataplane's CPU time is measured
BUSY = 16          # programs of which one is killed
KILLS, KILLS_QUICK = 1000, 50
CONNECTIONS = 10000
CPU_SECONDS = 5    # a clock tick is 0.2 % of it
PING_PONG = ("send_lat", "--size", "8")
# Number of pairs of programs in a run. With more busy threads than cores, the placement of threads
# differs from pair to pair.
PAIRS = 3
SMALL = ("send_bw", "--size", "64", "--qps", "16")

# Measured in the first round only, because one round kills enough programs.
FIRST = ("kill -9",)


def faults(v):
    return f"{v:.0f}"


ROWS = [
    Row("write", "64 KiB WRITE, program to program, of embedded", 0.5, 0.8, percent, True,
        ("embedded WRITE", "WRITE"), share("gbps", "WRITE", "embedded WRITE")),
    Row("foreign", "the same, malloc'd memory, of urn_alloc()'s", 0.3, 0.6, percent, True,
        ("WRITE", "WRITE, malloc'd"), share("gbps", "WRITE, malloc'd", "WRITE")),
    Row("copy", "... copied when posted (URNIC_COPY=yes), of urn_alloc()'s", 0.3, 0.6, percent,
        True, ("WRITE", "WRITE, malloc'd, copied"),
        share("gbps", "WRITE, malloc'd, copied", "WRITE")),
    Row("lat", "8 B SEND, program to program, half round trip p50", 5, 2, micro, False,
        ("ping-pong",), alone("us", "ping-pong")),
    Row("idle", "CPU of urnicd, all programs asleep on channels", 0.03, 0.01, percent, False,
        ("asleep",), alone("cpu", "asleep")),
    # "No change": within 3 %, as for idle QPs.
    Row("clients", "64 B SEND beside 1,000 idle clients, of without", 0.97, 1.0, percent, True,
        ("small", "small, 1,000 idle clients"),
        share("msg_rate", "small, 1,000 idle clients", "small")),
    Row("clients_write", "64 KiB WRITE beside 1,000 idle clients, of without", 0.97, 1.0, percent,
        True, ("WRITE", "WRITE, 1,000 idle clients"),
        share("gbps", "WRITE, 1,000 idle clients", "WRITE")),
    Row("kill", "kill -9 of one of 16 busy programs: errors, leaks", 0, 0, faults, False,
        ("kill -9",), alone("faults", "kill -9")),
    Row("connect", "10,000 connections by CM, set up a second", 2000, 10000, rate, True,
        ("connect",), alone("conn_rate", "connect")),
]


def figures(found):
    """The figures of urnic-perf's JSON that rows use."""
    return {"gbps": found["gbps"], "msg_rate": found["msg_rate"], "us": found["lat_us"]["p50"]}


def measures(urnic, runner, t, quick):
    """{run: function of a row's key}: the function measures, unless the row does not need the run."""
    wanted = {row.key: row.runs for row in ROWS}
    programs = urnic.programs

    def pair(op, *args, idle=0, copy=False, pairs=1):
        with Nicd(runner, programs) as nicd:
            if idle:
                nicd.asleep(idle // 2, "a")
                nicd.asleep(idle - idle // 2, "b")
            found = [figures(nicd.pair(op, t, *args, copy=copy)) for _ in range(pairs)]
            return {metric: statistics.median(f[metric] for f in found) for metric in found[0]}

    def embedded():
        op, *args = WRITE
        return urnic.rate(op, t, *args)

    def asleep():
        with Nicd(runner, programs) as nicd:
            nicd.asleep(SLEEPERS // 2, "a")
            nicd.asleep(SLEEPERS // 2, "b")
            return {"cpu": nicd.cpu(CPU_SECONDS)}

    def connect():
        with Nicd(runner, programs) as nicd:
            return {"conn_rate": nicd.connect(CONNECTIONS)}

    def kills():
        found = kill(runner, programs, KILLS_QUICK if quick else KILLS, BUSY)
        if found["faults"]:
            # A fault is a figure and not only a note: the row misses its mark.
            print("bench.sh: " + "; ".join(found["faults"]), file=runner.said)
        return {"kills": found["kills"], "seconds": found["seconds"],
                "faults": len(found["faults"])}

    runs = {
        "embedded WRITE": embedded,
        "WRITE": lambda: pair(*WRITE),
        "WRITE, malloc'd": lambda: pair(*WRITE, "--foreign", pairs=PAIRS),
        "WRITE, malloc'd, copied": lambda: pair(*WRITE, "--foreign", copy=True, pairs=PAIRS),
        "ping-pong": lambda: pair(*PING_PONG),
        "asleep": asleep,
        "small": lambda: pair(*SMALL, pairs=PAIRS),
        "small, 1,000 idle clients": lambda: pair(*SMALL, idle=CLIENTS, pairs=PAIRS),
        "WRITE, 1,000 idle clients": lambda: pair(*WRITE, idle=CLIENTS),
        "kill -9": kills,
        "connect": connect,
    }

    def series(name):
        def measure(key):
            if name not in wanted[key]:
                return []
            try:
                return [(key, m, v) for m, v in runs[name]().items()]
            except (KeyError, ValueError) as e:
                raise Failed(f"urnic-perf printed no result that can be read: {e!r}") from None
        return measure

    return {name: series(name) for name in runs}
