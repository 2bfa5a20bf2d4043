#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Devices, protection domains and regions that a program imports, which knows nothing of urnic: as the manual pages of
rdma-core promise (doc/reference/verbs.md).

usage: dropin_import.py urnicd urnic-run CONFIG_FOLDER PROGRAM urnicctl [TEST...]"""

import json
import os
import subprocess
import sys
import unittest

import dropin_common

PROGRAM = CTL = None


class Import(dropin_common.Dropin):
    def case(self, name):
        """Run the program; it ends well, and urnicd keeps nothing of it."""
        p = subprocess.Popen([self.RUN, PROGRAM, name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.env)
        self.running.append(p)
        code, out = self.ends(p)
        self.assertEqual(code, 0, out)
        for what in ("client", "qp", "cq", "mr"):
            self.until(lambda: self.show(what) == [])

    def show(self, what):
        return json.loads(subprocess.run([CTL, "--socket", self.socket, "--json", "show", what], env=self.env, check=True,
                                         stdout=subprocess.PIPE, text=True, timeout=dropin_common.SECONDS).stdout)

    def test_same_process(self):
        """Two contexts of a program use one domain and its regions, and either ends them."""
        self.case("same")
        self.case("ends")

    def test_refused(self):
        """Descriptors and handles of nothing, domains with windows."""
        self.case("refused")

    def test_other_process(self):
        """A process that was sent the descriptor uses memory of the process that sent it, and goes on when that closes its device."""
        self.case("other")
        self.case("child")

    def test_killed(self):
        """A process that dies leaves nothing in the domain that it imported."""
        self.case("killed")


if __name__ == "__main__":
    Import.NICD, Import.RUN, Import.CONFIG, PROGRAM, CTL = map(os.path.abspath, sys.argv[1:6])
    dropin_common.ordinary_user(Import.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[6:], verbosity=2)
