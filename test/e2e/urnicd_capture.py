#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Captures of a running urnicd, on command: whole, both directions, under the names of the
configuration, and dissected as RoCEv2 without a fault by Wireshark and scapy."""

import json
import os
import resource
import signal
import struct
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True  # no cache of urnicd_common
from urnicd_common import LONG, Nicd, SECONDS

CTL = JUDGE = None
IN, OUT = 1, 2  # pcapng's directions


class Capture(Nicd):
    def setUp(self):
        super().setUp()
        self.files = os.path.join(self.dir.name, "captures")
        os.mkdir(self.files)

    def begin(self):
        return self.start(daemon=f"capture_dir = {self.files}")[0]

    def ctl(self, *words, code=0):
        """Run a command of urnicctl. returns: its objects, or its error when one is expected"""
        p = subprocess.run([CTL, "--socket", self.socket, "--json", *words], env=self.env, capture_output=True,
                           text=True, timeout=SECONDS, check=False)
        self.assertEqual(p.returncode, code, p.stdout + p.stderr)
        return p.stderr if code else json.loads(p.stdout or "[]")

    def frames(self, name):
        """(interface, direction, length, true when RoCEv2) of every frame of a file, which must be whole."""
        p = subprocess.run(["tshark", "-r", os.path.join(self.files, name), "-T", "fields", "-e",
                            "frame.interface_name", "-e", "frame.packet_flags_direction", "-e", "frame.len",
                            "-e", "infiniband.bth.opcode"],
                           env=dict(os.environ, LC_ALL="C"), capture_output=True, text=True, timeout=SECONDS, check=True)
        self.assertNotIn("cut short", p.stderr)
        found = []
        for line in p.stdout.splitlines():
            interface, direction, length, opcode = line.split("\t")
            found.append((interface, int(direction, 16), int(length), opcode != ""))
        return found

    def fields(self, name, *fields):
        """Fields of every frame of a file."""
        p = subprocess.run(["tshark", "-r", os.path.join(self.files, name), "-T", "fields",
                            *(w for f in fields for w in ("-e", f))],
                           env=dict(os.environ, LC_ALL="C"), capture_output=True, text=True, timeout=SECONDS, check=True)
        return [line.split("\t") for line in p.stdout.splitlines()]

    def interfaces(self, name):
        """Names of the interfaces that a file lists, by its blocks."""
        with open(os.path.join(self.files, name), "rb") as f:
            data = f.read()
        at, names = 0, []
        while at < len(data):
            kind, length = struct.unpack_from("=II", data, at)
            if kind == 1:
                code, size = struct.unpack_from("=HH", data, at + 16)
                self.assertEqual(code, 2)
                names.append(data[at + 20:at + 20 + size].decode())
            at += length
        return sorted(names)

    def counters(self, adapter):
        return self.ctl("show", "counters", adapter, "all")[0]

    def test_every_frame_of_both_directions(self):
        p = self.begin()
        self.perf("send_lat", "--iters", "10")  # from here on the nodes know each other's addresses
        before = [self.counters(a) for a in ("a0", "b0")]
        self.ctl("capture", "start", "all", "x.pcapng")
        self.perf("send_lat", "--iters", "100", "--size", "3000")
        self.perf("write_bw", "--iters", "10", "--size", "16k")
        self.perf("read_lat", "--iters", "20", "--foreign")
        self.perf("atomic_lat", "--iters", "20")
        last = self.ctl("capture", "stop")[0]
        after = [self.counters(a) for a in ("a0", "b0")]
        self.assertEqual((last["dropped"], last["failure"]), (0, ""))
        frames = self.frames("x.pcapng")
        self.assertEqual(len(frames), last["frames"])
        self.assertEqual(os.path.getsize(os.path.join(self.files, "x.pcapng")), last["bytes"])
        self.assertEqual(os.stat(os.path.join(self.files, "x.pcapng")).st_mode & 0o777, 0o600)
        # b0 received the frames that a0 sent, one by one, and the other way round. Counters say the
        # same, but for neighbour requests, which may come at any moment.
        for one, other in (("a0", "b0"), ("b0", "a0")):
            sent = [f[2:] for f in frames if f[:2] == (one, OUT) and f[3]]
            self.assertEqual(sent, [f[2:] for f in frames if f[:2] == (other, IN) and f[3]])
            self.assertGreater(len(sent), 200)
        for name, was, now in zip(("a0", "b0"), before, after):
            seen = sum(f[:2] == (name, IN) and f[3] for f in frames)
            self.assertEqual(seen, now["rx_roce"] - was["rx_roce"])
        judged = subprocess.run([sys.executable, JUDGE, "--sent", "--at-least", "400",
                                 os.path.join(self.files, "x.pcapng")], capture_output=True, text=True,
                                timeout=10 * SECONDS, check=False)
        self.assertEqual(judged.returncode, 0, judged.stdout + judged.stderr)
        self.assertEqual(self.stop(p)[0], 0)

    def test_one_port_and_a_limit(self):
        p = self.begin()
        self.ctl("capture", "start", "b0", "few", "frames", "7")
        self.perf("send_lat", "--iters", "100")
        self.assertTrue(self.until(lambda: self.ctl("show", "capture")[0]["ended"]))
        self.assertEqual(self.ctl("capture", "stop")[0]["frames"], 7)
        self.assertEqual([f[0] for f in self.frames("few")], ["b0"] * 7)
        self.ctl("capture", "start", "all", "small", "size", "64k")
        self.perf("write_bw", "--iters", "100")
        self.assertTrue(self.until(lambda: self.ctl("show", "capture")[0]["ended"]))
        self.ctl("capture", "stop")
        self.assertTrue(32768 < os.path.getsize(os.path.join(self.files, "small")) <= 65536 + 256)
        self.assertGreater(len(self.frames("small")), 10)
        self.assertEqual(self.stop(p)[0], 0)

    def test_snap_length_and_idle_ports(self):
        """Frames are cut, their length stays known; a port without a frame is not in the file."""
        p = self.begin()
        self.ctl("capture", "start", "all", "cut", "snap", "70")
        self.perf("send_lat", "--iters", "20", "--size", "3000")
        self.ctl("capture", "stop")
        lengths = self.fields("cut", "frame.cap_len", "frame.len", "infiniband.bth.opcode")
        self.assertGreater(max(int(f[1]) for f in lengths), 1000)
        for kept, whole, _ in lengths:
            self.assertEqual(int(kept), min(70, int(whole)))
        self.assertGreaterEqual(sum(f[2] != "" for f in lengths), 40)
        self.assertEqual(self.interfaces("cut"), ["a0", "b0"])
        self.ctl("capture", "start", "all", "none", "qp", "0x7fffff")
        self.perf("send_lat", "--iters", "20")
        self.assertEqual(self.ctl("capture", "stop")[0]["frames"], 0)
        self.assertEqual(self.interfaces("none"), [])
        self.assertEqual(self.stop(p)[0], 0)

    def test_frames_of_a_queue_pair(self):
        """Requests to a queue pair and the answers to its peer, and nothing of the other one."""
        p = self.begin()
        perfs = []
        for n in (1, 2):  # one after the other, so that the two pairs do not share a number
            perfs.append(self.popen(self.PERF, "write_bw", "--attach", self.socket, "--duration", LONG))
            qps = self.until(lambda: (q := [q for q in self.ctl("show", "qp", "state", "RTS", "adapter", "b0")
                                            if q["type"] == "RC"]) and len(q) >= n and q)
        qp = qps[0]
        self.ctl("capture", "start", "all", "one", "qp", str(qp["qpn"]), "frames", "500")
        self.assertTrue(self.until(lambda: self.ctl("show", "capture")[0]["ended"]))
        self.ctl("capture", "stop")
        mine = {qp["qpn"]} | {q["peer_qpn"] for q in self.ctl("show", "qp") if q["qpn"] == qp["qpn"]}
        self.assertFalse({q["qpn"] for q in qps[1:]} <= mine)
        seen = {int(f[0], 16) for f in self.fields("one", "infiniband.bth.destqp")}
        self.assertIn(qp["qpn"], seen)
        self.assertIn(qp["peer_qpn"], seen)
        self.assertLessEqual(seen, mine)
        for q in perfs:
            self.assertIsNone(q.poll())
        self.assertEqual(self.stop(p)[0], 0)

    def stream(self, *words):
        """A capture to the standard output of an urnicctl."""
        q = subprocess.Popen([CTL, "--socket", self.socket, *words], env=self.env, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
        self.running.append(q)
        return q

    def running_capture(self):
        return any(c["running"] and not c["ended"] for c in self.ctl("show", "capture"))

    @staticmethod
    def ends_whole(data):
        """True when data ends at the end of a block."""
        at = 0
        while len(data) - at >= 8:
            at += struct.unpack_from("=I", data, at + 4)[0]
        return at == len(data)

    def test_to_standard_output(self):
        """Whole when it is stopped, and at a limit; the reader's end is the capture's; nothing else is printed."""
        p = self.begin()
        for extra, ends in (((), True), (("frames", "30"), False), (("snap", "80", "frames", "30"), False)):
            q = self.stream("--json", "capture", "start", "all", "-", *extra)
            self.assertTrue(self.until(self.running_capture))
            if ends:
                self.assertIn("stop that first", self.ctl("capture", "start", "all", "-", code=1))
            self.perf("send_lat", "--iters", "20")
            if ends:
                self.ctl("capture", "stop")
            out, err = q.communicate(timeout=SECONDS)
            self.assertEqual((q.returncode, err), (0, b""))
            with open(os.path.join(self.files, "piped"), "wb") as f:
                f.write(out)
            frames = self.frames("piped")
            self.assertTrue(len(frames) >= 40 if ends else len(frames) == 30, len(frames))
        for leave in ("stdout", "urnicctl"):
            q = self.stream("capture", "start", "all", "-")
            self.assertTrue(self.until(self.running_capture))
            if leave == "urnicctl":
                q.kill()
            else:
                q.stdout.close()
                q.stdout = None
            self.perf("send_lat", "--iters", "20")
            self.assertTrue(self.until(lambda: not self.running_capture()))
            q.wait(timeout=SECONDS)
            self.assertIn(q.returncode, (0, -signal.SIGKILL))
            self.assertEqual(self.ctl("show", "capture")[0]["failure"], "")
        self.assertEqual(os.listdir(self.files), ["piped"])
        self.assertEqual(self.stop(p)[0], 0)

    def test_a_reader_that_sleeps_delays_nobody(self):
        p = self.begin()
        q = self.stream("capture", "start", "all", "-")
        self.assertTrue(self.until(self.running_capture))
        q.send_signal(signal.SIGSTOP)
        os.waitpid(q.pid, os.WUNTRACED)
        self.perf("write_bw", "--iters", "200")
        self.assertIn("its reader takes nothing", self.ctl("capture", "stop", code=1))
        self.perf("write_bw", "--iters", "10")
        q.send_signal(signal.SIGCONT)
        out, err = q.communicate(timeout=SECONDS)
        whole = self.ends_whole(out)
        self.assertEqual((q.returncode, b"the capture is not whole" in err), (0, False) if whole else (1, True))
        self.assertEqual(self.stop(p)[0], 0)

    def test_perf_to_standard_output(self):
        with open(os.path.join(self.files, "perf"), "wb") as f:
            q = subprocess.run([self.PERF, "send_lat", "--iters", "20", "--capture", "-", "--json"], stdout=f,
                               stderr=subprocess.PIPE, env=self.env, timeout=SECONDS, check=True)
        self.assertEqual(json.loads(q.stderr)["capture_lost"], 0)
        self.assertGreaterEqual(len(self.frames("perf")), 40)

    def test_perf_to_a_slow_reader(self):
        """A tool waits for the reader of its capture, for whom it works, but not after a signal."""
        words = [self.PERF, "send_lat", "--iters", "100", "--size", "3000", "--capture", "-"]
        q = subprocess.Popen(words, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.running.append(q)
        head = q.stdout.read1(8)
        time.sleep(4)  # far more than the end of a capture waits elsewhere
        out, err = q.communicate(timeout=SECONDS)
        self.assertEqual(q.returncode, 0, err)
        with open(os.path.join(self.files, "slow"), "wb") as f:
            f.write(head + out)
        self.assertGreaterEqual(len(self.frames("slow")), 400)
        q = subprocess.Popen(words, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.running.append(q)
        q.stdout.read1(8)
        q.terminate()
        q.wait(timeout=SECONDS)
        self.assertEqual(q.returncode, 128 + signal.SIGTERM)
        q.communicate()

    def test_what_is_refused(self):
        p = self.begin()
        os.symlink(os.path.join(self.dir.name, "elsewhere"), os.path.join(self.files, "link"))
        for port, file, words in (("all", "../x", "no name for a capture"), ("all", "/tmp/x", "no name for a capture"),
                                  ("all", ".x", "no name for a capture"), ("all", "link", "choose another name"),
                                  ("c0", "x", "a0, b0")):
            self.assertIn(words, self.ctl("capture", "start", port, file, code=1))
        for wrong, words in (("13", "from 14 to 65535 bytes"), ("65536", "from 14 to 65535 bytes")):
            self.assertIn(words, self.ctl("capture", "start", "all", "x", "snap", wrong, code=1))
        for wrong in ("0", "0xffffff", "0xffffffff"):
            self.assertIn("1 to 16777214", self.ctl("capture", "start", "all", "x", "qp", wrong, code=1))
        for limit in (("frames", "0"), ("size", "0"), ("snap", "0")):
            self.assertIn("from 1", self.ctl("capture", "start", "all", "x", *limit, code=2))
        self.assertIn("no capture is running", self.ctl("capture", "stop", code=1))
        self.assertEqual(os.listdir(self.files), ["link"])
        self.ctl("capture", "start", "all", "x")
        self.assertIn("stop that first", self.ctl("capture", "start", "all", "y", code=1))
        self.assertEqual(self.stop(p)[0], 0)
        self.assertEqual(sorted(os.listdir(self.files)), ["link", "x"])

    def test_full_disk(self):
        """A limit on the length of files stands in for a full disk, set once a program runs. The console
        starts the capture, because the console's thread also takes signals."""
        p = self.popen(self.NICD, "-i", "-c", self.config(daemon=f"capture_dir = {self.files}"),
                       stdin=subprocess.PIPE)
        self.assertIn("listening at", p.stderr.readline())
        perf = self.popen(self.PERF, "write_bw", "--attach", self.socket, "--duration", LONG)
        self.assertTrue(self.until(lambda: self.counters("a0")["tx_requests"] > 0))
        resource.prlimit(p.pid, resource.RLIMIT_FSIZE, (100000, resource.RLIM_INFINITY))
        p.stdin.write("capture start all x\n")
        p.stdin.flush()
        self.assertTrue(self.until(lambda: self.ctl("show", "capture") and self.ctl("show", "capture")[0]["ended"]))
        self.assertIn("x can't be written", self.ctl("show", "capture")[0]["failure"])
        self.assertIn("not whole", self.ctl("capture", "stop", code=1))
        sent = self.counters("a0")["tx_requests"]
        self.assertTrue(self.until(lambda: self.counters("a0")["tx_requests"] > sent))
        self.assertIsNone(perf.poll())
        p.send_signal(signal.SIGTERM)
        p.communicate(timeout=SECONDS)
        self.assertEqual(p.returncode, 0)

    def test_sigterm_ends_it_in_order(self):
        p = self.begin()
        self.ctl("capture", "start", "all", "x")
        self.popen(self.PERF, "write_bw", "--attach", self.socket, "--duration", LONG)
        self.assertTrue(self.until(lambda: self.ctl("show", "capture")[0]["frames"] > 100))
        self.assertEqual(self.stop(p, signal.SIGTERM)[0], 0)
        self.assertGreater(len(self.frames("x")), 100)

    def test_again_and_again_under_load(self):
        p = self.begin()
        perf = self.popen(self.PERF, "write_bw", "--attach", self.socket, "--duration", LONG)
        for i in range(20):
            self.ctl("capture", "start", "all", f"n{i}")
            self.ctl("capture", "stop")
        self.assertIsNone(perf.poll())
        self.assertEqual(len(os.listdir(self.files)), 20)
        self.assertEqual(self.stop(p)[0], 0)


if __name__ == "__main__":
    CTL, JUDGE, Nicd.NICD, Nicd.PERF, Nicd.CONFIG = map(os.path.abspath, sys.argv[1:6])
    del sys.argv[1:6]
    unittest.main()
