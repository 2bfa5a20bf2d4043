# SPDX-License-Identifier: BSD-3-Clause
"""Many senders into one port over net_ring: ports, rates of one window, the queue, with answers made up here.
usage: test_congestion.py MODULES"""
import sys
import tempfile
import types
import unittest

sys.path.insert(0, sys.argv.pop(1))
import congestion # pylint: disable=wrong-import-position
from runner import Failed # pylint: disable=wrong-import-position

PORTS = 32 # the limit of Debian's DPDK
SENDERS = (2, 4, 8, 16)


class Process:
    def __init__(self, code=None):
        self.code = code

    def poll(self):
        return self.code


class Views(congestion.Views):
    """Each queue pair acknowledges `step` packets between two looks; its PSNs begin at `first`."""

    def __init__(self, pairs, step, first=0):
        self.pairs, self.step, self.first = pairs, step, first
        self.looks = 0

    def ask(self, command):
        name, _, what = command.partition(",")
        if name == "/urnic/switch/info":
            return {"queue0_bytes": 4000}
        if name == "/urnic/qp/list":
            return list(range(self.pairs.get(what, 0)))
        self.looks += 1
        return {"una_psn": (self.first + self.looks * self.step) % congestion.PSNS, "first_sq_psn": self.first}


class Ring(unittest.TestCase):
    def test_ports(self):
        """Any number of senders has its queue pairs, on nodes that are there and fit into DPDK's ports."""
        programs = types.SimpleNamespace(perf="urnic-perf")
        for senders in (1, 3, *SENDERS):
            commands = congestion.senders_of(programs, "/s", senders)
            text = congestion.configuration("/s", len(commands), congestion.WIRES[congestion.DRAWN])
            self.assertLessEqual(2 * text.count("[adapter "), PORTS)
            self.assertEqual(sum(int(c[c.index("--qps") + 1]) for c in commands), senders)
            for c in commands:
                self.assertIn(f"node = {c[c.index('--nodes') + 1].split(',')[0]}\n", text)

    def test_window(self):
        """Rates are of packets that were acknowledged, also when PSNs wrap; the queue is what the switch says."""
        for first in (0, congestion.PSNS - 8):
            views = Views({"s00": 1, "s10": 2}, 1, first)
            rates, looks = congestion.window(views, 2, 3, [Process(), Process()], 0.1)
            self.assertEqual(len(rates), 3)
            for rate in rates: # looks at all queue pairs lie between the first and the last at one
                self.assertLessEqual(rate, views.looks * 8 * congestion.RING_MTU / 0.1)
                self.assertGreater(rate, 0)
            self.assertEqual({w for _, w, _ in looks}, {4000})
            self.assertTrue(all(r > 0 for r in looks[-1][2])) # a rate of the last RING_RATES

    def test_all_send(self):
        """A sender that ends before all send, or in the window, fails the measurement."""
        with self.assertRaises(Failed):
            congestion.window(Views({"s00": 1}, 1), 2, 2, [Process(), Process(1)], 0.1)
        with self.assertRaises(Failed):
            congestion.window(Views({"s00": 1, "s10": 1}, 1), 2, 2, [Process(), Process(1)], 0.01)

    def test_save(self):
        """The data have the columns that are drawn: us, bytes, Mbit/s of each sender."""
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as f:
            congestion.save(f.name, [(0.002, 8192, [1e9, 5e8]), (0.004, 0, [0, 0])])
            self.assertEqual(f.read(), "2000 8192 1000.0 500.0\n4000 0 0.0 0.0\n")

    def test_jain(self):
        self.assertEqual(congestion.jain([3, 3, 3]), 1)
        self.assertAlmostEqual(congestion.jain([1, 0, 0, 0]), 0.25)


if __name__ == "__main__":
    unittest.main()
