# SPDX-License-Identifier: BSD-3-Clause
"""Programs built for RDMA hardware, as Debian's packages have them, between two nodes of one urnicd."""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys

import hang
import urnicd_common
from ports import free_port # for the tests, too

SECONDS = 60
TRIES = 3
NOBODY = 65534
HUGE = "/proc/sys/vm/nr_hugepages"

# meson puts the folders of libraries there; urnic-run has to do without, and urnicd needs the system's libibverbs.so.1.
os.environ.pop("LD_LIBRARY_PATH", None)


def ordinary_user(program):
    """Become an ordinary user for good, if this is root and that user can run what was built."""
    if os.geteuid() != 0:
        return
    try:
        subprocess.run([program, "--version"], user=NOBODY, group=NOBODY, extra_groups=[], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        print(f"root runs all programs, because an ordinary user can't run {program}", file=sys.stderr)
        return
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def change_huge_pages(n):
    """Ask for n huge pages more, or fewer, while no other such test does. returns: by how many there are more"""
    with open(HUGE, "r+", encoding="ascii") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        before = int(f.read())
        f.seek(0)
        f.write(str(max(0, before + n)))
        f.flush()
        f.seek(0)
        return int(f.read()) - before


def huge_pages():
    """Have a few huge pages for the rest of the test, if this is root: the caller goes on in a child, and root stays to give
    them back."""
    try:
        more = change_huge_pages(4)
    except (OSError, ValueError):
        return
    pid = os.fork()
    if pid == 0:
        return
    for signum in (signal.SIGINT, signal.SIGTERM): # the child ends by them
        signal.signal(signum, signal.SIG_IGN)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    change_huge_pages(-more)
    sys.exit(code if code >= 0 else 1)


def listens(port):
    """True when a process listens on a TCP port of this host."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="utf-8") as f:
            if re.search(rf":{port:04X} [0-9A-F]+:0000 0A ", f.read()):
                return True
    return False


class Dropin(urnicd_common.Nicd):
    RUN = CTL = None  # set by the script

    def setUp(self):
        super().setUp()
        self.env["URNIC_SOCKET"] = self.socket
        self.nicd, _ = self.start()

    def tearDown(self):
        if self.nicd.poll() is None:
            for p in self.running[:]:
                if p is not self.nicd:
                    hang.end(p)
                    self.running.remove(p)
            code, err = self.stop(self.nicd)
            self.assertEqual(code, 0, err)
        super().tearDown()

    def show(self, *what):
        """returns: the answer of "urnicctl show", a dict for each port or adapter"""
        out = subprocess.run([self.CTL, "--json", "show", *what], env=self.env, capture_output=True, text=True, check=True).stdout
        return json.loads(out)

    def ranks(self):
        """returns: the command for a starter of parallel programs, in front of the program: each rank is on its node"""
        return [self.RUN, "--node", "a,b"]

    def again(self, **lines):
        """Start urnicd anew, with more lines in its configuration."""
        code, err = self.stop(self.nicd)
        self.assertEqual(code, 0, err)
        self.running.remove(self.nicd)
        self.nicd, _ = self.start(**lines)

    def on(self, node, *command):
        """Start a program on a node; its messages are part of its output."""
        p = subprocess.Popen([self.RUN, "--node", node, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, env=self.env)
        self.running.append(p)
        return p

    def ends(self, p):
        """Wait for a program's end. returns: its exit code and output"""
        try:
            out, _ = p.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            where = hang.told(hang.family(os.getpid()))
            self.fail(f"{p.args[3:]} hangs: {hang.end(p)}\n{where}")
        finally:
            self.running.remove(p)
        return p.returncode, out

    def reads(self, p, word):
        """Read a program's output up to a word; the rest stays in the pipe. returns: the output"""
        seen = b""
        while word.encode() not in seen:
            byte = os.read(p.stdout.fileno(), 1)
            self.assertNotEqual(byte, b"", (word, seen))
            seen += byte
        return seen.decode()

    def unlucky(self, _code, _out):
        """True when a program failed, with that code and output, for a reason that is the wire's, and may run again."""
        return False

    def begin(self, *command):
        """Start a program on a, which waits, and again on b, which connects to it. returns: server and client"""
        port = str(free_port())
        server = self.on("a", *command, "-p", port)
        self.until(lambda: listens(int(port)) or server.poll() is not None)
        return server, self.on("b", *command, "-p", port, "127.0.0.1")

    def pair(self, *command):
        """Run a program on a, and again on b. returns: the output of each"""
        for _ in range(TRIES):
            server, client = self.begin(*command)
            both = [self.ends(client), self.ends(server)]
            codes = [code for code, _ in both]
            if 0 not in codes or not any(self.unlucky(*one) for one in both):
                break
        self.assertEqual(codes, [0, 0], (command, both))
        return both[1][1], both[0][1]

    def refused(self, *command):
        """Run a program that ends with an error. returns: its output"""
        code, out = self.ends(self.on("a", *command, "-p", str(free_port())))
        self.assertNotEqual(code, 0, out)
        self.assertGreater(code, 0, out)  # no signal
        return out
