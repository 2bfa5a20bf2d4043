#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Let others judge the frames we make: scapy and Wireshark.

usage: check_frames.py GENERATOR
GENERATOR FILE.pcap writes frames and prints how many. scapy makes each one
anew without its checksums and ICRC and must come to the same bytes; tshark
must find nothing malformed and no bad checksum.
"""
import os
import subprocess
import sys
import tempfile
import zlib

from scapy.config import conf
conf.verb = 0
from scapy.contrib.roce import BTH
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.inet6 import (ICMPv6EchoReply, ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RS, IPv6)
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapReader


# Wireshark guesses at what RDMA payload might be; ours is none of these.
GUESSES = ("smc", "smb_direct", "rpcordma", "nvme-rdma", "lnet", "iser", "infiniband.eoib",
           "infiniband_sdp", "fcoib")


def die(text):
    sys.exit("check_frames: " + text)


def icrc_v6(frame):
    """scapy leaves the ICRC over IPv6 to do, so it is done here from doc/reference/wire.md."""
    p = bytearray(frame[14:-4])
    p[0] |= 0x0f
    for i in (1, 2, 3, 7, 46, 47, 52):
        p[i] = 0xff
    return zlib.crc32(b"\xff" * 8 + p).to_bytes(4, "little")


def rebuild(frame):
    """The frame as scapy would send it: checksums and ICRC computed anew."""
    pkt = Ether(frame)
    if IP in pkt:
        del pkt[IP].chksum
    if BTH in pkt and IP in pkt:
        pkt[BTH].icrc = None
    if ICMP in pkt:
        del pkt[ICMP].chksum
    for layer in (ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6ND_RS, ICMPv6EchoReply):
        if layer in pkt:
            del pkt[layer].cksum
    out = bytes(pkt)
    if BTH in pkt and IPv6 in pkt:
        out = out[:-4] + icrc_v6(frame)
    return pkt, out


def check_scapy(frames):
    roce = 0
    for number, frame in enumerate(frames, 1):
        pkt, out = rebuild(frame)
        if UDP in pkt and BTH not in pkt:
            die(f"frame {number}: scapy sees no BTH")
        roce += BTH in pkt
        if out != frame:
            die(f"frame {number} differs from scapy's:\n ours   {frame.hex()}\n"
                f" scapy  {out.hex()}")
    return roce


def check_tshark(path, expected):
    cmd = ["tshark", "-n", "-r", path, "-o", "ip.check_checksum:TRUE", "-T", "fields",
           "-e", "frame.number", "-e", "_ws.malformed", "-e", "ip.checksum.status",
           "-e", "icmp.checksum.status", "-e", "icmpv6.checksum.status",
           "-e", "_ws.expert.severity", "-e", "_ws.expert.message", "-e", "frame.protocols"]
    for guess in GUESSES:
        cmd += ["--disable-protocol", guess]
    run = subprocess.run(cmd, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        die("tshark failed: " + run.stderr)
    lines = run.stdout.splitlines()
    if len(lines) != expected:
        die(f"tshark read {len(lines)} frames of {expected}")
    for line in lines:
        number, malformed, ip, icmp, icmp6, severity, message, protocols = line.split("\t")
        if malformed or "malformed" in protocols.lower():
            die(f"frame {number}: tshark calls it malformed: {message}")
        # A status of 1 is good, 2 not checked, 0 bad.
        if "0" in (ip, icmp, icmp6):
            die(f"frame {number}: tshark finds a bad checksum")
        # 0x800000 is an error. UDP checksum 0 over IPv6 is wanted: wire/build.c.
        if str(0x800000) in severity.split(",") and message != "Illegal checksum value (0)":
            die(f"frame {number}: tshark says: {message}")


def main():
    if len(sys.argv) != 2:
        die("usage: check_frames.py GENERATOR")
    with tempfile.TemporaryDirectory(prefix="urnic-test-") as folder:
        path = os.path.join(folder, "frames.pcap")
        run = subprocess.run([sys.argv[1], path], capture_output=True, text=True, check=True)
        expected = int(run.stdout)
        frames = [bytes(data) for data, _ in RawPcapReader(path)]
        if len(frames) != expected or expected == 0:
            die(f"{len(frames)} frames in the file, {expected} announced")
        roce = check_scapy(frames)
        check_tshark(path, expected)
    print(f"{expected} frames, {roce} of them RoCEv2: scapy and tshark agree")


main()
