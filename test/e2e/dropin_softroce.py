#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Things that other projects skip or work around on soft-RoCE, on urnic (doc/reference/softroce.md).

usage: dropin_softroce.py urnicd urnic-run CONFIG_FOLDER PROGRAM [TEST...]"""

import os
import sys
import unittest

import dropin_common

PROGRAM = None


class SoftRoce(dropin_common.Dropin):
    def case(self, name):
        p = self.popen(self.RUN, PROGRAM, name)
        _, err = p.communicate(timeout=dropin_common.SECONDS)
        self.running.remove(p)
        self.assertEqual(p.returncode, 0, err)

    def test_cases(self):
        """Protection domains, full queues, lists of pieces, invalidation, ends of queue pairs, completion queues, many threads."""
        for name in ("domains", "domain_ah", "domain_srq", "full", "odd", "operations", "lists", "invalidate", "last_wqe", "errors",
                     "big_cq", "resize", "events", "many"):
            with self.subTest(name=name):
                self.case(name)

    def test_rollover(self):
        """More queue pairs in turn than an adapter has at a time."""
        code, err = self.stop(self.nicd)
        self.assertEqual(code, 0, err)
        self.running.remove(self.nicd)
        self.nicd, _ = self.start(a0="max_qp = 64")
        self.case("rollover")


if __name__ == "__main__":
    SoftRoce.NICD, SoftRoce.RUN, SoftRoce.CONFIG, PROGRAM = map(os.path.abspath, sys.argv[1:5])
    dropin_common.ordinary_user(SoftRoce.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[5:], verbosity=2)
