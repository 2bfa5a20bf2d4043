# SPDX-License-Identifier: BSD-3-Clause
"""Programs with TCP sockets on two nodes with a virtual device each, whose dataplanes are killed."""

import os
import re
import signal
import threading

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

# A client of redis whose replies are known; "info": its server's clients, connections since the start, and counts of
# redis-benchmark.
WRITER = """
import random, re
stopped = False
def wait():
    global stopped
    sys.stdin.readline()
    stopped = True
threading.Thread(target=wait, daemon=True).start()
c = socket.create_connection((A, 7011))
f = c.makefile("rb")
def ask(*words):
    c.sendall(b"*%d\\r\\n" % len(words) + b"".join(b"$%d\\r\\n%s\\r\\n" % (len(w), w) for w in words))
    line = f.readline()
    assert line.endswith(b"\\r\\n"), line
    if line[:1] != b"$":
        return line[1:-2]
    n = int(line[1:])
    return f.read(n + 2)[:-2] if n >= 0 else b"0"
rng = random.Random(3)
n = 0
while not stopped:
    n += 1
    assert ask(b"INCR", b"n") == b"%d" % n, n
    value = rng.randbytes(rng.choice((3, 500, 100000)))
    assert ask(b"SET", b"k", value) == b"OK"
    assert ask(b"GET", b"k") == value
    if n % 20 == 0:
        info = ask(b"INFO").decode()
        say("info", *(re.search(what + r":(\\d+)", info)[1] for what in ("connected_clients", "total_connections_received")),
            ask(b"GET", b"counter:__rand_int__").decode())
"""


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
        """Wait for programs' ends. returns: errors that the last one told"""
        err = ""
        for r in readers:
            self.until(lambda r=r: r.program.poll() is not None)
            if r.program.poll() != code:
                self.fail(self.why(r))
            r.join()
            err = r.program.stderr.read()
            for pipe in (r.program.stdin, r.program.stdout, r.program.stderr):
                if pipe:
                    pipe.close()
            self.running.remove(r.program)
        return err

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
