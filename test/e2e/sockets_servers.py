#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified servers on streams of urnic's, by urnic-run --sockets: those that make processes by fork(), and those with
threads (SF-1, SF-10).

usage: sockets_servers.py urnicd urnic-run CONFIG_FOLDER [TEST...]

Two nodes, a (10.0.0.1) and b (10.0.0.2), in one urnicd. Neither address is the kernel's, so that bytes
that arrive can have come by urnic only."""

import os
import random
import re
import shutil
import signal
import sys
import unittest

import tcp_common

A = "10.0.0.1"


def need(program):
    if shutil.which(program) is None:
        raise unittest.SkipTest(f"{program} is missing: scripts/setup.sh --test installs it")


class Servers(tcp_common.Tcp):
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

    def test_nginx(self):
        """nginx: a master process that listens, and two workers. Each byte of a file; requests of wrk, with connections kept and anew; new workers on SIGHUP."""
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
            f.write(NGINX.format(top=top, user="user root;" if os.getuid() == 0 else ""))
        server = self.on("a", "nginx", "-p", top, "-e", "stderr", "-c", path)
        client = FETCH.format(sum=len(data))
        self.done(self.python("b", client))
        for options in ((), ("-H", "Connection: close")):
            out = self.done(self.on("b", "wrk", "-t", "1", "-c", "10", "-d", "1", *options, f"http://{A}:7102/small"))
            self.assertRegex(out, r"[1-9]\d* requests in", out)
            self.assertNotRegex(out, "Socket errors|Non-2xx", out)
        server.send_signal(signal.SIGHUP)
        self.done(self.python("b", client))
        server.send_signal(signal.SIGQUIT)
        self.done(server)


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
    Servers.NICD, Servers.RUN, Servers.CONFIG = map(os.path.abspath, sys.argv[1:4])
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=2)
