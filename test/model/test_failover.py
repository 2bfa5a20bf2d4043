#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The model of the fail-over protocol, checked by spin (FO-14 to FO-19): nothing lost, nothing twice, in order, no deadlock,
MIGRATED in the end; and each mutation of the protocol is found.
usage: test_failover.py FOLDER_OF_MODEL SESSION_H [large]

large: bigger windows, by bitstate search, for minutes"""
import re
import sys
import unittest

import pan

MODEL, HEADER, LARGE = pan.arguments("failover.pml")
# One failure with a window of two; two failures, the second one during and after the migration; a healed path.
SMALL = [
    ["FAILS=1", "N=2", "SENDS=4", "LOSSES=1"],
    ["FAILS=2", "N=1", "SENDS=2", "LOSSES=0"],
    ["PATHS=2", "FAILS=2", "HEALS=1", "N=2", "SENDS=4", "LOSSES=0"],
    ["DOOM", "PATHS=2", "FAILS=1", "N=1", "SENDS=2", "LOSSES=1"],
]
TINY = ["PATHS=2", "FAILS=1", "N=1", "SENDS=2", "LOSSES=0"]
BIG = [["FAILS=2", "N=3", "SENDS=10", "LOSSES=2"], ["FAILS=2", "HEALS=1", "N=3", "SENDS=12", "LOSSES=1"]]
# Parts of the protocol that are taken out, and where that shows.
MUTATIONS = {
    "NO_FENCE": SMALL[0],
    "NO_EPOCH": ["FAILS=2", "N=1", "SENDS=2", "LOSSES=1"],
    "LESS": SMALL[0],       # the seed's "less than LAST SENT" in place of "greater than the maximum"
    "NO_MAX": SMALL[0],     # the peer's LAST RECEIVED does not count
    "HIGHER": SMALL[0],     # a header with a higher id completes its receive
    "NO_REPEAT": SMALL[0],  # REPORT is sent once
    "NO_READY": SMALL[0],   # requests do not wait for the peer's receives
}


def check(defines, flags=(), options=()):
    """The output of the verifier."""
    return pan.check(MODEL, defines, ("-O0", "-DMEMLIM=2000", *flags), options)


def safety(defines):
    return check(defines, ("-DSAFETY", "-DNOCLAIM", "-DCOLLAPSE"), ("-E",))


class Model(pan.Case):
    def test_names(self):
        """The states of the model are those of the code."""
        table = HEADER.read_text(encoding="utf-8").split("define URN_SESS_STATES(X)")[1].split("/*")[0]
        code = re.findall(r"X\((\w+),", table)
        model = re.search(r"mtype = \{ (.*) \}", MODEL.read_text(encoding="utf-8"))[1].split(", ")
        self.assertEqual(code, model)
        self.assertEqual(len(code), 8)

    def test_safety(self):
        """Nothing is lost, delivered twice or out of order, and there is no deadlock."""
        for defines in SMALL:
            self.good(safety(defines), defines)

    def test_migrates(self):
        """A migration comes to its end."""
        out = check(TINY, ("-DCOLLAPSE",), ("-a", "-E", "-N", "migrates"))
        self.good(out, TINY)
        self.assertIn("migrates", out)

    def test_mutations(self):
        for name, defines in MUTATIONS.items():
            with self.subTest(name):
                out = safety([name, *defines])
                self.assertRegex(out, r"assertion violated", (name, out))

    @unittest.skipUnless(LARGE, "larger windows, on request")
    def test_large(self):
        for defines in BIG:
            out = check(defines, ("-DSAFETY", "-DNOCLAIM", "-DBITSTATE"), ("-E", "-w33"))
            self.assertIn("errors: 0", out, (defines, out))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
