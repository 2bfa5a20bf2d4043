#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnicctl with commands from a file or a pipe, and counters that people clear while Prometheus and
telemetry go on."""

import json
import os
import re
import socket
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True  # no cache of urnicd_common
from urnicd_common import LONG, Nicd, SECONDS
import urnicd_prometheus

CTL = None


class More(urnicd_prometheus.Prometheus):
    # The tests of that class run in its own file.
    locals().update({name: None for name in dir(urnicd_prometheus.Prometheus) if name.startswith("test_")})

    def ctl(self, *args, text=None):
        return subprocess.run([CTL, "--socket", self.socket, *args], env=self.env, capture_output=True, text=True,
                              input=text, timeout=SECONDS, check=False)

    def ask(self, *words):
        p = self.ctl("--json", *words)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout or "[]")

    def test_commands_of_a_file(self):
        """Each in its order, blank lines and comments aside; from a pipe the same."""
        p = self.start()[0]
        text = "# a comment\n\n  show adapter 'a0'   # another\nsh ver\nimpair wire a0.in drop=1%\nshow port b0"
        path = os.path.join(self.dir.name, "commands")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        want = "".join(self.ctl(*words).stdout for words in (("show", "adapter", "a0"), ("show", "version")))
        for got in (self.ctl("-f", path), self.ctl("--file", "-", text=text)):
            self.assertEqual((got.returncode, got.stderr), (0, ""))
            self.assertTrue(got.stdout.startswith(want), got.stdout)
            self.assertIn("rx_packets", got.stdout[len(want):])
        self.assertIn("drop=", json.dumps(self.ask("show", "switch")))
        got = self.ctl("--json", "-f", "-", text="show version\nshow adapter a0\n")
        first, end = json.JSONDecoder().raw_decode(got.stdout)
        self.assertEqual([list(first[0]), json.loads(got.stdout[end:])[0]["name"]],
                         [list(self.ask("show", "version")[0]), "a0"])
        self.assertEqual(self.stop(p)[0], 0)

    def test_commands_that_fail(self):
        """The line is named, the others are carried out, and the first failure is the exit code."""
        p = self.start()[0]
        for text, code, lines in (("show version\nshow port nix\nshow vlan\nshow version\n", 1, (2, 3)),
                                  ("nonsense\nshow port nix\n", 2, (1, 2)), ("show 'port\nshow version", 2, (1,)),
                                  ("show version\0\n", 2, (1,)), ("quit\n", 1, (1,)),
                                  ("x" * 5000 + "\n", 2, (1,)), ("show port " + "y" * 5000 + "\n", 2, (1,)),
                                  ("a " * 100 + "\n", 2, (1,)), ("", 0, ()), ("\n#\n", 0, ())):
            got = self.ctl("-f", "-", text=text)
            self.assertEqual(got.returncode, code, (text[:40], got.stderr))
            self.assertEqual([w for w in got.stderr.splitlines() if w.endswith(" failed")],
                             [f"urnicctl: line {i} of the standard input failed" for i in lines])
            self.assertEqual("urnic" in got.stdout, "show version\n" in text or text.endswith("show version"), text[:40])
        got = self.ctl("-f", os.path.join(self.dir.name, "none"))
        self.assertEqual(got.returncode, 2)
        self.assertIn("none can't be read: No such file", got.stderr)
        got = self.ctl("-f", self.dir.name)
        self.assertEqual(got.returncode, 2)
        self.assertIn("can't be read: Is a directory", got.stderr)
        got = self.ctl("-f", "-", "show", "version", text="")
        self.assertEqual(got.returncode, 2)
        self.assertIn("not both", got.stderr)
        self.assertEqual(self.stop(p)[0], 0)

    def commands(self):
        """Lines of the table of commands."""
        with open(os.path.join(os.path.dirname(self.CONFIG), "doc", "reference", "urnicctl.md"), encoding="utf-8") as f:
            return [line for line in f if line.startswith("| `show ")]

    def test_places(self):
        """Without a urnicd each place that was looked at is named, and a socket that was left is told from none."""
        env = {**self.env, "URNIC_SOCKET": "", "XDG_RUNTIME_DIR": self.dir.name}
        got = subprocess.run([CTL, "show", "port"], env=env, capture_output=True, text=True, timeout=SECONDS, check=False)
        self.assertEqual(got.returncode, 1)
        if not os.path.exists("/run/urnic"):
            self.assertIn(f"no urnicd at /run/urnic/urnicd.sock, nor at {self.dir.name}/urnic/urnicd.sock: nothing is there; start one", got.stderr)
        plain, left, none = (os.path.join(self.dir.name, name) for name in ("plain", "left", "none"))
        with open(plain, "w", encoding="utf-8"):
            pass
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.bind(left)
        for path, words in ((plain, "the file is no socket; start one"), (left, "its socket is there, and nobody listens any more; start one"),
                            (none, "nothing is there; start one")):
            got = self.ctl("--socket", path, "show", "port")
            self.assertEqual((got.returncode, got.stderr.startswith(f"urnicctl: no urnicd at {path}: {words}")), (1, True), got.stderr)

    def test_near_names(self):
        """A name that nothing has gets the nearest one."""
        files = os.path.join(self.dir.name, "captures")
        os.mkdir(files)
        p = self.start(daemon=f"capture_dir = {files}")[0]
        for words, near in ((("show", "port", "a9"), "a0? 'show port' lists them"), (("show", "adapter", "a9"), "a0? 'show adapter' lists them"),
                            (("show", "qp", "adapter", "a9"), "a0? 'show adapter' lists them"), (("show", "switch", "wyre"), "wire? 'show switch' lists them"),
                            (("show", "qp", "state", "RTZ"), "RTR? there are RESET, "), (("port", "a9", "down"), "a0? 'show port' lists them"),
                            (("set", "adapter", "a9", "window", "9"), "a0? 'show adapter' lists them"), (("impair", "wyre", "a0", "none"), "wire? 'show switch'"),
                            (("impair", "wire", "a9.in", "none"), "a0? write NAME, "), (("impair", "wire", "a0", "drip=1%"), "drop? there are "),
                            (("capture", "start", "a9", "some"), "a0? there are: ")):
            got = self.ctl(*words)
            self.assertNotEqual(got.returncode, 0, words)
            self.assertIn(f"did you mean {near}", got.stderr, words)
        for words, lists in ((("show", "port", "zzzzzz"), "'show port' lists them"), (("show", "switch", "qqqqqq"), "'show switch' lists them")):
            got = self.ctl(*words)
            self.assertIn(lists, got.stderr)
            self.assertNotIn("did you mean", got.stderr)
        self.assertEqual(self.stop(p)[0], 0)

    def test_columns_are_defined(self):
        """Each column that is shown, and each line of one object, stands in the manual's row of that command."""
        files = os.path.join(self.dir.name, "captures")
        os.mkdir(files)
        p = self.start(daemon=f"capture_dir = {files}")[0]
        perfs = [self.popen(self.PERF, *words, "--attach", self.socket, "--duration", LONG)
                 for words in (("write_bw",), ("send_bw", "--ud"), ("msg_lat",), ("am_lat",))]
        self.assertTrue(self.until(lambda: len(self.ask("show", "qp", "state", "RTS")) >= 4 and self.ask("show", "am") and self.ask("show", "msg")))
        self.assertEqual(self.ctl("capture", "start", "a0", "some").returncode, 0)
        with open(os.path.join(os.path.dirname(self.CONFIG), "doc", "reference", "urnicctl.md"), encoding="utf-8") as f:
            rows = {r[1].strip(): (r[2], r[3]) for r in (line.split("|") for line in f) if len(r) == 5}
        kinds = {q["type"]: str(q["qpn"]) for q in self.ask("show", "qp", "adapter", "a0")}
        one = {"port": ["a0"], "adapter": ["a0"], "client": ["1"], "engine": ["0"], "qp": [kinds["RC"], kinds["UD"]]}
        # Every object but counters, which have a page of their own.
        objects = {re.match(r"\| `show (\w+)", line)[1] for line in self.commands()} - {"counters"}
        self.assertGreater(len(objects), 15)
        for what in sorted(objects):
            columns, lines = (re.findall("`([a-z_0-9]+)`", text) for text in rows["area" if what == "log" else what])
            shown = self.ask("show", what)
            # Nobody has some of a few kinds of objects here; the head of the table is the same.
            head = list(shown[0]) if shown else self.ctl("show", what).stdout.split()
            self.assertTrue(shown or what in ("srq", "errors", "route"), what)
            self.assertEqual(set(head) - set(columns), set(), what)
            self.assertEqual(set(columns) - set(head) - {"port"}, set(), what)
            cards = [self.ask("show", what, name, *(("adapter", "a0") if what == "qp" else ()))[0] for name in one.get(what, ())]
            if cards:
                keys = {key for card in cards for key in card}
                more = {key for key in keys - set(columns) if not key.startswith("feature")}
                self.assertTrue(set(lines) <= keys, (what, set(lines) - keys))
                self.assertEqual(more - set(lines), set() if what != "adapter" else more - set(lines), what)
        self.assertEqual({perf.poll() for perf in perfs}, {None})
        self.assertEqual(self.stop(p)[0], 0)

    def test_clear_counters(self):
        """Counts begin anew for people, and Prometheus goes on."""
        p = self.serve()
        self.perf("send_lat", "--iters", "50")
        a, b = self.ask("show", "counters", "a0", "all")[0], self.ask("show", "port", "a0")[0]
        self.assertGreaterEqual(a["rx_roce"], 50)
        self.assertGreaterEqual(b["rx_packets"], 50)
        key = ("urnic_adapter_rx_packets_total", (("adapter", "a0"), ("node", "a")))
        before = self.page()[key]
        self.assertEqual(self.ask("clear", "counters"), [])
        self.assertGreaterEqual(self.page()[key], before)
        c, d = self.ask("show", "counters", "a0", "all")[0], self.ask("show", "port", "a0")[0]
        self.assertEqual(list(c), list(a))
        self.assertLess(c["rx_roce"], 50)
        self.assertLess(d["rx_packets"], 50)
        self.assertLessEqual(d["rx_bytes"], b["rx_bytes"])
        self.assertEqual(d["mbufs"], b["mbufs"])
        self.assertNotIn("rx_roce", self.ask("show", "counters", "a0")[0])
        self.perf("send_lat", "--iters", "50")
        e = self.ask("show", "counters", "a0", "all")[0]
        self.assertGreaterEqual(e["rx_roce"], 50)
        self.assertLess(e["rx_roce"], a["rx_roce"] + 50)
        self.assertEqual(self.stop(p)[0], 0)


if __name__ == "__main__":
    CTL, Nicd.NICD, Nicd.PERF, Nicd.CONFIG = map(os.path.abspath, sys.argv[1:5])
    del sys.argv[1:5]
    unittest.main()
