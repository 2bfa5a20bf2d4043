#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Flow control between two urnicd that memif joins: adapters and switches obey the pauses of a lossless switch on the other
side.

A slow receiver stops the sender, loses nothing and lets it go on. A peer that pauses for ever is limited by the sender's
watchdog. Wireshark and scapy read the frames of flow control, from a capture that urnicctl starts.
"""

import json
import os
import signal
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True  # no cache of urnicd_common
from ports import free_port
from urnicd_common import Nicd, SECONDS

from scapy.config import conf
conf.verb = 0
from scapy.contrib.mac_control import MACControlClassBasedFlowControl
from scapy.layers.l2 import Ether
from scapy.utils import PcapNgReader

CTL = None
ALL = 65535  # quanta: the longest pause

A = """[port p0]
device = net_memif0,role=server,socket={dir}/memif
[adapter a0]
node = a
port = p0
ipv4 = 10.0.0.1
pfc = yes
"""
# Headroom for all that the memif holds, and that the queue pairs have in flight: the sender may get to a pause late. The
# watchdog of the switch is too long to take part.
B = """[port p0]
device = net_memif0,role=client,socket={dir}/memif
mbufs = 16k
[switch wire]
ports = p0
lossless = 0,3
share = 64k
headroom = 16M
watchdog = 60s
impair b0.out = {wire}
[adapter b0]
node = b
switch = wire
ipv4 = 10.0.0.2
"""


# A sender behind a switch, whose watchdog is short: each pause is long enough for it.
IMPATIENT = """[port p0]
device = net_memif0,role=server,socket={dir}/memif
[switch wire]
ports = p0
lossless = 0,3
watchdog = 1ms
[adapter a0]
node = a
switch = wire
ipv4 = 10.0.0.1
"""


class Pfc(Nicd):
    def setUp(self):
        super().setUp()
        self.files = os.path.join(self.dir.name, "captures")
        os.mkdir(self.files)
        self.nicds = {}

    def begin(self, node, text, **values):
        """Start the urnicd of a node."""
        sock, path = self.sock(node), os.path.join(self.dir.name, node + ".ini")
        run = os.path.join(self.run, node)
        os.mkdir(run, 0o700)
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[urnicd]\nsocket = {sock}\nlog = off\nidle = pause\nempty_polls = 4\ncapture_dir = {self.files}\n" +
                    text.format(dir=self.dir.name, **values))
        p = subprocess.Popen([self.NICD, "-c", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=dict(self.env, XDG_RUNTIME_DIR=run, RUNTIME_DIRECTORY=run), cwd=self.dir.name)
        self.running.append(p)
        self.nicds[node] = p
        self.assertIn("listening at", p.stderr.readline())

    def end(self):
        """Stop all, the client of the memif first. Each must end with 0 and no message."""
        for node in sorted(self.nicds, reverse=True):
            self.nicds[node].send_signal(signal.SIGTERM)
            out, err = self.nicds[node].communicate(timeout=SECONDS)
            self.assertEqual((self.nicds[node].returncode, out, err), (0, "", ""))

    def sock(self, node):
        return os.path.join(self.dir.name, node + ".sock")

    def ctl(self, node, *words):
        p = subprocess.run([CTL, "--socket", self.sock(node), "--json", *words], env=self.env, capture_output=True,
                           text=True, timeout=SECONDS, check=False)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        return json.loads(p.stdout or "[]")

    def sender(self):
        """Counters of the adapter that sends."""
        return self.ctl("a", "show", "counters", "a0", "all")[0]

    def ports(self, node):
        """Counters of the ports of a node's switch."""
        return {row["port"]: row for row in self.ctl(node, "show", "switch", "wire", "all")}

    def write(self, *args):
        """Start a program at b that listens, and one at a that writes to it. returns: both"""
        self.port = free_port()
        listener = self.popen(self.PERF, "write_bw", "--attach", self.sock("b"), "--node", "b", "--listen",
                              str(self.port), "--connect", "oob", "--json")
        self.assertIn("waiting for the other side", listener.stderr.readline())
        return listener, self.popen(self.PERF, "write_bw", "--attach", self.sock("a"), "--node", "a", "--peer",
                                    f"127.0.0.1:{self.port}", "--connect", "oob", "--json", "--qps", "4", *args)

    @staticmethod
    def kill(programs):
        for p in programs:
            p.kill()
            p.communicate(timeout=SECONDS)

    def finish(self, both):
        """Wait for both programs. returns: the measurement of the sender"""
        said = [p.communicate(timeout=SECONDS) for p in reversed(both)]
        self.assertEqual([p.returncode for p in both], [0, 0], said)
        return json.loads(said[0][0])

    # ---- frames of flow control

    def by_tshark(self, path):
        """Source and pauses by priority of each frame of MAC control, as Wireshark reads it; nothing is wrong with one."""
        names = ["eth.src", "eth.dst", "macc.opcode", "macc.cbfc.enbv", *(f"macc.cbfc.pause_time.c{i}" for i in range(8)),
                 "_ws.malformed", "_ws.expert.message"]
        cmd = ["tshark", "-n", "-r", path, "-Y", "macc", "-T", "fields"]
        for name in names:
            cmd += ["-e", name]
        p = subprocess.run(cmd, env=dict(os.environ, LC_ALL="C"), capture_output=True, text=True, timeout=SECONDS,
                           check=True)
        found = []
        for line in p.stdout.splitlines():
            row = dict(zip(names, line.split("\t")))
            self.assertEqual((row["eth.dst"], int(row["macc.opcode"], 16)), ("01:80:c2:00:00:01", 0x101), row)
            self.assertEqual(row["_ws.malformed"] + row["_ws.expert.message"], "", row)
            enabled = int(row["macc.cbfc.enbv"], 16)
            found.append((row["eth.src"], {i: int(row[f"macc.cbfc.pause_time.c{i}"]) for i in range(8) if enabled >> i & 1}))
        return found

    def by_scapy(self, path):
        """The same by scapy, which also makes each frame anew: the bytes are ours."""
        found = []
        with PcapNgReader(path) as reader:
            for packet in reader:
                frame = packet if isinstance(packet, Ether) else Ether(bytes(packet))
                if MACControlClassBasedFlowControl not in frame:
                    continue
                m, was = frame[MACControlClassBasedFlowControl], bytes(frame)
                found.append((frame.src, {i: getattr(m, f"c{i}_pause_time") for i in range(8)
                                          if getattr(m, f"c{i}_enabled")}))
                fields = {k: v for k, v in m.fields.items() if not k.startswith("_")}
                anew = bytes(Ether(src=frame.src, dst="01:80:c2:00:00:01", type=0x8808) /
                             MACControlClassBasedFlowControl(**fields))
                self.assertEqual(was, anew.ljust(60, b"\0"))
        return found

    def test_a_slow_receiver(self):
        """The wire to b is slow: its switch pauses a, which loses nothing; and the frames are those of 802.1Qbb."""
        self.begin("a", A)
        self.begin("b", B, wire="rate=500M")
        self.ctl("b", "capture", "start", "p0", "x.pcapng")
        # All frames have room in the ring of a capture, whose writer may wait for a processor.
        measured = self.finish(self.write("--iters", "100"))
        captured = self.ctl("b", "capture", "stop")[0]
        self.assertEqual((captured["dropped"], captured["failure"]), (0, ""))
        self.assertGreater(measured["gbps"], 0)
        sent, ports = self.sender(), self.ports("b")
        self.end()
        for port in ports.values():
            self.assertEqual({k: v for k, v in port.items() if "drop" in k and v}, {})
        # Each pause had an end, and no watchdog was needed.
        self.assertGreater(sent["pfc_pause"], 0)
        self.assertGreater(sent["pfc_resume"], 0)
        for name in ("pfc_storms", "pfc_ignored", "drop_paused", "drop_pfc", "rx_naks"):
            self.assertEqual(sent[name], 0, name)
        self.assertGreater(sent["tx_stopped"], 0)
        path = os.path.join(self.files, "x.pcapng")
        frames = self.by_tshark(path)
        self.assertEqual(frames, self.by_scapy(path))
        self.assertEqual({tuple(times) for _, times in frames}, {(0,)})  # priority 0 has all of the traffic
        self.assertEqual({times[0] for _, times in frames}, {0, ALL})
        self.assertEqual(len({source for source, _ in frames}), 1)
        pauses = sum(times[0] == ALL for _, times in frames)
        self.assertEqual((pauses, len(frames) - pauses), (ports["p0"]["queue0_pause_tx"], ports["p0"]["queue0_resume_tx"]))
        self.assertEqual(sent["pfc_pause"] + sent["pfc_resume"], len(frames))

    def test_a_peer_that_pauses_for_ever(self):
        """b takes next to nothing, and pauses have no end until the sender's watchdog, which drops what waits. Then b's wire
        is fast, and all is well."""
        self.begin("a", IMPATIENT)
        self.begin("b", B, wire="rate=100k")
        both = []

        def watchdog():
            """Frames that the sender's watchdog dropped; queue pairs that have given up are followed by others."""
            if not both or both[1].poll() is not None:
                self.kill(both)
                both[:] = self.write("--duration", "60")
            port = self.ports("a")["p0"]
            return port["queue0_watchdogs"] and port["queue0_drop_watchdog"]

        self.assertTrue(self.until(watchdog))
        self.assertGreater(self.ports("b")["p0"]["queue0_pause_tx"], 0)
        self.kill(both)
        self.ctl("b", "impair", "wire", "b0.out", "none")
        self.finish(self.write("--iters", "200"))
        self.end()


if __name__ == "__main__":
    CTL, Nicd.NICD, Nicd.PERF = map(os.path.abspath, sys.argv[1:4])
    del sys.argv[1:4]
    unittest.main(verbosity=2)
