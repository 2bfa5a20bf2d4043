#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic-perf --fail-at and urnic-cp --kill-adapter-at: programs that lose their primary adapter, and tell the figures
(FO-9, FO-10).

usage: session_show.py URNICD URNICCTL URNIC_SWITCH URNIC_PERF URNIC_CP [TEST...]"""

import filecmp
import json
import os
import random
import re
import shutil
import signal
import sys
import unittest

import dropin_common
import session_common

PORT = "port p0 of adapter ap failed, as if it were unplugged"


class Show(session_common.Session):
    PERF = CP = None  # set by the script

    def setUp(self):
        super().setUp()
        self.env["URNIC_SESSION_SILENCE"] = str(self.SILENCE)

    def perf(self, *args):
        """Measure from a to b. returns: exit code and output of the side at a"""
        port = str(dropin_common.free_port())
        b = self.popen(self.PERF, "send_bw", "--session", self.device("b"), "--listen", port)
        self.assertTrue(self.until(lambda: dropin_common.listens(int(port)) or b.poll() is not None))
        got = self.ends(self.popen(self.PERF, "send_bw", "--session", self.device("a"), "--peer", f"127.0.0.1:{port}",
                                   "--size", "4K", *args))
        code, out = self.ends(b)
        self.assertEqual(code, 0, out) # the listener served a whole run, whatever was lost
        return got

    def copy(self, *args):
        """Copy a file from a to b. returns: the sender's output"""
        sock, path, to = (os.path.join(self.dir.name, name) for name in ("cp.sock", "file", "to"))
        with open(path, "wb") as f:
            f.write(random.Random(1).randbytes(3 << 20))
        b = self.popen(self.CP, "--session", self.device("b"), "--listen", sock, "--to", to)
        self.assertTrue(self.until(lambda: os.path.exists(sock) or b.poll() is not None))
        code, out = self.ends(self.popen(self.CP, "--session", self.device("a"), "--peer", sock, *args, path))
        self.assertEqual(code, 0, out)
        code, more = self.ends(b)
        self.assertEqual(code, 0, more)
        self.assertTrue(filecmp.cmp(path, os.path.join(to, "file"), shallow=False))
        return out

    def moved(self, figures, loss):
        """All connections had moved, and the figures fit each other."""
        self.assertIn(loss, figures["loss"])
        # Work that is flushed may be noticed before the end of the process or of the link.
        self.assertNotEqual(figures["cause"], "")
        self.assertEqual((figures["detected"], figures["connections"], figures["migrated"]), (True, 1, 1))
        self.assertGreater(figures["at_seconds"], 0)
        self.assertGreater(figures["slowest_us"], 0)
        self.assertGreaterEqual(figures["detection_us"], 0)
        self.assertGreater(figures["rate"]["before"]["gbps"], 0)
        self.assertGreaterEqual(figures["rate"]["during"]["gbps"], 0)

    def killed(self):
        self.assertEqual(self.nicd["ap"].wait(timeout=dropin_common.SECONDS), -signal.SIGKILL)
        self.nicd["ap"].communicate()

    def is_up(self):
        return [port["state"] for port in dropin_common.Dropin.show(self.at("ap"), "port")] == ["up"]

    def test_perf_port(self):
        """The port fails, and is up again in the end; the plot is a picture."""
        plot, table = (os.path.join(self.dir.name, name) for name in ("rate.png", "progress.csv"))
        code, out = self.perf("--duration", "1.5", "--fail-at", "300ms", "--json", "--progress", table,
                              *(["--plot", plot] if shutil.which("gnuplot") else []))
        self.assertEqual(code, 0, out)
        self.moved(json.loads(out)["failover"], PORT)
        self.assertGreater(json.loads(out)["setup_seconds"], 0)
        self.assertTrue(self.is_up())
        with open(table, encoding="ascii") as f:
            head, *lines = f.read().splitlines()
        self.assertEqual(head, "seconds,bytes")
        done = [[float(cell) for cell in line.split(",")] for line in lines]
        self.assertEqual(done, sorted(done))
        self.assertGreater(done[-1][1], done[0][1])
        if shutil.which("gnuplot"):
            with open(plot, "rb") as f:
                self.assertEqual(f.read(8), b"\x89PNG\r\n\x1a\n")

    def test_perf_kill(self):
        """The dataplane process is killed; the figures in words, of several connections."""
        code, out = self.perf("--duration", "1.5", "--fail-at", "0.3:kill", "--qps", "4")
        self.assertEqual(code, 0, out)
        self.killed()
        self.assertRegex(out, r"loss: +after .*: process \d+, the dataplane of the primary adapter, was killed\n")
        self.assertRegex(out, r"detection: +[\d.]+ [um]?s: \w.*\n")
        self.assertRegex(out, r"migration: +[\d.]+ [um]?s from detection on, 4 of 4 connections, the slowest in ")
        for part in ("before", "during", "after"):
            self.assertRegex(out, rf"rate {part} +(-|[\d.]+ Gb/s, )")

    def test_perf_refused(self):
        """Nothing is lost that can't be, and the reason is told; a failed command is told after the run."""
        for device, how, text in ((self.device("a").replace("ap.sock", "as.sock"), "kill", "of one dataplane process"),
                                  (self.device("a"), "kill=2147483647", "process 2147483647 can't be killed"),
                                  (self.device("a").replace(":ap", ":x"), "port", "no adapter and no node 'x'"),
                                  ("/nowhere:x,/nothing:y", "port", "cannot reach the control socket /nowhere.ctl")):
            code, out = self.ends(self.popen(self.PERF, "send_bw", "--session", device, "--peer", "127.0.0.1:1",
                                             "--fail-at", f"1:{how}"))
            self.assertEqual((code, text in out), (1, True), (how, out))
        code, out = self.perf("--duration", "300ms", "--fail-at", "100ms:run=exit 3")
        self.assertEqual(code, 1, out)
        self.assertIn("the command that was to lose an adapter failed: exit 3", out)

    def test_cp_kill(self):
        """A file arrives whole though the dataplane is killed in the middle."""
        out = self.copy("--kill-adapter-at", "50%:kill", "--chunk", "64K", "--json")
        self.killed()
        got = json.loads(out)
        self.assertEqual((got["ok"], got["checked"]), (True, True))
        self.moved(got["failover"], "the dataplane of the primary adapter, was killed")

    def test_cp_port(self):
        """The same by a port that fails, at the very last chunk."""
        out = self.copy("--kill-adapter-at", "99%")
        self.assertIn(PORT, out)
        self.assertRegex(out, r"migration: +[\d.]+ [um]?s from detection on, 1 of 1 connection, ")
        self.assertTrue(re.search(r"^rate before +[\d.]+ Gb/s$", out, re.MULTILINE), out)
        self.assertTrue(self.is_up())

    def test_cp_peer(self):
        """The peer's adapter is lost: the sender hears of it."""
        out = self.copy("--kill-adapter-at", f"0%:kill={self.nicd['bp'].pid}", "--json")
        self.assertEqual(self.nicd["bp"].wait(timeout=dropin_common.SECONDS), -signal.SIGKILL)
        self.nicd["bp"].communicate()
        figures = json.loads(out)["failover"]
        self.assertEqual((figures["connections"], figures["migrated"]), (1, 1))


if __name__ == "__main__":
    Show.NICD, Show.CTL, Show.SWITCH, Show.PERF, Show.CP = map(os.path.abspath, sys.argv[1:6])
    dropin_common.ordinary_user(Show.PERF)
    unittest.main(argv=[sys.argv[0]] + sys.argv[6:], verbosity=2)
