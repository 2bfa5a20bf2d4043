#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Let others judge frames that urnic sent: Wireshark's dissector and scapy.

usage: judge.py [OPTION...] CAPTURE...

Each CAPTURE (pcap or pcapng) holds only frames that urnic sent, none of them
harmed on purpose. Of every frame:

  lengths   Ethernet, IP, UDP, the opcode's headers and the pad agree
  tshark    no mark of being malformed, no error, no wrong checksum; what goes
            to UDP port 4791 is InfiniBand to it
  scapy     contrib/roce, IPv4: the ICRC computed anew is the frame's
  zlib      the same for IPv6, which scapy leaves to do

  --at-least N   fail when there are fewer than N RoCEv2 frames all together
  --opcodes LIST fail unless each of these opcodes (hexadecimal, with commas)
                 was there
  --help         this text

Frames that are the same byte for byte are shown to scapy once. Says how many
frames each judge saw. Exit code: 0 all is well, 1 a frame is not or a judge
failed, 2 wrong usage.
"""
import getopt
import subprocess
import sys
import zlib

from scapy.config import conf
conf.verb = 0
from scapy.contrib.roce import BTH
from scapy.layers.l2 import Ether
from scapy.layers.inet import IP
from scapy.utils import RawPcapReader

PORT = 4791
SHOWN = 5  # faults of a capture that are printed
# Wireshark guesses what the payload of RDMA may be, and reads beyond short ones.
HEURISTICS = ("rpcrdma_infiniband", "eth_over_ib", "smb_direct_infiniband")
PROTOCOLS = ("smc", "smb_direct", "rpcordma", "nvme-rdma", "lnet", "iser", "infiniband.eoib",
             "infiniband_sdp", "fcoib")
FIELDS = ("frame.number", "_ws.malformed", "ip.checksum.status", "icmp.checksum.status",
          "icmpv6.checksum.status", "_ws.expert.severity", "_ws.expert.message", "frame.protocols")
ERROR = str(0x800000)
# Zero over IPv6 is what RoCEv2 hardware sends and expects.
FORGIVEN = ("Illegal checksum value (0)",)

# doc/wire.md "Opcodes": bytes of the extension headers, and whether a payload follows them.
# Opcodes from 0xc0 on are the maker's own: their insides are not looked at.
EXT = {0x00: 0, 0x01: 0, 0x02: 0, 0x03: 4, 0x04: 0, 0x05: 4, 0x06: 16, 0x07: 0, 0x08: 0, 0x09: 4,
       0x0a: 16, 0x0b: 20, 0x0c: 16, 0x0d: 4, 0x0e: 0, 0x0f: 4, 0x10: 4, 0x11: 4, 0x12: 12,
       0x13: 28, 0x14: 28, 0x16: 4, 0x17: 4, 0x64: 8, 0x65: 12, 0x81: 16, 0xc0: 76}
BARE = (0x0c, 0x11, 0x12, 0x13, 0x14, 0x81, 0xc0)


def be16(b, at):
    return b[at] << 8 | b[at + 1]


class Frame:
    """Where the headers of a frame are; fault: why its lengths do not agree."""

    def __init__(self, data):
        self.data, self.fault, self.roce, self.v6 = data, None, False, False
        if len(data) < 14:
            self.fault = "shorter than an Ethernet header"
            return
        kind = be16(data, 12)
        if kind not in (0x0800, 0x86dd):
            return
        self.v6 = kind == 0x86dd
        head = 54 if self.v6 else 34
        if len(data) < head:
            self.fault = "shorter than its IP header"
            return
        end = 54 + be16(data, 18) if self.v6 else 14 + be16(data, 16)
        if end > len(data) or (end < len(data) and len(data) > 60):
            self.fault = f"IP speaks of {end} bytes, and it has {len(data)}"
        elif data[20 if self.v6 else 23] == 17:
            self.look_at_udp(head, end)

    def look_at_udp(self, udp, end):
        if end < udp + 8 or be16(self.data, udp + 4) != end - udp:
            self.fault = "the length of UDP is not that of IP"
        elif be16(self.data, udp + 2) != PORT:
            self.fault = f"UDP port {be16(self.data, udp + 2)}"
        elif end < udp + 8 + 16:
            self.fault = "no room for BTH and ICRC"
        else:
            self.roce = True
            self.bth = udp + 8
            self.end = end
            self.look_at_bth()

    def look_at_bth(self):
        """tshark takes the ICRC for an extension header that is missing."""
        op, pad = self.opcode(), self.data[self.bth + 1] >> 4 & 3
        if op > 0xc0:
            return
        if op not in EXT:
            self.fault = f"opcode 0x{op:02x}"
            return
        rest = self.end - self.bth - 12 - EXT[op] - 4
        if rest < pad or rest % 4 or (rest and op in BARE):
            self.fault = f"{rest} bytes of payload and {pad} of pad for opcode 0x{op:02x}"

    def opcode(self):
        return self.data[self.bth]


def icrc_scapy(frame):
    """The four bytes that scapy would send (IPv4)."""
    pkt = Ether(frame.data[:frame.end])
    if IP not in pkt or BTH not in pkt:
        return None
    return pkt[BTH].compute_icrc(b"")


def icrc_zlib(frame):
    """doc/wire.md "ICRC", for IPv6."""
    p = bytearray(frame.data[14:frame.end - 4])
    p[0] |= 0x0f
    for i in (1, 2, 3, 7, 46, 47, 52):
        p[i] = 0xff
    return zlib.crc32(b"\xff" * 8 + p).to_bytes(4, "little")


class Judge:
    def __init__(self):
        self.seen = {"frames": 0, "roce": 0, "scapy": 0, "zlib": 0, "tshark": 0}
        self.opcodes = set()
        self.faults = 0
        self.known = set()

    def fault(self, path, number, text, data=b""):
        self.faults += 1
        if self.faults <= SHOWN:
            print(f"judge: {path}: frame {number}: {text}\n  {data[:128].hex()}", file=sys.stderr)

    def look(self, path, number, data):
        f = Frame(data)
        self.seen["frames"] += 1
        if f.fault:
            self.fault(path, number, f.fault, data)
        if not f.roce:
            return False
        self.seen["roce"] += 1
        self.opcodes.add(f.opcode())
        if data in self.known:
            return True
        self.known.add(data)
        self.seen["zlib" if f.v6 else "scapy"] += 1
        want = icrc_zlib(f) if f.v6 else icrc_scapy(f)
        if want != f.data[f.end - 4:f.end]:
            self.fault(path, number, f"ICRC {f.data[f.end - 4:f.end].hex()}, and it should be "
                       f"{want.hex() if want else 'that of a RoCEv2 frame'}", data)
        return True

    def tshark(self, path, roce):
        """roce: for each frame, whether it is one that must be InfiniBand to tshark."""
        cmd = ["tshark", "-n", "-r", path, "-o", "ip.check_checksum:TRUE", "-T", "fields"]
        for name in FIELDS:
            cmd += ["-e", name]
        for name in HEURISTICS:
            cmd += ["--disable-heuristic", name]
        for name in PROTOCOLS:
            cmd += ["--disable-protocol", name]
        run = subprocess.run(cmd, capture_output=True, text=True, check=False)
        lines = run.stdout.splitlines()
        self.seen["tshark"] += len(lines)
        if run.returncode != 0 or len(lines) != len(roce):
            self.fault(path, 0, f"tshark read {len(lines)} of {len(roce)} frames: {run.stderr}")
        for line, wanted in zip(lines, roce):
            number, malformed, ip, icmp, icmp6, severity, message, protocols = line.split("\t")
            if malformed or "malformed" in protocols.lower():
                self.fault(path, number, f"tshark calls it malformed: {message}")
            elif wanted and ":infiniband" not in protocols:
                self.fault(path, number, f"to tshark it is {protocols}")
            elif "0" in (ip, icmp, icmp6):
                self.fault(path, number, "tshark finds a wrong checksum")
            elif ERROR in severity.split(",") and message not in FORGIVEN:
                self.fault(path, number, f"tshark says: {message}")

    def capture(self, path):
        self.known.clear()
        roce = [self.look(path, i, bytes(data))
                for i, (data, _) in enumerate(RawPcapReader(path), 1)]
        if roce:
            self.tshark(path, roce)


def usage(text):
    print(f"judge.py: {text}; see judge.py --help", file=sys.stderr)
    sys.exit(2)


def main():
    least, wanted = 0, set()
    try:
        options, captures = getopt.getopt(sys.argv[1:], "h", ["help", "at-least=", "opcodes="])
        for name, value in options:
            if name in ("-h", "--help"):
                print(__doc__.strip())
                return 0
            if name == "--at-least":
                least = int(value)
            else:
                wanted = {int(x, 16) for x in value.split(",")}
    except (getopt.GetoptError, ValueError) as e:
        usage(e)
    if not captures:
        usage("no capture is named")
    judge = Judge()
    for path in captures:
        try:
            judge.capture(path)
        except Exception as e:  # what scapy raises has many names
            judge.fault(path, 0, f"cannot be read: {e}")
    s = judge.seen
    if s["roce"] < least:
        judge.fault("all", 0, f"{s['roce']} RoCEv2 frames, and {least} are wanted")
    if wanted - judge.opcodes:
        judge.fault("all", 0, "no frame of opcode " +
                    ", ".join(f"0x{x:02x}" for x in sorted(wanted - judge.opcodes)))
    print(f"{s['frames']} frames, {s['roce']} of them RoCEv2 of {len(judge.opcodes)} opcodes; "
          f"tshark looked at {s['tshark']}, scapy computed the ICRC of {s['scapy']} over IPv4 and "
          f"zlib of {s['zlib']} over IPv6 (the same bytes once); {judge.faults} faults")
    return 1 if judge.faults else 0


sys.exit(main())
