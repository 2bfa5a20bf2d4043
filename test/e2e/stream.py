#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Byte streams between programs on two nodes of one urnicd (SF-1 to SF-6, SF-8 to SF-10).

usage: stream.py urnicd stream-ends stream-hostile CONFIG_FOLDER urnic-perf stream-many stream-threads
       [TEST...]"""

import os
import re
import subprocess
import sys
import unittest

import urnicd_common

ENDS = HOSTILE = MANY = THREADS = None
SECONDS = urnicd_common.SECONDS
ADDRESS, PORT = "10.0.0.2", "7000"
WISH = 24  # bytes of a client's wish, in front of all others


class Stream(urnicd_common.Nicd):
    def setUp(self):
        super().setUp()
        self.nicd, _ = self.start()
        self.server = self.popen(ENDS, self.socket, "b", "listen", PORT)
        self.assertEqual(self.server.stdout.readline(), "listening\n")

    def tearDown(self):
        if self.nicd.poll() is None:
            code, err = self.stop(self.nicd)
            self.assertEqual(code, 0, err)
        super().tearDown()

    def client(self, mode, seed, size, *options, port=PORT):
        return self.popen(ENDS, self.socket, "a", ADDRESS, port, mode, str(seed), str(size), *options)

    def ended(self, p, code=0):
        """Wait for a program's end. returns: its last line"""
        out, err = p.communicate(timeout=SECONDS)
        self.assertEqual((p.returncode, err), (code, ""), out)
        return out.splitlines()[-1]

    def served(self):
        """The server's line about a connection, without its number."""
        line = self.server.stdout.readline()
        self.assertNotEqual(line, "", self.server.poll())
        return line.strip().split(": ", 1)[1]

    def counts(self, line):
        return {name: int(n) for name, n in re.findall(r"(\w+) (\d+)", line)}

    def both(self, mode, seed, size, *options):
        """Run a client. returns: counts of the client and of the server"""
        said = self.ended(self.client(mode, seed, size, *options))
        heard = self.served()
        self.assertIn(f"{mode} done", said)
        self.assertIn(f"{mode} done", heard)
        return self.counts(said), self.counts(heard)

    def test_exchange(self):
        """Random sizes both ways at once, by one call and by several pieces: each byte at its place (SF-1 to SF-6)."""
        size = 40 << 20
        for seed, options in ((1, []), (2, ["added"]), (4, []), (3, ["small"]), (6, ["read"]), (8, ["write", "added"])):
            size = 4 << 20 if options and options != ["added"] else 40 << 20
            own, other = self.both("exchange", seed, size, *options)
            self.assertEqual((own["sent"], own["received"]), (size + WISH, size))
            self.assertEqual((other["sent"], other["received"]), (size, size + WISH))

    def test_zero_copy(self):
        """Large sends do without a copy; a forced kind of transfer is that kind (SF-3, SF-4, SF-6, SF-8, SF-9)."""
        size = 24 << 20
        own, other = self.both("half", 8, size, "added")
        self.assertGreater(own["offered"] + own["written"], 0)
        own, other = self.both("half", 10, size, "read")
        self.assertGreater(other["read"], 0)
        self.assertEqual((own["written"], own["copied"]), (0, 0))
        own, other = self.both("half", 12, size, "write", "added")
        self.assertGreater(own["written"], 0)
        self.assertEqual(other["read"], 0)
        own, other = self.both("half", 14, size, "copy")
        self.assertEqual((own["offered"], own["written"], other["read"]), (0, 0, 0))

    def test_ping(self):
        """Single bytes, by calls that do not wait and urn_stream_poll()."""
        own, _ = self.both("ping", 5, 3000)
        self.assertEqual((own["sent"], own["received"]), (3000 + WISH, 3000))

    def test_many(self):
        """Twelve streams, a listener and a pipe in one thread that never waits but in urn_stream_poll()."""
        p = self.popen(MANY, self.socket, ADDRESS, "7002")
        self.assertEqual(self.ended(p), "all")

    def test_threads(self):
        """Threads that poll one stream, one beside a receive; pieces of one send stay together."""
        p = self.popen(THREADS, self.socket, ADDRESS, "7003")
        self.assertEqual(self.ended(p), "all")

    def test_half_close(self):
        """The end of one way leaves the other: the answer comes behind it (SF-10)."""
        for seed in range(3):
            self.both("half", seed, 1 + seed * 300000)

    def test_reader_stops(self):
        """A reader that reads no more ends the writer's sends with EPIPE, large ones too (SF-10)."""
        for seed in range(3):
            said = self.ended(self.client("drop", seed, 100000))
            self.assertIn("drop done", said)
            self.assertIn("drop done", self.served())

    def test_peer_killed(self):
        """The end of a killed peer's connection is an error, not the end of the stream; others go on."""
        other = self.client("hold", 1, 0)
        self.assertEqual(other.stdout.readline(), "up\n")
        for mode, size in (("hold", 0), ("exchange", 1 << 40)):
            p = self.client(mode, 2, size)
            self.assertEqual(p.stdout.readline(), "up\n")
            p.kill()
            p.communicate()
            # The wish may have died with the client.
            self.assertRegex(self.served(), f"({mode}|nothing) ECONNRESET: .*broke")
        self.both("exchange", 3, 1 << 20)
        self.assertIsNone(other.poll())

    def test_server_killed(self):
        """The same the other way round."""
        p = self.client("exchange", 2, 1 << 40)
        self.assertEqual(p.stdout.readline(), "up\n")
        self.server.kill()
        self.server.communicate()
        self.assertRegex(self.ended(p, code=2), "exchange ECONNRESET: .*broke")

    def test_nobody(self):
        """Nobody listens at the port."""
        self.assertRegex(self.ended(self.client("ping", 1, 1, port="7001"), code=2),
                         "connect ECONNREFUSED: nobody listens")

    def test_dataplane_killed(self):
        """Both ends learn that the dataplane is gone."""
        # The server adds no memory for its second connection, so that the end is told by the stream and by nothing else.
        self.both("ping", 1, 1)
        p = self.client("exchange", 2, 1 << 40)
        self.assertEqual(p.stdout.readline(), "up\n")
        self.nicd.kill()
        self.nicd.communicate()
        self.assertRegex(self.ended(p, code=2), "exchange (EIO|ECONNRESET): .*the dataplane is gone")
        said = sorted([self.served(), self.served()])
        self.assertRegex(said[0], "(exchange|nothing) (EIO|ECONNRESET): .*the dataplane is gone")
        self.assertEqual(said[1], "the dataplane is gone")

    def test_perf(self):
        """urnic-perf measures streams, by each kind of transfer, and checks the bytes."""
        for options, counts in (((), None), (("--transfer", "copy"), (40 + 5, 0, 0)), (("--transfer", "read"), (0, 40 + 5, 0)),
                                (("--transfer", "write", "--plain"), None)):
            r = self.perf("stream_bw", "--size", "50000", "--iters", "40", *options)
            self.assertEqual((r["op"], r["size"], r["messages"], r["checked"]), ("stream_bw", 50000, 40, 45))
            self.assertGreater(r["gbps"], 0)
            if counts:
                self.assertEqual((r["copied"], r["offered"], r["written"]), counts)
        r = self.perf("stream_lat", "--iters", "200")
        self.assertEqual((r["op"], r["size"], r["messages"]), ("stream_lat", 8, 200))
        self.assertGreater(r["latency_us"]["p50"], 0)
        for args in (("--size", "0"), ("--transfer", "fast"), ("--zero-copy", "1K"), ("word",)):
            p = subprocess.run([self.PERF, "stream_bw", "--attach", self.socket, *args], capture_output=True, text=True,
                               timeout=SECONDS, check=False)
            self.assertEqual((p.returncode, p.stdout), (2, ""), p.stderr)
        p = subprocess.run([self.PERF, "stream_foo", "--attach", self.socket], capture_output=True, text=True,
                           timeout=SECONDS, check=False)
        self.assertEqual((p.returncode, p.stdout), (2, ""), p.stderr)

    def hostile(self, way):
        p = subprocess.run([HOSTILE, self.socket, "a", ADDRESS, PORT, way], env=self.env, capture_output=True,
                           text=True, timeout=SECONDS, check=False)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        return p.stdout.strip()

    def test_bad_greeting(self):
        """A greeting of another version or form is refused, and the refusal says why (SF-1)."""
        for way, why in (("version", "the peer speaks version 9 of the stream layer, and this end version 1"),
                         ("magic", "not of the stream layer"), ("line", "a cache line that is none"),
                         ("buffers", "number or size of BCopy buffers is 0 or too large")):
            said = self.hostile(way)
            self.assertRegex(said, r"refused \(28\): .*" + re.escape(why))
        self.both("exchange", 3, 1 << 20)

    def test_bad_messages(self):
        """A peer that breaks the protocol gets an error that says why, at both ends; others go on."""
        other = self.client("hold", 1, 0)
        self.assertEqual(other.stdout.readline(), "up\n")
        for way, why in (("form", "a message of the peer is malformed"),
                         ("offset", "a message of the peer is for another place in the stream"),
                         ("stale", "the peer sent RdCompl, and no SrcAvail is open"),
                         ("written", "the peer sent WrCompl, and no SinkAvail is open"),
                         ("two-fins", "the peer sent bytes behind its own Fin"),
                         ("beyond", "the peer sent BCopy data for which it had no buffer")):
            self.assertEqual(self.hostile(way), "abort: " + why)
            if way == "beyond":
                self.assertRegex(self.served(), "idle EPROTO: " + why)
            elif way != "two-fins":  # its first Fin is the end of a stream of no bytes
                self.assertRegex(self.served(), "nothing EPROTO: " + why)
            else:
                self.served()
        # Whether the end answered the SrcAvail before Fin came decides which of two rules is broken.
        why = "(a message of the peer has no place in this state|the peer announced more bytes than it sent)"
        self.assertRegex(self.hostile("short-fin"), "abort: " + why)
        self.assertRegex(self.served(), "nothing EPROTO: " + why)
        self.both("exchange", 3, 1 << 20)
        self.assertIsNone(other.poll())

    def test_foreign_memory(self):
        """A peer that names memory it does not have: the read or write is refused, and the connection ends with that."""
        self.assertRegex(self.hostile("foreign"), "disconnected|abort")
        self.assertRegex(self.served(), "nothing EPROTO: the peer's memory refused")
        self.assertRegex(self.hostile("sink"), "disconnected|abort")
        self.assertRegex(self.served(), "gush EPROTO: the peer's memory refused")
        self.both("exchange", 3, 1 << 20)


if __name__ == "__main__":
    urnicd_common.Nicd.NICD, ENDS, HOSTILE, urnicd_common.Nicd.CONFIG = map(os.path.abspath, sys.argv[1:5])
    urnicd_common.Nicd.PERF, MANY, THREADS = map(os.path.abspath, sys.argv[5:8])
    unittest.main(argv=[sys.argv[0]] + sys.argv[8:], verbosity=2)
