#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Make inputs for the fuzz targets out of frames that another stack sent.

usage: seeds.py CAPTURE.pcap FOLDER

Writes FOLDER/parse: a frame of each opcode, and FOLDER/transport: stretches of
the capture as records (record.h) whose addresses, QP numbers, PSNs and ICRC the
target sets right, so that a live QP takes them for its peer's.
"""
import os
import struct
import sys

LINES = 6          # frames of one stretch
RAW, POST = 6, 9   # bytes of record.h that stand for these kinds
RAW_FIX_ALL = 0x7f


def frames(path):
    data = open(path, "rb").read()
    if struct.unpack_from("<I", data)[0] != 0xa1b2c3d4:
        sys.exit(f"seeds: {path} is no little-endian pcap with microseconds")
    at = 24
    while at + 16 <= len(data):
        size = struct.unpack_from("<I", data, at + 8)[0]
        yield data[at + 16:at + 16 + size]
        at += 16 + size


def opcode(frame):
    """Of a RoCEv2 frame: its opcode; else None."""
    bth = 42 if frame[12] == 0x08 else 62
    if len(frame) < bth + 16 or frame[bth - 6:bth - 4] != b"\x12\xb7":
        return None
    return frame[bth]


def raw(frame, qp):
    return bytes([RAW, RAW_FIX_ALL, qp, 0]) + struct.pack("<H", len(frame)) + frame


def post(op):
    """A signalled request of 1,000 bytes on QP 0."""
    return bytes([POST, op, 2, 0, 0]) + struct.pack("<HHH", 1000, 0, 64) + b"\0"


def write(folder, name, data):
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: seeds.py CAPTURE.pcap FOLDER")
    capture, folder = sys.argv[1:]
    for target in ("parse", "transport"):
        os.makedirs(os.path.join(folder, target), exist_ok=True)
    seen = {}
    roce = []
    for f in frames(capture):
        op = opcode(f)
        if op is None:
            continue
        roce.append((op, f))
        seen.setdefault((op, f[12], len(f) % 4), f)
    for (op, family, _), f in sorted(seen.items()):
        for how in (0, 7):
            write(f"{folder}/parse", f"{family:02x}-{op:02x}-{len(f)}-{how}", bytes([how]) + f)
    # One stretch for each new set of opcodes: the same again teaches nothing.
    kinds = set()
    for i in range(0, len(roce) - LINES, LINES):
        part = roce[i:i + LINES]
        kind = (part[0][1][12], frozenset(op for op, _ in part))
        if kind in kinds:
            continue
        kinds.add(kind)
        body = b"".join(raw(f, 2 if op >= 0x60 else 0) for op, f in part)
        head = bytes([kind[0] != 0x08, 2, 1, 0x7f, 0, 0, 0, 0x0c])
        write(f"{folder}/transport", f"golden-{i:04d}", head + post(4) + post(2) + body)
    print(f"{len(seen) * 2} inputs for parse, {len(kinds)} for transport")


main()
