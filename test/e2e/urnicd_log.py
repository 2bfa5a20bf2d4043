#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The log of events of urnicd (doc/reference/log.md): each event is provoked, and its line tells somebody who was not there
when it happened, to which object, by which program of which user, and why.

usage: urnicd_log.py URNICCTL URNICD URNIC_PERF CONFIG_FOLDER"""

import fcntl
import getpass
import json
import os
import re
import signal
import socket
import subprocess
import sys
import termios
import time
import unittest

sys.dont_write_bytecode = True
import hang
from urnicd_common import LONG, Nicd, SECONDS

LINE = re.compile(r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) urnicd\[(?P<pid>\d+)\] (?P<level>[a-z]+) "
                  r"(?P<area>[a-z]+) (?P<event>[a-z-]+): (?P<text>[ -~]+)")


class Log(Nicd):
    CTL = None
    QUIET = ""

    def setUp(self):
        super().setUp()
        self.log = os.path.join(self.dir.name, "log")
        self.user = getpass.getuser() if os.getuid() else "root"

    def begin(self, daemon="", **lines):
        return self.start(daemon=f"log_file = {self.log}\n{daemon}", **lines)[0]

    def ctl(self, *words, code=0):
        p = subprocess.run([self.CTL, "--socket", self.socket, *words], env=self.env, capture_output=True, text=True,
                           timeout=SECONDS, check=False)
        self.assertEqual(p.returncode, code, p.stderr)
        return p

    def lines(self, area="", event="", path=None):
        """Lines of the log, each of which has the form that the page says."""
        with open(path or self.log, encoding="ascii") as f:
            found = [(LINE.fullmatch(line.rstrip("\n")), line) for line in f if line.endswith("\n")]
        for m, line in found:
            self.assertTrue(m, line)
        return [m for m, _ in found if area in ("", m["area"]) and event in ("", m["event"])]

    def line(self, area, event, text):
        """The lines of an event with a sentence, once there are some."""
        got = self.until(lambda: [m for m in self.lines(area, event) if re.search(text, m["text"])])
        self.assertTrue(got, (area, event, text, [m.group() for m in self.lines()]))
        return got[0]

    def who(self, p, program="urnic-perf"):
        return rf"^program {program} \(process {p.pid}, user {self.user}, client \d+\) "

    def test_a_programs_life(self):
        """Start, attach, leave and stop, in this order, with times between those before and after."""
        before = time.time() - 1
        p = self.begin()
        self.line("daemon", "start", "serves programs")
        perf = self.popen(self.PERF, "send_lat", "--attach", self.socket, "--iters", "50")
        perf.communicate(timeout=SECONDS)
        for node, adapter in (("a", "a0"), ("b", "b0")):
            m = self.line("client", "attach", self.who(perf) + f"attached to adapter {adapter} of node {node}$")
            self.assertEqual((m["level"], m["pid"]), ("info", str(p.pid)))
            self.line("client", "leave", self.who(perf) + rf"left adapter {adapter} after \d+\.\d s: "
                      r"(?:the program closed the connection|the process has ended)")
        self.stop(p)
        m = self.line("daemon", "start", rf"^version \S+ serves programs at {self.socket}, by {self.dir.name}/c.ini$")
        self.assertEqual(m["level"], "notice")
        self.line("daemon", "stop", r"^ends by signal 15 \(Terminated\)$")
        got = self.lines()
        self.assertEqual([m["event"] for m in got if m["event"] in ("start", "attach", "leave", "stop")],
                         ["start", "attach", "attach", "leave", "leave", "stop"])
        for m in got:
            at = time.mktime(time.strptime(m["time"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
            self.assertTrue(before - 1 <= at <= time.time() + 1, m.group())
        self.assertEqual(os.stat(self.log).st_mode & 0o7777 & ~0o640, 0)

    def test_killed(self):
        """A program that is killed has objects that are taken back; the line says how many."""
        p = self.begin()
        perf = self.popen(self.PERF, "write_bw", "--attach", self.socket, "--duration", LONG)
        self.assertTrue(self.until(lambda: "RTS" in self.ctl("show", "qp").stdout))
        perf.kill()
        perf.communicate()
        self.line("client", "leave", self.who(perf) + r"left adapter a0 after \d+\.\d s: "
                  r"(?:the process has ended|the program closed the connection); [1-9]\d* queue pairs? and [1-9]\d* memory regions? were taken back$")
        self.stop(p)

    def test_port_and_queue_pair(self):
        """A port is taken down: the command, the port and each queue pair's error have lines, and the port's return, too."""
        p = self.begin()
        self.line("port", "up", "^port a0 has a link$")
        perf = self.popen(self.PERF, "write_bw", "--attach", self.socket, "--duration", LONG)
        self.assertTrue(self.until(lambda: "RTS" in self.ctl("show", "qp").stdout))
        self.ctl("port", "a0", "down")
        m = self.line("command", "command", rf"^(?:program urnicctl \(process \d+, user {self.user}\)|"
                      rf"process \d+ \(user {self.user}\)) gave the command: port a0 down$")
        self.assertEqual(m["level"], "notice")
        m = self.line("port", "down", "^port a0 has no link: a command took it down")
        self.assertEqual(m["level"], "warning")
        m = self.line("qp", "error", self.who(perf) + r"has an error on adapter a0: QP 0x[0-9a-f]+ to 10\.0\.0\.2 QP 0x[0-9a-f]+: "
                      r"RDMA WRITE of 65536 bytes at PSN 0x[0-9a-f]{6} was not acknowledged, sent \d+ times?, .*"
                      r"port a0 is administratively down$")
        self.assertEqual(m["level"], "warning")
        perf.communicate(timeout=SECONDS)
        self.ctl("port", "a0", "fail")
        self.ctl("port", "a0", "up")
        self.assertTrue(self.until(lambda: len([m for m in self.lines("port", "up") if " a0 " in m["text"]]) == 2))
        self.stop(p)

    def test_refused_and_limits(self):
        """A program too many, nonsense instead of a program, and a call beyond a limit."""
        path = self.config(daemon=f"log_file = {self.log}")
        with open(path, "a", encoding="utf-8") as f:
            f.write("[limits]\nclients = 3\nclients_per_uid = 3\nqp_per_client = 2\nqp_per_uid = 6\n")
        p = self.popen(self.NICD, "-c", path, cwd=self.dir.name)
        while "listening at" not in p.stderr.readline():
            self.assertIsNone(p.poll())
        q = subprocess.run([self.PERF, "send_bw", "--attach", self.socket, "--qps", "5", "--iters", "5"], env=self.env,
                           capture_output=True, text=True, timeout=SECONDS, check=False)
        self.assertNotEqual(q.returncode, 0)
        m = self.line("limit", "limit", rf"^program urnic-perf \(process \d+, user {self.user}, client \d+\) reached a limit: a0: a "
                      r"program may have at most 2 queue pairs \(\[limits\] of the dataplane\)$")
        self.assertEqual(m["level"], "warning")
        self.assertTrue(self.until(lambda: json.loads(self.ctl("--json", "show", "server").stdout)[0]["clients"] == 0))
        held = []
        for _ in range(3):
            held.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            held[-1].connect(self.socket)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.connect(self.socket)
            self.assertNotEqual(s.recv(4096), b"")
        me = rf"^program \S+ \(process {os.getpid()}, user {self.user}\) "
        m = self.line("client", "refuse", me + r"was refused: at most 3 programs may be attached \(\[limits\] of the dataplane\)$")
        self.assertEqual(m["level"], "warning")
        held[0].send(b"hello, is this a dataplane?")
        self.assertNotEqual(held[0].recv(4096), b"")
        self.line("client", "nonsense", me + "loses its connection: the message is none of urnic's library$")
        for s in held:
            s.close()
        self.stop(p)

    def test_stopped_and_killed(self):
        """urnicd says that it did not run, and for how long; the next one, that the one before was killed; and an adapter's port,
        whose it is."""
        path = os.path.join(self.dir.name, "c.ini")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[urnicd]\nsocket = {self.socket}\nlog_file = {self.log}\nidle = pause\nempty_polls = 4\n"
                    "[port p0]\ndevice = net_null0\n[adapter a0]\nport = p0\nipv4 = 10.0.0.1\n")
        p = self.popen(self.NICD, "-c", path, cwd=self.dir.name)
        self.listens(p)
        self.line("port", "up", "^port p0 of adapter a0 has a link$")
        self.ctl("port", "p0", "down")
        self.line("port", "down", "^port p0 of adapter a0 has no link: a command took it down$")
        self.assertTrue(self.line("daemon", "start", f"^version .* by {path}$"))
        p.send_signal(signal.SIGSTOP)
        self.assertTrue(self.until(lambda: hang.proc(f"{p.pid}/stat").rpartition(")")[2].split()[0] == "T"))
        time.sleep(1.5)
        p.send_signal(signal.SIGCONT)
        m = self.line("daemon", "stood", r"^no port was looked at for [1-9]\d*\.\d s: urnicd was stopped, got no "
                      "processor, or waited for a disk or the reader of its log$")
        self.assertEqual(m["level"], "warning")
        p.kill()
        p.communicate()
        p = self.popen(self.NICD, "-c", path, cwd=self.dir.name)
        self.listens(p)
        self.line("daemon", "start", f" by {path}; the one before was killed or crashed, and left its socket$")
        p.terminate()
        p.communicate(timeout=SECONDS)

    def test_captures(self):
        p = self.begin(daemon=f"capture_dir = {self.dir.name}")
        self.ctl("capture", "start", "a0", "a.pcapng", "frames", "4")
        self.line("capture", "begin", f"^frames of port a0 go to a.pcapng in {os.path.realpath(self.dir.name)}$")
        self.perf("send_lat", "--iters", "20")
        self.line("capture", "end", r"^the capture of port a0 to a.pcapng ended with 4 frames, \d+ bytes; \d+ frames were dropped: "
                  "its limit is reached$")
        self.ctl("capture", "start", "all", "b.pcapng")
        self.ctl("capture", "stop")
        self.line("capture", "end", r"^the capture of all ports to b.pcapng ended with \d+ frames, .*: stopped by a command, or with urnicd$")
        self.assertEqual(len(self.lines("capture", "end")), 2)
        self.stop(p)

    def test_levels(self):
        """Levels of areas, by the file and by a command; a wrong one is refused with the words that there are."""
        p = self.begin(daemon="log = client:off, command:off")
        self.perf("send_lat", "--iters", "5")
        levels = {row["area"]: row["level"] for row in json.loads(self.ctl("--json", "show", "log").stdout)}
        self.assertEqual((levels["client"], levels["qp"]), ("off", "info"))
        self.ctl("log", "command", "notice")
        self.line("command", "command", "gave the command: log command notice$")
        self.assertEqual(self.lines("client"), [])
        self.ctl("log", "client", "info")
        self.perf("send_lat", "--iters", "5")
        self.line("client", "attach", "attached to adapter a0")
        self.assertIn("did you mean client?", self.ctl("log", "cleint", "info", code=2).stderr)
        self.assertIn("there are off, error, warning", self.ctl("log", "qp", "loud", code=2).stderr)
        self.assertIn("one area", self.ctl("log", "qp", "info,port:off", code=2).stderr)
        self.ctl("log", "all", "warning")
        levels = {row["level"] for row in json.loads(self.ctl("--json", "show", "log").stdout)}
        self.assertEqual(levels, {"warning"})
        self.ctl("log", "command", "info")
        self.line("command", "command", "gave the command: log command info$")
        self.ctl("log", "all", "off")
        self.line("command", "command", "gave the command: log all off$")
        self.stop(p)

    def test_flood(self):
        """A program attaches again and again: it has some lines, the others are counted and said, and nothing is lost."""
        p = self.begin()
        for _ in range(60):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
                s.connect(self.socket)
                s.send(b"nonsense")
                self.assertNotEqual(s.recv(4096), b"")
        self.assertTrue(self.until(lambda: self.counted("client", "nonsense") == 60),
                        [m.group() for m in self.lines("client")])
        self.assertTrue([m for m in self.lines("client", "nonsense") if re.search(r"\d+ more like this within a second$", m["text"])])
        server = json.loads(self.ctl("--json", "show", "server").stdout)[0]
        self.assertEqual(server["log_lost"], 0)
        self.stop(p)

    def counted(self, area, event):
        n = 0
        for m in self.lines(area, event):
            more = re.search(r"(\d+) more like this within a second$", m["text"])
            n += int(more[1]) if more else 1
        return n

    def test_journal(self):
        """On the journal's standard error each line has its priority in front, and by choice without one."""
        read, write = os.pipe()
        st = os.fstat(write)
        for env, daemon, want in ((f"{st.st_dev}:{st.st_ino}", "", True), ("1:2", "", False), ("", "log_journal = yes", True),
                                  (f"{st.st_dev}:{st.st_ino}", "log_journal = no", False)):
            p = subprocess.Popen([self.NICD, "-c", self.config(daemon=daemon)], stdout=subprocess.PIPE, stderr=write,
                                 env=dict(self.env, JOURNAL_STREAM=env), cwd=self.dir.name)
            self.running.append(p)
            text = b""
            while not re.search(rb"daemon start: .*\n", text):
                text += os.read(read, 4096)
            line = re.search(rb"(.*)daemon start", text)[1]
            self.assertEqual(bool(re.match(rb"<5>\d{4}-", line)), want, (env, daemon, line))
            p.terminate()
            p.communicate(timeout=SECONDS)
            while b"daemon stop" not in text:
                text += os.read(read, 4096)
        os.close(read)
        os.close(write)

    def test_rotation(self):
        """A file that was moved away gets no line any more after SIGHUP; no event is lost meanwhile."""
        p = self.begin()
        self.line("daemon", "start", "serves")
        os.rename(self.log, self.log + ".1")
        p.send_signal(signal.SIGHUP)
        self.assertTrue(self.until(lambda: os.path.exists(self.log)))
        self.perf("send_lat", "--iters", "5")
        self.line("client", "attach", "attached to adapter a0")
        self.assertEqual(self.lines("client", "attach", self.log + ".1"), [])
        self.stop(p)
        self.line("daemon", "stop", "ends by signal 15")

    def rewrite(self, *changes):
        """Change the configuration's text."""
        path = os.path.join(self.dir.name, "c.ini")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for old, new in changes:
            self.assertIn(old, text)
            text = text.replace(old, new)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def reloaded(self):
        """The answer of the command: changes, by section and key."""
        rows = json.loads(self.ctl("--json", "reload").stdout or "[]")
        return {(r["section"], r["key"]): (r["from"], r["to"], r["when"]) for r in rows}

    def test_reload(self):
        """Keys that can change do, while a program runs; the others are named, and wait for a start; a mistake changes nothing."""
        p = self.begin(a0="window = 64", wire="impair a0.in = delay=1us")
        perf = self.popen(self.PERF, "write_bw", "--attach", self.socket, "--duration", LONG)
        self.assertTrue(self.until(lambda: "RTS" in self.ctl("show", "qp").stdout))
        self.assertEqual(self.reloaded(), {})
        self.line("daemon", "reload", "was read again and says nothing new$")
        self.rewrite(("window = 64", "window = 32\nrto_floor = 8ms"), ("impair a0.in = delay=1us", "impair b0.out = drop=1%"),
                     ("idle = pause\n", "idle = spin\nlog = info, client:error\n"), ("10.0.0.2", "10.0.0.3"),
                     ("[eal]", "[limits]\nqp_per_client = 2\nqp_per_uid = 100000\n[adapter c0]\nswitch = wire\n[eal]"))
        later, none = "with the next start of urnicd", ""
        self.assertEqual(self.reloaded(), {
            ("urnicd", "idle"): ("pause", "spin", "now"), ("urnicd", "log"): (none, "info, client:error", "now"),
            ("adapter a0", "window"): ("64", "32", "now"), ("adapter a0", "rto_floor"): (none, "8ms", "now"),
            ("switch wire", "impair a0.in"): ("delay=1us", none, "now"), ("switch wire", "impair b0.out"): (none, "drop=1%", "now"),
            ("limits", "qp_per_client"): (none, "2", "now"), ("limits", "qp_per_uid"): (none, "100000", later),
            ("adapter b0", "ipv4"): ("10.0.0.2", "10.0.0.3", later), ("adapter c0", none): (none, none, later)})
        shown = {r["name"]: r for r in json.loads(self.ctl("--json", "show", "adapter").stdout)}
        self.assertEqual((shown["a0"]["window"], shown["a0"]["rto_floor_us"], shown["b0"]["window"]), (32, 8000, 256))
        self.assertEqual((shown["b0"]["ipv4"], len(shown)), ("10.0.0.2", 2))
        self.assertEqual(json.loads(self.ctl("--json", "show", "engine").stdout)[0]["idle"], "spin")
        self.assertIn("client error", re.sub(" +", " ", self.ctl("show", "log").stdout))
        ports = {r["port"]: r for r in json.loads(self.ctl("--json", "show", "switch").stdout)}
        self.assertIn("drop=", ports["b0"]["impair_out"])
        self.assertNotIn("delay", ports["a0"]["impair_in"])
        self.line("daemon", "reload", r"^\[adapter a0\] window: 32 instead of 64, from now on$")
        self.line("daemon", "reload", r"^\[adapter b0\] ipv4: 10\.0\.0\.3 instead of 10\.0\.0\.2, with the next start of urnicd$")
        self.line("daemon", "reload", r"^\[adapter c0\] is new in the file: that comes with the next start of urnicd$")
        q = subprocess.run([self.PERF, "send_bw", "--attach", self.socket, "--qps", "5", "--iters", "5"], env=self.env,
                           capture_output=True, text=True, timeout=SECONDS, check=False)
        self.assertIn("a program may have at most 2 queue pairs", q.stderr)
        self.rewrite(("window = 32", "window = 0"))
        self.assertIn("window = 0", self.ctl("reload", code=1).stderr)
        m = self.line("daemon", "no-reload", r"c\.ini:\d+: window = 0: .*; nothing was changed$")
        self.assertEqual(m["level"], "error")
        self.rewrite(("window = 0", "window = 16"))
        p.send_signal(signal.SIGHUP)
        self.line("daemon", "reload", r"^\[adapter a0\] window: 16 instead of 32, from now on$")
        self.assertIsNone(perf.poll())
        self.stop(p)

    def test_reload_sections(self):
        """A section that is new since the start holds with the next one, whatever changes in it; one that is back holds at once."""
        p = self.begin(a0="window = 64")
        path = os.path.join(self.dir.name, "c.ini")
        with open(path, encoding="utf-8") as f:
            first = f.read()
        later, none = "with the next start of urnicd", ""
        added = "[adapter c0]\nswitch = wire\nwindow = 8\n[engine 0]\nidle = spin\n[eal]"
        self.rewrite(("[eal]", added))
        new = {("adapter c0", none): (none, none, later), ("engine 0", none): (none, none, later)}
        self.assertEqual(self.reloaded(), new)
        self.rewrite(("window = 8", "window = 16"), ("empty_polls = 4", "empty_polls = 5"))
        self.assertEqual(self.reloaded(), {**new, ("urnicd", "empty_polls"): ("4", "5", "now")})
        engine = json.loads(self.ctl("--json", "show", "engine").stdout)[0]
        self.assertEqual(engine["idle"], "pause")
        with open(path, "w", encoding="utf-8") as f:
            f.write(first)
        self.reloaded()
        start, end = first.index("[adapter a0]"), first.index("[adapter b0]")
        self.rewrite((first[start:end], ""))
        self.assertEqual(self.reloaded(), {("adapter a0", none): (none, none, later)})
        with open(path, "w", encoding="utf-8") as f:
            f.write(first.replace("window = 64", "window = 32"))
        self.assertEqual(self.reloaded(), {("adapter a0", none): (none, none, "now")})
        self.line("daemon", "reload", r"^\[adapter a0\] is back in the file: the values that can change hold from now on$")
        shown = {r["name"]: r for r in json.loads(self.ctl("--json", "show", "adapter").stdout)}
        self.assertEqual(shown["a0"]["window"], 32)
        self.rewrite(("empty_polls = 4", "empty_polls = 4\nlog = off"))
        self.assertEqual(self.reloaded(), {("urnicd", "log"): (none, "off", "now")})
        self.line("daemon", "reload", r"^\[urnicd\] log: off instead of its default, from now on$")
        self.stop(p)

    def test_terminal(self):
        """SIGHUP from a process lets urnicd go on, and the hang-up of its terminal ends it."""
        ours, theirs = os.openpty()

        def own_terminal():
            os.setsid()
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

        p = self.popen(self.NICD, "-c", self.config(daemon=f"log_file = {self.log}"), stdin=theirs, preexec_fn=own_terminal)
        os.close(theirs)
        self.assertIn("listening at", p.stderr.readline())
        p.send_signal(signal.SIGHUP)
        self.line("daemon", "reload", "says nothing new$")
        os.close(ours)
        p.communicate(timeout=SECONDS)
        self.assertEqual(p.returncode, 128 + signal.SIGHUP)
        self.line("daemon", "stop", r"^ends by signal 1 \(Hangup\)$")

    def test_page_has_all_events(self):
        """Each event that these tests provoke stands in the manual, and the other way round."""
        with open(os.path.join(os.path.dirname(self.CONFIG), "doc", "reference", "log.md"), encoding="utf-8") as f:
            rows = re.findall(r"^\| `(\w+)` \| `([\w-]+)` \| (\w+) \|", f.read(), re.M)
        with open(__file__, encoding="utf-8") as f:
            provoked = set(re.findall(r'line\("(\w+)", "([\w-]+)"', f.read()))
        self.assertEqual({(a, e) for a, e, _ in rows} - provoked, LATER)


# Events of unit tests: a full disk, a queue without room, and a client that leaves (test_log_writer, verbs_left); of routers, which
# routes.py has; of two ports, which session_ports.py has.
LATER = {("capture", "fail"), ("log", "lost"), ("port", "moved"), ("session", "move"), ("route", "come"), ("route", "use"), ("route", "go")}

if __name__ == "__main__":
    # Where these tests run under nohup, urnicd would leave the signal ignored.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    Log.CTL, Nicd.NICD, Nicd.PERF, Nicd.CONFIG = map(os.path.abspath, sys.argv[1:5])
    unittest.main(argv=sys.argv[:1], verbosity=2)
