#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The reasons of failed requests, for operators (doc/reference/errors.md): urnicctl tells them while a program is there and
after it has gone.

usage: urnicd_errors.py URNICCTL URNICD URNIC_PERF CONFIG_FOLDER"""

import json
import os
import signal
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from urnicd_common import LONG, Nicd, SECONDS


class Errors(Nicd):
    CTL = None

    def ctl(self, *words):
        p = subprocess.run([self.CTL, "--socket", self.socket, *words], env=self.env, capture_output=True, text=True,
                           timeout=SECONDS, check=False)
        self.assertEqual((p.returncode, p.stderr), (0, ""), words)
        return p.stdout

    def rows(self, *words):
        return json.loads(self.ctl("--json", *words))

    def test_port_fails_under_a_program(self):
        """A program ends because its adapter fails: the reason is told, in words and as JSON, and by its queue pair."""
        p, _ = self.start()
        self.assertEqual(self.rows("show", "errors"), [])
        perf = self.popen(self.PERF, "write_bw", "--attach", self.socket, "--duration", "60")
        self.assertTrue(self.until(lambda: self.rows("show", "qp", "state", "RTS")))
        self.ctl("port", "a0", "down")
        perf.communicate(timeout=SECONDS)
        self.assertNotEqual(perf.returncode, 0)
        self.assertTrue(self.until(lambda: not self.rows("show", "client")))
        errors = [e for e in self.rows("show", "errors") if e["status"] == 12]
        self.assertTrue(errors)
        for e in errors:
            self.assertEqual((e["pid"], e["attached"], e["vendor_err"]), (perf.pid, False, "timeout"))
            self.assertRegex(e["why"], r"^QP 0x[0-9a-f]+ to 10\.0\.0\.[12] QP 0x[0-9a-f]+: RDMA WRITE of 65536 bytes at PSN "
                             r"0x[0-9a-f]{6} was not acknowledged, sent \d+ times?, timeout ")
            self.assertIn("no progress for at least", e["why"])
            if e["adapter"] == "a0":
                self.assertTrue(e["why"].endswith(": port a0 is administratively down"), e["why"])
            self.assertIn(e["why"], self.ctl("show", "errors", "adapter", e["adapter"], "qp", hex(e["qpn"])))
        self.assertEqual(self.rows("show", "errors", "qp", "0xabcdef"), [])
        self.stop(p)

    def fails_and_stays(self):
        """Let the port fail under a program that is stopped before it looks. returns: the program, which ends no more;
        None: it was faster, and has gone"""
        perf = self.popen(self.PERF, "write_bw", "--attach", self.socket, "--duration", LONG, "--timeout", "16")
        self.assertTrue(self.until(lambda: self.rows("show", "qp", "state", "RTS")))
        self.ctl("port", "a0", "down")
        # Packets that are under way now have no acknowledgement any more.
        self.until(lambda: perf.poll() is not None or
                   any(q["pid"] == perf.pid and q["outstanding"] for q in self.rows("show", "qp")))
        perf.send_signal(signal.SIGSTOP)
        failed = self.until(lambda: perf.poll() is not None or [e for e in self.rows("show", "errors") if e["pid"] == perf.pid])
        if failed and failed is not True and all(e["attached"] for e in failed):
            return perf
        perf.kill()
        perf.communicate()
        self.ctl("port", "a0", "up")
        return None

    def test_errors_of_a_client(self):
        """Errors of one program, and of one queue pair, of several; a client that is not there has none, and that is said."""
        p, _ = self.start()
        other = self.popen(self.PERF, "write_bw", "--attach", self.socket, "--duration", LONG)
        perf = None
        for _ in range(5):
            perf = perf or self.fails_and_stays()
        self.assertTrue(perf)
        other.communicate(timeout=SECONDS)
        mine = [c for c in self.rows("show", "client") if c["pid"] == perf.pid]
        self.assertTrue(mine)
        self.assertLessEqual({perf.pid, other.pid}, {e["pid"] for e in self.rows("show", "errors")})
        got = []
        for c in mine:
            of = self.rows("show", "errors", "client", str(c["client"]), "adapter", c["adapter"])
            self.assertLessEqual({(e["client"], e["pid"], e["adapter"], e["attached"]) for e in of},
                                 {(c["client"], perf.pid, c["adapter"], True)})
            got += of
        self.assertTrue(got)
        one = got[0]
        words = ("adapter", one["adapter"], "client", str(one["client"]), "qp", hex(one["qpn"]))
        self.assertEqual({(e["client"], e["qpn"]) for e in self.rows("show", "errors", *words)}, {(one["client"], one["qpn"])})
        self.assertIn(one["why"], self.ctl("show", "errors", *words))
        nobody = subprocess.run([self.CTL, "--socket", self.socket, "show", "errors", "client", "9999"], env=self.env,
                                capture_output=True, text=True, timeout=SECONDS, check=False)
        self.assertNotEqual(nobody.returncode, 0)
        self.assertIn("9999", nobody.stderr)
        perf.kill()
        perf.communicate()
        self.stop(p)


if __name__ == "__main__":
    Errors.CTL, Nicd.NICD, Nicd.PERF, Nicd.CONFIG = map(os.path.abspath, sys.argv[1:5])
    unittest.main(argv=sys.argv[:1], verbosity=2)
