#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The log of steps of sessions (URNIC_SESSION_LOG), read while programs lose adapters.

usage: session_log.py URNICD URNIC_RUN URNICCTL URNIC_SWITCH SESSION_STREAM [TEST...]"""

import datetime
import os
import re
import sys
import unittest

import dropin_common
import session_kill

SIGNS = "the primary adapter is gone|its control path failed|its queue pair takes no more requests|work request flushed|transport retry"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
LEVEL = r"(?:error|warning|notice|info|debug)"
HEAD = re.compile(rf"(?:<\d>)?({TIME}) session\[(\d+\.\d+)\] {LEVEL} session [\w-]+: connection (\d+) to (\d+) [^|]+ \| conn=\3 peer=\4 epoch=(\d+) path=([PS]-[PS]) (.*)")

ADAPTER = re.compile(rf"{TIME} session\[\d+\.\d+\] (?:warning|notice) session adapter-(?:lost|back): adapter \w+ is (lost|back)")


def seconds(line):
    """The time of a line, since 1970."""
    return datetime.datetime.fromisoformat(line[:26]).timestamp()


class Log(session_kill.Pairs):
    where = {} # value of the variable by node; else a file of its own
    instance = None # number of the instances that are begun, of which each has one of two pairs; None: there is one pair

    def device(self, node):
        pair = super().device(node)
        return pair if self.instance is None else f"{pair};{','.join(reversed(pair.split(',')))}"

    def on(self, node, *command, **how):
        old, self.env = self.env, dict(self.env, URNIC_SESSION_LOG=self.where.get(node, self.path(node, "log")))
        if self.instance is not None:
            self.env["URNIC_SESSION_INSTANCE"] = str(self.instance)
        try:
            return super().on(node, *command, **how)
        finally:
            self.env = old

    def read(self, node):
        """The lines of a node, taken apart: (connection, peer, epoch, path, text)."""
        with open(self.path(node, "log"), encoding="utf-8") as f:
            found = [HEAD.fullmatch(line.rstrip("\n")) for line in f if not ADAPTER.fullmatch(line.rstrip("\n"))]
        self.assertTrue(all(found), found)
        times = [m[1] for m in found]
        self.assertEqual(times, sorted(times))
        self.assertEqual(len({m[2] for m in found}), 1)
        return [(int(m[3]), int(m[4]), int(m[5]), m[6], m[7]) for m in found]

    def counts(self, text):
        return {name: int(n) for name, n in re.findall(r"(\w+)=(\d+)", text)}

    def steps(self, lines):
        return [re.match(r"step (\w+) -> (\w+) ", text).groups() for *_, text in lines if text.startswith("step ")]

    def moved(self, lines):
        """One migration was logged from begin to end, each step from where the one before it led to."""
        texts = [text for *_, text in lines]
        steps = self.steps(lines)
        self.assertEqual(texts[0], "begin paths=0xf")
        self.assertEqual([to for _, to in steps[:-1]], [old for old, _ in steps[1:]])
        self.assertEqual((steps[0][0], steps[-1]), ("CONNECTED", ("MIGRATED", "CONNECTED")))
        for state in ("SLEEPING", "DRAINING", "BINDING"):
            self.assertIn(state, dict(steps))
        for first in ("record ", "tell ", "hear ", "counts "):
            self.assertTrue(any(text.startswith(first) for text in texts), (first, texts))
        end = [text for text in texts if text.startswith("end ")]
        self.assertEqual(len(end), 1)
        self.assertEqual(self.counts(end[0])["MIGRATIONS"], 1)

    def test_kill(self):
        pair = self.begin_pair()
        self.more(pair)
        self.kill("ap")
        self.more(pair)
        self.finish(pair)
        a, b = self.read("a"), self.read("b")
        self.moved(a)
        self.moved(b)
        for node in "ab":
            self.sentences(node)
        # The two ends name each other, and the same path from either side.
        self.assertEqual(a[0][:2], b[0][1::-1])
        self.assertEqual((a[-1][2], a[-1][3]), (1, "S-P"))
        self.assertEqual((b[-1][2], b[-1][3]), (1, "P-S"))
        # The end whose adapter it was says why it left the path, by whatever sign came first; each hears what the other one tells.
        self.assertTrue(any(re.match(f"lost path=P-P because ({SIGNS})", text) for *_, text in a), a)
        for one, other in ((a, b), (b, a)):
            told = {text[5:] for *_, text in one if text.startswith("tell ")}
            heard = {text[5:] for *_, text in other if text.startswith("hear ")}
            self.assertTrue(heard)
            self.assertLessEqual(heard, told)

    def stop_both(self, pair):
        """Tell both ends to stop, and leave their output to the test."""
        for r in pair:
            r.program.stdin.write("stop\n")
            r.program.stdin.flush()
        for r in pair:
            self.assertEqual(r.program.wait(timeout=dropin_common.SECONDS), 0)

    def sentences(self, node):
        """Somebody who was not there reads why a connection stopped, where it went, and what an operator must look at."""
        with open(self.path(node, "log"), encoding="utf-8") as f:
            told = [line.split(" ", 2)[2].split(" | ")[0].rstrip("\n") for line in f]
        self.assertTrue(any(re.fullmatch(r"warning session stop: connection \d+ to \d+ stops, to move, because .+", t) for t in told), told)
        self.assertTrue(any(re.fullmatch(r"notice session move: connection \d+ to \d+ moved to its path from the (primary|backup) adapter here to the "
                                         r"(primary|backup) one of its peer in \d+\.\d ms", t) for t in told), told)
        peer = "10.0.0.3" if node == "a" else "10.0.0.1"
        self.assertTrue(any(re.fullmatch(rf"info session begin: connection \d+ to \d+ has a session with {peer}", t) for t in told), told)
        self.assertTrue(any(re.fullmatch(r"debug session step: connection \d+ to \d+ is DRAINING: the old queue pair is fenced, .+", t) for t in told), told)

    def test_levels(self):
        """A level leaves the lines behind it out."""
        self.where = {"a": "stderr"}
        self.env["URNIC_SESSION_LOG_LEVEL"] = "warning"
        pair = self.begin_pair()
        self.more(pair)
        self.kill("ap")
        self.more(pair)
        self.stop_both(pair)
        lines = pair[0].program.stderr.read().splitlines()
        self.assertTrue(lines)
        self.assertTrue(all(re.match(rf"{TIME} session\[\d+\.1\] warning session ", line) for line in lines), lines)
        for r in pair:
            self.end(r)

    def test_all(self):
        """The death of a connection has its reason."""
        pair = self.begin_pair()
        self.more(pair)
        self.kill("ap")
        self.kill("as")
        for r in pair:
            self.assertEqual(r.program.wait(timeout=dropin_common.SECONDS), 1, r.out)
            self.end(r)
        for node in "ab":
            last = [text for *_, text in self.read(node) if text.startswith("step ")][-1]
            self.assertRegex(last, "-> DEAD .* because (no path is alive on both sides|the peer says that its end is dead)$")

    def test_stderr(self):
        self.where = {"a": "stderr", "b": ""}
        pair = self.begin_pair()
        self.more(pair)
        self.stop_both(pair)
        lines = pair[0].program.stderr.read().splitlines()
        self.assertTrue(all(HEAD.fullmatch(line) for line in lines), lines)
        self.assertTrue(lines[0].endswith("begin paths=0xf"), lines)
        self.assertTrue(re.search(r" end( |$)", lines[-1]), lines)
        self.assertEqual(pair[1].program.stderr.read(), "")
        for r in pair:
            self.end(r)

    def test_no_file(self):
        """A log that can't be opened fails the device, and the text says why."""
        self.where = {"a": self.path("none", "here") + "/log"}
        code, out = self.ends(self.on("a", "ibv_devices"))
        self.assertNotEqual(code, 0, out)
        self.assertIn("URNIC_SESSION_LOG: can't write to", out)
        self.assertIn("No such file or directory", out)

    def test_no_place(self):
        """Words of other variables are no files, and a pipe that nobody reads does not hold the program up."""
        pipe = self.path("pipe", "log")
        os.mkfifo(pipe)
        for where, why in (("yes", "give stderr, or the path of a file"), ("no", "give stderr"), (pipe, "No such device or address")):
            with self.subTest(where):
                self.where = {"a": where}
                code, out = self.ends(self.on("a", "ibv_devices"))
                self.assertNotEqual(code, 0, out)
                self.assertIn(why, out)
                self.assertFalse(os.path.exists(where) and where != pipe)

    def test_spread(self):
        """Instances of a program on two pairs of adapters. The loss of an adapter moves the sessions whose path it has; those of the
        other pair, which has it as a backup, go on where they are (FO-6, FO-10)."""
        pairs = []
        for self.instance in range(2):
            self.where = {node: self.path(f"{node}{self.instance}", "log") for node in "ab"}
            pairs.append(self.begin_pair())
        for pair in pairs:
            self.more(pair)
        self.kill("ap")
        for pair in pairs:
            self.more(pair)
        for pair in pairs:
            self.finish(pair)
        for node in "ab":
            self.moved(self.read(f"{node}0"))
            lines = self.read(f"{node}1")
            self.assertEqual(lines[0][4], "begin paths=0xf")
            self.assertEqual((self.steps(lines), lines[-1][3]), ([], "P-P"))


if __name__ == "__main__":
    Log.NICD, Log.RUN, Log.CTL, Log.SWITCH, Log.STREAM = map(os.path.abspath, sys.argv[1:6])
    dropin_common.ordinary_user(Log.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[6:], verbosity=2)
