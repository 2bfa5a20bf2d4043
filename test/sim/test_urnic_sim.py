#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic-sim from the outside: equal seeds give equal runs, the message of a failing seed has the
command that runs it again, bad options and signals end urnic-sim in order. No test depends on speed."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
sys.dont_write_bytecode = True  # no cache of signals
import signals

SIM = None
FOLDER = None
# Seconds of one run: only a simulation that hangs takes so long, also where other work has the processors.
SECONDS = 3000
FAULTS = ["drop", "dup", "reorder", "delay", "corrupt", "rate", "blackhole", "cut", "flap", "pause",
          "neigh", "late", "fail", "qperr", "drain", "rnr", "short", "dereg", "badkey", "stale", "exhaust"]
# Faults of clients and of connection management; scenario chaos has neither.
CLIENT_FAULTS = ["die", "scribble", "flood", "mute", "greedy"]
CM_FAULTS = ["refuse", "slow", "forget"]
# Faults from random streams of their own, so they stand last in the list.
FOREIGN_FAULTS = ["foreign", "stall"]
# The fault of scenario still, in which wires lose nothing.
STILL_FAULTS = ["hang"]
# The fault of scenario slow: a node takes its time to execute each request.
SLOW_FAULTS = ["service"]
DOMAIN_FAULTS = ["apart"]
OVERRUN_FAULTS = ["overrun"]
NEIGHBOUR_FAULTS = ["vanish", "move"]
LAST_FAULTS = FOREIGN_FAULTS + STILL_FAULTS + SLOW_FAULTS + DOMAIN_FAULTS + OVERRUN_FAULTS + NEIGHBOUR_FAULTS
SABOTAGES = ["lost", "twice", "status", "flush", "byte", "word", "count", "mbuf", "work", "stall", "event", "left",
             "quota", "answer"]
CLIENT_SABOTAGES = ["left", "quota"] # need a client that dies
RUN_SABOTAGES = ["answer"] # no run fails, but the sum of all runs does


def run(*args, timeout=SECONDS):
    return subprocess.run([SIM, *args], capture_output=True, text=True, timeout=timeout)


def listed(heading):
    lines = run("--list").stdout.splitlines()
    at = lines.index(heading + ":") + 1
    out = []
    while at < len(lines) and lines[at].startswith("  "):
        out.append(lines[at].split()[0])
        at += 1
    return out


class Sim(unittest.TestCase):
    def figures(self, *args):
        p = run("--json", *args)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(p.stderr, "")
        return json.loads(p.stdout)

    def test_every_scenario_is_tested(self):
        with open(os.path.join(FOLDER, "meson.build"), encoding="utf-8") as f:
            tested = re.findall(r"'(\w+)': \d+", f.read())
        self.assertEqual(tested, listed("scenarios"))

    def test_lists(self):
        self.assertEqual(listed("faults"), FAULTS + CLIENT_FAULTS + CM_FAULTS + LAST_FAULTS)
        self.assertEqual(listed("sabotages"), SABOTAGES)

    def test_the_same_seed_does_the_same(self):
        # A run that depends on anything else differs in its first events already.
        last = 40 if os.environ.get("URNIC_TEST_ALL") else 16
        for scenario in ("small", "foreign", "chaos", "clients", "cm"):
            with self.subTest(scenario):
                a = self.figures("--scenario", scenario, "--seeds", f"7..{last}")
                b = self.figures("--scenario", scenario, "--seeds", f"7..{last}")
                c = self.figures("--scenario", scenario, "--seeds", f"7..{last}", "--jobs", "3")
                other = self.figures("--scenario", scenario, "--seeds", f"8..{last + 1}")
                for r in (a, b, c, other):
                    del r["seconds"], r["runs_per_second"]
                self.assertEqual(a, b)
                self.assertEqual(a, c)
                self.assertNotEqual(a["hash"], other["hash"])
                self.assertEqual(a["runs"], last - 6)
                self.assertGreater(a["completions"], last)

    def test_what_ran_before_does_not_matter(self):
        for name in ("foreign", "chaos", "clients", "cm"):
            alone = run("--scenario", name, "--seeds", "33", "--trace").stdout
            after = run("--scenario", name, "--seeds", "30..33", "--trace").stdout
            self.assertIn(alone[:alone.index(f"{name}: 1 runs")], after)

    def test_every_fault_comes(self):
        for scenario, faults in (("chaos", FAULTS + FOREIGN_FAULTS), ("foreign", FOREIGN_FAULTS), ("still", STILL_FAULTS), ("slow", SLOW_FAULTS),
                                 ("domains", DOMAIN_FAULTS), ("overrun", OVERRUN_FAULTS),
                                 ("neighbours", NEIGHBOUR_FAULTS),
                                 ("clients", CLIENT_FAULTS + ["drop", "late", "delay"]),
                                 ("cm", CLIENT_FAULTS + CM_FAULTS + ["drop", "dup", "reorder", "corrupt"])):
            for last in (40, 200): # most come in the first runs
                r = self.figures("--scenario", scenario, "--seeds", f"1..{last}")
                if all(r["faults"][name] for name in faults):
                    break
            for name in faults:
                self.assertGreater(r["faults"][name], 0, (scenario, name))
        self.assertEqual(list(r["faults"]), FAULTS + CLIENT_FAULTS + CM_FAULTS + LAST_FAULTS)

    def test_a_fault_left_out_does_not_come(self):
        # With it, each comes in the first runs already.
        seeds = "1..30" if os.environ.get("URNIC_TEST_ALL") else "1..10"
        for name in FAULTS + FOREIGN_FAULTS:
            r = self.figures("--scenario", "chaos", "--seeds", seeds, "--without", name)
            self.assertEqual(r["faults"][name], 0, name)
        r = self.figures("--scenario", "chaos", "--seeds", seeds, "--without",
                         ",".join(FAULTS + FOREIGN_FAULTS))
        self.assertEqual(sum(r["faults"].values()), 0)
        self.assertEqual(r["frames_lost"], 0)
        for scenario, faults in (("still", STILL_FAULTS), ("slow", SLOW_FAULTS), ("domains", DOMAIN_FAULTS), ("overrun", OVERRUN_FAULTS), ("neighbours", NEIGHBOUR_FAULTS),
                                 ("clients", CLIENT_FAULTS), ("cm", CLIENT_FAULTS + CM_FAULTS)):
            for name in faults:
                r = self.figures("--scenario", scenario, "--seeds", seeds, "--without", name)
                self.assertEqual(r["faults"][name], 0, (scenario, name))

    def test_sabotage_is_noticed_and_can_be_run_again(self):
        for name in (n for n in SABOTAGES if n not in RUN_SABOTAGES):
            with self.subTest(name):
                scenario = "clients" if name in CLIENT_SABOTAGES else "atomics"
                p = run("--scenario", scenario, "--seeds", "1..12", "--sabotage", name, "--keep-going")
                self.assertEqual(p.returncode, 1)
                failed = re.findall(scenario + r", seed (\d+) failed: (.*)\n  again: (.*)", p.stderr)
                self.assertGreaterEqual(len(failed), 10, p.stderr)
                seed, why, again = failed[0]
                # A shell runs the command, because the program's path may have spaces.
                p = subprocess.run(again, shell=True, capture_output=True, text=True, timeout=SECONDS)
                self.assertEqual(p.returncode, 1)
                self.assertIn(f"{scenario}, seed {seed} failed: {why}", p.stderr)
                self.assertIn(why, p.stdout) # in the trace, too

    def test_more_errors_than_the_wire_allows(self):
        """Lossy wires excuse each single error, but not so many errors in all runs together."""
        for scenario, seeds in (("atomics", "1..40"), ("lossy", "1..100"), ("loss30", "1..200")):
            with self.subTest(scenario):
                args = ("--scenario", scenario, "--seeds", seeds)
                good = self.figures(*args)
                self.assertGreater(good["pairs_lost_expected"], 0)
                p = run(*args, "--sabotage", "answer", "--jobs", "2")
                self.assertEqual(p.returncode, 1)
                self.assertRegex(p.stdout, r"\d+ passed, 0 failed\n$")
                self.assertRegex(p.stderr, r"^urnic-sim: \d+ pairs failed because nobody answered; ")
        good = self.figures("--scenario", "small", "--seeds", "1..40")
        self.assertEqual((good["pairs_lost"], good["pairs_lost_expected"]), (0, 0))

    def test_stops_after_ten(self):
        p = run("--seeds", "1..100", "--sabotage", "mbuf")
        self.assertEqual(p.returncode, 1)
        self.assertEqual(p.stderr.count(" failed: "), 10)
        p = run("--seeds", "1..100", "--sabotage", "mbuf", "--jobs", "2")
        self.assertEqual(p.returncode, 1)
        self.assertGreaterEqual(p.stderr.count(" failed: "), 10)

    def test_the_command_names_what_was_left_out(self):
        p = run("--seeds", "3", "--scenario", "chaos", "--sabotage", "mbuf", "--without", "drop,late",
                "--recovery", "gbn")
        self.assertIn("--scenario chaos --seeds 3 --trace --recovery gbn --sabotage mbuf --without drop,late",
                      p.stderr)

    def test_help_and_version(self):
        p = run("--help")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        for option in ("--seeds", "--scenario", "--without", "--recovery", "--sabotage", "--trace",
                       "--capture", "--keep-going", "--jobs", "--json", "--list", "--help", "--version"):
            self.assertIn(option, p.stdout)
        p = run("--version")
        self.assertEqual(p.returncode, 0)
        self.assertRegex(p.stdout, r"^urnic-sim \d+\.\d+\.\d+\n$")

    def test_bad_usage(self):
        for args, why in ((["--seeds", "x"], "--seeds x"), (["--seeds", "9..3"], "--seeds 9..3"),
                          (["--seeds", "1.."], "--seeds"), (["--seeds", "18446744073709551615"], "--seeds"),
                          (["--seeds", "-1"], "--seeds -1"), (["--scenario", "none"], "no scenario 'none'"),
                          (["--without", "drop,rain"], "no fault 'rain'"), (["--recovery", "luck"], "luck"),
                          (["--sabotage", "all"], "all"), (["--jobs", "0"], "--jobs 0"),
                          (["--jobs", "65"], "--jobs 65"), (["more"], "'more'"), (["--nonsense"], "nonsense"),
                          (["--trace", "--json"], "--trace"), (["--capture", ""], "--capture"),
                          (["--capture", "x", "--jobs", "2"], "--capture"), (["--seeds"], "seeds")):
            with self.subTest(args):
                p = run(*args)
                self.assertEqual(p.returncode, 2)
                self.assertEqual(p.stdout, "")
                self.assertIn(why, p.stderr)
                self.assertIn("--help", p.stderr)

    def test_signals(self):
        for jobs in ("1", "2"):
            for sig in (signal.SIGINT, signal.SIGTERM):
                p = subprocess.Popen([SIM, "--seeds", "1..100000000", "--jobs", jobs],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                signals.send(p, sig)
                out, err = p.communicate(timeout=SECONDS)
                self.assertEqual(p.returncode, 128 + sig, err)
                self.assertRegex(out, r"\d+ passed, 0 failed\n$")

    def test_capture(self):
        """A capture has all frames that nodes send, before wires change them, and does not change the run."""
        judge = os.path.join(FOLDER, "..", "interop", "judge.py")
        with tempfile.TemporaryDirectory() as d:
            a, b = os.path.join(d, "a.pcap"), os.path.join(d, "b.pcap")
            args = ("--scenario", "loss30", "--seeds", "1..5")
            plain, with_it = self.figures(*args), self.figures(*args, "--capture", a)
            self.figures(*args, "--capture", b)
            self.assertGreater(plain["faults"]["corrupt"], 0)
            self.assertEqual((plain["hash"], plain["frames"]), (with_it["hash"], with_it["frames"]))
            with open(a, "rb") as f, open(b, "rb") as g:
                self.assertEqual(f.read(), g.read())
            p = subprocess.run([judge, "--scapy", "500", a], capture_output=True, text=True, timeout=SECONDS)
            self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
            self.assertTrue(p.stdout.startswith(f"{plain['frames']} frames, "), p.stdout)
            p = run("--seeds", "1", "--capture", os.path.join(d, "no", "such"))
            self.assertEqual((p.returncode, p.stdout), (1, ""))
            self.assertIn("no/such: No such file or directory", p.stderr)
        p = run("--seeds", "1..1000000", "--capture", "/dev/full")
        self.assertEqual((p.returncode, p.stdout), (1, ""))
        self.assertIn("/dev/full is not whole", p.stderr)

    def test_full_disk(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            p = subprocess.run([SIM, "--seeds", "1"], stdout=full, stderr=subprocess.PIPE, text=True,
                               timeout=SECONDS)
        self.assertEqual(p.returncode, 1)
        self.assertIn("could not be written", p.stderr)


if __name__ == "__main__":
    SIM = sys.argv.pop(1)
    FOLDER = sys.argv.pop(1)
    unittest.main()
