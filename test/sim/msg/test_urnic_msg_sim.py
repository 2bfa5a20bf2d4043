#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic-msg-sim from the outside: a seed alone makes a run, whatever ran before in the same process; and the oracle catches
what is broken on purpose.
usage: test_urnic_msg_sim.py URNIC_MSG_SIM"""
import re
import subprocess
import sys
import unittest

SIM = sys.argv.pop(1)
# Seconds of one run: only a simulation that hangs takes so long, also where other work has the processors.
SECONDS = 3000
LONG = ("lossless", "ring", "tight", "jam", "pauser", "incast", "thousand") # scenarios whose seeds take longest
# Scenario of each sabotage, its first seeds, how many of these must find it, and words of the oracle.
PLACES = {"bitmap": ("rest", 10, 3, "came twice"), "epoch": ("rest", 10, 3, "came twice"),
          "codes": ("rest", 10, 3, "is not in its queue"), "early": ("lossy", 3, 3, "is not in its queue"),
          "stall": ("lossy", 3, 3, "has no answer"), "lie": ("full", 3, 3, "which is not so"),
          "sleep": ("lossy", 5, 4, "sleeps, and was not woken"),
          "drop": ("lossless", 3, 3, "went into switches that lose nothing")}


def run(*args):
    return subprocess.run([SIM, *args], capture_output=True, text=True, timeout=SECONDS, check=False)


def listed(what):
    text = run("--list").stdout.split(what + ":\n")[1]
    return re.findall(r"^  (\w+)", re.split(r"^\w", text, maxsplit=1, flags=re.MULTILINE)[0], re.MULTILINE)


class Hash(unittest.TestCase):
    def hash_of(self, *args):
        p = run(*args)
        self.assertEqual(p.returncode, 0, p.stderr)
        return int(re.search(r"hash ([0-9a-f]{16})$", p.stdout, re.MULTILINE)[1], 16)

    def test_a_seed_makes_a_run(self):
        """Frames and answers are the same alone, behind other seeds, and in parallel processes."""
        for name in listed("scenarios"):
            last = 2 if name in LONG else 4
            whole = self.hash_of("--scenario", name, "--seeds", f"1..{last}")
            if name not in LONG: # how processes share seeds does not depend on the scenario
                self.assertEqual(whole, self.hash_of("--scenario", name, "--seeds", f"1..{last}", "--jobs", "2"), name)
            alone = [self.hash_of("--scenario", name, "--seeds", str(s)) for s in range(1, last + 1)]
            self.assertEqual(whole, sum(alone) % (1 << 64), name)
            self.assertEqual(len(set(alone)), last, name)

    def test_each_sabotage(self):
        """Each sabotage is noticed within a few seeds, and by the rule that it breaks."""
        self.assertEqual(set(listed("sabotages")), set(PLACES))
        for name, (scenario, seeds, least, says) in PLACES.items():
            failed = [p.stderr for s in range(1, seeds + 1)
                      if (p := run("--scenario", scenario, "--sabotage", name, "--seeds", str(s))).returncode == 1]
            self.assertGreaterEqual(len(failed), least, name)
            self.assertRegex(failed[0], says, name)

    def test_senders_stop(self):
        """Lossless switches with small accounts do stop their senders, or the runs would say nothing about them; and frames
        are lost in rings alone."""
        for name, seeds in {"tight": "1..4", "jam": "1..4", "lossless": "1..12"}.items():
            p = run("--scenario", name, "--seeds", seeds)
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertGreater(int(re.search(r"(\d+) stops", p.stdout)[1]), 500, p.stdout)
            if name != "jam":
                self.assertIn("(0 lost", p.stdout)

    def test_wrong_usage(self):
        for args in (("--scenario", "nothing"), ("--sabotage", "nothing"), ("--seeds", "x"), ("more",)):
            self.assertEqual(run(*args).returncode, 2, args)


if __name__ == "__main__":
    unittest.main()
