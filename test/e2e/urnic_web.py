#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic-web over HTTP: figures of a running urnicd, requests that are refused, a urnicd that is stopped or killed,
names that are HTML, more connections than there may be, logs of events and of sessions.

usage: urnic_web.py URNIC_WEB URNICCTL URNICD URNIC_PERF CONFIG_FOLDER [GRAFANA_DASHBOARD]"""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import unittest

sys.dont_write_bytecode = True  # no cache of urnicd_common
from ports import free_port
from urnicd_common import LONG, Nicd, SECONDS

WEB = CTL = None
OTHER = 65534  # a user who is neither root nor this one
EVIL = "<b id=x>&\u202e"  # 12 bytes: the kernel keeps 15 of a program's name


class Over(http.client.HTTPConnection):
    """HTTP over a UNIX socket."""

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(SECONDS)
        self.sock.connect(self.host)


class Page(Nicd):
    """A urnic-web, with or without a urnicd."""

    def web(self, *args, listen="127.0.0.1:0", sockets=None):
        """Start urnic-web. returns: its process; sets self.port"""
        sockets = [w for s in sockets or [self.socket] for w in ("--socket", s)]
        p = self.popen(WEB, "--listen", listen, "--interval", "0.2", *sockets, *args)
        line = p.stderr.readline()
        found = re.match(r"urnic-web: http://.*:(\d+)/ shows ", line)
        self.port = int(found[1]) if found else None
        self.assertTrue(found or "/" in listen, line + (p.stderr.read() if p.poll() is not None else ""))
        return p

    def get(self, path="/", method="GET", host="127.0.0.1", **headers):
        """returns: status, headers, body"""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            c.putrequest(method, path, skip_host=True)
            if host is not None:
                c.putheader("Host", host)
            for key, value in headers.items():
                c.putheader(key.replace("_", "-"), value)
            c.endheaders()
            r = c.getresponse()
            return r.status, r.headers, r.read()
        finally:
            c.close()

    def raw(self, data):
        """Send bytes. returns: all that comes until the end"""
        got = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS) as s:
            try:
                s.sendall(data)
                while (more := s.recv(65536)):
                    got += more
            except ConnectionError:
                pass
        return got

    def state(self, query=""):
        status, _, body = self.get("/state.json" + query)
        self.assertEqual(status, 200, body)
        return json.loads(body)

    def first(self):
        """The first dataplane once it was looked at twice, which makes rates."""
        def looked():
            d = self.state()["dataplanes"][0]
            return len(d["samples"]) >= 2 and d
        d = self.until(looked)
        self.assertTrue(d)
        return d

    def becomes(self, state, place=0):
        d = self.until(lambda: next((d for i, d in enumerate(self.state()["dataplanes"]) if i == place and d["state"] == state), None))
        self.assertTrue(d, f"not {state}: {self.state()['dataplanes'][place]}")
        return d

    def event(self, kind, pattern):
        """Wait for an event. returns: it"""
        e = self.until(lambda: next((e for e in self.state()["events"] if e["kind"] == kind and re.search(pattern, e["text"])), None))
        self.assertTrue(e, f"no {kind} {pattern} in {self.state()['events']}")
        return e

    def ctl(self, *words):
        subprocess.run([CTL, "--socket", self.socket, *words], env=self.env, check=True, timeout=SECONDS, capture_output=True)

    def ends(self, p):
        p.send_signal(signal.SIGTERM)
        out, err = p.communicate(timeout=SECONDS)
        self.assertEqual((p.returncode, out, err), (0, "", ""))


class Figures(Page):
    def test_all(self):
        """Each table has what urnicctl shows, rates are those of traffic, and drops and links become events (WEB: ports,
        programs, QPs, rates, drops, wires, fail-overs)."""
        nicd, _ = self.start(wire="impair a0.in = corrupt=20%, delay=10us, seed=5")
        web = self.web()
        self.first()
        perf = self.popen(self.PERF, "write_bw", "--attach", self.socket, "--duration", LONG, "--qps", "2")

        def busy():
            v = self.state()["dataplanes"][0]["view"]
            return v["qps"] and v["adapters"][0]["tx_bits_per_s"] and any(d["reason"] == "drop_icrc" and d["per_s"] for d in v["drops"]) and v
        v = self.until(busy)
        self.assertTrue(v)
        a, b = v["adapters"]
        self.assertEqual((a["name"], a["node"], a["link"], b["name"]), ("a0", "a", True, "b0"))
        self.assertGreater(a["tx_bits_per_s"], 8 * a["tx_packets_per_s"])
        self.assertGreater(sum(x["again_per_s"] for x in v["adapters"]) + v["drops"][0]["total"], 0)
        self.assertEqual({c["pid"] for c in v["clients"]}, {perf.pid})
        self.assertEqual({q["program"] for q in v["qps"]}, {"urnic-perf"})
        self.assertEqual(len(v["qps"]), 4)
        self.assertEqual([(p["name"], p["state"]) for p in v["ports"]], [("a0", "up"), ("b0", "up")])
        self.assertTrue(all(p["mbufs"] >= p["mbufs_free"] > 0 for p in v["ports"]))
        wires = {w["port"]: w for w in v["wires"]}
        self.assertIn("corrupt", wires["a0"]["impair_in"])
        self.assertEqual(wires["b0"]["impair_in"], "")
        self.assertGreater(wires["b0"]["tx_packets_per_s"] + wires["b0"]["rx_packets_per_s"], 0)
        self.event("client", r"^program urnic-perf \(process \d+, client \d+\) attached to adapter a0$")
        self.ctl("port", "a0", "down")
        self.event("port", "^port a0 is down by a command$")
        self.event("error", r"client \d+: .*port a0 is administratively down")
        self.assertTrue(self.until(lambda: not self.state()["dataplanes"][0]["view"]["adapters"][0]["link"]))
        self.ctl("port", "a0", "up")
        self.event("port", "^port a0 has a link again$")
        perf.communicate(timeout=SECONDS)
        self.event("client", "^program urnic-perf .* has left adapter a0$")
        self.ends(web)
        self.assertEqual(self.stop(nicd)[0], 0)

    def test_only_news(self):
        """A page gets samples and events once: those behind the numbers that it has, and all when urnic-web is another."""
        nicd, _ = self.start()
        web = self.web()
        self.first()
        s = self.state()
        last = s["dataplanes"][0]["samples"][-1][0]
        more = self.state(f"?of={s['of']}&after={s['events'][-1]['id']},{last}")
        self.assertEqual(more["events"], [])
        self.assertTrue(all(sample[0] > last for sample in more["dataplanes"][0]["samples"]))
        self.assertEqual(set(s["dataplanes"][0]["samples"][-1][2]), {"adapter/a0", "adapter/b0", "wire/wire:a0", "wire/wire:b0"})
        self.assertTrue(self.state("?of=1&after=999999,999999")["events"])
        for query in ("?after=x,-1,,9" + "9" * 400, "?after=" + "1," * 3000, "?&&==&after", "?of=%00"):
            self.state(query)
        self.ends(web)
        self.assertEqual(self.stop(nicd)[0], 0)

    def test_frozen_and_killed(self):
        """A urnicd that is stopped is told from one that is gone, others are shown all the while, and it is found again."""
        other = self.socket + "2"
        nicd, _ = self.start()
        self.socket, first = other, self.socket
        second, _ = self.start()
        web = self.web(sockets=[first, other])
        self.becomes("up", 0)
        self.becomes("up", 1)
        nicd.send_signal(signal.SIGSTOP)
        os.waitpid(nicd.pid, os.WUNTRACED)
        d = self.becomes("silent")
        self.assertEqual(d["why"], "does not answer: is it stopped?")
        self.assertEqual([a["name"] for a in d["view"]["adapters"]], ["a0", "b0"])  # the last figures stay
        seen = self.state()["dataplanes"][1]["samples"][-1][0]
        self.assertTrue(self.until(lambda: self.state()["dataplanes"][1]["samples"][-1][0] > seen + 2))
        nicd.send_signal(signal.SIGCONT)
        self.becomes("up")
        nicd.kill()
        nicd.communicate()
        d = self.becomes("away")
        self.assertTrue(self.until(lambda: self.state()["dataplanes"][0]["why"] == f"no urnicd is at {first}.ctl"))
        self.assertEqual(d["view"], {})
        self.event("lost", "^(no urnicd is at|the urnicd at .* hung up)")
        second.terminate()
        second.communicate(timeout=SECONDS)
        for name in os.listdir(self.run):  # left by the one that was killed
            shutil.rmtree(os.path.join(self.run, name))
        self.socket = first
        again, _ = self.start()
        self.becomes("up")
        self.ends(web)
        self.assertEqual(self.stop(again)[0], 0)


class Requests(Page):
    def test_without_a_urnicd(self):
        """The page says that none is there, and requests are judged all the same."""
        self.process = self.web("--host", "lab.example")
        for check in (self.page, self.methods, self.hosts, self.paths, self.rubbish, self.bounded, self.users):
            with self.subTest(check.__name__):
                check()
        self.ends(self.process)

    def page(self):
        """The page has all that it needs from here, and a policy that lets in nothing else."""
        self.assertEqual(self.becomes("away")["why"], f"no urnicd is at {self.socket}")
        texts = {}
        for path, kind in (("/", "text/html"), ("/page.html", "text/html"), ("/page.css", "text/css"), ("/page.js", "text/javascript"),
                           ("/plot.js", "text/javascript"), ("/icon.svg", "image/svg+xml"), ("/state.json", "application/json")):
            status, headers, texts[path] = self.get(path)
            self.assertEqual((status, headers["Content-Type"]), (200, f"{kind}; charset=utf-8"))
            self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
            self.assertNotRegex(headers["Content-Security-Policy"], r"unsafe|\*|http|data:")
            self.assertEqual((headers["X-Content-Type-Options"], headers["Cache-Control"]), ("nosniff", "no-store"))
            self.assertIsNone(headers["Access-Control-Allow-Origin"])
        for path in ("/", "/page.css", "/page.js", "/plot.js"):
            text = texts[path].decode().replace("http://www.w3.org/2000/svg", "")
            self.assertNotRegex(text, r"https?:|//[a-z]+\.|@import|url\(|@PARTS@|@VERSION@", path)
            self.assertNotRegex(text, r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function|<style|style=|\bon\w+=", path)
        used = set(re.findall(rb'(?:src|href)="([^"#]+)"', texts["/"]))
        self.assertEqual(used, {b"icon.svg", b"page.css", b"plot.js", b"page.js"})

    def methods(self):
        for method in ("POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "get"):
            status, headers, _ = self.get("/", method)
            self.assertEqual((status, headers["Allow"]), (405, "GET"), method)

    def hosts(self):
        """A page of another site whose name leads here gets nothing (DNS rebinding)."""
        for host in ("localhost", "LOCALHOST:1", f"127.0.0.1:{self.port}", "[::1]:80", "lab.example", "Lab.Example:8080"):
            self.assertEqual(self.get("/state.json", host=host)[0], 200, host)
        for host in ("evil.example", "localhost.evil.example", "evil.example:8470", "127.0.0.1.evil.example", "localhost@evil.example",
                     "127.0.0.1:80:80", "127.0.0.1:", "localhost.", "0x7f000001", "2130706433", "", " ", "xlab.example", "[::1", "127.0.0.1/", "a b"):
            status, headers, body = self.get("/state.json", host=host)
            self.assertEqual(status, 403, host)
            self.assertNotIn(b"dataplanes", body)
        self.assertEqual(self.get("/state.json", host=None)[0], 400)
        twice = self.raw(b"GET /state.json HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        self.assertNotIn(b"dataplanes", twice)

    def paths(self):
        """No request names a file: a path is one of a list."""
        for path in ("/../etc/passwd", "/..%2f..%2fetc/passwd", "//etc/passwd", "/./page.js", "/page.js/", "/page.py", "/%2e%2e/", "/state.json/x",
                     "/PAGE.JS", "/page.js%00", "/\\..\\x", "/favicon.ico"):
            self.assertEqual(self.get(path)[0], 404, path)
        self.assertEqual(self.get("/page.js?../../etc/passwd")[0], 200)
        for target in (b"http://127.0.0.1/state.json", b"state.json", b"*", b"127.0.0.1:80"):
            self.assertIn(b" 400 ", self.raw(b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"), target)

    def rubbish(self):
        for noise in (b"\0" * 100000, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 999, b"GET " + b"/" * 99999, b"\r\n\r\n", b"GET / HTTP/9\r\n\r\n",
                      b"GET / HTTP/1.1\r\n: x\r\n\r\n", b"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n", b"GET\t/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
                      b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", os.urandom(20000),
                      b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\r\n folded\r\n\r\n",
                      b"GET / HTTP/1.1\r\nHost: localhost\r\nX:" + b" " * 8000 + b"\n\r\n\r\n"):
            self.assertRegex(self.raw(noise), b"^HTTP/1.1 4(00|31) ", noise[:40])
        self.assertIn(b" 431 ", self.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 9000))
        self.assertEqual(self.get()[0], 200)

    def bounded(self):
        """Clients that are silent, or do not read, keep nobody out: the oldest go. There are 32 at a time at most."""
        silent = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(100)]
        for s in silent[:50]:
            s.sendall(b"GET / HT")
        # Each request is answered behind all that came before it. The last ones are answered when those have gone that had to.
        for _ in range(10):
            self.assertEqual(self.get()[0], 200)
        self.assertLess(len(os.listdir(f"/proc/{self.process.pid}/fd")), 60)
        for s in silent:
            s.settimeout(SECONDS)
            try:
                self.assertEqual(s.recv(1), b"")  # each is cut in the end
            except ConnectionResetError:
                pass
            s.close()

    def users(self):
        """Another user of the machine gets nothing, unless named: urnicd's control socket is not for all, either."""
        if os.geteuid() != 0:
            return  # only root becomes another user
        code = ("import http.client, sys\nc = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))\n"
                "c.request('GET', '/state.json', headers={'Host': 'localhost'})\nr = c.getresponse()\nprint(r.status, b'dataplanes' in r.read())")

        def other():
            return subprocess.run(["/usr/bin/python3", "-c", code, str(self.port)], user=OTHER, group=OTHER, extra_groups=[], cwd="/",
                                  check=True, capture_output=True, text=True, timeout=SECONDS).stdout.split()
        self.assertEqual(other(), ["403", "False"])
        for how in (("--user", str(OTHER)), ("--everybody",)):
            p = self.web(*how)
            self.assertEqual(other(), ["200", "True"], how)
            self.ends(p)


class Starts(Page):
    def test_unix_socket(self):
        """The page at a UNIX socket is the user's own; a socket that was left behind is taken over, and one in use is not."""
        path = os.path.join(self.dir.name, "web.sock")
        p = self.web(listen=path)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        c = Over(path)
        c.request("GET", "/state.json", headers={"Host": "localhost"})
        self.assertEqual(c.getresponse().status, 200)
        c.close()
        second = subprocess.run([WEB, "--listen", path], capture_output=True, text=True, timeout=SECONDS, check=False)
        self.assertEqual(second.returncode, 1)
        self.assertIn("Address already in use", second.stderr)
        p.kill()
        p.communicate()
        self.assertTrue(os.path.exists(path))
        self.ends(self.web(listen=path))
        self.assertFalse(os.path.exists(path))

    @unittest.skipUnless(os.path.exists("/proc/net/if_inet6"), "no IPv6 here")
    def test_ipv6(self):
        """The user of a connection over IPv6 is known, too."""
        p = self.web(listen="[::1]:0")
        c = http.client.HTTPConnection("::1", self.port, timeout=SECONDS)
        c.request("GET", "/state.json")
        self.assertEqual(c.getresponse().status, 200)
        c.close()
        self.ends(p)

    def test_usage(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen(1)
            cases = [(0, "--session-log", ("--help",)), (0, r"^urnic-web \d", ("--version",)),
                     (1, "Address already in use", ("--listen", f"127.0.0.1:{s.getsockname()[1]}"))]
            cases += [(2, "usage: ", args) for args in (
                ("--interval", "0"), ("--interval", "nan"), ("--nonsense",), ("x",), ("--user", "no such user"), ("--user", "0", "--everybody"),
                ("--socket", "/x") * 9)]
            cases += [(1, "--everybody", ("--listen", place)) for place in ("0.0.0.0:0", "[::]:0")]
            cases += [(1, "give an address and a port", ("--listen", place)) for place in ("127.0.0.1", "127.0.0.1:99999", "evil.example:80", ":80", "::1:80")]
            started = [(case, self.popen(WEB, *case[2])) for case in cases]
            self.env["URNIC_TIMEOUT"] = "soon"
            started.append(((1, "URNIC_TIMEOUT is 'soon'", ()), self.popen(WEB, "--listen", "127.0.0.1:0")))
            for (code, words, args), p in started:
                said = "".join(p.communicate(timeout=SECONDS))
                self.assertEqual(p.returncode, code, (args, said))
                self.assertRegex(said, words, args)

    def test_somebody_else(self):
        """A socket that is no urnicd's control socket is told as such, whatever it answers."""
        head = (0x55524E43).to_bytes(4, sys.byteorder)
        out, end = ((k).to_bytes(2, sys.byteorder) + bytes(2) for k in (1, 2))
        answers = (b"", b"x", b"\0" * 100, head + out + b"{" * 16000, head + out + b'[\n{"name": [1]},\n{"name": {}}\n]\n',
                   head + out + b'{"name": ' + b"9" * 5000 + b"}\n", head + out + b"[" * 16000 + b"\n",
                   head + out + b'{"name": 5, "adapter": {}, "link": "\\ud800", "drops": ' + b"7" * 4000 + b"}\n")
        sockets, threads = [], []
        for i, answer in enumerate(answers):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.bind(os.path.join(self.dir.name, f"{i}.ctl"))
            s.listen(1)
            sockets.append(s)
            threads.append(threading.Thread(target=self.serve, args=(s, answer, head + end)))
            threads[-1].start()
        web = self.web(sockets=[s.getsockname() for s in sockets])

        def told():
            return all(d["state"] in ("away", "up") for d in self.state()["dataplanes"])
        self.assertTrue(self.until(told))
        for s, t in zip(sockets, threads):
            s.shutdown(socket.SHUT_RDWR)
            os.unlink(s.getsockname())
            t.join()
            s.close()
        for place in range(len(answers)):
            self.becomes("away", place)
        self.ends(web)

    def serve(self, s, *answer):
        """Answer all questions alike, until the socket is shut."""
        while True:
            try:
                c, _ = s.accept()
            except OSError:
                return
            with c:
                try:
                    c.recv(4096)
                    for piece in answer:
                        c.send(piece)
                except OSError:
                    pass


class Hostile(Page):
    def test_names(self):
        """A program's name that is HTML, and turns the order of reading, comes as a text, and without the turn."""
        nicd, _ = self.start()
        web = self.web()
        link = os.path.join(self.dir.name, EVIL)
        os.symlink(self.PERF, link)
        perf = self.popen(link, "write_bw", "--attach", self.socket, "--duration", LONG)
        d = self.until(lambda: next((d for d in self.state()["dataplanes"] if d["view"].get("qps")), None))
        self.assertTrue(d)
        self.assertEqual({c["program"] for c in d["view"]["clients"]}, {"<b id=x>&\ufffd"})
        self.event("client", "^program <b id=x>&\ufffd ")
        body = self.get("/state.json")[2]
        self.assertNotIn("\u202e".encode(), body)
        self.assertNotIn(b"\\u202e", body)
        perf.kill()
        perf.communicate()
        self.ends(web)
        self.assertEqual(self.stop(nicd)[0], 0)


class Logs(Page):
    def write(self, name, text, mode="a"):
        path = os.path.join(self.dir.name, name)
        with open(path, mode, encoding="utf-8") as f:
            f.write(text)
        return path

    def test_session(self):
        """Lines of URNIC_SESSION_LOG that tell of a fail-over become events, others do not."""
        head, tail = "2026-11-30T00:53:20.104523Z session[4711.1] notice session ", " | conn=17 peer=33 epoch=1 path=S-P "
        log = self.write("s.log", head + "begin: connection 17 to 33 has a session" + tail + "begin paths=0xf\n")
        web = self.web("--session-log", log)
        self.write("s.log", head + "stop: connection 17 to 33 stops, to move, because the primary adapter is gone" + tail + "step CONNECTED -> SLEEPING\n" +
                   head + "message: connection 17 to 33 tells its peer: REPORT" + tail + "tell REPORT of=1 sent=120\nrubbish <b>\n" +
                   head + "move: connection 17 to 33 moved to its path in 1.2 ms" + tail + "step BINDING -> MIGRATED took us=1234\n" +
                   "2026-11-30T00:53:2 bad\n" + head + "adapter-lost: adapter a0 is lost\n" + head + "dead: connection 17 to 33 is dead, because no path is alive" + tail)
        self.event("failover", "^connection 17 to 33 stops, to move, because the primary adapter is gone$")
        e = self.event("failover", "^connection 17 to 33 moved to its path in 1.2 ms$")
        self.assertEqual((e["time"], e["where"]), (1796000000.105, "session[4711.1]"))
        self.event("failover", "^adapter a0 is lost$")
        self.assertEqual(len([e for e in self.state()["events"] if e["kind"] == "failover"]), 3)
        self.write("s.log", "\n")  # a line counts once it is whole
        self.event("failover", "is dead, because no path is alive$")
        self.ends(web)

    def test_log(self):
        """Lines of the log of events are events, whatever bytes they have; a file that is moved away is followed."""
        log = self.write("d.log", "2026-11-30T04:43:01.007Z urnicd[77] warning port down: port a0 has no link: a command took it down\n")
        web = self.web("--log", log, "--log", self.dir.name)
        e = self.event("port", "^warning port down: port a0 has no link: a command took it down$")
        self.assertEqual((e["time"], e["where"]), (1796013781.007, "urnicd[77]"))
        self.assertEqual(self.state()["notes"], [f"can't read {self.dir.name}: it is no plain file"])
        os.rename(log, log + ".1")
        self.write("d.log", "2026-11-30T04:43:02.007Z urnicd[77] info client attach: program <script>\x1b[31m\u202e\n")
        self.event("client", "^info client attach: program <script>\ufffd\\[31m\ufffd$")
        self.write("d.log", "".join(f"line {i}\n" for i in range(1000)))
        self.event("more", r"^\d+ more events came")
        self.assertLessEqual(len(self.state()["events"]), 500)
        self.ends(web)


class Dashboard(Nicd):
    JSON = None

    def config(self, **lines):
        """One port beside the adapters on the switch."""
        path = super().config(**lines)
        with open(path, "a", encoding="utf-8") as f:
            f.write("[port p0]\ndevice = net_null0\n[adapter c0]\nnode = c\nport = p0\nipv4 = 10.0.1.1\n")
        return path

    def metrics(self):
        """Families of urnicd's page, each with the names of its labels."""
        for _ in range(5):
            port = free_port()
            try:
                nicd = self.start(daemon=f"prometheus = 127.0.0.1:{port}")[0]
                break
            except AssertionError as e:
                if "Address already in use" not in str(e):
                    raise
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        c.request("GET", "/metrics")
        text = c.getresponse().read().decode()
        c.close()
        self.assertEqual(self.stop(nicd)[0], 0)
        families = {name: set() for name in re.findall(r"^# TYPE (\S+) ", text, re.M)}
        for name, labels in re.findall(r"^(\w+)\{(.*)\} ", text, re.M):
            families[name].update(re.findall(r'(\w+)="', labels))
        return families

    def test_metrics(self):
        """Each metric that the dashboard names is one of urnicd's, with the labels that are asked of it, and counters are
        asked for their rates."""
        with open(self.JSON, encoding="utf-8") as f:
            board = json.load(f)
        families = self.metrics()
        texts = [(t["expr"], t["legendFormat"]) for p in board["panels"] for t in p.get("targets", [])]
        texts += [(v["definition"], "") for v in board["templating"]["list"] if "definition" in v]
        self.assertGreater(len(texts), 20)
        for expr, legend in texts:
            pattern = re.search(r'__name__=~"([^"]*)"', expr)
            names = {n for n in families if re.fullmatch(pattern[1], n)} if pattern else \
                set(re.findall(r"\burnic_\w+", re.sub(r'"[^"]*"', '""', expr)))
            self.assertTrue(names, expr)
            asked = set(re.findall(r"\b(\w+)(?==~?\")", expr)) | set(re.findall(r"\{\{(\w+)\}\}", legend))
            for name in names:
                self.assertTrue(name in families, f"{name} of {expr}")
                self.assertLessEqual(asked - {"instance", "reason", "__name__"}, families[name], (expr, legend))
                if name.endswith("_total"):
                    self.assertRegex(expr, r"(rate|increase)\(")
                else:
                    self.assertNotRegex(expr, rf"(rate|increase)\({name}")

    def test_layout(self):
        """Panels have numbers of their own and do not lie on one another."""
        with open(self.JSON, encoding="utf-8") as f:
            board = json.load(f)
        ids = [p["id"] for p in board["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        taken = set()
        for p in board["panels"]:
            g = p["gridPos"]
            self.assertLessEqual(g["x"] + g["w"], 24)
            cells = {(x, y) for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])}
            self.assertFalse(cells & taken, p["title"])
            taken |= cells


if __name__ == "__main__":
    WEB, CTL, Nicd.NICD, Nicd.PERF, Nicd.CONFIG, Dashboard.JSON = map(os.path.abspath, sys.argv[1:7])
    del sys.argv[1:7]
    unittest.main(verbosity=2)
