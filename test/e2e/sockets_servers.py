#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified servers on streams of urnic's, by urnic-run --sockets: those that make processes by fork(), and those with
threads (SF-1, SF-10).

usage: sockets_servers.py urnicd urnic-run CONFIG_FOLDER [TEST...]

Two nodes, a (10.0.0.1) and b (10.0.0.2), in one urnicd. Neither address is the kernel's, so that bytes
that arrive can have come by urnic only."""

import os
import random
import shutil
import signal
import socket
import sys
import time
import unittest

import tcp_common
from ports import free_port

A = "10.0.0.1"


def need(program):
    if shutil.which(program) is None:
        raise unittest.SkipTest(f"{program} is missing: scripts/setup.sh --test installs it")


class Servers(tcp_common.Tcp):
    def config(self, **lines):
        os.chmod(self.dir.name, 0o755) # workers of another user attach, too
        return super().config(**{**lines, "daemon": "mode = 0666\n"})

    # ---- a listener that processes share

    def test_workers(self):
        """Children of a program that listens, and takes no connection, take them all in turn."""
        server = self.python("a", """
import signal
s = socket.create_server((A, 7101))
kids = []
for i in range(2):
    pid = os.fork()
    if pid == 0:
        e = select.epoll()
        e.register(s, select.EPOLLIN)
        say("worker")
        s.setblocking(False)
        while True:
            e.poll()
            try:
                c, _ = s.accept()
            except BlockingIOError:
                continue
            c.setblocking(True)
            c.sendall(b"%d" % i + c.recv(10))
            c.close()
    kids.append(pid)
sys.stdin.readline()
for pid in kids:
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
""", stdin=-1)
        self.line(server, "worker")
        self.line(server, "worker")
        self.done(self.python("b", """
answers = []
for i in range(6):
    with socket.create_connection((A, 7101)) as c:
        c.sendall(b"hello")
        answers.append(all_of(c, 6))
assert set(answers) == {b"0hello", b"1hello"}, answers
"""))
        server.stdin.write("\n")
        server.stdin.flush()
        self.done(server)

    def test_other_user(self):
        """Children of root's server that became another user listen on its port, and serve a connection that it accepted."""
        if os.geteuid() != 0:
            self.skipTest("only root becomes another user")
        self.pair("""
def child(what):
    pid = os.fork()
    if pid == 0:
        os.setgid(65534)
        os.setuid(65534)
        what()
        os._exit(0)
    return pid
def serve(c):
    c.sendall(b"%d" % os.getuid())
    assert all_of(c, 2) == b"ok"
    c.close()
def accept():
    e = select.epoll()
    e.register(s, select.EPOLLIN)
    say("ready")
    serve(s.accept()[0])
served = socket.create_server((A, 7110))
s = socket.create_server((A, 7109))
pid = child(accept)
c, _ = served.accept()
pids = pid, child(lambda: serve(c))
c.close()
for pid in pids:
    assert os.waitpid(pid, 0)[1] == 0
""", """
for port in (7109, 7110):
    with socket.create_connection((A, port)) as c:
        assert all_of(c, 5) == b"65534"
        c.sendall(b"ok")
        assert c.recv(1) == b""
""")

    def test_nginx(self):
        """nginx: a master process that listens, and two workers, of another user if root runs it. Each byte of a file; requests of wrk, with connections kept and anew; new workers on SIGHUP."""
        need("nginx")
        need("wrk")
        data = random.Random(1).randbytes(3 << 20)
        top = self.dir.name
        os.mkdir(os.path.join(top, "www"))
        os.chmod(top, 0o755)
        for name, some in (("large", data), ("small", data[:1000])):
            with open(os.path.join(top, "www", name), "wb") as f:
                f.write(some)
        path = os.path.join(top, "nginx.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write(NGINX.format(top=top, user="user nobody nogroup;" if os.getuid() == 0 else ""))
        server = self.on("a", "nginx", "-p", top, "-e", "stderr", "-c", path)
        client = FETCH.format(sum=len(data))
        self.done(self.python("b", client))
        for options in ((), ("-H", "Connection: close")):
            out = " 0 requests in"
            while " 0 requests in" in out: # a busy machine may have no time for wrk
                out = self.done(self.on("b", "wrk", "-t", "1", "-c", "10", "-d", "1", "--timeout", "60", *options, f"http://{A}:7102/small"))
            self.assertRegex(out, r" \d+ requests in")
            self.assertNotRegex(out, "Socket errors|Non-2xx")
        server.send_signal(signal.SIGHUP)
        self.done(self.python("b", client))
        server.send_signal(signal.SIGQUIT)
        self.done(server)

    # ---- a connection that a child serves

    def test_forking(self):
        """A server that makes a child for each connection: bytes both ways at once, and half-close."""
        self.pair("""
import socketserver
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)
s = socketserver.ForkingTCPServer((A, 7103), Echo)
say("ready")
for _ in range(6):
    s.handle_request()
s.server_close()
""", """
import random
def one(seed):
    data = random.Random(seed).randbytes(300000)
    with socket.create_connection((A, 7103)) as c:
        def send():
            c.sendall(data)
            c.shutdown(socket.SHUT_WR)
        t = threading.Thread(target=send)
        t.start()
        assert all_of(c, len(data)) == data
        assert c.recv(1) == b""
        t.join()
    done.append(seed)
done = []
threads = [threading.Thread(target=one, args=(i,)) for i in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
one(4)
one(5)
assert sorted(done) == list(range(6)), done
""")

    def test_first_use(self):
        """An accepted connection is that of the process that uses it first: parent, child, or child of a child. The last one to close ends it."""
        self.pair("""
s = socket.create_server((A, 7104))
say("ready")
def accept():
    return s.accept()[0]
def child(what):
    pid = os.fork()
    if pid == 0:
        what()
        os._exit(0)
    return pid
def serve(word):
    c.sendall(word)
    assert all_of(c, 2) == b"ok"
    c.close()
c = accept()
assert c.getsockname() == (A, 7104) and c.getpeername()[0] == B
os.waitpid(child(c.close), 0)
serve(b"parent")
c = accept()
child(lambda: child(lambda: serve(b"child")))
c.close()
c = accept()
pid = child(c.close)
c.close()
os.waitpid(pid, 0)
c = accept()
r, w = os.pipe()
def first():
    c.sendall(b"mine")
    os.write(w, b"x")
    assert all_of(c, 2) == b"ok"
    c.close()
pid = child(first)
assert os.read(r, 1) == b"x"
fails(lambda: c.send(b"theirs"), errno.ENOTCONN)
c.close()
assert os.waitpid(pid, 0)[1] == 0
""", """
def answered(word):
    with socket.create_connection((A, 7104)) as c:
        if word:
            assert all_of(c, len(word)) == word
            c.sendall(b"ok")
        assert c.recv(1) == b"", word
for word in (b"parent", b"child", b"", b"mine"):
    answered(word)
""")

    def test_gave_up(self):
        """The peer of an accepted connection ends before the first use: the connection was broken, as the kernel says it."""
        path = os.path.join(self.dir.name, "wait")
        server = self.python("a", f"""
s = socket.create_server((A, 7111))
say("ready")
# The answer may have gone out before the peer's end was known.
for call, errors in ((lambda: c.recv(1), (errno.ECONNRESET,)), (lambda: c.send(b"x"), (errno.ECONNRESET, errno.EPIPE))):
    c, _ = s.accept()
    say("accepted")
    while os.path.exists({path!r}): # a read would answer the peer
        time.sleep(0.01)
    p = select.poll()
    p.register(c, select.POLLIN)
    assert p.poll()
    fails(call, *errors)
    c.close()
    say("told")
""")
        self.line(server, "ready")
        for _ in range(2):
            with open(path, "w", encoding="utf-8"):
                pass
            client = self.python("b", "socket.create_connection((A, 7111))")
            self.line(server, "accepted")
            client.kill()
            client.communicate()
            os.unlink(path)
            self.line(server, "told")
        self.done(server)

    def test_zerocopy(self):
        """A connection of urnic's has no notices of MSG_ZEROCOPY: the option fails, and a send that wants one says ENOBUFS, behind which programs copy."""
        self.pair("""
s = socket.create_server((A, 7112))
s.setsockopt(socket.SOL_SOCKET, 60, 1) # SO_ZEROCOPY, which connections inherit
say("ready")
c, _ = s.accept()
fails(lambda: c.send(b"none", 0x4000000), errno.ENOBUFS)
fails(lambda: c.setsockopt(socket.SOL_SOCKET, 60, 1), errno.EOPNOTSUPP)
c.setsockopt(socket.SOL_SOCKET, 60, 0)
c.send(b"copied", 0x4000000) # MSG_ZEROCOPY without the option is nothing
assert all_of(c, 2) == b"ok"
""", """
c = socket.socket()
c.setsockopt(socket.SOL_SOCKET, 60, 1)
c.connect((A, 7112))
fails(lambda: c.send(b"ok", 0x4000000), errno.ENOBUFS)
c.send(b"ok")
assert all_of(c, 6) == b"copied"
""")

    def test_exit(self):
        """A child closes its connection and ends by _exit() while its peer is stopped: the peer gets a connection and its end."""
        server = self.python("a", """
s = socket.create_server((A, 7107))
say("ready")
c, _ = s.accept()
pid = os.fork()
if pid == 0:
    sys.stdin.readline()
    c.close()
    say("closed")
    os._exit(3)
c.close()
say("taken")
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
""", stdin=-1)
        self.line(server, "ready")
        client = self.python("b", "assert socket.create_connection((A, 7107)).recv(1) == b''")
        self.line(server, "taken")
        client.send_signal(signal.SIGSTOP)
        server.stdin.write("\n")
        server.stdin.flush()
        self.line(server, "closed")
        time.sleep(0.5) # a child that does not wait is gone
        client.send_signal(signal.SIGCONT)
        self.done(client)
        self.done(server)

    def test_kept(self):
        """A child ends without a use of its parent's connection: the parent's next wait answers the peer, as if there had been no child."""
        self.pair("""
s = socket.create_server((A, 7108))
say("ready")
for what in (lambda: c.close(), lambda: os.execvp("true", ["true"]), lambda: None, lambda: sys.exit(0)):
    c, _ = s.accept()
    pid = os.fork()
    if pid == 0:
        what()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    d, _ = s.accept() # the peer asks for it when it has the first one
    c.sendall(b"c")
    d.sendall(b"d")
    c.close()
    d.close()
""", """
for _ in range(4):
    with socket.create_connection((A, 7108)) as c, socket.create_connection((A, 7108)) as d:
        assert all_of(c, 1) + all_of(d, 1) == b"cd"
""")

    def test_socat_fork(self):
        """socat makes a child for each connection, which starts a shell before it looks at the connection."""
        need("socat")
        server = self.on("a", "socat", "-T", "30", f"TCP4-LISTEN:7105,bind={A},fork", "SYSTEM:cat")
        for text in ("one\n", "two\n" * 50000):
            client = self.on("b", "socat", "-T", "30", "-t", "20", "STDIO", f"TCP4:{A}:7105,retry=400,interval=0.1", stdin=-1)
            out, err = client.communicate(text, timeout=tcp_common.SECONDS)
            self.assertEqual((client.returncode, out == text), (0, True), (err, len(out)))
        server.terminate()
        self.done(server, 143)

    # ---- threads

    def test_memcached(self):
        """memcached hands each connection to one of its threads: values of other sizes than buffers, and memcslap's load."""
        need("memcached")
        need("memcslap")
        server = self.on("a", "memcached", "-l", A, "-p", "7106", "-U", "0", "-t", "2", *(["-u", "root"] if os.getuid() == 0 else []))
        self.done(self.python("b", MEMCACHED))
        self.done(self.on("b", "memcslap", f"--servers={A}:7106", "--concurrency=8", "--execute-number=200", "--test=get"))
        server.terminate()
        self.done(server)


class Both(tcp_common.Tcp):
    """Node a has an address of this host's, so that the kernel reaches a's programs, too."""

    def setUp(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            try:
                s.connect(("192.0.2.1", 9)) # sends nothing
                self.own = s.getsockname()[0]
            except OSError:
                self.own = "127.0.0.1"
        if self.own.startswith("127."):
            self.skipTest("this host has no address but the loopback")
        super().setUp()

    def config(self, **lines):
        path = super().config(**lines)
        net, _, last = self.own.rpartition(".")
        with open(path, encoding="utf-8") as f:
            text = f.read().replace("10.0.0.1", self.own).replace("10.0.0.2", f"{net}.{1 + int(last) % 250}")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def test_exec(self):
        """A connection that goes to an executed program is the kernel's: the peer's connect finds that out, and no byte is lost."""
        port = free_port()
        server = self.python("a", f"""
import subprocess
s = socket.create_server(("0.0.0.0", {port}))
say("ready")
c, peer = s.accept()
pid = os.fork()
if pid == 0:
    os.dup2(c.fileno(), 0)
    os.dup2(c.fileno(), 1)
    os.execvp("cat", ["cat"])
c.close()
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0 # no connection
c, peer = s.accept()
assert peer[0] == "{self.own}", peer
subprocess.run(["cat"], stdin=c, stdout=c, check=True)
""")
        self.line(server, "ready")
        self.done(self.python("b", f"""
c = socket.create_connection(("{self.own}", {port}))
c.sendall(b"through cat")
c.shutdown(socket.SHUT_WR)
assert all_of(c, 11) == b"through cat"
assert c.recv(1) == b""
"""))
        self.done(server)

    def test_ssh(self):
        """sshd executes itself anew for each connection, and serves it by several processes: the kernel's TCP. Each byte of a file by sftp."""
        for program in ("/usr/sbin/sshd", "sftp", "ssh-keygen"):
            need(program)
        root = os.getuid() == 0
        if root:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True) # sshd wants it
        top = self.dir.name
        os.chmod(top, 0o755)
        port = free_port()
        path = {name: os.path.join(top, name) for name in ("host", "user", "conf", "data", "copy")}
        for name in ("host", "user"):
            self.done(self.on(None, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path[name]))
        with open(path["data"], "wb") as f:
            f.write(random.Random(2).randbytes(3 << 20))
        with open(path["conf"], "w", encoding="utf-8") as f:
            f.write(SSHD.format(port=port, host=path["host"], user=path["user"], pam="no" if root else "yes"))
        server = self.on("a", "/usr/sbin/sshd", "-D", "-e", "-f", path["conf"])
        line = ""
        while "listening on" not in line:
            line = server.stderr.readline()
            self.assertNotEqual(line, "", "sshd has ended")
        options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "IdentitiesOnly=yes")
        client = self.on("b", "sftp", "-q", "-b", "-", "-F", "none", *(w for o in options for w in ("-o", o)), "-i", path["user"],
                         "-P", str(port), self.own, stdin=-1)
        out, err = client.communicate(f"get {path['data']} {path['copy']}\n", timeout=tcp_common.SECONDS)
        self.assertEqual(client.returncode, 0, (out, err))
        with open(path["data"], "rb") as f, open(path["copy"], "rb") as g:
            self.assertEqual(f.read(), g.read())
        server.terminate()
        self.done(server)


SSHD = """
Port {port}
ListenAddress 0.0.0.0
HostKey {host}
AuthorizedKeysFile {user}.pub
StrictModes no
UsePAM {pam}
PasswordAuthentication no
PidFile none
Subsystem sftp internal-sftp
"""

NGINX = """
daemon off;
{user}
worker_processes 2;
pid {top}/nginx.pid;
error_log stderr notice;
events {{ worker_connections 100; }}
http {{
    access_log off;
    sendfile on;
    client_body_temp_path {top}/t1; proxy_temp_path {top}/t2; fastcgi_temp_path {top}/t3; uwsgi_temp_path {top}/t4; scgi_temp_path {top}/t5;
    server {{ listen 10.0.0.1:7102; root {top}/www; }}
}}
"""

MEMCACHED = """
import random
def connect():
    end = time.time() + 40
    while True:
        try:
            return socket.create_connection((A, 7106), 40)
        except ConnectionRefusedError:
            assert time.time() < end
            time.sleep(0.05)
c = [connect() for _ in range(10)]
for i, s in enumerate(c):
    value = random.Random(i).randbytes((1, 16384, 16385, 500000)[i % 4])
    s.sendall(b"set k%d 0 0 %d\\r\\n" % (i, len(value)) + value + b"\\r\\n")
    assert all_of(s, 8) == b"STORED\\r\\n"
for i in range(10):
    value = random.Random(i).randbytes((1, 16384, 16385, 500000)[i % 4])
    want = b"VALUE k%d 0 %d\\r\\n" % (i, len(value)) + value + b"\\r\\nEND\\r\\n"
    s = c[9 - i]
    s.sendall(b"get k%d\\r\\n" % i)
    assert all_of(s, len(want)) == want
"""

FETCH = """
import hashlib, http.client, random
want = random.Random(1).randbytes({sum})
end = time.time() + 40
while True:
    try:
        h = http.client.HTTPConnection(A, 7102, timeout=40)
        h.request("GET", "/large")
        break
    except ConnectionRefusedError:
        assert time.time() < end
        time.sleep(0.05)
for i in range(3):
    assert h.getresponse().read() == want
    h.request("GET", "/large")
h.close()
"""


if __name__ == "__main__":
    tcp_common.Tcp.NICD, tcp_common.Tcp.RUN, tcp_common.Tcp.CONFIG = map(os.path.abspath, sys.argv[1:4])
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=2)
