#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic-am-sim from the outside: a seed alone makes a run, and the oracle catches everything that is broken on purpose
(AM-1 to AM-4, AM-9).
usage: test_urnic_am_sim.py URNIC_AM_SIM FOLDER_OF_MESON_BUILD"""
import pathlib
import re
import subprocess
import sys
import unittest

FOLDER = pathlib.Path(sys.argv.pop())
SIM = sys.argv.pop()
# Seconds of one run: only a simulation that hangs takes so long, also where other work has the processors.
SECONDS = 3000
# The scenario in which something is broken, unless "plain" has it; and words of what the oracle says.
PLACE = {"revoked": "revoke", "unheard": "talk", "heard": "talk", "mute": "talk", "again": "talk", "garbled": "talk",
         "untold": "talk", "excuse": "talk", "astray": "large", "unkept": "large", "doubled": "large", "kept": "large",
         "adrift": "leave", "unserved": "restart"}
SAYS = {
    "lost": "no operation of|a fence before", "once": "the sum is|has again|nobody stored", "old": "never was",
    "fence": "a fence before", "twice": "second event", "early": "is torn", "torn": "is torn", "outside": "was changed",
    "behind": "was changed", "lie": "is not so", "denied": "and nothing of others", "granted": "is not so",
    "count": "is done with", "revoked": "was changed", "stall": "no operation of", "packet": "packets",
    "reply": "replies", "mbuf": "packets are lost", "unheard": "handlers did not reply", "heard": "ran twice",
    "mute": "handlers did not reply", "again": "ended twice", "garbled": "torn", "untold": "handlers did not reply",
    "excuse": "is not so", "astray": "is torn|is not so|was changed", "paired": "is not so|no operation of",
    "unkept": "is not so|no operation of", "doubled": "is not so|is torn|are there", "kept": "early packets are left",
    "adrift": "failed with 110, .*which is not so", "unserved": "no-reply.*which is not so",
}


def run(*args):
    return subprocess.run([SIM, *args], capture_output=True, text=True, timeout=SECONDS, check=False)


def listed(what):
    text = run("--list").stdout.split(what + ":\n")[1]
    return re.findall(r"^  (\w+)", re.split(r"^\w", text, maxsplit=1, flags=re.MULTILINE)[0], re.MULTILINE)


class Seeds(unittest.TestCase):
    def hash_of(self, *args):
        p = run(*args)
        self.assertEqual(p.returncode, 0, p.stderr)
        return int(re.search(r"hash ([0-9a-f]{16})$", p.stdout, re.MULTILINE)[1], 16)

    def test_a_seed_makes_a_run(self):
        """Frames, events and answers are the same alone, behind other seeds, and in parallel processes."""
        whole = self.hash_of("--scenario", "all", "--seeds", "1..3")
        self.assertEqual(whole, self.hash_of("--scenario", "all", "--seeds", "1..3", "--jobs", "2"))
        alone = [self.hash_of("--scenario", "all", "--seeds", str(s)) for s in (1, 2, 3)]
        self.assertEqual(whole, sum(alone) % (1 << 64))
        self.assertEqual(len(set(alone)), 3)

    def test_every_scenario_is_run(self):
        text = (FOLDER / "meson.build").read_text(encoding="utf-8")
        for name in listed("scenarios"):
            self.assertIn(f"'{name}':", text)

    def test_wrong_usage(self):
        for args in (("--scenario", "nothing"), ("--seeds", "x"), ("--sabotage", "nothing"), ("more",)):
            self.assertEqual(run(*args).returncode, 2, args)


class Oracle(unittest.TestCase):
    def test_each_rule(self):
        """Each sabotage is noticed, and by the rule that it breaks."""
        names = listed("sabotages")
        self.assertEqual(set(names), set(SAYS))
        for name in names:
            caught = 0
            for seed in map(str, range(2, 100)):
                p = run("--scenario", PLACE.get(name, "plain"), "--sabotage", name, "--seeds", seed)
                broken = int(re.search(r"sabotages (\d+)", p.stdout)[1])
                self.assertEqual(p.returncode, 1 if broken else 0, (name, seed, p.stdout, p.stderr))
                if broken:
                    self.assertRegex(p.stderr, SAYS[name], (name, seed))
                caught += broken
                if caught:
                    break
            self.assertGreater(caught, 0, name)


if __name__ == "__main__":
    unittest.main()
