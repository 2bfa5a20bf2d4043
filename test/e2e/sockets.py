#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified programs that use UDP sockets, on urnic by urnic-run --sockets (DB-8, DB-11).

usage: sockets.py urnicd urnic-run CONFIG_FOLDER [TEST...]

Two nodes, a (10.0.0.1) and b (10.0.0.2), in one urnicd. Neither address is the kernel's, so that a
datagram that arrives can have come by urnic only."""

import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
import unittest

import hang
import urnicd_common

RUN = None
SECONDS = 60
PYTHON = "/usr/bin/python3"

HEAD = """
import array, ctypes, errno, fcntl, os, select, signal, socket, struct, subprocess, sys, termios, threading, time
A, B = "10.0.0.1", "10.0.0.2"
def udp(addr=None, port=0, flags=0):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | flags)
    if addr is not None:
        s.bind((addr, port))
    return s
def say(*words):
    print(*words, flush=True)
def fails(what, number):
    try:
        what()
    except OSError as e:
        assert e.errno == number, e
        return
    raise AssertionError(f"no {errno.errorcode[number]}")
"""

# A client that asks again, because its server may be away for a moment.
ASK = """
s = udp()
s.settimeout(0.5)
def ask(data, port):
    end = time.time() + 30
    while time.time() < end:
        try:
            s.sendto(data, (A, port))
            while s.recv(10) != data: # the answer to one before
                pass
            return
        except OSError: # of which TimeoutError is one
            time.sleep(0.02)
    raise AssertionError("no answer")
"""


class Sockets(urnicd_common.Nicd):
    def setUp(self):
        super().setUp()
        self.env["URNIC_SOCKET"] = self.socket
        self.nicd, _ = self.start()

    def tearDown(self):
        if self.nicd.poll() is None:
            for p in self.running:
                if p is not self.nicd and p.poll() is None:
                    hang.end(p)
            code, err = self.stop(self.nicd)
            self.assertEqual(code, 0, err)
        super().tearDown()

    def on(self, node, *command, stdin=None, **env):
        """Start a program on a node."""
        p = subprocess.Popen([RUN, "--sockets", "--node", node, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             stdin=stdin, text=True, env={**self.env, **env})
        self.running.append(p)
        return p

    def python(self, node, text, **env):
        return self.on(node, PYTHON, "-c", HEAD + text, **env)

    def line(self, p, want):
        """Read the next line that the program says."""
        ready, _, _ = select.select([p.stdout], [], [], SECONDS)
        self.assertTrue(ready, f"silent; wanted: {want}")
        line = p.stdout.readline()
        self.assertIn(want, line, p.stderr.read() if line == "" else line)

    def done(self, p):
        """Wait for a program's end. returns: its output"""
        try:
            out, err = p.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            p.kill()
            self.fail(("the program hangs", p.args[5:], p.communicate()))
        self.assertEqual(p.returncode, 0, err)
        return out

    def pair(self, server, client, **env):
        """Run a server on a that says "ready", then a client on b; both end well."""
        s = self.python("a", server, **env)
        self.line(s, "ready")
        c = self.python("b", client, **env)
        try:
            out = self.done(c)
        except AssertionError:
            s.kill()
            print("the server:", s.communicate(), file=sys.stderr)
            raise
        return self.done(s), out

    def test_blocking(self):
        """A recvfrom() that blocks before the datagram comes is woken by it, again and again."""
        self.pair("""
s = udp(A, 700)
say("ready")
while True:
    data, who = s.recvfrom(70000)
    assert who[0] == B, who
    s.sendto(data, who)
    if data == b"end":
        break
""", """
s = udp()
for data in [b"", b"x", b"y" * 1472, b"z" * 65507] + [b"%d" % i for i in range(20)] + [b"end"]:
    time.sleep(0.05)
    assert s.sendto(data, (A, 700)) == len(data)
    back, who = s.recvfrom(70000)
    assert back == data and who == (A, 700), who
fails(lambda: s.sendto(b"q" * 65508, (A, 700)), errno.EMSGSIZE)
""")

    def test_errors(self):
        """Errors that UDP keeps quiet about are told (DB-5, DB-11)."""
        self.done(self.python("a", """
s = udp(A, 701)
fails(lambda: udp(A, 701), errno.EADDRINUSE)
fails(lambda: s.bind((A, 702)), errno.EINVAL)
fails(lambda: udp(B, 702), errno.EADDRNOTAVAIL)
fails(lambda: s.sendto(b"x", (B, 999)), errno.ECONNREFUSED)
fails(lambda: s.sendto(b"x", ("10.0.0.77", 999)), errno.EHOSTUNREACH)
fails(lambda: s.recvfrom(10, socket.MSG_DONTWAIT), errno.EAGAIN)
s.settimeout(0.1)
try:
    s.recvfrom(10)
    raise AssertionError("what did it get?")
except TimeoutError:
    pass
s.settimeout(None)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 100000))
fails(lambda: s.recvfrom(10), errno.EAGAIN)
t = udp(A)
assert 32768 <= t.getsockname()[1] < 61000, t.getsockname()
# A queue that stays full: the sender waits as long as SO_SNDTIMEO says.
t.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 100000))
def fill():
    for i in range(1000):
        t.sendto(b"x", (A, 701))
fails(fill, errno.ENOBUFS)
for end, option in ((s, socket.SO_RCVTIMEO), (t, socket.SO_SNDTIMEO)):
    end.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", 30, 0))
assert s.recv(10) == b"x"
t.sendto(b"x", (A, 701))
"""))

    def test_flags(self):
        """MSG_PEEK, MSG_TRUNC, short buffers, FIONREAD, recvmsg."""
        self.done(self.python("a", """
s, t = udp(A, 703), udp(A, 704)
t.sendto(b"abcdef", (A, 703))
assert s.recv(3, socket.MSG_PEEK) == b"abc"
n = array.array("i", [0])
fcntl.ioctl(s, termios.FIONREAD, n)
assert n[0] == 6, n
assert s.recv_into(bytearray(3), 3, socket.MSG_PEEK | socket.MSG_TRUNC) == 6
data, _, flags, who = s.recvmsg(4)
assert (data, flags, who) == (b"abcd", socket.MSG_TRUNC, (A, 704)), (data, flags, who)
fails(lambda: s.recv(10, socket.MSG_DONTWAIT), errno.EAGAIN)
t.sendmsg([b"12", b"34"], [], 0, (A, 703))
assert os.read(s.fileno(), 100) == b"1234"
t.connect((A, 703))
assert os.write(t.fileno(), b"w") == 1
assert s.recvfrom(5) == (b"w", (A, 704))
assert t.getpeername() == (A, 703) and t.getsockname() == (A, 704)
"""))

    def test_wait(self):
        """poll, select and epoll, with descriptors of the kernel's beside."""
        self.pair("""
s = udp(A, 705)
s.setblocking(False)
r, w = os.pipe()
p = select.poll()
p.register(s, select.POLLIN)
p.register(r, select.POLLIN)
assert p.poll(10) == []
assert select.select([s, r], [], [], 0.01) == ([], [], [])
assert select.select([s, r], [s], [], 0.01) == ([], [s], [])
e = select.epoll()
e.register(s, select.EPOLLIN)
e.register(r, select.EPOLLIN)
assert e.poll(0.01) == []
os.write(w, b"x")
assert e.poll(1) == [(r, select.EPOLLIN)]
assert p.poll(1000) == [(r, select.POLLIN)]
os.read(r, 1)
say("ready")
def poll(): return [x[0] for x in p.poll()]
def epoll(): return [x[0] for x in e.poll()]
def sel(): return [x.fileno() for x in select.select([s], [], [])[0]]
for wait in [poll, epoll, sel] * 20:
    assert wait() == [s.fileno()], wait
    data, who = s.recvfrom(100)
    fails(lambda: s.recvfrom(100), errno.EAGAIN)
    s.sendto(data, who)
""", """
s = udp()
for i in range(60):
    if i % 7 == 0:
        time.sleep(0.02)
    s.sendto(b"m", (A, 705))
    assert s.recv(100) == b"m"
""")

    def test_epoll_level(self):
        """An epoll tells of datagrams for as long as there are some, and with EPOLLET once for each that comes."""
        self.done(self.python("a", """
s, t = udp(A, 706), udp(A, 707)
e = select.epoll()
e.register(s, select.EPOLLIN)
for i in range(3):
    t.sendto(b"x", (A, 706))
for i in range(3):
    assert e.poll(30), i
    s.recv(10)
assert e.poll(0.01) == []
e.modify(s, select.EPOLLIN | select.EPOLLET)
t.sendto(b"x", (A, 706))
assert e.poll(30)
assert e.poll(0.01) == []
s.recv(10)
fails(lambda: s.recv(10, socket.MSG_DONTWAIT), errno.EAGAIN)
t.sendto(b"x", (A, 706))
assert e.poll(30)
s.recv(10)
# Also while others wait: a program may read one datagram for each event.
for i in range(5):
    t.sendto(b"x", (A, 706))
    t.sendto(b"x", (A, 706))
    assert e.poll(30), i
    s.recv(10)
e.unregister(s)
t.sendto(b"x", (A, 706))
assert e.poll(0.05) == []
# In an epoll before it is urnic's.
u = udp()
e.register(u, select.EPOLLIN)
u.bind((A, 708))
t.sendto(b"x", (A, 708))
assert e.poll(30) == [(u.fileno(), select.EPOLLIN)]
"""))

    def test_threads(self):
        """Threads share a socket; no helper thread of the library's runs beside them."""
        self.done(self.python("a", """
s, t = udp(A, 709), udp(A, 710)
assert len(os.listdir("/proc/self/task")) == 1
got = []
def read():
    while (d := s.recv(10)) != b"end":
        got.append(d)
all = [threading.Thread(target=read) for i in range(4)]
for x in all:
    x.start()
def write():
    for i in range(200):
        t.sendto(b"m", (A, 709))
w = [threading.Thread(target=write) for i in range(2)]
for x in w:
    x.start()
for x in w:
    x.join()
for x in all:
    t.sendto(b"end", (A, 709))
for x in all:
    x.join()
assert len(got) == 400, len(got)
"""))

    def test_dup(self):
        """dup(), dup2() and F_DUPFD make descriptors of the same socket; the last close ends it."""
        self.done(self.python("a", """
s, t = udp(A, 711), udp(A, 712)
d = os.dup(s.fileno())
os.dup2(s.fileno(), 100)
f = fcntl.fcntl(s, fcntl.F_DUPFD, 200)
s.close()
os.close(d)
for fd in (100, f):
    t.sendto(b"x", (A, 711))
    assert os.read(fd, 10) == b"x"
fails(lambda: udp(A, 711), errno.EADDRINUSE)
os.close(100)
os.close(f)
udp(A, 711)
# Copies are entries of their own in an epoll.
u, e = udp(A, 711), select.epoll()
d = os.dup(u.fileno())
e.register(u, select.EPOLLIN)
e.register(d, select.EPOLLIN)
t.sendto(b"x", (A, 711))
u.recv(1, socket.MSG_PEEK) # the datagram has come
assert sorted(x[0] for x in e.poll(30)) == sorted((u.fileno(), d))
e.unregister(d)
assert e.poll(30) == [(u.fileno(), select.EPOLLIN)]
u.close()
os.close(d)
assert e.poll(0.05) == []
e.close()
# A program that closes all it knows does not hit the library's own descriptors.
t.close()
os.closerange(3, 5000)
u = udp(A, 713)
u.sendto(b"y", (A, 713))
assert u.recv(10) == b"y"
"""))

    def test_fork(self):
        """Parent and child have one socket, whoever reads; the port is free when both have gone."""
        self.done(self.python("a", """
s, t = udp(A, 714), udp(A, 715)
pid = os.fork()
if pid == 0:
    assert s.recv(10) == b"child"
    t.sendto(b"parent", (A, 714))
    os._exit(0)
time.sleep(0.1)
t.sendto(b"child", (A, 714))
assert os.waitpid(pid, 0)[1] == 0
assert s.recv(10) == b"parent"
# The child reads on after the parent closed its descriptor.
r, w = os.pipe()
pid = os.fork()
if pid == 0:
    os.read(r, 1)
    assert s.recv(10) == b"late"
    os._exit(0)
s.close()
t.sendto(b"late", (A, 714))
fails(lambda: udp(A, 714), errno.EADDRINUSE)
os.write(w, b"x")
assert os.waitpid(pid, 0)[1] == 0
udp(A, 714)
# A child makes sockets of its own.
pid = os.fork()
if pid == 0:
    c = udp(A, 716)
    c.sendto(b"mine", (A, 716))
    assert c.recv(10) == b"mine"
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""))

    def test_fork_threads(self):
        """A fork() while other threads make, use and close sockets harms neither side."""
        self.done(self.python("a", """
stop = False
def work():
    while not stop:
        with udp() as s, udp(A) as t:
            s.sendto(b"x", t.getsockname())
            assert t.recv(10) == b"x"
all = [threading.Thread(target=work) for i in range(3)]
for x in all:
    x.start()
for i in range(30):
    pid = os.fork()
    if pid == 0:
        with udp() as s, udp(A) as t:
            s.sendto(b"x", t.getsockname())
            os._exit(0 if t.recv(10) == b"x" else 1)
    assert os.waitpid(pid, 0)[1] == 0
stop = True
for x in all:
    x.join()
"""))

    def test_daemon(self):
        """A server that goes to the background by fork() keeps its port and serves; datagrams of that moment may be lost."""
        p = self.python("a", """
s = udp(A, 717)
if os.fork() != 0:
    os._exit(0)
os.setsid()
s.settimeout(30)
say("child")
while (got := s.recvfrom(10))[0] != b"end":
    s.sendto(*got)
say("served")
""")
        self.line(p, "child")
        self.done(self.python("b", ASK + """
ask(b"x", 717)
time.sleep(1) # the old queue has gone by now
ask(b"y", 717)
s.sendto(b"end", (A, 717))
"""))
        self.assertIn("served", p.communicate(timeout=SECONDS)[0])

    def again(self, head, text, tail=""):
        """A program that executes itself anew, as AGAIN, after `head`; the number of its socket s is told."""
        return (f"AGAIN = {HEAD + text!r}\n" + head + """
os.set_inheritable(s.fileno(), True)
def become(*more):
    os.execv(sys.executable, [sys.executable, "-c", AGAIN, str(s.fileno()), *map(str, more)])
""" + (tail or "become()\n"))

    def test_exec(self):
        """A server that executes itself anew keeps its name and answers at its port (DB-11)."""
        p = self.python("a", self.again("""
s = udp(A, 718)
s.setblocking(False)
assert subprocess.run(["true"]).returncode == 0 # a child of vfork()
s.sendto(b"y", (A, 718))
assert select.select([s], [], [], 30)[0] == [s]
assert s.recv(10) == b"y"
""", """
assert "URNIC_SOCKETS_EXEC" not in os.environ
s = socket.socket(fileno=int(sys.argv[1]))
assert [x for x in os.listdir("/proc/self/fd") if int(x) >= 512] == [], "no table is left"
assert s.type == socket.SOCK_DGRAM and s.getsockname() == (A, 718), s
fails(lambda: udp(A, 718), errno.EADDRINUSE)
fails(lambda: s.bind((A, 719)), errno.EINVAL)
fails(lambda: os.read(s.fileno(), 10), errno.EAGAIN)
s.settimeout(30)
say("again")
while (got := s.recvfrom(10))[0] != b"end":
    s.sendto(*got)
if len(sys.argv) == 2: # once more
    os.set_inheritable(s.fileno(), True)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:], "more"])
"""))
        for _ in range(2):
            self.line(p, "again")
            self.done(self.python("b", ASK + """
ask(b"x", 718)
s.sendto(b"end", (A, 718))
"""))
        self.done(p)

    def test_exec_connected(self):
        """A client after exec() talks to its peer, from its old port."""
        self.pair("""
s = udp(A, 730)
say("ready")
first = s.recvfrom(10)
assert first[0] == b"old"
assert s.recvfrom(10) == (b"new", first[1])
s.sendto(b"back", first[1])
""", self.again("""
s = udp()
s.connect((A, 730))
s.send(b"old")
""", """
s = socket.socket(fileno=int(sys.argv[1]))
assert s.getpeername() == (A, 730), s
assert s.getsockname() == (B, int(sys.argv[2])), s
s.send(b"new")
s.settimeout(30)
assert s.recv(10) == b"back"
""", "become(s.getsockname()[1])\n"))

    def test_exec_fails(self):
        """An exec() that fails leaves descriptors, environment and sockets as they were."""
        self.done(self.python("a", self.again("""
s = udp(A, 731)
""", "", """
before = sorted(os.listdir("/proc/self/fd"))
libc = ctypes.CDLL(None, use_errno=True)
argv = (ctypes.c_char_p * 2)(b"x", None)
for call in (lambda: libc.execv(b"/nowhere", argv), lambda: libc.execvp(b"nowhere-at-all", argv),
             lambda: libc.execve(b"/nowhere", argv, None), lambda: libc.execl(b"/nowhere", b"x", None),
             lambda: libc.execlp(b"nowhere-at-all", b"x", None), lambda: libc.execle(b"/nowhere", b"x", None, None),
             lambda: libc.execveat(-1, b"/nowhere", argv, None, 0), lambda: libc.execvpe(b"nowhere-at-all", argv, None)):
    assert call() == -1 and ctypes.get_errno() == errno.ENOENT, ctypes.get_errno()
assert libc.posix_spawn(None, b"/nowhere", None, None, argv, None) == errno.ENOENT
assert sorted(os.listdir("/proc/self/fd")) == before
assert "URNIC_SOCKETS_EXEC" not in os.environ
s.sendto(b"x", (A, 731))
assert s.recv(10) == b"x" and s.getsockname() == (A, 731)
""")))

    def test_exec_dup(self):
        """Copies of a descriptor stay copies, as in a child of vfork(); a descriptor with close-on-exec is not handed on."""
        self.done(self.python("a", self.again("""
s, t = udp(A, 732), udp(A, 733)
assert not os.get_inheritable(t.fileno())
os.dup2(s.fileno(), 0)
""", """
s = socket.socket(fileno=int(sys.argv[1]))
fails(lambda: os.fstat(int(sys.argv[2])), errno.EBADF)
t = udp(A, 733)
fails(lambda: s.recv(10, socket.MSG_DONTWAIT), errno.EAGAIN) # the first call takes the port
for fd in (0, s.fileno()):
    t.sendto(b"x", (A, 732))
    assert os.read(fd, 10) == b"x"
s.close()
t.sendto(b"y", (A, 732))
assert os.read(0, 10) == b"y"
os.close(0)
udp(A, 732)
""", "become(t.fileno())\n")))

    def test_exec_child(self):
        """A child's program has the names and leaves the port to its parent; it gets the port when the parent lets go."""
        self.done(self.python("a", self.again("""
s = udp(A, 734)
""", """
s = socket.socket(fileno=0)
assert s.getsockname() == (A, 734), s

fails(lambda: s.sendto(b"x", (A, 734)), errno.EADDRINUSE)
fails(lambda: s.recv(10, socket.MSG_DONTWAIT), errno.EADDRINUSE)
say("taken")
time.sleep(0.5)
s.settimeout(30)
while True:
    try:
        assert s.recv(10) == b"late"
        break
    except OSError:
        time.sleep(0.01)
""", """
p = subprocess.Popen([sys.executable, "-c", AGAIN], stdin=s, stdout=subprocess.PIPE)
assert p.stdout.readline() == b"taken\\n", p.wait()
s.sendto(b"mine", (A, 734))
assert s.recv(10) == b"mine"
s.close()
t = udp()
end = time.time() + 30
while p.poll() is None and time.time() < end:
    try:
        t.sendto(b"late", (A, 734))
    except OSError:
        pass
    time.sleep(0.05)
assert p.wait() == 0
# By posix_spawn(), whose file actions the library does not see.
s = udp(A, 735)
pid = os.posix_spawn(sys.executable, [sys.executable, "-c", "import socket; assert socket.socket(fileno=9).getsockname() == ('10.0.0.1', 735)"],
                     os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, s.fileno(), 9)])
assert os.waitpid(pid, 0)[1] == 0
s.sendto(b"mine", (A, 735))
assert s.recv(10) == b"mine"
""")))

    def test_kernel(self):
        """Other addresses are the kernel's, also of a socket that has datagrams of urnic's."""
        self.done(self.python("a", """
k = udp("127.0.0.1")
k2 = udp("127.0.0.1")
k2.sendto(b"kernel", k.getsockname())
assert k.recvfrom(10) == (b"kernel", k2.getsockname())
s = udp("0.0.0.0", 0)
port = s.getsockname()[1]
u = udp(A, 719)
u.sendto(b"urnic", (A, port))
k.sendto(b"kernel", ("127.0.0.1", port))
got = {s.recvfrom(10) for i in range(2)}
assert got == {(b"urnic", (A, 719)), (b"kernel", k.getsockname())}, got
p = select.poll()
p.register(s, select.POLLIN)
assert p.poll(10) == []
for i in range(20):
    (k if i % 2 else u).sendto(b"x", ("127.0.0.1" if i % 2 else A, port))
    assert p.poll(30000)
    s.recv(10)
t = threading.Timer(0.1, lambda: k.sendto(b"late", ("127.0.0.1", port)))
t.start()
assert s.recv(10) == b"late"
s.sendto(b"a", k.getsockname())
s.sendto(b"b", (A, 719))
assert k.recvfrom(10) == (b"a", ("127.0.0.1", port)) and u.recvfrom(10) == (b"b", (A, port))
s.connect(k.getsockname())
s.send(b"c")
assert k.recv(10) == b"c"
s.connect((A, 719))
s.send(b"d")
assert u.recv(10) == b"d"
"""))

    def test_no_dataplane(self):
        """Without a dataplane a program's sockets are the kernel's."""
        self.done(self.python("a", """
s = udp("127.0.0.1")
s.sendto(b"x", s.getsockname())
assert s.recv(10) == b"x"
fails(lambda: udp(A, 720), errno.EADDRNOTAVAIL)
""", URNIC_SOCKET=self.socket + ".not"))

    def test_restart(self):
        """Sockets come back with a new urnicd, under their names."""
        s = self.python("a", """
s = udp(A, 721)
say("ready")
for i in range(2):
    data, who = s.recvfrom(10)
    s.sendto(data, who)
    say("served")
""")
        self.line(s, "ready")
        client = ASK + """
ask(b"x", 721)
"""
        self.done(self.python("b", client))
        self.line(s, "served")
        self.stop(self.nicd)
        self.nicd, _ = self.start()
        self.done(self.python("b", client))
        self.assertIn("served", self.done(s))

    def test_many(self):
        """recvmmsg() and sendmmsg(), by name and by number (as libuv calls them)."""
        self.done(self.python("a", """
class iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
class mmsghdr(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("namelen", ctypes.c_uint), ("iov", ctypes.POINTER(iovec)), ("iovlen", ctypes.c_size_t),
                ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t), ("flags", ctypes.c_int), ("pad", ctypes.c_int), ("len", ctypes.c_uint)]
libc = ctypes.CDLL(None, use_errno=True)
def vector(n):
    bufs = [ctypes.create_string_buffer(b"%d" % i, 16) for i in range(n)]
    iov = [iovec(ctypes.addressof(b), 16) for b in bufs]
    return bufs, iov, (mmsghdr * n)(*[mmsghdr(None, 0, ctypes.pointer(iov[i]), 1) for i in range(n)])
s, t, u = udp(A, 722), udp(A, 723), udp(A, 737)
t.connect((A, 722))
WAITFORONE = 0x10000
for send, receive in ((lambda v: libc.sendmmsg(t.fileno(), v, 5, 0), lambda v, n, f: libc.recvmmsg(s.fileno(), v, n, f, None)),
                      (lambda v: libc.syscall(307, t.fileno(), v, 5, 0), lambda v, n, f: libc.syscall(299, s.fileno(), v, n, f, None))):
    keep = vector(5)
    assert send(keep[2]) == 5, ctypes.get_errno()
    bufs, iov, v = vector(8)
    assert receive(v, 5, 0) == 5, ctypes.get_errno() # waits for all
    assert [b.value for b in bufs[:5]] == [b"%d" % i for i in range(5)]
    assert [v[i].len for i in range(5)] == [16] * 5
    assert send(keep[2]) == 5, ctypes.get_errno()
    values = []
    while len(values) < 5: # those that are still on their way come with the next call
        bufs, iov, v = vector(8)
        n = receive(v, 8, WAITFORONE)
        assert 1 <= n <= 5, ctypes.get_errno()
        values += [b.value for b in bufs[:n]]
    assert values == [b"%d" % i for i in range(5)], values
    # One call takes all that are there: those that the sender sent before its last one, which is here.
    assert send(keep[2]) == 5 and t.sendto(b"last", (A, 737)) == 4 and u.recv(10) == b"last"
    assert receive(v, 8, WAITFORONE) == 5, ctypes.get_errno()
"""))

    def test_signal(self):
        """A signal ends a wait."""
        p = self.python("a", """
s = udp(A, 724)
try:
    say("ready")
    s.recv(10)
except KeyboardInterrupt:
    sys.exit(0)
sys.exit(1)
""")
        self.line(p, "ready")
        time.sleep(0.3)
        p.send_signal(signal.SIGINT)
        self.done(p)

    def test_nodes(self):
        """A server on the wildcard address is reached from its own node and from another one."""
        self.pair("""
s = udp("0.0.0.0", 725)
say("ready")
for i in range(2):
    data, who = s.recvfrom(10)
    say(who[0])
    s.sendto(data, who)
    t = udp()
    if i == 0:
        t.sendto(b"own", (A, 725))
t.settimeout(None)
""", """
s = udp()
s.sendto(b"x", (A, 725))
assert s.recvfrom(10) == (b"x", (A, 725))
""")

    def test_asyncio(self):
        """The event loop of Python."""
        self.pair("""
import asyncio
class Echo(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport
    def datagram_received(self, data, who):
        self.transport.sendto(data, who)
        if data == b"end":
            loop.call_later(0.1, loop.stop)
loop = asyncio.new_event_loop()
loop.run_until_complete(loop.create_datagram_endpoint(Echo, local_addr=(A, 726)))
say("ready")
loop.run_forever()
""", """
s = udp()
s.connect((A, 726))
for data in [b"x"] * 50 + [b"end"]:
    s.send(data)
    assert s.recv(10) == data
""")

    def test_socat(self):
        server = self.on("a", "socat", "-T", "5", "UDP4-RECVFROM:727,bind=10.0.0.1,fork", "SYSTEM:tr a-z A-Z")
        client = None
        for _ in range(100):
            client = self.on("b", "socat", "-t", "2", "-", "UDP4:10.0.0.1:727", stdin=subprocess.PIPE)
            out, err = client.communicate("hello\n", timeout=SECONDS)
            if out:
                break
            time.sleep(0.1)
        self.assertEqual(out, "HELLO\n", err)
        server.kill()

    def test_socat_exec(self):
        """A program that socat executes has socat's socket, too, and does not take its port."""
        server = self.on("a", "socat", "-T", "5", "UDP4-LISTEN:736,bind=10.0.0.1", "EXEC:cat")
        client = self.python("b", ASK + """
for i in range(3):
    ask(b"line%d\\n" % i, 736)
""")
        self.done(client)
        server.kill()

    def dig(self, port):
        """Ask the server at a until it answers."""
        for _ in range(100):
            p = self.on("b", "dig", "+time=2", "+tries=1", "-p", str(port), "@10.0.0.1", "www.example.test")
            out, _ = p.communicate(timeout=SECONDS)
            if "ANSWER: 1" in out:
                break
            time.sleep(0.1)
        self.assertRegex(out, r"www\.example\.test\.\s+\d+\s+IN\s+A\s+192\.0\.2\.7")
        self.assertRegex(out, r"SERVER: 10\.0\.0\.1#\d+\(10\.0\.0\.1\) \(UDP\)")

    def test_dnsmasq(self):
        """dig asks a stock server that uses the wildcard address, IP_PKTINFO and poll."""
        p = self.on("a", "dnsmasq", "-k", "--conf-file=/dev/null", "--port=7053", "--no-resolv", "--no-hosts",
                    "--address=/example.test/192.0.2.7", "--log-queries", "--log-facility=-", "--user=", "--pid-file=")
        self.dig(7053)
        p.terminate()
        self.assertIn("query[A] www.example.test from 10.0.0.2", p.communicate(timeout=SECONDS)[1])

    def test_v6(self):
        """IPv6, and IPv4 as mapped addresses, by one AF_INET6 socket."""
        self.assertEqual(self.stop(self.nicd)[0], 0)
        self.nicd, _ = self.start(a0="ipv6 = fd00:7::1", b0="ipv6 = fd00:7::2")
        self.pair("""
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.bind(("::", 729))
say("ready")
for want in ("fd00:7::2", "::ffff:10.0.0.2"):
    data, who = s.recvfrom(10)
    assert who[0] == want, who
    s.sendto(data, who)
""", """
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
for to in ("fd00:7::1", "::ffff:10.0.0.1"):
    s.sendto(b"six", (to, 729))
    data, who = s.recvfrom(10)
    assert (data, who[:2]) == (b"six", (to, 729)), (data, who)
s.connect(("fd00:7::1", 999))
assert s.getsockname()[0] == "fd00:7::2", s.getsockname()
fails(lambda: s.send(b"x"), errno.ECONNREFUSED)
""")

    def test_run(self):
        """urnic-run: usage, exit codes, and the library behind which others stay."""
        def run(*args, **env):
            p = subprocess.run([RUN, *args], capture_output=True, text=True, env={**self.env, **env}, timeout=SECONDS, check=False)
            return p.returncode, p.stdout, p.stderr
        self.assertEqual(run("--sockets", "sh", "-c", "exit 7")[0], 7)
        self.assertEqual(run("--sockets", "/nowhere/program")[0], 127)
        self.assertEqual(run("--sockets", "/etc/passwd")[0], 126)
        for wrong in ((), ("--sockets",), ("--bogus", "true")):
            code, _, err = run(*wrong)
            self.assertEqual(code, 2)
            self.assertIn("urnic-run", err)
        code, _, err = run("--sockets", "--library", "/nowhere.so", "true")
        self.assertEqual((code, "/nowhere.so" in err), (1, True))
        code, out, _ = run("--sockets", "-s", "S", "-n", "N", "--net", "1.2.3.0/24", "env", LD_PRELOAD="libm.so.6")
        self.assertEqual(code, 0)
        self.assertIn("URNIC_SOCKET=S\n", out)
        self.assertIn("URNIC_NODE=N\n", out)
        self.assertIn("URNIC_SOCKETS_NET=1.2.3.0/24\n", out)
        self.assertRegex(out, r"LD_PRELOAD=/\S*liburnic-sockets.so:libm.so.6\n")
        self.assertIn("--net", run("--help")[1])
        self.assertRegex(run("--version")[1], r"^urnic-run \d")

    def test_net(self):
        """URNIC_SOCKETS_NET says which addresses are urnic's, and takes all others from it."""
        self.done(self.python("a", """
s = udp()
fails(lambda: s.sendto(b"x", (B, 999)), errno.ECONNREFUSED)
fails(lambda: s.sendto(b"x", ("10.0.7.2", 999)), errno.EHOSTUNREACH)
""", URNIC_SOCKETS_NET="10.0.0.0/16"))
        p = self.python("a", """
fails(lambda: udp(A, 728), errno.EADDRNOTAVAIL)
""", URNIC_SOCKETS_NET="10.0.7.0/24,nonsense")
        _, err = p.communicate(timeout=SECONDS)
        self.assertEqual(p.returncode, 0, err)
        self.assertIn("'nonsense' is no network", err)

    def test_sockperf(self):
        server = self.on("a", "sockperf", "server", "-i", "10.0.0.1", "-p", "7054")
        self.line(server, "sockperf")
        for _ in range(20):
            p = self.on("b", "sockperf", "ping-pong", "-i", "10.0.0.1", "-p", "7054", "-t", "1")
            out, err = p.communicate(timeout=SECONDS)
            if "Summary: Latency" in out:
                break
            time.sleep(0.2)
        self.assertRegex(out, r"Summary: Latency is [\d.]+ usec", err)
        self.assertRegex(re.sub(r"\x1b\[[\d;]*m", "", out), r"dropped messages = 0; # duplicated messages = 0; # out-of-order messages = 0")
        server.terminate()


if __name__ == "__main__":
    urnicd_common.Nicd.NICD, RUN, urnicd_common.Nicd.CONFIG = map(os.path.abspath, sys.argv[1:4])
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=2)
