#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The figures of the hostile suite: verdicts, the table of the worst of all attacks, JSON, signals, and wrong usage. How
good the figures are is not asked, because other work on the machine changes them.

usage: test_figures.py FOLDER_OF_BUILD [TEST...]"""

import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
import figures
import town

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = None


def of(name, worst, share, alone=100.0, late=0.5):
    """Figures of an attack with one round."""
    runs = {"rate": 1000.0, "worst_us": alone}, {"rate": 10 * share, "worst_us": worst, "over_2ms": 0, "over_10ms": 0}, 7, late
    return figures.summed(name, "writes", [runs])


class Table(unittest.TestCase):
    def test_marks(self):
        """Each bound, at it and beyond."""
        for worst, share, verdict in ((2000, 80, "aim reached"), (2001, 80, "must reached"), (2000, 79.9, "must reached"),
                                      (10000, 40, "must reached"), (10001, 90, "MISSED"), (1, 39.9, "MISSED")):
            self.assertEqual(of("x", worst, share)["verdict"], verdict, (worst, share))
        # The machine alone takes processors away for longer than the bound.
        self.assertEqual(of("x", 30000, 90, alone=10001)["verdict"], "withheld")
        self.assertEqual(of("x", 30000, 39, alone=10001)["verdict"], "MISSED")
        self.assertEqual(of("x", 9000, 90, alone=20000)["verdict"], "must reached")

    def test_rounds(self):
        """The longest operation of all rounds counts, and the median of the shares."""
        rounds = [({"rate": 100.0, "worst_us": 5.0}, {"rate": rate, "worst_us": worst, "over_2ms": 1, "over_10ms": 0}, 3, 1.0 * i)
                  for i, (rate, worst) in enumerate(((90.0, 10.0), (50.0, 9000.0), (70.0, 20.0)))]
        f = figures.summed("x", "writes", rounds)
        self.assertEqual((f["share"], f["worst_us"], f["rounds"], f["over_2ms"], f["limits_seconds"]), (70.0, 9000.0, 9, 3, 2.0))

    def rows(self, attacks, faults=0, end=None):
        return {r["key"]: (r["value"], r["verdict"]) for r in figures.rows_of(attacks, faults, end)}

    def test_the_worst_of_all(self):
        rows = figures.rows_of([of("one", 500, 95), of("two", 3000, 85), of("three", 100, 60)], 0, (2.5, 44))
        self.assertEqual([(r["key"], r["value"], r["must"], r["aim"], r["verdict"]) for r in rows], [
            ("worst", "3.00 ms", "10 ms", "2 ms", "must reached"), ("share", "60.0 %", "40 %", "80 %", "must reached"),
            ("limits", "3 of 3", "always", "", "aim reached"), ("faults", "0", "0", "", "aim reached"),
            ("end", "2.50 s", "3 s", "", "aim reached")])
        self.assertIn("(two)", rows[0]["what"])
        self.assertIn("(three)", rows[1]["what"])
        self.assertIn("44 attacks", rows[4]["what"])

    def test_misses(self):
        rows = self.rows([of("one", 500, 95, late=False), of("two", 30000, 85, alone=20000)], 1, (3.01, 44))
        self.assertEqual(rows, {"worst": ("30.00 ms", "withheld"), "share": ("85.0 %", "aim reached"), "limits": ("1 of 2", "MISSED"),
                                "faults": ("1", "MISSED"), "end": ("3.01 s", "MISSED")})
        self.assertEqual(self.rows([of("one", 30000, 85), of("two", 30000, 85, alone=20000)])["worst"][1], "MISSED")
        self.assertEqual(self.rows([], 1), {"faults": ("1", "MISSED")})
        self.assertEqual(self.rows([]), {})


class Runs(unittest.TestCase):
    def setUp(self):
        # Short: DPDK's files of a urnicd that is killed must be in the suite's folder, which goes with it. A
        # longer name of its runtime folder is not used (pmd_glue/eal_dir.c), and they would stay in /tmp.
        self.dir = tempfile.TemporaryDirectory(prefix="ut.")
        self.addCleanup(self.dir.cleanup)
        # Files that the suite leaves would be here.
        self.env = dict(os.environ, TMPDIR=self.dir.name)
        os.chmod(self.dir.name, 0o755) # users of the suite go through

    def start(self, *args):
        return subprocess.Popen([sys.executable, os.path.join(HERE, "run.py"), "--build", BUILD, *args], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=self.env)

    def test_one_attack(self):
        """An attack is measured, alone and under it, and stands in the table and in the JSON."""
        path = os.path.join(self.dir.name, "figures.json")
        p = self.start("--figures", "--seconds", "0.1", "--rounds", "2", "--json", path, "handles")
        out, err = p.communicate(timeout=town.PATIENCE)
        with open(path, encoding="utf-8") as f:
            got = json.load(f)
        self.assertEqual(([f["attack"] for f in got["attacks"]], got["faults"], got["not_possible"]), (["handles"], [], []), out + err)
        f = got["attacks"][0]
        self.assertGreater(min(f["rate"], f["rate_alone"], f["worst_us"], f["worst_alone_us"]), 0)
        self.assertEqual(f["limits_seconds"] is not None, town.ROOT)
        self.assertEqual([r["key"] for r in got["table"]], ["worst", "share"] + ["limits"] * town.ROOT + ["faults"])
        missed = any(r["verdict"] == "MISSED" for r in got["table"])
        self.assertEqual(p.returncode, 1 if missed else 0, out + err)
        for r in got["table"]:
            self.assertRegex(out, rf"(?m)^{r['what'].replace('(', '.').replace(')', '.')} +{r['value']} ")
        self.assertEqual(glob.glob(os.path.join(self.dir.name, "urnic-test.*")), [])

    def test_a_signal(self):
        """A signal ends all that runs, while urnicd starts and later; the figures until then are printed."""
        for where in ("", "page.handles"):
            with self.subTest(where=where):
                self.ends_by_a_signal(os.path.join(self.dir.name, "urnic-test.*", where))

    def ends_by_a_signal(self, path):
        p = self.start("--figures", "--seconds", "0.05", "--rounds", "99", "handles")
        end = time.monotonic() + town.PATIENCE
        while not glob.glob(path) and time.monotonic() < end:
            time.sleep(0.01)
        p.send_signal(signal.SIGTERM)
        out, err = p.communicate(timeout=town.PATIENCE)
        self.assertEqual(p.returncode, 128 + signal.SIGTERM, out + err)
        self.assertIn("verdict", out)
        self.assertEqual(glob.glob(os.path.join(self.dir.name, "urnic-test.*")), [])

    def test_wrong_usage(self):
        for args, text in ((["--seconds", "0"], "--seconds"), (["--rounds", "0"], "--rounds"), (["--json", "x"], "--figures"),
                           (["nothing"], "no attack nothing"), (["--family", "nothing"], "no family nothing"),
                           (["--victim", "x"], "--victim")):
            p = self.start(*args)
            out, err = p.communicate(timeout=town.PATIENCE)
            self.assertEqual((p.returncode, text in err), (2, True), (args, out + err))


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
