#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Atomics of two programs, each carried out exactly once while dataplanes are killed under them (FO-15).

usage: session_atomics.py URNICD URNIC_RUN URNICCTL URNIC_SWITCH SESSION_ATOMICS SESSION_STREAM [TEST...]"""

import os
import re
import sys
import unittest

import dropin_common
import session_heal
import session_kill

RUNS = 6 # kills of each kind


class Atomics(session_kill.Pairs):
    unknown = 0 # atomics whose outcome is unknown, of all tests

    def why(self, r):
        """A program's words on its standard error, once it has ended."""
        return "" if r.program.poll() is None else r.program.stderr.read()

    def line(self, r, word):
        """The numbers of a program's line."""
        self.assertTrue(self.until(lambda: re.search(rf"^{word} \d+ \d+$", r.out, re.M) or r.program.poll() is not None))
        found = re.search(rf"^{word} (\d+) (\d+)$", r.out, re.M)
        self.assertTrue(found, (r.out, self.why(r)))
        return tuple(map(int, found.groups()))

    def say(self, pair):
        for r in pair:
            r.program.stdin.write("go on\n")
            r.program.stdin.flush()

    def finish(self, pair):
        """The words of each end have exactly what the other end's completions tell."""
        self.say(pair)
        did = [self.line(r, "did") for r in pair]
        self.say(pair)
        has = [self.line(r, "has") for r in pair]
        self.assertEqual(did, has[::-1])
        for r in pair:
            self.assertEqual(r.program.wait(timeout=dropin_common.SECONDS), 0, self.why(r))
            self.end(r)
        return did

    def again(self, *names):
        """Start dataplanes that were killed anew, for the next programs."""
        for name in names:
            self.running.remove(self.nicd[name])
            self.nicd[name] = self.begin(name)
            self.assertTrue(self.until(lambda name=name: self.linked(name)))

    def lives(self, *names, how=()):
        for _ in range(RUNS):
            super().lives(*names, how=how)
            self.again(*names)

    def test_nothing(self):
        pair = self.begin_pair()
        self.more(pair)
        for fetches, swaps in self.finish(pair):
            self.assertGreater(swaps, 0)
            self.assertGreaterEqual(fetches, session_kill.MESSAGES)

    def test_primary(self):
        """The primary adapter of one end is killed: as the one that asks, and as the one that carries out."""
        self.lives("ap")

    def test_other(self):
        self.lives("bp", how=["extended"])

    def test_many(self):
        """The session bounds atomics in flight, if the queue pairs do not: REPORT has room for 16 results."""
        self.lives("ap", how=["many"])

    def test_both(self):
        """One after the other: the second REPORT has atomics of two queue pairs."""
        self.lives("ap", "bp")

    def test_stopped(self):
        """A stopped adapter may have an atomic in hand: each outcome is right or said to be unknown."""
        self.SILENCE = 4000
        pair = self.begin_pair()
        self.more(pair)
        self.stop("ap")
        want = [r.got + session_kill.MESSAGES for r in pair]
        self.until(lambda: all(r.got >= w for r, w in zip(pair, want)) or any(r.program.poll() is not None for r in pair))
        if all(r.program.poll() is None for r in pair):
            self.go_on("ap")
            self.finish(pair)
            return
        self.go_on("ap")
        lost = [r for r in pair if r.program.wait(timeout=dropin_common.SECONDS) == 3]
        self.assertTrue(lost, [(r.out, r.program.stderr.read()) for r in pair])
        type(self).unknown += len(lost)
        for r in pair:
            self.end(r)


class Healed(session_heal.Heal):
    """Queue pairs that were made anew have an empty log, and the peer's atomics are counted on."""
    line, say, finish = Atomics.line, Atomics.say, Atomics.finish

    def why(self, r):
        return self.told()

    def end(self, r):
        for log in self.logs:
            log.join()
        super().end(r)

    def heals(self, marks, least=4):
        super().heals(marks, least) # two paths of two queue pairs

    def test_adapters(self):
        self.survives("ap", "as", "ap")

    def test_peers(self):
        """The queue pair of the first path keeps its number, and is begun anew."""
        self.survives("bp", "bs", "bp", how=["many"])


class Mixed(session_kill.Pairs):
    """Atomics between Sends, writes and READs of the same queue pair."""

    def test_both(self):
        self.lives("ap", "bp", how=["atomics"])

    def test_extended(self):
        self.lives("bp", how=["atomics", "extended"])


if __name__ == "__main__":
    *programs, Atomics.STREAM, Mixed.STREAM = map(os.path.abspath, sys.argv[1:7])
    session_kill.Pairs.NICD, session_kill.Pairs.RUN, session_kill.Pairs.CTL, session_kill.Pairs.SWITCH = programs
    Healed.STREAM = Atomics.STREAM
    dropin_common.ordinary_user(Atomics.RUN)
    program = unittest.main(argv=[sys.argv[0]] + sys.argv[7:], verbosity=2, exit=False)
    print(f"atomics whose outcome is unknown: {Atomics.unknown}")
    sys.exit(not program.result.wasSuccessful())
