#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tables of urnicctl: heads when there is no row, rates of ports, counters of switches that are cleared.

usage: urnicctl_tables.py URNICCTL URNICD URNIC_PERF CONFIG_FOLDER"""

import json
import os
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from urnicd_common import LONG, Nicd, SECONDS


class Tables(Nicd):
    CTL = None

    def ctl(self, *words):
        p = subprocess.run([self.CTL, "--socket", self.socket, *words], env=self.env, capture_output=True, text=True,
                           timeout=SECONDS, check=False)
        self.assertEqual((p.returncode, p.stderr), (0, ""), words)
        return p.stdout

    def rows(self, *words):
        return json.loads(self.ctl("--json", *words) or "[]")

    def test_heads(self):
        """A table without a row has its heads, which are those of a table with rows; JSON has none."""
        p, _ = self.start()
        empty = {what: self.ctl("show", what) for what in ("qp", "errors", "cq", "srq", "mr", "client", "msg", "am")}
        self.assertEqual(self.rows("show", "qp"), [])
        self.assertEqual(self.ctl("reload").split(), ["section", "key", "from", "to", "when"])
        perf = self.popen(self.PERF, "write_bw", "--attach", self.socket, "--duration", LONG)
        self.assertTrue(self.until(lambda: self.rows("show", "qp", "state", "RTS")))
        self.ctl("port", "a0", "down")
        self.assertTrue(self.until(lambda: self.rows("show", "errors")))
        shown = {what: self.ctl("show", what) for what in ("errors", "switch", "address", "neigh")}
        self.assertEqual(empty["errors"].split(), shown["errors"].splitlines()[0].split())
        perf.communicate(timeout=SECONDS)
        self.ctl("port", "a0", "up")
        perf = self.popen(self.PERF, "write_bw", "--attach", self.socket, "--duration", LONG)
        self.assertTrue(self.until(lambda: self.rows("show", "qp", "state", "RTS")))
        for what in ("qp", "cq", "mr", "client"):
            text = self.ctl("show", what)
            self.assertGreater(text.count("\n"), 1, what)
            self.assertEqual(empty[what].split(), text.splitlines()[0].split(), what)
            self.assertEqual(empty[what].count("\n"), 1)
        for what in ("srq", "msg", "am"):
            self.assertEqual(empty[what].count("\n"), 1)
        self.stop(p)

    def test_heads_of_the_network(self):
        """Tables of the network without a row: no switch, no neighbour, and no prefix that makes a route."""
        path = os.path.join(self.dir.name, "none.ini")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[urnicd]\nsocket = {self.socket}\n{self.QUIET}idle = pause\nempty_polls = 4\n"
                    "[port p0]\ndevice = net_null0\n[adapter a0]\nport = p0\nipv4 = 10.0.0.1\n")
        p = self.popen(self.NICD, "-c", path, cwd=self.dir.name)
        self.listens(p)
        for what, head in (("switch", "switch port up switch_link pfc rx_packets tx_packets drops ecn_marked queue_bytes "
                                      "queue_peak pause_tx pause_rx marked impair_in impair_out"),
                           ("address", "switch mac port static"), ("neigh", "adapter address mac state static routes peer"),
                           ("route", "adapter prefix via mac state from lifetime_s")):
            text = self.ctl("show", what)
            self.assertEqual((text.split(), text.count("\n")), (head.split(), 1), what)
            self.assertEqual(self.rows("show", what), [])
        self.stop(p)

    def test_rates(self):
        """Rates of a port are those of its traffic, and fall to nothing without any."""
        p, _ = self.start()
        self.assertTrue(self.until(lambda: {r["rx_pps"] for r in self.rows("show", "port")} == {0}))
        perf = self.popen(self.PERF, "write_bw", "--attach", self.socket, "--duration", LONG)

        def busy():
            ports = {r["name"]: r for r in self.rows("show", "port")}
            return (ports["a0"]["tx_mbps"] > 0 and ports["b0"]["rx_mbps"] > 0 and
                    all(ports[a][d] > 0 for a in ("a0", "b0") for d in ("rx_pps", "tx_pps")) and ports)

        ports = self.until(busy)
        self.assertTrue(ports)
        # Node a writes: its frames are longer than their acknowledgements, and the other side gets them.
        self.assertGreater(ports["a0"]["tx_mbps"], ports["a0"]["rx_mbps"])
        self.assertGreater(ports["b0"]["rx_mbps"], ports["b0"]["tx_mbps"])
        perf.kill()
        perf.communicate()
        self.assertTrue(self.until(lambda: {r["tx_mbps"] + r["rx_mbps"] for r in self.rows("show", "port")} == {0}))
        self.stop(p)

    def test_clear_switch(self):
        """Counters of a switch begin anew for people, but not its queues' peaks."""
        p, _ = self.start()
        self.perf("send_lat", "--iters", "50")
        before = {r["port"]: r for r in self.rows("show", "switch")}
        self.assertGreaterEqual(before["a0"]["rx_packets"], 50)
        self.ctl("clear", "counters")
        after = {r["port"]: r for r in self.rows("show", "switch")}
        self.assertLess(after["a0"]["rx_packets"], 50)
        self.assertEqual(after["a0"]["queue_peak"], before["a0"]["queue_peak"])
        card = {r["port"]: r for r in self.rows("show", "switch", "wire", "all")}
        self.assertLess(card["b0"]["tx_packets"], 50)
        self.perf("send_lat", "--iters", "50")
        again = {r["port"]: r for r in self.rows("show", "switch")}
        self.assertGreaterEqual(again["a0"]["rx_packets"], 50)
        self.assertLess(again["a0"]["rx_packets"], before["a0"]["rx_packets"] + 50)
        self.stop(p)


if __name__ == "__main__":
    Tables.CTL, Nicd.NICD, Nicd.PERF, Nicd.CONFIG = map(os.path.abspath, sys.argv[1:5])
    unittest.main(argv=sys.argv[:1], verbosity=2)
