#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs that know nothing of sessions, while the dataplanes under their virtual devices are killed (FO-9 to FO-19).

usage: session_kill.py URNICD URNIC_RUN URNICCTL URNIC_SWITCH SESSION_STREAM SESSION_CORNERS [TEST...]"""

import glob
import os
import re
import signal
import sys
import threading
import unittest

import dropin_common
import session_common

MESSAGES = 300 # that each end must get before a kill, and after it


class Reader(threading.Thread):
    """Reads a program's output, and knows how many messages it got."""

    def __init__(self, program):
        super().__init__(daemon=True)
        self.program, self.got, self.out = program, 0, ""
        self.start()

    def run(self):
        for line in self.program.stdout:
            self.out += line
            found = re.match(r"got (\d+)", line)
            if found:
                self.got = int(found[1])


class Pairs(session_common.Session):
    STREAM = None  # set by the script

    def begin_pair(self, *how, plain=()):
        port = str(dropin_common.free_port())
        # Nothing survives a plain connection's end, so it has to bear a machine that stands for seconds.
        how += ("patient",) if plain else ()
        a = self.on("a", self.STREAM, "listen", port, *how, plain="a" in plain, stdin=True)
        self.assertTrue(self.until(lambda: dropin_common.listens(int(port)) or a.poll() is not None))
        b = self.on("b", self.STREAM, "connect", port, *how, plain="b" in plain, stdin=True)
        return [Reader(a), Reader(b)]

    def more(self, pair):
        """Wait until each end got more messages."""
        want = [r.got + MESSAGES for r in pair]
        self.until(lambda: all(r.got >= w for r, w in zip(pair, want)) or any(r.program.poll() is not None for r in pair))
        for r, w in zip(pair, want):
            self.assertIsNone(r.program.poll(), (r.out, r.program.poll() is not None and r.program.stderr.read()))
            self.assertGreaterEqual(r.got, w)

    def kill(self, name):
        self.nicd[name].send_signal(signal.SIGKILL)
        self.nicd[name].communicate()

    def stop(self, name):
        """Let a dataplane stand still."""
        self.nicd[name].send_signal(signal.SIGSTOP)

    def go_on(self, name):
        self.nicd[name].send_signal(signal.SIGCONT)

    def watched(self, r):
        """Number of adapters that a program has not given up: each has a thread that watches."""
        n = 0
        for task in glob.glob(f"/proc/{r.program.pid}/task/*/comm"):
            with open(task, encoding="utf-8") as f:
                n += f.read() == "urnic-watch\n"
        return n

    def finish(self, pair):
        """Tell both ends to stop. Each must have got all that the other sent."""
        for r in pair:
            r.program.stdin.write("stop\n")
            r.program.stdin.flush()
        for r in pair:
            self.assertEqual(r.program.wait(timeout=dropin_common.SECONDS), 0, r.program.stderr.read())
            r.join()
        (a_sent, a_got), (b_sent, b_got) = (map(int, re.search(r"sent (\d+), got (\d+)", r.out).groups()) for r in pair)
        self.assertEqual((a_sent, b_sent), (b_got, a_got))
        for r in pair:
            self.end(r)

    def end(self, r):
        r.join()
        for pipe in (r.program.stdin, r.program.stdout, r.program.stderr):
            pipe.close()
        self.running.remove(r.program)

    def lives(self, *names, how=()):
        pair = self.begin_pair(*how)
        self.more(pair)
        for name in names:
            self.kill(name)
            self.more(pair)
        self.finish(pair)


class Kill(Pairs):
    def test_nothing(self):
        self.lives()

    def test_run_looks(self):
        """urnic-run opens the virtual device first, and says why it can't; no other socket is needed."""
        sock = self.path("ap", "sock")
        for value, code, text in ((self.device("a"), 0, "urnic0"), (sock, 1, "there must be two adapters"),
                                  (f"{sock},{sock}", 1, "both adapters are the same one"),
                                  (f"{sock},{sock}.not", 1, f"no dataplane at {sock}.not")):
            old, self.env = self.env, {k: v for k, v in self.env.items() if k != "URNIC_SOCKET"}
            self.env["URNIC_SESSION"] = value
            try:
                got, out = self.ends(self.popen(self.RUN, "ibv_devices"))
            finally:
                self.env = old
            self.assertEqual((got != 0, text in out), (code != 0, True), (value, got, out))

    def test_plain_peer(self):
        """A peer without a session layer gets a plain connection (FO-1)."""
        pair = self.begin_pair(plain="b")
        self.more(pair)
        self.finish(pair)

    def test_primary(self):
        """The primary adapter of one end is lost."""
        self.lives("ap")

    def test_backup(self):
        """The loss of a backup changes nothing."""
        self.lives("bs")

    def test_events(self):
        """Programs that sleep on a completion channel."""
        self.lives("bp", how=["events"])

    def test_keys(self):
        """The adapters have different keys, because the backups serve another program, too (FO-2)."""
        for name in ("as", "bs"):
            self.on(name[0], "ibv_rc_pingpong", "-g", "1", "-p", str(dropin_common.free_port()), plain=True, which="s")
            self.assertTrue(self.until(lambda name=name: dropin_common.Dropin.show(self.at(name), "mr")))
        self.lives("ap", "bp")

    def outlasts(self, *names, how=()):
        """Dataplanes stop, which nothing tells but their silence; later they go on, and change nothing."""
        self.SILENCE = 4000
        self.env["URNIC_SESSION_PROBE"] = "no" # an adapter that goes on is not to come back
        pair = self.begin_pair(*how)
        self.more(pair)
        for name in names:
            self.stop(name)
            self.more(pair)
            # Without traffic and without a call the silence is noticed, too.
            self.assertTrue(self.until(lambda name=name: self.watched(pair[name[0] == "b"]) == 1))
            self.go_on(name)
            self.assertTrue(self.until(lambda name=name: not dropin_common.Dropin.show(self.at(name), "qp")))
            self.more(pair)
        self.finish(pair)

    def test_stopped(self):
        """A primary adapter is silent, then the other end's (FO-11, FO-16)."""
        self.outlasts("ap", "bp")

    def test_stopped_calls(self):
        """Calls of the program do not wait for a dataplane that is stopped."""
        self.outlasts("ap", how=["register"])

    def test_stopped_events(self):
        self.outlasts("bp", how=["events"])

    def test_stopped_backup(self):
        """The silence of an adapter without traffic."""
        self.outlasts("as")

    def test_register(self):
        """Regions are registered and deregistered all the time, also when the primary adapter is gone."""
        self.lives("ap", how=["register"])

    def test_all(self):
        """Without any path, requests fail, and programs are told (FO-19)."""
        self.env["URNIC_EXPLAIN_ERRORS"] = "1"
        pair = self.begin_pair()
        self.more(pair)
        self.kill("ap")
        self.kill("as")
        for r in pair:
            self.assertEqual(r.program.wait(timeout=dropin_common.SECONDS), 1, r.out)
            said = r.program.stderr.read()
            self.assertRegex(said, "a completion failed: ")
            self.assertRegex(said, r"(?m)^urnic: QP 0x[0-9a-f]+: its session has been dead for \d+ ms, because .*; the path from the "
                             r"(primary|backup) adapter here to the (primary|backup) one of its peer was lost last, \d+ ms ago, because ")
            self.end(r)

    def test_extended(self):
        """Programs that post by ibv_wr_*(), and while they poll by ibv_start_poll()."""
        self.lives("bp", how=["extended"])

    def test_both(self):
        """The primary adapters of both ends are lost, one after the other (FO-19)."""
        self.lives("ap", "bp")

    def test_cm(self):
        """Connections that RDMA-CM makes have sessions, too."""
        a = self.on("a", "rping", "-s", "-a", "10.0.0.1", "-C", "20", "-v")
        out = ""
        while "ping data" not in out:  # the client may come before the server listens
            self.assertIsNone(a.poll())
            code, out = self.ends(self.on("b", "rping", "-c", "-a", "10.0.0.1", "-C", "20", "-v"))
        self.assertEqual(code, 0, out)
        code, out = self.ends(a)
        self.assertEqual(code, 0, out)
        self.assertIn("ping data", out)

    def test_send_bw(self):
        self.measure("ap", "ib_send_bw")

    def test_write_bw(self):
        self.measure("bp", "ib_write_bw")

    def test_read_bw(self):
        self.measure("ap", "ib_read_bw")

    def test_srq_bw(self):
        """Connections of one shared receive queue move together (FO-14)."""
        self.measure("ap", "ib_send_bw", "--use-srq", "-q", "2", pairs=2)

    def test_srq_pingpong(self):
        """Sixteen connections of one shared receive queue, without a failure."""
        command = ["ibv_srq_pingpong", "-g", "1", "-c", "-n", "200", "-p", str(dropin_common.free_port())]
        a = self.on("a", *command)
        self.assertTrue(self.until(lambda: dropin_common.listens(int(command[-1])) or a.poll() is not None))
        for p in (self.on("b", *command, "127.0.0.1"), a):
            code, out = self.ends(p)
            self.assertEqual(code, 0, out)

    def connected(self, name, pairs=1):
        """True when all queue pairs of an adapter are connected."""
        states = [qp["state"] for qp in dropin_common.Dropin.show(self.at(name), "qp")]
        return len(states) == 4 * pairs and set(states) == {"RTS"}

    def measure(self, name, command, *how, pairs=1):
        """Programs of perftest go on when an adapter is lost."""
        command = [command, *how, "-x", "1", "-D", "3", "-p", str(dropin_common.free_port())]
        a = self.on("a", *command)
        self.assertTrue(self.until(lambda: dropin_common.listens(int(command[-1])) or a.poll() is not None))
        b = self.on("b", *command, "127.0.0.1")
        self.assertTrue(self.until(lambda: all(self.connected(adapter, pairs) for adapter in ("ap", "bp")) or b.poll() is not None))
        self.kill(name)
        for p in (a, b):
            code, out = self.ends(p)
            self.assertEqual(code, 0, out)


class Corners(Pairs):
    """Two queue pairs of one program on node a, connected to each other."""
    CORNERS = None  # set by the script

    def corner(self, case):
        return self.on("a", self.CORNERS, case, stdin=True)

    def right(self, p):
        code, out = self.ends(p)
        self.assertEqual(code, 0, out)
        self.assertIn("right\n", out)

    def loses(self, case):
        """The program loses the primary adapter when it is ready."""
        p = self.corner(case)
        line = p.stdout.readline()
        self.assertEqual(line, "ready\n", p.poll() is not None and p.stderr.read())
        self.kill("ap")
        p.stdin.write("\n")
        p.stdin.flush()
        self.right(p)

    def test_key_gone(self):
        # The backup serves another program, too: so a key of the primary adapter is that of another region there.
        self.on("a", "ibv_rc_pingpong", "-g", "1", "-p", str(dropin_common.free_port()), plain=True, which="s")
        self.assertTrue(self.until(lambda: dropin_common.Dropin.show(self.at("as"), "mr")))
        self.loses("key_gone")

    def test_key_new(self):
        self.on("a", "ibv_rc_pingpong", "-g", "1", "-p", str(dropin_common.free_port()), plain=True, which="p")
        self.assertTrue(self.until(lambda: dropin_common.Dropin.show(self.at("ap"), "mr")))
        self.loses("key_new")

    def test_key_left(self):
        self.loses("key_left")

    def test_domain(self):
        self.loses("domain")

    def test_immediate(self):
        """The error is explained by the adapter whose queue pair had the request, which the program does not know of."""
        self.env["URNIC_EXPLAIN_ERRORS"] = "1"
        code, out = self.ends(self.corner("immediate"))
        self.assertEqual(code, 0, out)
        self.assertRegex(out, r"(?m)^urnic: QP 0x[0-9a-f]+, over adapter ap: QP 0x[0-9a-f]+ to 10\.0\.0\.1 QP 0x[0-9a-f]+: RDMA WRITE of \d+ "
                         r"bytes at PSN 0x[0-9a-f]{6} was refused by the peer with NAK 0x62 .*vendor_err 9: nak\)$")

    def test_leave(self):
        self.right(self.corner("leave"))

    def test_failed_receives(self):
        self.right(self.corner("failed_receives"))

    def test_failed_sends(self):
        self.right(self.corner("failed_sends"))

    def test_events(self):
        self.right(self.corner("events"))

    def test_fork(self):
        self.right(self.corner("fork"))

    def test_long_writes(self):
        self.right(self.corner("long_writes"))

    def test_signals(self):
        self.right(self.corner("signals"))


class Wires(Pairs):
    """Each adapter reaches one of the other node only."""

    def ports(self):
        for switch, names in (("p", ("ap", "bp")), ("s", ("as", "bs"))):
            yield from ("--switch", switch)
            for name in names:
                yield from ("--port", f"{name}=memif:{self.path(name, 'memif')}")

    def test_primary(self):
        """Two of the three backups lead nowhere: the third one is found (FO-20)."""
        self.lives("bp")


if __name__ == "__main__":
    Pairs.NICD, Pairs.RUN, Pairs.CTL, Pairs.SWITCH, Pairs.STREAM, Corners.CORNERS = map(os.path.abspath, sys.argv[1:7])
    dropin_common.ordinary_user(Pairs.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[7:], verbosity=2)
