#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""An unmodified program whose connection breaks says why: urnic-run --explain (doc/reference/errors.md).

usage: dropin_explain.py urnicd urnic-run CONFIG_FOLDER urnicctl [TEST...]"""

import os
import subprocess
import sys
import unittest

import dropin_common

PINGPONG = ("ibv_rc_pingpong", "-g", "1", "-n", "100000000")
SENTENCE = (r"^urnic: QP 0x[0-9a-f]+ to 10\.0\.0\.[12] QP 0x[0-9a-f]+: SEND of 4096 bytes at PSN 0x[0-9a-f]{6} was not "
            r"acknowledged, sent 8 times, timeout 67 ms; the peer (acknowledged PSN 0x[0-9a-f]{6} last|has acknowledged "
            r"nothing so far), no progress for at least [0-9.]+ m?s(: no ARP answer from 10\.0\.0\.[12]|: port a0 is "
            r"administratively down)? \(transport retry counter exceeded, vendor_err 6: timeout\)$")


class Explain(dropin_common.Dropin):
    def explained(self, node, *command):
        """Start a program whose errors are explained; its output and its messages are apart."""
        p = subprocess.Popen([self.RUN, "--explain", "--node", node, *command], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, env=self.env)
        self.running.append(p)
        return p

    def broken(self, start, *options):
        """A pair whose adapter a0 goes down under way. start: starts both. returns: messages of the one that waited for an
        acknowledgement; the other may wait for a message for ever"""
        port = str(dropin_common.free_port())
        server = start("a", *PINGPONG, *options, "-p", port)
        self.until(lambda: dropin_common.listens(int(port)) or server.poll() is not None)
        both = [server, start("b", *PINGPONG, *options, "-p", port, "127.0.0.1")]
        self.assertTrue(self.until(lambda: len(self.show("qp", "state", "RTS")) == 2))
        subprocess.run([self.CTL, "--socket", self.socket, "port", "a0", "down"], env=self.env, check=True,
                       timeout=dropin_common.SECONDS)
        first = self.until(lambda: next((p for p in both if p.poll() is not None), None))
        self.assertTrue(first)
        out, err = first.communicate(timeout=dropin_common.SECONDS)
        self.assertNotEqual(first.returncode, 0, out)
        self.running.remove(first)
        both.remove(first)
        both[0].kill()
        both[0].communicate(timeout=dropin_common.SECONDS)
        self.running.remove(both[0])
        return (err or "") + out

    def test_retries_are_used_up(self):
        """One line for the request that failed, and none for those behind it, however completions are polled (-t: by
        ibv_start_poll()); without the option there is none."""
        for options in ((), ("-t",)):
            with self.subTest(options=options):
                said = self.broken(self.explained, *options)
                lines = [line for line in said.splitlines() if line.startswith("urnic: QP 0x")]
                self.assertEqual(len(lines), 1, said)
                self.assertRegex(lines[0], SENTENCE)
                self.again()
        self.assertNotIn("urnic: QP", self.broken(self.on))


if __name__ == "__main__":
    Explain.NICD, Explain.RUN, Explain.CONFIG, Explain.CTL = map(os.path.abspath, sys.argv[1:5])
    dropin_common.ordinary_user(Explain.RUN)
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]], verbosity=2)
