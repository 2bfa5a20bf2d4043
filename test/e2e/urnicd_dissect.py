#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Wireshark's dissector for urnic's own packets, and the profile that stops guesses at payload: each packet of a capture is
named, and none is malformed. The numbers of packets are those that the table of opcodes and the counters say."""

import collections
import os
import shutil
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True  # no cache of urnicd_common
from urnicd_common import Nicd, SECONDS

CTL = SHARE = None
DATA, ACK, SACK, TWO = 0xC1, 0xC2, 0xC0, 0xC4  # opcodes (doc/reference/wire.md)
FIELDS = ("urnic.opcode", "infiniband.bth.opcode", "urnic.psn", "urnic.flow.bytes", "urnic.flow.refused", "urnic.am.kind",
          "urnic.sack.version", "urnic.sack.expected", "urnic.va", "urnic.rkey", "_ws.malformed", "_ws.lua.text", "udp.dstport",
          "urnic.flow.source", "urnic.icrc")
Frame = collections.namedtuple("Frame", [name.lstrip("_").replace(".", "_") for name in FIELDS])


class Dissect(Nicd):
    def setUp(self):
        super().setUp()
        self.files = os.path.join(self.dir.name, "captures")
        os.mkdir(self.files)
        # Wireshark's own folder, with the profile of the project.
        self.wireshark = os.path.join(self.dir.name, "wireshark")
        shutil.copytree(os.path.join(SHARE, "wireshark", "profile"), os.path.join(self.wireshark, "profiles", "urnic"))

    def ctl(self, *words):
        p = subprocess.run([CTL, "--socket", self.socket, *words], env=self.env, capture_output=True, text=True,
                           timeout=SECONDS, check=False)
        self.assertEqual(p.returncode, 0, p.stderr)

    def tshark(self, name, *args, script=True):
        cmd = ["tshark", "-n", "-C", "urnic", "-r", os.path.join(self.files, name), *args]
        if script:
            cmd += ["-X", f"lua_script:{SHARE}/wireshark/urnic.lua"]
        p = subprocess.run(cmd, env=dict(self.env, LC_ALL="C", WIRESHARK_CONFIG_DIR=self.wireshark), capture_output=True,
                           text=True, timeout=2 * SECONDS, check=False)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertNotIn("Lua", p.stderr)
        return p.stdout.splitlines()

    def frames(self, name):
        """The RoCEv2 packets of a capture."""
        args = ["-T", "fields"] + [word for f in FIELDS for word in ("-e", f)]
        found = [Frame(*line.split("\t")) for line in self.tshark(name, "-Y", "udp.dstport == 4791", *args)]
        for f in found:
            self.assertEqual((f.ws_malformed, f.ws_lua_text), ("", ""), f)
            self.assertNotEqual(f.urnic_opcode == "", f.infiniband_bth_opcode == "", f)
        return found

    def capture(self, name, *runs):
        self.ctl("capture", "start", "all", name)
        for run in runs:
            self.perf(*run)
        self.ctl("capture", "stop")
        return self.frames(name)

    @staticmethod
    def of(frames, opcode):
        return [f for f in frames if f.urnic_opcode and int(f.urnic_opcode, 0) == opcode]

    def test_each_kind(self):
        nicd, _ = self.start(daemon=f"capture_dir = {self.files}")
        frames = self.capture("flows.pcapng", ("msg_lat", "--size", "64", "--iters", "20"), ("am_lat", "--size", "8", "--iters", "20"),
                              ("rma_write_bw", "--size", "64", "--iters", "20"), ("rma_read_bw", "--size", "20000", "--iters", "5"),
                              ("rma_write_bw", "--size", "100000", "--rma", "tagged", "--iters", "5"))
        kinds = {int(k) for f in frames for k in f.urnic_am_kind.split(",") if k}
        self.assertLessEqual({1, 2, 3, 4, 8, 10, 12}, kinds)
        self.assertGreater(len(self.of(frames, DATA)), 100)
        self.assertGreater(len(self.of(frames, ACK)), 20)
        for f in self.of(frames, DATA):
            self.assertNotEqual((f.urnic_psn, f.urnic_flow_bytes, f.urnic_flow_source), ("", "", ""), f)
        for f in self.of(frames, ACK):
            self.assertEqual(f.urnic_flow_refused, "0", f)
        self.assertTrue(all(f.urnic_icrc for f in frames if f.urnic_opcode))
        # Writes on lines, once the adapters know each other's.
        frames = self.capture("aligned.pcapng", ("write_bw", "--size", "20000", "--offset", "4", "--align", "on", "--iters", "30"))
        two = self.of(frames, TWO)
        self.assertTrue(two)
        for f in two:
            self.assertNotEqual((f.urnic_va, f.urnic_rkey), ("", ""), f)
        # Loss: acknowledgements tell what came.
        self.ctl("impair", "wire", "b0.out", "drop=5%,seed=3")
        frames = self.capture("loss.pcapng", ("write_bw", "--size", "64k", "--iters", "50"))
        sacks = self.of(frames, SACK)
        self.assertTrue(sacks)
        for f in sacks:
            self.assertEqual((f.urnic_sack_version, f.urnic_sack_expected != ""), ("1", True), f)
        self.assertEqual(self.stop(nicd)[0], 0)

    def test_bad_packets(self):
        """Packets with wrong bytes, and packets that are cut, make no error of the script."""
        nicd, _ = self.start(daemon=f"capture_dir = {self.files}")
        self.capture("good.pcapng", ("am_lat", "--size", "8", "--iters", "50"), ("msg_lat", "--size", "64", "--iters", "50"))
        for seed, more in ((1, ()), (2, ("-s", "70")), (3, ("-s", "110"))):
            subprocess.run(["editcap", "--seed", str(seed), "-E", "0.03", *more, *(os.path.join(self.files, n) for n in ("good.pcapng", "bad"))],
                           env=self.env, capture_output=True, timeout=SECONDS, check=True)
            self.assertEqual(self.tshark("bad", "-Y", "_ws.lua.text", "-T", "fields", "-e", "_ws.lua.text"), [])
        self.assertEqual(self.stop(nicd)[0], 0)

    def test_live(self):
        """A capture through a pipe is shown while it goes on, by dumpcap, as `urnicctl ... | wireshark -k -i -` does."""
        if not os.access(shutil.which("dumpcap") or "", os.X_OK):
            self.skipTest("this user may not run dumpcap")
        nicd, _ = self.start()
        with subprocess.Popen([CTL, "--socket", self.socket, "capture", "start", "all", "-"], env=self.env, stdout=subprocess.PIPE) as source:
            self.running.append(source)
            live = subprocess.Popen(["tshark", "-n", "-l", "-C", "urnic", "-i", "-", "-w", os.path.join(self.files, "live.pcapng"), "-P",
                                     "-X", f"lua_script:{SHARE}/wireshark/urnic.lua"], env=dict(self.env, LC_ALL="C", WIRESHARK_CONFIG_DIR=self.wireshark),
                                    stdin=source.stdout, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.running.append(live)
            source.stdout.close()
            self.assertTrue(self.until(lambda: "running" in subprocess.run([CTL, "--socket", self.socket, "show", "capture"], env=self.env,
                                                                           capture_output=True, text=True, timeout=SECONDS, check=True).stdout))
            self.perf("msg_lat", "--size", "64", "--iters", "20")
            # Lines come before the capture ends.
            lines = iter(live.stdout.readline, "")
            out = next((line for line in lines if "Flow Data, PSN" in line), None)
            self.assertIsNotNone(out)
            self.ctl("capture", "stop")
            out += "".join(lines)
            err = live.stderr.read()
            live.wait(2 * SECONDS)
        self.assertEqual((source.returncode, live.returncode), (0, 0), err)
        self.assertIn("Flow Ack, up to PSN", out)
        self.assertEqual(self.stop(nicd)[0], 0)

    def test_a_list(self):
        """A person reads what a packet is in the list of packets; other packets look as without the dissector."""
        nicd, _ = self.start(daemon=f"capture_dir = {self.files}")
        self.capture("a.pcapng", ("rma_write_bw", "--size", "64", "--iters", "5"), ("write_bw", "--size", "20000", "--iters", "5"))
        lines = self.tshark("a.pcapng")
        self.assertTrue(any("Flow Data, PSN" in line and ": Write" in line for line in lines))
        self.assertTrue(any("Flow Ack, up to PSN" in line for line in lines))
        theirs = self.tshark("a.pcapng", "-Y", "infiniband.bth.opcode < 0xc0", script=False)
        ours = self.tshark("a.pcapng", "-Y", "infiniband")
        self.assertEqual(ours, theirs)
        self.assertEqual(self.stop(nicd)[0], 0)


if __name__ == "__main__":
    CTL, SHARE, Nicd.NICD, Nicd.PERF, Nicd.CONFIG = map(os.path.abspath, sys.argv[1:6])
    del sys.argv[1:6]
    unittest.main()
