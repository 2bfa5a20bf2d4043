#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""rsockets on the drop-in librdmacm.so.1: Debian's programs, and calls one by one (RS-1 to RS-4).

usage: rsockets.py urnicd urnic-run CONFIG_FOLDER HOSTILE [TEST...]

A server on node a (10.0.0.1) and a client on node b (10.0.0.2) of one urnicd."""

import filecmp
import glob
import os
import re
import sys
import threading
import time
import unittest

import dropin_common

A = "10.0.0.1"
HERE = os.path.dirname(os.path.abspath(__file__))
HOSTILE = None
SMALL = "-S 5000 -C 200"
MANY_LOGINS = 1000 # a client of udpong needs one


class Rsockets(dropin_common.Dropin):
    def join(self, server, *client):
        """Run a client, anew while the server does not listen yet. returns: its output"""
        end = time.time() + dropin_common.SECONDS
        while True:
            code, out = self.ends(self.on("b", *client))
            if code == 0:
                return out
            # rstream says of a refusal what errno was before: of its connect, or of the last look into a queue.
            if not re.search("efused|rpoll: (Operation now in progress|Resource temporarily unavailable)", out) or server.poll() is not None or time.time() > end:
                if server.poll() is None:
                    server.kill()
                self.fail((client, code, out, self.ends(server)))

    def both(self, server, client):
        """Run a server that ends after one client. returns: the output of each"""
        s = self.on("a", *server.split())
        out = self.join(s, *client.split())
        code, said = self.ends(s)
        self.assertEqual(code, 0, (server, said, out))
        return said, out

    def play(self, scene, side, host=A):
        return self.on("a" if side == "server" else "b", sys.executable, "-u", os.path.join(HERE, "rsockets_play.py"), scene, side, host)

    def scene(self, name, host=A):
        """Play both sides of a scene. returns: the server's output after it listened"""
        server = self.play(name, "server", host)
        self.reads(server, "listening")
        client = self.play(name, "client", host)
        both = [self.ends(client), self.ends(server)]
        for code, out in both:
            self.assertEqual(code, 0, (name, both))
            self.assertIn("right\n", out)
        return both[1][1]

    # ---- programs

    def test_rstream_all(self):
        """All of rstream's own tests, blocking; data are verified."""
        for out in self.both("rstream -T v -T b", f"rstream -T v -T b -s {A}"):
            self.assertEqual(len(re.findall(r"_(?:lat|bw) ", out)), 8, out)

    def test_rstream(self):
        """rstream's short tests: polling, nonblocking, resolving and others, and long messages; data are verified."""
        for options in ("", "-T a", "-T n", "-T r", "-k 1", "-B 4096", "-i 256", "-f ip"):
            self.both(f"rstream -T v {SMALL} {options}", f"rstream -T v {SMALL} {options} -s {A}")
        self.both("rstream -T v -S 1000000 -C 5", f"rstream -T v -S 1000000 -C 5 -s {A}")

    def test_riostream(self):
        """riostream: memory that the peer writes directly."""
        for options in ("-T v", "-T v -T b", "-T v -T a"):
            self.both(f"riostream {SMALL} {options}", f"riostream {SMALL} {options} -s {A}")

    def test_rcopy(self):
        """rcopy brings a file over, each byte of it."""
        here, there = (os.path.join(self.dir.name, name) for name in ("here", "there"))
        with open(here, "wb") as f:
            f.write(os.urandom(5_000_003))
        server = self.on("a", "rcopy")
        self.assertIn("5000003 bytes", self.join(server, "rcopy", here, f"{A}:{there}"))
        self.assertTrue(filecmp.cmp(here, there, shallow=False))

    def udpong_once(self, options):
        """Run udpong's client, which asks anew after a second without an answer. An answer that it did not wait for, it sends
        back, and asks with it for ever: so when a machine stands still for a second, no run of it ends. The server shows it, for
        it lists each login. returns: False: that happened"""
        server = self.on("a", *f"udpong {options}".split())
        logins = []
        reader = threading.Thread(target=lambda: logins.extend(line for line in server.stdout if "client login" in line))
        reader.start()
        code, out = 1, "refused"
        while code != 0 and "efused" in out and server.poll() is None:  # the server does not listen yet
            client = self.on("b", *f"udpong -C 200 -S 500 {options} -s {A}".split())
            self.until(lambda: client.poll() is not None or len(logins) > MANY_LOGINS)
            lost = len(logins) > MANY_LOGINS
            if lost:
                client.kill()
            code, out = self.ends(client)
        self.assertTrue(lost or code == 0, (options, code, out))
        server.kill()
        reader.join()
        server.wait()
        self.running.remove(server)
        return not lost

    def udpong(self, *modes):
        for options in modes:
            self.assertTrue(any(self.udpong_once(options) for _ in range(dropin_common.TRIES)), options)

    def test_udpong(self):
        """udpong: datagrams, which the client sends again."""
        self.udpong("", "-T b", "-T a")

    def test_udpong_echo(self):
        """udpong -T e: the client waits for each answer, and sends nothing again."""
        self.udpong("-T e")

    def test_preload(self):
        """librspreload.so of rdma-core: programs of TCP that know nothing of RDMA."""
        found = glob.glob("/usr/lib/*/rsocket/librspreload.so") + glob.glob("/usr/lib64/rsocket/librspreload.so")
        self.assertTrue(found, "librdmacm1 brings librspreload.so")
        preload = ("env", f"LD_PRELOAD={found[0]}")
        server = self.on("a", *preload, *f"iperf3 -s -1 --forceflush -B {A}".split())
        # A client that is refused would go on with the kernel's TCP.
        self.reads(server, "Server listening")
        code, out = self.ends(self.on("b", *preload, *f"iperf3 -c {A} -t 1".split()))
        self.assertEqual(code, 0, out)
        self.assertIn("iperf Done", out)
        code, out = self.ends(server)
        self.assertEqual(code, 0, out)

    # ---- calls

    def test_half_close(self):
        """3 MB each way are the same, the second after the first direction ended; names of both ends."""
        self.scene("half_close")

    def test_threads(self):
        """One thread sends while another receives, over the smallest queues."""
        self.scene("threads")

    def test_pollers(self):
        """Two threads poll one socket, and a waiter ends when the socket is closed."""
        self.scene("pollers")

    def test_calls(self):
        """MSG_PEEK, MSG_WAITALL, MSG_DONTWAIT, parts of memory, and errors of calls."""
        self.scene("calls")

    def test_nonblocking(self):
        """EINPROGRESS, EAGAIN, POLLOUT, a full stream; rpoll() with other descriptors."""
        self.scene("nonblocking")

    def test_refused(self):
        """Nobody listens: ECONNREFUSED from rconnect(), and by rselect() and SO_ERROR."""
        self.scene("refused")

    def test_iomap(self):
        """riomap(), riowrite(), riounmap(): bytes, offsets, and ends of regions."""
        self.scene("iomap")

    def test_options(self):
        """Options are kept within bounds and given back; SO_KEEPALIVE sends."""
        self.scene("options")

    def test_fork(self):
        """A child has none of its parent's sockets and does not end them; its own work."""
        self.scene("fork")

    def test_dgram(self):
        """Datagrams: bytes, addresses, cut ones, too long ones, and ones to nobody."""
        self.scene("dgram")

    def test_v6(self):
        """IPv6; a listener at any address takes IPv4 too, unless IPV6_V6ONLY."""
        self.again(a0="ipv6 = fd00:7::1", b0="ipv6 = fd00:7::2")
        self.scene("half_close", "fd00:7::1")
        self.scene("dgram", "fd00:7::1")
        self.assertRegex(self.scene("any"), "(?s)::ffff:10.0.0.2\n.*fd00:7::2\n.*fd00:7::2\nfd00:7::2\n")

    def test_loss(self):
        """Datagrams that get lost leave the others as they are."""
        self.again(wire="impair b0.in = drop=1%, seed=7\nimpair a0.in = drop=1%, seed=8")
        self.scene("dgram_lossy")

    # ---- ends and attacks

    def test_killed(self):
        """The peer is killed: threads that receive, poll and send learn of it (ECONNRESET)."""
        server = self.play("killed", "server")
        self.reads(server, "listening")
        client = self.play("killed", "client")
        self.reads(client, "connected")
        self.reads(server, "waiting")
        time.sleep(0.3)
        client.kill()
        code, out = self.ends(server)
        self.assertEqual(code, 0, out)
        self.assertIn("all know", out)
        self.ends(client)

    def test_urnicd_killed(self):
        """The dataplane dies: no call hangs."""
        server = self.play("gone", "server")
        self.reads(server, "listening")
        client = self.play("gone", "client")
        self.reads(client, "connected")
        self.reads(server, "waiting")
        self.nicd.kill()
        self.nicd.communicate()
        for p in (client, server):
            code, out = self.ends(p)
            self.assertEqual(code, 0, out)

    def test_hostile(self):
        """A peer that breaks the protocol ends its connection, writes nowhere else, and harms no other one."""
        server = self.play("attacked", "server")
        self.reads(server, "listening")
        for attack in ("none", "length", "credits", "opcode", "send", "outside", "targets", "version", "list", "short"):
            code, out = self.ends(self.on("b", HOSTILE, A, "6000", attack))
            self.assertEqual(code, 0, (attack, out))
            self.assertIn("served" if attack == "none" else "ended", out, attack)
        code, out = self.ends(self.play("attacked", "client"))
        self.assertEqual(code, 0, out)
        code, out = self.ends(server)
        self.assertEqual(code, 0, out)


if __name__ == "__main__":
    dropin_common.Dropin.NICD, dropin_common.Dropin.RUN, dropin_common.Dropin.CONFIG, HOSTILE = map(os.path.abspath, sys.argv[1:5])
    dropin_common.ordinary_user(sys.argv[1])
    unittest.main(argv=[sys.argv[0]] + sys.argv[5:], verbosity=2)
