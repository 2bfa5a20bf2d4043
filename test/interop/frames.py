# SPDX-License-Identifier: BSD-3-Clause
"""Frames of captures (pcap and pcapng), and offsets of their headers."""
import struct
import zlib

PORT = 4791
IN, OUT = 1, 2  # direction in which a frame crossed the port
MOST = 262144   # bytes of a frame, the limit of Wireshark

# doc/reference/wire.md "Opcodes": bytes of the extension headers, and whether a payload follows them.
# Opcodes from 0xc0 on are the manufacturer's own: their contents are not checked.
EXT = {0x00: 0, 0x01: 0, 0x02: 0, 0x03: 4, 0x04: 0, 0x05: 4, 0x06: 16, 0x07: 0, 0x08: 0, 0x09: 4,
       0x0a: 16, 0x0b: 20, 0x0c: 16, 0x0d: 4, 0x0e: 0, 0x0f: 4, 0x10: 4, 0x11: 4, 0x12: 12,
       0x13: 28, 0x14: 28, 0x16: 4, 0x17: 4, 0x64: 8, 0x65: 12, 0x81: 16, 0xc0: 76}
EXT.update({0x20 | op: EXT[op] for op in range(0x0c)})  # requests of UC
BARE = (0x0c, 0x11, 0x12, 0x13, 0x14, 0x81, 0xc0)
AETH = (0x0d, 0x0f, 0x10, 0x11, 0x12)


class Broken(Exception):
    """Raised for a file that is no capture, or a truncated one."""


# ---- files

class Source:
    """Reads a file piece by piece."""

    def __init__(self, file):
        self.file = file

    def take(self, size, what):
        data = self.file.read(size)
        if len(data) < size:
            raise Broken(f"{what} is cut short")
        return data

    def head(self, size, what):
        """Read like take(), but return no bytes at the file's end."""
        data = self.file.read(size)
        if data and len(data) < size:
            raise Broken(f"{what} is cut short")
        return data


def whole(kept, length, number):
    if kept != length or length > MOST:
        raise Broken(f"frame {number} has {length} bytes, and {kept} of them are there")
    return length


def read_pcap(source, order, number=0):
    """Read a pcap file from behind its magic number."""
    link = struct.unpack(order + "HHIIII", source.take(20, "its head"))[5]
    if link & 0xffff != 1:
        raise Broken(f"link type {link}, not Ethernet")
    form = struct.Struct(order + "IIII")
    while True:
        head = source.head(16, f"the head of frame {number + 1}")
        if not head:
            return
        number += 1
        _, _, kept, length = form.unpack(head)
        yield number, source.take(whole(kept, length, number), f"frame {number}"), None


def direction(options, order):
    """Direction from the flags of an enhanced packet block; None when the block has no flags."""
    at = 0
    while at + 4 <= len(options):
        code, size = struct.unpack_from(order + "HH", options, at)
        if code == 0:
            return None
        if code == 2 and size == 4 and at + 8 <= len(options):
            return struct.unpack_from(order + "I", options, at + 4)[0] & 3 or None
        at += 4 + (size + 3 & ~3)
    return None


def block_body(source, order, size, number, gone=8):
    """The rest of a block of which `gone` bytes were read, without the length at the block's end."""
    if size < gone + 4 or size % 4 or size > MOST + 4096:
        raise Broken(f"a block of {size} bytes behind frame {number}")
    body = source.take(size - gone, f"the block behind frame {number}")
    if struct.unpack(order + "I", body[-4:])[0] != size:
        raise Broken(f"a block with two lengths behind frame {number}")
    return body[:-4]


def read_pcapng(source, number=0):
    """Read a pcapng file from behind the type of its first block."""
    order, kind, head = "<", b"\x0a\x0d\x0d\x0a", source.take(4, "its head")
    while True:
        if kind == b"\x0a\x0d\x0d\x0a":
            magic = source.take(4, "the head of a section")
            order = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}.get(magic)
            if not order:
                raise Broken("a section with an unknown byte order")
            block_body(source, order, struct.unpack(order + "I", head)[0], number, 12)
        else:
            size, = struct.unpack(order + "I", head)
            body = block_body(source, order, size, number)
            what, = struct.unpack(order + "I", kind)
            if what == 1 and struct.unpack_from(order + "H", body)[0] != 1:
                raise Broken("an interface that is not Ethernet")
            if what == 3:
                raise Broken("a simple packet block, which does not say how many bytes were captured")
            if what == 6:
                number += 1
                kept, length = struct.unpack_from(order + "II", body, 12)
                end = 20 + whole(kept, length, number)
                yield number, body[20:end], direction(body[end + 3 & ~3:], order)
        kind = source.head(4, f"the block behind frame {number}")
        if not kind:
            return
        head = source.take(4, f"the block behind frame {number}")


PCAP = {b"\xd4\xc3\xb2\xa1": "<", b"\x4d\x3c\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">",
        b"\xa1\xb2\x3c\x4d": ">"}


def read(path):
    """Yield for each frame its number from 1 on, its bytes, and IN, OUT or None. Raises Broken or OSError."""
    with open(path, "rb") as f:
        source = Source(f)
        magic = source.take(4, "its head")
        if magic in PCAP:
            yield from read_pcap(source, PCAP[magic])
        elif magic == b"\x0a\x0d\x0d\x0a":
            yield from read_pcapng(source)
        else:
            raise Broken("neither pcap nor pcapng")


class Writer:
    """A pcap file."""

    def __init__(self, path):
        self.path = path
        self.file = open(path, "wb")
        self.file.write(struct.pack("<IHHIIII", 0xa1b2c3d4, 2, 4, 0, 0, MOST, 1))

    def add(self, data):
        self.file.write(struct.pack("<IIII", 0, 0, len(data), len(data)))
        self.file.write(data)

    def close(self):
        self.file.close()
        self.file = None


# ---- frames

def be16(b, at):
    return b[at] << 8 | b[at + 1]


class Frame:
    """Offsets of the headers of a frame. fault: the reason why lengths do not agree, or None."""

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
            self.fault = f"the IP header says {end} bytes, and the frame has {len(data)}"
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
        """Check the lengths here, because tshark takes the ICRC for a missing extension header."""
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

    def icrc(self):
        return self.data[self.end - 4:self.end]

    def kind(self):
        """The frame's kind, which ignores addresses, numbers and content: the length, all flags,
        versions and codes of IP and BTH, and the syndrome of an AETH."""
        d, b = self.data, self.bth
        ip = d[14:16] + d[20:22] if self.v6 else d[14:16] + d[20:23]
        op = d[b]
        syndrome = d[b + 12:b + 13] if op in AETH and self.end > b + 16 else b""
        return b"%d " % self.end + ip + d[b:b + 5] + d[b + 8:b + 9] + b"." + syndrome


def icrc_zlib(frame):
    """Compute the ICRC as doc/reference/wire.md "ICRC" says."""
    p = bytearray(frame.data[14:frame.end - 4])
    if frame.v6:
        p[0] |= 0x0f
    for i in (1, 2, 3, 7, 46, 47, 52) if frame.v6 else (1, 8, 10, 11, 26, 27, 32):
        p[i] = 0xff
    return zlib.crc32(b"\xff" * 8 + p).to_bytes(4, "little")
