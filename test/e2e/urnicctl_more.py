#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnicctl with commands from a file or a pipe, and counters that people clear while Prometheus and
telemetry go on."""

import json
import os
import re
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

    def test_columns_are_defined(self):
        """Each column that is shown, and each line of one object, stands in the manual's row of that command."""
        p = self.start()[0]
        perf = self.popen(self.PERF, "write_bw", "--attach", self.socket, "--duration", LONG)
        self.assertTrue(self.until(lambda: len(self.ask("show", "qp", "state", "RTS")) >= 2))
        with open(os.path.join(os.path.dirname(self.CONFIG), "doc", "reference", "urnicctl.md"), encoding="utf-8") as f:
            rows = {r[1].strip(): (r[2], r[3]) for r in (line.split("|") for line in f) if len(r) == 5}
        one = {"port": "a0", "adapter": "a0", "client": "1", "engine": "0"}
        for what in ("port", "adapter", "engine", "cq", "mr", "client", "switch", "address", "neigh", "limits", "server",
                     "version"):
            columns, lines = (re.findall("`([a-z_0-9]+)`", text) for text in rows[what])
            shown = self.ask("show", what)
            self.assertEqual(set(shown[0]) - set(columns), set(), what)
            self.assertEqual(set(columns) - set(shown[0]) - {"port"}, set(), what)
            if what in one:
                card = self.ask("show", what, one[what])[0]
                more = {key for key in set(card) - set(columns) if not key.startswith("feature")}
                self.assertTrue(set(lines) <= set(card), what)
                self.assertEqual(more - set(lines), set() if what != "adapter" else more - set(lines), what)
        self.assertIsNone(perf.poll())
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
