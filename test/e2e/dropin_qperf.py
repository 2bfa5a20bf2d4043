#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Debian's qperf, by urnic-run (doc/reference/dropin.md), in a network namespace of its own.

usage: dropin_qperf.py urnicd urnic-run CONFIG_FOLDER urnicctl [TEST...]"""

import os
import subprocess
import sys
import unittest

import dropin_common
import dropin_wires

TRIES = 8
INSIDE = "URNIC_TEST_NAMESPACE"
RC = {name: value for value, names in {
    r"bw += +[\d.]+ .B/sec": "rc_bw rc_bi_bw rc_rdma_read_bw rc_rdma_write_bw",
    r"latency += +[\d.]+ [num]?s": "rc_lat rc_rdma_read_lat rc_rdma_write_lat rc_rdma_write_poll_lat",
    # The last two check the values as well.
    r"msg_rate += +[\d.]+ .?/sec": "rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap ver_rc_fetch_add",
}.items() for name in names.split()}


class Qperf(dropin_common.Dropin):
    NAMES = list(RC)

    def setUp(self):
        super().setUp()
        self.port = dropin_common.free_port()
        self.server = self.on("a", "qperf", "--listen_port", str(self.port))
        self.assertTrue(self.until(lambda: dropin_common.listens(self.port)))

    def ask(self, *args):
        return self.ends(self.on("b", "qperf", "10.0.0.1", "--listen_port", str(self.port), "--time", "1", *args))

    def test_rc(self):
        for name in self.NAMES:
            want = RC[name]
            with self.subTest(test=name):
                for _ in range(TRIES):
                    _, out = self.ask("-cm1", name)
                    # qperf 0.4.11 tells the client its port before it listens there.
                    if "unexpected event from RDMA CM: Event rejected" not in out:
                        break
                self.assertRegex(out, rf"\A{name}:\n +{want}\n\Z")

    def test_without_cm(self):
        """Without -cm1 qperf addresses its peer by LID, which RoCE has not; so with UD in each case."""
        self.refuses("failed to modify QP to RTR: Invalid argument", "rc_lat")
        for more in ((), ("-cm1",)):
            self.refuses("failed to create address handle: Invalid argument", *more, "ud_lat")

    def refuses(self, want, *args):
        """A test at whose beginning both ends fail, for one reason."""
        for _ in range(TRIES):
            _, out = self.ask(*args)
            # A server whose client went first may have no words for it.
            if "server: \n" not in out:
                break
        self.assertIn(want, out)


class FarQperf(dropin_wires.Far, Qperf):
    """Each test takes a second: one of each kind."""

    NAMES = ["rc_bw", "rc_lat", "rc_rdma_read_lat", "rc_rdma_write_bw", "rc_compare_swap_mr", "ver_rc_fetch_add"]
    test_without_cm = None


class LossyQperf(dropin_wires.Lossy, Qperf):
    NAMES = ["rc_bw", "rc_lat"]
    test_without_cm = None


def enter():
    """Start anew in a network namespace that has the address of node a: qperf has one address for TCP and RDMA-CM."""
    how = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--user", "--map-root-user"]
    os.environ[INSIDE] = "root" if os.geteuid() == 0 else "user"
    os.execvp(how[0], [*how, sys.executable, *sys.argv])


if __name__ == "__main__":
    if INSIDE not in os.environ:
        enter()
    for command in ("link set lo up", "address add 10.0.0.1/32 dev lo"):
        subprocess.run(["ip", *command.split()], check=True)
    Qperf.NICD, Qperf.RUN, Qperf.CONFIG, Qperf.CTL = map(os.path.abspath, sys.argv[1:5])
    if os.environ[INSIDE] == "root":
        dropin_common.ordinary_user(Qperf.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[5:], verbosity=2)
