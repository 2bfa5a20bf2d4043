#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two ends agree on a session, or one of them fails: never has one end a session, and the other a plain connection.

usage: session_meet.py URNICD URNIC_RUN URNICCTL SESSION_MEET SESSION_OTHER [TEST...]"""

import errno
import os
import re
import subprocess
import sys
import unittest

import dropin_common
import urnicd_common


class Meet(urnicd_common.Nicd):
    """Nodes a and b; urnicd "p" has the primary adapters of both, and "s" the backups."""
    RUN = CTL = MEET = OTHER = None  # set by the script
    LIMITS = ""

    def setUp(self):
        super().setUp()
        self.nicd = {which: self.launch(which=which) for which in "ps"}
        for p in self.nicd.values():
            self.listens(p)

    def sock(self, which):
        return os.path.join(self.dir.name, f"{which}.sock")

    def config(self, which=None, **lines):
        path = os.path.join(self.dir.name, f"{which}.ini")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[urnicd]\nsocket = {self.sock(which)}\nlog = off\nidle = pause\nempty_polls = 4\n[switch wire]\n")
            for i, node in enumerate("ab"):
                f.write(f"[adapter {node}{which}]\nnode = {node}\nswitch = wire\nipv4 = 10.0.{'ps'.index(which)}.{i + 1}\n")
            if which == "p":
                f.write(f"[limits]\n{self.LIMITS}\n")
        return path

    def tearDown(self):
        for p in self.running[:]:
            if p not in self.nicd.values():
                p.stdin.close()
                self.assertEqual(p.wait(timeout=dropin_common.SECONDS), 0, p.stderr.read())
                p.stdout.close()
                p.stderr.close()
                self.running.remove(p)
        for p in self.nicd.values():
            p.terminate()
        for p in self.nicd.values():
            out, err = p.communicate(timeout=dropin_common.SECONDS)
            self.assertEqual((p.returncode, err), (0, ""), out)
            self.running.remove(p)
        super().tearDown()

    def log(self, node):
        return self.sock(f"{node}-log")

    def is_plain(self, node, why):
        """The log of an end says that its connection has no session, and why."""
        with open(self.log(node), encoding="utf-8") as f:
            lines = [line for line in f if " session plain: " in line]
        self.assertEqual(len(lines), 1, lines)
        self.assertIn(f"connection {self.qpn[node]} to ", lines[0])
        self.assertIn(f" has no session, because {why} | ", lines[0])

    def program(self, node, *command, session=True):
        env = dict(self.env, URNIC_SOCKET=self.sock("p"), URNIC_NODE=node)
        if session:
            env["URNIC_SESSION"] = ",".join(f"{self.sock(which)}:{node}{which}" for which in "ps")
            env["URNIC_SESSION_LOG"] = self.log(node)
        old, self.env = self.env, env
        try:
            return self.popen(*command, stdin=subprocess.PIPE)
        finally:
            self.env = old

    def meet(self, node, session=True):
        return self.program(node, self.RUN, "--node", node, self.MEET, session=session)

    def tell(self, p, line):
        p.stdin.write(line + "\n")
        p.stdin.flush()

    def hear(self, p):
        line = p.stdout.readline()
        self.assertNotEqual(line, "", p.poll() is not None and p.stderr.read())
        return line.rstrip("\n")

    def ask(self, p, line):
        self.tell(p, line)
        return self.hear(p)

    def impair(self, who, spec):
        subprocess.run([self.CTL, "impair", "wire", who, spec], env=dict(self.env, URNIC_SOCKET=self.sock("p")), check=True,
                       capture_output=True)

    def begin(self, session="ab"):
        self.p = {node: self.meet(node, node in session) for node in "ab"}
        self.gid = {node: self.ask(p, "gid") for node, p in self.p.items()}
        self.make()

    def make(self):
        """Make a queue pair at each end."""
        self.at, self.qpn = {}, {}
        for node, p in self.p.items():
            self.at[node], self.qpn[node] = map(int, self.ask(p, "make").split())

    def rtr(self, node, other=None):
        other = other or "ba"["ab".index(node)]
        return int(self.ask(self.p[node], f"rtr {self.at[node]} {self.qpn[other]} {self.gid[other]}"))

    def rts(self, node):
        self.assertEqual(self.ask(self.p[node], f"rts {self.at[node]}"), "0")

    def works(self):
        """Both ends get exactly what the other sent."""
        for node in "ab":
            self.rts(node)
        self.messages("ab", "ba")

    def messages(self, *ways):
        for node, other in ways:
            text = f"a message of {node}"
            self.assertEqual(self.ask(self.p[node], f"send {self.at[node]} {text}"), "0")
            self.assertEqual(self.ask(self.p[other], f"got {self.at[other]}"), f"0 {len(text)} {text}")


class Lost(Meet):
    def show(self, *what):
        return dropin_common.Dropin.show(type("At", (), {"CTL": self.CTL, "env": dict(self.env, URNIC_SOCKET=self.sock("s"))}), *what)

    def backups(self):
        """Queue pairs of the backup adapters that are connected."""
        return sum(qp["state"] == "RTS" for qp in self.show("qp"))

    def warm(self):
        """Let both adapters know each other's MAC address: so only what the test loses is lost."""
        self.begin()
        self.assertEqual([self.rtr(node) for node in "ab"], [0, 0])
        self.works()
        self.assertGreater(self.backups(), 0)
        for node, p in self.p.items():
            self.assertEqual(self.ask(p, f"free {self.at[node]}"), "0")
        self.assertEqual(self.backups(), 0)
        self.make()

    def test_question(self):
        """The peer has a session, and this end's questions are lost: this end fails, and the two have a session later."""
        self.warm()
        self.assertEqual(self.rtr("b"), 0)
        self.impair("ap", "blackhole")
        self.assertEqual(self.rtr("a"), errno.ETIMEDOUT)
        self.impair("ap", "none")
        self.assertEqual(self.rtr("a"), 0)
        self.works()
        self.assertGreater(self.backups(), 0)

    def test_answers_of_one(self):
        """All that one end sends is lost: so neither hears the other, but one of them has answered. That one fails."""
        self.warm()
        self.impair("ap.in", "blackhole")
        self.assertEqual(self.rtr("b"), 0)
        self.assertEqual(self.rtr("a"), errno.ETIMEDOUT)
        self.impair("ap.in", "none")
        self.assertEqual(self.rtr("a"), 0)
        self.works()
        self.assertEqual(self.backups(), 0)

    def test_silence(self):
        """An end that hears nothing, and has answered nothing, gets a plain connection, and so does its peer."""
        self.warm()
        self.impair("ap", "blackhole")
        self.assertEqual(self.rtr("a"), 0)
        self.impair("ap", "none")
        self.assertEqual(self.rtr("b"), 0)
        self.works()
        self.assertEqual(self.backups(), 0)
        self.is_plain("a", "its peer did not answer")
        self.is_plain("b", "its peer has no session layer")

    def test_together(self):
        """Both ends ask at once, and all answers of one are lost."""
        self.warm()
        self.impair("ap.in", "blackhole")
        for node, other in ("ba", "ab"):
            self.tell(self.p[node], f"rtr {self.at[node]} {self.qpn[other]} {self.gid[other]}")
        self.assertEqual([int(self.hear(self.p[node])) for node in "ab"], [errno.ETIMEDOUT, 0])
        self.impair("ap.in", "none")
        self.assertEqual(self.rtr("a"), 0)
        self.works()
        self.assertEqual(self.backups(), 0)

    def test_fails_at_both(self):
        """The peer of an end that failed sends no bytes to it: its requests fail."""
        self.warm()
        self.assertEqual(self.rtr("b"), 0)
        self.rts("b")
        self.impair("ap", "blackhole")
        self.assertEqual(self.rtr("a"), errno.ETIMEDOUT)
        self.impair("ap", "none")
        self.assertEqual(self.ask(self.p["b"], f"send {self.at['b']} nobody gets this"), "12")  # IBV_WC_RETRY_EXC_ERR

    def test_plain_peer(self):
        self.begin(session="a")
        self.assertEqual([self.rtr(node) for node in "ab"], [0, 0])
        self.works()
        self.assertEqual(self.backups(), 0)
        self.is_plain("a", "its peer has no session layer")


class Answers(Meet):
    def other(self, node):
        return self.program(node, self.OTHER, session=False)

    def test_version(self):
        """An answer that this end can't use fails the change to RTR."""
        self.begin()
        other = self.other("b")
        self.qpn["b"] = int(self.ask(other, "make"))
        self.tell(other, "answer")
        self.assertEqual(self.rtr("a"), errno.EPROTO)
        self.assertEqual(self.hear(other), "0")


    def counter(self, name):
        at = type("At", (), {"CTL": self.CTL, "env": dict(self.env, URNIC_SOCKET=self.sock("p"))})
        return dropin_common.Dropin.show(at, "counters", "ap", "all")[0][name]

    def test_hostile(self):
        """A program can't answer for another program's queue pair, nor for one that is yet to be made."""
        self.begin()
        other = self.other("a")
        self.assertRegex(self.ask(other, f"listen {self.qpn['a']}"),
                         f"^{errno.EACCES} ap: service 0x[0-9a-f]+ is for the program that owns QP {self.qpn['a']:#x}$")
        self.assertRegex(self.ask(other, "listen 16777215"), f"^{errno.EACCES} ")  # nobody's
        self.assertEqual(self.counter("cm_not_owner"), 2)
        self.assertEqual([self.rtr(node) for node in "ab"], [0, 0])
        self.works()


class Names(Meet):
    def test_same(self):
        """Two names of one adapter are no two adapters."""
        p, link = self.sock("p"), os.path.join(self.dir.name, "link")
        os.symlink(p, link)
        for value, code in ((f"{p}:ap,{p}:bp", 0), (f"{p}:ap,{p}:a", 1), (f"{p}:ap,{p}", 1), (f"{link}:ap,{p}:ap", 1), (f"{p},{link}", 1),
                            (f"{link}:ap,{p}:bp", 0)):
            run = subprocess.run([self.RUN, "ibv_devices"], env=dict(self.env, URNIC_SESSION=value), capture_output=True, text=True,
                                 timeout=dropin_common.SECONDS, check=False)
            self.assertEqual(run.returncode, code, (value, run.stdout + run.stderr))
            if code:
                self.assertRegex(run.stderr, "both adapters are the same one, [a-z0-9_]+ of /.*: a session needs two", value)


class Pairs(Meet):
    def primary(self, **env):
        """The number of the device that a program gets: its primary adapter's."""
        run = subprocess.run([self.RUN, "ibv_devices"], env=dict(self.env, **env), capture_output=True, text=True,
                             timeout=dropin_common.SECONDS, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout)
        return re.search(r"^\s+urnic0\s+([0-9a-f]{16})$", run.stdout, re.M)[1]

    def test_spread(self):
        """Instances are spread over pairs of adapters (FO-6): 16 over 4 pairs are 4 each."""
        p, s = self.sock("p"), self.sock("s")
        pairs = [f"{p}:ap,{s}:as", f"{p}:bp,{s}:bs", f"{s}:as,{p}:ap", f"{s}:bs,{p}:bp"]
        alone = [self.primary(URNIC_SESSION=pair) for pair in pairs]
        self.assertEqual(len(set(alone)), 4)
        got = [self.primary(URNIC_SESSION=";".join(pairs), URNIC_SESSION_INSTANCE=str(n)) for n in range(16)]
        self.assertEqual(got, alone * 4)
        # The number of a process, as its starter says it, or the process's own.
        self.assertEqual(self.primary(URNIC_SESSION=";".join(pairs), SLURM_LOCALID="6"), alone[2])
        self.assertEqual(self.primary(URNIC_SESSION=";".join(pairs), SLURM_LOCALID="6", URNIC_SESSION_INSTANCE="1"), alone[1])
        self.assertIn(self.primary(URNIC_SESSION=";".join(pairs)), alone)
        for value, instance, why in ((pairs[0] + ";", "0", "there must be two adapters"), (";".join(pairs), "x", "URNIC_SESSION_INSTANCE is 'x'")):
            run = subprocess.run([self.RUN, "ibv_devices"], capture_output=True, text=True, timeout=dropin_common.SECONDS, check=False,
                                 env=dict(self.env, URNIC_SESSION=value, URNIC_SESSION_INSTANCE=instance))
            self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
            self.assertIn(why, run.stderr)


class Changes(Meet):
    def lose(self, which):
        self.nicd[which].kill()
        self.nicd[which].communicate()
        self.running.remove(self.nicd.pop(which))

    def timers(self, name):
        """Least RNR timers of the queue pairs of an adapter."""
        at = type("At", (), {"CTL": self.CTL, "env": dict(self.env, URNIC_SOCKET=self.sock(name[1]))})
        qpns = [qp["qpn"] for qp in dropin_common.Dropin.show(at, "qp", "adapter", name)]
        return [dropin_common.Dropin.show(at, "qp", str(qpn), "adapter", name)[0]["min_rnr_timer"] for qpn in qpns]

    def test_backups(self):
        """A change of a connected queue pair reaches its backups, also after a loss."""
        self.begin()
        self.assertEqual([self.rtr(node) for node in "ab"], [0, 0])
        self.works()
        self.assertEqual(self.ask(self.p["a"], f"timer {self.at['a']} 7"), "0")
        self.assertEqual([self.timers(name).count(7) for name in ("ap", "as", "bs")], [2, 2, 0])
        self.lose("p")
        self.messages("ab", "ba")
        self.assertEqual(self.ask(self.p["a"], f"timer {self.at['a']} 9"), "0")
        self.assertIn(9, self.timers("as"))
        self.assertEqual(self.ask(self.p["a"], f"timer {self.at['a']} 32"), str(errno.EINVAL))
        self.messages("ab", "ba")

    def test_init(self):
        """A right that was given in INIT holds on the backups, too; without it a write fails."""
        self.begin()
        self.assertEqual(self.ask(self.p["b"], f"allow {self.at['b']}"), "0")
        self.assertEqual([self.rtr(node) for node in "ab"], [0, 0])
        self.works()
        memory = {node: self.ask(p, "memory") for node, p in self.p.items()}
        self.assertEqual(self.ask(self.p["a"], f"write {self.at['a']} {memory['b']}"), "0")
        self.lose("p")
        self.messages("ab", "ba")
        self.assertEqual(self.ask(self.p["a"], f"write {self.at['a']} {memory['b']}"), "0")
        self.assertEqual(self.ask(self.p["b"], f"write {self.at['b']} {memory['a']}"), "9")  # IBV_WC_REM_INV_REQ_ERR

    def test_rts(self):
        """The primary adapters are lost between RTR and RTS."""
        self.begin()
        self.assertEqual([self.rtr(node) for node in "ab"], [0, 0])
        self.lose("p")
        self.works()

    def test_none(self):
        self.begin()
        self.assertEqual([self.rtr(node) for node in "ab"], [0, 0])
        self.works()
        self.lose("p")
        self.lose("s")
        self.assertEqual(self.ask(self.p["a"], f"timer {self.at['a']} 7"), str(errno.EIO))


class Ids(Meet):
    LIMITS = "cm_per_client = 2"

    def test_exhausted(self):
        """Without connection ids neither end has a session, nor a plain connection. With one more both have sessions."""
        self.begin()
        at, qpn = dict(self.at), dict(self.qpn)
        spare = self.ask(self.p["a"], "make").split()[0]
        self.assertEqual(self.rtr("a"), errno.EDQUOT)
        self.assertEqual(self.rtr("b"), errno.EAGAIN)
        self.assertEqual(self.ask(self.p["a"], f"free {spare}"), "0")
        self.assertEqual((self.at, self.qpn), (at, qpn))
        self.assertEqual([self.rtr(node) for node in "ab"], [0, 0])
        self.works()


if __name__ == "__main__":
    Meet.NICD, Meet.RUN, Meet.CTL, Meet.MEET, Meet.OTHER = map(os.path.abspath, sys.argv[1:6])
    dropin_common.ordinary_user(Meet.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[6:], verbosity=2)
