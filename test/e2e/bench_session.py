#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The runs of scripts/bench.sh --only session with real programs, few and short: adapters are lost and come back, links
flap, connections are set up. How good the figures are is not asked, because other work on the machine changes them.

usage: bench_session.py PROJECT BUILD URNIC_SESSION_SIM [TEST...]"""

import csv
import os
import subprocess
import sys
import tempfile
import types
import unittest

PROJECT, BUILD, SIM = map(os.path.abspath, sys.argv[1:4])
sys.path.insert(0, os.path.join(PROJECT, "scripts/bench"))
import adapters # pylint: disable=wrong-import-position
import attached # pylint: disable=wrong-import-position
import runner # pylint: disable=wrong-import-position
import session # pylint: disable=wrong-import-position

ATTEMPTS = 5


class Runs(unittest.TestCase):
    def setUp(self):
        session.CONNECTIONS, session.SETUP, session.PAIRS, session.SEEDS_QUICK = 4, 8, 1, 100
        session.LOSS_RUN, session.WINDOW_QUICK = 2.0, 0.2
        self.dir = tempfile.TemporaryDirectory(prefix="urnic-test.")
        self.addCleanup(self.dir.cleanup)
        self.runner = runner.Runner()
        self.addCleanup(self.runner.close)
        self.runner.said = sys.stderr
        self.programs = attached.Programs(PROJECT, BUILD, "apps/urnic-perf/urnic-perf", None, self.dir.name, SIM, 1)
        self.switch = os.path.join(BUILD, "apps/urnic-switch/urnic-switch")
        self.runs = session.Runs(types.SimpleNamespace(programs=self.programs, switch=self.switch), self.runner, 0.05, True)

    def patiently(self, run, mend=lambda: None):
        """The result of a run. A machine that is very busy takes processors away for longer than retries last, so a run has a few
        attempts."""
        for attempt in range(ATTEMPTS):
            try:
                return run()
            except runner.Failed as e:
                if attempt == ATTEMPTS - 1:
                    raise
                print(f"once more: {e}", file=sys.stderr)
                mend()

    def tearDown(self):
        self.assertEqual(self.runner.running, [])

    def test_losses(self):
        """A killed urnicd is detected, its connections move, and it is started anew; a link, likewise."""
        with adapters.Four(self.runner, self.programs, self.switch) as nodes:
            losses = session.Losses(nodes, self.runner, self.dir.name)
            killed = nodes.process["ap"]
            self.patiently(lambda: losses.one("kill"), nodes.again)
            self.assertIsNotNone(killed.poll())
            nodes.again()
            self.assertIsNot(nodes.process["ap"], killed)
            self.patiently(lambda: losses.one("link"), nodes.again)
            # A stopped one is taken for dead, and started anew.
            stopped = nodes.process["ap"]
            subprocess.run(["kill", "-STOP", str(stopped.pid)], check=True)
            self.assertTrue(adapters.until(lambda: adapters.stopped(stopped.pid)))
            nodes.again()
            self.assertIsNot(nodes.process["ap"], stopped)
        found = losses.figures()
        self.assertEqual(found["faults"], 0)
        for key in ("kill", "kill_mid", "link", "move", "move_mid"):
            self.assertGreater(found[key], 0, key)
        with open(os.path.join(self.dir.name, session.LISTED), encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
        self.assertEqual([row["kind"] for row in rows], ["kill", "link"])
        self.assertGreater(float(rows[0]["migration_us"]), 0)

    def test_flaps(self):
        """The link of the adapter in use flaps, and the stream has a rate before and afterwards."""
        found = self.patiently(self.runs.flaps)
        for key in ("flap", "flap_mid", "flap_all"):
            self.assertGreater(found[key], 0, key)

    def test_cost(self):
        """Bare and with a session, on one urnicd."""
        for bare in (True, False):
            with self.subTest(bare=bare):
                self.assertGreater(self.patiently(lambda bare=bare: self.runs.stream("ping-pong", bare))["us"], 0)
                self.assertGreater(self.patiently(lambda bare=bare: self.runs.set_up(bare))["conn_rate"], 0)

    def test_simulated(self):
        found = self.runs.simulated()
        self.assertEqual(found["once"], 1)
        self.assertGreater(found["again"], 1)
        self.assertGreater(found["sim_faults"], 100)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=2)
