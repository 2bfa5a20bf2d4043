# SPDX-License-Identifier: BSD-3-Clause
"""The table of figures of sessions: its marks, and how figures are made of what programs print and log, without programs.
usage: test_session.py MODULES"""
import os
import sys
import tempfile
import types
import unittest

sys.path.insert(0, sys.argv.pop(1))
import runner # pylint: disable=wrong-import-position
import session # pylint: disable=wrong-import-position
import speed # pylint: disable=wrong-import-position
import stats # pylint: disable=wrong-import-position

ROWS = session.rows(200, 20)


def verdict(key, found):
    """found: {run: {metric: value}}"""
    raw = [stats.Row(1, "session", key, run, key, metric, value) for run, of in found.items() for metric, value in of.items()]
    return next(v for v in speed.verdicts(raw, "session", ROWS) if v.row.key == key).verdict


class Table(unittest.TestCase):
    def test_marks(self):
        for run, key, missed, must, aim in (
                ("losses", "kill", 5001, 5000, 1000), ("losses", "link", 10001, 10000, 1000), ("losses", "silent", 3.1, 3, 2),
                ("losses", "move", 20001, 20000, 2000), ("simulated", "again", 1.51, 1.5, 1.1), ("flaps", "flap", 0.949, 0.95, 0.99)):
            self.assertEqual([verdict(key, {run: {key: v}}) for v in (missed, must, aim)],
                             ["MISSED", "must reached", "aim reached"], key)
        for run, key, missed, aim in (("losses", "faults", 1, 0), ("simulated", "once", 0.99999, 1)):
            self.assertEqual([verdict(key, {run: {key: v}}) for v in (missed, aim)], ["MISSED", "aim reached"], key)

    def test_cost(self):
        for name, key, metric, missed, must, aim in (
                ("WRITE", "write", "gbps", 89, 90, 97), ("SEND", "send", "msg_rate", 49, 50, 75),
                ("ping-pong", "lat", "us", 151, 150, 110), ("set up", "setup", "conn_rate", 19, 20, 40)):
            self.assertEqual([verdict(key, {f"{name}, session": {metric: v}, f"{name}, bare": {metric: 100}})
                              for v in (missed, must, aim)], ["MISSED", "must reached", "aim reached"], key)

    def test_names_say_how_many(self):
        what = {row.key: row.what for row in session.rows(10, 3)}
        self.assertIn("worst of 10", what["kill"])
        self.assertIn("worst of 3", what["flap"])
        self.assertIn("p99 of 200", next(row.what for row in ROWS if row.key == "move"))
        self.assertEqual(len({row.key for row in ROWS}), len(ROWS))

    def test_p99(self):
        self.assertEqual(session.p99(range(1, 201)), 198)
        self.assertEqual(session.p99([3, 1, 2]), 3)


class Losses(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(prefix="urnic-test.")
        self.addCleanup(self.dir.cleanup)
        self.ran, self.again = [], 0
        self.nodes = types.SimpleNamespace(process={"ap": types.SimpleNamespace(pid=4711)}, pair=self.pair, again=self.come_back)
        with open(os.devnull, "w", encoding="utf-8") as said:
            self.losses = session.Losses(self.nodes, types.SimpleNamespace(said=said), self.dir.name)
        self.losses.runner.said = sys.stderr

    def come_back(self):
        self.again += 1

    def pair(self, op, seconds, *args, env):
        self.ran.append((op, seconds, " ".join(args), env))
        qps = int(args[args.index("--qps") + 1])
        n = len(self.ran)
        return {"failover": {"detected": True, "connections": qps, "migrated": qps if n != 2 else qps - 1, "detection_us": 1000 * n,
                             "migration_us": 100 * n, "slowest_us": 1, "pause_us": 2, "after_to_before": 0.5 if n % 2 else None}}

    def test_each_kind(self):
        """64 queue pairs for a kill; the period of silence is short for a stopped urnicd; each one comes back."""
        self.losses.run(3, 2)
        kills, links, silent = self.ran[:3], self.ran[3:5], self.ran[5:]
        self.assertEqual((len(kills), len(links), len(silent), self.again), (3, 2, 2, 7))
        self.assertIn("--qps 64 --fail-at 0.2:kill", kills[0][2])
        self.assertIn("--qps 1 --fail-at 0.2:port", links[0][2])
        self.assertIn("--fail-at 0.2:run=kill -STOP 4711", silent[0][2])
        self.assertEqual(silent[0][3], {"URNIC_SESSION_SILENCE": str(session.SILENCE_MS)})
        self.assertGreater(silent[0][1], 3 * session.SILENCE_MS / 1000)
        found = self.losses.figures()
        # The second kill left a connection behind.
        self.assertEqual((found["faults"], found["kill"], found["kill_mid"], found["move"], found["after"]), (1, 3000, 2000, 300, 0.5))
        self.assertEqual((found["link"], found["silent"]), (5000, 7000 / 1000 / session.SILENCE_MS))
        with open(os.path.join(self.dir.name, session.LISTED), encoding="utf-8") as f:
            self.assertEqual(len(f.readlines()), 1 + 6)

    def test_not_moved(self):
        for f in (None, {}, {"detected": False}, {"detected": True, "connections": 1, "migrated": 1}):
            with self.assertRaisesRegex(runner.Failed, "of 64 connections moved"):
                session.judged(f, 64)

    def test_no_figures(self):
        self.assertEqual(self.losses.figures(), {"faults": 0})


class Flaps(unittest.TestCase):
    def test_rate(self):
        """A rate is the median of pieces: one hiccup does not count."""
        lines = ["seconds,bytes"] + [f"{100 + i / 100:.6f},{1000 * min(i, 20) + 1000 * max(0, i - 30)}" for i in range(101)]
        p = session.Progress("\n".join(lines))
        self.assertAlmostEqual(p.done(100.005), 500)
        self.assertAlmostEqual(p.rate(100.4, 100.9), 100000, delta=1)
        self.assertAlmostEqual(p.rate(100.0, 100.8), 100000, delta=1)
        self.assertAlmostEqual(p.rate(100.21, 100.29), 0, delta=1)
        for t in (99.9, 101.1):
            with self.assertRaises(runner.Failed):
                p.done(t)
        with self.assertRaises(runner.Failed):
            session.Progress("nonsense")

    def test_log(self):
        with tempfile.TemporaryDirectory(prefix="urnic-test.") as d:
            log = session.Log(os.path.join(d, "log"))

            def add(text):
                with open(log.path, "a", encoding="utf-8") as f:
                    f.write(f"1.5 session=1.1 conn=1 peer=2 epoch=1 path={text}\n")

            self.assertEqual((log.moves(), log.uses(), log.trusts(0)), (0, "p", False))
            add("S-P step REPORTED -> MIGRATED sent=1 took us=5")
            self.assertEqual((log.moves(), log.uses()), (0, "p"))
            add("S-P step MIGRATED -> CONNECTED sent=1")
            self.assertEqual((log.moves(), log.uses()), (1, "s"))
            add("S-P trusted path=P-P alive=3")
            self.assertFalse(log.trusts(0))
            add("S-P trusted path=P-S alive=4")
            self.assertTrue(log.trusts(0))
            self.assertFalse(log.trusts(len(log.text())))

    def test_of_flaps(self):
        found = session.of_flaps([100, 90, 99, 99])
        self.assertEqual((found["flap"], found["flap_all"]), (0.9, 0.99))
        self.assertEqual(found["flap_mid"], 1)


class Measures(unittest.TestCase):
    def test_one_run_for_several_rows(self):
        """Runs that take minutes are made once, and all their rows have the same values; others are made for each row."""
        ran = []

        def run(name):
            def go():
                ran.append(name)
                return {"value": len(ran)}
            return go

        names = {name for row in ROWS for name in row.runs}
        runs = types.SimpleNamespace(all=lambda: {name: run(name) for name in names})
        measures = session.measures(runs, ROWS)
        self.assertEqual(set(measures), names)
        for row in ROWS:
            for name in sorted(names):
                found = measures[name](row.key)
                self.assertEqual(bool(found), name in row.runs, (row.key, name))
        self.assertEqual([ran.count(name) for name in session.ONCE], [1, 1, 1])
        self.assertEqual(measures["losses"]("move"), [("move", "value", ran.index("losses") + 1)])
        # A round that drifted is measured again, from its first row on.
        measures["losses"]("kill")
        self.assertEqual(ran.count("losses"), 2)

    def test_all_runs_are_there(self):
        urnic = types.SimpleNamespace(programs=None, switch=None)
        runs = session.Runs(urnic, None, 0.1, True)
        self.assertEqual(set(runs.all()), {name for row in ROWS for name in row.runs})
        self.assertEqual((runs.kills, runs.others), (10, 3))
        urnic.programs = types.SimpleNamespace(kills=7)
        runs = session.Runs(urnic, None, 0.1, False)
        self.assertEqual((runs.kills, runs.others), (7, 7))


if __name__ == "__main__":
    unittest.main()
