# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's TCP between two network namespaces, through urnic-switch over TAP. The switch
drops packets with the code, and so the random model, of urnic's impaired wires.

Each namespace belongs to a process that sleeps, and one to the switch: the namespaces are removed when
the processes end, and no other process sees their interfaces."""
import os
import select
import shutil
import time

import parse
from runner import Failed, Missing, last, listens

ADDRESS = ("192.0.2.1", "192.0.2.2")
TAPS = ("urnic0", "urnic1")
PORT = 5201
PATIENCE = 20  # seconds until interfaces are there, and a server listens


def wait(what, seen, process):
    """Wait until seen() is true; raises Failed when the process ends or the time is up."""
    end = time.monotonic() + PATIENCE
    while not seen():
        if process.poll() is not None:
            err = process.communicate()[1]
            raise Failed(f"{what}: ended with {process.returncode}{last(err)}")
        if time.monotonic() > end:
            raise Failed(f"{what}: not within {PATIENCE} s")
        time.sleep(0.01)


def has_interface(pid, name):
    try:
        with open(f"/proc/{pid}/net/dev", encoding="ascii") as f:
            return f"{name}:" in f.read()
    except OSError:
        return False


def own_network(pid):
    """True when the process has got a network namespace of its own."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net")
    except OSError:
        return False


class Host:
    """A kernel host on a TAP port of the switch."""

    def __init__(self, runner, switch, index):
        self.runner = runner
        self.process = runner.start(["unshare", "--net", "sleep", "1000"])
        wait("a network namespace", lambda: own_network(self.process.pid), self.process)
        tap = TAPS[index]
        runner.run(["nsenter", "--net", "--target", str(switch.pid), "ip", "link", "set", "dev",
                    tap, "netns", str(self.process.pid)], PATIENCE)
        for command in (["link", "set", "dev", "lo", "up"],
                        ["addr", "add", ADDRESS[index] + "/24", "dev", tap],
                        ["link", "set", "dev", tap, "up"]):
            runner.run(self.inside("ip", *command), PATIENCE)

    def inside(self, *command):
        return ["nsenter", "--net", "--target", str(self.process.pid), *command]


def iperf3(runner, program, loss, seconds):
    """Goodput of one TCP stream with this share of packets lost, in percent, in each direction."""
    if not os.access(program, os.X_OK):
        raise Missing("not built: there is no urnic-switch")
    if os.geteuid() != 0:
        raise Missing("TAP interfaces and network namespaces want root")
    for tool in ("ip", "nsenter", "unshare", "iperf3"):
        if shutil.which(tool) is None:
            raise Missing(f"there is no {tool}; scripts/setup.sh --bench installs it")
    started = []
    try:
        command = ["unshare", "--net", program, "--idle", "pause"]
        for name in TAPS:
            command += ["--port", f"tap:{name}", "--impair", f"{name}.in:drop={loss},seed=1"]
        switch = runner.start(command)
        started.append(switch)
        # The switch prints a line when all its ports are up.
        wait("urnic-switch", lambda: select.select([switch.stderr], [], [], 0)[0], switch)
        wait("urnic-switch", lambda: all(has_interface(switch.pid, t) for t in TAPS), switch)
        hosts = []
        for i in range(2):
            hosts.append(Host(runner, switch, i))
            started.append(hosts[i].process)
        server = runner.start(hosts[1].inside("iperf3", "-s", "-1", "-p", str(PORT)),
                              runner.cores[1])
        started.append(server)
        wait("iperf3 as a server", lambda: listens(PORT, hosts[1].process.pid), server)
        client = hosts[0].inside("iperf3", "-c", ADDRESS[1], "-p", str(PORT), "-t",
                                 str(max(2, round(seconds))), "-J")
        out = runner.run(client, 60 + seconds, runner.cores[0])
        return parse.iperf3(out, 131072)
    except ValueError as e:
        raise Failed(f"iperf3 printed no result that can be read: {e}") from None
    finally:
        for process in reversed(started):
            runner.end(process)
