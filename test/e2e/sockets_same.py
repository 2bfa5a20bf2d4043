#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""UDP calls over urnic have the results of those over the kernel (DB-11).

usage: sockets_same.py urnicd urnic-run CONFIG_FOLDER udp-calls [TEST...]

One program (test/e2e/udp) makes the same calls over the kernel's loopback and over urnic-run. Each call writes
its result and errno. A difference is a fault, unless it is in KNOWN, and then doc/reference/sockets.md tells it."""

import itertools
import os
import subprocess
import sys
import unittest

import urnicd_common

RUN = CALLS = None
SECONDS = 60

# The kernel's line, and urnic's.
KNOWN = {
    # One socket has a port.
    "reuse: SO_REUSEADDR of both: 0": "reuse: SO_REUSEADDR of both: -1 EADDRINUSE",
    "reuse: SO_REUSEPORT of both: 0": "reuse: SO_REUSEPORT of both: -1 EADDRINUSE",
    # A sender that waits is told at once.
    "refused: wait: 1": "refused: wait: -1 ECONNREFUSED",
    'refused: answer "": -1 ECONNREFUSED': 'refused: answer "": -1 EAGAIN',
    # No datagram is put together by several calls.
    "corked: more: 2": "corked: more: -1 EOPNOTSUPP",
    'corked: one datagram "abcd": 4': 'corked: one datagram "cd": 2',
}


def cases(text):
    """The lines of each case."""
    of = {}
    for line in text.splitlines():
        of.setdefault(line.split(":")[0], []).append(line)
    return of


class Same(urnicd_common.Nicd):
    def calls(self, *args, env=None):
        p = subprocess.run(args, capture_output=True, text=True, timeout=SECONDS, check=False, env=env or self.env)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertNotIn("cannot run", p.stdout)
        return cases(p.stdout)

    def test_same(self):
        nicd, _ = self.start(a0="ipv6 = fd00:7::1", b0="ipv6 = fd00:7::2")
        kernel = self.calls(CALLS, "127.0.0.1", "192.0.2.1", "::1")
        urnic = self.calls(RUN, "--sockets", "--node", "a", CALLS, "10.0.0.1", "10.0.0.2", "fd00:7::1",
                           env=dict(self.env, URNIC_SOCKET=self.socket))
        self.assertEqual(self.stop(nicd)[0], 0)
        self.assertEqual(list(kernel), list(urnic))
        differ = {k: u for name in kernel for k, u in itertools.zip_longest(kernel[name], urnic[name]) if k != u}
        self.maxDiff = None
        self.assertEqual(differ, KNOWN, "kernel: urnic")


if __name__ == "__main__":
    urnicd_common.Nicd.NICD, RUN, urnicd_common.Nicd.CONFIG, CALLS = map(os.path.abspath, sys.argv[1:5])
    unittest.main(argv=[sys.argv[0]] + sys.argv[5:], verbosity=2)
