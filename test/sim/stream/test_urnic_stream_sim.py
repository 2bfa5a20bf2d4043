#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic-stream-sim from the outside: a seed alone makes a run, every decision and mischief takes place, and the oracle
notices everything that is broken on purpose (SF-1 to SF-11).
usage: test_urnic_stream_sim.py URNIC_STREAM_SIM FOLDER_OF_MESON_BUILD"""
import pathlib
import re
import subprocess
import sys
import unittest

FOLDER = pathlib.Path(sys.argv.pop())
SIM = sys.argv.pop()
# Seconds of one run: only a simulation that hangs takes so long, also where other work has the processors.
SECONDS = 3000
# A scenario that shows each sabotage, and words of the oracle's verdict.
SAYS = {
    "order": ("calm", "is wrong|given back"), "lost": ("calm", "no progress|fails with"), "twice": ("calm", "fails with"),
    "receives": ("calm", "no receive was posted|no progress"), "copy": ("calm", "is wrong"), "return": ("calm", "is wrong"),
    "fence": ("death", "given back"), "silent": ("turns", "no progress"),
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
        """All that happens is the same alone, behind other seeds, and in parallel processes."""
        whole = self.hash_of("--seeds", "1..3")
        self.assertEqual(whole, self.hash_of("--seeds", "1..3", "--jobs", "2"))
        alone = [self.hash_of("--seeds", str(s)) for s in (1, 2, 3)]
        self.assertEqual(whole, sum(alone) % (1 << 64))
        self.assertEqual(len(set(alone)), 3)

    def test_every_scenario_is_run(self):
        text = (FOLDER / "meson.build").read_text(encoding="utf-8")
        for name in listed("scenarios"):
            self.assertIn(f"'{name}':", text)

    def test_every_decision_and_mischief(self):
        p = run("--seeds", "1..300", "--points")
        self.assertEqual(p.returncode, 0, p.stderr)
        took_place = dict(re.findall(r"^  (\w+) +(\d+)$", p.stdout, re.MULTILINE))
        self.assertEqual(set(took_place), set(listed("decisions")) | set(listed("mischiefs")))

    def test_wrong_usage(self):
        for args in (("--scenario", "nothing"), ("--seeds", "x"), ("--seeds", "2..1"), ("--sabotage", "nothing"), ("--jobs", "0"),
                     ("more",)):
            self.assertEqual(run(*args).returncode, 2, args)


class Oracle(unittest.TestCase):
    def test_each_rule(self):
        """Each sabotage is noticed, and by a rule that it breaks."""
        self.assertEqual(set(listed("sabotages")), set(SAYS))
        for name, (scenario, says) in SAYS.items():
            # An end that is not fenced stands still in most runs, and touches memory in few.
            seeds = ("--seeds", "1..400", "--keep-going") if name == "fence" else ("--seeds", "1..2000")
            p = run("--scenario", scenario, "--sabotage", name, *seeds)
            self.assertEqual(p.returncode, 1, (name, p.stdout))
            self.assertRegex(p.stderr, says, name)


if __name__ == "__main__":
    unittest.main()
