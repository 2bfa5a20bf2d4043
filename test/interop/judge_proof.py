#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Does judge.py find a frame that is not well, and pass those that are?

usage: judge_proof.py CAPTURE.pcap

CAPTURE is the frames of another stack. Each harm is done to one frame of them;
where the harm is not meant to be found by the ICRC, the ICRC is made right.
"""
import os
import struct
import subprocess
import sys
import tempfile
import zlib

JUDGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "judge.py")
FILE_HEAD = struct.pack("<IHHIIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)
BTH = {0x08: 42, 0x86: 62}


def load(path):
    with open(path, "rb") as f:
        data = f.read()
    at, out = 24, []
    while at < len(data):
        size = struct.unpack_from("<I", data, at + 8)[0]
        out.append(bytearray(data[at + 16:at + 16 + size]))
        at += 16 + size
    return out


def seal(f):
    """Checksum of IPv4 and ICRC, from doc/wire.md."""
    v6 = f[12] == 0x86
    if not v6:
        f[24:26] = b"\0\0"
        s = sum(struct.unpack(">10H", f[14:34]))
        s = (s & 0xffff) + (s >> 16)
        s = (s & 0xffff) + (s >> 16)
        f[24:26] = struct.pack(">H", ~s & 0xffff)
    p = bytearray(f[14:-4])
    if v6:
        p[0] |= 0x0f
    for i in (1, 2, 3, 7, 46, 47, 52) if v6 else (1, 8, 10, 11, 26, 27, 32):
        p[i] = 0xff
    f[-4:] = zlib.crc32(b"\xff" * 8 + p).to_bytes(4, "little")
    return f


def lengths(f, by):
    """IP and UDP speak of so many bytes more."""
    v6 = f[12] == 0x86
    for at in (18, 58) if v6 else (16, 38):
        f[at:at + 2] = struct.pack(">H", struct.unpack(">H", f[at:at + 2])[0] + by)
    return f


def flip(at):
    def harm(f):
        f[at] ^= 0x10
        return f
    return harm


def cut_ext(f):
    """An ACK whose AETH is missing, all lengths and the ICRC right."""
    bth = BTH[f[12]]
    return seal(lengths(f[:bth + 12] + bytearray(4), bth + 16 - len(f)))


def wrong_pad(f):
    """More pad than there is payload, the ICRC right."""
    f[BTH[f[12]] + 1] |= 0x30
    return seal(f)


def other_port(f):
    at = BTH[f[12]] - 6
    f[at] ^= 0x40
    return seal(f)


HARMS = {
    "a bit of the payload": flip(-9),
    "a bit of the ICRC": flip(-2),
    "a bit of the PSN": flip(52),
    "IPv4 checksum": flip(24),
    "four bytes missing": lambda f: f[:-4],
    "four bytes too many": lambda f: f + bytes(4) + bytes(60),
    "lengths that speak of more": lambda f: lengths(f, 4),
    "UDP's length alone": lambda f: seal(flip(39)(f)),
    "another UDP port": other_port,
}


def judge(folder, frames, *options):
    path = os.path.join(folder, "x.pcap")
    with open(path, "wb") as out:
        out.write(FILE_HEAD)
        for f in frames:
            out.write(struct.pack("<IIII", 0, 0, len(f), len(f)) + f)
    done = subprocess.run([JUDGE, *options, path], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def pick(frames, op, family):
    return next(f for f in frames if f[12] == family and f[BTH[family]] == op and len(f) > 60)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: judge_proof.py CAPTURE.pcap")
    frames = load(sys.argv[1])
    v4, v6, ack = pick(frames, 0, 0x08), pick(frames, 2, 0x86), pick(frames, 17, 0x08)
    sound = [v4, v6, ack, pick(frames, 12, 0x08)]
    failures = 0

    def expect(what, code, got):
        nonlocal failures
        if got[0] != code or (code == 1 and "Traceback" in got[1]):
            failures += 1
            print(f"FAILED: {what}: exit code {got[0]}, not {code}:\n{got[1]}")
        else:
            print(f"done: {what}: {got[1].splitlines()[0]}")

    with tempfile.TemporaryDirectory(prefix="urnic-judge-", dir="/tmp") as folder:
        expect("sound frames", 0, judge(folder, sound))
        expect("sound frames, enough of them", 0, judge(folder, sound, "--at-least", "4"))
        expect("too few frames", 1, judge(folder, sound, "--at-least", "5"))
        expect("an opcode that is missing", 1, judge(folder, sound, "--opcodes", "0,14"))
        for name, harm in HARMS.items():
            expect(name, 1, judge(folder, sound + [harm(bytearray(v4))]))
        expect("no AETH", 1, judge(folder, sound + [cut_ext(bytearray(ack))]))
        expect("pad without payload", 1, judge(folder, sound + [wrong_pad(bytearray(ack))]))
        expect("IPv6, a bit of the payload", 1, judge(folder, sound + [flip(-9)(bytearray(v6))]))
        with open(f"{folder}/none", "wb") as f:
            f.write(b"no capture")
        done = subprocess.run([JUDGE, f"{folder}/none"], capture_output=True, text=True)
        expect("no capture at all", 1, (done.returncode, done.stderr))
        done = subprocess.run([JUDGE], capture_output=True, text=True)
        expect("no argument", 2, (done.returncode, done.stderr))
    sys.exit(failures != 0)


main()
