#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Deaths around datagram sockets: programs under urnic-run that are killed, and a urnicd that is (DB-1, DB-11).

usage: sockets_kill.py urnicd urnic-run CONFIG_FOLDER urnicctl [TEST...]"""

import json
import os
import signal
import subprocess
import sys
import time
import unittest

import hang
import urnicd_common

RUN = CTL = None
SECONDS = 30
PYTHON = "/usr/bin/python3"

HEAD = """
import errno, os, select, signal, socket, struct, sys, threading, time
A, B = "10.0.0.1", "10.0.0.2"
def udp(addr=None, port=0):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    if addr is not None:
        s.bind((addr, port))
    return s
def say(*words):
    print(*words, flush=True)
def code(what):
    try:
        what()
        return "OK"
    except OSError as e:
        return errno.errorcode.get(e.errno, "timeout") # Python's own timeout has no number
"""

# A program with a thread in each kind of wait. The first thread tells how calls end without a urnicd, and with the next one.
WAITS = """
s, n, e, l = udp(A, 810), udp(A, 811), udp(A, 812), udp(A, 813)
k, c = udp("127.0.0.1"), udp()
c.connect((A, 810))
for x in (n, e):
    x.setblocking(False)
ep, p = select.epoll(), select.poll()
ep.register(e, select.EPOLLIN)
p.register(n, select.POLLIN)
def echo(sock, wait):
    while True:
        wait()
        try:
            sock.sendto(*sock.recvfrom(10))
        except OSError:
            pass
for args in (e, ep.poll), (n, p.poll), (l, lambda: None):
    threading.Thread(target=echo, args=args, daemon=True).start()
say("ready")
while True:
    sys.stdin.readline()
    say("send", code(lambda: c.send(b"x")))
    say("sendto", code(lambda: c.sendto(b"x", (B, 9))))
    say("recv", code(lambda: s.recv(10, socket.MSG_DONTWAIT)))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 200000))
    say("timeout", code(lambda: s.recv(10)))
    k.sendto(b"k", k.getsockname())
    say("kernel", k.recv(10).decode())
    say("name", s.getsockname() == (A, 810) and c.getpeername() == (A, 810))
    start = time.process_time(), time.time()
    time.sleep(0.5)
    say("idle", time.process_time() - start[0] < 0.5 * (time.time() - start[1]))
    sys.stdin.readline()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 20, 0))
    end = time.time() + 20
    while time.time() < end:
        if code(lambda: s.recv(10, socket.MSG_DONTWAIT | socket.MSG_PEEK)) == "OK" or code(lambda: c.send(b"after")) == "OK":
            break
        time.sleep(0.02)
    say("after", s.recv(10).decode())
"""


class Kill(urnicd_common.Nicd):
    def setUp(self):
        super().setUp()
        self.env["URNIC_SOCKET"] = self.socket
        self.nicd, _ = self.start()

    def tearDown(self):
        for p in self.running:
            if p is not self.nicd and p.poll() is None:
                hang.end(p)
        if self.nicd.poll() is None:
            code, err = self.stop(self.nicd)
            self.assertEqual(code, 0, err)
        super().tearDown()

    def python(self, node, text):
        p = subprocess.Popen([RUN, "--sockets", "--node", node, PYTHON, "-c", HEAD + text], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env)
        self.running.append(p)
        return p

    def line(self, p, want):
        signal.signal(signal.SIGALRM, lambda *_: self.fail(f"silent; wanted: {want}"))
        signal.alarm(SECONDS)
        line = p.stdout.readline()
        signal.alarm(0)
        self.assertEqual(line.strip(), want, p.stderr.read() if line == "" else line)

    def done(self, p):
        out, err = p.communicate(timeout=SECONDS)
        self.assertEqual(p.returncode, 0, err)
        return out

    def show(self, what):
        p = subprocess.run([CTL, "--socket", self.socket, "--json", "show", what], env=self.env, capture_output=True,
                           text=True, timeout=SECONDS, check=False)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)

    def state(self):
        """Things that urnicd holds for programs, and that lie around."""
        return {"client": self.show("client"), "msg": self.show("msg"),
                "fd": len(os.listdir(f"/proc/{self.nicd.pid}/fd")), "run": sorted(os.listdir(self.run)),
                "processes": self.programs()}

    def programs(self):
        """Processes that have urnicd's socket in their environment, but urnicd."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if f"URNIC_SOCKET={self.socket}".encode() in f.read() and int(pid) != self.nicd.pid:
                        with open(f"/proc/{pid}/stat", encoding="utf-8") as s:
                            found += [pid] if s.read().rsplit(")", 1)[1].split()[0] != "Z" else []
            except OSError:
                pass
        return found

    def test_program(self):
        """After SIGKILL of a program, of its children, and of a sender in midst of it, nothing is left."""
        before = self.state()
        server = self.python("a", """
s = udp(A, 800)
others = [udp(A) for i in range(20)]
pid = os.fork()
if pid == 0:
    c = udp(A, 801)
    say("ready")
    while True:
        c.recv(70000)
while True:
    s.recv(70000)
""")
        self.line(server, "ready")
        client = self.python("b", """
s, c = udp(), udp()
s.sendto(b"x", (A, 800))
s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 50000))
say("sends")
while True:
    for port in (800, 801):
        try:
            s.sendto(b"y" * 60000, (A, port))
            c.sendto(b"z", socket.MSG_DONTWAIT, (A, port))
        except OSError:
            pass
""")
        self.line(client, "sends")
        child = [p for p in self.programs() if p not in map(str, (server.pid, client.pid))]
        self.assertEqual(len(child), 1)
        server.kill()
        server.wait()
        time.sleep(0.1)
        os.kill(int(child[0]), signal.SIGKILL)
        client.kill()
        client.wait()
        self.until(lambda: self.state() == before)
        self.assertEqual(self.state(), before)
        # The ports are free, and a datagram of before is for nobody.
        self.done(self.python("a", """
s, c = udp(A, 800), udp(A, 801)
time.sleep(0.1)
assert code(lambda: s.recv(10, socket.MSG_DONTWAIT)) == "EAGAIN"
s.sendto(b"new", (A, 801))
assert c.recv(10) == b"new"
"""))

    def test_urnicd_killed(self):
        """Programs in every kind of wait outlive urnicd: their calls have a clean errno, and go on with the next one."""
        p = self.python("a", WAITS)
        self.line(p, "ready")
        for _ in range(2):
            self.nicd.kill()
            self.nicd.communicate()
            self.tell(p, "killed")
            for want in ("send ENETDOWN", "sendto ENETDOWN", "recv EAGAIN", "timeout EAGAIN", "kernel k", "name True", "idle True"):
                self.line(p, want)
            self.nicd, _ = self.start()
            self.tell(p, "started")
            self.line(p, "after after")
            out = self.done(self.python("b", """
s = udp()
for port in (811, 812, 813):
    s.settimeout(1)
    got = None
    for i in range(20):
        if code(lambda: s.sendto(b"%d" % port, (A, port))) == "OK":
            try:
                while got != b"%d" % port: # answers of tries before come late
                    got = s.recv(10)
                say(port)
                break
            except OSError:
                pass
        time.sleep(0.05)
"""))
            self.assertEqual(out.split(), ["811", "812", "813"])
        self.assertIsNone(p.poll())

    def tell(self, p, word):
        p.stdin.write(word + "\n")
        p.stdin.flush()


if __name__ == "__main__":
    urnicd_common.Nicd.NICD, RUN, urnicd_common.Nicd.CONFIG, CTL = map(os.path.abspath, sys.argv[1:5])
    unittest.main(argv=[sys.argv[0]] + sys.argv[5:], verbosity=2)
