#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Adapters of virtual devices that are lost and come back, while programs exchange messages (FO-19).

usage: session_heal.py URNICD URNIC_RUN URNICCTL URNIC_SWITCH SESSION_STREAM SESSION_AWAY [TEST...]"""

import os
import re
import signal
import sys
import threading
import unittest

import dropin_common
import session_common
import session_kill
import session_log

PATHS = 4
TRUSTED = re.compile(r" trusted path=[PS]-[PS] alive=(\d)")


class Log(threading.Thread):
    """Reads what the session layer of a program tells."""

    def __init__(self, program):
        super().__init__(daemon=True)
        self.program, self.lines = program, []
        self.start()

    def run(self):
        for line in self.program.stderr:
            self.lines.append(line)

    def count(self, text):
        return sum(text in line for line in self.lines[:])

    def whole(self):
        """True when the newest path that came back was the last one that was missing."""
        alive = [int(m[1]) for m in map(TRUSTED.search, self.lines[:]) if m]
        return bool(alive) and alive[-1] == PATHS


class Heal(session_kill.Pairs):
    OPTIONS = {"URNIC_SESSION_LOG": "stderr", "URNIC_SESSION_PROBE": "20"}

    def setUp(self):
        super().setUp()
        self.env.update(self.OPTIONS)

    def begin_pair(self, *how, plain=()):
        pair = super().begin_pair(*how, plain=plain)
        self.logs = [Log(r.program) for r in pair]
        return pair

    def told(self):
        return [line for log in self.logs for line in log.lines]

    def more(self, pair):
        """Wait until each end got more messages."""
        want = [r.got + session_kill.MESSAGES for r in pair]
        self.until(lambda: all(r.got >= w for r, w in zip(pair, want)) or any(r.program.poll() is not None for r in pair))
        self.assertTrue(all(r.program.poll() is None and r.got >= w for r, w in zip(pair, want)),
                        ([r.program.poll() for r in pair], self.told()))

    def finish(self, pair):
        for r in pair:
            r.program.stdin.write("stop\n")
            r.program.stdin.flush()
        for r in pair:
            self.assertEqual(r.program.wait(timeout=dropin_common.SECONDS), 0, self.told())
            r.join()
        (a_sent, a_got), (b_sent, b_got) = (map(int, re.search(r"sent (\d+), got (\d+)", r.out).groups()) for r in pair)
        self.assertEqual((a_sent, b_sent), (b_got, a_got))
        for r, log in zip(pair, self.logs):
            log.join()
            self.end(r)

    def again(self, name):
        """Start a dataplane that was killed."""
        old = self.nicd[name]
        self.running.remove(old)
        for pipe in (old.stdout, old.stderr):
            pipe.close()
        self.nicd[name] = self.begin(name)

    def marks(self):
        return [log.count(" trusted path=") for log in self.logs]

    def heals(self, marks, least=2):
        """Wait until all paths of both ends are trusted, of which some were lost since the marks."""
        self.assertTrue(self.until(lambda: all(log.count(" trusted path=") >= m + least and log.whole()
                                               for log, m in zip(self.logs, marks))), self.told())

    def flap(self, pair, name):
        """An adapter is lost and comes back."""
        marks = self.marks()
        self.kill(name)
        self.more(pair)
        self.again(name)
        self.heals(marks)

    def survives(self, *names, how=()):
        pair = self.begin_pair(*how)
        self.more(pair)
        for name in names:
            self.flap(pair, name)
            self.more(pair)
        self.finish(pair)


class Flaps(Heal):
    def test_second(self):
        """The primary adapter comes back, and then the backup is lost (FO-19)."""
        self.survives("ap", "as")

    def test_ends(self):
        """Adapters of both ends, in turn."""
        self.survives("ap", "bs", "as", "bp")

    def test_twenty(self):
        """Recovery never gives up."""
        self.survives(*("ap", "as") * 10)

    def test_events(self):
        """Programs that sleep on a completion channel."""
        self.survives("bp", "bs", "bp", how=["events"])

    def test_register(self):
        """Regions are made and ended all the time, also while an adapter is away and when it comes back."""
        self.survives("ap", "as", "ap", how=["register"])

    def test_both(self):
        """An adapter of each end is away at the same time."""
        pair = self.begin_pair()
        self.more(pair)
        for names in (("ap", "bp"), ("as", "bs")):
            marks = self.marks()
            for name in names:
                self.kill(name)
                self.more(pair)
            for name in names:
                self.again(name)
            self.heals(marks, least=3)
            self.more(pair)
        self.finish(pair)

    def test_middle(self):
        """The adapter that came back is lost again before it is trusted; and the peer's is, meanwhile."""
        pair = self.begin_pair()
        self.more(pair)
        marks = self.marks()
        self.kill("ap")
        self.more(pair)
        for other in (None, "bp", None):
            back = self.logs[0].count("is back")
            self.again("ap")
            self.assertTrue(self.until(lambda back=back: self.logs[0].count("is back") > back), self.told())
            if other is not None:
                self.kill(other)
            self.kill("ap")
            self.more(pair)
        self.again("ap")
        self.again("bp")
        self.heals(marks, least=3)
        self.flap(pair, "as")
        self.more(pair)
        self.finish(pair)

    def test_leave(self):
        """Programs end while an adapter is away, and while its paths are made anew."""
        for wait in (False, True):
            pair = self.begin_pair()
            self.more(pair)
            self.kill("as")
            self.more(pair)
            if wait:
                self.again("as")
                self.assertTrue(self.until(lambda: self.logs[0].count("is back") == 1), self.told())
            self.finish(pair)
            if not wait:
                self.again("as")


    def test_stopped(self):
        """A dataplane that was given up while it stood still is attached to again when it goes on."""
        self.SILENCE = 2000
        pair = self.begin_pair()
        self.more(pair)
        for name in ("ap", "as"):
            marks = self.marks()
            self.stop(name)
            self.assertTrue(self.until(lambda name=name: self.logs[0].count(f"adapter {name} is lost") == 1), self.told())
            self.more(pair)
            self.go_on(name)
            self.heals(marks)
            self.more(pair)
        self.finish(pair)


class Away(Heal):
    """Objects of one program on node a, with connections to itself."""
    AWAY = None  # set by the script

    def setUp(self):
        super().setUp()
        self.program = self.on("a", self.AWAY, stdin=True)
        self.logs = [Log(self.program)]
        self.do("domain", "pair", "talk")

    def do(self, *commands):
        for command in commands:
            self.program.stdin.write(command + "\n")
            self.program.stdin.flush()
            line = self.program.stdout.readline()
            if line != "ok\n":
                self.logs[0].join(dropin_common.SECONDS) # the program has ended, and says why
            self.assertEqual(line, "ok\n", (command, self.told()))

    def back(self, name, ends):
        """An adapter comes back, and each of so many queue pairs has all its paths."""
        before = self.logs[0].count("is back")
        whole = self.logs[0].count(" alive=4")
        self.again(name)
        self.assertTrue(self.until(lambda: self.logs[0].count("is back") > before), self.told())
        self.assertTrue(self.until(lambda: self.logs[0].count(" alive=4") >= whole + ends), self.told())

    def ends_well(self):
        self.program.stdin.close()
        self.assertEqual(self.program.wait(timeout=dropin_common.SECONDS), 0, self.told())
        self.logs[0].join()
        for pipe in (self.program.stdout, self.program.stderr):
            pipe.close()
        self.running.remove(self.program)

    def test_numbers(self):
        """The primary adapter that came back gives numbers that other queue pairs have from before."""
        self.do("pair", "pair", "drop", "drop")
        self.kill("ap")
        self.back("ap", 2)
        self.do("pair", "pair", "pair", "pair", "talk")
        self.ends_well()

    def test_primary(self):
        self.do("plain")
        self.kill("ap")
        self.do("talk", "domain", "none", "talk")
        self.back("ap", 2)
        self.do("talk", "pair", "old", "talk", "plain")
        self.kill("as")
        self.do("talk", "domain", "pair", "talk")
        self.back("as", 8)
        self.kill("ap")
        self.do("talk")
        self.back("ap", 8)
        self.do("talk", "plain")
        self.ends_well()

    def test_backup(self):
        self.kill("as")
        self.do("domain", "pair", "old", "talk", "plain")
        self.back("as", 6)
        self.kill("ap")
        self.do("talk")
        self.ends_well()

    def test_left_out(self):
        """A region whose memory is gone is left out, and the queue pairs of its domain stay on the other adapter."""
        self.do("gone", "domain", "pair", "talk")
        self.kill("as")
        self.back("as", 2)
        self.assertGreater(self.logs[0].count("lacks the region"), 0)
        self.assertEqual(self.logs[0].count(" alive=4"), 2, self.told())
        self.do("talk", "mend")
        self.assertTrue(self.until(lambda: self.logs[0].count(" alive=4") == 4), self.told())
        self.kill("ap")
        self.do("talk")
        self.ends_well()

    def test_unusable(self):
        """An adapter that is of no use is tried again with pauses that grow, and keeps nothing of an attempt."""
        self.do("keep")
        self.kill("ap")
        # Another program of the user has the only completion queue when this one attaches.
        self.limits = {"ap": "cq_per_client = 1\ncq_per_uid = 1"}
        self.program.send_signal(signal.SIGSTOP)
        self.again("ap")
        self.on("a", "ibv_rc_pingpong", "-g", "1", "-p", str(dropin_common.free_port()), plain=True)
        self.assertTrue(self.until(lambda: dropin_common.Dropin.show(self.at("ap"), "cq")))
        self.program.send_signal(signal.SIGCONT)
        counts = []
        for least in (2, 5):
            self.assertTrue(self.until(lambda least=least: self.logs[0].count("can't be used") >= least), self.told())
            counts.append(len(os.listdir(f"/proc/{self.program.pid}/fd")))
        times = [session_log.seconds(line) for line in self.logs[0].lines[:] if "can't be used" in line]
        self.assertGreaterEqual(times[4] - times[3], 0.7)
        # An attempt in progress has some descriptors; a wreck has more than ten.
        self.assertLess(counts[1], counts[0] + 10)
        self.do("talk")
        self.limits = {}
        self.kill("ap")
        self.back("ap", 2)
        self.do("talk")
        self.ends_well()


class Early(Away):
    """The backup is lost between the opening of the device and its first object."""

    def setUp(self):
        Heal.setUp(self)
        self.program = self.on("a", self.AWAY, stdin=True)
        self.logs = [Log(self.program)]
        watched = type("Watched", (), {"program": self.program})
        self.assertTrue(self.until(lambda: self.watched(watched) == 2))

    test_numbers = test_primary = test_left_out = test_unusable = None

    def test_backup(self):
        self.kill("as")
        self.do("domain", "pair", "talk")
        self.back("as", 2)
        self.kill("ap")
        self.do("talk")
        self.ends_well()


class Off(Heal):
    OPTIONS = {"URNIC_SESSION_LOG": "stderr", "URNIC_SESSION_PROBE": "no"}

    def test_off(self):
        """Without probes no adapter is attached to again."""
        pair = self.begin_pair()
        self.more(pair)
        self.kill("as")
        self.again("as")
        self.more(pair)
        self.assertFalse(dropin_common.Dropin.show(self.at("as"), "qp"))
        self.finish(pair)


class Returns(Heal):
    OPTIONS = dict(Heal.OPTIONS, URNIC_SESSION_FAILBACK="yes")

    def in_use(self, name):
        """Bytes that an adapter has received."""
        return sum(port["rx_bytes"] for port in dropin_common.Dropin.show(self.at(name), "port"))

    def returns(self):
        return sum(log.count("because a better path is trusted again") for log in self.logs)

    def test_primary(self):
        """Traffic returns to the primary adapters, each time."""
        pair = self.begin_pair()
        self.more(pair)
        for name in ("ap", "bp", "ap", "as"):
            marks = self.marks()
            returns = self.returns()
            self.kill(name)
            self.more(pair)
            self.again(name)
            self.heals(marks)
            if name != "as":
                self.assertTrue(self.until(lambda returns=returns: self.returns() > returns), self.told())
            self.assertTrue(self.until(lambda: all(log.whole() for log in self.logs)))
            self.more(pair)
        self.finish(pair)

    def test_shared(self):
        """A shared receive queue returns to the primary adapter with its connection, and its queue pair tells of its end."""
        pair = self.begin_pair("srq")
        self.more(pair)
        marks = self.marks()
        self.kill("ap")
        self.more(pair)
        self.assertTrue(self.until(lambda: self.logs[0].count("is on the backup adapter")), self.told())
        self.again("ap")
        self.heals(marks)
        self.assertTrue(self.until(lambda: self.logs[0].count("is on the primary adapter")), self.told())
        self.more(pair)
        self.finish(pair)


if __name__ == "__main__":
    Heal.NICD, Heal.RUN, Heal.CTL, Heal.SWITCH, Heal.STREAM, Away.AWAY = map(os.path.abspath, sys.argv[1:7])
    dropin_common.ordinary_user(Heal.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[7:], verbosity=2)
