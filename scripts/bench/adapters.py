# SPDX-License-Identifier: BSD-3-Clause
"""Two nodes with a session each: of one urnicd, or of four urnicd on a switch, whose adapters can be killed."""
import json
import os
import signal
import time

from attached import said
from runner import Failed, Missing, free_port
from urnic import PATIENT # a timeout only tells that the other side had no processor: no wire here loses frames

PATIENCE = 240           # seconds until something that has to come is there, also where other work has the cores
ADAPTERS = ("ap", "as", "bp", "bs") # primary adapter and backup of a, and of b
PORT = "p0"              # name of the port of each urnicd of four
QUIET = "30000"          # ms: no adapter is taken for silent because the machine is busy
# Threads that wait for each other share two cores.
IDLE = "log = off\nidle = pause\nempty_polls = 4\n"


def until(what, seconds=PATIENCE):
    """Wait until something is so. returns: False: it is not, after that time"""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


class Nodes:
    """Programs on two nodes with a session each. The caller must close it.

    All processes are of the bench's own session, because the kernel may share the cores out by sessions first
    (sched_autogroup): a program that polls gives its core to others of its own session only."""

    def __init__(self, runner, programs):
        programs.need()
        self.runner, self.programs = runner, programs
        self.process = {} # by name

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for process in self.process.values():
            self.runner.end(process, signal.SIGTERM if process.poll() is None else signal.SIGKILL)
        self.process = {}

    def path(self, name):
        return os.path.join(self.runner.dir, name)

    def socket(self, adapter):
        raise NotImplementedError

    def device(self, node):
        """URNIC_SESSION of a node."""
        return ",".join(f"{self.socket(node + which)}:{node}{which}" for which in "ps")

    def launch(self, name, command, words):
        """Start a urnicd, and wait until it says these words."""
        self.process[name] = self.runner.start(command, alone=False)
        said(self.process[name], words, PATIENCE)

    def side(self, op, node, bare):
        """Command line of a program. bare: with the primary adapter alone"""
        where = ["--attach", self.socket(node + "p"), "--node", node + "p"] if bare else ["--session", self.device(node)]
        return [self.programs.perf, op, "--json", *where]

    def listen(self, op, bare=False, env=None):
        """Start the side at node b. returns: process and port"""
        port = free_port()
        p = self.runner.start([*self.side(op, "b", bare), "--listen", str(port)], env=self.env(env), alone=False,
                              name="urnic-perf (listener)")
        self.runner.wait_listening(p, port, PATIENCE)
        return p, port

    def ask(self, op, port, *args, bare=False, env=None):
        """Start the side at node a. returns: the process"""
        return self.runner.start([*self.side(op, "a", bare), "--peer", f"127.0.0.1:{port}", *PATIENT, *args], env=self.env(env),
                                 alone=False)

    @staticmethod
    def env(more):
        return {"URNIC_SESSION_SILENCE": QUIET, **(more or {})}

    def pair(self, op, seconds, *args, bare=False, env=None):
        """Measure from a to b. returns: the JSON of the side at a"""
        listener, port = self.listen(op, bare, env)
        try:
            asks = self.ask(op, port, "--duration", f"{seconds:g}", *args, bare=bare, env=env)
            try:
                out = self.runner.finish(asks, PATIENCE + 10 * seconds)
            finally:
                self.runner.end(asks)
            self.runner.finish(listener, PATIENCE)
        finally:
            self.runner.end(listener)
        try:
            return json.loads(out)
        except ValueError:
            raise Failed(f"urnic-perf {op} printed no JSON") from None


class One(Nodes):
    """Both nodes are of one urnicd (config/sessions.ini), so that few threads share the cores."""

    def __init__(self, runner, programs):
        super().__init__(runner, programs)
        path = self.path("session.ini")
        with open(os.path.join(programs.project, "config/sessions.ini"), encoding="utf-8") as f:
            text = f.read()
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[urnicd]\nsocket = {self.socket('')}\n{IDLE}\n{text}")
        try:
            self.launch("urnicd", [programs.urnicd, "-c", path], "listening at")
        except Failed:
            self.close()
            raise

    def socket(self, adapter):
        return self.path("session.sock")


class Four(Nodes):
    """Each adapter is of a urnicd of its own; a switch joins them."""

    def __init__(self, runner, programs, switch):
        super().__init__(runner, programs)
        if not switch or not os.access(switch, os.X_OK):
            raise Missing("not built: there is no urnic-switch")
        command = [switch]
        for name in ADAPTERS:
            command += ["--port", f"{name}=memif:{self.path(name + '.memif')}"]
        try:
            self.process["switch"] = runner.start(command, alone=False)
            if not until(lambda: all(os.path.exists(self.path(n + ".memif")) for n in ADAPTERS)):
                raise Failed("urnic-switch has not made its ports")
            for name in ADAPTERS:
                self.begin(name)
        except (Failed, Missing):
            self.close()
            raise

    def close(self):
        # The clients of the switch go first.
        switch = self.process.pop("switch", None)
        super().close()
        if switch:
            self.runner.end(switch)

    def socket(self, adapter):
        return self.path(adapter + ".sock")

    def begin(self, name):
        """Start an adapter's urnicd, and wait for its link."""
        path = self.path(name + ".ini")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[urnicd]\nsocket = {self.socket(name)}\n{IDLE}"
                    f"[port {PORT}]\ndevice = net_memif0,role=client,socket={self.path(name + '.memif')}\n"
                    f"[adapter {name}]\nnode = {name[0]}\nport = {PORT}\nipv4 = 10.0.0.{ADAPTERS.index(name) + 1}\n")
        self.launch(name, [self.programs.urnicd, "-c", path], "listening at")
        if not until(lambda: self.linked(name)):
            raise Failed(f"urnicd: the port of adapter {name} has no link")

    def linked(self, name):
        out = self.runner.run([self.programs.urnicctl, "--socket", self.socket(name), "--json", "show", "port"], PATIENCE)
        return all(port["link"] for port in json.loads(out))

    def port(self, name, word):
        """`port PORT WORD` to an adapter's urnicd."""
        self.runner.run([self.programs.urnicctl, "--socket", self.socket(name), "port", PORT, word], PATIENCE)

    def again(self):
        """Start each urnicd that was killed or stopped anew."""
        for name in ADAPTERS:
            process = self.process[name]
            if process.poll() is None and stopped(process.pid):
                self.runner.end(process, signal.SIGKILL)
            if process.poll() is not None:
                self.runner.end(process)
                self.begin(name)


def stopped(pid):
    """True when a process is stopped by a signal."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        return f.read().rsplit(")", 1)[1].split()[0] == "T"
