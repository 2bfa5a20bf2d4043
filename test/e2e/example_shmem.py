#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples/shmem: put, get, atomics and barriers among processes on two nodes of urnicd (AM-1 to AM-4, AM-9, AM-11)."""

import os
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True  # no cache of the modules of tests
from urnicd_common import Nicd

SHMEM = ""


class Shmem(Nicd):
    def run_pes(self, pes, *where):
        return subprocess.run([SHMEM, str(pes), *where], capture_output=True, text=True, timeout=100, check=False)

    def test_any_number_of_processes(self):
        p, _ = self.start()
        for pes in (1, 2, 3, 4, 8):
            with self.subTest(pes):
                done = self.run_pes(pes, self.socket)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(done.stdout, f"{pes} PEs: blocks of 100000 bytes put and got, {50 * pes} additions, "
                                              "one owner\n")
        self.assertEqual(self.stop(p)[0], 0)

    def test_the_example_is_short(self):
        with open(os.path.join(os.path.dirname(__file__), "../../examples/shmem.c"), encoding="utf-8") as f:
            self.assertLess(len(f.readlines()), 300)

    def test_failure_ends_all(self):
        done = self.run_pes(3, self.socket + ".no")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("attaching to urnicd failed", done.stderr)
        self.assertEqual(self.run_pes(0).returncode, 2)
        self.assertEqual(self.run_pes(65).returncode, 2)


if __name__ == "__main__":
    Nicd.NICD, Nicd.PERF, Nicd.CONFIG, SHMEM = map(os.path.abspath, sys.argv[1:5])
    del sys.argv[1:5]
    unittest.main(verbosity=2)
