#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Endpoints that use any memory of an attached program, whose pages are moved: urnic-run --share (AM-9).

usage: am_foreign.py urnicd urnic-run CONFIG_FOLDER am-foreign urnicctl [TEST...]"""

import os
import random
import re
import signal
import subprocess
import sys
import time
import unittest

import dropin_common

PROGRAM = None
KILLED = 12
AT_A_TIME = 3


class Base(dropin_common.Dropin):
    def case(self, name, *options):
        """Run a case of the program. returns: its messages"""
        p = subprocess.run([self.RUN, *(options or ("--share",)), PROGRAM, name], env=self.env, capture_output=True, text=True,
                           timeout=dropin_common.SECONDS * 5, check=False)
        self.assertEqual((p.returncode, p.stdout.splitlines()[-1:]), (0, ["good"]), (name, p.returncode, p.stdout, p.stderr))
        return p.stderr

    def nothing_left(self):
        self.assertTrue(self.until(lambda: self.show("client") == []))
        self.assertEqual(self.show("mr"), [])


class Foreign(Base):
    def test_ways(self):
        """Writes, reads and atomic operations, in all ways, between memory of the heap, of mmap() and static memory; neighbours
        on the same pages stay out of reach."""
        self.case("ways")
        self.nothing_left()

    def test_requests(self):
        """Payloads of requests and replies come from such memory, and go there."""
        self.case("requests")

    def test_bad(self):
        """Memory that is not there, read-only, of a file, a stack: refused with a sentence, and the endpoint works on."""
        self.case("bad")
        self.nothing_left()

    def test_overlap(self):
        """Memory that is added twice works until each is removed."""
        self.case("overlap")

    def test_again(self):
        """Memory is private again once it is removed, with its bytes, and is added anew."""
        self.case("again")

    def test_free(self):
        """Memory that the program frees or unmaps while it is added."""
        self.case("free")

    def test_remap(self):
        """madvise(), mremap() and realloc() of memory that is added."""
        self.case("remap")

    def test_left(self):
        """Memory that is not removed goes with its endpoint."""
        self.case("left")
        self.nothing_left()

    def test_fork(self):
        """A child has a copy, refuses its parent's endpoints, and adds the same memory to its own."""
        self.case("fork")

    def test_forks(self):
        """A thread forks while memory is added and removed."""
        self.case("forks")

    def test_writers(self):
        """Threads write while pages move, and a peer adds to their counter: no update is lost."""
        self.case("writers")

    def test_helper(self):
        """Pages move beside the library's own thread."""
        self.case("helper")

    def test_killed(self):
        """Programs that are killed while their pages move leave nothing behind in urnicd, which shares with others after that."""
        dice, ended = random.Random(9), []
        for _ in range(KILLED // AT_A_TIME):
            programs = [self.popen(self.RUN, "--share", PROGRAM, "writers") for _ in range(AT_A_TIME)]
            for p in programs:
                time.sleep(dice.random() * 0.1)
                p.kill()
            ended += [self.ends(p)[0] for p in programs]
        # On a fast machine some have ended well before.
        self.assertLessEqual(set(ended), {0, -signal.SIGKILL}, ended)
        self.assertIn(-signal.SIGKILL, ended)
        self.nothing_left()
        self.case("overlap")

    def test_dead(self):
        """urnicd dies: the program keeps the bytes, and its own pages."""
        p = self.popen(self.RUN, "--share", PROGRAM, "dead", stdin=subprocess.PIPE)
        self.assertEqual(p.stdout.readline(), "ready\n")
        self.nicd.kill()
        self.nicd.communicate()
        out, err = p.communicate("go on\n", timeout=dropin_common.SECONDS)
        self.assertEqual((p.returncode, out), (0, "good\n"), err)

    def test_plain(self):
        """Nothing moves unless the program is started so; the sentence says how, and names urn_alloc()."""
        self.case("plain", "--verbs")
        self.env["URNIC_SHARE"] = "1"
        self.case("plain", "--verbs")


    def test_preloaded(self):
        """Without urnic-run two variables of the environment do the same."""
        out = subprocess.run([self.RUN, "--share", "env"], env=self.env, capture_output=True, text=True, check=True).stdout
        library = re.search(r"(?m)^LD_PRELOAD=(\S*liburnic-share\.so)", out).group(1)
        p = subprocess.run([PROGRAM, "overlap"], env=dict(self.env, LD_PRELOAD=library, URNIC_SHARE="1"), capture_output=True,
                           text=True, timeout=dropin_common.SECONDS * 5, check=False)
        self.assertEqual((p.returncode, p.stdout), (0, "good\n"), p.stderr)


class Bound(Base):
    """A dataplane that lets a client share little."""
    def config(self, **lines):
        return super().config(**dict(lines, daemon="[limits]\nshared_per_client = 10M"))

    def test_bound(self):
        self.case("bound")


if __name__ == "__main__":
    Dropin = dropin_common.Dropin
    Dropin.NICD, Dropin.RUN, Dropin.CONFIG, PROGRAM, Dropin.CTL = map(os.path.abspath, sys.argv[1:6])
    dropin_common.ordinary_user(Base.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[6:], verbosity=2)
