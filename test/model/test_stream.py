#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The model of byte streams, checked by spin (SF-4 to SF-8, SF-10): nothing lost, nothing twice, in order, no write to memory that
was given back, a receive for each message, no deadlock; and each mutation of the protocol is found.
usage: test_stream.py FOLDER_OF_MODEL STREAM_H [large]

large: longer streams, for minutes"""
import re
import sys
import unittest

import pan

MODEL, HEADER, LARGE = pan.arguments("stream.pml")
# One way, with one buffer and two, where sinks read and where they can't; and both ways, each end reading when all is sent.
SMALL = [
    ["T=4", "D=1"], ["T=4", "D=2"], ["T=3", "D=1", "BLIND"], ["T=4", "D=2", "BLIND"],
    ["TWO", "T=2", "D=2"], ["TWO", "T=2", "D=2", "BLIND"],
]
BIG = [["T=6", "D=2"], ["T=6", "D=3", "BLIND"]]
READ, BLIND, TWO = ["T=3", "D=2"], ["T=3", "D=2", "BLIND"], ["TWO", "T=2", "D=2"]
# Parts of the protocol that are taken out or turned, where that shows, and the assertion that fails.
MUTATIONS = {
    "NO_VOID": (READ, "tx"),            # BCopy data does not make a SinkAvail void at the sink
    "NO_STALE": (READ, "live"),         # ... nor at the source
    "NO_CROSS": (READ, "live"),         # the source takes a SinkAvail that crosses its SrcAvail
    "SINK_WINS": (READ, "tx"),          # the sink waits for a write when SrcAvail crosses its SinkAvail
    "KEEPS_INLINE": (BLIND, "tx"),      # ... and when bytes inline have taken the place
    "DROPS_HELD": (BLIND, "tx"),        # the source forgets memory that the sink keeps as its answer
    "NO_LATE": (TWO, "tx"),             # no SendSm without a receive: both write, and nobody reads
    "NO_UNSEEN": (READ, "answers"),     # SinkAvails without a bound
    "NO_CREDIT": (READ, "tx"),          # free buffers are told by other messages only
    "CREDIT_HIGH": (READ, "came"),      # a buffer more is told than there is
    "AGAIN": (READ, "offered"),              # SendSm names another byte than the next one
}


def check(defines):
    """The output of the verifier."""
    return pan.check(MODEL, defines, ("-O1", "-DMEMLIM=3000", "-DSAFETY", "-DNOCLAIM", "-DCOLLAPSE"), ["-E"])


class Model(pan.Case):
    def test_names(self):
        """The states of the model are those of the code."""
        text = HEADER.read_text(encoding="utf-8")
        model = re.search(r"mtype = \{ (TX_.*) \}", MODEL.read_text(encoding="utf-8"))[1].split(", ")
        code = []
        for half in ("TX", "RX"):
            table = text.split(f"define URN_ST_{half}_STATES(X)")[1].split("#define")[0]
            code += [f"{half}_{name}" for name in re.findall(r"X\((\w+),", table)]
        self.assertEqual(code, model)
        self.assertEqual(len(code), 10)

    def test_bounds(self):
        """The model's control messages fit the code's receives: back, forward, Stop and Abort."""
        text = MODEL.read_text(encoding="utf-8")
        sizes = [int(re.search(rf"#define {name} (\d+)", text)[1]) for name in ("FORWARD", "BACK")]
        most = int(re.search(r"URN_ST_CONTROL = (\d+)", HEADER.read_text(encoding="utf-8"))[1])
        self.assertLessEqual(sum(sizes) + 2, most)

    def test_safety(self):
        """Nothing is lost, delivered twice or out of order, and there is no deadlock."""
        for defines in SMALL:
            self.good(check(defines), defines)

    def test_mutations(self):
        text = MODEL.read_text(encoding="utf-8")
        self.assertEqual(set(re.findall(r"#(?:ifdef|ifndef) ([A-Z_]+)$", text, re.MULTILINE)) - {"T", "D", "TWO", "BLIND"},
                         set(MUTATIONS))
        for name, (defines, where) in MUTATIONS.items():
            with self.subTest(name):
                out = check([name, *defines])
                self.assertRegex(out, rf"assertion violated [(! ]*{where}", (name, out))

    @unittest.skipUnless(LARGE, "longer streams, on request")
    def test_large(self):
        for defines in BIG:
            self.good(check(defines), defines)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
