#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic-perf from the outside: every operation runs, checks its data and prints true
figures in JSON; bad options and Ctrl-C end urnic-perf in order. No test depends on speed."""

import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # no cache of signals
import signals

PERF = None
CORES = sorted(os.sched_getaffinity(0))
KEYS = ["op", "size", "qps", "idle_qps", "depth", "mtu", "messages", "bytes", "seconds", "gbps", "msg_rate",
        "lat_us", "retransmits", "drops"]


def run(*args, timeout=100):
    return subprocess.run([PERF, *args], capture_output=True, text=True, timeout=timeout)


def frames(path):
    """The frames of a pcapng file, from its enhanced packet blocks."""
    with open(path, "rb") as g:
        b = g.read()
    out, at = [], 0
    while at < len(b):
        kind, size = struct.unpack_from("<II", b, at)
        if kind == 6:
            n = struct.unpack_from("<I", b, at + 20)[0]
            out.append(b[at + 28:at + 28 + n])
        at += size
    return out


class Perf(unittest.TestCase):
    def measure(self, op, *args, iters=2000, **expect):
        """Run urnic-perf, check what every result must have, return the JSON."""
        p = run(op, "--json", "--iters", str(iters), "--idle", "pause", *args)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(p.stderr, "")
        r = json.loads(p.stdout)
        self.assertEqual(list(r)[:len(KEYS)], KEYS)
        self.assertEqual(list(r["lat_us"]), ["min", "p50", "p99", "p999", "max"])
        self.assertEqual(r["op"], op)
        self.assertEqual(r["messages"], iters)
        self.assertEqual(r["bytes"], iters * r["size"])
        self.assertGreater(r["seconds"], 0)
        self.assertLessEqual(r["lat_us"]["min"], r["lat_us"]["p50"])
        self.assertLessEqual(r["lat_us"]["p999"], r["lat_us"]["max"])
        for key, value in expect.items():
            self.assertEqual(r[key], value, key)
        return r

    def test_letters_and_counts_that_are_none(self):
        """-s and -n as perftest has them; "-" for a count that a family of operations has not."""
        for op, more, line in (("send_bw", (), "  retransmits:  0, timeouts 0, RNR NAKs 0"),
                               ("send_bw", ("--ud",), "  retransmits:  -, timeouts -, RNR NAKs -"),
                               ("msg_rate", (), "  retransmits:  0, timeouts 0, RNR NAKs -"),
                               ("rma_write_bw", (), "  retransmits:  0, timeouts 0, RNR NAKs -")):
            p = run(op, "-s", "512", "-n300", "--idle", "pause", *more)
            self.assertEqual(p.returncode, 0, p.stderr)
            said = [w for w in p.stdout.splitlines() if w.startswith("  retransmits:")]
            # A loaded machine repeats now and then, so only the dashes are sure.
            self.assertEqual([w.translate(str.maketrans("", "", "0123456789")) for w in said],
                             [line.replace("0", "")])
            self.assertEqual(p.stdout.splitlines()[2].split()[:2], ["300", str(300 * 512)], p.stdout)

    def test_every_operation_moves_checked_data(self):
        for op in ("write_bw", "read_bw", "send_bw", "write_lat", "read_lat", "send_lat",
                   "atomic_lat", "atomic_bw"):
            with self.subTest(op):
                r = self.measure(op, checked=True)
                self.assertGreaterEqual(r["checked_bytes"], 1000)
                self.assertGreater(r["lat_us"]["p50"], 0)
                self.assertGreater(r["qp_bytes"], 0)

    def test_recovery(self):
        for how in ("selective", "gbn"):
            r = self.measure("write_bw", "--recovery", how, recovery=how)
            self.assertEqual(r["drops"], {})
            self.assertGreaterEqual(r["counters"]["rx_link_requests"], 1)
        self.measure("write_bw", recovery="selective")

    def test_limit(self):
        self.measure("limit", checked=True)
        self.measure("limit", "--size", "64", "--no-icrc", checked=True, icrc=False)
        self.measure("limit", "--no-sender-copy", checked=True)
        self.assertGreater(self.measure("limit", "--lat", checked=True)["lat_us"]["p50"], 0)
        self.measure("limit", "--lat", "--size", "20000", "--mtu", "1024", checked=True)
        self.measure("limit", "--link", "null", checked=False)

    def test_idle_queue_pairs(self):
        self.measure("send_bw", "--qps", "3", "--idle-qps", "5000", checked=True, idle_qps=5000)
        self.measure("write_bw", "--idle-qps", "1", checked=True, idle_qps=1)

    def test_memcpy(self):
        for size in ("1", "64", "64K", "100000"):
            self.measure("memcpy", "--size", size, checked=True)

    def test_hist_holds_every_latency(self):
        r = self.measure("send_lat", "--hist")
        self.assertEqual(sum(n for _, n in r["hist_ns"]), r["messages"])
        self.assertEqual(r["hist_ns"], sorted(r["hist_ns"]))
        self.assertAlmostEqual(r["hist_ns"][0][0] / 1000, r["lat_us"]["min"],
                               delta=0.01 * r["lat_us"]["min"])

    def test_sizes_that_are_edges(self):
        for op in ("write_bw", "send_bw", "read_bw", "write_lat", "send_lat"):
            for size in ("0", "1", "7", "8", "9", "255", "256", "257", "4095", "4097", "100000"):
                if size == "0" and op == "write_lat":
                    continue
                with self.subTest(op=op, size=size):
                    self.measure(op, "--size", size, iters=200, checked=size != "0")

    def test_full_check_and_no_check(self):
        for op in ("write_bw", "send_bw", "read_bw"):
            self.measure(op, "--full-check", iters=500, checked=True)
            self.measure(op, "--no-check", iters=500, checked=False, checked_bytes=0)

    def test_small_mtu_and_ipv6(self):
        self.measure("write_bw", "--mtu", "256", iters=300, mtu=256)
        self.measure("send_bw", "--ip", "6", "--mtu", "1024", iters=300, ip="6")

    def test_many_qps(self):
        self.measure("send_bw", "--qps", "16", "--size", "64", iters=20000, qps=16)
        self.measure("send_bw", "--qps", "500", "--size", "64", iters=20000, qps=500)
        self.measure("write_bw", "--qps", "100", "--size", "64", iters=20000)
        self.measure("send_lat", "--qps", "40", iters=2000)
        self.measure("atomic_bw", "--qps", "10", iters=5000)

    def test_switch(self):
        """A switch without impairments counts every packet and loses none."""
        for link in ("ring", "memif"):
            with self.subTest(link):
                wire = self.measure("write_bw", "--switch", "--link", link, checked=True)["wire"]
                self.assertEqual((wire["loss"], wire["delay_us"], wire["queue_drops"]), (0, 0, 0))
                self.assertGreaterEqual(wire["a_to_b"]["pushed"], 2000 * 16)
                self.assertEqual(wire["a_to_b"]["pushed"], wire["a_to_b"]["popped"])
                self.assertNotIn("drop_random", wire["a_to_b"])
        self.assertIn("wire", self.measure("limit", "--switch", checked=True))
        self.assertIn("wire", self.measure("limit", "--switch", "--lat", checked=True))
        self.measure("send_lat", "--switch", "--with-limit", "--lcores", str(CORES[0]))
        self.assertNotIn("wire", self.measure("write_bw"))

    def test_bad_wire(self):
        """Data arrives over a bad wire, and counters say what the wire did to the packets."""
        for op in ("write_bw", "send_bw", "read_bw"):
            with self.subTest(op):
                r = self.measure(op, "--loss", "0.5", "--dup", "2", "--reorder", "5",
                                 "--reorder-depth", "3", "--corrupt", "0.2", "--delay", "20",
                                 "--seed", "7", "--size", "16K", "--full-check", iters=3000,
                                 checked=True)
                data = r["wire"]["b_to_a" if op == "read_bw" else "a_to_b"]
                self.assertGreater(r["retransmits"], 0)
                self.assertEqual(r["wire"]["reorder_depth"], 3)
                for name in ("drop_random", "duplicated", "corrupted", "reordered"):
                    self.assertGreater(data[name], 0, name)
                self.assertTrue(0.001 < data["drop_random"] / data["pushed"] < 0.02)

    def test_only_early(self):
        """A wire that is slower than the first timeout makes repeats early; over one that loses packets they are needed."""
        p = run("send_lat", "--delay", "400ms", "--timeout", "17", "--iters", "1", "--idle", "pause")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertRegex(p.stdout, r"retransmits:  [1-9]")
        self.assertIn("repeats:      only early", p.stdout)
        r = self.measure("write_bw", "--loss", "2", "--seed", "3", "--size", "16K", iters=3000)
        self.assertGreater(r["retransmits"], 0)
        self.assertIs(r["only_early"], False)
        p = run("write_bw", "--loss", "2", "--iters", "3000")
        self.assertNotIn("only early", p.stdout)

    def test_delay(self):
        """Half a round trip takes the delay of the wire, except when a thread was off its core."""
        r = self.measure("send_lat", "--delay", "200", iters=100)
        self.assertGreaterEqual(r["lat_us"]["p50"], 199)
        self.assertEqual(r["wire"]["delay_us"], 200)

    def test_one_core(self):
        core = str(CORES[0])
        for op in ("write_bw", "send_lat", "limit"):
            self.measure(op, "--lcores", core, iters=500, lcores=[CORES[0]] * 2)

    def test_memif(self):
        for op in ("write_bw", "send_lat", "limit"):
            self.measure(op, "--link", "memif", iters=500, link="memif")

    def test_sleeping_sides_wake(self):
        p = run("send_lat", "--json", "--iters", "100", "--idle", "sleep")
        self.assertEqual(p.returncode, 0, p.stderr)

    def test_with_limit_gives_a_ratio(self):
        for op in ("write_bw", "send_lat", "read_lat"):
            r = self.measure(op, "--with-limit")
            self.assertGreater(r["ratio"], 0)
            self.assertGreater(r["limit_gbps"], 0)

    def test_crc_kernels(self):
        p = run("crc", "--json", "--size", "700")
        self.assertEqual(p.returncode, 0, p.stderr)
        kernels = json.loads(p.stdout)["kernels"]
        self.assertEqual(kernels[-1]["kernel"], "isal")
        self.assertEqual(sum(k["chosen"] for k in kernels), 1)
        for k in kernels:
            self.assertEqual([s["size"] for s in k["sizes"]], [700])
            self.assertGreater(k["sizes"][0]["copy_cycles"], 0)
            self.assertEqual("of_limit" in k["sizes"][0], k["kernel"] != "isal")
        p = run("crc", "--size", "64", "--kernel", "isal")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn("64 bytes: CRC", p.stdout)
        self.assertNotIn("sse", p.stdout)
        for args, says in ((("--kernel", "avx1024"), "avx1024"), (("--size", "9217"), "9216"), (("x",), "x is one")):
            p = run("crc", *args)
            self.assertNotEqual(p.returncode, 0)
            self.assertIn(says, p.stderr)

    def test_crc_kernel_by_environment(self):
        for name, code in (("isal", 0), ("avx1024", 1)):
            p = subprocess.run([PERF, "write_bw", "--iters", "10", "--idle", "pause"], capture_output=True, text=True,
                               env=dict(os.environ, URNIC_CRC=name), timeout=60)
            self.assertEqual(p.returncode, code, p.stderr)
            self.assertEqual("URNIC_CRC" in p.stderr, code == 1)

    def test_by_time(self):
        p = run("write_bw", "--json", "--duration", "200ms", "--idle", "pause")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertGreaterEqual(json.loads(p.stdout)["seconds"], 0.19)

    def test_no_icrc_leaves_zeros(self):
        with tempfile.TemporaryDirectory() as d:
            f = os.path.join(d, "out.pcapng")
            for args, zeros in (((), False), (("--no-icrc",), True)):
                p = run("write_bw", "--size", "4096", "--iters", "20", "--idle", "pause", "--capture", f, *args)
                self.assertEqual(p.returncode, 0, p.stderr)
                long = [x for x in frames(f) if len(x) > 1024]
                self.assertGreaterEqual(len(long), 20)
                self.assertEqual({x[-4:] == bytes(4) for x in long}, {zeros})

    def test_text_says_what_was_checked(self):
        p = run("write_bw", "--iters", "500", "--qps", "2", "--idle", "pause")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn("data checked: yes, ", p.stdout)
        self.assertIn("memory per idle QP: ", p.stdout)
        self.assertIn("retransmits", p.stdout)

    def test_capture(self):
        with tempfile.TemporaryDirectory() as d:
            f = os.path.join(d, "out.pcapng")
            self.measure("send_lat", "--capture", f, iters=100)
            with open(f, "rb") as g:
                self.assertEqual(g.read(4), b"\x0a\x0d\x0d\x0a")
            self.assertGreater(os.path.getsize(f), 200 * 64)
            self.look_into(f, at_least=200)
            p = run("send_lat", "--iters", "10", "--capture", os.path.join(d, "no", "such"))
            self.assertEqual(p.returncode, 1)
            self.assertEqual(p.stderr.count("\n"), 1)

    def look_into(self, capture, at_least):
        """tshark finds no malformed packet, and scapy no wrong ICRC (test/interop/judge.py)."""
        judge = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../interop/judge.py")
        p = subprocess.run([judge, "--at-least", str(at_least), capture], capture_output=True,
                           text=True)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)

    def test_bad_options(self):
        for args in ((), ("fly",), ("pingpong", "--peer", "h"), ("write_bw", "--size", "5X"),
                     ("write_bw", "--link", "null"), ("write_bw", "--mtu", "1500"),
                     ("write_bw", "--lcores", "4095")):
            with self.subTest(args):
                p = run(*args)
                self.assertEqual(p.returncode, 2)
                self.assertEqual(p.stdout, "")
                self.assertEqual(p.stderr.count("\n"), 1)
                self.assertTrue(p.stderr.startswith("urnic-perf: "))

    def test_help_and_version(self):
        self.assertIn("write_bw", run("--help").stdout)
        self.assertRegex(run("--version").stdout, r"^urnic-perf \d+\.\d+\.\d+\n$")

    def test_interrupt_reports_and_leaves_nothing(self):
        for op in ("write_bw", "send_lat", "limit"):
            with self.subTest(op):
                d = tempfile.TemporaryDirectory()
                self.addCleanup(d.cleanup)
                env = dict(os.environ, XDG_RUNTIME_DIR=d.name, TMPDIR=d.name)
                p = subprocess.Popen([PERF, op, "--json", "--duration", "600", "--idle", "pause"],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                     env=env)
                try:
                    # The signal may come at any moment, also during the start: urnic-perf must end in order.
                    p.wait(timeout=1.5)
                except subprocess.TimeoutExpired:
                    signals.send(p, signal.SIGINT)
                out, err = p.communicate(timeout=60)
                self.assertEqual(p.returncode, 128 + signal.SIGINT, err)
                if out:
                    self.assertTrue(json.loads(out)["interrupted"])
                self.assertEqual(os.listdir(d.name), [])


if __name__ == "__main__":
    PERF = sys.argv.pop(1)
    unittest.main(verbosity=2)
