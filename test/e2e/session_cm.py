#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Connections that RDMA-CM makes, while primary adapters are lost and come back (FO-1, FO-19).

usage: session_cm.py URNICD URNIC_RUN URNICCTL URNIC_SWITCH [TEST...]"""

import os
import signal
import sys
import unittest

import dropin_common
import session_common


COUNT = "100000000" # more pings than any test has time for: the client is killed


class Cm(session_common.Session):
    FIXED = True # else requests go to the address of before until neighbours are asked again

    def setUp(self):
        super().setUp()
        self.env["URNIC_SESSION_PROBE"] = "20"

    def serve(self, *how):
        """Start rping's server on node a, and wait until it listens."""
        server = self.on("a", "rping", "-s", "-a", "10.0.0.1", *how)
        self.answers(server)
        return server

    def answers(self, server):
        """Wait until a client is served."""
        def served():
            self.assertIsNone(server.poll(), "the server has ended")
            code, self.out = self.ends(self.on("b", "rping", "-c", "-a", "10.0.0.1", "-C", "3", "-V"))
            return code == 0
        self.assertTrue(self.until(served), self.out)

    def kill(self, name):
        self.nicd[name].send_signal(signal.SIGKILL)
        self.nicd[name].communicate()

    def again(self, name):
        self.running.remove(self.nicd[name])
        self.nicd[name] = self.begin(name)
        self.assertTrue(self.until(lambda: self.linked(name)))

    def packets(self, name):
        return sum(port["rx_packets"] for port in dropin_common.Dropin.show(self.at(name), "port", "p0"))

    def busy(self, name):
        """Wait until an adapter carries traffic."""
        before = self.packets(name)
        self.assertTrue(self.until(lambda: self.packets(name) > before + 1000))

    def test_listener(self):
        """A server listens again after its primary adapter has come back, and again."""
        server = self.serve("-P")
        for _ in range(2):
            self.kill("ap")
            self.again("ap")
            self.answers(server)

    def outlives(self, name, backup):
        """A connection goes on without the adapter under its id, and its end sets the server free."""
        server = self.serve("-P")
        client = self.on("b", "rping", "-c", "-a", "10.0.0.1", "-C", COUNT, "-V")
        self.busy("ap")
        self.kill(name)
        self.busy(backup)
        self.assertIsNone(client.poll())
        client.kill()
        self.ends(client)
        self.assertIsNone(server.poll())
        self.again(name)
        self.answers(server)

    def test_server(self):
        """The primary adapter of the server is lost."""
        self.outlives("ap", "as")

    def test_client(self):
        """The primary adapter of the client is lost."""
        self.outlives("bp", "bs")


if __name__ == "__main__":
    Cm.NICD, Cm.RUN, Cm.CTL, Cm.SWITCH = map(os.path.abspath, sys.argv[1:5])
    dropin_common.ordinary_user(Cm.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[5:], verbosity=2)
