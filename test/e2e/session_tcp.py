#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified programs with TCP sockets, on streams of urnic's over virtual devices, while the dataplanes under these
are killed: no connection ends, and no byte is lost or comes twice (SF-11).

usage: session_tcp.py URNICD URNIC_RUN URNICCTL URNIC_SWITCH STREAM_ENDS [TEST...]"""

import os
import re
import shutil
import signal
import sys
import threading
import unittest

import dropin_common
import session_common
import tcp_common

PATHS = 4
MORE = 1 << 20 # bytes that each end must get before a kill, and after it
TRUSTED = re.compile(r" trusted path=[PS]-[PS] alive=(\d)")
HEAD = tcp_common.HEAD + 'B = "10.0.0.3"\n'

# Bytes both ways at once, of random sizes, until a line on the standard input says to stop. The byte at each place of
# the stream is known; "at N" says how many came.
EXCHANGE = """
import random
P = 1000003
block = random.Random(11).randbytes(P)
twice = block + block
def send(s, seed):
    rng = random.Random(seed)
    at = 0
    while not stopped.is_set():
        n = rng.choice((1, 100, 5000, 70000))
        n = rng.randint(1, n)
        s.sendall(twice[at % P:at % P + n])
        at += n
        time.sleep(0.0005)
    s.shutdown(socket.SHUT_WR)
    say("sent", at)
def receive(s):
    at = told = 0
    while data := s.recv(65536):
        here = at % P
        assert data == twice[here:here + len(data)], ("other bytes", at, len(data))
        at += len(data)
        if at - told >= 1 << 17:
            told = at
            say("at", at)
    say("got", at)
def exchange(s, seed):
    global stopped
    stopped = threading.Event()
    t = threading.Thread(target=send, args=(s, seed))
    t.start()
    threading.Thread(target=lambda: (sys.stdin.readline(), stopped.set()), daemon=True).start()
    receive(s)
    t.join()
    s.close()
"""
SERVE = "s = socket.create_server((A, 7000))\nsay('ready')\nc, _ = s.accept()\nexchange(c, 1)\n"
ASK = "exchange(socket.create_connection((A, 7000)), 2)\n"


def need(program):
    if shutil.which(program) is None:
        raise unittest.SkipTest(f"{program} is missing: scripts/setup.sh --test installs it")


class Reader(threading.Thread):
    """Reads a program's output, and knows how many bytes the program got."""

    def __init__(self, program):
        super().__init__(daemon=True)
        self.program, self.at, self.lines = program, 0, []
        self.start()

    def run(self):
        for line in self.program.stdout:
            self.lines.append(line)
            found = re.match(r"at (\d+)", line)
            if found:
                self.at = int(found[1])

    def has(self, text):
        return any(text in line for line in self.lines[:])

    def number(self, word):
        """The number behind a word, at the begin of a line."""
        return int(next(line.split()[1] for line in self.lines if line.startswith(word)))


class Tcp(session_common.Session):
    FIXED = True # else requests go to the address of before until neighbours are asked again
    ENDS = None # set by the script

    def setUp(self):
        super().setUp()
        self.env["URNIC_SESSION_PROBE"] = "20"

    # ---- programs

    def run_on(self, node, *command, plain=False, stdin=False):
        """Start a program with TCP sockets on a node."""
        self.env["URNIC_SESSION_LOG"] = self.path(node, "log")
        return self.on(node, "--sockets", *command, plain=plain, stdin=stdin)

    def python(self, node, text, **how):
        return self.run_on(node, tcp_common.PYTHON, "-c", HEAD + text, stdin=True, **how)

    def says(self, r, text):
        """Wait until a program has said something."""
        self.assertTrue(self.until(lambda: r.has(text) or r.program.poll() is not None))
        self.assertTrue(r.has(text), self.why(r))

    def why(self, r):
        return r.lines, r.program.poll(), r.program.poll() is not None and r.program.stderr.read(), self.logs()

    def logs(self):
        return [self.log(node) for node in "ab"]

    def log(self, node):
        try:
            with open(self.path(node, "log"), encoding="utf-8") as f:
                return f.read().splitlines()
        except FileNotFoundError:
            return []

    def over(self, *readers, code=0):
        for r in readers:
            try:
                self.assertEqual(r.program.wait(timeout=dropin_common.SECONDS), code, self.why(r))
            finally:
                r.program.kill()
            r.join()
            for pipe in (r.program.stdin, r.program.stdout, r.program.stderr):
                if pipe:
                    pipe.close()
            self.running.remove(r.program)

    # ---- adapters

    def kill(self, name):
        self.nicd[name].send_signal(signal.SIGKILL)
        self.nicd[name].communicate()

    def again(self, name):
        """Start a dataplane that was killed."""
        self.running.remove(self.nicd[name])
        self.nicd[name] = self.begin(name)
        self.assertTrue(self.until(lambda: self.linked(name)))

    def whole(self, node, mark):
        """True when all paths of a connection are trusted, of which some were lost since the mark."""
        alive = [int(m[1]) for m in map(TRUSTED.search, self.log(node)) if m]
        return len(alive) >= mark + 2 and alive[-1] == PATHS

    def marks(self):
        return {node: sum(" trusted path=" in line for line in self.log(node)) for node in "ab"}

    def flap(self, name, more):
        """An adapter is lost and comes back; more: waits until the programs have done something."""
        marks = self.marks()
        self.kill(name)
        more()
        self.again(name)
        self.assertTrue(self.until(lambda: all(self.whole(node, marks[node]) for node in "ab")), self.logs())

    # ---- bytes

    def begin_pair(self, server=SERVE, client=ASK, **how):
        a = Reader(self.python("a", EXCHANGE + server, **how))
        self.says(a, "ready")
        return a, Reader(self.python("b", EXCHANGE + client, **how))

    def more(self, *pair):
        """Wait until each end got more bytes."""
        want = [r.at + MORE for r in pair]
        self.until(lambda: all(r.at >= w for r, w in zip(pair, want)) or any(r.program.poll() is not None for r in pair))
        for r, w in zip(pair, want):
            self.assertTrue(r.program.poll() is None and r.at >= w, self.why(r))

    def stop(self, *pair):
        for r in pair:
            r.program.stdin.write("stop\n")
            r.program.stdin.flush()

    def finish(self, a, b):
        """Tell both ends to stop. Each must have got all that the other sent."""
        self.stop(a, b)
        self.over(a, b)
        self.assertEqual([a.number("sent"), b.number("sent")], [b.number("got"), a.number("got")])

    def test_bytes(self):
        """The adapters of one end are lost in turn, with healing between."""
        pair = self.begin_pair()
        self.more(*pair)
        for name in ("ap", "as"):
            self.flap(name, lambda: self.more(*pair))
            self.more(*pair)
        self.finish(*pair)

    def test_peer(self):
        """The adapter of the other end is lost, and then one of this end."""
        pair = self.begin_pair()
        self.more(*pair)
        for name in ("bp", "as"):
            self.kill(name)
            self.more(*pair)
        self.finish(*pair)

    def test_idle(self):
        """The backup is lost and comes back while no byte goes; then the primary adapter is lost, and bytes go."""
        a, b = self.begin_pair("s = socket.create_server((A, 7000))\nsay('ready')\nc, _ = s.accept()\nassert all_of(c, 2) == b'up'\n"
                               "say('up')\nsys.stdin.readline()\nexchange(c, 1)\n",
                               "c = socket.create_connection((A, 7000))\nc.sendall(b'up')\nsys.stdin.readline()\nexchange(c, 2)\n")
        self.says(a, "up")
        self.flap("as", lambda: None)
        self.kill("ap")
        self.stop(a, b) # goes on
        self.more(a, b)
        self.finish(a, b)

    def test_loops(self):
        """Twenty connections of event loops, with random sizes."""
        a = Reader(self.python("a", """
import asyncio
async def serve(r, w):
    while data := await r.read(70000):
        w.write(data)
        await w.drain()
    w.close()
async def main():
    server = await asyncio.start_server(serve, A, 7005, backlog=64)
    say("ready")
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    server.close()
asyncio.run(main())
"""))
        self.says(a, "ready")
        b = Reader(self.python("b", """
import asyncio, random
done = 0
async def one(seed):
    global done
    rng = random.Random(seed)
    r, w = await asyncio.open_connection(A, 7005)
    while not stopped:
        data = rng.randbytes(rng.choice((1, 1000, 30000, 300000)))
        async def send():
            for at in range(0, len(data), 9973):
                w.write(data[at:at + 9973])
                await w.drain()
        got, _ = await asyncio.gather(r.readexactly(len(data)), send())
        assert got == data, (seed, len(data))
        done += len(data)
        say("at", done)
    w.write_eof()
    assert await r.read(-1) == b""
    w.close()
stopped = False
async def main():
    global stopped
    all = asyncio.gather(*(one(i) for i in range(20)))
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    stopped = True
    await all
asyncio.run(main())
"""))
        self.more(b)
        self.kill("ap")
        self.more(b)
        self.kill("bp")
        self.more(b)
        self.stop(b)
        self.over(b)
        self.stop(a)
        self.over(a)

    # ---- ends

    def ends(self, name, server, client, code=(0, 0)):
        """An adapter is lost when both programs are up; then a line tells them to go on."""
        a = Reader(self.python("a", server))
        self.says(a, "ready")
        b = Reader(self.python("b", client))
        self.says(a, "up")
        self.says(b, "up")
        for one in name:
            self.kill(one)
        self.stop(a, b)
        self.over(a, code=code[0])
        self.over(b, code=code[1])

    CLOSES = """
c = socket.create_connection((A, 7000))
c.sendall(b"up")
assert all_of(c, 2) == b"up"
say("up")
sys.stdin.readline()
c.sendall(bytes(range(256)) * 4000)
c.close()
"""
    GETS = """
s = socket.create_server((A, 7000))
say("ready")
c, _ = s.accept()
assert all_of(c, 2) == b"up"
c.sendall(b"up")
say("up")
assert all_of(c, 256 * 4000) == bytes(range(256)) * 4000
assert c.recv(1) == b""
"""

    def test_close(self):
        """An end that sends and closes while its adapter is lost has sent all."""
        self.ends(["bp"], self.GETS, self.CLOSES)

    def test_close_peer(self):
        """The same while the adapter of the peer is lost."""
        self.ends(["ap"], self.GETS, self.CLOSES)

    def test_all(self):
        """Both adapters of an end are lost: connections end with an error. A listener takes others when they are back."""
        a = Reader(self.python("a", """
s = socket.create_server((A, 7000))
say("ready")
c, _ = s.accept()
c.sendall(b"up")
def all():
    while c.recv(100):
        pass
fails(all, errno.ECONNRESET)
say("lost")
d, _ = s.accept()
assert all_of(d, 5) == b"again"
"""))
        self.says(a, "ready")
        b = Reader(self.python("b", """
c = socket.create_connection((A, 7000))
assert all_of(c, 2) == b"up"
say("up")
try:
    while True:
        c.sendall(b"x")
        time.sleep(0.05)
except OSError as e:
    assert e.errno in (errno.ECONNRESET, errno.EPIPE), e
say("lost")
sys.stdin.readline()
while True:
    try:
        d = socket.create_connection((A, 7000))
        break
    except OSError:
        time.sleep(0.2)
d.sendall(b"again")
"""))
        self.says(b, "up")
        for name in ("ap", "as"):
            self.kill(name)
        self.says(a, "lost")
        self.says(b, "lost")
        for name in ("ap", "as"):
            self.again(name)
        self.stop(b)
        self.over(a, b)

    # ---- connections

    TAKES = """
s = socket.create_server((A, 7000))
say("ready")
for i in range(2):
    c, peer = s.accept()
    assert peer[0] == B, peer
    assert all_of(c, 2) == b"up"
    c.sendall(b"ok")
    say("took", i)
"""
    TRIES = """
def attempt(n):
    try:
        c = socket.create_connection((A, 7000))
    except OSError as e:
        say(n, "failed", errno.errorcode[e.errno])
        return False
    c.sendall(b"up")
    assert all_of(c, 2) == b"ok"
    say(n, "made")
    return True
attempt("first")
sys.stdin.readline()
attempt("second")
sys.stdin.readline()
while not attempt("third"):
    time.sleep(0.2)
"""

    def test_connect(self):
        """A connection can be made while the backup is away, and not while the primary adapter is."""
        a = Reader(self.python("a", self.TAKES))
        self.says(a, "ready")
        self.kill("as")
        self.kill("bs")
        b = Reader(self.python("b", self.TRIES))
        self.says(b, "first failed") # both adapters must be there when a device is opened
        for name in ("as", "bs"):
            self.again(name)
        self.stop(b)
        self.says(b, "second made")
        self.kill("ap")
        self.kill("bp")
        for name in ("ap", "bp"):
            self.again(name)
        self.stop(b)
        self.says(b, "third made")
        self.over(a, b)


if __name__ == "__main__":
    Tcp.NICD, Tcp.RUN, Tcp.CTL, Tcp.SWITCH, Tcp.ENDS = map(os.path.abspath, sys.argv[1:6])
    dropin_common.ordinary_user(Tcp.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[6:], verbosity=2)
