#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs that hang in a test (hang.py), and ports of tests (ports.py)."""

import contextlib
import io
import os
import socket
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
import hang
import ports

# A program whose child ignores signals and keeps its output, as a server's does.
HANGS = ["bash", "-c", "(trap '' TERM INT; exec -a forgotten sleep 600) & echo said; wait"]


class Hang(unittest.TestCase):
    def setUp(self):
        self.p = subprocess.Popen(HANGS, stdout=subprocess.PIPE, text=True)
        self.assertEqual(self.p.stdout.readline(), "said\n")
        while "forgotten" not in hang.told(hang.family(self.p.pid)[1:]):
            pass

    def tearDown(self):
        hang.end(self.p)
        self.p.stdout.close()

    def test_all_are_told(self):
        members = hang.family(os.getpid())
        self.assertEqual(members[0], os.getpid())
        self.assertIn(self.p.pid, members)
        text = hang.told(members)
        self.assertRegex(text, r"process \d+, child of %d: forgotten 600\n +thread \d+ sleep: state S" % self.p.pid)

    def test_all_end(self):
        """The pipe is closed when the last process that has it ends."""
        _, child = hang.family(self.p.pid)
        hang.end(self.p)
        self.assertIsNotNone(self.p.poll())
        self.assertIn(hang.parents().get(child, 0) and hang.proc(f"{child}/stat").rpartition(")")[2].split()[0], (0, "Z"))

    def test_watch(self):
        said = io.StringIO()
        # The stack of the test itself goes to a file.
        with contextlib.redirect_stderr(said), open(os.devnull, "w", encoding="utf-8") as nothing:
            hang.faulthandler.dump_traceback, kept = lambda **_: nothing.write("-"), hang.faulthandler.dump_traceback
            watch = hang.Watch("the case", 0.1)
            watch.timer.join()
            hang.faulthandler.dump_traceback = kept
        self.assertIn("the case takes more than 0.1 s", said.getvalue())
        self.assertIn("forgotten 600", said.getvalue())
        watch = hang.Watch("another", 100)
        watch.stop()
        watch.timer.join(10)
        self.assertFalse(watch.timer.is_alive())


class Ports(unittest.TestCase):
    def test_another_test_gets_another_port(self):
        port = ports.free_port()
        self.assertIsNone(ports.claim(port))
        code = f"import sys; sys.dont_write_bytecode = True; import ports; sys.exit(ports.claim({port}) is None)"
        self.assertEqual(subprocess.run([sys.executable, "-c", code], cwd=os.path.dirname(os.path.abspath(__file__)), check=False).returncode, 1)
        with socket.create_server(("127.0.0.1", port)):
            pass # nobody listens there

    def test_a_port_in_use(self):
        first, ports.FIRST, ports.COUNT = ports.FIRST, 31998, 2
        with socket.create_server(("127.0.0.1", 31998)):
            try:
                self.assertEqual(ports.free_port(), 31999)
                self.assertRaises(OSError, ports.free_port)
            finally:
                ports.FIRST, ports.COUNT = first, 12000


if __name__ == "__main__":
    unittest.main()
