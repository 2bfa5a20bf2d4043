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
import unittest

import dropin_common
import session_tcp_common
from session_tcp_common import Reader, WRITER


def need(program):
    if shutil.which(program) is None:
        raise unittest.SkipTest(f"{program} is missing: scripts/setup.sh --test installs it")


class Tcp(session_tcp_common.Tcp):
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

    def test_fork(self):
        """accept() answers the peer; a child of fork() has no use of the connection, which stays its parent's."""
        path = os.path.join(self.dir.name, "connected")
        a = Reader(self.python("a", f"""
s = socket.create_server((A, 7006))
say("ready")
c, _ = s.accept()
while not os.path.exists("{path}"): # without a call that waits for sockets
    time.sleep(0.05)
pid = os.fork()
if pid == 0:
    fails(lambda: c.send(b"child"), errno.ENOTCONN)
    c.close()
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
c.sendall(b"parent")
"""))
        self.says(a, "ready")
        b = Reader(self.python("b", f"""
c = socket.create_connection((A, 7006))
open("{path}", "w").close()
assert all_of(c, 6) == b"parent"
"""))
        self.over(b)
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

    def test_new(self):
        """The adapter of an end is lost before the program has looked whether its peer is ready; the peer's bytes say so."""
        a = Reader(self.python("a", """
s = socket.create_server((A, 7000))
say("ready")
c, _ = s.accept()
say("took")
sys.stdin.readline()
assert c.recv(2, socket.MSG_DONTWAIT) == b"up"
say("up")
sys.stdin.readline()
assert all_of(c, 2) == b"on"
"""))
        self.says(a, "ready")
        b = Reader(self.python("b", 'c = socket.create_connection((A, 7000))\nc.sendall(b"up")\nsay("sent")\nsys.stdin.readline()\n'
                               'c.sendall(b"on")\n'))
        self.says(a, "took")
        self.says(b, "sent")
        self.assertTrue(self.until(lambda: all(qp["outstanding"] == 0 for qp in dropin_common.Dropin.show(self.at("bp"), "qp"))))
        self.stop(a)
        self.says(a, "up")
        self.kill("ap")
        self.stop(a, b)
        self.over(a, b)

    TAKES = """
s = socket.create_server((A, 7000))
say("ready")
for i in range(3):
    c, peer = s.accept()
    assert peer[0] == B, peer
    assert all_of(c, 2) == b"up"
    c.sendall(b"ok")
    say("took", i)
"""
    TRIES = """
def attempt():
    try:
        c = socket.create_connection((A, 7000))
    except OSError:
        say("failed")
        return False
    c.sendall(b"up")
    assert all_of(c, 2) == b"ok"
    say("made")
    return True
for line in sys.stdin:
    while not attempt() and line == "made\\n":
        time.sleep(0.2)
"""

    def test_connect(self):
        """Both adapters must be there when a program begins; later a connection can be made while the backup is away, and not while the
        primary adapter is. Listeners go on."""
        self.env["URNIC_SOCKETS_NET"] = "10.0.0.0/24"
        a = Reader(self.python("a", self.TAKES))
        self.says(a, "ready")
        self.kill("bs")
        b = Reader(self.python("b", self.TRIES))
        self.tries(b, "failed")
        self.again("bs")
        self.tries(b, "made")
        self.kill("as")
        self.tries(b, "made")
        self.again("as")
        self.kill("bp")
        self.tries(b, "failed")
        self.again("bp")
        self.kill("ap")
        self.again("ap")
        self.tries(b, "made")
        b.program.stdin.close()
        self.over(a, b)

    def tries(self, b, what):
        """Let a program try until a connection is made, or once to find that none is."""
        before = b.lines.count(what + "\n")
        b.program.stdin.write(what + "\n")
        b.program.stdin.flush()
        self.assertTrue(self.until(lambda: b.lines.count(what + "\n") > before), self.why(b))

    def test_plain(self):
        """A peer without a session has a plain connection, which ends with its adapter. The listener takes another one later."""
        a = Reader(self.python("a", """
s = socket.create_server((A, 7000))
say("ready")
c, _ = s.accept()
assert all_of(c, 2) == b"up"
c.sendall(b"ok")
fails(lambda: c.recv(1), errno.ECONNRESET)
say("lost")
d, _ = s.accept()
assert all_of(d, 5) == b"again"
"""))
        self.says(a, "ready")
        b = Reader(self.python("b", """
c = socket.create_connection((A, 7000))
c.sendall(b"up")
assert all_of(c, 2) == b"ok"
say("up")
sys.stdin.readline()
c.close()
while True:
    try:
        d = socket.create_connection((A, 7000))
        break
    except OSError:
        time.sleep(0.2)
d.sendall(b"again")
""", plain=True))
        self.says(b, "up")
        self.kill("ap")
        self.says(a, "lost")
        self.again("ap")
        self.stop(b)
        self.over(a, b)

    # ---- programs

    def test_redis(self):
        """Every reply of redis-server is right, and no client connects again, while an adapter of each end is lost."""
        need("redis-server")
        need("redis-benchmark")
        server = Reader(self.run_on("a", "redis-server", "--bind", "10.0.0.1", "--port", "7011", "--save", "", "--protected-mode", "no",
                                    "--daemonize", "no", "--dir", self.dir.name))
        self.says(server, "Ready to accept")
        bench = self.run_on("b", "redis-benchmark", "-h", "10.0.0.1", "-p", "7011", "-c", "2", "-n", "1000000000", "-t", "incr")
        writer = Reader(self.python("b", WRITER))
        # redis-benchmark asks for the configuration by a connection of its own, which ends.
        self.assertTrue(self.until(lambda: writer.has("info 3 ")), self.why(writer))
        for name in ("ap", "bp"):
            self.kill(name)
            self.writes(writer, bench)
        infos = [line.split()[1:3] for line in writer.lines if line.startswith("info 3 ")]
        self.assertEqual(infos, [infos[0]] * len(infos))
        self.stop(writer)
        self.over(writer)
        bench.terminate()
        self.ends_well(bench)
        server.program.terminate()
        self.over(server)

    def writes(self, writer, bench):
        """Wait until a writer and redis-benchmark have gone on."""
        lines, counts = len(writer.lines), self.counts(writer)
        self.assertTrue(self.until(lambda: (len(writer.lines) > lines + 4 and self.counts(writer) > counts) or writer.program.poll() is not None))
        self.assertTrue(writer.program.poll() is None and bench.poll() is None, self.why(writer))

    def counts(self, writer):
        """The count of redis-benchmark's requests."""
        return int([line for line in writer.lines[:] if line.startswith("info ")][-1].split()[3])

    def ends_well(self, bench):
        """redis-benchmark was ended, and has told of no error."""
        out, err = bench.communicate(timeout=dropin_common.SECONDS)
        self.running.remove(bench)
        self.assertEqual((bench.returncode, err), (-signal.SIGTERM, ""))
        self.assertNotRegex(out, "(?i)error|could not")

    def test_iperf3(self):
        """A stream goes on when its adapter is lost, and later that of the peer."""
        need("iperf3")
        server = Reader(self.run_on("a", "iperf3", "-s", "-1", "-B", "10.0.0.1", "-p", "7008", "--forceflush"))
        self.says(server, "listening")
        client = Reader(self.run_on("b", "iperf3", "-c", "10.0.0.1", "-p", "7008", "-t", "3600", "-f", "k", "--forceflush"))
        self.flows(server, client)
        for name in ("ap", "bs"):
            self.kill(name)
            self.flows(server, client)
        client.program.send_signal(signal.SIGINT)
        self.assertIn("the client has terminated", self.over(client, code=1))
        self.assertIn("the client has terminated", self.over(server))

    def flows(self, *readers):
        """Wait until iperf3 tells of further seconds in which bytes came."""
        def seconds(r):
            return sum(bool(re.search(r"sec +[1-9]\S* .Bytes", line)) for line in r.lines[:])
        want = [seconds(r) + 1 for r in readers]
        self.until(lambda: all(seconds(r) >= w for r, w in zip(readers, want)) or any(r.program.poll() is not None for r in readers))
        for r, w in zip(readers, want):
            self.assertTrue(r.program.poll() is None and seconds(r) >= w, self.why(r))

    # ---- <urnic/stream.h>

    def api(self, node, *command):
        """Start a program of <urnic/stream.h> on a node."""
        self.env["URNIC_SESSION"] = self.device(node)
        self.env["URNIC_SESSION_SILENCE"] = str(self.SILENCE)
        return Reader(self.popen(self.ENDS, "session", node, *command))

    def test_api(self):
        """Copies, reads and writes of memory outlive an adapter of each end; all bytes are compared."""
        server = self.api("a", "listen", "7000")
        self.says(server, "listening")
        clients = [self.api("b", "10.0.0.1", "7000", "exchange", str(seed), str(24 << 20), *how)
                   for seed, how in ((1, ()), (2, ("read", "added")), (4, ("write",)))]
        for c in clients:
            self.says(c, "up")
        for name in ("ap", "bp"):
            self.kill(name)
        self.over(*clients)
        self.assertTrue(self.until(lambda: sum("exchange done" in line for line in server.lines[:]) == 3), self.why(server))
        self.assertIsNone(server.program.poll())


if __name__ == "__main__":
    Tcp.NICD, Tcp.RUN, Tcp.CTL, Tcp.SWITCH, Tcp.ENDS = map(os.path.abspath, sys.argv[1:6])
    dropin_common.ordinary_user(Tcp.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[6:], verbosity=2)
