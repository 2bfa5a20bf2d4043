#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Adapters with two ports on two linked switches, under sessions: the loss of a port, a cable or a switch is nothing to
the session, the loss of an adapter is (FO-5, FO-20).

usage: session_ports.py URNICD URNIC_RUN URNICCTL URNIC_SWITCH SESSION_STREAM CONFIG_FOLDER [TEST...]"""

import os
import re
import signal
import subprocess
import sys
import unittest

import dropin_common
import session_common
import session_heal
import urnicd_common

PORTS = ("p0", "p1") # ports of each adapter; pN is on switch N


class Two(session_heal.Heal):
    def port(self, name, port, how):
        subprocess.run([self.CTL, "--socket", self.path(name, "sock"), "port", port, how], env=self.env, check=True,
                       capture_output=True, text=True)

    def shown(self, name):
        """Show the ports of an adapter. returns: a dict for each"""
        return [p for p in dropin_common.Dropin.show(self.at(name), "port") if p["adapter"] == name]

    def uses(self, port, *names):
        """Wait until adapters use their ports of a name, which may end in that."""
        self.assertTrue(self.until(lambda: all([p["name"].endswith(port) for p in self.shown(name) if p["use"] == "active"]
                                               == [True] for name in names)), [self.shown(name) for name in names])

    def quiet(self):
        """Nothing was lost for the session. Retries of a busy machine may move traffic; a link or an adapter may not."""
        self.assertFalse([line for line in self.told() if re.search(r"because the link|has its link|adapter \w+ is lost", line)],
                         self.told())

    def migrates(self, text):
        """A session notices a loss, and moves."""
        self.assertTrue(self.until(lambda: self.logs[0].count(text)), self.told())
        self.assertTrue(self.until(lambda: self.logs[0].count("MIGRATED")), self.told())


class Ports(Two):
    """Four urnicd with an adapter each, between two switches of their own."""

    def begin_switch(self, n):
        """Start a switch with a port for each adapter, and one for the cable to the other switch."""
        ports = [f"{name}=memif:{self.path(name, PORTS[n])}" for name in session_common.ADAPTERS]
        ports.append(f"link=memif:{self.path('link', 'memif')}" + (",client" if n else ""))
        sockets = [self.path(name, PORTS[n]) for name in session_common.ADAPTERS]
        for path in sockets + [self.path("link", "memif")] * (n == 0): # a switch that was killed leaves its own
            if os.path.exists(path):
                os.unlink(path)
        switch = self.popen(self.SWITCH, *(arg for port in ports for arg in ("--port", port)), cwd=self.dir.name)
        self.assertTrue(self.until(lambda: all(map(os.path.exists, sockets))), switch.poll())
        return switch

    def begin_switches(self):
        return [self.begin_switch(n) for n in range(2)]

    def config(self, name=None, **lines):
        path = self.path(name, "ini")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[urnicd]\nsocket = {self.path(name, 'sock')}\nlog = off, port:notice\n"
                    f"log_file = {self.path(name, 'log')}\nidle = pause\nempty_polls = 4\n")
            for n, port in enumerate(PORTS):
                f.write(f"[port {port}]\ndevice = net_memif{n},role=client,socket={self.path(name, port)}\n")
            f.write(f"[adapter {name}]\nnode = {name[0]}\nport = {', '.join(PORTS)}\nfailback = 0\n"
                    f"ipv4 = 10.0.0.{session_common.ADAPTERS.index(name) + 1}\n")
        return path

    def complaints(self, err):
        # The driver says each time that a switch is away.
        return re.sub(r"memif_connect_client\(\): Failed to connect.*\n", "", err)

    def log_of(self, name):
        with open(self.path(name, "log"), encoding="utf-8") as f:
            return f.read()

    def both_up(self, *names):
        """Wait until both ports of adapters have links."""
        self.assertTrue(self.until(lambda: all(p["link"] for name in names for p in self.shown(name))),
                        ([s.poll() for s in self.switches], [self.shown(name) for name in names]))

    def lose_switch(self, n):
        """Kill a switch by SIGKILL: each adapter uses its other port."""
        self.switches[n].send_signal(signal.SIGKILL)
        self.switches[n].communicate()
        self.uses(PORTS[not n], *session_common.ADAPTERS)

    def settle(self):
        """Have all adapters use the first switch, whichever was there first."""
        self.both_up(*session_common.ADAPTERS)
        for name in session_common.ADAPTERS:
            self.port(name, "p1", "fail")
            self.uses("p0", name)
            self.port(name, "p1", "up")
        self.both_up(*session_common.ADAPTERS)

    def test_parts(self):
        """A port, the other one and a switch are lost while messages are checked; then the adapter is, and the session moves."""
        self.settle()
        pair = self.begin_pair()
        self.more(pair)
        # One end is on the second switch, the other on the first.
        self.port("ap", "p0", "fail")
        self.uses("p1", "ap")
        self.more(pair)
        self.port("ap", "p0", "up")
        self.both_up("ap")
        self.port("ap", "p1", "fail")
        self.uses("p0", "ap")
        self.more(pair)
        self.port("ap", "p1", "up")
        self.both_up("ap")
        self.lose_switch(0)
        self.more(pair)
        self.quiet()
        adapter = dropin_common.Dropin.show(self.at("ap"), "adapter", "ap")[0]
        self.assertEqual((adapter["active_port"], adapter["link"]), ("p1", True))
        self.assertGreaterEqual(adapter["port_moves"], 3)
        self.assertTrue(self.until(lambda: "adapter ap uses port p1 instead of p0: no link there" in self.log_of("ap")),
                        self.log_of("ap"))
        self.kill("ap")
        self.migrates("lost path=P-P")
        self.more(pair)
        self.finish(pair)

    def test_switch_again(self):
        """A switch is lost and comes back, and carries all when the other one is lost: the session has no part in it."""
        self.settle()
        pair = self.begin_pair()
        self.more(pair)
        self.lose_switch(0)
        self.more(pair)
        self.running.remove(self.switches[0])
        self.switches[0] = self.begin_switch(0)
        self.both_up(*session_common.ADAPTERS)
        self.uses("p1", *session_common.ADAPTERS) # a port in use stays: failback is 0
        self.more(pair)
        self.lose_switch(1)
        self.more(pair)
        self.quiet()
        for name in session_common.ADAPTERS:
            adapter = dropin_common.Dropin.show(self.at(name), "adapter", name)[0]
            self.assertEqual((adapter["active_port"], adapter["link"]), ("p0", True), name)
        self.finish(pair)

    def test_both(self):
        """The loss of both ports is that of the link; one of them is enough to come back."""
        self.settle()
        pair = self.begin_pair()
        self.more(pair)
        marks = self.marks()
        self.port("ap", "p0", "fail")
        self.uses("p1", "ap")
        self.quiet()
        self.port("ap", "p1", "down")
        self.migrates("adapter ap has its link down")
        self.more(pair)
        self.port("ap", "p1", "up")
        self.assertTrue(self.until(lambda: self.logs[0].count("adapter ap has its link up")), self.told())
        self.heals(marks)
        self.more(pair)
        self.finish(pair)


class Ready(Two):
    """config/two-ports.ini: all adapters and both switches in one process."""
    CONFIG = None # set by the script

    def setUp(self):
        urnicd_common.Nicd.setUp(self)
        self.env.update(self.OPTIONS)
        self.switches = []
        self.nicd = {"all": self.start()[0]}

    def path(self, name, what):
        return os.path.join(self.dir.name, f"all.{what}")

    def config(self, **lines):
        path = self.path("all", "ini")
        with open(os.path.join(self.CONFIG, "two-ports.ini"), encoding="utf-8") as f:
            text = f.read().replace("failback = 5s", "failback = 100ms")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[urnicd]\nsocket = {self.path('all', 'sock')}\nlog = off\nidle = pause\nempty_polls = 4\n{text}")
        return path

    def test_ready(self):
        """A port is lost and used again; the first switch is lost for all; then both ports of one adapter are."""
        self.uses(".first", "ap", "bp")
        self.uses(".second", "as", "bs")
        pair = self.begin_pair()
        self.more(pair)
        self.port("ap", "ap.first", "fail")
        self.uses(".second", "ap")
        self.more(pair)
        self.port("ap", "ap.first", "up")
        self.uses(".first", "ap") # after a while
        self.more(pair)
        for name in session_common.ADAPTERS:
            self.port(name, f"{name}.first", "fail")
        self.uses(".second", *session_common.ADAPTERS)
        self.more(pair)
        self.quiet()
        self.port("ap", "ap.second", "fail")
        self.migrates("adapter ap has its link down")
        self.more(pair)
        self.finish(pair)


if __name__ == "__main__":
    Two.NICD, Two.RUN, Two.CTL, Two.SWITCH, Two.STREAM, Ready.CONFIG = map(os.path.abspath, sys.argv[1:7])
    dropin_common.ordinary_user(Two.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[7:], verbosity=2)
