#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic-perf rma_..., am_... and write_send_bw from the outside, embedded and attached: each counts what ended well and
compares what was moved (AM-1 to AM-5, AM-8). No test depends on speed."""

import json
import os
import signal
import shutil
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True  # no cache of the modules of tests
import signals
from urnicd_common import Nicd

RMA = ("rma_write_bw", "rma_read_bw", "rma_write_lat", "rma_read_lat")
AM = ("am_lat", "am_rate", "am_payload")
STAMPS = 16  # bytes that the check of a message compares at least, if the message has so many


def run(*args, timeout=100):
    return subprocess.run([Nicd.PERF, *args], capture_output=True, text=True, timeout=timeout, check=False)


def judge(case, r, op, iters):
    """Check what every result must have."""
    case.assertEqual((r["op"], r["messages"], r["bytes"]), (op, iters, iters * r["size"]))
    case.assertTrue(r["checked"])
    case.assertGreater(r["checked_bytes"], 0)
    case.assertGreater(r["lat_us"]["p50"], 0)
    if op in AM:  # a payload is compared wherever it comes
        ways = 2 if op == "am_lat" else 1
        case.assertGreaterEqual(r["handled"], iters)
        case.assertGreaterEqual(r["checked_bytes"], iters * ways * min(r["size"], STAMPS))
    if op in RMA + AM:
        case.assertEqual(r["qps"], 0)


class Embedded(unittest.TestCase):
    def measure(self, op, *args, iters=1000):
        p = run(op, "--json", "--iters", str(iters), "--idle", "pause", *args)
        self.assertEqual((p.returncode, p.stderr), (0, ""), (op, args))
        r = json.loads(p.stdout)
        judge(self, r, op, iters)
        return r

    def test_each_counts_what_it_moved(self):
        for op in RMA + AM:
            with self.subTest(op):
                r = self.measure(op)
                self.assertEqual(r["drops"], {})
                if op in AM:  # the handler ran once for each request (AM-1)
                    self.assertEqual(r["handled"], 1100)
                    # ... and answers share messages, 25 of this length one (a ping-pong's do not)
                    least = 2 * 1100 if op == "am_lat" else 1100 + 1100 // 25
                    self.assertTrue(least <= r["counters"]["rx_msg"] <= 2 * 1100, r["counters"]["rx_msg"])

    def test_sizes(self):
        for size in ("1", "7", "8", "16", "4032", "4096", "4097", "100000", "1M"):
            for op in ("rma_write_bw", "rma_read_bw"):
                with self.subTest(op + size):
                    self.measure(op, "--size", size, "--full-check", iters=40)
        for size in ("8", "9", "4096", "100000", "1M"):
            for op in AM:
                with self.subTest(op + size):
                    self.measure(op, "--size", size, "--full-check", iters=20)
        self.measure("rma_write_bw", "--size", "32M", "--full-check", iters=2)
        self.measure("rma_read_bw", "--size", "20000", "--ip", "6", "--mtu", "1024", iters=100)
        self.measure("am_payload", "--size", "20000", "--ip", "6", "--mtu", "1024", iters=100)

    def test_ways(self):
        """A way is the one that was asked for (AM-2 to AM-4, AM-8)."""
        for way in ("direct", "pipelined", "auto"):
            for op in ("rma_write_bw", "rma_read_bw"):
                r = self.measure(op, "--rma", way, "--size", "4096", "--full-check")
                self.assertEqual((r["rma"], r["reply_every"] if op == "rma_write_bw" else ""),
                                 (way, "packet" if op == "rma_write_bw" else ""))
                self.assertNotIn("rx_am_tag_request", r["counters"])
        p = run("rma_write_bw", "--rma", "direct", "--size", "4097", "--idle", "pause")
        self.assertEqual((p.returncode, p.stdout, p.stderr.count("\n")), (1, "", 1))
        self.assertIn("of way direct ended with bad-command", p.stderr)

    def test_tagged(self):
        """A tagged operation moves all bytes to their places (AM-5, AM-6)."""
        for op in ("rma_write_bw", "rma_read_bw"):
            r = self.measure(op, "--rma", "tagged", "--size", "100000", "--full-check")
            self.assertEqual(r["rma"], "tagged")
            self.assertGreaterEqual(r["counters"]["rx_am_tag_request"], 1000)
            self.measure(op, "--rma", "tagged", "--size", "100000", "--loss", "2", "--full-check", iters=200)

    def test_replies_are_merged(self):
        """One reply for several packets, or for the whole transfer (AM-4)."""
        for every in ("1", "8", "254", "transfer"):
            args = ("--rma", "pipelined", "--size", "100000", "--reply-every", every, "--full-check")
            self.assertEqual(self.measure("rma_write_bw", *args, iters=200)["reply_every"], every)
            self.measure("rma_write_lat", *args, "--loss", "1", iters=200)

    def test_loss(self):
        """Packets that are lost, doubled and delayed are repeated: each operation and each handler is done once."""
        for op in RMA + AM:
            with self.subTest(op):
                r = self.measure(op, "--loss", "2", "--dup", "2", "--reorder", "2", "--seed", "3", "--full-check",
                                 iters=2000)
                self.assertGreater(r["retransmits"], 0)
        # Payloads of many packets are put together in each order.
        r = self.measure("am_payload", "--size", "1M", "--loss", "2", "--dup", "2", "--reorder", "2", "--full-check", iters=50)
        self.assertGreater(r["retransmits"], 0)

    def test_chains(self):
        """Short operations are issued in chains, unless each says how often it is replied to; all are counted."""
        for op in ("rma_write_bw", "rma_read_bw"):
            r = self.measure(op, "--size", "64", "--full-check", iters=1003)  # no multiple of a chain
            self.assertEqual((r["chain"], r["counters"]["am_done"]), (16, 1003 + r["depth"]))
        self.assertEqual(self.measure("rma_write_bw", "--size", "64", "--reply-every", "2")["chain"], 1)
        self.assertEqual(self.measure("rma_write_lat")["chain"], 1)

    def test_write_and_send(self):
        for args in ((), ("--size", "1"), ("--size", "64", "--qps", "40"), ("--size", "1M"), ("--loss", "2"),
                     ("--lcores", str(sorted(os.sched_getaffinity(0))[0]))):
            with self.subTest(args):
                r = self.measure("write_send_bw", "--full-check", *args, iters=800)
                self.assertGreaterEqual(r["checked_bytes"], 800 * r["size"])

    def test_written_in_place(self):
        """Payloads that are written where they are sent from, and those written before, arrive (AM-1)."""
        for args in (("am_payload", "--prepare"), ("am_rate", "--prepare"), ("am_payload", "--fill"), ("write_send_bw", "--fill"),
                     ("am_payload", "--prepare", "--size", "20000", "--loss", "2"), ("am_payload", "--prepare", "--size", "1M"),
                     ("am_payload", "--prepare", "--size", "8", "--ip", "6")):
            with self.subTest(args):
                r = self.measure(*args, "--full-check", iters=300)
                self.assertTrue(r["fill"])
                self.assertEqual(r.get("prepare", False), "--prepare" in args)
                self.assertGreaterEqual(r["checked_bytes"], 300 * r["size"])
        r = self.measure("am_payload")
        self.assertFalse(r["fill"] or r["prepare"])
        core = str(sorted(os.sched_getaffinity(0))[0])
        p = run("am_payload", "--prepare", "--iters", "200", "--idle", "pause", "--lcores", core)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn("am_payload --prepare: 4 KiB", p.stdout)

    def test_memif(self):
        """The same operations over a link of shared memory (AM-12)."""
        for op in RMA + AM:
            with self.subTest(op):
                self.assertEqual(self.measure(op, "--link", "memif", "--full-check", iters=300)["link"], "memif")
        self.measure("rma_write_bw", "--link", "memif", "--rma", "tagged", "--size", "100000", "--full-check", iters=50)

    def test_one_core_and_text(self):
        core = str(sorted(os.sched_getaffinity(0))[0])
        for op in RMA + AM:
            self.measure(op, "--lcores", core, iters=200)
        for op, text in (("rma_write_bw", "auto, depth 16"), ("am_lat", "half round trip"),
                         ("am_rate", "request to reply"), ("rma_read_lat", "(round trip)")):
            p = run(op, "--iters", "200", "--idle", "pause", "--lcores", core)
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertIn(text, p.stdout)
            self.assertIn("data checked: yes", p.stdout)

    def test_bad_options(self):
        for args in (("rma_write_bw", "--size", "0"), ("rma_write_bw", "--qps", "2"), ("rma_write_bw", "--with-limit"),
                     ("rma_write_bw", "--depth", "1025"), ("rma_write_lat", "--depth", "2"), ("rma_write_bw", "--foreign"),
                     ("rma_read_bw", "--reply-every", "2"), ("rma_write_bw", "--reply-every", "255"),
                     ("rma_write_bw", "--reply-every", "0"), ("rma_write_bw", "--rma", "fast"),
                     ("am_rate", "--rma", "direct"), ("am_rate", "--size", "7"), ("am_payload", "--size", "1048577"),
                     ("am_rate", "--depth", "4097"), ("am_payload", "--size", "1M", "--depth", "1000"),
                     ("am_lat", "--prepare"), ("write_send_bw", "--prepare"), ("write_bw", "--fill"),
                     ("am_lat", "--sets", "2"), ("am_lat", "--ud"), ("am_lat", "--link", "null"),
                     ("rma_write_bw", "--attach", "auto", "--peer", "h"), ("write_bw", "--rma", "direct"),
                     ("write_send_bw", "--size", "0"), ("write_send_bw", "--srq", "yes"),
                     ("write_send_bw", "--with-limit"), ("write_send_bw", "--attach", "auto", "--peer", "h")):
            with self.subTest(args):
                p = run(*args)
                self.assertEqual((p.returncode, p.stdout, p.stderr.count("\n")), (2, "", 1))

    def test_interrupt_reports(self):
        for op in ("rma_write_bw", "am_rate"):
            with self.subTest(op):
                p = subprocess.Popen([Nicd.PERF, op, "--json", "--duration", "600", "--idle", "pause"],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                signals.measures(p)
                signals.send(p, signal.SIGINT)
                out, err = p.communicate(timeout=60)
                self.assertEqual(p.returncode, 128 + signal.SIGINT, err)
                self.assertTrue(json.loads(out)["interrupted"])


class Attached(Nicd):
    def test_each_operation_between_two_nodes(self):
        p, _ = self.start()
        for op in RMA + AM + ("write_send_bw",):
            with self.subTest(op):
                judge(self, self.perf(op, "--iters", "300", "--full-check"), op, 300)
        judge(self, self.perf("rma_read_bw", "--iters", "20", "--size", "1M", "--nodes", "b,a"), "rma_read_bw", 20)
        # Each way, and each mode of replies (AM-2 to AM-6).
        for way, size in (("direct", "4096"), ("pipelined", "100000"), ("tagged", "100000"), ("auto", "1M")):
            for op in ("rma_write_bw", "rma_read_lat"):
                with self.subTest((op, way)):
                    r = self.perf(op, "--rma", way, "--size", size, "--iters", "20", "--full-check")
                    judge(self, r, op, 20)
                    self.assertEqual(r["rma"], way)
        for every in ("packet", "8", "transfer"):
            with self.subTest(every):
                r = self.perf("rma_write_bw", "--rma", "pipelined", "--reply-every", every, "--size", "100000",
                              "--iters", "20", "--full-check")
                judge(self, r, "rma_write_bw", 20)
                self.assertEqual(r["reply_every"], every)
        # The own node is a valid target.
        judge(self, self.perf("am_lat", "--iters", "100", "--nodes", "a,a"), "am_lat", 100)
        judge(self, self.perf("rma_write_bw", "--iters", "100", "--nodes", "a,a"), "rma_write_bw", 100)
        self.assertEqual(self.stop(p)[0], 0)

    def test_dataplane_dies(self):
        for op in ("rma_write_bw", "am_rate"):
            with self.subTest(op):
                p, _ = self.start()
                perf = self.popen(self.PERF, op, "--attach", self.socket, "--duration", "60")
                signals.measures(perf)
                p.kill()
                p.wait()
                _, err = perf.communicate(timeout=80)
                self.assertEqual((perf.returncode, err.count("\n")), (1, 1), err)


class Links(Nicd):
    """The same program over any link (AM-12): nothing of it depends on the port."""
    NODE = ("[port p{node}]\ndevice = {device}\n[adapter {node}0]\nnode = {node}\nport = p{node}\nipv4 = 10.0.0.{n}\n"
            "ipv6 = fd00::{n}\n")

    def dataplane(self, name, text, *before):
        """Start a urnicd with ports of its own. returns: its socket"""
        sock, path = (os.path.join(self.dir.name, name + end) for end in (".sock", ".ini"))
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[urnicd]\nsocket = {sock}\nlog = off\nidle = pause\nempty_polls = 4\n{text}")
        p = self.popen(*before, self.NICD, "-c", path, cwd=self.dir.name)
        line = p.stderr.readline()
        self.assertIn("listening at", line, line or p.poll())
        return sock

    def every_operation(self, *args):
        for op in RMA + AM:
            with self.subTest(op):
                p = subprocess.run([self.PERF, op, "--json", "--iters", "200", "--full-check", *args], env=self.env,
                                   capture_output=True, text=True, timeout=100, check=False)
                self.assertEqual((p.returncode, p.stderr), (0, ""))
                judge(self, json.loads(p.stdout), op, 200)

    def end(self):
        """Stop the dataplanes. Each must end with 0 and no message."""
        for p in reversed(self.running):
            p.terminate()
            self.assertEqual(p.communicate(timeout=60)[1], "")
            self.assertEqual(p.returncode, 0)

    def test_two_ports_over_memif(self):
        """Two ends of a shared memory, which are ports of one dataplane."""
        text = "".join(self.NODE.format(node=node, n=n, device=f"net_memif{n},role={role},socket={self.dir.name}/memif")
                       for node, n, role in (("a", 1, "server"), ("b", 2, "client")))
        sock = self.dataplane("memif", text)
        self.every_operation("--attach", sock)
        for way in ("direct", "pipelined", "tagged"):
            self.every_way(way, "--attach", sock)
        self.end()

    def every_way(self, way, *args):
        size = "4000" if way == "direct" else "100000"
        for op in ("rma_write_bw", "rma_read_bw"):
            with self.subTest((op, way)):
                p = run(op, "--json", "--iters", "50", "--full-check", "--rma", way, "--size", size, *args)
                self.assertEqual((p.returncode, p.stderr), (0, ""))
                judge(self, json.loads(p.stdout), op, 50)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("ip"), "a pair of kernel interfaces needs root and ip")
    def test_packet_sockets_over_veth(self):
        """Two ports of the kernel's, in a network of their own, which ends with the dataplane."""
        text = "".join(self.NODE.format(node=node, n=n, device=f"net_af_packet{n},iface=urnv{n}") for node, n in (("a", 1), ("b", 2)))
        sock = self.dataplane("veth", text, "unshare", "--net", "sh", "-c",
                              "ip link add urnv1 mtu 4188 type veth peer name urnv2 mtu 4188 && "
                              "ip link set urnv1 up && ip link set urnv2 up && exec \"$@\"", "sh")
        self.every_operation("--attach", sock)
        self.end()


if __name__ == "__main__":
    Nicd.NICD, Nicd.PERF, Nicd.CONFIG = map(os.path.abspath, sys.argv[1:4])
    del sys.argv[1:4]
    unittest.main(verbosity=2)
