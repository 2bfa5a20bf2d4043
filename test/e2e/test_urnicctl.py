#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnicctl and the console of urnicd: every command, in words and as JSON, from a shell, a pipe and a terminal."""

import fcntl
import grp
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

NICD = CTL = PERF = PROJECT = None
SECONDS = 60
SHOW = ("port", "adapter", "engine", "qp", "errors", "cq", "srq", "msg", "am", "mr", "client", "switch", "address", "neigh", "route",
        "counters", "limits", "server", "version")


class Base(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(prefix="urnic-test.")
        self.socket = os.path.join(self.dir.name, "nicd.sock")
        self.running = []

    def tearDown(self):
        for p in self.running:
            if p.poll() is None:
                p.kill()
            p.communicate()
        self.dir.cleanup()

    def config(self, more=""):
        path = os.path.join(self.dir.name, "c.ini")
        with open(os.path.join(PROJECT, "config", "two-nodes.ini"), encoding="utf-8") as f:
            text = f.read()
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[urnicd]\nsocket = {self.socket}\nlog = off\nidle = pause\nempty_polls = 4\n{more}\n{text}")
        return path

    def popen(self, *args, **kwargs):
        p = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)
        self.running.append(p)
        return p

    def start(self, more=""):
        p = self.popen(NICD, "-c", self.config(more))
        self.assertIn("listening at", p.stderr.readline())
        return p

    def stop(self, p):
        p.send_signal(signal.SIGTERM)
        out, err = p.communicate(timeout=SECONDS)
        self.assertEqual((p.returncode, out, err), (0, "", ""))
        self.assertFalse(os.path.exists(self.socket + ".ctl"))

    def run_ctl(self, *args, env=None):
        return subprocess.run([CTL, *args], capture_output=True, text=True, timeout=SECONDS, env=env,
                              check=False)

    def ctl(self, *command):
        """Run a command that must succeed. returns: its output"""
        p = self.run_ctl("--socket", self.socket, *command)
        self.assertEqual((p.returncode, p.stderr), (0, ""), command)
        return p.stdout

    def rows(self, *command):
        """Run a command that must succeed. returns: its output as objects, from JSON"""
        return json.loads(self.ctl("--json", *command))

    def fails(self, code, words, *command):
        p = self.run_ctl("--socket", self.socket, *command)
        self.assertEqual((p.returncode, p.stdout), (code, ""), command)
        self.assertEqual(p.stderr.count("\n"), 1, p.stderr)
        for w in (words,) if isinstance(words, str) else words:
            self.assertIn(w, p.stderr)

    def perf_start(self, *args):
        return self.popen(PERF, "write_bw", "--attach", self.socket, *args)

    def run_perf_once(self):
        return subprocess.run([PERF, "write_bw", "--attach", self.socket, "--iters", "10"], capture_output=True,
                              text=True, timeout=SECONDS, check=False)

    def until(self, what):
        end = time.time() + SECONDS
        while time.time() < end:
            got = what()
            if got:
                return got
            time.sleep(0.02)
        self.fail("the answer did not come")


class Urnicctl(Base):
    def test_control_group(self):
        """Members of control_group may ask, other users may not. Without root only the socket's group is checked."""
        root = os.getuid() == 0
        name = grp.getgrgid(65534 if root else os.getgid()).gr_name
        p = self.start(f"control_group = {name}")
        st = os.stat(self.socket + ".ctl")
        self.assertEqual((st.st_mode & 0o777, grp.getgrgid(st.st_gid).gr_name), (0o660, name))
        self.assertEqual(os.stat(self.socket).st_mode & 0o777, 0o600)
        self.ctl("show", "version")
        if root:
            os.chmod(self.dir.name, 0o755)
            for group, code in ((65534, 0), (1, 1)):
                q = subprocess.run([CTL, "--socket", self.socket, "show", "version"], capture_output=True, text=True,
                                   timeout=SECONDS, user=65534, group=group, extra_groups=[], check=False)
                self.assertEqual(q.returncode, code, q.stdout + q.stderr)
                self.assertIn("urnic" if code == 0 else f"for user 65534: the socket is of user 0 and group {name}, mode 0660: members of \"control_group\"", q.stdout + q.stderr)
        self.stop(p)
        q = subprocess.run([NICD, "-c", self.config("control_group = no-such-group")], capture_output=True,
                           text=True, timeout=SECONDS, check=False)
        self.assertEqual(q.returncode, 1)
        self.assertIn("group no-such-group: there is none of that name", q.stderr)

    def test_area_limits(self):
        """Limits on areas are shown, and the size of each program's area."""
        p = self.start("[limits]\narea_per_uid = 3G\n")
        def shown(*client):
            return [r for r in self.rows("show", "limits", *client) if r["limit"] == "area"][0]

        self.assertEqual(shown(), {"limit": "area", "per_client": "unlimited", "per_uid": 3 << 30, "total": "unlimited",
                                   "used_client": 0, "used_uid": 0, "used_total": 0})
        perf = self.perf_start("--duration", "60")
        clients = self.until(lambda: [c for c in self.rows("show", "client") if c["qps"]])
        one = self.rows("show", "client", str(clients[0]["client"]))[0]
        self.assertEqual(one["area_bytes"], 1 << 30)
        self.assertIn(one["area_resident_bytes"], range(4096, 1 << 30))
        used = shown("client", str(clients[0]["client"]))
        self.assertEqual([used["used_client"], used["used_uid"], used["used_total"]], [1 << 30, 2 << 30, 2 << 30])
        # Two areas of 1 GiB are there; a third fits into 3 GiB, and the fourth does not.
        q = self.run_perf_once()
        self.assertNotEqual(q.returncode, 0)
        self.assertIn("a user may have at most 3221225472 bytes of areas for queues", q.stderr)
        perf.terminate()
        self.until(lambda: not self.rows("show", "client"))
        self.assertEqual(self.run_perf_once().returncode, 0)
        self.stop(p)

    def test_show_when_nothing_is_attached(self):
        p = self.start()
        for what in SHOW:
            with self.subTest(what):
                text, rows = self.ctl("show", what), self.rows("show", what)
                self.assertEqual(text.count("\n") > 1, bool(rows)) # a table without rows has its heads
                for row in rows:
                    for key, value in row.items():
                        self.assertRegex(key, r"^[a-z][a-z0-9_]*$")
                        self.assertIn(type(value), (str, int, bool))
                        self.assertIn(key, text)
        self.assertEqual([r["name"] for r in self.rows("show", "adapter")], ["a0", "b0"])
        self.assertEqual(self.rows("show", "adapter", "a0")[0]["ipv4"], "10.0.0.1")
        self.assertEqual({r["port"] for r in self.rows("show", "switch")}, {"a0", "b0"})
        self.assertEqual(self.rows("show", "qp"), [])
        self.assertIn("drop_icrc", self.rows("show", "counters", "all", "a0")[0])
        self.assertIn("rx_packets", self.rows("show", "port", "a0")[0])
        self.assertIn("in_pushed", self.rows("show", "switch", "wire", "all")[0])
        self.stop(p)

    def test_show_what_programs_have(self):
        p = self.start()
        perf = self.perf_start("--duration", "60", "--qps", "20")
        self.until(lambda: len(self.rows("show", "qp", "state", "RTS")) == 40)
        clients = self.rows("show", "client")
        self.assertEqual({c["program"] for c in clients}, {"urnic-perf"})
        self.assertEqual({c["pid"] for c in clients}, {perf.pid})
        self.assertEqual({c["uid"] for c in clients}, {os.geteuid()})
        self.assertEqual(sorted(c["qps"] for c in clients), [20, 20])
        a = next(c["client"] for c in clients if c["adapter"] == "a0")
        mine = self.rows("show", "qp", "client", str(a))
        self.assertEqual({(q["adapter"], q["peer"], q["type"]) for q in mine}, {("a0", "10.0.0.2", "RC")})
        self.assertEqual((len(mine), {q["pid"] for q in mine}), (20, {perf.pid}))
        one = self.rows("show", "qp", hex(mine[3]["qpn"]), "adapter", "a0")
        self.assertEqual(len(one), 1)
        self.assertEqual((one[0]["peer_qpn"], one[0]["program"]), (mine[3]["peer_qpn"], "urnic-perf"))
        for key in ("next_psn", "retries_left", "rtt_ns", "rto_ns", "selective", "waits_for"):
            self.assertIn(key, one[0])
        self.assertTrue(one[0]["selective"])
        for what in ("qp", "cq", "srq", "mr", "msg", "am"):
            self.fails(1, "no client has the number 99", "show", what, "client", "99")
        self.assertEqual(len(self.rows("show", "cq", "client", str(a))), clients[0]["cqs"])
        self.assertTrue(self.rows("show", "mr", "adapter", "a0"))
        self.assertEqual({r["state"] for r in self.rows("show", "neigh", "a0")}, {"reachable"})
        self.assertEqual({r["peer"] for r in self.rows("show", "neigh", "a0")}, {"known"})
        self.assertEqual({r["port"] for r in self.rows("show", "address")}, {"a0", "b0"})
        self.assertEqual(self.rows("show", "server")[0]["clients"], 2)
        perf.kill()
        perf.communicate()
        self.until(lambda: not self.rows("show", "client"))
        self.stop(p)

    def test_many_are_told_whole(self):
        p = self.start()
        perf = self.perf_start("--duration", "60", "--qps", "700")
        self.until(lambda: len(self.rows("show", "qp")) == 1400)
        qps = self.rows("show", "qp")
        self.assertEqual(len({(q["adapter"], q["qpn"]) for q in qps}), 1400)
        lines = self.ctl("show", "qp").splitlines()
        self.assertEqual(len(lines), 1401)
        self.assertTrue(lines[0].startswith("qpn "))
        perf.kill()
        perf.communicate()
        self.stop(p)

    def test_set(self):
        p = self.start()
        self.ctl("set", "engine", "0", "idle", "sleep", "empty_polls", "77", "sleep", "50us")
        e = self.rows("show", "engine", "0")[0]
        self.assertEqual((e["idle"], e["empty_polls"], e["sleep_us"]), ("sleep", 77, 50))
        self.ctl("set", "engine", "0", "idle", "pause")
        e = self.rows("show", "engine", "0")[0]
        self.assertEqual((e["idle"], e["empty_polls"], e["sleep_us"]), ("pause", 77, 50))
        self.ctl("set", "adapter", "b0", "window", "16", "rto_floor", "2ms")
        a = self.rows("show", "adapter", "b0")[0]
        self.assertEqual((a["window"], a["rto_floor_us"]), (16, 2000))
        self.assertEqual(self.rows("show", "adapter", "a0")[0]["window"], 256)
        self.ctl("set", "log", "warning")
        self.fails(2, "no idle policy", "set", "engine", "0", "idle", "doze")
        self.fails(2, "from 1us to 1000us", "set", "engine", "0", "sleep", "2s")
        self.fails(2, "from 1 to", "set", "adapter", "a0", "window", "0")
        self.fails(1, "no engine has the number 7", "set", "engine", "7")
        self.fails(1, "no adapter has the name x", "set", "adapter", "x")
        self.fails(2, "is no level", "set", "log", "loud")
        perf = self.perf_start("--iters", "100", "--nodes", "b,a")
        self.assertEqual(perf.wait(timeout=SECONDS), 0)
        self.stop(p)

    def test_port(self):
        p = self.start()
        self.perf_start("--iters", "10").wait(timeout=SECONDS)
        for how, state in (("fail", "failed"), ("down", "down")):
            self.ctl("port", "a0", how)
            self.assertEqual(self.rows("show", "port", "a0")[0]["state"], state)
            self.until(lambda: not self.rows("show", "adapter", "a0")[0]["link"])
            self.until(lambda: [r["up"] for r in self.rows("show", "switch") if r["port"] == "a0"] == [False])
            self.ctl("port", "a0", "up")
            self.until(lambda: self.rows("show", "adapter", "a0")[0]["link"])
            self.until(lambda: all(r["up"] for r in self.rows("show", "switch")))
            perf = self.perf_start("--iters", "10")
            self.assertEqual(perf.wait(timeout=SECONDS), 0)
        # A program that measures when its adapter fails ends with an error that says so.
        perf = self.perf_start("--duration", "60")
        self.until(lambda: self.rows("show", "qp", "state", "RTS"))
        self.ctl("port", "a0", "fail")
        _, err = perf.communicate(timeout=SECONDS)
        self.assertNotEqual(perf.returncode, 0)
        self.assertNotEqual(err, "")
        self.ctl("port", "a0", "up")
        self.fails(1, "no port has the name nope", "port", "nope", "up")
        self.stop(p)

    def test_impair(self):
        p = self.start()
        self.ctl("impair", "wire", "a0.in", "drop=1%,seed=5")
        r = {r["port"]: r for r in self.rows("show", "switch")}
        self.assertEqual((r["a0"]["impair_in"], r["a0"]["impair_out"]), ("drop=1%,seed=5", ""))
        perf = self.perf_start("--iters", "200") # thousands of frames, of which this seed loses some
        self.assertEqual(perf.wait(timeout=SECONDS), 0)
        r = {r["port"]: r for r in self.rows("show", "switch", "wire")}
        self.assertGreater(r["a0"]["in_drop_random"], 0)
        self.ctl("impair", "wire", "b0", "delay=1ms")
        r = {r["port"]: r for r in self.rows("show", "switch")}
        self.assertEqual((r["b0"]["impair_in"], r["b0"]["impair_out"]), ("delay=1ms", "delay=1ms"))
        self.ctl("impair", "wire", "a0", "none")
        self.ctl("impair", "wire", "b0", "none")
        self.assertEqual({(r["impair_in"], r["impair_out"]) for r in self.rows("show", "switch")}, {("", "")})
        self.fails(2, "sink is no impairment", "impair", "wire", "a0", "sink=1")
        self.fails(1, "no port c0", "impair", "wire", "c0", "drop=1")
        self.fails(1, "no port a0.up", "impair", "wire", "a0.up", "drop=1")
        self.fails(1, "no switch has the name wyre", "impair", "wyre", "a0", "none")
        self.stop(p)

    def test_kick(self):
        p = self.start()
        bad, good = self.perf_start("--duration", "60"), self.perf_start("--duration", "2")
        ids = self.until(lambda: [c["client"] for c in self.rows("show", "client") if c["pid"] == bad.pid])
        self.ctl("client", str(ids[0]), "kick")
        self.until(lambda: ids[0] not in [c["client"] for c in self.rows("show", "client")])
        self.assertEqual(good.wait(timeout=SECONDS), 0)
        bad.kill()
        self.fails(1, "no client has the number 999999", "client", "999999", "kick")
        self.stop(p)

    def test_usage(self):
        p = self.start()
        self.fails(2, "give a command")
        self.fails(2, "'sohw' is no command", "sohw")
        self.fails(2, "'show' wants a word", "show")
        self.fails(2, "write: port PORT up|down|fail", "port", "a0")
        self.fails(1, "urnicd -i", "quit")
        self.fails(1, "no port has the name p7", "show", "port", "p7")
        self.fails(1, "no queue pair has the number 5", "show", "qp", "5")
        self.fails(2, "at most", "show", "port", "x" * 4000)
        self.assertEqual(self.run_ctl("--nonsense").returncode, 2)
        self.assertEqual(self.run_ctl("--version").stdout[:9], "urnicctl ")
        self.stop(p)

    def test_help_and_the_manual_are_one(self):
        text = self.run_ctl("--help").stdout
        with open(os.path.join(PROJECT, "doc", "reference", "urnicctl.md"), encoding="utf-8") as f:
            manual = f.read()
        commands = re.findall(r"^  ([a-z][^-\n]*)\n      (.*)$", text, re.M)
        self.assertGreater(len(commands), 20)
        rows = re.findall(r"^\| `([a-z].*?)` \| (.*) \|$", manual, re.M)
        self.assertEqual([(c, h) for c, h in rows],
                         [(c.replace("|", "\\|"), h) for c, h in commands])

    def test_finding_it(self):
        p = self.start(f"control = {self.dir.name}/c.sock")
        for args, env in ((("--socket", f"{self.dir.name}/c.sock"), {}),
                          (("--socket", "auto"), {"URNIC_SOCKET": f"{self.dir.name}/c.sock"})):
            q = self.run_ctl(*args, "show", "version", env=dict(os.environ, **env))
            self.assertEqual(q.returncode, 0, q.stderr)
        # The socket for programs has no control socket beside it here.
        q = self.run_ctl("--socket", self.socket, "show", "version")
        self.assertEqual(q.returncode, 1)
        self.assertIn("its control socket", q.stderr)
        p.terminate()
        self.assertEqual(p.wait(timeout=SECONDS), 0)
        self.fails(1, ("no urnicd at", self.socket), "show", "port")
        q = self.run_ctl("show", "port", env={"URNIC_SOCKET": "", "XDG_RUNTIME_DIR": self.dir.name})
        self.assertEqual(q.returncode, 1)
        self.assertIn("no urnicd at", q.stderr)
        self.fails(1, "at most", "--socket", "/" + "x" * 150, "show", "port")

    def test_beside_the_socket_of_programs(self):
        p = self.start()
        self.assertEqual(os.stat(self.socket + ".ctl").st_mode & 0o777, 0o600)
        for path in (self.socket, self.socket + ".ctl"):
            self.assertEqual(self.run_ctl("-s", path, "show", "version").returncode, 0)
        # Sockets that a killed urnicd left do not keep a new one from starting.
        p.kill()
        p.communicate()
        self.assertTrue(os.path.exists(self.socket + ".ctl"))
        p = self.start()
        self.ctl("show", "version")
        self.stop(p)

    def test_answers_that_cannot_be_written(self):
        p = self.start()
        with open("/dev/full", "w", encoding="utf-8") as full:
            q = subprocess.run([CTL, "-s", self.socket, "help"], stdout=full, stderr=subprocess.PIPE,
                               text=True, timeout=SECONDS, check=False)
        self.assertEqual(q.returncode, 1)
        self.assertIn("can't write", q.stderr)
        self.stop(p)

    def test_frozen(self):
        """A urnicd that is stopped is not one that is not there."""
        p = self.start()
        p.send_signal(signal.SIGSTOP)
        os.waitpid(p.pid, os.WUNTRACED)
        q = self.run_ctl("--socket", self.socket, "show", "version", env=dict(os.environ, URNIC_TIMEOUT="1"))
        self.assertEqual((q.returncode, f"{self.socket}.ctl has not answered for 1 s: is it stopped?" in q.stderr), (1, True), q.stderr)
        p.send_signal(signal.SIGCONT)
        self.ctl("show", "version")
        for wrong in ("0", "-1", "1s", "86401"):
            q = self.run_ctl("--socket", self.socket, "show", "version", env=dict(os.environ, URNIC_TIMEOUT=wrong))
            self.assertEqual((q.returncode, f"URNIC_TIMEOUT is '{wrong}'" in q.stderr), (2, True), q.stderr)
        self.stop(p)

    def test_turned_away_before_the_question_is_read(self):
        # A server that closes with a question unread resets the connection; urnicctl still prints its last message.
        path = os.path.join(self.dir.name, "away")
        why = struct.pack("=IHH", 0x55524E43, 2, 1) + b"too many are connected"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.bind(path)
            s.listen()
            s.settimeout(SECONDS)
            for read_first in (False, True):
                p = self.popen(CTL, "--socket", path, "show", "version")
                c, _ = s.accept()
                if read_first:
                    select.select([c], [], [], SECONDS)  # the question is there, and stays
                c.send(why)
                c.close()
                out, err = p.communicate(timeout=SECONDS)
                self.assertEqual((p.returncode, out, err), (1, "", "urnicctl: too many are connected\n"))

    def test_rubbish_on_the_socket(self):
        p = self.start()
        for junk in (b"", b"x", b"\0" * 5000, b"GET / HTTP/1.0\r\n\r\n", os.urandom(300)):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
                s.settimeout(SECONDS)
                s.connect(self.socket + ".ctl")
                s.send(junk)
                self.assertEqual(s.recv(100), b"")
            self.ctl("show", "version")
        self.stop(p)


class Console(Base):
    def script(self, text, code=0):
        p = self.popen(NICD, "-c", self.config(), "-i", stdin=subprocess.PIPE)
        out, err = p.communicate(text, timeout=SECONDS)
        self.assertEqual(p.returncode, code, err)
        self.assertFalse(os.path.exists(self.socket))
        self.assertIn("listening at", err)
        return out, err

    def test_a_script(self):
        out, err = self.script("# what there is\n\nshow adapter\nimpair wire a0.in 'drop=2%'\n"
                               "show switch # and that\nset engine 0 idle sleep\nshow engine")
        self.assertEqual(err.count("\n"), 1)
        self.assertIn("10.0.0.2", out)
        self.assertIn("drop=2%", out)
        self.assertIn("sleep", out)

    def test_quit_ends_it(self):
        out, _ = self.script("show version\nquit\nshow adapter\n")
        self.assertIn("urnic", out)
        self.assertNotIn("10.0.0.1", out)

    def test_it_goes_on_after_a_mistake(self):
        out, err = self.script("show prot\nshow 'port\n" + "x" * 5000 + "\nport zz up\nshow version\n", code=1)
        self.assertIn("abi", out)
        for words in ("'show prot' is no command", "has no end", "a line has at most", "no port has the name zz",
                      "4 of the commands failed"):
            self.assertIn(words, err)

    def test_what_a_nul_hides(self):
        out, err = self.script("show adapter\0 of no kind\nshow version\n", code=1)
        self.assertNotIn("10.0.0.1", out)
        self.assertIn("abi", out)
        self.assertIn("NUL", err)

    def test_answers_that_cannot_be_written(self):
        reader, writer = os.pipe()
        os.close(reader)
        closed = lambda: os.close(1)
        with open("/dev/full", "wb") as full:
            for out, why, before in ((full, "No space left", None), (writer, "Broken pipe", None),
                                     (None, "Bad file", closed)):
                p = subprocess.run([NICD, "-c", self.config(), "-i"], input="show version\nshow adapter\n", stdout=out,
                                   stderr=subprocess.PIPE, text=True, timeout=SECONDS, preexec_fn=before, check=False)
                self.assertEqual(p.returncode, 1, p.stderr)
                self.assertIn(f"can't be written: {why}", p.stderr)
                self.assertIn("2 of the commands failed", p.stderr)
        os.close(writer)

    def test_slow_readers_get_everything(self):
        """Slow readers get everything, also through a pipe that is non-blocking."""
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        p = subprocess.Popen([NICD, "-c", self.config(), "-i"], stdin=subprocess.PIPE, stdout=writer,
                             stderr=subprocess.PIPE, text=True)
        self.running.append(p)
        os.close(writer)
        p.stdin.write("help\n" * 100)
        p.stdin.flush()
        # urnicd has filled the pipe.
        self.until(lambda: struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, b"1234"))[0] > 40000)
        p.stdin.write("quit\n")
        p.stdin.flush()
        with open(reader, "rb") as f:
            self.assertEqual(f.read().count(b"client CLIENT kick"), 100)
        self.assertEqual(p.wait(timeout=SECONDS), 0)

    def test_a_signal_ends_it_when_nobody_reads(self):
        reader, writer = os.pipe()
        p = subprocess.Popen([NICD, "-c", self.config(), "-i"], stdin=subprocess.PIPE, stdout=writer,
                             stderr=subprocess.PIPE, text=True)
        self.running.append(p)
        p.stdin.write("help\n" * 100)
        p.stdin.flush()
        self.until(lambda: struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, b"1234"))[0] > 40000)
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(timeout=SECONDS), 0)
        self.assertFalse(os.path.exists(self.socket))
        os.close(reader)
        os.close(writer)

    def test_nothing_to_read(self):
        out, _ = self.script("")
        self.assertEqual(out, "")

    def test_a_signal_ends_it(self):
        p = self.popen(NICD, "-c", self.config(), "-i", stdin=subprocess.PIPE)
        self.assertIn("listening at", p.stderr.readline())
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(timeout=SECONDS), 0)

    # ---- at a terminal

    def terminal(self):
        self.master, slave = pty.openpty()
        before = termios.tcgetattr(slave)
        p = subprocess.Popen([NICD, "-c", self.config(), "-i"], stdin=slave, stdout=slave, stderr=slave,
                             close_fds=True)
        self.addCleanup(os.close, slave)
        self.addCleanup(os.close, self.master)
        self.addCleanup(lambda: p.poll() is None and (p.kill(), p.wait()))
        self.seen = ""
        self.expect("urnic> ")
        # The terminal leaves line mode a moment after the prompt is printed.
        self.until(lambda: not termios.tcgetattr(slave)[3] & termios.ICANON)
        return p, lambda: self.assertEqual(termios.tcgetattr(slave), before)

    def expect(self, text):
        """Read until the text has come. returns: the output up to the end of the text"""
        end = time.time() + SECONDS
        while text not in self.seen:
            if not select.select([self.master], [], [], max(0, end - time.time()))[0]:
                self.fail(f"no {text!r} in {self.seen!r}")
            self.seen += os.read(self.master, 4096).decode()
        at = self.seen.index(text) + len(text)
        got, self.seen = self.seen[:at], self.seen[at:]
        return got

    def type(self, text):
        os.write(self.master, text.encode())

    def test_terminal(self):
        p, unchanged = self.terminal()
        self.type("sho\t")
        self.expect("show ")
        self.type("ver\t")
        self.expect("version ")
        self.type("\r")
        self.expect("abi")
        self.expect("urnic> ")
        self.type("port \t")            # lists the ports
        for word in ("a0", "b0"):
            self.expect(word)
        self.type("a\t")
        self.expect("a0 ")
        self.type("fa\t\r")
        self.expect("fail ")
        self.expect("urnic> ")
        self.assertEqual(self.rows("show", "port", "a0")[0]["state"], "failed")
        self.type("port a0 up\r")
        self.expect("urnic> ")
        self.type("show qp ?")          # help names kinds of values
        got = self.expect("show qp ")
        got += self.expect("show qp ")
        self.assertIn("<QPN>", got)
        self.assertIn("queue pairs", got)
        self.type("Q\t\x03")            # no word begins with Q; Ctrl-C drops the line
        self.assertNotIn("QPN", self.expect("urnic> "))
        self.type("show version \t")
        self.expect("[RETURN]")
        self.type("\x03")
        self.type("impair wire b\t")
        self.expect("impair wire b0")
        self.type(".i\t")
        self.expect(".in ")
        self.type("drop=3%\r")
        self.expect("urnic> ")
        self.assertIn("drop=3%", [r["impair_in"] for r in self.rows("show", "switch")])
        self.type("nonsense here\r")
        self.expect("'nonsense' is no command")
        self.type("help\r")
        self.expect("client CLIENT kick")
        self.expect("urnic> ")
        self.type("show adapter b0\r")
        self.expect("10.0.0.2")
        self.expect("urnic> ")
        self.type("\x1b[A")             # arrow up
        self.expect("show adapter b0")
        self.type("\r")
        self.expect("10.0.0.2")
        self.type("quit\r")
        self.assertEqual(p.wait(timeout=SECONDS), 0)
        unchanged()

    def test_end_of_the_terminal(self):
        p, unchanged = self.terminal()
        self.type("\x04")
        self.assertEqual(p.wait(timeout=SECONDS), 0)
        unchanged()

    def test_signal_at_a_terminal_that_is_held(self):
        """Ctrl-S holds the terminal: later keys and their echo wait, but a signal still ends urnicd."""
        p, unchanged = self.terminal()
        self.type("\x13show version\r")
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(timeout=SECONDS), 0)
        unchanged()

    def test_signal_at_a_terminal(self):
        p, unchanged = self.terminal()
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(timeout=SECONDS), 128 + signal.SIGINT)
        unchanged()


if __name__ == "__main__":
    NICD, CTL, PERF, PROJECT = sys.argv[1:5]
    del sys.argv[1:5]
    unittest.main()
