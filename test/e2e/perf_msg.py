#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic-perf msg_rate, msg_lat and msg_incast from the outside, embedded and attached: each counts messages that
were answered DONE and that the reader found as they were sent, and errors by code. No test depends on speed."""

import json
import os
import signal
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True  # no cache of the modules of tests
import signals
from urnicd_common import Nicd

OPS = ("msg_rate", "msg_lat", "msg_incast")


def run(*args, timeout=100):
    return subprocess.run([Nicd.PERF, *args], capture_output=True, text=True, timeout=timeout, check=False)


def judge(case, r, op, iters):
    """Check what every result must have (DB-4, DB-7)."""
    ways = 2 if op == "msg_lat" else 1
    case.assertEqual((r["op"], r["messages"], r["bytes"]), (op, iters, iters * r["size"]))
    case.assertTrue(r["checked"])
    case.assertGreaterEqual(r["answers"]["done"], iters * ways)
    case.assertGreaterEqual(r["checked_bytes"], iters * ways * min(r["size"], 64))
    case.assertGreater(r["lat_us"]["p50"], 0)
    case.assertEqual(r["may_be_there"], 0)


class Embedded(unittest.TestCase):
    def measure(self, op, *args, iters=2000):
        p = run(op, "--json", "--iters", str(iters), "--idle", "pause", *args)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        r = json.loads(p.stdout)
        judge(self, r, op, iters)
        return r

    def test_each_counts_what_is_answered_and_found(self):
        for op in OPS:
            with self.subTest(op):
                r = self.measure(op)
                self.assertEqual(list(r["answers"]), ["done"])
                self.assertEqual(r["counters"]["rx_msg"], r["answers"]["done"])
                self.assertEqual(r["drops"], {})

    def test_sizes(self):
        """A message is 8 B to 1 MiB; beyond a packet it goes in parts."""
        for size in ("8", "9", "15", "16", "4032", "4096", "100000", "1M"):
            with self.subTest(size):
                self.measure("msg_rate", "--size", size, "--sets", "4", iters=40)
                self.measure("msg_lat", "--size", size, iters=20)
        self.measure("msg_rate", "--size", "20000", "--full-check", "--ip", "6", "--mtu", "1024", iters=100)

    def test_sets_share_packets(self):
        r = self.measure("msg_rate", "--sets", "1000", iters=20000)
        self.assertEqual((r["sets"], r["entries"]), (1000, 2048))
        self.assertLess(r["counters"]["flow_tx_packets"], r["answers"]["done"] / 2)
        self.measure("msg_rate", "--sets", "1")

    def test_full_queue_is_told(self):
        """A queue of one entry is full most of the time: the answer says so, or the dataplane tries again (DB-5)."""
        r = self.measure("msg_rate", "--entries", "1", "--retries", "0", "--sets", "32", iters=500)
        self.assertGreater(r["answers"]["queue-full"], 0)
        self.assertEqual(r["counters"]["drop_msg_full"], r["answers"]["queue-full"])
        r = self.measure("msg_rate", "--entries", "1", "--sets", "32", iters=500)
        self.assertEqual(list(r["answers"]), ["done"])
        self.assertGreater(r["counters"]["msg_retries"], 0)

    def test_incast(self):
        r = self.measure("msg_incast", "--senders", "15", "--sets", "2", "--size", "1024")
        self.assertEqual((r["senders"], r["sets"]), (15, 2))
        self.assertGreaterEqual(r["wire"]["a_to_b"]["pushed"], 2000 / 16)
        self.measure("msg_incast", "--senders", "1")

    def test_loss(self):
        """Packets that are lost, doubled and delayed are repeated: nothing is missing, nothing came twice."""
        for op in OPS:
            with self.subTest(op):
                r = self.measure(op, "--loss", "2", "--dup", "2", "--reorder", "2", "--seed", "3", iters=3000)
                self.assertGreater(r["retransmits"], 0)

    def test_one_core_and_text(self):
        core = str(sorted(os.sched_getaffinity(0))[0])
        self.measure("msg_lat", "--lcores", core)
        p = run("msg_incast", "--iters", "1000", "--idle", "pause", "--lcores", core)
        self.assertEqual(p.returncode, 0, p.stderr)
        for text in ("8 nodes with 16 register sets", "doorbell to answer", "answers:      done", "no errors",
                     "data checked: yes"):
            self.assertIn(text, p.stdout)

    def test_bad_options(self):
        for args in (("msg_rate", "--size", "7"), ("msg_rate", "--size", "2M"), ("msg_rate", "--qps", "2"),
                     ("msg_rate", "--entries", "100"), ("msg_rate", "--senders", "2"),
                     ("msg_rate", "--with-limit"), ("msg_lat", "--depth", "2"), ("msg_incast", "--senders", "16"),
                     ("send_bw", "--sets", "2"), ("msg_rate", "--ud"), ("msg_rate", "--link", "null"),
                     ("msg_rate", "--attach", "auto", "--peer", "h"), ("msg_rate", "--entries", "65536", "--size", "1M")):
            with self.subTest(args):
                p = run(*args)
                self.assertEqual((p.returncode, p.stdout, p.stderr.count("\n")), (2, "", 1))

    def test_interrupt_reports(self):
        for op in OPS:
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
        for op in OPS:
            with self.subTest(op):
                judge(self, self.perf(op, "--iters", "300"), op, 300)
        judge(self, self.perf("msg_rate", "--iters", "20", "--size", "1M", "--sets", "2", "--nodes", "b,a"),
              "msg_rate", 20)
        # The own node is a valid target (DB-3).
        judge(self, self.perf("msg_lat", "--iters", "100", "--nodes", "a,a"), "msg_lat", 100)
        self.assertEqual(self.stop(p)[0], 0)

    def test_two_programs_do_not_mix(self):
        p, _ = self.start()
        cmd = (self.PERF, "msg_rate", "--attach", self.socket, "--iters", "3000", "--json")
        for one in [self.popen(*cmd) for _ in range(2)]:
            out, err = one.communicate(timeout=60)
            self.assertEqual(one.returncode, 0, err)
            judge(self, json.loads(out), "msg_rate", 3000)
        self.assertEqual(self.stop(p)[0], 0)

    def test_dataplane_dies(self):
        p, _ = self.start()
        perf = self.popen(self.PERF, "msg_rate", "--attach", self.socket, "--duration", "60")
        signals.measures(perf)
        p.kill()
        _, err = perf.communicate(timeout=30)
        self.assertEqual(perf.returncode, 1)
        self.assertIn("gone", err)


if __name__ == "__main__":
    Nicd.NICD, Nicd.PERF, Nicd.CONFIG = map(os.path.abspath, sys.argv[1:4])
    del sys.argv[1:4]
    unittest.main(verbosity=2)
