#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic-top's arithmetic and text, and what it does on a terminal, against a telemetry socket that
answers as it is told to. usage: test_urnic_top.py URNIC-TOP"""

import fcntl
import glob
import importlib.machinery
import importlib.util
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
import threading
import time
import unittest

sys.dont_write_bytecode = True
SECONDS = 60
TOP = top = None


def moment(when, **parts):
    """A result of look() with nothing but these parts."""
    return {"time": when, "engines": {}, "adapters": {}, "ports": {}, "clients": [], "switches": {}, "qps": {},
            "capture": {}, **parts}


def shown(*args, **kwargs):
    """Lines of the view as text"""
    return [top.render(line, None, False) for line in top.lines(*args, **kwargs)]


def adapter(**counters):
    return {"a0": {"node": "a", "link": 1, "qps": 2, "clients": 1, "counters": counters}}


class Rates(unittest.TestCase):
    def test_by_the_second(self):
        was = moment(10, adapters=adapter(rx_packets=100, rx_bytes=1000, tx_packets=5, retransmits=1),
                     engines={0: {"turns": 10, "busy_ns": 100, "ns": 1000}})
        now = moment(12, adapters=adapter(rx_packets=300, rx_bytes=5000, tx_packets=5, retransmits=2),
                     engines={0: {"turns": 30, "busy_ns": 600, "ns": 2000}})
        v = top.rates(was, now)
        a = v["adapters"][0]
        self.assertEqual((a["rx_packets_per_s"], a["rx_bits_per_s"], a["tx_packets_per_s"]), (100, 16000, 0))
        self.assertEqual(v["engines"], [{"engine": 0, "load": 0.5, "turns_per_s": 10}])
        self.assertEqual(v["seconds"], 2)

    def test_drops_of_all_kinds(self):
        """Adapters' by their counters, ports' by their devices', switches' in sum."""
        was = moment(0, adapters=adapter(drop_icrc=5, no_mbuf=1, drop_psn=0, rx_packets=9, cq_overrun=0),
                     ports={"p0": {"link": 1, "rx_missed": 3, "rx_packets": 7}},
                     switches={"wire:a0": {"up": 1, "in_drop_random": 2, "drop_runt": 0}})
        now = moment(2, adapters=adapter(drop_icrc=9, no_mbuf=1, drop_psn=0, rx_packets=9, cq_overrun=2),
                     ports={"p0": {"link": 1, "rx_missed": 4, "rx_packets": 8}},
                     switches={"wire:a0": {"up": 1, "in_drop_random": 8, "drop_runt": 1}})
        v = top.rates(was, now)
        self.assertEqual(v["adapters"][0]["drops"], {"drop_icrc": {"total": 9, "per_s": 2},
                                                     "no_mbuf": {"total": 1, "per_s": 0},
                                                     "cq_overrun": {"total": 2, "per_s": 1}})
        self.assertEqual(v["ports"][0]["drops"], {"rx_missed": {"total": 4, "per_s": 0.5}})
        self.assertEqual((v["switches"][0]["drops"], v["switches"][0]["drops_per_s"]), (9, 3.5))
        text = "\n".join(shown(v, {}))
        for words in (r"^DROPS OF +REASON +PER s +TOTAL$", r"^a0 +drop_icrc +2.0 +9$", r"^a0 +cq_overrun +1.0 +2$",
                      r"^a0 +no_mbuf +0.0 +1$", r"^p0 +rx_missed +0.5 +4$", r"^wire:a0 +up +0 +0 +3.5 +9$"):
            self.assertRegex(text, re.compile(words, re.M))
        self.assertNotIn("drop_psn", text)
        # Drops that happen just now come first.
        self.assertLess(text.index("drop_icrc"), text.index("cq_overrun"))
        self.assertLess(text.index("cq_overrun"), text.index("no_mbuf"))

    def test_what_comes_goes_or_starts_anew(self):
        was = moment(0, adapters={**adapter(rx_packets=1000, drop_tx=9)}, engines={})
        now = moment(1, adapters={**adapter(rx_packets=10, drop_tx=1, fresh=7),
                                  "b0": {"counters": {"rx_packets": 50}}}, engines={1: {"turns": 9, "ns": 1}})
        v = top.rates(was, now)
        self.assertEqual([a["rx_packets_per_s"] for a in v["adapters"]], [0, 0])
        self.assertEqual(v["adapters"][0]["drops"], {"drop_tx": {"total": 1, "per_s": 0}})
        self.assertEqual(v["engines"][0]["load"], 0)
        shown(v, {})

    def test_huge_counts(self):
        v = top.rates(moment(0, adapters=adapter(rx_bytes=0, drop_tx=0)),
                      moment(1e-9, adapters=adapter(rx_bytes=2**64 - 1, drop_tx=2**64 - 1)))
        json.dumps(v)
        self.assertIn(" 18446744073709551615", "\n".join(shown(v, {})))

    def test_figures_that_are_none(self):
        """A peer that says what it likes is not believed, and does no harm."""
        odd = moment(0, adapters={"a0": {"clients": "x", "link": [], "counters": {"rx_packets": "1", "drop_tx": None}}},
                     engines={"e": {"turns": {}}}, ports={"p": {"rx_missed": "7"}}, clients=[{}, {"client": "\x1b[2J"}],
                     switches={"s": {"drop_x": "9"}})
        odd["qps"] = {("a0", 1): {"una_psn": "x", "state": "\x1b[2J"}, ("a0", 2): {}}
        for what, sorts in top.SORTS.items():
            for sort in (None, *sorts):
                text = shown(top.rates(odd, odd), {"urnic": "\x1b]0;x\x07"}, what, sort, 80)
                self.assertNotRegex("".join(text), "[\x00-\x1f]")

    def test_capture(self):
        def said(**c):
            return [s for s in shown(top.rates(moment(0), moment(1, capture=c)), {}) if "apture" in s]
        self.assertEqual(said(running=0, file="", frames=0, dropped=0), [])
        self.assertEqual(said(running=0, file="x", frames=9, dropped=0), [])
        self.assertEqual(said(running=1, file="x", frames=1234, dropped=0),
                         ["Capture x runs: 1.23 k frames written, 0 dropped"])
        self.assertEqual(said(running=0, ended=1, file="x", frames=1, dropped=7),
                         ["Capture x has ended: 1 frames written, 7 dropped"])


class Text(unittest.TestCase):
    def test_short(self):
        for n, text in ((0, "0"), (999, "999"), (1000, "1.00 k"), (1234567, "1.23 M"), (12345, "12.3 k"),
                        (999499, "999 k"), (999999, "1.00 M"), (9994999, "9.99 M"), (9999999, "10.0 M"),
                        (99999999, "100 M"), (10**12, "1.00 T"), (2**64, "18.4 E"), (10**22, "10000 E")):
            self.assertEqual(top.short(n), text)

    def test_table(self):
        """Names to the left, whatever they begin with; numbers to the right."""
        found = top.table(["ADAPTER", "QPS"], [["0a", 7], ["nic-zero-1", 1000]], None)
        self.assertEqual([top.render(line, None, False) for line in found],
                         ["ADAPTER      QPS", "0a             7", "nic-zero-1  1000", ""])
        self.assertEqual(top.table(["ADAPTER"], [], None), [])

    def test_drop_names(self):
        """Every counter of the product that is of something lost is shown as that."""
        here = os.path.dirname(os.path.abspath(__file__))
        names = []
        for path in glob.glob(os.path.join(here, "../../../dataplane/counters_*.h")):
            with open(path, encoding="utf-8") as f:
                names += re.findall(r'X\([A-Z0-9_]+, "([a-z0-9_]+)", "([^"]*)"\)', f.read())
        self.assertGreater(len(names), 100)
        for name, text in names:
            lost = name.startswith("drop_") or "lost because" in text or "pool" in text and "empty" in text or \
                "nobody could be told" in text
            if name not in ("no_repair", "no_congestion"):  # then repeats are plain ones, or sending is unpaced
                self.assertEqual(top.is_drop(name), lost, name)


class Views(unittest.TestCase):
    """The order, width and colours of tables"""

    def view(self):
        names = ["a" * 31, "b0"]
        figures = {"rx_packets": 12345678, "rx_bytes": 10**11, "tx_packets": 87654321, "tx_bytes": 10**11,
                   "retransmits": 99999, "timeouts": 99999, "drop_icrc": 5, "drop_no_such_multicast_group": 2**40}
        adapters = {n: {"node": "n" * 31, "link": n == "b0", "qps": 65536 - i, "clients": 1000,
                        "counters": {k: v * (i + 1) for k, v in figures.items()}} for i, n in enumerate(names)}
        before = {n: {"counters": dict.fromkeys(figures, 0)} for n in names}
        clients = [{"client": i, "adapter": names[i % 2], "pid": 4194300 + i // 2, "uid": 4294967294,
                    "program": ("short" if i > 1 else "program-of-15-c"), "qps": 65536 >> i, "cqs": 16, "srqs": 16,
                    "mrs": 70000, "pinned_bytes": 10**12 * (i + 1)} for i in range(4)]
        qps = {("b0", n): {"qpn": 16777214 - n, "adapter": "a" * 31, "program": "program-of-15-c" if n else "abc",
                           "pid": 4194304, "type": "RC", "state": ("RTS", "ERR", "SQD")[n], "mtu": 4096,
                           "peer": "fe80::aaaa:bbbb:cccc:dddd", "peer_qpn": 16777215, "sends": 100, "receives": 9,
                           "outstanding": 1000 * n, "waits_for": "acknowledgement", "una_psn": 1000000 * n + 5,
                           "expected_psn": 9 - n} for n in range(3)}
        was = {k: {"una_psn": 0xfffffb, "expected_psn": 0} for k in qps}
        now = moment(1, adapters=adapters, clients=clients, qps=qps, engines={0: {"turns": 9}},
                     ports={"p" * 31: {"rx_missed": 9}}, switches={"w" * 31 + ":" + "p" * 31: {"up": 1, "drop_x": 3}})
        return top.rates(moment(0, adapters=before, qps=was), now)

    def test_80_columns(self):
        """The longest names and figures leave no line longer than 80 letters, and cut off no figure."""
        for what in top.SORTS:
            whole = top.lines(self.view(), {}, what, None, 80)
            for line in whole:
                self.assertLessEqual(sum(len(text) for text, _ in line), 80, line)
            text = "\n".join(shown(self.view(), {}, what, None, 80))
            for head in {"all": ("TX b/s", "AGAIN/s", "TOUT/s", "PINNED", "PER s", "DROPS/s"),
                         "programs": ("PROGRAM", "PID", "QPS", "PINNED"),
                         "qps": ("QP", "PROGRAM", "STATE", "PEER", "TX/s", "RX/s", "OUT", "WAITS FOR")}[what]:
                self.assertIn(head, text)
        text = "\n".join(shown(self.view(), {}))
        self.assertIn("a" * 31, text)  # nothing is shortened in a file
        self.assertIn("CLI", text)

    def order(self, what, sort, words):
        text = "\n".join(shown(self.view(), {}, what, sort))
        return sorted(words, key=text.index)

    def test_sort(self):
        a, b = "a" * 31 + "  n", "b0      "
        self.assertEqual(self.order("all", None, (b, a)), [a, b])
        self.assertEqual(self.order("all", "tx", (a, b)), [b, a])
        self.assertEqual(self.order("all", "qps", (b, a)), [a, b])
        self.assertEqual(self.order("all", "drops", (a, b)), [b, a])
        self.assertEqual(self.order("programs", "qps", ("short", "program-of")), ["program-of", "short"])
        self.assertEqual(self.order("programs", "memory", ("program-of", "short")), ["short", "program-of"])
        self.assertEqual(self.order("qps", None, ("ERR", "RTS", "SQD")), ["RTS", "ERR", "SQD"])
        self.assertEqual(self.order("qps", "waiting", ("RTS", "ERR", "SQD")), ["SQD", "ERR", "RTS"])
        self.assertEqual(self.order("qps", "rx", ("ERR", "SQD", "RTS")), ["RTS", "ERR", "SQD"])

    def test_programs_are_sums(self):
        first = self.view()["programs"][0]
        self.assertEqual((first["pid"], first["clients"], first["qps"], first["cqs"], first["pinned_bytes"]),
                         (4194300, 2, 65536 + 32768, 32, 3 * 10**12))
        self.assertEqual(first["adapters"], ["a" * 31, "b0"])

    def test_qp_rates(self):
        """PSNs go round after 24 bits, so nothing is said of a longer time; nor of what was not there before."""
        self.assertEqual([q["tx_psns_per_s"] for q in self.view()["qps"]], [10, 1000010, 2000010])
        for was, when in (({("a0", 7): {"una_psn": 1}}, 3), ({}, 1), ({("a0", 7): {}}, 1)):
            found = top.rates(moment(0, qps=was), moment(when, qps={("a0", 7): {"una_psn": 2}}))["qps"][0]
            self.assertIsNone(found["tx_psns_per_s"])
        self.assertRegex("\n".join(shown(top.rates(moment(0), moment(1, qps={("a0", 7): {"qpn": 7}})), {}, "qps")),
                         re.compile(r"^ 7 .* - +- ", re.M))

    def test_more_qps_than_are_shown(self):
        text = shown(self.view(), {}, "qps")
        self.assertIn("The first 3 queue pairs of 131071:", text)

    def test_color(self):
        """Colours say what is wrong; without them not one byte of them is there."""
        def drawn(what, colored):
            return "\n".join(top.render(line, 80, colored) for line in top.lines(self.view(), {}, what, None, 80))
        for what in top.SORTS:
            self.assertNotIn("\x1b", drawn(what, False))
            plain = re.sub(r"\x1b\[[0-9]*m", "", drawn(what, True))
            self.assertEqual([s.rstrip() for s in plain.split("\n")], drawn(what, False).split("\n"))
        self.assertRegex(drawn("all", True), "\x1b\\[31mdown\x1b\\[0m")
        self.assertNotRegex(drawn("all", True), "\x1b\\[31mup")
        self.assertRegex(drawn("qps", True), "\x1b\\[31mERR *\x1b\\[0m")

    def test_who_wants_color(self):
        """An option comes before NO_COLOR, that before the terminal; a file never has colours by itself."""
        self.assertTrue(top.wants_color("always"))
        self.assertFalse(top.wants_color("never"))
        ours, theirs = pty.openpty()
        code = ("import importlib.machinery as m, importlib.util as u, sys; l = m.SourceFileLoader('t', sys.argv[1]); "
                "t = u.module_from_spec(u.spec_from_loader('t', l)); l.exec_module(t); sys.exit(t.wants_color('auto'))")
        for env, out, wants in (({"TERM": "xterm"}, theirs, 1), ({"TERM": "xterm", "NO_COLOR": "1"}, theirs, 0),
                                ({"TERM": "xterm", "NO_COLOR": ""}, theirs, 1), ({"TERM": "vt100"}, theirs, 0),
                                ({"TERM": "none-such"}, theirs, 0), ({"TERM": "xterm"}, subprocess.DEVNULL, 0)):
            env = {**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, **env}
            p = subprocess.run([sys.executable, "-B", "-c", code, TOP], env=env, stdout=out, check=False, timeout=SECONDS)
            self.assertEqual(p.returncode, wants, env["TERM"])
        os.close(ours)
        os.close(theirs)


class Peer:
    """A telemetry socket. answers: by command; callable: is called; bytes: sent as they are"""

    def __init__(self, path, answers=None, hello=None):
        self.answers = answers or {}
        self.hello = hello or json.dumps({"version": "x", "pid": 1, "max_output_len": 16384}).encode()
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.bind(path)
        self.sock.listen(1)
        self.client = None
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        try:
            c, _ = self.sock.accept()
        except OSError:
            return
        self.client = c
        with c:
            try:
                c.send(self.hello)
                while True:
                    q = c.recv(1024).decode()
                    if not q:
                        return
                    a = self.answers.get(q, self.answers.get(q.split(",")[0], {"error": "x"}))
                    a = a() if callable(a) else a
                    c.send(a if isinstance(a, bytes) else json.dumps({q.split(",")[0]: a}).encode())
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        # After a failure the program may still be connected, and wait for nothing.
        if kind is not None and self.client is not None:
            try:
                self.client.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it hung up
        self.thread.join()


GOOD = {"/urnic/version": {"urnic": "1", "dpdk": "2"}, "/urnic/engine/list": [0],
        "/urnic/engine/usage": {"turns": 1, "busy_ns": 1, "ns": 1}, "/urnic/adapter/list": ["a0"],
        "/urnic/adapter/info": {"node": "a", "link": 1, "qps": 0, "clients": 700},
        "/urnic/adapter/counters": {"adapter": "a0", "rx_packets": 1, "drop_icrc": 41}}


class Program(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(prefix="urnic-test.")
        self.path = os.path.join(self.dir.name, "s")

    def tearDown(self):
        self.dir.cleanup()

    def run_top(self, *args, **kwargs):
        options = {"stdin": subprocess.DEVNULL, "capture_output": True, **kwargs}
        return subprocess.run([sys.executable, TOP, "--socket", self.path, "--interval", "0.1", *args], text=True,
                              timeout=SECONDS, check=False, **options)

    def test_once(self):
        with Peer(self.path, GOOD):
            p = self.run_top("--once")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertRegex(p.stdout, "1 engine, 1 adapter, 700 clients")
        self.assertRegex(p.stdout, "\na0 +drop_icrc +0.0 +41\n")

    def test_peers_that_make_no_sense(self):
        def but(**parts):
            return {**GOOD, **{"/urnic/" + k.replace("__", "/"): v for k, v in parts.items()}}
        for answers in (but(version=b"["), but(version=b"[]"), but(version=b'"x"'), but(version=b"\xff"),
                        but(version=b'{"/urnic/version": 7}'), but(version=b"[" * 15000), but(engine__list={"a": 1}),
                        but(adapter__info=[1]), but(adapter__list="a0"), but(version=b"")):
            with Peer(self.path, answers):
                p = self.run_top("--once")
            self.assertEqual(p.returncode, 1, (answers, p.stdout))
            self.assertRegex(p.stderr, r"^urnic-top: .*(no sense|has ended|does not answer)[^\n]*\n$")
            os.unlink(self.path)
        for hello in (b'{"max_output_len": "x", "pid": 1}', b'{"max_output_len": -1, "pid": 1}',
                      b'{"max_output_len": 1e99, "pid": 1}', b'{"max_output_len": 9223372036854775807, "pid": 1}'):
            with Peer(self.path, GOOD, hello):
                p = self.run_top("--once")
            self.assertEqual(p.returncode, 1)
            self.assertRegex(p.stderr, "^urnic-top: .*no telemetry to be had")
            os.unlink(self.path)

    def test_things_that_go_meanwhile(self):
        """An adapter in the list of which nothing more is known."""
        with Peer(self.path, {"/urnic/version": {"urnic": "1"}, "/urnic/adapter/list": ["a0"], "/urnic/client/list": [1],
                              "/urnic/engine/list": [0], "/urnic/switch/list": ["w:p"], "/urnic/port/list": ["p"]}):
            p = self.run_top("--once", "--json")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(json.loads(p.stdout)["clients"], [])

    def test_nowhere_to_write(self):
        with open("/dev/full", "wb") as full, Peer(self.path, GOOD):
            p = self.run_top("--once", stdout=full, stderr=subprocess.PIPE, capture_output=False)
        self.assertEqual((p.returncode, p.stderr), (1, "urnic-top: can't write: No space left on device\n"))

    def test_no_terminal(self):
        """Not even one that is closed."""
        p = self.run_top()
        self.assertEqual((p.returncode, p.stdout), (2, ""))
        self.assertIn("no terminal", p.stderr)
        p = subprocess.run(["sh", "-c", f'exec "{sys.executable}" "{TOP}" <&- >&-'], capture_output=True, text=True,
                           timeout=SECONDS, check=False)
        self.assertEqual(p.returncode, 2)
        self.assertIn("no terminal", p.stderr)


class Terminal(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(prefix="urnic-test.")
        self.path = os.path.join(self.dir.name, "s")
        self.ours, self.theirs = pty.openpty()
        self.before = termios.tcgetattr(self.theirs)
        self.size(40, 100)

    def tearDown(self):
        for fd in (self.ours, self.theirs):
            try:
                os.close(fd)
            except OSError:
                pass  # by the test
        self.dir.cleanup()

    def size(self, rows, columns):
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def start(self, interval="3600"):
        # COLUMNS and LINES that a shell exported once are not what there is now.
        return subprocess.Popen([sys.executable, TOP, "--socket", self.path, "--interval", interval],
                                stdin=self.theirs, stdout=self.theirs, stderr=self.theirs, start_new_session=True,
                                preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
                                env=dict(os.environ, TERM="xterm", COLUMNS="60", LINES="33"))

    def read_until(self, pattern):
        got, end = "", time.time() + SECONDS
        while not re.search(pattern, got, re.S):
            self.assertLess(time.time(), end, got)
            if select.select([self.ours], [], [], 1)[0]:
                got += os.read(self.ours, 65536).decode()
        return got

    def end(self, p, code, how):
        how()
        self.assertEqual(p.wait(timeout=SECONDS), code)

    def check_screen(self, got, rows, columns):
        screen = got.split("\x1b[H")[-1]
        lines = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", screen).split("\r\n")
        self.assertLessEqual(len(lines), rows)
        self.assertLessEqual(max(map(len, lines)), columns)
        return lines

    def test_resize(self):
        """The view follows at once, long before the next interval; and shows what there is room for."""
        with Peer(self.path, GOOD):
            p = self.start()
            wide = self.check_screen(self.read_until(r"drop_icrc.*\x1b\[J"), 40, 100)
            self.assertGreater(max(map(len, wide)), 60)
            for rows, columns in ((6, 20), (3, 5), (50, 200)):
                self.size(rows, columns)
                self.check_screen(self.read_until(r"\x1b\[H.*\x1b\[J"), rows, columns)
            os.write(self.ours, b" ")  # asks anew
            self.read_until(r"\x1b\[H.*\x1b\[J")
            self.size(0, 0)
            self.check_screen(self.read_until(r"\x1b\[H.*\x1b\[J"), 24, 80)
            self.end(p, 0, lambda: os.write(self.ours, b"q"))
            self.read_until(r"\x1b\[\?1049l")
            self.assertEqual(termios.tcgetattr(self.theirs), self.before)

    def test_keys(self):
        """The keys stand in the last row, and do what they say."""
        clients = {"/urnic/client/list": [1], "/urnic/client/info": {"pid": 77, "program": "prog", "qps": 1},
                   "/urnic/qp/list": [9], "/urnic/qp/info": {"qpn": 9, "state": "ERR", "program": "prog"}}
        with Peer(self.path, {**GOOD, **clients}):
            p = self.start()
            self.size(20, 80)
            self.read_until(r"\x1b\[20;1H(\x1b\[7m)?q end  \[1 all\]")
            os.write(self.ours, b"2")
            self.read_until(r"PROGRAM.*PID.*prog.* 77 .*\[2 programs\]")
            os.write(self.ours, b"s")
            self.read_until(r"sort: name")
            os.write(self.ours, b"s")
            self.read_until(r"sort: qps")
            os.write(self.ours, b"3")
            self.read_until(r"WAITS FOR.* 9 .*ERR.*\[3 qps\]")
            self.size(3, 80)
            self.read_until(r"\x1b\[3;1H.*[0-9]+ more lines")
            self.end(p, 0, lambda: os.write(self.ours, b"q"))
            self.read_until(r"\x1b\[\?1049l")

    def test_signals_give_the_terminal_back(self):
        for sig in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with Peer(self.path, GOOD):
                p = self.start()
                self.read_until("drop_icrc")
                self.end(p, 128 + sig, lambda: p.send_signal(sig))
                self.read_until(r"\x1b\[\?1049l")
                self.assertEqual(termios.tcgetattr(self.theirs), self.before)
            os.unlink(self.path)

    def test_signal_before_select(self):
        """Every signal wakes select() by a byte, written as it arrives: its handler may run later only."""
        stdin, before = sys.stdin, signal.signal(signal.SIGTERM, lambda *_: None)
        with os.fdopen(os.dup(self.theirs)) as sys.stdin, top.Screen() as screen:
            os.kill(os.getpid(), signal.SIGTERM)
            ready, _, _ = select.select([screen.resized], [], [], 0)
            self.assertEqual(ready, [screen.resized])
        sys.stdin = stdin
        signal.signal(signal.SIGTERM, before)

    def test_hung_up(self):
        """The terminal goes away: so does urnic-top, without a word."""
        with Peer(self.path, GOOD):
            p = self.start()
            self.read_until("drop_icrc")
            os.close(self.theirs)
            self.end(p, 128 + signal.SIGHUP, lambda: os.close(self.ours))

    def test_stuck_peer(self):
        """While an answer is waited for a signal ends it all the same."""
        stuck = threading.Event()
        asked = threading.Event()

        def wait():
            asked.set()
            stuck.wait(SECONDS)
            return []
        with Peer(self.path, {**GOOD, "/urnic/engine/list": wait}):
            p = self.start()
            self.assertTrue(asked.wait(SECONDS))
            self.end(p, 128 + signal.SIGTERM, lambda: p.send_signal(signal.SIGTERM))
            stuck.set()
            self.read_until(r"\x1b\[\?1049l")
            self.assertEqual(termios.tcgetattr(self.theirs), self.before)


if __name__ == "__main__":
    TOP = os.path.abspath(sys.argv.pop(1))
    loader = importlib.machinery.SourceFileLoader("urnic_top", TOP)
    top = importlib.util.module_from_spec(importlib.util.spec_from_loader("urnic_top", loader))
    loader.exec_module(top)
    unittest.main()
