#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic-top prints the right figures, as text, as JSON and on a terminal; it restores the terminal,
and says when no urnicd is there, or another program in its place."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
import unittest

sys.dont_write_bytecode = True  # no cache of urnicd_common
from urnicd_common import Nicd, SECONDS

TOP = None


class Top(Nicd):
    def setUp(self):
        super().setUp()
        self.env["TMPDIR"] = self.run

    def top(self, *args, code=0, **kwargs):
        p = subprocess.run([TOP, *args], env=self.env, capture_output=True, text=True, timeout=SECONDS,
                           check=False, stdin=subprocess.DEVNULL, **kwargs)
        self.assertEqual(p.returncode, code, p.stdout + p.stderr)
        return p.stdout if code == 0 else p.stderr

    def busy(self):
        p = self.popen(self.PERF, "write_bw", "--attach", self.socket, "--duration", "60", "--qps", "2")
        self.assertTrue(self.until(lambda: self.json()["adapters"][0]["tx_packets_per_s"] > 0))
        return p

    def json(self, *args):
        return json.loads(self.top("--once", "--json", "--interval", "0.1", *args))

    def carries(self, table, row, rate, *args):
        """Wait until a rate is not 0: on a busy machine nothing may have run for an interval. returns: all figures of that interval"""
        got = self.until(lambda: (v := self.json(*args))[table][row][rate] > 0 and v)
        self.assertTrue(got, (table, row, rate))
        return got

    def test_json(self):
        nicd, _ = self.start()
        idle = self.json()
        self.assertEqual([a["adapter"] for a in idle["adapters"]], ["a0", "b0"])
        self.assertEqual(idle["clients"], [])
        perf = self.busy()
        v = self.carries("adapters", 0, "tx_packets_per_s")
        a = v["adapters"][0]
        self.assertEqual((a["node"], a["link"], a["qps"], a["clients"]), ("a", True, 2, 1))
        self.assertGreater(a["tx_bits_per_s"], 8 * a["tx_packets_per_s"])
        self.carries("adapters", 1, "rx_packets_per_s")
        v = self.carries("engines", 0, "load")
        self.assertLessEqual(v["engines"][0]["load"], 1)
        self.assertEqual({c["pid"] for c in v["clients"]}, {perf.pid})
        self.assertEqual([s["port"] for s in v["switches"]], ["wire:a0", "wire:b0"])
        self.assertEqual([(p["pid"], p["clients"], p["qps"]) for p in v["programs"]], [(perf.pid, 2, 4)])
        self.assertEqual(v["qps"], [])  # only where they are asked for
        v = self.carries("qps", 0, "tx_psns_per_s", "--view", "qps", "--sort", "tx")
        self.assertEqual(sorted((q["adapter"], q["state"], q["pid"]) for q in v["qps"]),
                         2 * [("a0", "RTS", perf.pid)] + 2 * [("b0", "RTS", perf.pid)])
        self.assertEqual(self.stop(nicd)[0], 0)

    def test_lines_of_json_until_a_signal(self):
        nicd, _ = self.start()
        p = self.popen(TOP, "--json", "--interval", "0.1")
        for _ in range(3):
            self.assertEqual(len(json.loads(p.stdout.readline())["engines"]), 1)
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.communicate(timeout=SECONDS)[1], "")
        self.assertEqual(p.returncode, 128 + signal.SIGTERM)
        self.assertEqual(self.stop(nicd)[0], 0)

    def test_text_and_drops(self):
        """Packets that b0 drops because the wire corrupted them have a row with the reason; so do the wire's losses."""
        nicd, _ = self.start(eal="file_prefix = top", wire="impair a0.in = corrupt=20%, drop=1%, seed=5")
        self.busy()
        self.assertTrue(self.until(lambda: "drop_icrc" in self.json()["adapters"][1]["drops"] and
                                   self.json()["switches"][0]["drops"] > 0))
        text = self.top("--once", "--interval", "0.2", "--file-prefix", "top")
        self.assertRegex(text, re.compile(r"^DROPS OF +REASON +PER s +TOTAL$", re.M))
        self.assertRegex(text, re.compile(r"^b0 +drop_icrc +\d+\.\d +[1-9]\d*$", re.M))
        self.assertRegex(text, re.compile(r"^wire:a0 +up .* [1-9]\d*$", re.M))
        for words in (r"^urnicd \S+, DPDK [^:]+: 1 engine, 2 adapters, 2 clients; over",
                      r"^ADAPTER +NODE +LINK", r"^a0 +a +up +2 +1 ", r"^SWITCH PORT", r"^wire:b0 +up ",
                      r"^CLIENT +ADAPTER", r"urnic-perf"):
            self.assertRegex(text, re.compile(words, re.M))
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        text = self.top("--once", "--interval", "0.2", "--view", "programs")
        self.assertRegex(text, re.compile(r"^urnic-perf +\d+ +\d+ +2 +a0,b0 +4 ", re.M))
        self.assertEqual(text, "".join(c for c in text if c == "\n" or c.isprintable()))
        self.assertEqual(self.stop(nicd)[0], 0)

    def read_until(self, fd, pattern):
        """Read from a terminal until the output matches. returns: the output"""
        got, end = "", time.time() + SECONDS
        while not re.search(pattern, got, re.S):
            self.assertLess(time.time(), end, got)
            if select.select([fd], [], [], 1)[0]:
                got += os.read(fd, 65536).decode()
        return got

    def terminal(self, rows=40, columns=100):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        before = termios.tcgetattr(theirs)
        p = subprocess.Popen([TOP, "--interval", "0.1"], stdin=theirs, stdout=theirs, stderr=theirs,
                             env=dict(self.env, TERM="xterm"))
        self.running.append(p)
        return ours, theirs, before, p

    def test_terminal(self):
        nicd, _ = self.start()
        for end in (b"q", signal.SIGINT):
            ours, theirs, before, p = self.terminal(rows=8, columns=30)
            got = self.read_until(ours, r"ENGINE.*ENGINE.*ENGINE")
            self.assertIn("\x1b[?1049h", got)
            screen = got.split("\x1b[H")[-2]
            self.assertLessEqual(screen.count("\r\n"), 7)
            for line in re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", screen).split("\r\n"):
                self.assertLessEqual(len(line), 30)
            if isinstance(end, bytes):
                os.write(ours, end)
            else:
                p.send_signal(end)
            self.read_until(ours, r"\x1b\[\?1049l")
            self.assertEqual(p.wait(timeout=SECONDS), 0 if isinstance(end, bytes) else 128 + end)
            self.assertEqual(termios.tcgetattr(theirs), before)
            os.close(ours)
            os.close(theirs)
        self.assertEqual(self.stop(nicd)[0], 0)

    def test_two_signals_that_mean_one(self):
        """A second signal soon after the first does not keep urnic-top from restoring the terminal."""
        nicd, _ = self.start()
        ours, theirs, before, p = self.terminal()
        self.read_until(ours, "ENGINE")
        p.send_signal(signal.SIGSTOP)
        os.waitpid(p.pid, os.WUNTRACED)
        p.send_signal(signal.SIGHUP)
        p.send_signal(signal.SIGTERM)
        p.send_signal(signal.SIGCONT)
        self.read_until(ours, r"\x1b\[\?1049l")
        self.assertIn(p.wait(timeout=SECONDS), (128 + signal.SIGHUP, 128 + signal.SIGTERM))
        self.assertEqual(termios.tcgetattr(theirs), before)
        os.close(ours)
        os.close(theirs)
        self.assertEqual(self.stop(nicd)[0], 0)

    def test_dumb_terminal(self):
        ours, theirs = pty.openpty()
        p = subprocess.run([TOP], stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, text=True, timeout=SECONDS,
                           env=dict(self.env, TERM="dumb"), check=False)
        self.assertEqual(p.returncode, 2)
        self.assertIn("TERM=dumb", p.stderr)
        self.assertFalse(select.select([ours], [], [], 0)[0])
        os.close(ours)
        os.close(theirs)

    def test_dataplane_ends(self):
        nicd, _ = self.start()
        ours, theirs, before, p = self.terminal()
        self.read_until(ours, "ENGINE")
        self.assertEqual(self.stop(nicd)[0], 0)
        self.read_until(ours, r"urnic-top: .*has ended")
        self.assertEqual(p.wait(timeout=SECONDS), 1)
        self.assertEqual(termios.tcgetattr(theirs), before)
        os.close(ours)
        os.close(theirs)

    def test_nobody(self):
        """Each place is named, with what is wrong there."""
        mine = os.path.join(self.run, "dpdk")
        self.assertRegex(self.top("--once", code=1), f"(?s)no dataplane found: start urnicd, .*\n  {re.escape(mine)}: not there\n.*  /run/urnic/dpdk: ")
        for name in ("left", "other"):
            os.makedirs(os.path.join(mine, name))
        left = os.path.join(mine, "left", "dpdk_telemetry.v2")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.bind(left)
        self.assertIn(f"\n  {left}: nobody listens there any more", self.top("--once", code=1))
        if os.geteuid():
            os.chmod(mine, 0)
            self.assertRegex(self.top("--once", code=1), f"\n  {re.escape(mine)}: closed to user {os.geteuid()}: it is of user {os.geteuid()} and group \d+, mode 0000")
            os.chmod(mine, 0o700)
        else:
            os.chmod(self.dir.name, 0o755)
            os.chmod(self.run, 0o755)
            os.chmod(mine, 0o700)
            p = subprocess.run([TOP, "--once"], env=dict(self.env, XDG_RUNTIME_DIR=self.run, RUNTIME_DIRECTORY=self.run), capture_output=True, text=True,
                               timeout=SECONDS, user=65534, group=65534, extra_groups=[], check=False)
            self.assertRegex(p.stderr, f"\n  {re.escape(mine)}: (closed to user 65534: it is of user 0 and group \d+, mode 0700|a folder on the way)")
        self.assertIn("No such file", self.top("--once", "--socket", "/nowhere", code=1))
        self.assertIn(os.path.join(self.run, "dpdk", "x"), self.top("--once", "--file-prefix", "x", code=1))

    def test_frozen(self):
        """A urnicd that is stopped is not one that is not there."""
        nicd, _ = self.start()
        nicd.send_signal(signal.SIGSTOP)
        os.waitpid(nicd.pid, os.WUNTRACED)
        self.env["URNIC_TIMEOUT"] = "1"
        self.assertIn("is urnicd stopped?", self.top("--once", code=1))
        self.env["URNIC_TIMEOUT"] = "soon"
        self.assertIn("URNIC_TIMEOUT is 'soon'", self.top("--once", "--socket", "/nowhere", code=1))
        del self.env["URNIC_TIMEOUT"]
        nicd.send_signal(signal.SIGCONT)
        self.assertEqual(self.stop(nicd)[0], 0)

    def test_sockets_of_urnicd(self):
        """The sockets that programs and urnicctl take are not telemetry's, and are told at once from a urnicd that is stopped."""
        nicd, _ = self.start()
        self.env["URNIC_TIMEOUT"] = str(SECONDS // 2)
        for path in (self.socket, self.socket + ".ctl"):
            said = self.top("--once", "--socket", path, code=1)
            self.assertIn(path, said)
            self.assertIn("for programs or for urnicctl; give DPDK's telemetry socket, dpdk_telemetry.v2", said)
        self.assertEqual(self.stop(nicd)[0], 0)

    def test_several(self):
        a, _ = self.start(eal="file_prefix = one")
        first = self.socket
        self.socket += "2"
        b, _ = self.start(eal="file_prefix = two")
        said = self.top("--once", code=1)
        for words in ("several", f"process {a.pid}", f"process {b.pid}", "--socket"):
            self.assertIn(words, said)
        self.top("--once", "--interval", "0.1", "--file-prefix", "two")
        for p in (b, a):
            p.send_signal(signal.SIGTERM)
            p.communicate(timeout=SECONDS)
        self.assertFalse(os.path.exists(first))

    def test_somebody_else(self):
        """A socket of another program is told from urnicd's, and its text is never shown raw."""
        path = os.path.join(self.run, "s")
        for hello, words in ((b"x", "no telemetry to be had"), (b"[]", "no telemetry to be had"),
                             (b"", "hung up without a word: ten others"),
                             (b'{"max_output_len": 16384, "pid": 1}', "no sense|has ended|does not answer")):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
                s.bind(path)
                s.listen(1)

                def serve(s=s, hello=hello):
                    c, _ = s.accept()
                    with c:
                        c.send(hello)
                        try:
                            if c.recv(1000):
                                c.send(b'{"no": 1}')
                        except OSError:
                            pass
                t = threading.Thread(target=serve)
                t.start()
                self.assertRegex(self.top("--once", "--socket", path, code=1), words)
                t.join()
            os.unlink(path)

    def test_usage(self):
        self.assertIn("--interval", self.top("--help"))
        self.assertRegex(self.top("--version"), r"^urnic-top \d")
        for args in ((), ("--view", "x", "--once"), ("--sort", "x", "--once"), ("--color", "x", "--once"),
                     ("--interval", "0", "--once"), ("--interval", "x", "--once"), ("--nonsense",), ("x",),
                     ("--socket", "a", "--file-prefix", "b")):
            self.top(*args, code=2)


if __name__ == "__main__":
    TOP, Nicd.NICD, Nicd.PERF, Nicd.CONFIG = map(os.path.abspath, sys.argv[1:5])
    del sys.argv[1:5]
    unittest.main()
