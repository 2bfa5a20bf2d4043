#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic-web's arithmetic and sentences: rates and events of two looks, logs, and the kernel's word on who asks.
usage: test_urnic_web.py URNIC-WEB"""

import asyncio
import importlib.machinery
import importlib.util
import os
import re
import socket
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
web = None


def moment(when, **tables):
    """A result of look() with nothing but these tables."""
    empty = {k: [] for k in ("version", "port", "counters", "adapter", "client", "qp", "errors", "switch", "capture", "card")}
    return {"time": when, "ended": when + 0.1, "more": [], "refused": {}, **empty, **tables}


def adapter(when, **counters):
    return moment(when, adapter=[{"name": "a0", "node": "a", "link": True}], counters=[{"adapter": "a0", **counters}])


class Rates(unittest.TestCase):
    def test_by_the_second(self):
        v = web.view_of(adapter(10, tx_bytes=1000, tx_packets=5, drop_icrc=1), adapter(12, tx_bytes=5000, tx_packets=9, drop_icrc=1, drop_psn=4))
        a = v["adapters"][0]
        self.assertEqual((a["tx_bits_per_s"], a["tx_packets_per_s"], a["rx_bits_per_s"]), (16000, 2, 0))
        # A counter that was 0 was not in the table.
        self.assertEqual([(d["reason"], d["per_s"], d["total"]) for d in v["drops"]], [("drop_psn", 2, 4), ("drop_icrc", 0, 1)])
        self.assertEqual(a["drops_per_s"], 2)

    def test_no_rate(self):
        """Counters that were cleared, adapters that are new, and looks at one moment have no rates."""
        for was, now in ((adapter(1, tx_bytes=9), adapter(2, tx_bytes=3)), (moment(1), adapter(2, tx_bytes=3)), (adapter(1), adapter(1))):
            self.assertEqual(web.view_of(was, now)["adapters"][0]["tx_bits_per_s"], 0)


class Plots(unittest.TestCase):
    def test_shared(self):
        """Samples, which a page may ask for all at once, are bounded over all urnicd together."""
        names = [f"n{i}" for i in range(3 * web.SERIES)]
        now = moment(1, adapter=[{"name": n} for n in names], switch=[{"switch": "w", "port": n} for n in names])
        for number in range(1, web.DATAPLANES + 1):
            w = web.Watch(types.SimpleNamespace(socket=["x"] * number, interval=1, log=[], session_log=[]))
            for d in w.dataplanes:
                d.take(now)
                d.take({**now, "time": 2})
            series = [len(d.samples[-1][2]) for d in w.dataplanes]
            self.assertEqual(series, [2 * (web.SERIES // number)] * number)
            self.assertEqual([s[0] for s in w.dataplanes[0].shown(1)["samples"]], [2])


class Events(unittest.TestCase):
    def changes(self, was, now, logged=False):
        return [(kind, text) for kind, text, _ in web.changes(was, now, logged)]

    def test_left(self):
        """Queue pairs that sessions gave up are a fail-over, unless a log tells of it, as it does of the rest."""
        self.assertEqual(self.changes(adapter(1, left_qps=1), adapter(2, left_qps=4), False),
                         [("failover", "3 queue pairs of adapter a0 were given up by their sessions, which had moved to another adapter")])
        self.assertEqual(self.changes(adapter(1, left_qps=1), adapter(2, left_qps=4), True), [])
        for was, now in ((moment(1), adapter(2, left_qps=4)), (adapter(1, left_qps=4), adapter(2)), (adapter(1), adapter(2))):
            self.assertEqual(self.changes(was, now), [])

    def test_clients(self):
        """A program that comes and goes; a list that was cut, or refused, tells nothing of those that it lacks."""
        was, now = moment(1, client=[{"client": 1, "program": "x", "pid": 5, "adapter": "a0"}]), moment(2)
        gone = [("client", "program x (process 5, client 1) has left adapter a0")]
        self.assertEqual(self.changes(was, now), gone)
        self.assertEqual(self.changes(was, now, logged=True), [])
        self.assertEqual(self.changes(was, {**now, "more": ["client"]}), [])
        self.assertEqual(self.changes({**was, "more": ["client"]}, now), [])
        self.assertEqual(self.changes(was, {**now, "refused": {"client": "busy"}}), [])

    def test_errors(self):
        """An error is told once, and again when it happens again; not when its program goes."""
        one = {"adapter": "a0", "client": 1, "pid": 5, "qpn": 3, "why": "w", "ago_ms": 1, "attached": True}
        self.assertEqual(self.changes(moment(1), moment(2, errors=[one])), [("error", "process 5, client 1: w")])
        self.assertEqual(self.changes(moment(1, errors=[one]), moment(2, errors=[{**one, "ago_ms": 9, "attached": False}])), [])
        self.assertEqual(self.changes(moment(1, errors=[one]), moment(2, errors=[one] * 3)), [("error", "process 5, client 1: w (2 times)")])

    def test_old_errors(self):
        """Errors that come into view are not told when they are old: after a refusal, and when a cut table has a row less."""
        def rows(first, ago):
            return [{"adapter": "a0", "client": 1, "pid": 5, "qpn": q, "why": "w", "ago_ms": ago} for q in range(first, first + web.ROWS)]
        cut = {"more": ["errors"]}
        self.assertEqual(self.changes(moment(1, refused={"errors": "too many ask at this time"}), moment(2, errors=rows(0, 60000))), [])
        self.assertEqual(self.changes(moment(1, errors=rows(0, 60000), **cut), moment(2, errors=rows(9, 61000), **cut)), [])
        # A new one among them is told, also when it is the same again, and after a time without looks.
        new = {"adapter": "a0", "client": 1, "pid": 5, "qpn": 7, "why": "w", "ago_ms": 900}
        for ago, when in ((900, 2), (59000, 61)):
            self.assertEqual(self.changes(moment(1, errors=rows(0, 60000), **cut), moment(when, errors=[{**new, "ago_ms": ago}, *rows(0, 61000)], **cut)),
                             [("error", "process 5, client 1: w")])
        self.assertEqual(self.changes(moment(1, refused={"errors": "busy"}), moment(2, errors=[new, *rows(0, 60000)])), [("error", "process 5, client 1: w")])

    def test_links(self):
        def port(link, state):
            return moment(1, port=[{"name": "p0", "link": link, "state": state}])
        for was, now, text in ((port(True, "up"), port(False, "up"), "port p0 has no link"), (port(False, "up"), port(True, "up"), "port p0 has a link again"),
                               (port(True, "up"), port(False, "failed"), "port p0 is failed by a command")):
            self.assertEqual(self.changes(was, now), [("port", text)])

    def test_bounded(self):
        """A burst is cut, and said to be; old events make room."""
        e = web.Events()
        e.add_all("x", [("log", str(i), None) for i in range(1000)])
        texts = [one["text"] for one in e.after(0)]
        self.assertEqual(len(texts), web.BURST + 1)
        self.assertTrue(texts[0].startswith(f"{1000 - web.BURST} more"))
        self.assertEqual(texts[-1], "999")
        for i in range(2000):
            e.add("x", "log", "y" * 10000)
        self.assertEqual(len(e.after(0)), web.EVENTS)
        self.assertLess(max(len(one["text"]) for one in e.after(0)), 1000)
        self.assertEqual([one["id"] for one in e.after(e.last - 2)], [e.last - 1, e.last])


class Files(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.dir.name, "log")

    def tearDown(self):
        self.dir.cleanup()

    def write(self, text, mode="a"):
        with open(self.path, mode, encoding="utf-8") as f:
            f.write(text)

    def test_tail(self):
        """The end of an old file, whole lines only; then all that comes, also of a file that was cut or made anew."""
        self.write("".join(f"line {i:06}\n" for i in range(10000)))
        t = web.Tail(self.path)
        first = t.lines()
        self.assertEqual(first[-1], "line 009999")
        self.assertTrue(all(len(line) == 11 for line in first))
        self.assertLessEqual(sum(len(line) + 1 for line in first), web.BEGIN)
        self.write("half")
        self.assertEqual(t.lines(), [])
        self.write(" whole\n")
        self.assertEqual(t.lines(), ["half whole"])
        self.write("short\n", "w")
        self.assertEqual((t.lines() or t.lines()), ["short"])
        os.unlink(self.path)
        self.write("anew\n" + "z" * 3000000)
        got = t.lines() or t.lines()
        self.assertEqual(got, ["anew"])
        for _ in range(100):
            t.lines()
        self.assertLessEqual(len(t.rest), web.TAIL)

    def test_no_file(self):
        """A file that is not there, and a pipe, are said, and nothing waits for them."""
        t = web.Tail(self.path)
        self.assertEqual((t.lines(), t.trouble), ([], f"can't read {self.path}: No such file or directory"))
        os.mkfifo(self.path)
        self.assertEqual((t.lines(), t.trouble), ([], f"can't read {self.path}: it is no plain file"))


class Sessions(unittest.TestCase):
    """Lines of a session's log: its file may be another user's."""
    HEAD = "2026-11-30T00:53:20.104523Z session[4711.1] notice session "
    MOVED = "move: connection 17 to 33 moved to its path in 1.2 ms | conn=17 peer=33 epoch=1 path=S-P step BINDING -> MIGRATED sent=1 took us=1234"

    def test_event(self):
        """The library's sentence is the event's; lines of steps in between are none, and the journal's priority is no part."""
        moved = ("session[4711.1]", "failover", "connection 17 to 33 moved to its path in 1.2 ms", 1796000000.104523)
        for line in (self.HEAD + self.MOVED, "<5>" + self.HEAD + self.MOVED):
            self.assertEqual(web.event_of_session(line), moved)
        self.assertEqual(web.event_of_session(self.HEAD + "adapter-lost: adapter a0 is lost"), (*moved[:2], "adapter a0 is lost", moved[3]))
        for word in ("step", "message", "counts", "end"):
            self.assertIsNone(web.event_of_session(self.HEAD + word + ": connection 17 to 33 goes on | conn=17"))

    def test_words_of_the_library(self):
        """Events that the page leaves out are ones that the library has."""
        with open(os.path.join(os.path.dirname(__file__), "../../../lib/verbs/session/log.h"), encoding="utf-8") as f:
            words = set(re.findall(r'^\tX\(\w+, \w+, "([\w-]+)"', f.read(), re.M))
        quiet = web.QUIET
        self.assertIn("move", words - quiet)
        self.assertLess(quiet, words)

    def test_times_that_are_none(self):
        """A time that no browser can show is no time of an event."""
        for day in ("9999999-01-01T00:00:00", "2026-13-01T00:00:00", "2026-11-30T25:00:00", "\u0661" * 4 + "-01-01T00:00:00"):
            event = web.event_of_session(f"{day}.000000Z session[1.1] error session dead: x")
            self.assertTrue(event is None or event[3] is None, event)

    def test_no_log_is_mute(self):
        """A log whose lines make no sense is said to be so, is read on, and mutes no other."""
        class Log:
            path, trouble = "l", ""

            def __init__(self, *lines):
                self.todo = list(lines)

            def lines(self):
                line = self.todo.pop(0)
                if isinstance(line, Exception):
                    raise line
                return [line]

        f = web.Files([], [], 1, web.Events())
        for bad in (OverflowError("x"), ValueError("x"), OSError("x"), IndexError("x"), TypeError("x")):
            f.sessions = [Log(bad, self.HEAD + "adapter-lost: adapter a0 is lost"), Log(self.HEAD + "adapter-lost: adapter b0 is lost", "no step")]
            seen = f.events.last
            f.read()
            self.assertEqual([e["text"] for e in f.events.after(seen)], ["adapter b0 is lost"])
            self.assertEqual(f.troubles(), ["not all lines of l are shown: x"])
            f.read()
            self.assertEqual([e["text"] for e in f.events.after(seen)], ["adapter b0 is lost", "adapter a0 is lost"])


class Requests(unittest.TestCase):
    def parse(self, *lines):
        return web.parse("\r\n".join(("GET / HTTP/1.1", *lines)).encode())

    def test_headers(self):
        """A header's name is in small letters, and its value without the blanks around it."""
        for line, value in (("X:a", "a"), ("x: \ta b\t ", "a b"), ("X:", ""), ("X: \t ", ""), ("X:a:b", "a:b")):
            self.assertEqual(self.parse("Host: h", line), ("GET", "/", {"host": "h", "x": value}), line)
        for line in ("", " ", ":", ": a", "x : a", " x: a", "x", "x: a\nb", "x: a\rb", "x: a\n", "Host: h"):
            self.assertIsNone(self.parse("Host: h", line), line)

    def test_one_look_at_each_byte(self):
        """A line of nothing but blanks costs no more than another. A search that tries all ways to share them has no end."""
        for end in ("\n", "\r", "\n ", "\n\n", ""):
            for blank in " \t":
                line = "X:" + blank * (web.REQUEST - 100) + end
                self.assertEqual(self.parse("Host: h", line), None if end else ("GET", "/", {"host": "h", "x": ""}))


class Room(unittest.IsolatedAsyncioTestCase):
    """CONNECTIONS at a time. The oldest goes for a new one, and users who may not look push out nobody else."""

    class Writer:
        """A connection of a user."""

        def __init__(self, uid):
            self.uid, self.aborted, self.transport = uid, False, self

        def get_extra_info(self, _):
            return self.uid

        def abort(self):
            self.aborted = True

    def setUp(self):
        self.kept = web.uid_of, web.SECONDS
        web.uid_of, web.SECONDS = lambda uid: uid, 3600  # no connection ends by its time

    def tearDown(self):
        web.uid_of, web.SECONDS = self.kept

    async def come(self, server, number, uid):
        """Connections whose clients say nothing. returns: them, once the server has seen each"""
        came = [self.Writer(uid) for _ in range(number)]
        for w in came:
            self.tasks.append(asyncio.ensure_future(server.serve(asyncio.StreamReader(), w)))
        for _ in range(10):
            await asyncio.sleep(0)
        return came

    async def asyncSetUp(self):
        self.tasks = []

    async def asyncTearDown(self):
        for t in self.tasks:
            t.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def open(self, writers):
        return [not w.aborted for w in writers]

    async def test_strangers_go_first(self):
        n = web.CONNECTIONS
        server = web.Server(types.SimpleNamespace(users={1}))
        readers = await self.come(server, 2, 1)
        strangers = await self.come(server, 3 * n, 2)
        self.assertEqual(self.open(readers), [True] * 2)
        self.assertEqual(self.open(strangers), [False] * (2 * n + 2) + [True] * (n - 2))
        more = await self.come(server, n - 2, 1)
        self.assertEqual(self.open(strangers), [False] * 3 * n)
        self.assertEqual(self.open(readers + more), [True] * n)
        # Without a stranger there is no room for one.
        self.assertEqual(self.open(await self.come(server, 1, None) + await self.come(server, n, 2)), [False] * (n + 1))
        self.assertEqual(self.open(readers + more), [True] * n)
        newest = await self.come(server, 3, 1)
        self.assertEqual(self.open(readers + more + newest), [False] * 3 + [True] * n)
        self.assertEqual(len(server.tasks), n)

    async def test_everybody(self):
        """The oldest goes when all may look, and nobody asks the kernel who they are."""
        def never(_):
            raise AssertionError("asked")
        web.uid_of = never
        server = web.Server(types.SimpleNamespace(users=None))
        came = await self.come(server, web.CONNECTIONS + 5, 2)
        self.assertEqual(self.open(came), [False] * 5 + [True] * web.CONNECTIONS)


class Who(unittest.TestCase):
    def test_user(self):
        """The kernel names the user of the other end, over both kinds of IP and where one goes by the other, and nobody of a
        connection that is not there."""
        for family, address, to in ((socket.AF_INET, "127.0.0.1", "127.0.0.1"), (socket.AF_INET6, "::1", "::1"), (socket.AF_INET, "127.0.0.1", "::ffff:127.0.0.1")):
            if ":" in to and not os.path.exists("/proc/net/if_inet6"):
                continue
            with socket.socket(family) as s:
                s.bind((address, 0))
                s.listen(1)
                with socket.create_connection((to, s.getsockname()[1])) as c:
                    conn, _ = s.accept()
                    self.assertEqual(web.uid_of(conn), os.geteuid())
                    ours, theirs = conn.getsockname(), conn.getpeername()
                    c.close()
                    self.assertIsNone(web.uid_of_tcp(ours, theirs))
                    conn.close()
                self.assertIsNone(web.uid_of_tcp(ours, (address, 1)))

    def test_unix(self):
        a, b = socket.socketpair()
        self.assertEqual(web.uid_of(a), os.geteuid())
        a.close()
        b.close()


if __name__ == "__main__":
    loader = importlib.machinery.SourceFileLoader("urnic_web", os.path.abspath(sys.argv[1]))
    spec = importlib.util.spec_from_loader("urnic_web", loader)
    web = importlib.util.module_from_spec(spec)
    loader.exec_module(web)
    unittest.main(argv=sys.argv[:1], verbosity=2)
