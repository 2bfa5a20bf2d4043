#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Let others judge frames that urnic sent: Wireshark's dissector and scapy.

usage: judge.py [OPTION...] CAPTURE...

Each CAPTURE (pcap or pcapng) holds only frames that urnic sent, none of them
corrupted on purpose. The judges of each frame:

  lengths   Ethernet, IP, UDP, the opcode's headers and the pad agree
  tshark    does not call the frame malformed, finds no error and no wrong checksum,
            and takes each frame to UDP port 4791 for InfiniBand
  zlib      the ICRC, computed as doc/reference/wire.md says, is the frame's
  scapy     the ICRC, computed by contrib/roce, is the frame's; IPv4 only

  --sent         judge only frames that left a port, by the direction in the
                 pcapng file; for captures of both directions
  --scapy N      give scapy the first frame of each kind and about N others, spread
                 evenly (default: all), because scapy takes half a millisecond for
                 each. Frames of one kind have the same length, opcode, flags,
                 codes and versions
  --at-least N   fail when there are fewer than N RoCEv2 frames in all captures
  --opcodes LIST fail unless each of these opcodes (hexadecimal, with commas
                 between) was there
  --help         this text

Frames with the same bytes are judged once. The last line says how many frames
each judge saw. Exit code: 0 no fault, 1 a frame is faulty or a judge failed,
2 wrong usage.
"""
import array
import concurrent.futures
import dataclasses
import gc
import getopt
import hashlib
import itertools
import multiprocessing
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True # must precede the import of frames
import frames
from frames import Frame, icrc_zlib

SHOWN = 5  # faults that are printed
# Wireshark guesses the protocol of RDMA's payload, and its dissectors read beyond short payloads.
HEURISTICS = ("rpcrdma_infiniband", "eth_over_ib", "smb_direct_infiniband")
PROTOCOLS = ("smc", "smb_direct", "rpcordma", "nvme-rdma", "lnet", "iser", "infiniband.eoib",
             "infiniband_sdp", "fcoib")
FIELDS = ("frame.number", "_ws.malformed", "ip.checksum.status", "icmp.checksum.status",
          "icmpv6.checksum.status", "_ws.expert.severity", "_ws.expert.message", "frame.protocols")
ERROR = str(0x800000)
# RoCEv2 hardware sends and expects a UDP checksum of zero over IPv6.
FORGIVEN = ("Illegal checksum value (0)",)
ALL = 1 << 64  # value of `most` that gives scapy all frames
BLOCK = 64     # frames that one process gets before the next one's turn: a few frames start one tshark


def icrc_scapy(frame):
    """The four bytes that scapy would send (IPv4)."""
    from scapy.contrib.roce import BTH
    from scapy.layers.inet import IP
    pkt = IP(frame.data[14:frame.end])
    return pkt[BTH].compute_icrc(b"") if BTH in pkt else None


def digest(data):
    return hashlib.blake2b(data, digest_size=16).digest()


@dataclasses.dataclass
class Seen:
    """The counts of the judges, and the faults that they found."""
    roce: int = 0      # RoCEv2 frames, equal ones counted each time
    distinct: int = 0  # RoCEv2 frames, equal ones counted once
    ipv4: int = 0      # distinct RoCEv2 frames over IPv4
    tshark: int = 0
    zlib: int = 0
    scapy: int = 0
    opcodes: set = dataclasses.field(default_factory=set)
    kinds: set = dataclasses.field(default_factory=set)
    faults: list = dataclasses.field(default_factory=list) # (place, text, bytes)

    def add(self, more):
        for f in dataclasses.fields(self):
            have = getattr(self, f.name)
            if isinstance(have, set):
                have |= getattr(more, f.name)
            else:
                setattr(self, f.name, have + getattr(more, f.name))


class Share:
    """The part of the frames that one process judges: a file, and the origin of each frame."""

    def __init__(self, path, paths):
        self.paths = paths # paths of captures; all shares have this list
        self.out = frames.Writer(path)
        self.capture = array.array("I") # index into paths
        self.number = array.array("Q")  # number of the frame in its capture
        self.times = array.array("I")   # number of equal frames

    def add(self, data, number):
        self.out.add(data)
        self.capture.append(len(self.paths) - 1)
        self.number.append(number)
        self.times.append(1)

    def place(self, i):
        return f"{self.paths[self.capture[i]]}: frame {self.number[i]}"

    def judge(self, most):
        """Judge all frames. most: scapy judges frames whose digest is below; digests spread evenly over 0..ALL."""
        seen, roce, first = Seen(), bytearray(), set()
        for i, (_, data, _) in enumerate(frames.read(self.out.path)):
            f = Frame(data)
            if f.fault:
                seen.faults.append((self.place(i), f.fault, data))
            roce.append(f.roce)
            if f.roce:
                self.look(seen, i, f, first, most)
        seen.distinct = sum(roce)
        seen.kinds = first
        if roce:
            self.tshark(seen, roce)
        return seen

    def look(self, seen, i, f, first, most):
        kind = f.kind()
        judges = [("zlib", icrc_zlib)]
        if not f.v6:
            seen.ipv4 += 1
            if kind not in first or int.from_bytes(digest(f.data)[:8], "big") < most:
                judges.append(("scapy", icrc_scapy))
        first.add(kind)
        seen.roce += self.times[i]
        seen.opcodes.add(f.opcode())
        for name, judge in judges:
            setattr(seen, name, getattr(seen, name) + 1)
            want = judge(f)
            if want != f.icrc():
                seen.faults.append((self.place(i), f"ICRC {f.icrc().hex()}, and {name} computes "
                                    f"{want.hex() if want else 'none, because this is no RoCEv2 frame'}", f.data))

    def tshark(self, seen, roce):
        """Have tshark judge all frames. roce: for each frame, whether tshark must take the frame for InfiniBand."""
        cmd = ["tshark", "-n", "-r", self.out.path, "-o", "ip.check_checksum:TRUE", "-T", "fields"]
        for name in FIELDS:
            cmd += ["-e", name]
        for name in HEURISTICS:
            cmd += ["--disable-heuristic", name]
        for name in PROTOCOLS:
            cmd += ["--disable-protocol", name]
        with tempfile.TemporaryFile("w+") as said:
            with subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=said, text=True) as run:
                for i, line in enumerate(run.stdout):
                    seen.tshark += 1
                    why = look_at_line(line.rstrip("\n"), i < len(roce) and roce[i])
                    if why:
                        place = self.place(i) if i < len(roce) else "behind the last frame"
                        seen.faults.append((place, why, b""))
            said.seek(0)
            if run.returncode != 0 or seen.tshark != len(roce):
                seen.faults.append(("all", f"tshark ended with {run.returncode} and read {seen.tshark} "
                                    f"of {len(roce)} frames: {said.read()}", b""))


def look_at_line(line, wanted):
    """The fault that tshark finds in a frame, or None."""
    _, malformed, ip, icmp, icmp6, severity, message, protocols = line.split("\t")
    if malformed or "malformed" in protocols.lower():
        return f"tshark finds the frame malformed: {message}"
    if wanted and ":infiniband" not in protocols:
        return f"tshark finds {protocols} in the frame, and no InfiniBand"
    if "0" in (ip, icmp, icmp6):
        return "tshark finds a wrong checksum"
    if ERROR in severity.split(",") and message not in FORGIVEN:
        return f"tshark says: {message}"
    return None


class Judge:
    """Call take() with each capture, which may be removed afterwards, then verdict() once.

    folder: for temporary files.
    """

    def __init__(self, folder):
        self.paths = []
        self.known = {} # a frame's number, by its digest; blocks of frames go to the shares in turn
        count = len(os.sched_getaffinity(0))
        self.shares = [Share(os.path.join(folder, f"judge{i}"), self.paths) for i in range(count)]
        self.frames = 0
        self.seen = Seen()

    def fault(self, place, text, data=b""):
        self.seen.faults.append((place, text, data))

    def take(self, path, sent=False):
        """Take the frames of a capture. sent: only frames that left the port. returns: number of frames taken"""
        self.paths.append(path)
        before = self.frames
        try:
            for number, data, way in frames.read(path):
                if sent and way is None:
                    raise frames.Broken(f"frame {number} does not say which way it went")
                if not sent or way == frames.OUT:
                    self.take_frame(data, number)
        except (frames.Broken, OSError) as e:
            self.fault(path, f"cannot be read: {e}")
        return self.frames - before

    def take_frame(self, data, number):
        self.frames += 1
        key = digest(data)
        at = self.known.setdefault(key, len(self.known))
        block, place = divmod(at, BLOCK)
        share = self.shares[block % len(self.shares)]
        place += block // len(self.shares) * BLOCK
        if place == len(share.times):
            share.add(data, number)
        else:
            share.times[place] += 1

    def verdict(self, scapy=None, least=0, opcodes=()):
        """Judge all frames. scapy: number of frames for scapy besides those of a new kind; None: all.

        returns: True when no fault was found."""
        most = ALL if scapy is None else ALL * scapy // max(1, scapy, len(self.known))
        import_scapy()
        with concurrent.futures.ProcessPoolExecutor(
                len(self.shares), multiprocessing.get_context("fork")) as pool:
            for share in self.shares:
                share.out.close()
            for more in pool.map(run_share, self.shares, itertools.repeat(most)):
                self.seen.add(more)
        s = self.seen
        if s.roce < least:
            self.fault("all", f"{s.roce} RoCEv2 frames, and {least} are wanted")
        if set(opcodes) - s.opcodes:
            self.fault("all", "no frame of opcode " +
                       ", ".join(f"0x{x:02x}" for x in sorted(set(opcodes) - s.opcodes)))
        self.tell()
        return not s.faults

    def tell(self):
        s = self.seen
        for place, text, data in s.faults[:SHOWN]:
            print(f"judge: {place}: {text}\n  {data[:128].hex()}", file=sys.stderr)
        print(f"{self.frames} frames, {len(self.known)} of them different, {s.roce} RoCEv2 ({s.distinct} "
              f"different, of {len(s.opcodes)} opcodes and {len(s.kinds)} kinds); tshark looked at "
              f"{s.tshark}, zlib computed the ICRC of {s.zlib}, scapy of {s.scapy} of {s.ipv4} over IPv4; "
              f"{len(s.faults)} faults", flush=True)


def import_scapy():
    """Import scapy before the processes fork, so that not each of them has to."""
    from scapy.config import conf
    conf.verb = 0
    import scapy.contrib.roce # pylint: disable=unused-import
    # Freezing spares the collector scapy's permanent objects, which took a tenth of the time.
    gc.collect()
    gc.freeze()
    gc.set_threshold(5000, 20, 100)


def run_share(share, most):
    return share.judge(most)


def usage(text):
    print(f"judge.py: {text}; see judge.py --help", file=sys.stderr)
    sys.exit(2)


def number(text):
    if not text.isdecimal():
        raise ValueError(f"'{text}' is not a number")
    return int(text)


def main():
    least, wanted, scapy, sent = 0, set(), None, False
    try:
        options, captures = getopt.getopt(sys.argv[1:], "h", ["help", "sent", "scapy=", "at-least=",
                                                              "opcodes="])
        for name, value in options:
            if name in ("-h", "--help"):
                print(__doc__.strip())
                return 0
            if name == "--at-least":
                least = number(value)
            elif name == "--scapy":
                scapy = number(value)
            elif name == "--sent":
                sent = True
            else:
                wanted = {int(x, 16) for x in value.split(",")}
    except (getopt.GetoptError, ValueError) as e:
        usage(e)
    if not captures:
        usage("no capture is named")
    with tempfile.TemporaryDirectory(prefix="urnic-judge-") as folder:
        judge = Judge(folder)
        for path in captures:
            judge.take(path, sent)
        return 0 if judge.verdict(scapy, least, wanted) else 1


if __name__ == "__main__":
    sys.exit(main())
