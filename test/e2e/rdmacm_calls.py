#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Calls of RDMA-CM that no packaged program makes: a program of the system's headers on the drop-in librdmacm.so.1.

usage: rdmacm_calls.py urnicd urnic-run CONFIG_FOLDER rdmacm-calls [TEST...]"""

import os
import subprocess
import sys
import unittest

import dropin_common

PROGRAM = None


class Calls(dropin_common.Dropin):
    def case(self, name):
        """Run a case of the program on both nodes' devices."""
        p = subprocess.Popen([self.RUN, PROGRAM, name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.env)
        self.running.append(p)
        code, out = self.ends(p)
        self.assertEqual((code, out.splitlines()[-1:]), (0, ["good"]), out)

    def test_addrinfo(self):
        """rdma_getaddrinfo(): hints of each kind, addresses without a name, and errors."""
        self.case("addrinfo")

    def test_endpoint(self):
        """rdma_create_ep() on both sides: connections, datagrams, RDMA_PS_IB."""
        self.case("endpoint")

    def test_endpoint_bad(self):
        """Endpoints that can't be made say why, and leave nothing."""
        self.case("endpoint_bad")

    def test_queue_pair(self):
        """rdma_create_qp_ex(): own and given queues, ibv_wr_*(), and what is refused."""
        self.case("queue_pair")

    def test_notify(self):
        """rdma_notify() before the peer's RTU, in other states, and for other events."""
        self.case("notify")


if __name__ == "__main__":
    Calls.NICD, Calls.RUN, Calls.CONFIG, PROGRAM = map(os.path.abspath, sys.argv[1:5])
    dropin_common.ordinary_user(Calls.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[5:], verbosity=2)
