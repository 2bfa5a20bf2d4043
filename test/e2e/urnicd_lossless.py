#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A lossless switch between adapters of a urnicd: two senders into a slow wire lose nothing.

The same senders lose frames when the switch is not lossless and its queue is as short, so the test can fail.
"""

import json
import os
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True  # no cache of urnicd_common
from urnicd_common import Nicd, SECONDS

SLOW = "impair c0.out = rate=500M, queue=128\n"


class Lossless(Nicd):
    CTL = None
    lossless = True
    share = "64k" # less than a window: senders are stopped

    def config(self, daemon="", eal="", wire="", a0="", b0=""):
        """lossless.ini with a socket of our own, and a wire to c0 that is slow; lossless or not."""
        path = os.path.join(self.dir.name, "c.ini")
        with open(os.path.join(self.CONFIG, "lossless.ini"), encoding="utf-8") as f:
            text = f.read().replace("[switch wire]\n", f"[switch wire]\n{SLOW}{wire}")
        # The watchdog would drop what a machine without a free processor held up: it is too long to take part.
        for line, ours in (("\nshare     = 2M\n", f"\nshare = {self.share}\n"), ("\n#watchdog = 200ms\n", "\nwatchdog = 60s\n")):
            self.assertIn(line, text)
            text = text.replace(line, ours)
        if not self.lossless:
            text = text.replace("\nlossless =", "\n#lossless =").replace("\nshare =", "\n#share =").replace("\nwatchdog =", "\n#watchdog =")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[urnicd]\nsocket = {self.socket}\nidle = pause\nempty_polls = 4\n{text}")
        return path

    def show(self, *words):
        p = subprocess.run([self.CTL, "-s", self.socket + ".ctl", "--json", "show", *words], env=self.env,
                           capture_output=True, text=True, timeout=SECONDS, check=False)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)

    def incast(self):
        """Let nodes a and b write to c at the same time. returns: counters of adapters, ports of the switch"""
        p, _ = self.start()
        both = [self.popen(self.PERF, "write_bw", "--attach", self.socket, "--json", "--nodes", f"{node},c",
                           "--qps", "4", "--duration", "1", "--timeout", "18") for node in "ab"]
        for perf in both:
            out, err = perf.communicate(timeout=SECONDS)
            self.assertEqual(perf.returncode, 0, err)
            self.assertGreater(json.loads(out)["gbps"], 0.05 if self.lossless else 0)
        # A packet that a timer repeated may still be on its way.
        self.until(lambda: not any(row.get("queue0_account") for row in self.show("switch", "wire", "all")))
        counters = {row["adapter"]: row for row in self.show("counters")}
        ports = {row["port"]: row for row in self.show("switch", "wire", "all")}
        self.assertEqual(self.stop(p)[0], 0)
        return counters, ports

    def test_lossless(self):
        counters, ports = self.incast()
        for port in ports.values():
            drops = {k: v for k, v in port.items() if "drop" in k and v}
            self.assertEqual(drops, {})
        for name in ("a0", "b0"):
            # No packet was missed. A timer may still repeat one that waits long.
            self.assertEqual(counters[name].get("rx_naks", 0), 0)
            self.assertGreater(counters[name]["pfc_pause"], 0)
            self.assertGreater(ports[name]["queue0_pause_tx"], 0)
            # The bound of an account: a share for each output, xoff and headroom.
            self.assertLessEqual(ports[name]["queue0_account_peak"], (64 + 256 + 256) * 1024 + 64 * 1024)
            self.assertEqual(ports[name]["queue0_account"], 0)
        self.assertGreater(ports["c0"]["queue0_peak"], 256 * 1024)

    def test_as_it_is(self):
        """With the share of lossless.ini nothing is lost either."""
        self.share = "2M"
        _, ports = self.incast()
        for port in ports.values():
            self.assertEqual({k: v for k, v in port.items() if "drop" in k and v}, {})
        self.assertGreater(ports["c0"]["queue0_peak"], 256 * 1024)

    def test_lossy(self):
        self.lossless = False
        _, ports = self.incast()
        self.assertGreater(ports["c0"]["out_drop_queue"], 0)
        self.assertEqual(ports["c0"]["queue0_pauses"], 0)


if __name__ == "__main__":
    Lossless.NICD, Lossless.PERF, Lossless.CONFIG, Lossless.CTL = map(os.path.abspath, sys.argv[1:5])
    unittest.main(argv=sys.argv[:1], verbosity=2)
