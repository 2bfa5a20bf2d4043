#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Debian's libfabric over the drop-in libraries: its provider verbs under fi_info and fi_pingpong, which checks all bytes
(doc/reference/dropin.md).

usage: dropin_fabric.py urnicd urnic-run CONFIG_FOLDER [TEST...]"""

import os
import sys
import unittest

import dropin_common


class Fabric(dropin_common.Dropin):
    def pingpong(self, provider, endpoint, *options):
        """Run a pair of all sizes; the programs find each other over TCP."""
        command = ("fi_pingpong", "-p", provider, "-e", endpoint, "-c", "-I", "10", *options)
        for _ in range(dropin_common.TRIES):
            port = str(dropin_common.free_port())
            server = self.on("a", *command, "-B", port)
            self.until(lambda at=int(port), p=server: dropin_common.listens(at) or p.poll() is not None)
            client = self.on("b", *command, "-P", port, "127.0.0.1")
            both = [self.ends(client), self.ends(server)]
            if not any(self.unlucky(*one) for one in both):
                break
        for code, out in both:
            self.assertEqual(code, 0, (command, both))
            self.assertNotIn("error", out)
        return both[0][1]

    def test_info(self):
        """The provider has the device, with its address."""
        code, out = self.ends(self.on("a", "fi_info", "-v", "-p", "verbs", "-t", "FI_EP_MSG"))
        self.assertEqual(code, 0, out)
        self.assertRegex(out, r"fi_sockaddr_in://10\.0\.0\.1:")
        self.assertIn("name: a0", out)

    def test_msg(self):
        self.assertRegex(self.pingpong("verbs", "msg"), r"\n1m ")

    def test_dgram(self):
        """Datagrams can be lost; on one switch without a bound they are not."""
        self.assertRegex(self.pingpong("verbs", "dgram"), r"\n4k ")

    def test_rxm(self):
        self.assertRegex(self.pingpong("verbs;ofi_rxm", "rdm"), r"\n1m ")

    def test_rxm_tagged(self):
        self.assertRegex(self.pingpong("verbs;ofi_rxm", "rdm", "-m", "tagged"), r"\n1m ")

    def test_rxd(self):
        self.assertRegex(self.pingpong("verbs;ofi_rxd", "rdm"), r"\n1m ")


if __name__ == "__main__":
    Fabric.NICD, Fabric.RUN, Fabric.CONFIG = map(os.path.abspath, sys.argv[1:4])
    dropin_common.ordinary_user(Fabric.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=2)
