#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified programs of RDMA-CM on the drop-in librdmacm.so.1, from Debian's packages (CM-1).

usage: rdmacm.py urnicd urnic-run CONFIG_FOLDER FORK [TEST...]

A server on node a (10.0.0.1) and a client on node b (10.0.0.2) of one urnicd. The kernel has neither address."""

import glob
import os
import re
import shutil
import subprocess
import sys
import time
import unittest

import dropin_common

FORK = None
TRIES = 5
PINGS = 500 # more than a program waits until it is connected
A = "10.0.0.1"
# The server does not listen yet. (perftest: 8 is the event.)
EARLY = r"REJECTED, error:? 8|[Rr]efused|status 8|CM event bl blka 8"
# perftest's second connection comes before its server listens anew: only look-ups of datagrams, which do not wait.
LATE = r"REJECTED; error: 8"


class Rdmacm(dropin_common.Dropin):
    def done(self, p):
        """Wait for a program's end, without an error. returns: its output"""
        code, out = self.ends(p)
        self.assertEqual(code, 0, out)
        return out

    def join(self, server, client):
        """Run a server and a client, anew when the client came before the server listened. A client that is refused later, or
        crashes, is an error. returns: outputs of both"""
        datagrams = "UD" in client.split()
        end = time.time() + dropin_common.SECONDS
        while True:
            s = self.on("a", *server.split())
            time.sleep(0.3)
            code, out = self.ends(self.on("b", *client.split()))
            if code != 0:
                if not datagrams and re.search(LATE, out):
                    # The server's last message on the first connection may not be acknowledged any more: it ends with an error.
                    self.until(lambda: s.poll() is not None, 10)
                s.kill()
            status, said = self.ends(s)
            if code == 0 and status == 0:
                return said, out
            self.assertLess(time.time(), end, out)
            if not self.unlucky(code, out) and not self.unlucky(status, said):
                self.assertNotEqual(code, 0, (server, said))
                self.assertRegex(out, f"{EARLY}|{LATE}" if datagrams else EARLY, (code, said))
                self.assertTrue(code > 0 or datagrams, (code, out))

    def test_rping(self):
        """rping verifies what it reads and writes, in several sizes."""
        server, client = self.join(f"rping -s -a {A} -V -v -C 10", f"rping -c -a {A} -V -v -C 10")
        self.assertEqual(len(re.findall(r"^server ping data: rdma-ping-\d", server, re.M)), 10, server)
        self.assertEqual(len(re.findall(r"^ping data: rdma-ping-\d", client, re.M)), 10, client)
        for size in (4096, 65000): # silent: the server's pipe is not read before its end
            self.join(f"rping -s -a {A} -V -S {size} -C 50", f"rping -c -a {A} -V -S {size} -C 50")

    def test_rping_own_qp(self):
        """-q: the program takes its queue pair up by rdma_init_qp_attr(), and the client establishes."""
        server, client = self.join(f"rping -s -a {A} -q -V -v -C 5", f"rping -c -a {A} -q -V -v -C 5")
        self.assertEqual(len(re.findall(r"^ping data: rdma-ping-\d", client, re.M)), 5, client + server)

    @staticmethod
    def waits(p):
        """How often threads of a program have waited: for each ping one waits for a completion."""
        n = 0
        for path in glob.glob(f"/proc/{p.pid}/task/*/status"):
            try:
                with open(path, encoding="utf-8", errors="replace") as f:
                    n += int(re.search(r"\nvoluntary_ctxt_switches:\s+(\d+)", f.read())[1])
            except OSError:
                pass # the thread has ended
        return n

    def pinging(self, *how):
        """Start rping's server and a client that pings without end. returns: both, when pings go there and back"""
        s = self.on("a", *f"rping -s -a {A} -C 100000000".split(), *how)
        end = time.time() + dropin_common.SECONDS
        while True:
            c = self.on("b", *f"rping -c -a {A} -C 100000000".split())
            self.assertTrue(self.until(lambda: c.poll() is not None or self.waits(c) > PINGS))
            if c.poll() is None:
                return s, c
            code, out = self.ends(c)
            self.assertRegex(out, EARLY, code)
            self.assertLess(time.time(), end, out)

    def test_rping_many(self):
        """A persistent server serves clients one after the other, while another one stays connected."""
        # rping's server confuses requests that come at once, so the first client is served before others ask.
        s, first = self.pinging("-P", "-V")
        for _ in range(3):
            self.done(self.on("b", *f"rping -c -a {A} -V -C 20".split()))
        self.assertIsNone(first.poll())
        self.assertIsNone(s.poll())

    def test_rping_nobody(self):
        """Nobody listens: the client is refused."""
        code, out = self.ends(self.on("b", *f"rping -c -a {A} -C 1".split()))
        self.assertEqual(code, 255, out)
        self.assertIn("RDMA_CM_EVENT_REJECTED", out)

    def test_ucmatose(self):
        """ucmatose: one connection; several; with ids that move to another channel; with a type of service."""
        for options in ("", "-c 8 -C 50", "-c 3 -C 20 -m", "-t 32 -S 4096"):
            server, client = self.join(f"ucmatose {options}", f"ucmatose -s {A} {options}")
            for out in (server, client):
                self.assertIn("data transfers complete", out)
                self.assertIn("return status 0", out)

    def test_v6(self):
        """IPv6 addresses, by number."""
        self.again(a0="ipv6 = fd00:7::1", b0="ipv6 = fd00:7::2")
        self.join("rping -s -a fd00:7::1 -V -C 10", "rping -c -a fd00:7::1 -V -C 10")
        self.join("rping -s -a ::0 -V -C 10", "rping -c -a fd00:7::1 -V -C 10")
        self.join("udaddy -b fd00:7::1", "udaddy -s fd00:7::1 -b fd00:7::2")

    def test_urnicd_ends(self):
        """Programs learn that the dataplane is gone, and none hangs that waits for events."""
        s, c = self.pinging()
        self.nicd.kill()
        self.nicd.communicate()
        self.running.remove(self.nicd)
        for p in (s, c):
            _, out = self.ends(p)
            self.assertRegex(out, "(?i)removal|error|fail|gone", p.args)
        os.unlink(self.socket)
        shutil.rmtree(self.run)
        os.mkdir(self.run, 0o700)
        self.nicd, _ = self.start()

    def test_names(self):
        """The library has each name of the system's with its version, needs no libibverbs, and is never unloaded."""
        def names(path):
            out = subprocess.run(["objdump", "-T", path], capture_output=True, text=True, check=True).stdout
            return set(re.findall(r"(RDMACM_\S+?)\)?\s+(\w+)$", out, re.M))
        own = os.path.join(os.path.dirname(self.RUN), "../../lib/dropin/librdmacm.so.1")
        system = glob.glob("/usr/lib/*/librdmacm.so.1") + glob.glob("/usr/lib64/librdmacm.so.1")
        self.assertGreater(len(names(own)), 60)
        if system:
            self.assertEqual(names(system[0]) - names(own), set())
        dynamic = subprocess.run(["readelf", "-d", own], capture_output=True, text=True, check=True).stdout
        self.assertIn("liburnic.so.1", dynamic)
        self.assertNotIn("libibverbs", dynamic)
        self.assertIn("NODELETE", dynamic)

    def test_udaddy(self):
        """udaddy: datagrams, looked up by one id and by several."""
        for options in ("", "-c 3 -C 30 -S 900"):
            server, client = self.join(f"udaddy {options}", f"udaddy -s {A} {options}")
            for out in (server, client):
                self.assertIn("data transfers complete", out)
                self.assertIn("return status 0", out)

    def completes(self, p):
        out = self.done(p)
        self.assertIn("data transfers complete", out)
        self.assertIn("return status 0", out)

    def test_mckey(self):
        """mckey: datagrams to a group come to a member on each node, and the joins name the group's GID and queue pair."""
        self.groups({"a": "10.0.0.1", "b": "10.0.0.2"}, "::ffff:", {"239.0.0.1": ("-s",), "239.1.2.3": ("-s", "-o")})

    def test_mckey_v6(self):
        """The same with groups of IPv6: of global and of link-local scope."""
        self.again(a0="ipv6 = fd00:7::1", b0="ipv6 = fd00:7::2")
        self.groups({"a": "fd00:7::1", "b": "fd00:7::2"}, "", {"ff0e::7:1": ("-s",), "ff02::7:2": ("-s", "-o")})

    def groups(self, own, before, groups):
        """Members on each node join groups at their own addresses, and get what senders send. before: the start of a group's GID"""
        # Two groups at once, because mckey sleeps before it sends. A sender with -o does not join to receive.
        def mckey(node, group, *more):
            return group, self.on(node, "stdbuf", "-oL", "mckey", "-m", group, "-b", own[node], "-C", "20", "-S", "512", *more)
        members = [mckey(node, group) for group in groups for node in ("a", "b")]
        for group, p in members:
            self.assertIn(f"mckey: joined dgid: {before}{group} mlid 0x0", self.reads(p, "mlid 0x0"))
        # A sender ends without waiting for its requests: on a busy machine the last ones may not go out, and a member waits for
        # as many as it has not got.
        for _ in range(TRIES):
            senders = [mckey("a", group, *how) for group, how in groups.items()]
            for _, p in senders:
                self.completes(p)
            if self.until(lambda: all(p.poll() is not None for _, p in members), 5):
                break
        for _, p in members:
            self.completes(p)

    def test_endpoints(self):
        """rdma_server and rdma_client, rdma_xserver and rdma_xclient: synchronous endpoints."""
        server, client = self.join(f"rdma_server -s {A}", f"rdma_client -s {A}")
        self.assertIn("rdma_server: end 0", server)
        self.assertIn("rdma_client: end 0", client)
        server, client = self.join("rdma_xserver", f"rdma_xclient -s {A}")
        self.assertIn("rdma_xserver: end 0", server)
        self.assertIn("rdma_xclient: end 0", client)

    def perftest(self, *programs):
        for program in programs:
            self.join(f"{program} -R -n 200", f"{program} -R -n 200 {A}")

    def test_perftest(self):
        """perftest connects by RDMA-CM with -R."""
        self.perftest("ib_write_bw", "ib_read_bw -q 4", "ib_send_lat", "ib_send_bw --use-srq -q 2", "ib_atomic_bw")

    def test_perftest_latency(self):
        self.perftest("ib_write_lat", "ib_read_lat", "ib_atomic_lat")

    def test_perftest_options(self):
        """Options of perftest's with -R: both directions, inline data, regions of each queue pair, time instead of a count."""
        for words in ("ib_write_bw -b -n 100", "ib_send_lat -I 64 -n 100", "ib_write_bw --mr_per_qp -q 2 -n 100", "ib_read_lat -D 1",
                      "ib_send_bw -c UD -n 100 -s 256"):
            self.join(f"{words} -R", f"{words} -R {A}")

    def test_perftest_ud(self):
        self.perftest("ib_send_lat -c UD")

    def test_perftest_events(self):
        self.perftest("ib_send_bw -e")

    def test_killed(self):
        """A killed client's server learns of the end."""
        s, c = self.pinging()
        subprocess.run(["kill", "-9", str(c.pid)], check=True)
        _, out = self.ends(s)
        # The server's READs or WRITEs may fail before the connection ends, because the client's memory goes first: then
        # rping ends at the failed completion, and looks at no further event.
        self.assertRegex(out, "DISCONNECT|cq completion failed")

    def test_fork(self):
        """A daemon's child serves and a child asks, after their parents used the devices; the parents' ids are of no use to them."""
        server = self.on("a", FORK, "serve", A)
        self.assertEqual(server.stdout.readline(), "listening\n")
        self.assertIn("answered", self.done(self.on("b", FORK, "ask", A)))
        self.assertIn("served", self.done(server))

    def test_fork_storm(self):
        """Children of a process whose threads are in calls of RDMA-CM and rsockets make their own ids and sockets; none hangs."""
        self.assertIn("weathered", self.done(self.on("b", FORK, "storm", "10.0.0.2", A)))

    def test_absent(self):
        """Rsockets that nobody serves fail and say so; none crashes or hangs."""
        for command in (f"rstream -s {A}", f"riostream -s {A}", f"rcopy /etc/passwd {A}"):
            p = self.on("b", *command.split())
            code, out = self.ends(p)
            self.assertGreaterEqual(code, 0, out)
            self.assertRegex(out, r"(?i)not supported|error|failed|unable|refused|rpoll: ", command)


if __name__ == "__main__":
    Rdmacm.NICD, Rdmacm.RUN, Rdmacm.CONFIG, FORK = map(os.path.abspath, sys.argv[1:5])
    unittest.main(argv=[sys.argv[0]] + sys.argv[5:], verbosity=2)
