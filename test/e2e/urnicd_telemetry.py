#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""dpdk-telemetry.py shows lists and objects of urnicd, figures that move with packets, and a
sentence for things that are not there; floods of nonsense disturb nobody."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True  # no cache of urnicd_common
from urnicd_common import Nicd

LISTS = {"/urnic/adapter/list": "", "/urnic/engine/list": "", "/urnic/port/list": "", "/urnic/client/list": "",
         "/urnic/qp/list": "a0", "/urnic/cq/list": "1", "/urnic/srq/list": "1", "/urnic/mr/list": "a0",
         "/urnic/neighbour/list": "a0", "/urnic/switch/list": ""}


class Telemetry(Nicd):
    def ask(self, *commands):
        """Run dpdk-telemetry.py like a person does. returns: the answers"""
        p = subprocess.run([shutil.which("dpdk-telemetry.py"), "-f", "tel"], env=self.env, text=True,
                           input="\n".join(commands) + "\n", capture_output=True, timeout=60, check=False)
        self.assertEqual(p.returncode, 0, p.stderr)
        lines = [json.loads(l) for l in p.stdout.splitlines() if l.startswith("{")]
        self.assertEqual(len(lines), len(commands), p.stdout)
        return [line[c.split(",")[0]] for c, line in zip(commands, lines)]

    def run_perf(self, *args):
        p = self.popen(self.PERF, "write_bw", "--attach", self.socket, "--duration", "60", *args)
        self.assertTrue(self.until(lambda: self.ask("/urnic/qp/list,a0")[0]))
        return p

    def test_lists_and_objects(self):
        p, _ = self.start(eal="file_prefix = tel")
        perf = self.run_perf("--qps", "3")
        names = self.ask("/")[0]
        for c in LISTS:
            self.assertIn(c, names)
        help_ = self.ask(*[f"/help,{c}" for c in names if c.startswith("/urnic")])
        for h in help_:
            self.assertRegex(str(h), r"No parameters|Parameters: ")
        lists = dict(zip(LISTS, self.ask(*[f"{c},{a}" if a else c for c, a in LISTS.items()])))
        self.assertEqual(lists["/urnic/adapter/list"], ["a0", "b0"])
        self.assertEqual(lists["/urnic/engine/list"], [0])
        self.assertEqual(lists["/urnic/client/list"], [1, 2])
        self.assertEqual(len(lists["/urnic/qp/list"]), 3)
        self.assertEqual(lists["/urnic/switch/list"], ["wire:a0", "wire:b0"])
        self.assertEqual(lists["/urnic/neighbour/list"], ["10.0.0.2"])
        adapter, engine, port, client, qp, cq, mr, near, plug, version, server = self.ask(
            "/urnic/adapter/info,a0", "/urnic/engine/info,0", "/urnic/port/info,a0", "/urnic/client/info,1",
            f"/urnic/qp/info,a0,{lists['/urnic/qp/list'][1]}", f"/urnic/cq/info,1,{lists['/urnic/cq/list'][0]}",
            f"/urnic/mr/info,a0,{lists['/urnic/mr/list'][0]}", "/urnic/neighbour/info,a0,10.0.0.2",
            "/urnic/switch/info,wire,b0", "/urnic/version", "/urnic/server")
        self.assertEqual((adapter["name"], adapter["node"], adapter["ipv4"], adapter["qps"]),
                         ("a0", "a", "10.0.0.1", 3))
        self.assertEqual((engine["engine"], engine["idle"]), (0, "pause"))
        self.assertEqual(port["name"], "a0")
        self.assertEqual((client["client"], client["pid"], client["uid"]), (1, perf.pid, os.getuid()))
        self.assertEqual((qp["type"], qp["state"], qp["peer"]), ("RC", "RTS", "10.0.0.2"))
        self.assertEqual((cq["client"], mr["adapter"], near["address"]), (1, "a0", "10.0.0.2"))
        self.assertEqual((plug["switch"], plug["port"], plug["up"]), ("wire", "b0", 1))
        self.assertNotIn("", plug)
        self.assertEqual(version["adapters"], 2)
        self.assertEqual(server["clients"], 2)
        self.assertEqual(self.ask("/urnic/qp/list,a0,2")[0], lists["/urnic/qp/list"][2:])
        self.assertEqual(self.ask("/urnic/qp/list,a0,3")[0], [])
        self.assertEqual(self.stop(p)[0], 0)

    def test_neighbours_of_the_file(self):
        """A neighbour of the file is used as it stands there, whatever the network says."""
        b0 = "02:00:00:00:00:b0"
        p, _ = self.start(eal="file_prefix = tel", b0=f"mac = {b0}",
                          a0=f"neighbour 10.0.0.2 = {b0}\nneighbour fd00::9 = 02:00:00:00:00:09")
        self.perf("send_lat", "--iters", "10")
        mine, far, learnt = self.ask("/urnic/neighbour/info,a0,10.0.0.2", "/urnic/neighbour/info,a0,fd00::9",
                                     "/urnic/neighbour/info,b0,10.0.0.1")
        self.assertEqual((mine["static"], mine["mac"]), (1, b0))
        self.assertEqual((far["static"], far["mac"]), (1, "02:00:00:00:00:09"))
        self.assertEqual(learnt["static"], 0)
        self.assertEqual(self.stop(p)[0], 0)

        p, _ = self.start(eal="file_prefix = tel", b0=f"mac = {b0}", a0="neighbour 10.0.0.2 = 02:00:00:00:00:09")
        q = self.popen(self.PERF, "send_lat", "--attach", self.socket, "--iters", "10", "--timeout", "8")
        _, err = q.communicate(timeout=60)
        self.assertEqual(q.returncode, 1)
        self.assertIn("retry", err.lower()) # b0 announced itself, and gets nothing
        self.assertEqual(self.stop(p)[0], 0)

    def test_figures_move_with_traffic(self):
        p, _ = self.start(eal="file_prefix = tel")
        what = ("/urnic/adapter/counters,a0", "/urnic/adapter/counters,b0", "/urnic/engine/usage,0",
                "/urnic/switch/info,wire,b0")
        before = self.ask(*what)
        self.perf("write_bw", "--iters", "100", "--size", "64k", "--mtu", "4096")
        after = self.ask(*what)
        self.assertGreaterEqual(after[0]["tx_requests"] - before[0]["tx_requests"], 1600)
        self.assertGreaterEqual(after[1]["rx_bytes"] - before[1]["rx_bytes"], 100 * 65536)
        self.assertGreater(after[2]["busy_ns"], before[2]["busy_ns"])
        self.assertGreater(after[2]["ns"] - before[2]["ns"], after[2]["busy_ns"] - before[2]["busy_ns"])
        self.assertEqual(after[3]["tx_packets"] - before[3]["tx_packets"],
                         after[1]["rx_packets"] - before[1]["rx_packets"])
        self.assertEqual(self.stop(p)[0], 0)

    def test_what_is_not_there(self):
        p, _ = self.start(eal="file_prefix = tel")
        for command, words in (("/urnic/adapter/info,nobody", "no adapter has the name nobody"),
                               ("/urnic/adapter/info", "Parameters: NAME"),
                               ("/urnic/adapter/info,a0,b0", "Parameters: NAME"),
                               ("/urnic/adapter/list,x", "No parameters"),
                               ("/urnic/client/info,0", "Parameters: NUMBER"),
                               ("/urnic/client/info,-1", "Parameters: NUMBER"),
                               ("/urnic/client/info,99999999999999999999", "Parameters: NUMBER"),
                               ("/urnic/client/info,7", "no client has the number 7"),
                               ("/urnic/qp/info,a0,0x7fffff", "0x7fffff|8388607"),
                               ("/urnic/qp/info,a0", "ADAPTER,NUMBER"),
                               ("/urnic/mr/info,a0,0x0", "there is none such"),
                               ("/urnic/engine/usage,9", "no engine has the number 9"),
                               ("/urnic/switch/info,wire,zz", "there is none such"),
                               ("/urnic/qp/list,a0,,", "ADAPTER"), ("/urnic/qp/list,a0,1,2", "ADAPTER"),
                               ("/urnic/adapter/info," + "x" * 900, "error|no adapter")):
            answer = self.ask(command)[0]
            self.assertRegex(str(answer), words, command)
            self.assertIn("error", answer, command)
        self.assertEqual(self.ask("/urnic/capture")[0]["running"], 0)
        self.assertEqual(self.stop(p)[0], 0)

    def test_nonsense_while_it_works(self):
        p, _ = self.start(eal="file_prefix = tel")
        self.run_perf()
        path = os.path.join(self.run, "dpdk", "tel", "dpdk_telemetry.v2")
        end = time.time() + 2
        n = 0
        while time.time() < end or n == 0:  # the watch tells of one that never answers
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
                try:
                    s.connect(path)
                    s.recv(1024)
                    s.send(b"/urnic/qp/info," + os.urandom(200))
                    n += len(s.recv(16384)) > 0
                    s.send(b"/urnic/qp/list,a0")
                except OSError:
                    pass  # DPDK serves ten connections at a time
        self.assertGreater(n, 0)
        self.assertIsNone(p.poll())
        # A client asks while urnicd stops. DPDK may not have closed the ten connections before yet.
        while True:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
                try:
                    s.connect(path)
                    s.send(b"/urnic/mr/list,a0")
                except OSError:
                    self.assertLess(time.time(), end + 60)
                    continue
                self.assertEqual(self.stop(p)[0], 0)
                break

    def test_as_an_ordinary_user(self):
        if os.getuid() != 0:
            self.skipTest("is one already")
        os.chmod(self.dir.name, 0o755)
        os.chown(self.run, 65534, 65534)
        self.socket = os.path.join(self.run, "nicd.sock")
        config = self.config(eal="file_prefix = tel")
        p = self.popen(self.NICD, "-c", config, user=65534, group=65534, extra_groups=[])
        self.assertIn("listening at", p.stderr.readline())
        q = subprocess.run([shutil.which("dpdk-telemetry.py"), "-f", "tel"], env=self.env, text=True, user=65534,
                           input="/urnic/adapter/list\n", capture_output=True, timeout=60, check=False)
        self.assertTrue(re.search(r'\["a0", "b0"\]', q.stdout), q.stdout + q.stderr)
        self.assertEqual(self.stop(p)[0], 0)


if __name__ == "__main__":
    Nicd.NICD, Nicd.PERF, Nicd.CONFIG = map(os.path.abspath, sys.argv[1:4])
    del sys.argv[1:4]
    unittest.main()
