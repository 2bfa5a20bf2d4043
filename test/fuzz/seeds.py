#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Make inputs for the fuzz targets out of frames that another stack sent.

usage: seeds.py CAPTURE.pcap FOLDER

Writes FOLDER/parse: a frame of each opcode, and FOLDER/transport: stretches of
the capture as records (record.h) whose addresses, QP numbers, PSNs and ICRC the
target sets right, so that a live QP takes them for its peer's; and courses of
events that chance seldom finds: selective acknowledgements of packets that are
in flight, responses ahead of their turn, parts of READs asked for again.
FOLDER/engine has the same, and courses of what stands around a transport.
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
    """The opcode of a RoCEv2 frame; None for other frames."""
    bth = 42 if frame[12] == 0x08 else 62
    if len(frame) < bth + 16 or frame[bth - 6:bth - 4] != b"\x12\xb7":
        return None
    return frame[bth]


def tag(frame, tci):
    """The frame with a tag (IEEE 802.1Q)."""
    return frame[:12] + struct.pack(">HH", 0x8100, tci) + frame[12:]


def raw(frame, qp):
    return bytes([RAW, RAW_FIX_ALL, qp, 0]) + struct.pack("<H", len(frame)) + frame


def post(op):
    """A signalled request of 1,000 bytes on QP 0."""
    return bytes([POST, op, 2, 0, 0]) + struct.pack("<HHH", 1000, 0, 64) + b"\0"


def write(folder, name, data):
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)


# ---- courses of events, in words (record.h, target_transport.c)

FRAME, TURN, RECV, STATE, WORLD, AGAIN = 0, 7, 11, 13, 14, 15
OP = {"send_first": 0, "send_middle": 1, "send_last": 2, "send_only": 4, "send_inv": 0x17,
      "write_first": 6, "write_middle": 7, "write_last": 8, "write_last_imm": 9, "write_only": 0x0a, "write_only_imm": 0x0b,
      "read": 0x0c, "response": 0x0d, "ack": 0x11, "fetch_add": 0x14, "sack": 0x7f, "ud": 0}
WRITE, SEND, READ, ADD, BIND = 0, 2, 4, 6, 8
NAK_SEQ, NAK_ACCESS, RNR = 0x60, 0x62, 0x20
TURN_BIT, OTHER_PSN, PART = 32, 64, 128
RTS, ERR, RTR = 1, 5, 7
DEREG, REREG, NO_MAC, LOST_MAC, MAC, SELECTIVE = 0xa0, 0xff, 0x60, 0x80, 0, 0x91


def head(flags=0x80, mtu=0, window=7, kept=0, timeout=10, retries=7, rnr=7, atomics=4, more=1, begun=0,
         foreign=0, uc=0):
    """How the node is made; flags: 0x80 selective, 2 SRQ, 4 late memory; more: 1 probes, 0x10 loop, ...; uc: QP 1 is of UC"""
    clock = timeout - 2 if timeout else 1
    return bytes([flags, mtu | window << 2 | uc << 5 | foreign << 6 | kept << 7, clock | retries << 4 | uc << 7,
                  rnr | 3 << 3 | atomics << 5, 7, 0, more, begun])


def frame(op, psn=0, bits=1 | TURN_BIT, qp=0, key=0, off=0, length=0, how=0, syn=0, msn=0, imm=0):
    """A frame; psn: beside the one that is due."""
    return (bytes([FRAME, OP[op], bits, psn & 255, qp, key]) +
            struct.pack("<HHH", off, length, how) +
            bytes([syn or 0x1f if op == "ack" else syn, msn, imm, 0, 0, 0, 0]))


def sack(bits, psn=0, how=0, other=0):
    """A selective acknowledgement of packets behind PSN `psn` from the oldest in flight; bits: a pattern of 32."""
    return frame("sack", psn, TURN_BIT | other, off=bits >> 16, length=bits & 0xffff, how=how)


def ask(op, length, qp=0, off=0, remote=0x1000, flags=2):
    """The program posts a request."""
    return bytes([POST, op, flags, qp | 8, 0]) + struct.pack("<HHH", length, off, remote) + b"\0"


def turns(n, nanoseconds=10):
    return bytes([TURN, nanoseconds]) * n


def receive(qp=0, broken=False):
    return bytes([RECV, qp | (0x70 if broken else 0)]) + struct.pack("<HH", 4096, 0)


def state(to, qp=0):
    return bytes([STATE, qp, to])


def world(what):
    return bytes([WORLD, what])


def selective():
    """Requests of ours that are lost, or late."""
    big = ask(SEND, 16384) + turns(8)
    yield "gap", head() + big + sack(0xfffffff0) + turns(3) + sack(0xffffffff, 4) + frame("ack", -9) + turns(2)
    yield "late", head() + big + sack(0x0e) + sack(0x1f) + sack(0x3e, 8) + sack(0xff, 8) + frame("ack")
    yield "gaps", head() + big + sack(0x55555555) + turns(4, 20) + sack(0xaaaaaaaa) + sack(0x55555555, 2)
    yield "pairs", head() + big + sack(0x33333333) + sack(0xcccccccc) + sack(0x77777777, 1) + turns(9, 22)
    yield "half", head() + big + sack(0x80000000) + sack(0x80002000) + sack(0x80402000) + turns(5)
    yield "ranges", head() + big + sack(0, 0, 0x4b4) + sack(0xf0, 3, 0x27a) + sack(7, 0, 0x300) + turns(4)
    yield "wrong", head() + big + sack(0xffffffff, 0, 0xf123) + sack(1, 0, 0xfff1) + sack(1, -9, 0xf705)
    yield "again", head() + big + sack(0xfffffff0) + (turns(1, 21) + sack(0xfffffff0)) * 9
    yield "patient", head() + ask(SEND, 16384) * 7 + turns(4) + (sack(0, 0, 0x1c2) + frame("ack", 5, TURN_BIT | OTHER_PSN)) * 70
    yield "poor", head(0xe0) + big + sack(0xfffffff0) + turns(6, 14) + sack(0x88888888, 1) + turns(9, 14)
    yield "scarce", head(more=0x81) + big + sack(0xfe) + ask(SEND, 9999, 1) + turns(4) + \
        frame("sack", 0, TURN_BIT, 1, off=0, length=0xfe) + turns(9, 20)
    yield "plain", head(more=0xc1) + big + sack(0xfe) + turns(4)
    yield "gone", head() + big + sack(0xfffffff0, 0, 0) + world(DEREG) + turns(1) + sack(0xfffff000) + turns(5)
    yield "gone-late", head(0x84) + big + world(DEREG) + sack(0xfffffff0) + turns(9) + world(REREG) + turns(3)
    yield "local", head() + ask(SEND, 2000) + ask(BIND, 4096) + ask(SEND, 2000) + turns(4) + \
        frame("ack", -9, syn=NAK_SEQ) + turns(4) + sack(0xf0) + turns(9, 24)
    yield "drained", head(more=0x21) + big + state(0) + sack(0xfffffff0) + turns(3) + frame("ack") + turns(2)
    yield "asks", head() + ask(SEND, 3000, flags=0) + ask(READ, 8000, flags=6) + turns(30, 20)
    yield "waits", head() + big + sack(0xfffffff0) + frame("ack", -40, syn=RNR | 1) + turns(20, 16) + frame("ack")


def fetching():
    """Responses to us: ahead of their turn, parts, refusals that overtake them."""
    read = ask(READ, 8192) + turns(2)
    ahead = b"".join(frame("response", i) for i in (3, 4, 5, 9, 8, 30, 2, 1))
    rest = b"".join(frame("response") for _ in range(32))
    yield "ahead", head() + read + ahead + turns(3, 16) + frame("response", 0, qp=PART) + rest
    yield "whole", head() + ask(READ, 20000) * 2 + turns(2) + \
        frame("response", 1) + frame("response", bits=TURN_BIT | OTHER_PSN) * 145 + frame("response") + rest
    yield "many", head() + (ask(READ, 600) + ask(ADD, 8)) * 2 + turns(3) + \
        b"".join(frame("response", i) for i in (2, 3, 4, 6, 7, 5, 1, 0)) + turns(5, 18) + rest
    for name, syn in (("refused", NAK_ACCESS), ("unready", RNR | 1), ("unordered", NAK_SEQ)):
        for rnr in (0, 3):
            yield f"{name}-{rnr}", head(rnr=rnr) + ask(READ, 1000) + ask(SEND, 700) + turns(3) + \
                frame("ack", -2, syn=syn) + turns(2) + rest + turns(3) + frame("ack", -2, syn=syn)
    yield "done", head() + ask(READ, 1000) + ask(SEND, 700) + turns(3) + frame("ack", -2, syn=NAK_ACCESS) + \
        frame("ack") + rest
    yield "gone-response", head() + read + frame("response", 1) + world(DEREG) + frame("response") + turns(4)
    yield "fallback", head(kept=1) + read + ahead + turns(9, 20) + rest
    yield "changes", head(0) + read + ahead + world(SELECTIVE) + ahead + turns(4, 20) + rest
    yield "probe", head() + read + ask(SEND, 100) + turns(12, 18) + rest + frame("ack")


def asked():
    """READs and others of the peer's, again, in parts, ahead of their turn."""
    read = frame("read", length=0x2800)  # 40 packets; a turn sends 16
    part = [frame("read", -i, 1, length=(n - 1) << 1) for i, n in ((30, 1), (20, 3), (12, 2), (33, 8), (2, 1))]
    parts = b"".join(part)
    yield "parts", head() + read + parts + turns(9)
    yield "parts-tail", head() + read + frame("read", -7, length=1) + parts + turns(9)
    yield "parts-late", head(0x84) + read + parts + turns(9) + parts + turns(4)
    yield "parts-few", head(kept=1) + read + parts + turns(9)
    yield "parts-poor", head(0xe0) + read + parts + turns(20)
    yield "parts-dead", head() + read + parts + turns(1) + part[3] + world(DEREG) + turns(6)
    yield "parts-gone", head(atomics=1) + read + turns(4) + frame("read", -38, length=1) + part[3] * 4 + turns(1) + \
        frame("read", length=99) + turns(9)
    yield "no-records", head(atomics=0) + read + turns(2)
    yield "parts-full", head() + read + part[3] * 110 + turns(9)
    yield "parts-plain", head(0) + read + parts + turns(9) + parts + turns(5)
    yield "tail", head() + read + turns(5) + frame("read", -5, length=1) + frame("read", -9, length=1) + parts + turns(6)
    yield "kept", head() + b"".join(frame("send_only", i, 1, how=9) for i in (1, 2, 4, 7, 8)) + turns(3) + \
        receive() * 9 + b"".join(frame("send_only", 0, how=9) for i in range(4)) + frame("read", 9, length=5000) + turns(3)
    yield "kept-many", head() + receive() * 30 + \
        b"".join(frame("fetch_add" if i % 4 else "send_only", i, 1, length=9) for i in range(1, 60, 2)) + \
        b"".join(frame("fetch_add", i, 1) for i in range(60, 63)) + turns(2) + frame("send_only") * 3 + turns(4)
    kept = frame("write_only", 1, length=99) + frame("write_only", bits=TURN_BIT | OTHER_PSN, length=99) * 140
    for flags in (0x80, 0):
        yield f"kept-all-{flags}", head(flags) + kept + turns(1) + \
            frame("write_only", length=99) + turns(3)
    yield "kept-far", head(mtu=1) + frame("read", 2, length=0x3000) + frame("read", 63, length=0x3000) + \
        b"".join(frame("send_only", -i, 1) for i in range(66, 128, 9)) + turns(3)
    first = frame("write_first", length=0x600)
    yield "write", head() + first + frame("write_middle") + world(DEREG) + frame("write_last") + turns(2)
    yield "write-imm", head() + receive() + first + frame("write_middle") * 4 + world(DEREG) + \
        frame("write_last_imm") + turns(2)
    for qp in range(3):
        for srq in (0, 2):
            yield f"broken-{qp}-{srq}", head(0x80 | srq, more=0x21) + receive(qp, True) + \
                frame("ud" if qp == 2 else "send_only", qp=qp, how=9) + turns(3)
            yield f"broken-imm-{qp}-{srq}", head(0x80 | srq) + receive(qp, True) + \
                frame("write_only_imm", qp=qp, length=9) + turns(3)
    yield "rtr", head(more=0x21) + state(RTR) + receive() * 3 + frame("send_only", how=9) + frame("ack") + \
        frame("read", length=99) + state(RTS) + ask(SEND, 99) + turns(3)
    yield "rtr-read", head() + state(RTR) + frame("read", length=99) + turns(2) + state(RTS)


def others():
    """QPs without a peer: to themselves, to addresses that are not known."""
    work = b"".join(receive(1) + ask(op, 5000 if op < ADD else 8, 1) for op in (SEND, WRITE, READ, ADD, SEND, READ))
    for flags in (0x80, 0x84, 0xe0, 0x9c, 0x82):
        yield f"loop-{flags:02x}", head(flags, more=0x11) + work + turns(30, 12) + work + turns(30, 14)
    yield "loop-events", head(more=0x31) + work + turns(30, 12)
    yield "loop-far", head(more=0x71) + work + turns(30, 12) + state(RTR, 1) + turns(3)
    for mac in (NO_MAC, LOST_MAC):
        yield f"ud-{mac}", head(more=0x41) + world(mac) + (ask(SEND, 99, 2) + turns(2, 20)) * 3 + world(MAC) + turns(4, 20)
        yield f"ud-quiet-{mac}", head(more=0x41) + world(mac) + ask(SEND, 99, 2, flags=0) + ask(SEND, 99, 2) + \
            turns(4, 20) + state(0, 2) + ask(SEND, 9, 2) + turns(3, 20) + state(RTS, 2) + turns(3)
        yield f"rc-{mac}", head() + state(6) + world(mac) + ask(SEND, 99) + turns(4, 20) + world(MAC) + turns(9, 20)
    yield "limit", head(0x82, more=0x61) + receive(1) * 6 + frame("send_only", qp=1, how=9) * 5 + turns(3)


# ---- what only the transport's target has: memory of another process (node_pace())

def pace(ops, fails=False):
    """So many operations a turn from now on (0..14), or none; one may fail at once."""
    return world(0xe0 | fails << 4 | ops)


def gates():
    """Gates that close before foreign memory: for requests, responses, datagrams, acknowledgements."""
    flood = b"".join(frame("send_only", i, 1, how=99) for i in range(8))
    writes = frame("write_only", bits=1, length=99) * 8
    for flags in (0x80, 0, 0x84, 0x98, 0x82):
        def h(**more):
            return head(flags, foreign=1, **more)
        name = f"{flags:02x}"
        yield f"in-{name}", h() + receive() * 20 + pace(0) + flood + turns(3) + flood + turns(3) + pace(2) + turns(9) + flood + turns(4)
        yield f"slow-{name}", h() + receive() * 30 + pace(1) + (flood + turns(2)) * 4 + pace(14) + turns(4)
        yield f"write-{name}", h(mtu=1) + pace(0) + writes + turns(2) + frame("write_only", 2, length=9) + turns(2) + \
            pace(3) + turns(6) + writes + turns(3)
        yield f"ud-{name}", h() + receive(2) * 20 + pace(0) + frame("ud", qp=2, how=99) * 8 + turns(3) + pace(9) + \
            turns(3) + frame("ud", qp=2, how=99) * 3 + turns(2)
        yield f"response-{name}", h() + ask(READ, 16384) + ask(READ, 600) + turns(2) + pace(0) + \
            frame("response") * 9 + frame("response", 2) + frame("response", 4) + turns(3) + pace(4) + turns(9, 16) + \
            frame("response") * 90 + turns(3)
        yield f"responses-{name}", h(timeout=0) + (ask(READ, 600) + ask(ADD, 8)) * 2 + turns(3) + pace(0) + writes + \
            frame("response") * 2 + turns(3, 20) + pace(8) + turns(9, 20) + frame("response") * 40
        yield f"sack-{name}", h() + ask(SEND, 16384) + turns(8) + pace(0) + writes + turns(1) + sack(0xfffffff0) + \
            frame("ack", -9) + turns(3) + pace(8) + turns(5) + sack(0xfffff000) + turns(5)
        yield f"out-{name}", h() + pace(0) + writes + turns(1) + ask(SEND, 9999) + ask(SEND, 99, 2) + turns(3) + \
            pace(9) + turns(9) + frame("ack", -3)
        yield f"read-{name}", h() + frame("read", length=0x2800) + pace(0) + writes + turns(2) + \
            frame("read", -7, length=1) + pace(5) + turns(20)
        yield f"fails-{name}", h() + receive() * 9 + pace(0) + flood + turns(1) + pace(0, True) + turns(2) + pace(7) + turns(4)
        yield f"gone-{name}", h() + receive() * 9 + pace(1) + flood + turns(2) + world(DEREG) + flood + turns(4) + world(REREG) + flood
        yield f"error-{name}", h() + receive() * 9 + pace(0) + flood + ask(SEND, 999) + turns(2) + state(ERR) + turns(3) + pace(3) + turns(3)
        yield f"again-{name}", h() + receive() * 20 + pace(0) + flood + bytes([AGAIN, 2, AGAIN, 5]) + turns(2) + pace(9) + \
            bytes([AGAIN, 3, AGAIN, 4]) + turns(3) + flood + turns(2)
        yield f"loop-{name}", h(more=0x11) + pace(1) + \
            b"".join(receive(1) + ask(op, 5000 if op < ADD else 8, 1) for op in (SEND, WRITE, READ, ADD, SEND, READ)) + \
            turns(60, 12) + pace(9) + turns(30, 14)


def unreliable():
    """QP 1 of UC: messages, gaps, duplicates, memory that is shut, a peer that is itself."""
    whole = frame("send_first", 0, 1, 1) + frame("send_middle", 1, 1, 1) + frame("send_last", 2, 1, 1, how=9)
    writes = frame("write_first", 0, 1, 1, length=0x210) + frame("write_middle", 1, 1, 1) + frame("write_last_imm", 2, 1, 1)
    flood = b"".join(frame("write_only", i, 1, 1, length=99) for i in range(8))
    work = b"".join(receive(1) + ask(op, 5000, 1) for op in (SEND, WRITE, SEND, WRITE))
    for flags in (0, 4, 0x98, 0xe0, 2):
        def h(**more):
            return head(flags, uc=1, **more)
        name = f"{flags:02x}"
        yield f"in-{name}", h() + receive(1) * 9 + whole + turns(2) + writes + turns(2) + bytes([AGAIN, 2, AGAIN, 5]) + turns(2) + whole
        yield f"gap-{name}", h() + receive(1) * 9 + frame("send_middle", 1, TURN_BIT, 1) + frame("send_first", 5, TURN_BIT, 1) + \
            frame("write_last", 0, TURN_BIT, 1) + frame("send_only", -1, TURN_BIT, 1) + frame("send_only", 90, TURN_BIT, 1) + turns(2)
        yield f"out-{name}", h() + ask(SEND, 9999, 1) + ask(WRITE, 99, 1) + turns(9) + ask(READ, 99, 1) + turns(2) + state(RTS, 1) + ask(SEND, 9, 1) + turns(2)
        yield f"shut-{name}", h(foreign=1) + receive(1) * 9 + pace(0) + (flood + turns(1)) * 5 + whole + turns(3) + pace(2) + turns(20) + whole + turns(3)
        yield f"error-{name}", h(foreign=1) + pace(0) + (flood + turns(1)) * 5 + state(ERR, 1) + turns(3) + pace(9) + turns(3)
        yield f"gone-{name}", h(foreign=1) + pace(0) + (flood + turns(1)) * 5 + world(DEREG) + pace(9) + turns(9)
        yield f"loop-{name}", h(more=0x11) + work + turns(30, 12) + work + turns(30, 14)
        yield f"loop-shut-{name}", h(more=0x11, foreign=1, mtu=1) + pace(1) + work * 3 + turns(40, 12) + pace(9) + turns(30, 14)
        yield f"few-{name}", h(kept=1, foreign=1) + pace(0) + (flood + turns(1)) * 5 + pace(9) + turns(9) + flood + turns(2)


# ---- what only a whole engine has (record.h from 0x80 on, target_engine.c)

L3, LINK, CM, CALL, WIRE, TURNS, GUEST = 0x80, 0x83, 0x85, 0x89, 0x8c, 0x8e, 0x8f
REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP = range(9)
LISTEN, CONNECT, RESOLVE, ACCEPT, REJECT, ESTABLISH, DISCONNECT, DESTROY, EVENT = range(9)
DEAF, HELD, SECOND, BOTH, DOWN = 1, 2, 4, 8, 16
TWO_QUEUES = 0x20


def two(data):
    """The same with two queues of the port, and frames that come on either."""
    return data[:1] + bytes([data[1] | TWO_QUEUES]) + data[2:8] + wire(BOTH) + data[8:]


def l3(kind, how, a, b, c=0):
    return bytes([L3, kind, how, a, b, c, 0, 0, 0])


def link(how, source=1, tid=9, features=0, at=0):
    return bytes([LINK, how, source]) + struct.pack("<HHHB", tid, features, at, 0)[:6]


def cm(kind, how=0, of=0, spoil=0, tid=5, service=0, timeout=14):
    bits = bytes([CM, how, kind, of, spoil])
    return bits + (b"" if how & 1 else bytes([tid])) + bytes([service, timeout]) + bytes(6 if how & 1 else 5)


def call(what, how=0, of=0, n=14):
    return bytes([CALL, what, how, of, n])


def wire(how):
    return bytes([WIRE, how])


def some(turns_n, ns=16, engines=0):
    """Turns of 2^ns ns of one engine (1, 2), or both."""
    return bytes([TURNS, engines | (turns_n - 1) << 2, ns])


def around():
    yield "arp", head() + b"".join(l3(0x20, how, a, b) for how in (0, 1, 2, 3) for a, b in ((1, 0), (0, 0), (7, 0))) + some(4)
    yield "echo", head() + l3(1, 9, 1, 0) + l3(0x21, 200, 3, 2) + some(2) + wire(HELD) + l3(1, 9, 1, 0) * 90 + some(9)
    yield "full", head() + ask(SEND, 99) + ask(SEND, 99, 1) + some(4) + wire(HELD) + ask(SEND, 16384) * 4 + \
        ask(SEND, 16384, 1) * 4 + some(15, 10) + (l3(1, 9, 1, 0) + link(0) + some(1, 10)) * 4 + wire(0) + some(9)
    yield "no-engine", head() + b"".join(frame("send_only", 0, 1, qp=q, how=9) for q in (0x10, 0x11, 0x12)) + some(2)
    yield "nd", head(0x81) + l3(2, 1, 1, 0, 0) + l3(3, 0x61, 0, 1) + l3(2, 0, 5, 4, 4) + l3(0x23, 0x21, 4, 5) + some(4)
    yield "link", head() + link(0) + link(8, features=1) + some(4, 26) + link(3) + link(3, 1, 0, 0) + some(4, 26) + link(7)
    yield "passive", head() + call(LISTEN) + cm(REQ) + some(2) + call(EVENT) + call(ACCEPT) + some(2, 22) + \
        cm(RTU, 1) + some(1) + call(EVENT) + cm(DREQ, 1) + some(2) + call(EVENT) + call(DISCONNECT, of=1) + some(3, 26)
    yield "active", head() + call(CONNECT) + some(3, 22) + cm(REP, 1) + some(1) + call(EVENT) + call(ESTABLISH) + \
        some(2) + call(DISCONNECT) + some(2) + cm(DREP, 1) + some(9, 30) + call(EVENT)
    yield "refused", head() + call(LISTEN) + cm(REQ, service=1) + cm(REQ) + some(1) + call(EVENT) + call(REJECT, of=1) + \
        some(3) + call(CONNECT) + some(3) + cm(REJ, 1) + some(2) + call(EVENT) + call(DESTROY, of=1)
    yield "unreachable", head() + call(CONNECT, 4) + call(RESOLVE, 4) + some(15, 26) + some(15, 28) + call(EVENT) * 3
    yield "sidr", head() + call(LISTEN) + cm(SIDR_REQ) + some(1) + call(EVENT) + call(ACCEPT, of=1, n=0) + some(2) + \
        call(RESOLVE) + some(2) + cm(SIDR_REP, 1) + some(2) + call(EVENT)
    yield "cm-deaf", head(more=0x41) + wire(DEAF) + call(LISTEN) + cm(REQ) + some(9, 28) + wire(0) + some(9, 28)
    yield "stuck", head() + ask(SEND, 16384) * 3 + wire(HELD) + ask(SEND, 16384) * 4 + some(15, 25) + some(15, 20) + wire(0) + some(9)
    yield "stuck-other", head() + ask(SEND, 16384, 1) * 3 + wire(HELD) + ask(SEND, 16384, 1) * 4 + some(15, 25, 2) + \
        some(15, 20) + wire(0) + some(9)
    yield "down", head(more=0x21) + ask(SEND, 9999) + wire(DOWN) + some(4, 24) + ask(SEND, 99) + wire(0) + some(9, 24)
    yield "guests", head() + bytes([GUEST, 0, GUEST, 1, GUEST, 0x82, GUEST, 3, GUEST, 0]) + wire(DOWN) + some(3, 24) + bytes([GUEST, 1])
    for i in range(3):
        flood = frame("send_only", 0, 1, qp=i, how=9) * 60
        yield f"one-engine-{i}", head() + receive(i) * 9 + flood + some(9, 12, 1) + flood + some(9, 12, 2) + some(4)
        yield f"two-queues-{i}", two(head(more=0x61) + receive(i) * 9 + flood + ask(SEND, 9999, i) + some(9))
    for flags in (0x82, 0x86, 0xe2):
        yield f"far-{flags:02x}", head(flags, more=0x71) + (receive(1) + ask(SEND, 999, 1) + ask(READ, 999, 1)) * 4 + some(15, 12) * 2


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: seeds.py CAPTURE.pcap FOLDER")
    capture, folder = sys.argv[1:]
    for target in ("parse", "transport", "engine"):
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
        for target in ("transport", "engine"):
            write(f"{folder}/{target}", f"golden-{i:04d}", head + post(4) + post(2) + body)
        # Every other frame has a tag: a priority alone, or a VLAN's, in turn.
        tagged = [tag(f, (0xa000, 0x2005)[k // 2 % 2]) if k % 2 else f for k, (_, f) in enumerate(part)]
        body = b"".join(raw(f, 2 if op >= 0x60 else 0) for f, (op, _) in zip(tagged, part))
        for target in ("transport", "engine"):
            write(f"{folder}/{target}", f"tagged-{i:04d}", head + post(4) + post(2) + body)
    courses = [c for group in (selective, fetching, asked, others) for c in group()]
    for target, more in (("transport", [(kind + name, data) for kind, group in (("gate-", gates), ("uc-", unreliable)) for name, data in group()]),
                         ("engine", list(around()))):
        for name, data in courses + more:
            write(f"{folder}/{target}", f"course-{name}", data)
    print(f"{len(seen) * 2} inputs for parse, {2 * len(kinds) + len(courses)} for transport")


main()
