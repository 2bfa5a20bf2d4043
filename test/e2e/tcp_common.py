# SPDX-License-Identifier: BSD-3-Clause
"""Programs with TCP sockets on the two nodes of one urnicd."""

import subprocess

import hang
import urnicd_common

SECONDS = 60
PYTHON = "/usr/bin/python3"

# The begin of each Python program.
HEAD = """
import errno, os, select, socket, sys, threading, time
A, B = "10.0.0.1", "10.0.0.2"
def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\\n") # a line at once: threads of a program tell, too
    sys.stdout.flush()
def fails(what, *numbers):
    try:
        what()
    except OSError as e:
        assert e.errno in numbers, e
        return
    raise AssertionError(f"none of {numbers}")
def all_of(s, n):
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        assert more, len(data)
        data += more
    return data
"""


class Tcp(urnicd_common.Nicd):
    RUN = None # urnic-run; set by the script

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

    def on(self, node, *command, stdin=None, text=True, **env):
        """Start a program on a node; None: without urnic."""
        run = [self.RUN, "--sockets", "--node", node] if node else []
        p = subprocess.Popen([*run, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=stdin, text=text,
                             env={**self.env, **env})
        self.running.append(p)
        return p

    def python(self, node, text, **env):
        return self.on(node, PYTHON, "-c", HEAD + text, **env)

    def line(self, p, want):
        """Read lines until one has the words."""
        line = said = ""
        while want not in line:
            line = p.stdout.readline() # setUp()'s watch ends a test that hangs
            said += line
            self.assertNotEqual(line, "", said + (p.stderr.read() if p.poll() is not None else ""))
        return said

    def done(self, p, code=0):
        """Wait for a program's end. returns: its output"""
        try:
            out, err = p.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            p.kill()
            self.fail(("the program hangs", p.args, p.communicate()))
        self.assertEqual(p.returncode, code, (out, err))
        return out

    def pair(self, server, client, nodes="ab", **env):
        """Run a server that says "ready", then a client; both end well."""
        s = self.python(nodes[0], server, **env)
        self.line(s, "ready")
        c = self.python(nodes[1], client, **env)
        return self.done(s), self.done(c)
