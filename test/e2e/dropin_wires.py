# SPDX-License-Identifier: BSD-3-Clause
"""Wires for tests of programs: a mixin stands before a class of dropin_common.Dropin's, whose tests then run on that wire."""

import os
import re
import subprocess

import dropin_common

# Ranks of a parallel program, each with the urnicd of its node; the first argument is urnic-run, the second the folder of sockets.
RANK = """run=$1; sockets=$2; shift 2
case ${OMPI_COMM_WORLD_LOCAL_RANK:-$MPI_LOCALRANKID} in 0) node=a ;; 1) node=b ;; *) exit 9 ;; esac
exec "$run" --socket "$sockets/$node.sock" --node $node "$@" """


class Far:
    """Nodes a and b each have a urnicd of their own; memif joins them."""

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
        # Both at once, because each waits more than it computes.
        first, self.peer = self.launch(**lines), self.launch(**lines)
        said = self.listens(first)
        self.listens(self.peer)
        self.assertTrue(self.until(lambda: all(port["link"] for port in self.show("port"))))
        return first, said

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

    def ranks(self):
        return ["sh", "-c", RANK, "sh", self.RUN, self.dir.name]

    def show(self, *what):
        both = []
        for self.env["URNIC_SOCKET"] in self.sockets.values():
            both += super().show(*what)
        return both


class Lossy:
    """One frame in a hundred is lost, of each direction, between two nodes of one urnicd."""

    AT_ONCE = 1  # each pair loses frames of its own
    # Each seed loses the 3rd frame to a0 and one more of the first 30, one of the first 30 to b0, and then one in a hundred:
    # so the shortest run loses some. The directions lose different frames.
    SEEDS = (342, 2829, 3220, 4184, 5388, 5597, 12455, 12492)

    def setUp(self):
        self.pairs = self.lost = 0
        super().setUp()
        self.impair()

    def impair(self):
        """The frames from now on are counted from 1."""
        for how in ("none", f"drop=1%,seed={self.SEEDS[self.pairs % len(self.SEEDS)]}"):
            subprocess.run([self.CTL, "impair", "wire", "a0", how], env=self.env, check=True, capture_output=True)

    def lost_some(self):
        """The last pair lost frames."""
        before = self.lost
        self.lost = sum(port.get("in_drop_random", 0) + port.get("out_drop_random", 0) for port in self.show("switch", "wire"))
        self.assertGreater(self.lost, before)

    def on(self, node, *command):
        """Before the first program of a pair starts, frames are counted anew: each pair loses some."""
        if node == "a":
            if self.pairs > 0:
                self.lost_some()
            self.pairs += 1
            self.impair()
        return super().on(node, *command)

    def unlucky(self, code, out):
        """The last acknowledgement was lost, and its sender has ended, as it may: it will not answer when its peer asks again."""
        # libfabric flushes the last message when the peer disconnects: the table is whole then.
        flushed = "work request flushed" in out and re.search(r"^1m +10 +=10 ", out, re.M)
        return code != 0 and (flushed or re.search(r"transport retry counter exceeded|[Ss]tatus 12\b", out)) is not None

    def tearDown(self):
        self.lost_some()
        super().tearDown()
