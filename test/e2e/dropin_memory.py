#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Memory of each kind under a program that knows nothing of urnic: works as on hardware, or is refused by ibv_reg_mr with
the right errno value (doc/reference/dropin.md).

usage: dropin_memory.py urnicd urnic-run CONFIG_FOLDER PROGRAM [TEST...]"""

import os
import subprocess
import sys
import unittest

import dropin_common

PROGRAM = None


class Memory(dropin_common.Dropin):
    def kind(self, name):
        p = subprocess.Popen([self.RUN, PROGRAM, name, self.dir.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env=self.env)
        self.running.append(p)
        code, out = self.ends(p)
        self.assertEqual(code, 0, out)
        return out

    def test_private(self):
        """Heap, stack and anonymous mappings, at addresses aligned to nothing, and a region over two mappings."""
        for kind in ("heap", "stack", "anonymous", "across"):
            with self.subTest(kind=kind):
                self.kind(kind)

    def test_shared(self):
        """memfd, shared and private mappings of files, and System V shared memory."""
        for kind in ("memfd", "files", "beyond", "sysv"):
            with self.subTest(kind=kind):
                self.kind(kind)

    def test_readonly(self):
        """Memory that may only be read: a source, and refused with EFAULT for writing."""
        self.kind("readonly")

    def test_hugetlb(self):
        out = self.kind("hugetlb")
        if out:
            print("no huge pages could be had", file=sys.stderr)

    def test_ranges(self):
        """Holes, no rights, ranges that wrap, no byte at all."""
        self.kind("ranges")

    def test_regions(self):
        """Overlapping regions, changed ones, memory that was freed and registered anew, memory that went."""
        self.kind("overlap")
        self.kind("anew")

    def test_fork(self):
        """Parent and child use memory, and devices of their own."""
        self.kind("forks")


if __name__ == "__main__":
    Memory.NICD, Memory.RUN, Memory.CONFIG, PROGRAM = map(os.path.abspath, sys.argv[1:5])
    dropin_common.huge_pages()
    dropin_common.ordinary_user(Memory.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[5:], verbosity=2)
