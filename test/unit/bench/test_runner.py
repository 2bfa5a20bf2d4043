# SPDX-License-Identifier: BSD-3-Clause
"""Child processes: their output, their failures, and that none is left. usage: test_runner.py MODULES"""
import os
import socket
import sys
import time
import unittest

sys.path.insert(0, sys.argv.pop(1))
import runner # pylint: disable=wrong-import-position


def alive(pid):
    return os.path.exists(f"/proc/{pid}")


def dead(pid):
    """Gone, or killed and not yet buried by whoever took it over."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


class Run(unittest.TestCase):
    def setUp(self):
        self.runner = runner.Runner()
        self.addCleanup(self.runner.close)

    def test_output(self):
        self.assertEqual(self.runner.run(["echo", "hello"], 30), "hello\n")
        self.assertEqual(self.runner.running, [])

    def test_sessions(self):
        """A program is alone in a session, or in the bench's own; it has a process group in both cases."""
        for alone in (True, False):
            process = self.runner.start(["sleep", "600"], alone=alone)
            self.assertEqual(os.getsid(process.pid) == process.pid, alone)
            self.assertEqual(os.getsid(process.pid) == os.getsid(0), not alone)
            self.assertEqual(os.getpgid(process.pid), process.pid)
            self.runner.end(process)
            self.assertFalse(alive(process.pid))

    def test_a_program_that_is_missing_or_fails(self):
        with self.assertRaisesRegex(runner.Missing, "no-such-program.*setup.sh --bench"):
            self.runner.run(["no-such-program"], 30)
        with self.assertRaisesRegex(runner.Failed, "sh ended with 3: it broke"):
            self.runner.run(["sh", "-c", "echo it broke >&2; exit 3"], 30)

    def test_one_that_does_not_end_is_ended_with_its_children(self):
        note = os.path.join(self.runner.dir, "child")
        command = ["sh", "-c", f'trap "" INT; sleep 600 & echo $! >"{note}"; wait; wait']
        with self.assertRaisesRegex(runner.Failed, "sh was not done after 1 s"):
            self.runner.run(command, 1)
        self.assertEqual(self.runner.running, [])
        with open(note, encoding="ascii") as f:
            child = int(f.read())
        for _ in range(100): # it was told to; it takes the kernel a moment
            if dead(child):
                break
            time.sleep(0.1)
        self.assertTrue(dead(child))

    def test_close_ends_all_and_removes_folders(self):
        process = self.runner.start(["sleep", "600"])
        folders = (self.runner.dir, self.runner.shm)
        self.runner.close()
        self.assertFalse(alive(process.pid))
        self.assertFalse(any(os.path.exists(f) for f in folders))

    def test_shared_memory_named_after_a_process_goes_with_it(self):
        process = self.runner.start(["sleep", "600"])
        name = f"/dev/shm/{process.pid}:0:0"
        with open(name, "w", encoding="ascii"):
            pass
        self.runner.end(process)
        self.assertFalse(os.path.exists(name))

    def test_pair(self):
        port = runner.free_port()
        serve = ("import socket, time\n"
                 f"s = socket.create_server(('127.0.0.1', {port}))\n"
                 "c = s.accept()[0]\nc.sendall(b'served')\ntime.sleep(600)\n")
        ask = ("import socket\n"
               f"print(socket.create_connection(('127.0.0.1', {port})).recv(99).decode())\n")
        out = self.runner.pair([sys.executable, "-c", serve], [sys.executable, "-c", ask], port, 30)
        self.assertEqual(out, "served\n")
        self.assertEqual(self.runner.running, [])

    def test_a_server_that_dies_is_told(self):
        with self.assertRaisesRegex(runner.Failed, "as a server ended with 4: no luck"):
            self.runner.pair(["sh", "-c", "echo no luck >&2; exit 4"], ["true"],
                             runner.free_port(), 30)

    def test_listens(self):
        port = runner.free_port()
        with socket.create_server(("127.0.0.1", port)):
            self.assertTrue(runner.listens(port))
        self.assertFalse(runner.listens(port))


if __name__ == "__main__":
    unittest.main()
