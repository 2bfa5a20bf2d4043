#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs of other projects between two urnicd that memif joins, and over a wire that loses one frame in a hundred
(doc/reference/dropin.md).

usage: dropin_far.py urnicd urnic-run CONFIG_FOLDER urnicctl [TEST...]"""

import json
import os
import subprocess
import sys
import unittest

import dropin_common

CTL = None


class Pairs(dropin_common.Dropin):
    """Short runs of programs that are pairs."""

    def ucx(self, transport, *options):
        self.env.update(UCX_TLS=transport + ",self", UCX_WARN_UNUSED_ENV_VARS="n")
        self.assertIn("Final:", self.pair("ucx_perftest", "-w", "2", *options)[1])

    def verbs(self):
        self.pair("ibv_rc_pingpong", "-g", "1", "-n", "200", "-c")
        self.pair("ib_write_bw", "-F", "-x", "1", "-n", "50", "-s", "65536")
        self.pair("ib_send_lat", "-F", "-x", "1", "-n", "50")

    def fabric(self, provider, endpoint):
        port = str(dropin_common.free_port())
        command = ("fi_pingpong", "-p", provider, "-e", endpoint, "-c", "-I", "10", "-S", "65536")
        server = self.on("a", *command, "-B", port)
        self.until(lambda: dropin_common.listens(int(port)) or server.poll() is not None)
        client = self.on("b", *command, "-P", port, "127.0.0.1")
        both = [self.ends(client), self.ends(server)]
        self.assertEqual([code for code, _ in both], [0, 0], both)


class Lossy(Pairs):
    def setUp(self):
        super().setUp()
        # This seed loses the frames 31, 42 and 106 of a direction, so even a short run loses some.
        subprocess.run([CTL, "impair", "wire", "a0", "drop=1%,seed=10"], env=self.env, check=True, capture_output=True)

    def tearDown(self):
        """Frames were lost, and sent again."""
        out = subprocess.run([CTL, "--json", "show", "counters"], env=self.env, capture_output=True, text=True, check=True).stdout
        self.assertGreater(sum(adapter.get("retransmits", 0) for adapter in json.loads(out)), 0, out)
        super().tearDown()

    def test_verbs(self):
        self.verbs()

    def test_ucx(self):
        self.ucx("rc_v", "-t", "tag_lat", "-n", "300")
        self.ucx("rc_v", "-t", "tag_bw", "-s", "1048576", "-n", "5")
        # UCX itself repeats datagrams.
        self.ucx("ud_v", "-t", "tag_lat", "-n", "100")

    def test_fabric(self):
        self.fabric("verbs;ofi_rxm", "rdm")


class Far(Pairs):
    """Nodes a and b each have a urnicd of their own."""

    def setUp(self):
        self.sockets = {}
        super().setUp()

    def config(self, daemon="", **lines):
        node = "ab"[len(self.sockets)]
        self.sockets[node] = os.path.join(self.dir.name, node + ".sock")
        path = os.path.join(self.dir.name, node + ".ini")
        role = {"a": "server", "b": "client"}[node]
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[urnicd]\nsocket = {self.sockets[node]}\nidle = pause\nempty_polls = 4\n{daemon}\n"
                    f"[port p0]\ndevice = net_memif0,role={role},socket={self.dir.name}/memif\n"
                    f"[adapter {node}0]\nnode = {node}\nport = p0\nipv4 = 10.0.0.{'ab'.index(node) + 1}\n")
        return path

    def start(self, **lines):
        first = super().start(**lines)
        self.peer, _ = super().start(**lines)
        return first

    def tearDown(self):
        for p in self.running[:]:
            if p not in (self.nicd, self.peer):
                p.kill()
                self.ends(p)
        # The client of the memif goes first.
        for p in (self.peer, self.nicd):
            p.terminate()
            _, err = p.communicate(timeout=dropin_common.SECONDS)
            self.assertEqual(p.returncode, 0, err)
            self.running.remove(p)
        self.running.append(self.nicd)  # for the base class, which finds that it has ended
        super().tearDown()

    def on(self, node, *command):
        self.env["URNIC_SOCKET"] = self.sockets[node]
        return super().on(node, *command)

    def test_verbs(self):
        self.verbs()

    def test_ucx(self):
        self.ucx("rc_v", "-t", "tag_lat", "-n", "100")
        self.ucx("rc_v", "-t", "tag_bw", "-s", "4194304", "-n", "3")
        self.ucx("ud_v", "-t", "tag_lat", "-n", "100")

    def test_fabric(self):
        self.fabric("verbs", "msg")


if __name__ == "__main__":
    Pairs.NICD, Pairs.RUN, Pairs.CONFIG, CTL = map(os.path.abspath, sys.argv[1:5])
    dropin_common.ordinary_user(Pairs.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[5:], verbosity=2)
