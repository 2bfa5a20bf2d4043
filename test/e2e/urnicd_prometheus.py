#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Prometheus' page of urnicd keeps strictly to its format, its figures move with the packets,
and nonsense that is sent to the port does no harm."""

import http.client
import os
import re
import socket
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True  # no cache of urnicd_common
from ports import free_port
from urnicd_common import Nicd

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? ([0-9]+(?:\.[0-9]+)?)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')


def parse(text):
    """Text format 0.0.4. returns: {(name, ((label, value), ...)): figure}, or raises ValueError"""
    samples, families, current, kind = {}, set(), None, None
    if not text.endswith("\n"):
        raise ValueError("no end of line at the end")
    lines = text[:-1].split("\n")
    for i, line in enumerate(lines):
        if line.startswith("# HELP "):
            _, _, name, words = line.split(" ", 3)
            if not re.fullmatch(NAME, name) or name in families or not words.strip():
                raise ValueError(line)
            families.add(name)
            current = name
            if not lines[i + 1].startswith(f"# TYPE {name} "):
                raise ValueError(f"no type behind: {line}")
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            if name != current or kind not in ("counter", "gauge"):
                raise ValueError(line)
            if (kind == "counter") != name.endswith("_total"):
                raise ValueError(f"convention: {line}")
        else:
            m = SAMPLE.fullmatch(line)
            if not m or m[1] != current:
                raise ValueError(line)
            labels, at = [], 0
            while m[2] and at < len(m[2]):
                one = LABEL.match(m[2], at)
                if not one or one[1] in dict(labels):
                    raise ValueError(line)
                labels.append((one[1], one[2]))
                at = one.end()
            key = (m[1], tuple(labels))
            if key in samples:
                raise ValueError(f"twice: {line}")
            samples[key] = float(m[3])
    return samples


class Prometheus(Nicd):
    def serve(self, **kwargs):
        """Start urnicd with a free port. Another program may take the port first: try again then."""
        for _ in range(5):
            self.port = free_port()
            try:
                return self.start(daemon=f"prometheus = 127.0.0.1:{self.port}", **kwargs)[0]
            except AssertionError as e:
                if "Address already in use" not in str(e):
                    raise
        raise AssertionError("no port")

    def page(self):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        c.request("GET", "/metrics")
        r = c.getresponse()
        self.assertEqual(r.status, 200)
        self.assertEqual(r.getheader("Content-Type"), "text/plain; version=0.0.4; charset=utf-8")
        text = r.read().decode("utf-8")
        c.close()
        return parse(text)

    def test_figures_move_with_traffic(self):
        p = self.serve()
        a, b = (("adapter", "a0"), ("node", "a")), (("adapter", "b0"), ("node", "b"))
        before = self.page()
        self.assertEqual(before[("urnic_adapter_up", a)], 1)
        self.perf("write_bw", "--iters", "100", "--size", "64k", "--mtu", "4096")
        after = self.page()
        self.assertEqual(set(before), set(after))

        def grown(name, labels):
            return after[(name, labels)] - before[(name, labels)]
        self.assertGreaterEqual(grown("urnic_adapter_tx_requests_total", a), 1600)
        self.assertGreaterEqual(grown("urnic_adapter_rx_packets_total", b), 1600)
        self.assertGreaterEqual(grown("urnic_adapter_rx_bytes_total", b), 100 * 65536)
        self.assertEqual(grown("urnic_adapter_drop_icrc_total", b), 0)
        sw = (("switch", "wire"), ("port", "b0"))
        self.assertEqual(grown("urnic_switch_tx_packets_total", sw), grown("urnic_adapter_rx_packets_total", b))
        self.assertGreater(grown("urnic_engine_busy_seconds_total", (("engine", "0"),)), 0)
        self.assertGreater(grown("urnic_engine_turns_total", (("engine", "0"),)), 0)
        self.assertEqual(grown("urnic_client_connections_total", ()), 2)
        self.assertTrue(self.until(lambda: self.page()[("urnic_clients", ())] == 0))
        for (name, _), figure in before.items():
            if name.endswith("_total"):
                self.assertGreaterEqual(after[(name, _)], figure, name)
        self.assertEqual(self.stop(p), (0, ""))

    def test_garbage_and_silence(self):
        p = self.serve()
        silent = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(20)]
        for noise in (b"\0" * 10000, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 99, b"GET " + b"/" * 9000,
                      os.urandom(100000)):
            with socket.create_connection(("127.0.0.1", self.port)) as s:
                try:
                    s.sendall(noise)
                except OSError:
                    pass
        # The page comes once the time of the silent connections is over.
        self.page()
        for s in silent:
            s.close()
        self.perf("send_lat", "--iters", "10")
        held = socket.create_connection(("127.0.0.1", self.port))
        self.assertEqual(self.stop(p), (0, ""))
        held.close()

    def test_place_that_is_taken(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen(1)
            where = f"127.0.0.1:{s.getsockname()[1]}"
            q = subprocess.run([self.NICD, "-c", self.config(daemon=f"prometheus = {where}")], env=self.env,
                               capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(q.returncode, 1)
        self.assertIn(f"prometheus = {where}: can't listen there: Address already in use", q.stderr)
        self.assertEqual(os.listdir(self.run), [])


class Parser(unittest.TestCase):
    def test_it_is_strict(self):
        good = '# HELP a_total x\n# TYPE a_total counter\na_total{b="c"} 1\n'
        self.assertEqual(parse(good), {("a_total", (("b", "c"),)): 1})
        for bad in (good[:-1], good + good, good.replace("HELP a_total x", "HELP a_total "),
                    good.replace("counter", "gauge"), good.replace('"c"', "c"), good + 'a_total{b="c"} 2\n',
                    good + "b 1\n", good.replace(" 1\n", " one\n"), good.replace('"c"', '"c" '),
                    good.replace("# TYPE a_total counter\n", "")):
            with self.assertRaises((ValueError, IndexError), msg=bad):
                parse(bad)


if __name__ == "__main__":
    Nicd.NICD, Nicd.PERF, Nicd.CONFIG = map(os.path.abspath, sys.argv[1:4])
    del sys.argv[1:4]
    unittest.main()
