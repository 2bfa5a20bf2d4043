#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Adapters with two ports on two linked switches, under sessions: the loss of a port, a cable or a switch is nothing to
the session, the loss of an adapter is (FO-5, FO-20).

usage: session_ports.py URNICD URNIC_RUN URNICCTL URNIC_SWITCH SESSION_STREAM [TEST...]"""

import os
import re
import signal
import subprocess
import sys
import unittest

import dropin_common
import session_common
import session_heal

PORTS = ("p0", "p1") # ports of each adapter; pN is on switch N


class Ports(session_heal.Heal):
    FAILBACK = "100ms"

    def begin_switch(self, n):
        """Start a switch with a port for each adapter, and one for the cable to the other switch."""
        ports = [f"{name}=memif:{self.path(name, PORTS[n])}" for name in session_common.ADAPTERS]
        ports.append(f"link=memif:{self.path('link', 'memif')}" + (",client" if n else ""))
        switch = self.popen(self.SWITCH, *(arg for port in ports for arg in ("--port", port)), cwd=self.dir.name)
        self.assertTrue(self.until(lambda: all(os.path.exists(self.path(name, PORTS[n]))
                                               for name in session_common.ADAPTERS)))
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
            f.write(f"[adapter {name}]\nnode = {name[0]}\nport = {', '.join(PORTS)}\nfailback = {self.FAILBACK}\n"
                    f"ipv4 = 10.0.0.{session_common.ADAPTERS.index(name) + 1}\n")
        return path

    def port(self, name, port, how):
        subprocess.run([self.CTL, "--socket", self.path(name, "sock"), "port", port, how], env=self.env, check=True,
                       capture_output=True, text=True)

    def in_use(self, name):
        """returns: the port that an adapter uses"""
        return [p["name"] for p in dropin_common.Dropin.show(self.at(name), "port") if p["use"] == "active"]

    def uses(self, port, *names):
        self.assertTrue(self.until(lambda: all(self.in_use(name) == [port] for name in names)),
                        [(name, dropin_common.Dropin.show(self.at(name), "port")) for name in names])

    def log_of(self, name):
        with open(self.path(name, "log"), encoding="utf-8") as f:
            return f.read()

    def quiet(self):
        """Nothing was lost for the session. Retries of a busy machine may move traffic; a link or an adapter may not."""
        self.assertFalse([line for line in self.told() if re.search(r"because the link|has its link|adapter \w+ is lost", line)],
                         self.told())

    def test_parts(self):
        """A port, a cable and a switch are lost while messages are checked; then the adapter is, and the session moves."""
        self.uses("p0", *session_common.ADAPTERS)
        pair = self.begin_pair()
        self.more(pair)
        # One end on the second switch, the other on the first.
        self.port("ap", "p0", "fail")
        self.uses("p1", "ap")
        self.more(pair)
        self.port("ap", "p0", "up")
        self.uses("p0", "ap")
        self.more(pair)
        # The first switch dies, and comes back.
        self.switches[0].send_signal(signal.SIGKILL)
        self.switches[0].communicate()
        self.uses("p1", *session_common.ADAPTERS)
        self.more(pair)
        self.running.remove(self.switches[0])
        self.switches[0] = self.begin_switch(0)
        self.uses("p0", *session_common.ADAPTERS)
        self.more(pair)
        self.quiet()
        adapter = dropin_common.Dropin.show(self.at("ap"), "adapter", "ap")[0]
        self.assertEqual((adapter["port_moves"], adapter["active_port"], adapter["link"]), (4, "p0", True))
        self.assertTrue(self.until(lambda: "adapter ap uses port p1 instead of p0: no link there" in self.log_of("ap")),
                        self.log_of("ap"))
        # The whole adapter.
        self.kill("ap")
        self.more(pair)
        self.assertTrue(self.until(lambda: self.logs[0].count("MIGRATED")), self.told())
        self.finish(pair)

    def test_both(self):
        """The loss of both ports is that of the link; one of them is enough to come back."""
        pair = self.begin_pair()
        self.more(pair)
        marks = self.marks()
        self.port("ap", "p0", "fail")
        self.uses("p1", "ap")
        self.quiet()
        self.port("ap", "p1", "down")
        self.assertTrue(self.until(lambda: self.logs[0].count("adapter ap has its link down")), self.told())
        self.more(pair)
        self.port("ap", "p1", "up")
        self.assertTrue(self.until(lambda: self.logs[0].count("adapter ap has its link up")), self.told())
        self.heals(marks)
        self.more(pair)
        self.finish(pair)


if __name__ == "__main__":
    Ports.NICD, Ports.RUN, Ports.CTL, Ports.SWITCH, Ports.STREAM = map(os.path.abspath, sys.argv[1:6])
    dropin_common.ordinary_user(Ports.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[6:], verbosity=2)
