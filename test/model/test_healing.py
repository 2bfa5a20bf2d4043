#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The model of OFFER, checked by spin (FO-19): a path that was lost is made anew and used again, no end is connected twice, taken
from the machine that uses it, or trusted while the other one is gone, and ends neither answer nor make each other anew for ever; and
each mutation of the protocol is found.
usage: test_healing.py FOLDER_OF_MODEL HEAL_H [large]

large: more failures, losses and repeats, by bitstate search, for minutes"""
import re
import sys
import unittest

import pan

MODEL, HEADER, LARGE = pan.arguments("healing.pml")
ONE, TWO = ["FAILS=1", "LOSSES=1", "REPEATS=1"], ["FAILS=2", "LOSSES=0", "REPEATS=0"]
BIG = [["FAILS=2", "LOSSES=1", "REPEATS=1"], ["FAILS=3", "LOSSES=0", "REPEATS=0"], ["FAILS=1", "LOSSES=2", "REPEATS=2", "ROOM=3"]]
CYCLE = "non-progress cycle"
# Rules that are taken out, where that shows, and the error that comes of it. Ends that make each other anew for ever reach
# the last round.
MUTATIONS = {
    "NO_SEEN": (TWO, r"own\[e\]<"),        # offers of an end that is gone count
    "NO_BOUND": (TWO, r"own\[e\]<"),       # ... and those of before an end was connected, which come behind later ones
    "TO_ANY": (TWO, r"own\[e\]<"),         # an end connects to one that is connected to an earlier end of this side
    "NO_ROUND": (ONE, CYCLE),              # an end whose peer's was made anew is not made anew itself
    "NO_LEAVE": (ONE, r"!\(used\[e\]\)"),  # an end is made anew while the machine uses it
    "NO_PROBE": (TWO, r"own\[0\]==to"),    # a path is trusted as soon as an end knows that both are connected
    "NO_REPEAT": (ONE, r"used\[0\]&&used"),  # offers are sent once
    "NO_LOST": (TWO, "heard_lost"),        # an older offer undoes the word of a loss
    "NO_KNOWN": (ONE, CYCLE),              # an end that trusts the path answers each offer
    "ALWAYS": (ONE, CYCLE),                # each end answers each offer
}


def check(defines, cycles=False, flags=("-O1",), options=()):
    """The output of the verifier. cycles: executions without an end are looked for, too."""
    kind = ("-DNP", ["-l"]) if cycles else ("-DSAFETY", [])
    return pan.check(MODEL, defines, ("-DMEMLIM=2000", "-DNOCLAIM", kind[0], *flags), ("-E", *kind[1], *options))


class Model(pan.Case):
    def test_names(self):
        """The steps of the model are those of the code."""
        enum = HEADER.read_text(encoding="utf-8").split("enum urn_sess_heal_step {")[1].split("}")[0]
        code = re.findall(r"^\tURN_SESS_HEAL_(\w+), ", enum, re.M)
        model = re.search(r"mtype = \{ (.*) \}", MODEL.read_text(encoding="utf-8"))[1].split(", ")
        self.assertEqual(code, model)
        self.assertEqual(len(code), 7)

    def test_heals(self):
        """The path is in use again, after any order of offers, and the ends come to rest."""
        self.good(check(ONE, cycles=True), ONE)
        self.good(check(TWO), TWO)

    def test_mutations(self):
        """Each rule that is taken out is missed."""
        text = MODEL.read_text(encoding="utf-8")
        self.assertEqual(set(re.findall(r"#(?:ifdef |ifndef |elif defined\()([A-Z_]+)", text)) - {"FAILS", "LOSSES", "REPEATS", "ROOM"},
                         set(MUTATIONS))
        for name, (defines, what) in MUTATIONS.items():
            with self.subTest(name):
                out = check([name, *defines], cycles=what is CYCLE, flags=("-O0",))
                self.assertRegex(out, CYCLE if what is CYCLE else f"assertion violated .*{what}", (name, out))

    @unittest.skipUnless(LARGE, "more failures, on request")
    def test_large(self):
        for defines in BIG:
            out = check(defines, flags=("-O1", "-DBITSTATE"), options=("-w33",))
            self.assertIn("errors: 0", out, (defines, out))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
