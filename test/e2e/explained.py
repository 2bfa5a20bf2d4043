#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Our own programs say why a completion has an error (doc/reference/errors.md), and not only that it has one.
usage: explained.py URNICD URNIC-PERF CONFIG-FOLDER URNIC-CP"""

import os
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True  # no cache of urnicd_common
from ports import free_port
from urnicd_common import Nicd, SECONDS

CP = None
WHY = r": QP 0x[0-9a-f]+ to \S+ QP 0x[0-9a-f]+: .*no progress for at least [0-9.]+ m?s"


class Explained(Nicd):
    def run_program(self, *args):
        return subprocess.run(args, env=self.env, capture_output=True, text=True, timeout=SECONDS, check=False,
                              cwd=self.dir.name)

    def test_a_wire_that_carries_nothing(self):
        nicd, _ = self.start(wire="impair a0.in = drop=100%")
        with open(os.path.join(self.dir.name, "f"), "wb") as f:
            f.write(b"x" * 100000)
        p = self.run_program(self.PERF, "write_bw", "--attach", self.socket, "--iters", "10", "--timeout", "10")
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertRegex(p.stderr, "(?m)^urnic-perf" + WHY)
        self.assertIn("completed with status 12", p.stderr)
        p = self.run_program(CP, "f", "--attach", self.socket, "--to", os.path.join(self.dir.name, "to"))
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertRegex(p.stderr, "(?m)^urnic-cp" + WHY)
        self.assertEqual(self.stop(nicd)[0], 0)

    def test_own_dataplane(self):
        """The thread that polls an engine asks nobody: the answer comes when threads have ended."""
        for op in ("write_lat", "read_bw"):
            p = self.run_program(self.PERF, op, "--iters", "10", "--timeout", "10", "--loss", "100", "--idle", "pause")
            self.assertEqual(p.returncode, 1, p.stderr)
            self.assertRegex(p.stderr, r"(?m)^urnic-perf: QP 0x[0-9a-f]+ to \S+ QP 0x[0-9a-f]+: .*no progress for at least")

    def test_two_programs(self):
        """A's side of a measurement between two programs explains its own error."""
        nicd, _ = self.start(wire="impair a0.in = drop=100%")
        both = ("--attach", self.socket)
        at = f"127.0.0.1:{free_port()}"
        b = self.popen(self.PERF, "write_bw", *both, "--node", "b", "--listen", at)
        self.assertIn("waiting for the other side", b.stderr.readline())
        p = self.run_program(self.PERF, "write_bw", *both, "--node", "a", "--peer", at, "--iters", "10", "--timeout", "10")
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertRegex(p.stderr, "(?m)^urnic-perf" + WHY)
        b.communicate(timeout=SECONDS)
        self.assertEqual(self.stop(nicd)[0], 0)


if __name__ == "__main__":
    Nicd.NICD, Nicd.PERF, Nicd.CONFIG, CP = map(os.path.abspath, sys.argv[1:5])
    del sys.argv[1:5]
    unittest.main()
