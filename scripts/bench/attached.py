# SPDX-License-Identifier: BSD-3-Clause
"""Run a urnicd with two nodes, and programs that are attached to this urnicd."""
import json
import os
import resource
import select
import signal
import sys
import time

from runner import Failed, Missing, last

PATIENCE = 30           # seconds until a program says that it is ready
ADDRESS_B = "10.0.0.2"  # of node b in config/two-nodes.ini
SERVICE = 7000          # service of connection management, of one dataplane
IDLE_EACH = 100         # clients of one process that does nothing else
SETTLE = 1              # seconds until busy threads have gone to sleep


class Programs:
    """Paths of the programs."""

    def __init__(self, project, build, perf, incast=None, out=None, session_sim=None, kills=0):
        self.project = project
        self.incast = incast # urnic-incast, or None
        self.out = out       # folder for the output
        self.session_sim = session_sim # urnic-session-sim, or None
        self.kills = kills   # adapters that section session kills; 0: as many as it would
        self.urnicd = os.path.join(build, "apps/urnicd/urnicd")
        self.urnicctl = os.path.join(build, "apps/urnicctl/urnicctl")
        self.run = os.path.join(build, "apps/urnic-run/urnic-run")
        self.perf = os.path.join(build, perf)

    def need(self):
        for path in (self.urnicd, self.urnicctl, self.perf):
            if not os.access(path, os.X_OK):
                raise Missing(f"not built: there is no {os.path.basename(path)}")


def more_descriptors():
    """A client has about ten; children inherit the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def said(process, words, seconds=PATIENCE):
    """Wait until a process prints these words on its standard error."""
    end = time.monotonic() + seconds
    text = b""
    while words.encode() not in text:
        ready = select.select([process.stderr], [], [], max(0, end - time.monotonic()))[0]
        piece = os.read(process.stderr.fileno(), 4096) if ready else b""
        text += piece
        if not piece:
            name = os.path.basename(process.args[0])
            how = f"did not say '{words}' within {seconds} s" if not ready else "ended early"
            raise Failed(f"{name} {how}{last(text.decode(errors='replace'))}")


def cpu_seconds(pid):
    """CPU time that all threads of a process have used: user and system."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        words = f.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Nicd:
    """A urnicd with config/two-nodes.ini, its defaults, and a socket of its own. The caller must close it.
    idle: of its engine, or None for the default"""

    def __init__(self, runner, programs, idle=None):
        programs.need()
        more_descriptors()
        self.runner = runner
        self.programs = programs
        self.socket = os.path.join(runner.dir, "nicd.sock")
        self.others = []
        path = os.path.join(runner.dir, "nicd.ini")
        with open(os.path.join(programs.project, "config/two-nodes.ini"), encoding="utf-8") as f:
            text = f.read()
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[urnicd]\nsocket = {self.socket}\n" + (f"idle = {idle}\n" if idle else "") + text)
        self.process = runner.start([programs.urnicd, "-c", path])
        try:
            said(self.process, "listening at")
        except Failed:
            self.close()
            raise

    def close(self):
        for p in self.others:
            self.runner.end(p)
        self.runner.end(self.process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def alive(self):
        if self.process.poll() is not None:
            raise Failed(f"urnicd ended with {self.process.returncode}"
                         f"{last(self.runner.end(self.process)[1])}")

    def pair(self, op, seconds, *args, copy=False):
        """Run two programs, one on each node. Returns the JSON of the one that measures. copy: the programs
        copy sources that are not in shared memory when they post requests."""
        environment = ["env", "URNIC_COPY=yes"] if copy else []
        both = [*environment, self.programs.perf, op, "--attach", self.socket, "--connect", "cm", "--json"]
        foreign = [a for a in args if a == "--foreign"]
        listener = self.runner.start([*both, "--node", "b", "--listen", str(SERVICE), *foreign])
        try:
            said(listener, "waiting for the other side")
            out = self.runner.run([*both, "--node", "a", "--peer", f"{ADDRESS_B}:{SERVICE}",
                                   "--duration", f"{seconds:g}", *args], 60 + 10 * seconds)
            self.runner.finish(listener, PATIENCE)
        finally:
            self.runner.end(listener)
        self.alive()
        return json.loads(out)

    def asleep(self, clients, node):
        """Start programs with so many attached clients, all asleep on their completion channels."""
        started = []
        while clients > 0:
            n = min(clients, IDLE_EACH)
            started.append(self.runner.start(
                [self.programs.perf, "idle", "--attach", self.socket, "--node", node,
                 "--clients", str(n)]))
            self.others.append(started[-1])
            clients -= n
        for p in started:
            said(p, "asleep")

    def cpu(self, seconds):
        """urnicd's share of a core while all clients are idle."""
        time.sleep(SETTLE)
        begin, used = time.monotonic(), cpu_seconds(self.process.pid)
        time.sleep(seconds)
        used = cpu_seconds(self.process.pid) - used
        self.alive()
        return used / (time.monotonic() - begin)

    def connect(self, connections):
        """Number of connections set up a second."""
        out = self.runner.run([self.programs.perf, "connect", "--attach", self.socket, "--conns",
                               str(connections), "--json"], 60 + connections / 100)
        return json.loads(out)["conn_rate"]


def kill(runner, programs, kills, count):
    """Kill one of `count` busy programs with SIGKILL, `kills` times. Returns the result of
    test/e2e/urnicd_kill.py, which prints its progress on standard error."""
    programs.need()
    command = [sys.executable, "-B", os.path.join(programs.project, "test/e2e/urnicd_kill.py"),
               programs.urnicd, programs.perf, "--urnicctl", programs.urnicctl, "--kills",
               str(kills), "--programs", str(count), "--json"]
    process = runner.start(command, said=runner.said)
    try:
        out, _ = process.communicate(timeout=120 + 5 * kills)
    finally:
        rest = runner.end(process, signal.SIGTERM)[0]
    try:
        return json.loads(out or rest)
    except ValueError:
        raise Failed(f"urnicd_kill.py ended with {process.returncode} and printed no JSON") from None
