#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Wireshark's dissector for urnic's own packets, by frames that are made here: each opcode, each kind of remote memory access,
refusals, VLAN tags and both families; its tables are those of the sources; and the profile, of which each line is needed.

usage: wireshark_frames.py PROJECT [TEST...]"""

import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

SECONDS = 120
PROJECT = None
AM_QUEUE = 0xC0 << 56 | 1  # an endpoint of remote memory access


def bth(opcode, psn=7, pad=0):
    return struct.pack(">BBHII", opcode, pad << 4, 0xFFFF, 0x12, psn)


def ipv4(payload):
    udp = struct.pack(">HHHH", 0xC000, 4791, 8 + len(payload), 0) + payload
    return 0x0800, struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0, bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2))) + udp


def ipv6(payload):
    udp = struct.pack(">HHHH", 0xC000, 4791, 8 + len(payload), 0) + payload
    return 0x86DD, struct.pack(">IHBB16s16s", 6 << 28, len(udp), 17, 64, b"\xfd" + b"\0" * 14 + b"\1", b"\xfd" + b"\0" * 14 + b"\2") + udp


def frame(packet, ip=ipv4, vlan=None):
    """A frame with a RoCEv2 packet, whose ICRC is any."""
    kind, rest = ip(packet + b"\1\2\3\4")
    tag = struct.pack(">HH", 0x8100, vlan) if vlan else b""
    return b"\x02\0\0\0\0\2" + b"\x02\0\0\0\0\1" + tag + struct.pack(">H", kind) + rest


def flow(opcode, rest=b""):
    return bth(opcode) + struct.pack(">QII", 0x1122, 70000, 5) + rest


def segment(data, target=AM_QUEUE, source=AM_QUEUE):
    return struct.pack(">QQHBB", target, source, len(data), 0, 0) + data + bytes(-len(data) % 4)


def am(kind, data=b"", code=0, more=0, length=8):
    return flow(0xC1, segment(struct.pack(">BBHIQQQ", kind, code, more, length, 0x77, 0x1000, 0x55) + data))


def ack(*refused):
    rest = struct.pack(">BBH32s", 0, len(refused), 0, b"")
    for psn, codes in refused:
        rest += struct.pack(">I16s", psn, bytes(codes))
    return flow(0xC2, rest)


def capture(frames):
    """A file of the old format, which tshark also reads from a pipe."""
    out = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    for i, f in enumerate(frames):
        out += struct.pack("<IIII", 1796000000 + i, 0, len(f), len(f)) + f
    return out


def source(path):
    with open(os.path.join(PROJECT, path), encoding="utf-8") as f:
        return f.read()


def table(name):
    """A table of the script: {number: text}"""
    body = re.search(rf"^local {name} = \{{(.*?)\}}", source("share/wireshark/urnic.lua"), re.M | re.S)[1]
    return {int(n, 0): text for n, text in re.findall(r'\[(\w+)\] = "([^"]*)"', body)}


class Tables(unittest.TestCase):
    """The tables of the script are those of the sources: a packet type that is new fails here."""

    def test_opcodes(self):
        ours = {int(n, 0) for n in re.findall(r"^\tURN_\w+ =\s+(0xc[0-9a-f])\b", source("dataplane/wire/opcode.h"), re.M)}
        self.assertIn(0xC6, ours)
        self.assertEqual(set(table("OPCODES")), ours)
        ways = re.search(r"^local ways = \{(.*?)\}", source("share/wireshark/urnic.lua"), re.M | re.S)[1]
        self.assertEqual({int(n, 0) for n in re.findall(r"\[(\w+)\]", ways)}, ours)

    def test_kinds(self):
        rows = re.findall(r"^\tX\((\w+), (\d+), \d, (\d+)\)", source("dataplane/wire/am.h"), re.M)
        self.assertEqual(set(table("KINDS")), {int(n) for _, n, _ in rows})
        # Kinds with a header of their own: those whose data has a fixed size, and PART.
        heads = re.search(r"^local HEAD_BYTES = \{(.*?)\}", source("share/wireshark/urnic.lua"), re.M)[1]
        own = {int(n): int(b) for n, b in re.findall(r"\[(\d+)\] = (\d+)", heads)}
        part = int(re.search(r"sizeof\(struct urn_am_part_hdr\) == (\d+)", source("dataplane/wire/am.h"))[1])
        self.assertEqual(own, {int(n): part if name == "PART" else int(d) for name, n, d in rows if int(d) > 1 or name == "PART"})

    def test_codes(self):
        for name, path in (("AM_CODES", "lib/abi/am_codes.h"), ("MSG_CODES", "lib/abi/msg_codes.h")):
            rows = re.search(r"#define URN_(?:AM|MSG)_CODE_LIST\(X\)(.*?)clang-format on", source(path), re.S)[1]
            words = {int(n): word for n, word in re.findall(r'X\(\w+,\s+(\d+),[^"]*"([\w-]+)",', rows)}
            self.assertGreater(len(words), 10)
            self.assertEqual(table(name), words)

    def test_atomics(self):
        ops = re.findall(r"^\tURN_AM_(?:FETCH_ADD|SWAP|COMPARE_SWAP) = (\d+)", source("lib/abi/am_codes.h"), re.M)
        self.assertEqual(set(table("ATOMICS")), {int(n) for n in ops})


class Frames(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(self.dir.cleanup)
        self.wireshark = os.path.join(self.dir.name, "wireshark")
        self.profile = os.path.join(self.wireshark, "profiles", "urnic")
        shutil.copytree(os.path.join(PROJECT, "share/wireshark/profile"), self.profile)

    def tshark(self, frames, *args, script=True, how=("-C", "urnic")):
        """Lines of tshark about frames, which come through a pipe as those of `wireshark -k -i -` do."""
        cmd = ["tshark", "-n", *how, *args]
        if script:
            cmd += ["-X", f"lua_script:{PROJECT}/share/wireshark/urnic.lua"]
        env = dict(os.environ, LC_ALL="C", WIRESHARK_CONFIG_DIR=self.wireshark, HOME=self.dir.name)
        p = subprocess.run([*cmd, "-r", "-"], input=capture(frames), env=env, capture_output=True, timeout=SECONDS, check=False)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertNotIn(b"Lua", p.stderr)
        return p.stdout.decode().splitlines()

    def fields(self, frames, *names, **how):
        """Values of fields by frame; no frame is malformed."""
        names = ("_ws.malformed", "_ws.lua.text", "urnic.short", *names)
        lines = self.tshark(frames, "-T", "fields", *(w for n in names for w in ("-e", n)), **how)
        found = [line.split("\t") for line in lines]
        self.assertEqual(len(found), len(frames))
        for line in found:
            self.assertEqual(line[:3], ["", "", ""], line)
        return [tuple(line[3:]) for line in found]

    def infos(self, frames, **how):
        return self.tshark(frames, "-T", "fields", "-e", "_ws.col.Info", **how)

    def test_opcodes(self):
        """Opcodes without a run of urnic-perf that makes them."""
        frames = [frame(flow(0xC3)), frame(bth(0xC5) + struct.pack(">QIII", 0x4000, 9, 4, 0xABCD) + b"four"), frame(bth(0xC6) + struct.pack(">I", 300))]
        self.assertEqual(self.fields(frames, "urnic.opcode", "urnic.flow.start", "urnic.imm", "urnic.va", "urnic.payload", "urnic.msn"),
                         [("0xc3", "70000", "", "", "", ""), ("0xc5", "", "0x0000abcd", "0x0000000000004000", "666f7572", ""),
                          ("0xc6", "", "", "", "", "300")])
        self.assertEqual(self.infos(frames)[2], "UC Word, PSN 7 is due, window of 300 packets")

    def test_families_and_tags(self):
        """Both families, and a VLAN tag in front."""
        frames = [frame(bth(0xC6) + struct.pack(">I", n), ip, vlan) for n, ip, vlan in ((8, ipv4, None), (9, ipv6, None), (10, ipv4, 0x6064), (11, ipv6, 0x6064))]
        self.assertEqual(self.fields(frames, "urnic.msn", "vlan.id"), [("8", ""), ("9", ""), ("10", "100"), ("11", "100")])

    def test_kinds(self):
        """Each kind of remote memory access has its name, and its operands their fields."""
        data = {1: b"12345678", 4: b"12345678", 6: struct.pack(">B7xQQ", 5, 0x11, 0x22), 7: struct.pack(">Q", 0x33), 10: b"12345678", 11: b"12345678",
                15: struct.pack(">IB3x", 100000, 255) + b"12345678"}
        kinds = table("KINDS")
        frames = [frame(am(k, data.get(k, b""))) for k in sorted(kinds)]
        found = self.fields(frames, "urnic.am.kind", "urnic.am.op", "urnic.am.value", "urnic.am.compare", "urnic.am.old", "urnic.am.total",
                            "urnic.am.every", "urnic.am.data")
        for k, (kind, *rest) in zip(sorted(kinds), found):
            want = ["", "", "", "", "", "", b"12345678".hex() if k in (1, 4, 10, 11, 15) else ""]
            if k == 6:
                want[:3] = ["5", "0x0000000000000011", "0x0000000000000022"]
            elif k == 7:
                want[3] = "0x0000000000000033"
            elif k == 15:
                want[4:6] = ["100000", "255"]
            self.assertEqual((kind, rest), (str(k), want))
        for k, info in zip(sorted(kinds), self.infos(frames)):
            self.assertEqual(info, f"Flow Data, PSN 7: {kinds[k]}")

    def test_refusals(self):
        """Reasons of errors, of messages that a queue refused, and tags of writes that one reply answers."""
        frames = [frame(am(5, code=4)), frame(am(13, code=0x80 | 12)), frame(ack((5, [2, 3]))), frame(am(2, struct.pack(">QQ", 0x78, 0x79), more=2))]
        self.assertEqual(self.fields(frames, "urnic.am.code", "urnic.am.maybe", "urnic.flow.refused_psn", "urnic.flow.code", "urnic.am.further"),
                         [("4", "0", "", "", ""), ("12", "1", "", "", ""), ("", "", "5", "3", ""), ("0", "0", "", "", "0x0000000000000078,0x0000000000000079")])
        self.assertEqual(self.infos(frames)[:3], ["Flow Data, PSN 7: Error (range)", "Flow Data, PSN 7: Tagged Error (no-reply)",
                                                  "Flow Ack, up to PSN 5, 1 refused (queue-full)"])

    def test_profile(self):
        """Payload that happens to look like another protocol is data. Without any one line of the profile, a good frame is
        called malformed."""
        guesses = {
            "eth_over_ib": struct.pack(">HH", 0x86DD, 0) + b"\x60\0\0\0",
            "rpcrdma_infiniband": struct.pack(">IIII", 1, 1, 1, 1),
            "smb_direct_infiniband": struct.pack("<HHHHIII", 10, 10, 0, 0, 0, 24, 8) + bytes(4) + b"\xfeSMB@\0\0\0",
        }
        path = os.path.join(self.profile, "heuristic_protos")
        with open(path, encoding="utf-8") as f:
            lines = f.read().splitlines()
        self.assertEqual({line.split(",")[0] for line in lines}, set(guesses))
        for line in lines:
            frames = [frame(bth(0x04) + guesses[line.split(",")[0]])]
            self.assertEqual(self.fields(frames, "infiniband.bth.opcode"), [("4",)])
            with open(path, "w", encoding="utf-8") as f:
                f.writelines(other + "\n" for other in lines if other != line)
            self.assertIn("Malformed Packet", self.tshark(frames, "-T", "fields", "-e", "_ws.malformed")[0], line)
            with open(path, "w", encoding="utf-8") as f:
                f.writelines(other + "\n" for other in lines)

    def test_cut(self):
        """Packets that end anywhere make no error of the script."""
        whole = (am(6, struct.pack(">B7xQQ", 5, 1, 2)), am(15, bytes(8)), am(2, bytes(16), more=2), ack((5, [2, 3])), bth(0xC6) + bytes(4))
        frames = [frame(p[:n]) for p in whole for n in range(len(p))]
        self.assertEqual([line for line in self.tshark(frames, "-T", "fields", "-e", "_ws.lua.text") if line], [])


if __name__ == "__main__":
    PROJECT = os.path.abspath(sys.argv.pop(1))
    if not shutil.which("tshark"):
        print("skipped: there is no tshark")
        sys.exit(77)
    unittest.main(argv=sys.argv, verbosity=2)
