#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prove that judge.py finds faulty frames and passes good ones.

usage: judge_proof.py CAPTURE.pcap

CAPTURE has frames of another stack. Each fault is put into one of these frames;
the ICRC is made right where a check other than the ICRC must find the fault. The
cases: each judge alone, with the others silenced; a faulty frame among many;
captures of both directions; truncated captures; and, for judge_tests.py, programs
whose frames or reports are wrong. Most cases run both programs in a forked process,
because each import of scapy takes longer than the judges take for a few frames.
"""
import os
import struct
import subprocess
import sys
import tempfile
import traceback
import zlib

sys.dont_write_bytecode = True
import judge as court
import judge_tests

JUDGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "judge.py")
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
    """Set the checksum of IPv4 and the ICRC, as doc/reference/wire.md says."""
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
    """Add `by` to the lengths of IP and UDP."""
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
    """Cut the AETH out of an ACK; all lengths and the ICRC stay right."""
    bth = BTH[f[12]]
    return seal(lengths(f[:bth + 12] + bytearray(4), bth + 16 - len(f)))


def wrong_pad(f):
    """Set a pad longer than the payload; the ICRC stays right."""
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


def pcap(frames, order="<", magic=0xa1b2c3d4):
    head = struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, 65535, 1)
    return head + b"".join(struct.pack(order + "IIII", 0, 0, len(f), len(f)) + f for f in frames)


def block(kind, body, order):
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def pcapng(frames, order="<"):
    """A pcapng file. frames: (way, frame) each; way 1: in, 2: out, None: without a direction."""
    out = block(0x0a0d0d0a, struct.pack(order + "IHHq", 0x1a2b3c4d, 1, 0, -1), order)
    out += block(1, struct.pack(order + "HHI", 1, 0, 0), order)
    for way, f in frames:
        body = struct.pack(order + "IIIII", 0, 0, 0, len(f), len(f)) + f + bytes(-len(f) % 4)
        # A comment stands before the flags: the reader must skip the comment.
        body += struct.pack(order + "HH5s3xHH", 1, 5, b"hello", 2, 4)
        body += struct.pack(order + "IHH", way or 0, 0, 0)
        out += block(6, body, order)
    return out


def ended(program, *argv):
    """The exit code of a program in this process, by its main()."""
    sys.argv = [program.__file__, *argv]
    try:
        return program.main() or 0
    except SystemExit as e:
        return e.code or 0
    except BaseException: # pylint: disable=broad-except
        traceback.print_exc()
        return 1


def run(program, *argv):
    """Run a program in a forked process. returns: its exit code and output"""
    with tempfile.TemporaryFile("w+") as said:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            sys.stdout, sys.stderr = (open(fd, "w", encoding="utf-8", closefd=False) for fd in (1, 2))
            code = ended(program, *argv)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        return code, said.read()


def execute(*argv):
    """Run judge.py as a person does."""
    done = subprocess.run([JUDGE, *argv], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def judge_file(folder, data, *options, how=lambda *argv: run(court, *argv)):
    path = os.path.join(folder, "x.pcap")
    with open(path, "wb") as out:
        out.write(data)
    return how(*options, path)


def judge(folder, frames, *options, **more):
    return judge_file(folder, pcap(frames), *options, **more)


def judge_here(folder, frames, scapy=None):
    """Judge frames in this process, whose judges can be silenced."""
    with tempfile.TemporaryDirectory(dir=folder) as kept:
        path = os.path.join(kept, "x.pcap")
        with open(path, "wb") as out:
            out.write(pcap(frames))
        j = court.Judge(kept)
        j.tell = lambda: None
        j.take(path)
        well = j.verdict(scapy)
    return 0 if well else 1, f"{j.seen.faults[0][1] if j.seen.faults else 'nothing'}\n", j.seen


def numbered(frame, n):
    """Copies of a frame with PSNs from 0 on, each with the right ICRC."""
    out = []
    for i in range(n):
        f = bytearray(frame)
        at = BTH[f[12]] + 9
        f[at:at + 3] = i.to_bytes(3, "big")
        out.append(seal(f))
    return out


def silenced(expect, folder, v4, v6):
    """Each judge finds a fault alone; zlib and scapy do so in the same frame."""
    zlib_judge, scapy_judge = court.icrc_zlib, court.icrc_scapy
    bad = flip(-9)(bytearray(v4))
    court.icrc_zlib = lambda f: f.icrc()
    expect("scapy alone", 1, judge_here(folder, [v4, bad]))
    expect("scapy does not know IPv6", 0, judge_here(folder, [flip(-9)(bytearray(v6))]))
    court.icrc_scapy = lambda f: f.icrc()
    expect("neither zlib nor scapy", 0, judge_here(folder, [v4, bad]))
    expect("tshark alone", 1, judge_here(folder, [v4, flip(24)(bytearray(v4))]))
    court.icrc_zlib = zlib_judge
    expect("zlib alone", 1, judge_here(folder, [v4, bad]))
    court.icrc_scapy = scapy_judge


def among_many(expect, folder, v4):
    """tshark and zlib find a faulty frame at any place; scapy, which sees a part, sees each kind."""
    many = numbered(v4, 5000)
    for at in (0, 2501, 4999):
        some = many[:at] + [flip(24)(bytearray(many[at]))] + many[at + 1:]
        expect(f"tshark, frame {at} of 5000", 1, judge_here(folder, some, 10))
        some[at] = flip(-9)(bytearray(many[at]))
        expect(f"zlib, frame {at} of 5000", 1, judge_here(folder, some, 10))
    code, said, seen = judge_here(folder, many + many, 500)
    shown = seen.roce == 10000 and seen.distinct == 5000 and seen.tshark == 5000 and \
        seen.zlib == 5000 and 300 < seen.scapy < 700
    expect("scapy is shown a part, and the same frame once", 0, (code if shown else seen, said))
    seen = judge_here(folder, [v4, *many[:9], bytearray(many[9])], 0)[2]
    expect("all, of one kind", 0, (0 if seen.scapy <= len(os.sched_getaffinity(0)) and
                                      len(seen.kinds) == 1 else seen, "\n"))
    # One frame is of another kind: scapy is given the frame even when told to judge none.
    other = seal(flip(BTH[v4[12]] + 8)(bytearray(v4)))
    court.icrc_zlib, zlib_judge = lambda f: f.icrc(), court.icrc_zlib
    expect("scapy, the only one of its kind", 1, judge_here(folder, many + [flip(-9)(other)], 0))
    court.icrc_zlib = zlib_judge


def files(expect, folder, v4, v6, ack):
    bad = flip(-9)(bytearray(v4))
    for order in "<>":
        for magic in (0xa1b2c3d4, 0xa1b23c4d):
            expect(f"pcap {order} {magic:x}", 0, judge_file(folder, pcap([v4, v6], order, magic),
                                                           "--at-least", "2"))
        both = pcapng([(2, v4), (1, bad), (2, ack)], order)
        expect(f"pcapng {order}, what was sent", 0, judge_file(folder, both, "--sent", "--at-least", "2"))
        expect(f"pcapng {order}, only that", 1, judge_file(folder, both, "--sent", "--at-least", "3"))
        expect(f"pcapng {order}, both directions", 1, judge_file(folder, both))
        expect(f"pcapng {order}, harmed when sent", 1,
               judge_file(folder, pcapng([(2, v4), (2, bad)], order), "--sent"))
        expect(f"pcapng {order}, no direction", 1,
               judge_file(folder, pcapng([(2, v4), (None, v4)], order), "--sent"))
    expect("pcap has no directions", 1, judge_file(folder, pcap([v4]), "--sent"))
    for what, data in (("pcap", pcap([v4, v6])), ("pcapng", pcapng([(2, v4), (2, v6)]))):
        for cut in (1, 5, len(v6) + 3, len(v6) + 15):
            expect(f"{what}, {cut} bytes cut off", 1, judge_file(folder, data[:-cut]))


# A stand-in for a program: copies a prepared capture to the place where the program would write one.
STAND_IN = """#!/bin/sh
[ "$1" != --list ] || { printf 'scenarios:\\n  one  one\\nfaults:\\n'; exit; }
while [ $# -gt 0 ]; do
	[ "$1" != --capture ] || to=$2
	shift
done
[ ! -e "$0.cap" ] || cp "$0.cap" "${to:-$URNIC_TEST_PCAP/x.pcap}"
cat "$0.out"
exit %d
"""


def programs(expect, folder, v4):
    """All programs fail, because they send too few frames; the message shows which fault was seen."""
    bad = flip(-9)(bytearray(v4))
    few, icrc, none = "frames, and 500000 are wanted", "ICRC", "nothing of what it sent was captured"
    perf = '{"capture_lost": %d, "counters": {"tx_packets": %d}}'
    for what, name, data, out, code, wanted in (
            ("sends well", "test_x", pcap([v4]), "", 0, few),
            ("sends ill", "test_x", pcap([v4, bad]), "", 0, icrc),
            ("sends nothing", "test_x", pcap([]), "", 0, none),
            ("leaves no capture", "test_x", None, "", 0, none),
            ("fails", "test_x", pcap([v4]), "alas", 3, "ended with 3:\nalas"),
            ("fuzzers' sends ill", "replay_x", pcap([bad]), "", 0, icrc),
            ("simulation sends well", "urnic-sim", pcap([v4, v4]), '{"frames": 2}', 0, few),
            ("simulation sends ill", "urnic-sim", pcap([v4, bad]), '{"frames": 2}', 0, icrc),
            ("simulation captures a part", "urnic-sim", pcap([v4, v4]), '{"frames": 3}', 0, "2 frames of 3"),
            ("perf's wire harms", "urnic-perf", pcapng([(2, v4), (1, bad)]), perf % (0, 1), 0, few),
            ("perf sends ill", "urnic-perf", pcapng([(2, v4), (2, bad)]), perf % (0, 2), 0, icrc),
            ("perf captures a part", "urnic-perf", pcapng([(2, v4)]), perf % (0, 2), 0, "1 frames of 2"),
            ("perf says so", "urnic-perf", pcapng([(2, v4)]), perf % (1, 2), 0, few),
            ("cp sends ill", "urnic-cp", pcapng([(1, bad)]), "", 0, icrc)):
        with tempfile.TemporaryDirectory(dir=folder) as place:
            path = os.path.join(place, name)
            for end, text in (("", STAND_IN % code), (".out", out), (".cap", data)):
                if text is not None:
                    with open(path + end, "wb") as f:
                        f.write(text if isinstance(text, bytes) else text.encode())
            os.chmod(path, 0o755)
            status, said = run(judge_tests, path)
            faults = [line for line in said.splitlines() if "zlib computed" not in line] # the sum names the ICRC always
            right = wanted in "\n".join(faults) and \
                (wanted == icrc) == any(icrc in line for line in faults)
            expect(f"a program that {what}", 1, (status if right else "another reason", said))


def pick(frames, op, family):
    return next(f for f in frames if f[12] == family and f[BTH[family]] == op and len(f) > 60)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: judge_proof.py CAPTURE.pcap")
    frames = load(sys.argv[1])
    v4, v6, ack = pick(frames, 0, 0x08), pick(frames, 2, 0x86), pick(frames, 17, 0x08)
    sound = [v4, v6, ack, pick(frames, 12, 0x08)]
    failures = 0
    court.import_scapy()

    def expect(what, code, got):
        nonlocal failures
        if got[0] != code or (code == 1 and "Traceback" in got[1]):
            failures += 1
            print(f"FAILED: {what}: exit code {got[0]}, not {code}:\n{got[1]}")
        else:
            print(f"done: {what}: {got[1].splitlines()[0]}")

    with tempfile.TemporaryDirectory(prefix="urnic-judge-", dir="/tmp") as folder:
        expect("sound frames", 0, judge(folder, sound, how=execute))
        expect("sound frames, enough of them", 0, judge(folder, sound, "--at-least", "4"))
        expect("too few frames", 1, judge(folder, sound, "--at-least", "5"))
        expect("an opcode that is missing", 1, judge(folder, sound, "--opcodes", "0,14"))
        for name, harm in HARMS.items():
            expect(name, 1, judge(folder, sound + [harm(bytearray(v4))]))
        expect("a faulty frame, to a person", 1, judge(folder, sound + [flip(-9)(bytearray(v4))], how=execute))
        expect("no AETH", 1, judge(folder, sound + [cut_ext(bytearray(ack))]))
        expect("pad without payload", 1, judge(folder, sound + [wrong_pad(bytearray(ack))]))
        expect("IPv6, a bit of the payload", 1, judge(folder, sound + [flip(-9)(bytearray(v6))]))
        silenced(expect, folder, v4, v6)
        among_many(expect, folder, v4)
        files(expect, folder, v4, v6, ack)
        programs(expect, folder, v4)
        expect("no capture at all", 1, judge_file(folder, b"no capture"))
        expect("an empty file", 1, judge_file(folder, b""))
        expect("a number that is none", 2, judge(folder, sound, "--scapy", "many", how=execute))
        expect("no argument", 2, execute())
    sys.exit(failures != 0)


main()
