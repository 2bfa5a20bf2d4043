#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic-session-sim from the outside: a seed alone makes a run, faults happen at every point, and the oracle notices
everything that is broken on purpose (FO-8, FO-9, FO-14 to FO-19).
usage: test_urnic_session_sim.py URNIC_SESSION_SIM FOLDER_OF_MESON_BUILD"""
import json
import pathlib
import re
import subprocess
import sys
import unittest

FOLDER = pathlib.Path(sys.argv.pop())
SIM = sys.argv.pop()
# Seconds of one run: only a simulation that hangs takes so long, also where other work has the processors.
SECONDS = 3000
# Words of the oracle's verdict on each sabotage.
SAYS = {
    "fence": "was dropped|windows are bound|is the next one|posted again|carried out|has the result|fails with|is dead",
    "torn": "is the next one", "early": "is the next one|is dead|fails with|not in place", "header": "fails with|is dead",
    "record": "has the result|carried out", "lost": "is the next one|no progress", "twice": "the turn of",
    "silent": "no progress", "once": "no progress", "round": "no progress|an end that is gone", "probe": "an end that is gone|no progress|is dead",
    "stale": "an end of path . that is gone", "overtaken": "path . that was overtaken", "to-any": "an end that has another one",
    "in-use": "which its machine uses", "unsaid": "which its peer has given up", "answers": "answer each other for ever",
}


def run(*args):
    return subprocess.run([SIM, *args], capture_output=True, text=True, timeout=SECONDS, check=False)


def listed(what):
    text = run("--list").stdout.split(what + ":\n")[1]
    return re.findall(r"^  ([\w-]+)", re.split(r"^\w", text, maxsplit=1, flags=re.MULTILINE)[0], re.MULTILINE)


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

    def test_every_point(self):
        """A fault happens at each named point."""
        p = run("--scenario", "storm", "--seeds", "1..1500", "--points")
        self.assertEqual(p.returncode, 0, p.stderr)
        fired = dict(re.findall(r"^  (\w+) +(\d+)$", p.stdout, re.MULTILINE))
        self.assertEqual(set(fired), set(listed("points")))
        for name, times in fired.items():
            self.assertGreater(int(times), 0, name)

    def test_sums(self):
        """Nothing is sent again without a fault; with faults all that was lost, and some writes that had arrived."""
        calm, storm = (json.loads(run("--scenario", name, "--seeds", "1..100", "--json").stdout) for name in ("calm", "storm"))
        self.assertEqual([calm[key] for key in ("passed", "failed", "faults", "sent_again", "lost", "atomics_unknown")], [100] + [0] * 5)
        self.assertGreater(storm["faults"], 100)
        self.assertGreater(storm["sent_again"], storm["lost"])
        self.assertGreater(storm["lost"], 0)
        self.assertGreater(storm["atomics_known"], 0)
        unsure = json.loads(run("--scenario", "unsure", "--seeds", "1..2000", "--json").stdout)
        self.assertGreater(unsure["atomics_unknown"], 0)

    def test_wrong_usage(self):
        for args in (("--scenario", "nothing"), ("--seeds", "x"), ("--seeds", "2..1"), ("--sabotage", "nothing"), ("--jobs", "0"),
                     ("more",)):
            self.assertEqual(run(*args).returncode, 2, args)


class Oracle(unittest.TestCase):
    def test_each_rule(self):
        """Each sabotage is noticed, and by a rule that it breaks."""
        self.assertEqual(set(listed("sabotages")), set(SAYS))
        for name, says in SAYS.items():
            p = run("--scenario", "storm", "--sabotage", name, "--seeds", "1..3000")
            self.assertEqual(p.returncode, 1, (name, p.stdout))
            self.assertRegex(p.stderr, says, name)


if __name__ == "__main__":
    unittest.main()
