#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified programs that use TCP sockets, on streams of urnic's by urnic-run --sockets (SF-1, SF-10).

usage: sockets_tcp.py urnicd urnic-run CONFIG_FOLDER tcp-calls [TEST...]

Two nodes, a (10.0.0.1) and b (10.0.0.2), in one urnicd. Neither address is the kernel's, so that bytes
that arrive can have come by urnic only. One program (test/e2e/tcp) makes the same calls over the kernel's
loopback and over urnic; a difference is a fault."""

import itertools
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

import tcp_common
from ports import free_port

CALLS = None
SECONDS = tcp_common.SECONDS
A = "10.0.0.1"


def need(program):
    if shutil.which(program) is None:
        raise unittest.SkipTest(f"{program} is missing: scripts/setup.sh --test installs it")


class Tcp(tcp_common.Tcp):
    # ---- the same calls

    def calls(self, address, port, urnic):
        nodes = "ab" if urnic else (None, None)
        server = self.on(nodes[0], CALLS, "server", address, str(port))
        said = self.line(server, "ready")
        client = self.on(nodes[1], CALLS, "client", address, str(port))
        out = self.done(client)
        return said.splitlines() + self.done(server).splitlines(), out.splitlines()

    def test_same(self):
        """Calls over urnic have the results of those over the kernel."""
        kernel = self.calls("127.0.0.1", free_port(), False)
        urnic = self.calls(A, 7000, True)
        self.maxDiff = None
        for k, u in zip(kernel, urnic):
            differ = {a: b for a, b in itertools.zip_longest(k, u) if a != b}
            self.assertEqual(differ, {}, "kernel: urnic")

    # ---- decisions at connect

    def test_names(self):
        """A port of the library's choice; a listener at an own address; a peer's address is the node's."""
        self.pair("""
s = socket.socket()
s.bind((A, 7001))
s.listen()
assert s.getsockname() == (A, 7001)
say("ready")
c, peer = s.accept()
assert peer[0] == B and peer == c.getpeername(), peer
assert c.getsockname() == (A, 7001)
assert c.recv(10) == b"name"
any = socket.socket()
any.bind((A, 0))
any.listen()
assert any.getsockname()[0] == A and any.getsockname()[1] > 0
c.sendall(str(any.getsockname()[1]).rjust(6).encode())
d, peer = any.accept()
assert d.recv(10) == b"other"
fails(lambda: socket.create_server((A, 7001)), errno.EADDRINUSE)
""", """
c = socket.create_connection((A, 7001))
assert c.getpeername() == (A, 7001)
assert c.getsockname()[0] == B
c.sendall(b"name")
d = socket.create_connection((A, int(all_of(c, 6))))
d.sendall(b"other")
""")

    def test_any(self):
        """A listener at any address takes urnic's connections and the kernel's, each with its own bytes."""
        port = free_port()
        server = self.python("a", f"""
import selectors
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", {port}))
s.listen()
s.setblocking(False)
say("ready")
sel = selectors.DefaultSelector()
sel.register(s, selectors.EVENT_READ)
ends = 0
while ends < 4:
    for key, _ in sel.select(30):
        if key.fileobj is s:
            c, peer = s.accept()
            sel.register(c, selectors.EVENT_READ, peer[0])
            continue
        data = key.fileobj.recv(100)
        key.fileobj.sendall(key.data.encode() + b" " + data if data else b"")
        if not data:
            ends += 1
            sel.unregister(key.fileobj)
            key.fileobj.close()
""")
        self.line(server, "ready")
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", port)) as k:
                k.sendall(b"kernel")
                self.assertEqual(k.recv(100), b"127.0.0.1 kernel")
            self.done(self.python("b", f"""
c = socket.create_connection((A, {port}))
c.sendall(b"urnic")
assert c.recv(100) == b"10.0.0.2 urnic"
"""))
        self.done(server)

    def test_fall(self):
        """A peer that is no urnic node, or has no stream there, is reached by the kernel's TCP, blocking and not."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            try:
                s.connect(("192.0.2.1", 9)) # sends nothing
                own = s.getsockname()[0]
            except OSError:
                own = "127.0.0.1"
        if own.startswith("127."):
            self.skipTest("this host has no address but the loopback")
        with socket.create_server((own, 0)) as l:
            port = l.getsockname()[1]
            client = self.python("b", f"""
d = socket.socket()
d.setblocking(False)
assert d.connect_ex(("{own}", {port})) == errno.EINPROGRESS
c = socket.create_connection(("{own}", {port}))
c.sendall(b"one")
assert all_of(c, 3) == b"ONE"
e = select.epoll()
e.register(d, select.EPOLLOUT)
assert e.poll(30) == [(d.fileno(), select.EPOLLOUT)]
assert d.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
assert d.getpeername() == ("{own}", {port})
d.sendall(b"two")
d.setblocking(True)
assert all_of(d, 3) == b"TWO"
""", URNIC_SOCKETS_NET=f"{own}/32,10.0.0.0/24")
            for _ in range(2):
                c, _ = l.accept()
                with c:
                    c.sendall(c.recv(3).upper())
            self.done(client)

    def test_refused(self):
        """Nobody listens at a urnic node: ECONNREFUSED, blocking and not. The kernel does not look for the address behind a gateway."""
        self.done(self.python("b", """
fails(lambda: socket.create_connection((A, 7009)), errno.ECONNREFUSED)
d = socket.socket()
d.setblocking(False)
assert d.connect_ex((A, 7009)) == errno.EINPROGRESS
assert select.select([], [d], [], 30)[1] == [d]
assert d.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED
"""))

    def test_closed_listener(self):
        """A listener is closed before it takes a connection: ECONNREFUSED."""
        self.pair("""
s = socket.create_server((A, 7014))
say("ready")
assert select.select([s], [], [], 30)[0] == [s]
s.close()
""", """
fails(lambda: socket.create_connection((A, 7014)), errno.ECONNREFUSED)
""")

    def test_withdrawn(self):
        """A connection that its peer broke while it waited is not accepted."""
        self.pair("""
s, t = socket.create_server((A, 7019)), socket.create_server((A, 7020))
say("ready")
first, _ = t.accept()
assert all_of(first, 2) == b"go"
c, _ = s.accept()
assert all_of(c, 6) == b"second"
s.setblocking(False)
fails(s.accept, errno.EAGAIN)
c.sendall(b"ok")
""", """
d = socket.socket()
d.setblocking(False)
d.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes((1, 0, 0, 0, 0, 0, 0, 0)))
assert d.connect_ex((A, 7019)) == errno.EINPROGRESS
d.close()
go = socket.create_connection((A, 7020))
go.sendall(b"go")
c = socket.create_connection((A, 7019))
c.sendall(b"second")
assert all_of(c, 2) == b"ok"
""")

    def test_no_dataplane(self):
        """Without a dataplane an address of urnic's network is not looked for behind a gateway."""
        self.done(self.python("b", """
d = socket.socket()
d.setblocking(False)
d.connect_ex((A, 7009))
assert d.getsockopt(socket.SOL_SOCKET, socket.SO_DONTROUTE) == 1
""", URNIC_SOCKET=os.path.join(self.dir.name, "none"), URNIC_SOCKETS_NET="10.0.0.0/24"))

    def test_number(self):
        """The number of a socket that asked is another socket's when the answer comes: that one is left alone."""
        self.done(self.python("b", """
e = select.epoll()
c = socket.socket()
c.setblocking(False)
assert c.connect_ex((A, 7009)) == errno.EINPROGRESS
e.register(c, select.EPOLLOUT)
d = socket.socket(fileno=os.dup(c.fileno()))
fd = c.detach()
os.close(fd)
other = socket.socket()
assert other.fileno() == fd
end = time.time() + 30
error = 0
while error == 0 and time.time() < end:
    assert e.poll(0.05) == []
    error = d.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
assert error == errno.ECONNREFUSED, error
assert other.getsockopt(socket.SOL_SOCKET, socket.SO_DONTROUTE) == 0
assert e.poll(0) == []
"""))

    def test_stale(self):
        """A descriptor that was closed unseen, and is a file's now, is the file's: no byte goes to the stream."""
        path = os.path.join(self.dir.name, "file")
        self.pair("""
s = socket.create_server((A, 7012))
say("ready")
c, _ = s.accept()
assert all_of(c, 2) == b"ok"
assert c.recv(10) == b""
""", f"""
import ctypes
c = socket.create_connection((A, 7012))
c.sendall(b"ok")
fd = c.detach()
assert ctypes.CDLL(None).syscall(3, fd) == 0 # SYS_close
assert os.open("{path}", os.O_RDWR | os.O_CREAT) == fd
assert os.write(fd, b"for the file") == 12
os.lseek(fd, 0, 0)
assert os.read(fd, 100) == b"for the file"
""")
        with open(path, "rb") as f:
            self.assertEqual(f.read(), b"for the file")

    # ---- processes

    def test_fork(self):
        """A child has no use of a connection that its parent has used, and does it no harm; it makes its own."""
        self.pair("""
s = socket.create_server((A, 7002))
say("ready")
c, _ = s.accept()
assert all_of(c, 4) == b"used"
pid = os.fork()
if pid == 0:
    fails(lambda: c.send(b"child"), errno.ENOTCONN)
    fails(lambda: c.recv(1), errno.ENOTCONN)
    c.close()
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
c.sendall(b"parent")
assert c.recv(10) == b"still"
d, _ = s.accept()
assert d.recv(10) == b"own"
""", """
c = socket.create_connection((A, 7002))
c.sendall(b"used")
assert all_of(c, 6) == b"parent"
c.sendall(b"still")
if os.fork() == 0:
    d = socket.create_connection((A, 7002))
    d.sendall(b"own")
    d.close()
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
""")

    def test_clone(self):
        """A process that a system call of the program's own has made (SYS_clone) has no use of its parent's connections."""
        self.pair("""
s = socket.create_server((A, 7018))
say("ready")
c, _ = s.accept()
assert all_of(c, 4) == b"mine"
assert c.recv(10) == b""
""", """
import ctypes
c = socket.create_connection((A, 7018))
pid = ctypes.CDLL(None).syscall(56, 17, 0, 0, 0, 0) # SYS_clone, SIGCHLD
if pid == 0:
    try:
        os.write(c.fileno(), b"child's")
    except OSError as e:
        os._exit(0 if e.errno in (errno.ENOTCONN, errno.EPIPE) else 2)
    os._exit(1)
assert pid > 0
assert os.waitpid(pid, 0)[1] == 0
c.sendall(b"mine")
""")

    def test_fork_epoll(self):
        """A child changes an entry of its parent's epoll: a listener of both kinds is the kernel's there."""
        self.done(self.python("a", f"""
s = socket.create_server(("0.0.0.0", {free_port()}))
e = select.epoll()
e.register(s, select.EPOLLIN)
if os.fork() == 0:
    e.modify(s, select.EPOLLIN)
    e.unregister(s)
    fails(lambda: e.unregister(s), errno.ENOENT)
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
"""))

    def test_killed(self):
        """The peer of a killed program gets an error, and its other connections go on."""
        server = self.python("a", """
s = socket.create_server((A, 7003))
say("ready")
c, _ = s.accept()
d, _ = s.accept()
c.sendall(b"c")
d.sendall(b"d")
fails(lambda: c.recv(1), errno.ECONNRESET)
d.sendall(b"on")
assert d.recv(10) == b"end"
""")
        self.line(server, "ready")
        victim = self.python("b", 'c = socket.create_connection((A, 7003))\nsay("in")\nc.recv(1)\nsay("up")\ntime.sleep(3600)')
        self.line(victim, "in")
        other = self.python("b", 'd = socket.create_connection((A, 7003))\nassert all_of(d, 3) == b"don"\nd.sendall(b"end")')
        self.line(victim, "up")
        victim.send_signal(signal.SIGKILL)
        self.done(other)
        self.done(server)

    def test_exit(self):
        """A program that ends without close() has sent all."""
        server, _ = self.pair("""
s = socket.create_server((A, 7004))
say("ready")
c, _ = s.accept()
time.sleep(0.2)
n = 0
while data := c.recv(100000):
    n += len(data)
say(n)
""", """
c = socket.create_connection((A, 7004))
c.sendall(bytes(1000000))
import atexit, os
c.detach()
""")
        self.assertEqual(server.splitlines()[-1], "1000000")

    def test_dataplane_killed(self):
        """The dataplane ends: its connections break with an error; a listener at any address, and the kernel's connections, go on."""
        port = free_port()
        server = self.python("a", f"""
s = socket.create_server(("0.0.0.0", {port}))
say("ready")
c, _ = s.accept()
c.sendall(b"up")
fails(lambda: c.recv(1), errno.ECONNRESET)
p = select.poll()
p.register(s, select.POLLIN)
assert p.poll(100) == [], "the listener is not quiet"
say("quiet")
d, _ = s.accept()
d.sendall(d.recv(10).upper())
""")
        self.line(server, "ready")
        client = self.python("b", f"""
c = socket.create_connection((A, {port}))
assert all_of(c, 2) == b"up"
say("up")
fails(lambda: c.recv(1), errno.ECONNRESET)
""")
        self.line(client, "up")
        self.nicd.kill()
        self.nicd.communicate()
        self.line(server, "quiet")
        self.done(client)
        with socket.create_connection(("127.0.0.1", port)) as k:
            k.sendall(b"kernel")
            self.assertEqual(k.recv(10), b"KERNEL")
        self.done(server)

    def test_dataplane_ended(self):
        """The dataplane ends: event loops are told of a connection and of a listener without a kernel's side, and then sleep."""
        server = self.python("a", """
s = socket.create_server((A, 7018))
say("ready")
c, _ = s.accept()
s.setblocking(False)
e = select.epoll()
e.register(s, select.EPOLLIN)
e.register(c, select.EPOLLIN)
c.sendall(b"up")
say("up")
told = []
while len(told) < 2:
    for fd, events in e.poll():
        assert events & select.EPOLLIN and events & select.EPOLLERR and fd not in told, (fd, events, told)
        told.append(fd)
        if fd == s.fileno():
            fails(s.accept, errno.EIO)
        else:
            fails(lambda: c.recv(1), errno.ECONNRESET)
            c.close()
start = time.process_time()
p = select.poll()
p.register(s, select.POLLIN)
assert e.poll(0.5) == p.poll(500) == []
say("used", time.process_time() - start)
""")
        self.line(server, "ready")
        client = self.python("b", """
c = socket.create_connection((A, 7018))
assert all_of(c, 2) == b"up"
say("up")
fails(lambda: c.recv(1), errno.ECONNRESET)
""")
        self.line(server, "up")
        self.line(client, "up")
        self.assertEqual(self.stop(self.nicd)[0], 0)
        self.done(client)
        used = float(self.done(server).split()[-1])
        self.assertLess(used, 0.1) # seconds of a processor, of one second

    # ---- threads, event loops

    def test_asyncio(self):
        """Fifty connections of event loops, with random sizes: each byte at its place."""
        self.pair("""
import asyncio
left = 50
async def serve(r, w):
    global left
    while data := await r.read(70000):
        w.write(data)
        await w.drain()
    w.close()
    left -= 1
    if left == 0:
        stop.set()
async def main():
    global stop
    stop = asyncio.Event()
    await asyncio.start_server(serve, A, 7005, backlog=64)
    say("ready")
    await asyncio.wait_for(stop.wait(), 50)
asyncio.run(main())
""", """
import asyncio, random
async def one(seed):
    rng = random.Random(seed)
    data = rng.randbytes(rng.choice((1, 1000, 300000)))
    r, w = await asyncio.open_connection(A, 7005)
    async def send():
        for at in range(0, len(data), 9973):
            w.write(data[at:at + 9973])
            await w.drain()
        w.write_eof()
    got, _ = await asyncio.gather(r.read(-1), send())
    assert got == data, (seed, len(got), len(data))
    w.close()
async def main():
    await asyncio.gather(*(one(i) for i in range(50)))
asyncio.run(main())
""")

    def test_threads(self):
        """A thread reads while another one writes; a thread's epoll gets a connection of another thread."""
        self.pair("""
s = socket.create_server((A, 7006))
say("ready")
e = select.epoll()
got = []
def wait():
    while len(got) < 3:
        events = e.poll(40)
        assert events, "asleep"
        for fd, _ in events:
            got.append(os.read(fd, 3))
t = threading.Thread(target=wait)
t.start()
keep = []
for i in range(3):
    c, _ = s.accept()
    keep.append(c)
    e.register(c, select.EPOLLIN | select.EPOLLONESHOT)
t.join()
assert sorted(got) == [b"0..", b"1..", b"2.."], got
for c in keep:
    c.sendall(b"ok")
""", """
for i in range(3):
    time.sleep(0.1)
    globals()[f"c{i}"] = c = socket.create_connection((A, 7006))
    c.sendall(b"%d.." % i)
for c in (c0, c1, c2):
    assert all_of(c, 2) == b"ok"
""")

    def test_close(self):
        """A connection that is closed while a thread's epoll has it ends at once, and is told no more."""
        self.pair("""
s = socket.create_server((A, 7013))
say("ready")
c, _ = s.accept()
e = select.epoll()
r, w = os.pipe()
e.register(c, select.EPOLLIN)
e.register(r, select.EPOLLIN)
got = []
t = threading.Thread(target=lambda: got.append(e.poll()))
t.start()
time.sleep(0.1)
c.close()
d, _ = s.accept()
assert d.recv(3) == b"end"
os.write(w, b"x")
t.join()
assert got == [[(r, select.EPOLLIN)]], got
""", """
c = socket.create_connection((A, 7013), 40)
assert c.recv(1) == b""
d = socket.create_connection((A, 7013))
d.sendall(b"end")
""")

    def test_edge(self):
        """A program that takes a short read for the last one gets all bytes by EPOLLET."""
        self.pair("""
s = socket.create_server((A, 7015))
say("ready")
c, _ = s.accept()
d, _ = s.accept()
assert d.recv(1) == b"x"
time.sleep(0.2)
c.setblocking(False)
e = select.epoll()
e.register(c, select.EPOLLIN | select.EPOLLET)
n = 0
while n < 300000:
    assert e.poll(40), n
    got = ROOM = 200000
    while got == ROOM and n < 300000:
        try:
            got = len(c.recv(ROOM))
        except BlockingIOError:
            break
        n += got
c.sendall(b"ok")
""", """
c = socket.create_connection((A, 7015))
d = socket.create_connection((A, 7015))
c.sendall(bytes(300000))
d.sendall(b"x")
assert all_of(c, 2) == b"ok"
""")

    def test_fair(self):
        """Calls of epoll_wait with room for one event tell of each stream and of the kernel's descriptors in turn."""
        self.pair("""
s = socket.create_server((A, 7016))
say("ready")
c, d = s.accept()[0], s.accept()[0]
r, w = os.pipe()
os.write(w, b"x")
e = select.epoll()
for f in (c, d, r):
    e.register(f, select.EPOLLIN)
for f in (c, d):
    assert select.select([f], [], [], 30)[0] == [f]
told = [e.poll(30, 1)[0][0] for _ in range(8)]
assert set(told) == {c.fileno(), d.fileno(), r}, told
""", """
c = socket.create_connection((A, 7016))
d = socket.create_connection((A, 7016))
c.sendall(b"c")
d.sendall(b"d")
assert c.recv(1) == b""
""")

    def test_wake(self):
        """epoll_ctl() wakes a thread that waits, and leaves nothing to do for a wait that begins later."""
        self.pair("""
s = socket.create_server((A, 7017))
say("ready")
c, d = s.accept()[0], s.accept()[0]
assert select.select([d], [], [], 30)[0] == [d]
e = select.epoll()
e.register(c, select.EPOLLIN)
got = []
t = threading.Thread(target=lambda: got.append(e.poll(30)))
t.start()
time.sleep(0.1)
e.register(d, select.EPOLLIN)
t.join()
assert got == [[(d.fileno(), select.EPOLLIN)]], got
e.unregister(d)
assert e.poll(0) == []
def info(fd, name):
    with open(f"/proc/self/fdinfo/{fd}") as f:
        return [line.split()[1] for line in f if line.startswith(name + ":")]
kick, = info(e.fileno(), "tfd")
assert info(kick, "eventfd-count") == ["0"]
for events in (select.EPOLLOUT, select.EPOLLIN):
    e.modify(c, events)
assert info(kick, "eventfd-count") == ["0"]
""", """
c = socket.create_connection((A, 7017))
d = socket.create_connection((A, 7017))
d.sendall(b"d")
assert c.recv(1) == b""
""")

    # ---- programs

    def test_socat(self):
        """A file both ways at once through socat."""
        need("socat")
        data = random.Random(1).randbytes(3 << 20)
        path = os.path.join(self.dir.name, "data")
        with open(path, "wb") as f:
            f.write(data)
        server = self.on("a", "socat", "-T", "30", f"TCP4-LISTEN:7007,bind={A}", "SYSTEM:cat", text=False)
        with open(path, "rb") as f:
            client = self.on("b", "socat", "-T", "30", "-t", "20", "STDIO", f"TCP4:{A}:7007,retry=400,interval=0.1", stdin=f, text=False)
            out, err = client.communicate(timeout=SECONDS)
        self.assertEqual((client.returncode, out == data), (0, True), (err, len(out)))
        self.done(server)

    def test_iperf3(self):
        """One stream, four, the other way, and both ways at once."""
        need("iperf3")
        server = self.on("a", "iperf3", "-s", "-B", A, "-p", "7008", "--forceflush")
        for options in ((), ("-P", "4"), ("-R",), ("--bidir",)):
            self.line(server, "listening") # written anew behind each run, when it takes the next one
            out = self.done(self.on("b", "iperf3", "-c", A, "-p", "7008", "-t", "1", "-J", *options))
            result = json.loads(out)
            self.assertNotIn("error", result, (options, out[-600:])) # the exit code is 0 with one, too
            for way in ("sum_received", *(("sum_received_bidir_reverse",) if options == ("--bidir",) else ())):
                self.assertGreater(result["end"][way]["bytes"], 1 << 20, (options, out[-600:]))

    def test_nc(self):
        """A line each way; the end of the input ends the connection."""
        need("nc")
        server = self.on("a", "nc", "-l", "-v", A, "7010", stdin=subprocess.PIPE)
        self.assertIn("Listening", server.stderr.readline())
        client = self.on("b", "nc", "-N", A, "7010", stdin=subprocess.PIPE)
        server.stdin.write("from the server\n")
        server.stdin.flush()
        self.assertEqual(client.stdout.readline(), "from the server\n")
        out, _ = client.communicate("from the client\n", timeout=SECONDS)
        self.assertEqual((client.returncode, out), (0, ""))
        self.assertEqual(server.communicate(timeout=SECONDS)[0], "from the client\n")

    def test_redis(self):
        """Fifty clients of an event loop; one with a pipeline; values that are larger than a buffer."""
        need("redis-server")
        need("redis-benchmark")
        server = self.on("a", "redis-server", "--bind", A, "--port", "7011", "--save", "", "--protected-mode", "no", "--daemonize", "no")
        self.line(server, "Ready to accept")
        for options in (("-c", "50", "-n", "2000"), ("-c", "1", "-n", "2000", "-P", "16"), ("-c", "4", "-n", "200", "-d", "100000")):
            out = self.done(self.on("b", "redis-benchmark", "-h", A, "-p", "7011", "--csv", "-t", "set,get", *options))
            self.assertEqual(len(re.findall(r'^"(?:SET|GET)","[1-9]', out, re.M)), 2, out)
        cli = self.on("b", "redis-cli", "-h", A, "-p", "7011", "shutdown", "nosave")
        self.done(cli)
        self.done(server)


if __name__ == "__main__":
    Tcp.NICD, Tcp.RUN, Tcp.CONFIG, CALLS = map(os.path.abspath, sys.argv[1:5])
    unittest.main(argv=[sys.argv[0]] + sys.argv[5:], verbosity=2)
