#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A program on rsockets, by their C calls: one side of a scene of rsockets.py.

usage: rsockets_play.py SCENE server|client ADDRESS"""

import ctypes
import errno
import hashlib
import os
import select
import socket
import struct
import sys
import threading

C = ctypes.CDLL("librdmacm.so.1", use_errno=True)
for name in ("rrecv", "rsend", "rrecvfrom", "rsendto", "rreadv", "rwritev"):
    getattr(C, name).restype = ctypes.c_ssize_t
C.riomap.restype = ctypes.c_long
C.riowrite.restype = ctypes.c_ssize_t
for name in ("rrecv", "rsend"):
    getattr(C, name).argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
C.rrecvfrom.argtypes = C.rsendto.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p,
                                             ctypes.c_void_p)
C.rsendto.argtypes = C.rsendto.argtypes[:5] + (ctypes.c_uint,)
C.riomap.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_long)
C.riowrite.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long, ctypes.c_int)
C.riounmap.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
PORT = 6000
SOL_RDMA = 0x10000
BYTES = bytes((i * 7 + (i >> 8) + (i >> 16)) & 255 for i in range(3_000_001))


class PollFd(ctypes.Structure):
    _fields_ = [("fd", ctypes.c_int), ("events", ctypes.c_short), ("revents", ctypes.c_short)]


class Iov(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]


def good(value):
    """The value of a call that must not have failed."""
    if value == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return value


def fails(code, call, *args):
    """The call fails with this errno value."""
    value = call(*args)
    got = ctypes.get_errno()
    assert value == -1 and got == code, (call.__name__, value, errno.errorcode.get(got))


def pack(host, port=PORT):
    if ":" in host:
        return struct.pack("=HHI16sI", socket.AF_INET6, socket.htons(port), 0, socket.inet_pton(socket.AF_INET6, host), 0)
    return struct.pack("=HH4s8x", socket.AF_INET, socket.htons(port), socket.inet_aton(host))


def unpack(a):
    family, port = struct.unpack_from("=HH", a)
    where = a[8:24] if family == socket.AF_INET6 else a[4:8]
    return socket.inet_ntop(family, where), socket.ntohs(port)


class Rs:
    """One rsocket."""

    def __init__(self, host="", kind=socket.SOCK_STREAM, fd=None):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.fd = fd if fd is not None else good(C.rsocket(family, kind, 0))

    def bind(self, host, port=PORT):
        a = pack(host, port)
        return good(C.rbind(self.fd, a, len(a)))

    def connect(self, host, port=PORT):
        a = pack(host, port)
        return good(C.rconnect(self.fd, a, len(a)))

    def listen(self):
        good(C.rlisten(self.fd, 5))
        print("listening", flush=True)

    def accept(self):
        room = ctypes.create_string_buffer(28)
        size = ctypes.c_uint(28)
        return Rs(fd=good(C.raccept(self.fd, room, ctypes.byref(size)))), unpack(room.raw)

    def name(self, call):
        room = ctypes.create_string_buffer(28)
        size = ctypes.c_uint(28)
        good(call(self.fd, room, ctypes.byref(size)))
        return unpack(room.raw)

    def send(self, data, flags=0):
        return good(C.rsend(self.fd, data, len(data), flags))

    def sendall(self, data):
        while data:
            data = data[self.send(data):]

    def recv(self, size, flags=0):
        room = ctypes.create_string_buffer(size)
        n = good(C.rrecv(self.fd, room, size, flags))
        return room.raw[:n]

    def to_end(self):
        parts = []
        while part := self.recv(65536):
            parts.append(part)
        return b"".join(parts)

    def sendto(self, data, host, port):
        a = pack(host, port)
        return good(C.rsendto(self.fd, data, len(data), 0, a, len(a)))

    def recvfrom(self, size, flags=0):
        room, a = ctypes.create_string_buffer(size), ctypes.create_string_buffer(28)
        size = ctypes.c_uint(28)
        n = good(C.rrecvfrom(self.fd, room, len(room), flags, a, ctypes.byref(size)))
        return room.raw[:n], unpack(a.raw)

    def set(self, level, option, value):
        v = ctypes.c_int(value)
        return good(C.rsetsockopt(self.fd, level, option, ctypes.byref(v), 4))

    def get(self, level, option):
        v, size = ctypes.c_int(), ctypes.c_uint(4)
        good(C.rgetsockopt(self.fd, level, option, ctypes.byref(v), ctypes.byref(size)))
        return v.value

    def nonblocking(self):
        good(C.rfcntl(self.fd, 4, os.O_NONBLOCK))

    def shut(self, how):
        good(C.rshutdown(self.fd, how))

    def close(self):
        good(C.rclose(self.fd))


def rpoll(ms, *entries):
    """entries: (descriptor, events). returns: the events of each"""
    fds = (PollFd * len(entries))(*(PollFd(fd, events, 0) for fd, events in entries))
    good(C.rpoll(fds, len(entries), ms))
    return [f.revents for f in fds]


def listener(host, **options):
    s = Rs(host)
    for option, value in options.items():
        s.set(SOL_RDMA, {"iomaps": 3, "rq": 1, "sq": 0}[option], value)
    s.bind(host)
    s.listen()
    return s


def served(host, **options):
    lis = listener(host, **options)
    s, _ = lis.accept()
    return s


def joined(host, **options):
    s = Rs(host)
    for option, value in options.items():
        s.set(SOL_RDMA, {"iomaps": 3, "rq": 1, "sq": 0}[option], value)
    s.connect(host)
    return s


# ---- scenes: SCENE_server(address), SCENE_client(address)

def half_close_server(host):
    lis = listener(host)
    s, peer = lis.accept()
    assert s.name(C.rgetpeername) == peer and s.name(C.rgetsockname) == (host, PORT), peer
    got = s.to_end()
    assert got == BYTES, (len(got), hashlib.sha256(got).hexdigest())
    assert s.recv(1) == b""
    s.sendall(got[::-1])  # this direction is open still
    s.close()


def half_close_client(host):
    s = joined(host)
    assert s.name(C.rgetpeername) == (host, PORT)
    s.sendall(BYTES)
    s.shut(socket.SHUT_WR)
    fails(errno.EPIPE, C.rsend, s.fd, b"x", 1, 0)
    got = s.to_end()
    assert got == BYTES[::-1], len(got)
    s.close()


def both_ways(s):
    """One thread sends while another receives, over small queues."""
    sender = threading.Thread(target=lambda: (s.sendall(BYTES), s.shut(socket.SHUT_WR)))
    sender.start()
    got = s.to_end()
    sender.join()
    assert got == BYTES, len(got)
    s.close()


def threads_server(host):
    both_ways(served(host, rq=16, sq=16))


def threads_client(host):
    both_ways(joined(host, rq=16, sq=16))


def calls_server(host):
    s = served(host)
    peeked = s.recv(4, socket.MSG_PEEK)
    assert b"abcd".startswith(peeked) and peeked, peeked
    assert s.recv(10, socket.MSG_WAITALL) == b"abcdefghij"
    fails(errno.EAGAIN, C.rrecv, s.fd, ctypes.create_string_buffer(1), 1, socket.MSG_DONTWAIT)
    s.send(b"go")
    one, two = ctypes.create_string_buffer(3), ctypes.create_string_buffer(100)
    s.recv(6, socket.MSG_PEEK | socket.MSG_WAITALL)
    rpoll(10000, (s.fd, select.POLLIN))
    parts = (Iov * 2)(Iov(ctypes.addressof(one), 3), Iov(ctypes.addressof(two), 100))
    assert good(C.rreadv(s.fd, parts, 2)) == 6
    assert one.raw + two.raw[:3] == b"klmnop", (one.raw, two.raw)
    s.close()


def calls_client(host):
    s = joined(host)
    for part in (b"abcd", b"ef", b"ghij"):
        s.send(part, socket.MSG_NOSIGNAL)
    assert s.recv(2, socket.MSG_WAITALL) == b"go"
    one, two = ctypes.create_string_buffer(b"kl", 2), ctypes.create_string_buffer(b"mnop", 4)
    parts = (Iov * 2)(Iov(ctypes.addressof(one), 2), Iov(ctypes.addressof(two), 4))
    # One message more than the first part: the server reads both at once or in turn.
    joined_parts = one.raw + two.raw
    assert joined_parts == b"klmnop"
    s.send(joined_parts)
    assert s.recv(1) == b""  # the peer's end
    fails(errno.ECONNRESET, C.rwritev, s.fd, parts, 2)
    fails(errno.ENOTCONN, C.rgetpeername, Rs().fd, ctypes.create_string_buffer(28), ctypes.byref(ctypes.c_uint(28)))
    fails(errno.EBADF, C.rrecv, 0, b"", 0, 0)
    fails(errno.EAFNOSUPPORT, C.rsocket, socket.AF_UNIX, socket.SOCK_STREAM, 0)
    s.close()


def nonblocking_server(host):
    lis = Rs(host)
    lis.nonblocking()
    lis.bind(host)
    fails(errno.EADDRINUSE, C.rbind, Rs(host).fd, pack(host), len(pack(host)))
    lis.listen()
    fails(errno.EAGAIN, C.raccept, lis.fd, None, None)
    back, front = os.pipe()
    assert rpoll(0, (lis.fd, select.POLLIN), (back, select.POLLIN)) == [0, 0]
    os.write(front, b"x")
    assert rpoll(-1, (lis.fd, select.POLLIN), (back, select.POLLIN))[1] == select.POLLIN
    print("ready", flush=True)
    assert rpoll(-1, (lis.fd, select.POLLIN), (-1, select.POLLIN)) == [select.POLLIN, 0]
    s, _ = lis.accept()
    fails(errno.EAGAIN, C.rrecv, s.fd, ctypes.create_string_buffer(1), 1, 0)
    # The pipe wakes a sleeper that waits for the socket, too.
    threading.Timer(0.2, os.write, (front, b"y")).start()
    os.read(back, 10)
    assert rpoll(-1, (s.fd, select.POLLIN), (back, select.POLLIN)) == [0, select.POLLIN]
    s.send(b"now")
    # Nobody reads: the stream fills up.
    sent = 0
    try:
        while True:
            sent += s.send(BYTES[:65536])
    except BlockingIOError:
        pass
    assert rpoll(0, (s.fd, select.POLLOUT)) == [0]
    while rpoll(-1, (s.fd, select.POLLIN))[0] & select.POLLIN == 0:
        pass
    assert s.recv(5) == b"drain"
    assert rpoll(-1, (s.fd, select.POLLOUT))[0] & select.POLLOUT
    s.send(b"!")
    s.close()
    print(sent, flush=True)


def nonblocking_client(host):
    s = Rs(host)
    s.nonblocking()
    a = pack(host)
    fails(errno.EINPROGRESS, C.rconnect, s.fd, a, len(a))
    fails(errno.EALREADY, C.rconnect, s.fd, a, len(a))
    assert rpoll(-1, (s.fd, select.POLLOUT))[0] & select.POLLOUT
    assert s.get(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    fails(errno.EISCONN, C.rconnect, s.fd, a, len(a))
    good(C.rfcntl(s.fd, 4, 0))
    assert s.recv(3, socket.MSG_WAITALL) == b"now"
    threading.Event().wait(0.5)
    s.send(b"drain")
    got = s.to_end()
    assert got[-1:] == b"!" and len(got) > 100000, len(got)
    s.close()


def refused_server(host):
    print("listening", flush=True)  # "listening", so that the client starts: nobody listens


def refused_client(host):
    s = Rs(host)
    a = pack(host, 6999)
    fails(errno.ECONNREFUSED, C.rconnect, s.fd, a, len(a))
    s.close()
    s = Rs(host)
    s.nonblocking()
    fails(errno.EINPROGRESS, C.rconnect, s.fd, a, len(a))
    sets = [(ctypes.c_ulong * 16)() for _ in range(2)]
    for bits in sets:
        bits[s.fd // 64] |= 1 << s.fd % 64
    assert good(C.rselect(s.fd + 1, sets[0], sets[1], None, None)) == 2
    assert sets[1][s.fd // 64] == 1 << s.fd % 64
    assert s.get(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED
    assert s.get(socket.SOL_SOCKET, socket.SO_ERROR) == 0
    s.close()
    fails(errno.EBADF, C.rsend, s.fd, b"x", 1, 0)


def fill(s):
    """Send until the connection is reset."""
    try:
        while True:
            s.send(BYTES)
    except ConnectionResetError:
        pass


def killed_server(host):
    """The peer dies: a thread in rrecv(), one in rpoll() and one in rsend() learn of it."""
    lis = listener(host)
    waits = [lambda s: fails(errno.ECONNRESET, C.rrecv, s.fd, ctypes.create_string_buffer(9), 9, 0),
             lambda s: rpoll(-1, (s.fd, select.POLLIN)),
             fill]
    socks = [lis.accept()[0] for _ in waits]
    threads = [threading.Thread(target=wait, args=(s,)) for wait, s in zip(waits, socks)]
    for t in threads:
        t.start()
    print("waiting", flush=True)
    for t in threads:
        t.join()
    for s in socks:
        fails(errno.ECONNRESET, C.rsend, s.fd, b"x", 1, socket.MSG_DONTWAIT)
        s.close()
    print("all know", flush=True)


def killed_client(host):
    for s in [joined(host) for _ in range(3)]:
        print(s.fd, flush=True)
    print("connected", flush=True)
    threading.Event().wait()


def pollers_server(host):
    """Two threads poll one socket; both see what comes."""
    s = served(host)
    seen = []
    threads = [threading.Thread(target=lambda: seen.append(rpoll(-1, (s.fd, select.POLLIN))[0])) for _ in range(2)]
    for t in threads:
        t.start()
    threading.Event().wait(0.2)
    s.send(b"go")
    for t in threads:
        t.join()
    assert seen == [select.POLLIN] * 2, seen
    assert s.recv(10) == b"hello"
    # A thread that waits gives up when another one closes the socket.
    end = []
    waiter = threading.Thread(target=lambda: end.append(C.rrecv(s.fd, ctypes.create_string_buffer(1), 1, 0)))
    waiter.start()
    threading.Event().wait(0.2)
    s.close()
    waiter.join()
    assert end[0] <= 0, end


def pollers_client(host):
    s = joined(host)
    assert s.recv(2) == b"go"
    s.send(b"hello")
    assert s.recv(1) == b""
    s.close()


def iomap_server(host):
    s = served(host, iomaps=4)
    room = ctypes.create_string_buffer(200000)
    fails(errno.EINVAL, C.riomap, s.fd, room, 0, 2, 0, 0)
    assert good(C.riomap(s.fd, room, 100000, 2, 0, 4096)) == 4096
    second = ctypes.addressof(room) + 100000
    assert good(C.riomap(s.fd, second, 100000, 2, 0, -1)) == second
    s.send(struct.pack("=Q", second))
    assert s.recv(4, socket.MSG_WAITALL) == b"done"
    assert room.raw[:100000] == BYTES[:100000] and room.raw[100000:150000] == BYTES[7:50007]
    assert room.raw[150000:] == bytes(50001)[:len(room.raw) - 150000]
    good(C.riounmap(s.fd, second, 100000))
    fails(errno.EINVAL, C.riounmap, s.fd, second, 100000)
    s.send(b"bye")
    s.close()


def iomap_client(host):
    s = joined(host, iomaps=4)
    second = struct.unpack("=Q", s.recv(8, socket.MSG_WAITALL))[0]
    assert good(C.riowrite(s.fd, BYTES, 100000, 4096, 0)) == 100000
    assert good(C.riowrite(s.fd, BYTES[7:], 50000, second, 0)) == 50000
    fails(errno.ENXIO, C.riowrite, s.fd, BYTES, 10, 50, 0)
    assert good(C.riowrite(s.fd, BYTES, 100, second + 100000 - 10, 0)) == 10
    good(C.riowrite(s.fd, bytes(10), 10, second + 100000 - 10, 0))
    s.send(b"done")
    assert s.recv(3, socket.MSG_WAITALL) == b"bye"
    s.close()


def options_server(host):
    """Connections begin with the options of their listener."""
    lis = Rs(host)
    want = ((socket.SOL_SOCKET, socket.SO_SNDBUF, 10000, 20480), (socket.SOL_SOCKET, socket.SO_RCVBUF, 1, 4096),
            (socket.SOL_SOCKET, socket.SO_REUSEADDR, 1, 1), (socket.SOL_SOCKET, socket.SO_OOBINLINE, 1, 1),
            (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1, 1), (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1, 1),
            (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1, 1), (socket.IPPROTO_IP, socket.IP_TOS, 0x20, 0x20),
            (SOL_RDMA, 0, 100, 100), (SOL_RDMA, 1, 50, 50), (SOL_RDMA, 2, 0, 0), (SOL_RDMA, 3, 1000, 768))
    for level, option, value, _ in want:
        lis.set(level, option, value)
    lis.bind(host)
    lis.listen()
    s, _ = lis.accept()
    assert s.get(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 0
    for level, option, _, got in want:
        assert s.get(level, option) == got, (level, option, s.get(level, option))
    assert s.to_end() == b"x"
    s.close()
    lis.close()


def options_client(host):
    s = Rs(host)
    for level, option, value, got in ((socket.SOL_SOCKET, socket.SO_SNDBUF, 10000, 20480),
                                      (socket.SOL_SOCKET, socket.SO_RCVBUF, 1, 4096),
                                      (socket.SOL_SOCKET, socket.SO_REUSEADDR, 1, 1),
                                      (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1, 1),
                                      (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1, 1),
                                      (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1, 1),
                                      (SOL_RDMA, 0, 100, 100), (SOL_RDMA, 1, 3, 16), (SOL_RDMA, 2, 9999, 256), (SOL_RDMA, 3, 1000, 768)):
        s.set(level, option, value)
        if option != socket.SO_SNDBUF or level != socket.SOL_SOCKET:
            assert s.get(level, option) == got, (level, option, s.get(level, option))
    fails(errno.ENOPROTOOPT, C.rsetsockopt, s.fd, SOL_RDMA, 99, ctypes.byref(ctypes.c_int(1)), 4)
    fails(errno.EINVAL, C.rsetsockopt, s.fd, SOL_RDMA, 0, ctypes.byref(ctypes.c_int(1)), 2)
    s.connect(host)
    fails(errno.EINVAL, C.rsetsockopt, s.fd, SOL_RDMA, 0, ctypes.byref(ctypes.c_int(1)), 4)
    threading.Event().wait(2.5)  # some messages that keep alive
    s.send(b"x")
    s.close()


def fork_server(host):
    lis = listener(host)
    s, _ = lis.accept()
    child, _ = lis.accept()
    assert child.to_end() == b"child"
    child.close()
    assert s.to_end() == b"before after"
    s.close()


def fork_client(host):
    """A child has nothing of its parent's sockets, and can't end them; its own work."""
    s = joined(host)
    s.send(b"before")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            fails(errno.EBADF, C.rsend, s.fd, b"x", 1, 0)
            s.close()
            own = joined(host)
            own.send(b"child")
            own.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    s.send(b" after")
    s.close()


def any_server(host):
    lis = listener("::")
    for _ in range(2):
        s, peer = lis.accept()
        print(peer[0], flush=True)
        assert s.to_end() == b"x"
        s.close()
    lis.close()
    lis = Rs("::")
    lis.set(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    lis.bind("::")
    lis.listen()
    for _ in range(2):  # a request over IPv4 comes between them
        s, peer = lis.accept()
        print(peer[0], flush=True)
    s.close()


def any_client(host):
    for to in (host, "fd00:7::1"):
        s = joined(to)
        s.send(b"x")
        s.close()
    first = None
    while first is None:  # until the second listener is there
        try:
            first = joined("fd00:7::1")
        except ConnectionRefusedError:
            threading.Event().wait(0.1)
    fails(errno.ECONNREFUSED, C.rconnect, Rs(host).fd, pack(host), len(pack(host)))
    assert joined("fd00:7::1").recv(1) == b""


def dgram_server(host):
    s = Rs(host, socket.SOCK_DGRAM)
    s.bind(host)
    print("listening", flush=True)
    while True:
        data, peer = s.recvfrom(2000)
        if data == b"end":
            break
        s.sendto(data[::-1], *peer)
    s.close()


def dgram_client(host):
    s = Rs(host, socket.SOCK_DGRAM)
    for size in (0, 1, 100, 900):
        s.sendto(BYTES[:size], host, PORT)
        data, peer = s.recvfrom(2000)
        assert data == BYTES[:size][::-1] and peer == (host, PORT), (size, peer)
    s.sendto(b"abcdef", host, PORT)
    assert rpoll(-1, (s.fd, select.POLLIN)) == [select.POLLIN]
    assert s.recvfrom(3, socket.MSG_PEEK)[0] == b"fed"
    assert s.recvfrom(3)[0] == b"fed"
    fails(errno.EAGAIN, C.rrecv, s.fd, ctypes.create_string_buffer(9), 9, socket.MSG_DONTWAIT)
    fails(errno.EMSGSIZE, C.rsendto, s.fd, BYTES, 5000, 0, pack(host), len(pack(host)))
    fails(errno.ECONNREFUSED, C.rsendto, s.fd, b"x", 1, 0, pack(host, 6999), len(pack(host)))
    fails(errno.EDESTADDRREQ, C.rsend, s.fd, b"x", 1, 0)
    s.connect(host)
    s.send(b"end")
    s.close()


def dgram_lossy_server(host):
    s = Rs(host, socket.SOCK_DGRAM)
    s.bind(host)
    print("listening", flush=True)
    while True:
        data, peer = s.recvfrom(2000)
        s.sendto(data, *peer)
        if data == b"end":
            break
    s.close()


def dgram_lossy_client(host):
    """Most datagrams come back; look-ups are repeated."""
    s = Rs(host, socket.SOCK_DGRAM)
    back = 0
    for i in range(200):
        s.sendto(struct.pack("=I", i) + BYTES[:500], host, PORT)
        while rpoll(100, (s.fd, select.POLLIN))[0]:
            data, _ = s.recvfrom(2000)
            assert data[4:] == BYTES[:500]
            back += 1
            if struct.unpack_from("=I", data)[0] == i:
                break
    assert back > 150, back
    for _ in range(100):
        s.sendto(b"end", host, PORT)
        if rpoll(200, (s.fd, select.POLLIN))[0]:
            break
    s.close()


def gone(s):
    """The dataplane goes: waiting calls end, and later ones fail."""
    ends = []
    threads = [threading.Thread(target=lambda: ends.append(C.rrecv(s.fd, ctypes.create_string_buffer(1), 1, 0))),
               threading.Thread(target=lambda: ends.append(rpoll(-1, (s.fd, select.POLLIN))[0]))]
    for t in threads:
        t.start()
    print("connected", flush=True)
    print("waiting", flush=True)
    for t in threads:
        t.join()
    assert -1 in ends, ends
    assert C.rsend(s.fd, b"x", 1, 0) == -1
    s.close()


def gone_server(host):
    gone(served(host))


def gone_client(host):
    gone(joined(host))


def attacked_server(host):
    """Serve one after the other, while a good one stays connected."""
    lis = listener(host)
    ends = []
    while True:
        s, _ = lis.accept()
        try:
            got = s.recv(100)
            if got == b"quit":
                break
            if got:
                s.send(got)
                got = s.recv(100)
            ends.append(got)
        except OSError as e:
            ends.append(errno.errorcode[e.errno])
        s.close()
    s.close()
    print(ends, flush=True)
    assert ends.count("ECONNRESET") >= 5, ends


def attacked_client(host):
    s = joined(host)
    s.send(b"quit")
    assert s.recv(1) == b""
    s.close()


if __name__ == "__main__":
    globals()[f"{sys.argv[1]}_{sys.argv[2]}"](sys.argv[3])
    print("right", flush=True)
