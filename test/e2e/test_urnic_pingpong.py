#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic-pingpong from the outside, without privilege: two processes over memif, a
peer that sends nonsense, errors and signals. test/interop runs urnic-pingpong
against the kernel's provider."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

sys.dont_write_bytecode = True  # no cache of ports
from ports import free_port

PROGRAM = None
# A port whose link is up, but which receives nothing.
ALONE = ["--device", "net_null0", "--ip", "192.0.2.1"]
LIMIT = 100 # seconds; only what hangs takes them
KEYS = ["op", "size", "mtu", "messages", "bytes", "seconds", "gbps", "us_per_iter",
        "round_trip_us", "checked", "checked_bytes", "echoed", "last_unacknowledged", "local",
        "peer", "drops", "counters"]


def start(*args):
    return subprocess.Popen([PROGRAM, *args], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def run(*args):
    return subprocess.run([PROGRAM, *args], capture_output=True, text=True,
                          timeout=LIMIT, check=False)


class Pingpong(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory(prefix="urnic-pingpong.")
        self.port = free_port()
        self.at = f"127.0.0.1:{self.port}"

    def tearDown(self):
        self.place.cleanup()

    def node(self, role, ip):
        return ["--device", f"net_memif0,role={role},socket={self.place.name}/m.sock", "--ip", ip,
                "--wait", "60"]

    def pair(self, *both, ips=("192.0.2.1", "192.0.2.2"), server=(), client=()):
        """Run server and client. Returns (process, output, errors) of each, without the server's first line."""
        a = start("--listen", self.at, *self.node("server", ips[0]), *both, *server)
        try:
            self.assertIn("waiting for a peer", a.stderr.readline())
            b = start("--peer", self.at, *self.node("client", ips[1]), *both, *client)
            out = {}
            threads = [threading.Thread(target=lambda p=p: out.update({p: p.communicate()}))
                       for p in (a, b)]
            for t in threads:
                t.start()
            for t in threads:
                t.join(LIMIT)
            return [(p, *out[p]) for p in (a, b)]
        finally:
            for p in (a, b):
                p.kill()

    def test_two_of_us(self):
        for size, mtu, ips in ((1, 256, ("192.0.2.1", "192.0.2.2")),
                               (4097, 4096, ("fd00::1", "fd00::2")),
                               (1 << 20, 1024, ("192.0.2.1", "192.0.2.2"))):
            with self.subTest(size=size):
                results = []
                for p, out, err in self.pair("--size", str(size), "--mtu", str(mtu), "--iters",
                                             "20", "--json", "--timeout", "18", ips=ips):
                    self.assertEqual(p.returncode, 0, err)
                    self.assertEqual(err, "")
                    results.append(json.loads(out))
                server, client = results
                for r in results:
                    self.assertEqual(list(r), KEYS)
                    self.assertEqual(r["messages"], 40)
                    self.assertEqual(r["bytes"], 40 * size)
                    self.assertEqual((r["size"], r["mtu"]), (size, mtu))
                    self.assertFalse(r["last_unacknowledged"])
                # Only the client makes up messages and checks them.
                self.assertTrue(server["echoed"])
                self.assertFalse(client["echoed"])
                self.assertEqual(client["checked_bytes"], 20 * size)
                self.assertEqual(server["checked_bytes"], 0)
                self.assertEqual(server["local"], client["peer"])
                self.assertEqual(client["local"], server["peer"])
                self.assertTrue(client["peer"]["gid"].endswith(ips[0]))

    def test_text_and_capture(self):
        capture = self.place.name + "/c.pcapng"
        for p, out, err in self.pair("--iters", "3", server=("--no-check",),
                                     client=("--capture", capture)):
            self.assertEqual(p.returncode, 0, err)
            self.assertIn("3 iters of 4096 bytes, MTU 1024", out)
            self.assertIn("24576 bytes in", out)
            self.assertIn("data checked", out)
        self.assertIn("capture:", out)
        self.assertGreater(os.path.getsize(capture), 2 * 3 * 4096)

    def test_sizes_that_differ(self):
        (a, _, a_err), (b, _, _) = self.pair("--iters", "3", server=("--size", "100"),
                                             client=("--size", "50"))
        self.assertEqual(a.returncode, 1)
        self.assertIn("50 bytes, not 100", a_err)
        self.assertEqual(b.returncode, 1)

    def nonsense(self, said, *words):
        """Send wrong words to a server, whose error must contain these words."""
        a = start("--listen", self.at, *ALONE, "--wait", "60")
        a.stderr.readline()
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            s.sendall(said)
            s.shutdown(socket.SHUT_WR)
            _, err = a.communicate(timeout=LIMIT)
        self.assertEqual(a.returncode, 1)
        for word in words:
            self.assertIn(word, err)

    def test_peers_that_speak_nonsense(self):
        self.nonsense(b"GET / HTTP/1.1\r\nHost: nobody\r\nAccept: everything\r\n\r\n", "ibv_rc_pingpong")
        self.nonsense(b"", "closed")
        self.nonsense(b"0000:000011:8bb88a:" + b"0" * 32 + b"\0", "-g")

    def test_a_peer_that_is_gone(self):
        """The peer told its queue pair and left, so no answer ever comes."""
        a = start("--listen", self.at, *ALONE, "--wait", "1")
        a.stderr.readline()
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            s.sendall(b"0000:000011:8bb88a:00000000000000000000ffffc0000202\0")
            s.sendall(b"done\0")
            _, err = a.communicate(timeout=LIMIT)
        self.assertEqual(a.returncode, 1)
        self.assertIn("192.0.2.2 QP 0x000011", err)
        self.assertIn("--wait", err)

    def test_an_error_is_explained(self):
        """A request that nobody acknowledges ends in an error, which is explained."""
        with socket.create_server(("127.0.0.1", self.port)) as server:
            p = start("--peer", self.at, *ALONE, "--wait", "60", "--timeout", "8")
            server.settimeout(LIMIT)
            s, _ = server.accept()
            with s:
                s.sendall(b"0000:000011:8bb88a:00000000000000000000ffffc0000202\0")
                _, err = p.communicate(timeout=LIMIT)
        self.assertEqual(p.returncode, 1)
        self.assertRegex(err, r"(?m)^urnic-pingpong: QP 0x[0-9a-f]+ to 192\.0\.2\.2 QP 0x11: .*no ARP answer from 192\.0\.2\.2")
        self.assertIn("transport retry counter exceeded", err)

    def test_nobody_there(self):
        p = run("--peer", self.at, *self.node("server", "192.0.2.1"), "--wait", "100ms")
        self.assertEqual(p.returncode, 1)
        self.assertIn("link", p.stderr)

    def test_ports(self):
        p = run("--peer", self.at, *ALONE, "--mtu", "4096", "--wait", "10ms")
        self.assertEqual(p.returncode, 1)
        self.assertIn("refused", p.stderr)
        p = run("--peer", self.at, "--device", "net_nothing0", "--ip", "192.0.2.1")
        self.assertEqual(p.returncode, 1)
        self.assertIn("net_nothing0", p.stderr)

    def test_usage(self):
        self.assertEqual(run("--help").returncode, 0)
        self.assertIn("--peer HOST[:PORT]", run("--help").stdout)
        self.assertRegex(run("--version").stdout, r"^urnic-pingpong \d")
        p = run("--peer", "h")
        self.assertEqual((p.returncode, p.stdout), (2, ""))
        self.assertIn("--device", p.stderr)

    def test_signal(self):
        a = start("--listen", self.at, *self.node("server", "192.0.2.1"))
        a.stderr.readline()
        a.send_signal(signal.SIGTERM)
        _, err = a.communicate(timeout=LIMIT)
        self.assertEqual(a.returncode, 128 + signal.SIGTERM)
        self.assertIn("interrupted", err)


if __name__ == "__main__":
    PROGRAM = os.path.realpath(sys.argv.pop(1))
    unittest.main(verbosity=2)
