# SPDX-License-Identifier: BSD-3-Clause
"""The figures that sessions must reach when an adapter is lost, and when none is: the runs and marks of each. Rows, ratios
and verdicts are those of speed."""
import bisect
import json
import math
import os
import pathlib
import re
import shlex
import signal
import statistics
import subprocess
import time

from adapters import PATIENCE, QUIET, Four, One, until
from runner import Failed, Missing
from speed import Row, alone, percent, rate, share, times

KILLS, KILLS_QUICK = 200, 10
OTHERS, OTHERS_QUICK = 20, 3 # links that go down, dataplanes that fall silent, flaps
CONNECTIONS = 64             # of the program whose adapter is killed
LOSS_AT, LOSS_RUN = 0.2, 1.0  # seconds: of the loss of an adapter in a run, and of the run
SILENCE_MS = 500             # period of a silent dataplane
SEEDS, SEEDS_QUICK = 50000, 2000 # random seeds of simulated runs, each with two faults on average
WINDOW, WINDOW_QUICK = 1.0, 0.3  # seconds of a rate between two flaps
BIN = 0.05                   # seconds; the rate is the median of such pieces
SETUP = 500                  # connections that are set up
PAIRS = 3                    # runs of which the median counts
LISTED = "session-losses.csv"
MOVED = " step MIGRATED -> CONNECTED "
COST = {"WRITE": ("write_bw", "--size", "64K"), "SEND": ("send_bw", "--size", "64"),
        "ping-pong": ("send_lat", "--size", "8")}
ONCE = ("losses", "flaps", "simulated") # runs of the first round alone


def milli(us):
    return f"{us / 1000:.2f} ms"


def count(v):
    return f"{v:.0f}"


def p99(values):
    """The value that 99 % do not exceed: the highest one of fewer than 100."""
    return sorted(values)[math.ceil(0.99 * len(values)) - 1]


def cost(key, what, name, metric, form, must, aim):
    """A row: a run on the virtual device, of the same on the bare adapter."""
    runs = (f"{name}, session", f"{name}, bare")
    return Row(key, what, must, aim, form, form is not times, runs, share(metric, *runs))


def of(run, key, what, form, must=None, aim=None, more=False):
    """A row: a metric of a run that has several, with the row's key as its name."""
    return Row(key, what, must, aim, form, more, (run,), alone(key, run))


def rows(kills, others):
    """kills: of a dataplane; others: losses of each other kind"""
    p = "p99" if kills >= 100 else "worst"
    return [
        of("losses", "kill", f"detection of a killed dataplane, {p} of {kills}", milli, 5000, 1000),
        of("losses", "kill_mid", "  the same, median", milli),
        of("losses", "link", f"detection of a link that goes down, worst of {others}", milli, 10000, 1000),
        of("losses", "link_mid", "  the same, median", milli),
        of("losses", "silent", f"detection of a stopped dataplane, worst of {others}, in periods", times, 3, 2),
        of("losses", "move", f"migration of {CONNECTIONS} QPs after detection, {p} of {kills} kills", milli, 20000, 2000),
        of("losses", "move_mid", "  the same, median", milli),
        of("losses", "after", "  rate after a kill, of before, median", percent, more=True),
        of("losses", "faults", "losses that a program noticed, or that gave no figures", count, 0, 0),
        of("simulated", "once", "simulated runs in which all was exactly once", percent, 1, 1, True),
        of("simulated", "known", "  their atomics with a known outcome", percent, None, 1, True),
        of("simulated", "again", "  Sends and writes sent again, of those lost", times, 1.5, 1.1),
        of("flaps", "flap", f"rate after a flap's recovery, of before: worst of {others}", percent, 0.95, 0.99, True),
        of("flaps", "flap_mid", "  the same, median", percent, more=True),
        of("flaps", "flap_all", "  after the last flap, of before the first", percent, more=True),
        cost("write", "64 KiB WRITE on the virtual device, of the bare adapter", "WRITE", "gbps", percent, 0.9, 0.97),
        cost("send", "64 B SEND, likewise", "SEND", "msg_rate", percent, 0.5, 0.75),
        cost("lat", "8 B SEND, half a round trip p50, against the bare adapter", "ping-pong", "us", times, 1.5, 1.1),
        cost("setup", "connections set up a second with all backups, of bare", "set up", "conn_rate", percent, 0.2, 0.4),
        Row("setup_rate", "  the same, connections a second", None, None, rate, True, ("set up, session",),
            alone("conn_rate", "set up, session")),
    ]


# ---- losses of an adapter

def judged(failover, qps):
    """The figures of a loss; Failed when not all connections have moved."""
    f = failover or {}
    if not f.get("detected") or f["connections"] != qps or f["migrated"] != qps:
        raise Failed(f"urnic-perf: {f.get('migrated', 0)} of {qps} connections moved behind the loss of an adapter")
    return f


class Losses:
    """Losses of a's primary adapter, one in each run of urnic-perf."""

    def __init__(self, nodes, runner, out):
        self.nodes, self.runner = nodes, runner
        self.found = {kind: [] for kind in ("kill", "link", "silent")} # figures of urnic-perf
        self.faults = []
        self.path = os.path.join(out, LISTED) if out else None
        self.list("kind", ("detection_us", "migration_us", "slowest_us", "pause_us", "after_to_before"), "w")

    def list(self, kind, cells, mode="a"):
        if self.path:
            with open(self.path, mode, encoding="utf-8") as f:
                f.write(",".join([kind, *("" if c is None else str(c) for c in cells)]) + "\n")

    def one(self, kind):
        """Lose the adapter once."""
        qps, seconds, env = (CONNECTIONS if kind == "kill" else 1), LOSS_RUN, {}
        how = {"kill": "kill", "link": "port", "silent": f"run=kill -STOP {self.nodes.process['ap'].pid}"}[kind]
        if kind == "silent":
            seconds, env = LOSS_RUN + 5 * SILENCE_MS / 1000, {"URNIC_SESSION_SILENCE": str(SILENCE_MS)}
        r = self.nodes.pair("send_bw", seconds, "--size", "4K", "--qps", str(qps), "--fail-at", f"{LOSS_AT:g}:{how}", env=env)
        f = judged(r.get("failover"), qps)
        self.found[kind].append(f)
        self.list(kind, [f.get(c) for c in ("detection_us", "migration_us", "slowest_us", "pause_us", "after_to_before")])

    def run(self, kills, others):
        for kind, n in (("kill", kills), ("link", others), ("silent", others)):
            for i in range(n):
                try:
                    self.one(kind)
                except (Failed, subprocess.TimeoutExpired) as e:
                    self.faults.append(f"{kind} {i + 1}: {e}")
                self.nodes.again()
                if (i + 1) % 50 == 0:
                    print(f"bench.sh: session: {i + 1} of {n} adapters lost", file=self.runner.said, flush=True)
        for fault in self.faults:
            print(f"bench.sh: session: {fault}", file=self.runner.said, flush=True)

    def figures(self):
        def values(kind, word):
            return [f[word] for f in self.found[kind] if f.get(word) is not None]

        out = {"faults": len(self.faults)}
        for key, got, mid in (("kill", values("kill", "detection_us"), "kill_mid"),
                              ("link", values("link", "detection_us"), "link_mid"),
                              ("silent", [us / 1000 / SILENCE_MS for us in values("silent", "detection_us")], None),
                              ("move", values("kill", "migration_us"), "move_mid")):
            if got:
                out[key] = p99(got)
            if got and mid:
                out[mid] = statistics.median(got)
        after = values("kill", "after_to_before")
        if after:
            out["after"] = statistics.median(after)
        return out


# ---- flaps

class Progress:
    """Bytes over time, as urnic-perf --progress writes them."""

    def __init__(self, text):
        lines = text.splitlines()
        if not lines or lines[0] != "seconds,bytes":
            raise Failed("urnic-perf wrote no progress")
        cells = [line.split(",") for line in lines[1:]]
        self.at = [float(c[0]) for c in cells]
        self.bytes = [float(c[1]) for c in cells]

    def done(self, t):
        """Bytes at a time, between two samples by a straight line."""
        i = bisect.bisect_right(self.at, t)
        if i == 0 or i == len(self.at):
            raise Failed("urnic-perf: the rate was asked for at a time of which there is no progress")
        part = (t - self.at[i - 1]) / (self.at[i] - self.at[i - 1])
        return self.bytes[i - 1] + part * (self.bytes[i] - self.bytes[i - 1])

    def rate(self, begin, end):
        """Bytes a second: the median over pieces, so that one hiccup of the machine does not count."""
        n = max(1, round((end - begin) / BIN))
        edges = [self.done(begin + (end - begin) * i / n) for i in range(n + 1)]
        return statistics.median((b - a) * n / (end - begin) for a, b in zip(edges, edges[1:]))


class Log:
    """A log of steps (doc/reference/sessions.md) that is being written."""

    def __init__(self, path):
        self.path = path
        with open(path, "w", encoding="utf-8"):
            pass

    def text(self):
        with open(self.path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def moves(self):
        return self.text().count(MOVED)

    def uses(self):
        """The adapter here of the path in use: p or s."""
        found = re.findall(r" path=([PS])-[PS]" + MOVED, self.text())
        return found[-1].lower() if found else "p"

    def trusts(self, behind):
        """True when a path was trusted behind a place, and all four are now."""
        found = re.findall(r" trusted path=\S+ alive=(\d)$", self.text()[behind:], re.M)
        return bool(found) and found[-1] == "4"


class Flaps:
    """A stream of writes over a session whose adapters lose their links in turn."""

    def __init__(self, nodes, runner, window):
        self.nodes, self.runner, self.window = nodes, runner, window
        self.logs = {node: Log(nodes.path(f"flaps.{node}")) for node in "ab"}
        self.windows = [] # times between flaps

    def env(self, node):
        return {"URNIC_SESSION_LOG": self.logs[node].path, "URNIC_SESSION_PROBE": "20", "URNIC_SESSION_SILENCE": QUIET}

    def need(self, asks, what, text):
        if not until(lambda: asks.poll() is not None or what()) or asks.poll() is not None:
            raise Failed(f"urnic-perf: {text}")

    def rest(self):
        begin = time.time()
        time.sleep(self.window)
        self.windows.append((begin, time.time()))

    def flap(self, asks):
        """The link of a's adapter in use goes down, and comes back when the connection has moved."""
        a = self.logs["a"]
        moves, name = a.moves(), "a" + a.uses()
        self.nodes.port(name, "fail")
        try:
            self.need(asks, lambda: a.moves() > moves, f"the connection did not leave adapter {name}, whose link is down")
            behind = {node: len(log.text()) for node, log in self.logs.items()}
        finally:
            self.nodes.port(name, "up")
        self.need(asks, lambda: all(log.trusts(behind[node]) for node, log in self.logs.items()),
                  f"adapter {name} was not trusted again after a flap")

    def run(self, n):
        """returns: the rate before each flap, and after the last one"""
        table = self.nodes.path("flaps.csv")
        listener, port = self.nodes.listen("write_bw", env=self.env("b"))
        try:
            # Nothing is lost by urnic-perf itself, which tells when it has begun, writes its progress, and is
            # interrupted in the end.
            begun = self.nodes.path("flaps.begun")
            pathlib.Path(begun).unlink(missing_ok=True)
            asks = self.nodes.ask("write_bw", port, "--size", "64K", "--duration", "3600", "--fail-at",
                                  f"0.1:run=touch {shlex.quote(begun)}", "--progress", table, env=self.env("a"))
            try:
                self.need(asks, lambda: os.path.exists(begun), "the measurement did not begin")
                time.sleep(self.window)
                self.rest()
                for _ in range(n):
                    self.flap(asks)
                    self.rest()
                time.sleep(2 * BIN)
                asks.send_signal(signal.SIGINT)
                asks.wait(PATIENCE)
            finally:
                said = self.runner.end(asks)
            if asks.returncode != 128 + signal.SIGINT:
                raise Failed(f"urnic-perf ended with {asks.returncode}: {said[1].strip()[-200:]}")
            self.runner.finish(listener, PATIENCE)
        finally:
            self.runner.end(listener)
        with open(table, encoding="ascii") as f:
            progress = Progress(f.read())
        return [progress.rate(*window) for window in self.windows]


def of_flaps(rates):
    ratios = [b / a for a, b in zip(rates, rates[1:])]
    return {"flap": min(ratios), "flap_mid": statistics.median(ratios), "flap_all": rates[-1] / rates[0]}


# ---- all runs

def simulated(runner, program, seeds):
    """Runs of the simulation, with faults of all kinds at all points, healing and fail-back."""
    if not program or not os.access(program, os.X_OK):
        raise Missing("not built: there is no urnic-session-sim")
    process = runner.start([program, "--scenario", "storm", "--seeds", f"1..{seeds}", "--jobs", "2", "--keep-going", "--json"])
    out, err = process.communicate(timeout=PATIENCE + seeds)
    runner.ended(process, out, err)
    try:
        r = json.loads(out)
    except ValueError:
        raise Failed(f"urnic-session-sim ended with {process.returncode}: {err.strip()[-200:]}") from None
    atomics = r["atomics_known"] + r["atomics_unknown"]
    return {"once": r["passed"] / (r["passed"] + r["failed"]), "known": r["atomics_known"] / atomics,
            "again": r["sent_again"] / r["lost"], "sim_faults": r["faults"]}


class Runs:
    """Functions without arguments, by run."""

    def __init__(self, urnic, runner, seconds, quick):
        self.runner, self.programs, self.switch = runner, urnic.programs, urnic.switch
        self.seconds, self.quick = seconds, quick
        self.kills = getattr(urnic.programs, "kills", 0) or (KILLS_QUICK if quick else KILLS)
        self.others = min(self.kills, OTHERS_QUICK if quick else OTHERS)

    def losses(self):
        with Four(self.runner, self.programs, self.switch) as nodes:
            losses = Losses(nodes, self.runner, self.programs.out)
            losses.run(self.kills, self.others)
            return losses.figures()

    def flaps(self):
        with Four(self.runner, self.programs, self.switch) as nodes:
            flaps = Flaps(nodes, self.runner, WINDOW_QUICK if self.quick else WINDOW)
            return of_flaps(flaps.run(self.others))

    def simulated(self):
        return simulated(self.runner, self.programs.session_sim, SEEDS_QUICK if self.quick else SEEDS)

    def stream(self, name, bare):
        op, *args = COST[name]
        with One(self.runner, self.programs) as nodes:
            found = [nodes.pair(op, self.seconds, *args, bare=bare) for _ in range(PAIRS)]
        return {"gbps": statistics.median(r["gbps"] for r in found), "msg_rate": statistics.median(r["msg_rate"] for r in found),
                "us": statistics.median(r["lat_us"]["p50"] for r in found)}

    def set_up(self, bare):
        # A session's queue pairs have receives of their own, and so have the bare ones here.
        with One(self.runner, self.programs) as nodes:
            r = nodes.pair("send_bw", 0.05, "--size", "64", "--depth", "1", "--qps", str(SETUP), "--srq", "no", bare=bare)
        return {"conn_rate": SETUP / r["setup_seconds"]}

    def all(self):
        found = {"losses": self.losses, "flaps": self.flaps, "simulated": self.simulated}
        for bare in (True, False):
            word = "bare" if bare else "session"
            for name in COST:
                found[f"{name}, {word}"] = lambda name=name, bare=bare: self.stream(name, bare)
            found[f"set up, {word}"] = lambda bare=bare: self.set_up(bare)
        return found


def measures(runs, table):
    """{run: function of a row's key}: the function measures, unless the row does not need the run. A run of the first round
    is made for the first of its rows, and others have the same values."""
    wanted = {row.key: row.runs for row in table}
    known = {}

    def series(name, run):
        owner = next(row.key for row in table if name in row.runs)

        def measure(key):
            if name not in wanted[key]:
                return []
            try:
                if name not in ONCE or key == owner:
                    known.pop(name, None)
                    known[name] = run()
            except (KeyError, ValueError, ZeroDivisionError) as e:
                raise Failed(f"urnic-perf printed no result that can be read: {e!r}") from None
            return [(key, m, v) for m, v in known.get(name, {}).items()]
        return measure

    return {name: series(name, run) for name, run in runs.all().items()}
