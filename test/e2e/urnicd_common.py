# SPDX-License-Identifier: BSD-3-Clause
"""A urnicd with two nodes for a test case, which must leave nothing behind."""

import json
import os
import signal
import subprocess
import tempfile
import time
import unittest

import hang

SECONDS = 60
# Seconds of a program that has to run when its test is over, which ends it: far beyond what the test waits for.
LONG = "3600"


class Nicd(unittest.TestCase):
    NICD = PERF = CONFIG = None  # set by the script
    QUIET = "log = off\n"  # tests read what urnicd says besides

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(prefix="urnic-test.")
        self.socket = os.path.join(self.dir.name, "nicd.sock")
        self.running = []
        self.watch = hang.Watch(self.id())
        # DPDK's and our own runtime files lie where the test can see them.
        self.run = os.path.join(self.dir.name, "run")
        os.mkdir(self.run, 0o700)
        self.env = dict(os.environ, XDG_RUNTIME_DIR=self.run, RUNTIME_DIRECTORY=self.run)

    def tearDown(self):
        for p in self.running:
            hang.end(p)
        self.watch.stop()
        self.dir.cleanup()

    def config(self, daemon="", eal="", wire="", a0="", b0=""):
        """two-nodes.ini with a socket of our own, engines that yield their core, and more lines for its sections."""
        path = os.path.join(self.dir.name, "c.ini")
        with open(os.path.join(self.CONFIG, "two-nodes.ini"), encoding="utf-8") as f:
            text = f.read().replace("[switch wire]\n", f"[switch wire]\n{wire}\n")
            for name, lines in (("a0", a0), ("b0", b0)):
                text = text.replace(f"[adapter {name}]\n", f"[adapter {name}]\n{lines}\n")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[urnicd]\nsocket = {self.socket}\n{self.QUIET}idle = pause\nempty_polls = 4\n{daemon}\n"
                    f"[eal]\n{eal}\n{text}")
        return path

    def popen(self, *args, **kwargs):
        p = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=self.env, **kwargs)
        self.running.append(p)
        return p

    def start(self, **lines):
        """Start urnicd. returns: the process, and its messages before it listened"""
        p = self.launch(**lines)
        return p, self.listens(p)

    def launch(self, **lines):
        """Start urnicd, and do not wait for it."""
        return self.popen(self.NICD, "-c", self.config(**lines), cwd=self.dir.name)

    def listens(self, p):
        """Wait until a urnicd listens. returns: its messages before that"""
        said = ""
        while True:
            line = p.stderr.readline()
            self.assertNotEqual(line, "", said)
            if "listening at" in line:
                return said
            said += line

    def stop(self, p, sig=signal.SIGTERM):
        p.send_signal(sig)
        out, err = p.communicate(timeout=SECONDS)
        self.assertEqual(out, "")
        self.assertEqual(os.listdir(self.run), [], "left in the folder of runtime files")
        self.assertFalse(os.path.exists(self.socket))
        return p.returncode, err

    def perf(self, op, *args):
        p = subprocess.run([self.PERF, op, "--attach", self.socket, "--json", *args], env=self.env,
                           capture_output=True, text=True, timeout=SECONDS, check=False)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)

    def until(self, what, seconds=SECONDS):
        """Wait until what() is true. returns: the last value of what(), a false one after that many seconds"""
        end = time.time() + seconds
        while True:
            got = what()
            if got or time.time() > end:
                return got
            time.sleep(0.02)
