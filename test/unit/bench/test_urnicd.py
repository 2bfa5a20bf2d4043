# SPDX-License-Identifier: BSD-3-Clause
"""The table of figures with a dataplane process: its marks, what each run starts, with programs
made up here. usage: test_urnicd.py MODULES"""
import os
import signal
import subprocess
import sys
import time
import types
import unittest

sys.path.insert(0, sys.argv.pop(1))
import attached # pylint: disable=wrong-import-position
import runner # pylint: disable=wrong-import-position
import speed # pylint: disable=wrong-import-position
import stats # pylint: disable=wrong-import-position
import urnicd # pylint: disable=wrong-import-position

# Each writes its command line into LOG. A dataplane says that it listens, and waits to be ended.
NICD = '''#!/bin/sh
echo "urnicd $*" >>"$LOG"
grep -q "^socket = " "$2" || exit 3
echo "urnicd: listening at nowhere" >&2
exec sleep 600
'''
PERF = '''#!/bin/sh
echo "perf copy:$URNIC_COPY $*" >>"$LOG"
case "$*" in
idle*) echo "100 clients attached, all asleep" >&2; exec sleep 600 ;;
connect*) echo '{"conn_rate": 2500}' ;;
*--listen*) echo "waiting for the other side" >&2; sleep 0.1 ;;
*) echo '{"gbps": 20, "msg_rate": 3, "lat_us": {"p50": 1.5}}' ;;
esac
'''
KILL = '''import json, sys
open({log!r}, "a").write("kill " + " ".join(sys.argv[1:]) + "\\n")
print("urnicd_kill: far", file=sys.stderr)
print(json.dumps({{"kills": 7, "seconds": 1.5, "faults": {faults!r}}}))
sys.exit({code})
'''


def verdict(key, run, metric, value):
    raw = [stats.Row(1, "urnicd", key, run, key, metric, value)]
    return next(v for v in speed.verdicts(raw, "urnicd", urnicd.ROWS) if v.row.key == key).verdict


class Table(unittest.TestCase):
    def test_marks(self):
        for key, run, metric, missed, must, aim in (
                ("lat", "ping-pong", "us", 5.1, 5, 2), ("idle", "asleep", "cpu", 0.031, 0.03, 0.01),
                ("connect", "connect", "conn_rate", 1999, 2000, 10000)):
            self.assertEqual([verdict(key, run, metric, v) for v in (missed, must, aim)],
                             ["MISSED", "must reached", "aim reached"], key)
        self.assertEqual(verdict("kill", "kill -9", "faults", 0), "aim reached")
        self.assertEqual(verdict("kill", "kill -9", "faults", 1), "MISSED")

    def test_ratios(self):
        marks = {row.key: (row.must, row.aim) for row in urnicd.ROWS}
        self.assertEqual((marks["write"], marks["foreign"]), ((0.5, 0.8), (0.3, 0.6)))
        found = {"write": {"WRITE": {"gbps": 20}, "embedded WRITE": {"gbps": 40}},
                 "foreign": {"WRITE": {"gbps": 20}, "WRITE, malloc'd": {"gbps": 6}},
                 "clients": {"small": {"msg_rate": 4}, "small, 1,000 idle clients": {"msg_rate": 3}},
                 "clients_write": {"WRITE": {"gbps": 20}, "WRITE, 1,000 idle clients": {"gbps": 19}}}
        for row in urnicd.ROWS:
            if row.key in found:
                self.assertAlmostEqual(row.figure(found[row.key]), {
                    "write": 0.5, "foreign": 0.3, "clients": 0.75, "clients_write": 0.95}[row.key])


class Runs(unittest.TestCase):
    def setUp(self):
        self.runner = runner.Runner()
        self.addCleanup(self.runner.close)
        self.runner.said = subprocess.DEVNULL
        self.project = os.path.join(self.runner.dir, "project")
        self.log = os.environ["LOG"] = os.path.join(self.runner.dir, "log")
        for name, text in (("config/two-nodes.ini", "[switch wire]\n"), ("build/apps/urnicd/urnicd", NICD),
                           ("build/apps/urnicctl/urnicctl", "#!/bin/sh\n"), ("build/perf", PERF)):
            self.put(name, text)
        self.kills([], 0)
        self.programs = attached.Programs(self.project, os.path.join(self.project, "build"), "perf")
        urnic = types.SimpleNamespace(programs=self.programs,
                                      rate=lambda op, t, *args: {"gbps": 40.0, "us": 1.0})
        self.measures = urnicd.measures(urnic, self.runner, 0.5, True)

    def put(self, name, text):
        path = os.path.join(self.project, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o755)

    def kills(self, faults, code):
        self.put("test/e2e/urnicd_kill.py", KILL.format(log=self.log, faults=faults, code=code))

    def measure(self, name, key):
        return {metric: value for _, metric, value in self.measures[name](key)}

    def ran(self):
        with open(self.log, encoding="utf-8") as f:
            return f.read()

    def test_every_row_has_its_runs(self):
        for row in urnicd.ROWS:
            found = {name: self.measure(name, row.key) for name in row.runs if name != "asleep"}
            found.setdefault("asleep", {"cpu": 0.01})
            row.form(row.figure(found))
            self.assertEqual(self.runner.running, [], row.key)
        self.assertEqual(self.measures["connect"]("write"), [])

    def test_two_programs(self):
        self.assertEqual(self.measure("WRITE, malloc'd", "foreign")["gbps"], 20)
        b, a, *others = [l for l in self.ran().splitlines() if l.startswith("perf")]
        self.assertEqual(others, [b, a] * (urnicd.PAIRS - 1))
        for words in ("write_bw", "--attach", "--connect cm", "--foreign"):
            self.assertIn(words, a)
            self.assertIn(words, b)
        self.assertIn("--node b --listen", b)
        self.assertIn("--node a --peer 10.0.0.2:", a)
        self.assertIn("--size 65536", a)
        self.assertNotIn("copy:yes", a + b)
        self.assertNotIn("--size", b) # the listener follows

    def test_median_of_pairs(self):
        self.put("build/perf", PERF.replace('"msg_rate": 3', '"msg_rate": \'$(wc -l <"$LOG")\''))
        # Each pair adds two lines, after the dataplane's.
        self.assertEqual(self.measure("small", "clients")["msg_rate"], 5)
        self.assertEqual(len(self.ran().splitlines()), 1 + 2 * urnicd.PAIRS)

    def test_copied_when_posted(self):
        self.assertEqual(self.measure("WRITE, malloc'd, copied", "copy")["gbps"], 20)
        both = [l for l in self.ran().splitlines() if l.startswith("perf")]
        self.assertEqual(["--foreign" in l and "copy:yes" in l for l in both], [True, True] * urnicd.PAIRS)

    def test_a_thousand_clients(self):
        self.measure("small, 1,000 idle clients", "clients")
        lines = [l for l in self.ran().splitlines() if " idle " in l]
        self.assertEqual(sum(int(l.split()[-1]) for l in lines), 1000)
        self.assertEqual({l.split("--node ")[1][0] for l in lines}, {"a", "b"})

    def test_cpu_of_a_process(self):
        before = attached.cpu_seconds(os.getpid())
        end = time.process_time() + 0.1
        while time.process_time() < end:
            pass
        self.assertGreater(attached.cpu_seconds(os.getpid()) - before, 0.05)

    def test_kills(self):
        self.assertEqual(self.measure("kill -9", "kill"), {"kills": 7, "seconds": 1.5, "faults": 0})
        self.assertIn(f"--kills {urnicd.KILLS_QUICK} --programs 16 --json", self.ran())
        # Somebody noticed: a figure that misses its mark, and a sentence.
        self.kills(["a fault"], 1)
        with open(os.path.join(self.runner.dir, "said"), "w+", encoding="utf-8") as said:
            self.runner.said = said
            self.assertEqual(self.measure("kill -9", "kill")["faults"], 1)
            said.seek(0)
            self.assertIn("a fault", said.read())
        self.put("test/e2e/urnicd_kill.py", "import sys\nsys.exit(5)\n")
        self.runner.said = subprocess.DEVNULL
        with self.assertRaisesRegex(runner.Failed, "ended with 5"):
            self.measure("kill -9", "kill")

    def test_what_does_not_come_up(self):
        self.put("build/apps/urnicd/urnicd", "#!/bin/sh\necho no memory >&2\nexit 1\n")
        with self.assertRaisesRegex(runner.Failed, "urnicd ended early: no memory"):
            self.measure("ping-pong", "lat")
        self.assertEqual(self.runner.running, [])
        os.unlink(os.path.join(self.project, "build/apps/urnicd/urnicd"))
        with self.assertRaisesRegex(runner.Missing, "there is no urnicd"):
            self.measure("ping-pong", "lat")

    def test_one_that_says_nothing(self):
        process = self.runner.start(["sleep", "600"])
        with self.assertRaisesRegex(runner.Failed, "did not say 'ready' within"):
            attached.said(process, "ready", 0.1)
        self.runner.end(process, signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
