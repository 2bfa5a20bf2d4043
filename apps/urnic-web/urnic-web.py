#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A page that shows urnicd at work: ports, adapters, wires, programs, queue pairs, drops and events, live. The page
is served to browsers of this machine; urnicd is asked by its control socket, with commands that show and change nothing."""

import argparse
import asyncio
import collections
import contextlib
import ipaddress
import json
import os
import pwd
import re
import signal
import socket
import stat
import struct
import sys
import threading
import time

from look import Away, Silent, clean, find_socket, look, patience, view_of
from events import Events, Files, changes

# @PARTS@

# ---- the program

VERSION = "@VERSION@"
LISTEN = "127.0.0.1:8470"
DATAPLANES = 8  # at most
SAMPLES = 300  # looks whose rates a page gets for its plots
SERIES = 64  # adapters with plots, at most, and as many wires; several urnicd have equal shares
CONNECTIONS = 32  # at a time; one more makes the oldest go, of a user who may not look if there is one
REQUEST = 8192  # bytes of a request, at most
SECONDS = 5  # a connection lasts no longer
SILENT = 2  # seconds without an answer, after which a page says so

EPILOG = """\
Without --socket the page shows the urnicd that programs of this user find. A urnicd need not run yet.
Looking is for root and the user of urnic-web, whom the kernel names, and those of --user.

Exit code: 0 ended by a signal, 1 failed, 2 wrong usage."""


class Failed(Exception):
    """A message that says what is wrong, and what to do."""


# ---- dataplanes

class Dataplane(threading.Thread):
    """One urnicd, looked at each interval by a thread of its own: one that is stopped delays no other."""

    def __init__(self, path, interval, logged, events, series):
        """series: adapters with plots, at most, and as many wires"""
        super().__init__(daemon=True, name="look")
        self.path, self.interval, self.logged, self.events, self.series = path, interval, logged, events, series
        self.lock = threading.Lock()
        self.state, self.why = "begins", ""  # begins, up, silent, away
        self.view, self.was, self.looked = {}, None, None
        self.asked = None  # when the look began that has no end yet
        self.samples = collections.deque(maxlen=SAMPLES)
        self.seq = 0

    def run(self):
        while True:
            began = time.monotonic()
            with self.lock:
                self.asked = began
            self.turn()
            with self.lock:
                self.asked = None
            time.sleep(max(self.interval - (time.monotonic() - began), 0.05))

    def turn(self):
        try:
            # Silence is told soon. A urnicd that is only slow gets all its time in the next look.
            most = patience() or 10
            self.take(look(self.path, most if self.state == "silent" else min(most, max(SILENT, self.interval))))
            self.become("up", "")
        except Silent:
            self.become("silent", "")
        except Away as e:
            self.was = None
            self.become("away", str(e))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as e:
            self.was = None
            self.become("away", f"{self.path}: answers that make no sense: {e}")

    def become(self, state, why):
        """Note a state, and tell of a change."""
        with self.lock:
            before, self.state, self.why = self.state, state, why
            if state == "away":
                self.view = {}
        words = {"up": "answers" if before in ("begins", "away") else "answers again", "away": why,
                 "silent": "does not answer: is it stopped?"}
        if state != before:
            self.events.add(self.path, "dataplane" if state == "up" or before == "begins" else "lost", words[state])

    def take(self, now):
        was, self.was = self.was or now, now
        view = view_of(was, now)
        sample = {f"adapter/{a['name']}": [a["tx_bits_per_s"], a["rx_bits_per_s"], a["drops_per_s"], a["again_per_s"],
                                           a["timeouts_per_s"]] for a in view["adapters"][:self.series]}
        sample.update({f"wire/{w['switch']}:{w['port']}": [w["tx_packets_per_s"], w["rx_packets_per_s"], w["drops_per_s"]]
                       for w in view["wires"][:self.series]})
        self.events.add_all(self.path, changes(was, now, self.logged))
        with self.lock:
            self.view, self.looked = view, time.time()
            self.seq += 1
            self.samples.append((self.seq, round(self.looked, 2), sample))

    def shown(self, after):
        """The part for a page. after: number of the last sample that the page has"""
        with self.lock:
            late = time.monotonic() - self.asked if self.asked is not None else 0
            silent = self.state == "silent" or (self.state == "up" and late > max(SILENT, self.interval))
            state = "silent" if silent else self.state
            why = "does not answer: is it stopped?" if silent else self.why
            return {"socket": clean(self.path), "state": state, "why": clean(why), "looked": self.looked, "view": self.view,
                    "samples": [s for s in self.samples if s[0] > after]}


class Watch:
    """All that is looked at."""

    def __init__(self, args):
        self.began = time.time_ns()
        self.interval, self.events = args.interval, Events()
        paths = args.socket or [find_socket()]
        self.dataplanes = [Dataplane(p, args.interval, bool(args.log), self.events, SERIES // len(paths)) for p in paths]
        self.files = Files(args.log, args.session_log, args.interval, self.events)

    def start(self):
        for t in (*self.dataplanes, self.files):
            t.start()

    def state(self, query):
        """The state as JSON. query: numbers that the page has: of its last event, and of the last sample of each dataplane"""
        had = [int(n) for n in re.findall(r"\d{1,15}", query.get("after", ""))]
        if query.get("of") != str(self.began):
            had = []  # the page knows another process
        had += [0] * (1 + len(self.dataplanes) - len(had))
        return json.dumps({"of": str(self.began), "version": VERSION, "now": time.time(), "interval": self.interval,
                           "dataplanes": [d.shown(n) for d, n in zip(self.dataplanes, had[1:])],
                           "events": self.events.after(had[0]),
                           "notes": [clean(t) for t in self.files.troubles()]}).encode()


# ---- who asks

def uid_of_tcp(ours, theirs):
    """The user of the other end of a TCP connection on this machine, by the kernel's table. returns: None: nobody's"""
    def end(address, mapped):
        # The table has an address in words, each as the machine reads it.
        raw = mapped + ipaddress.ip_address(address[0]).packed
        return "".join(f"{w:08X}" for w in struct.unpack(f"={len(raw) // 4}I", raw)) + f":{address[1]:04X}"

    # A socket of IPv6 may have connected to an address of IPv4: its end is in the other table.
    four = [("/proc/net/tcp", b""), ("/proc/net/tcp6", bytes(10) + b"\xff\xff")]
    for path, mapped in [("/proc/net/tcp6", b"")] if ":" in theirs[0] else four:
        # The table names no user of a connection that is closed: 01 is one that is open.
        want = f" {end(theirs, mapped)} {end(ours, mapped)} 01 "
        with contextlib.suppress(FileNotFoundError), open(path, encoding="ascii") as f:  # a kernel may be without IPv6
            for line in f:
                if want in line:
                    return int(line.split()[7])
    return None


def uid_of(conn):
    """The user who asks, by the kernel's word. returns: None: the kernel does not know"""
    if conn.family == socket.AF_UNIX:
        return struct.unpack("3i", conn.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1]
    try:
        return uid_of_tcp(conn.getsockname(), conn.getpeername())
    except (OSError, ValueError, IndexError):
        return None


# ---- answers

POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
          "form-action 'none'; frame-ancestors 'none'")
HEAD = (f"Content-Security-Policy: {POLICY}\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
        "Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\nX-Frame-Options: DENY\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n")
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "json": "application/json"}
ICON = ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#1d4f8c"/>'
        '<path d="M3 12V7h3l2-4 2 9 1-3h2" fill="none" stroke="#fff" stroke-width="1.5"/></svg>')


def answer(status, kind, body, more=""):
    return (f"HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {len(body)}\r\n{HEAD}{more}\r\n"
            ).encode() + body


def refusal(status, words, more=""):
    return answer(status, "text/plain", (words + "\n").encode(), more)


def parse(request):
    """returns: method, target, {header: value}; None: that is no request of HTTP/1"""
    first, *lines = request.decode("latin-1").split("\r\n")
    m = re.fullmatch(r"([A-Za-z]{1,20}) (\S+) HTTP/1\.[01]", first)
    headers = {}
    for line in lines:
        # One part alone takes blanks: parts that share them would try all ways to do so.
        h = re.fullmatch(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([^\r\n]*)", line)
        # Two hosts, or two lengths, are a trick.
        if not h or (h[1].lower() in ("host", "content-length", "transfer-encoding") and h[1].lower() in headers):
            return None
        headers[h[1].lower()] = h[2].strip(" \t")
    return (m[1], m[2], headers) if m else None


class Site:
    """The answers to requests."""

    def __init__(self, watch, hosts, users):
        self.watch, self.hosts = watch, {h.lower() for h in hosts}
        self.users = users  # numbers of users who may look; None: all
        self.files = {"/" + name: answer("200 OK", TYPES[name.rsplit(".", 1)[1]], text.encode()) for name, text in FILES.items()}
        self.files["/icon.svg"] = answer("200 OK", TYPES["svg"], ICON.encode())
        self.files["/"] = self.files["/page.html"]

    def is_ours(self, host):
        """True when a browser asked for this machine: a page of another site that had its name lead here names that site."""
        m = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]/@\s]+)(:\d{1,5})?", host)
        return m is not None and m[1].lower() in self.hosts

    def answer(self, request, uid):
        asked = parse(request)
        if asked is None or not asked[1].startswith("/"):
            return refusal("400 Bad Request", "The request is none that urnic-web understands.")
        method, target, headers = asked
        if "host" not in headers:
            return refusal("400 Bad Request", "The request names no host.")
        if not self.is_ours(headers["host"]):
            return refusal("403 Forbidden", "The request is for another host. Open the page by a name of --help, or give its name: --host NAME.")
        if self.users is not None and uid not in self.users:
            return refusal("403 Forbidden", "Your user may not look. The user of urnic-web lets more users look: --user NAME, --everybody.")
        if method != "GET":
            return refusal("405 Method Not Allowed", "Nothing can be changed here: GET is all there is.", "Allow: GET\r\n")
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            return refusal("400 Bad Request", "A GET has no body.")
        path, _, query = target.partition("?")
        if path == "/state.json":
            words = dict(w.partition("=")[::2] for w in query[:500].split("&"))
            return answer("200 OK", TYPES["json"], self.watch.state(words))
        return self.files.get(path) or refusal("404 Not Found", "The page is at /.")


class Server:
    """Takes connections, CONNECTIONS at a time, one request each."""

    def __init__(self, site):
        self.site = site
        self.tasks = {}  # in the order in which they came; True: of a user who may look

    def make_room(self, known):
        """Let the oldest go for a new one. Strangers go first, and for those who may look only. returns: False: there is no room"""
        goes = [t for t, k in self.tasks.items() if not k] or (list(self.tasks) if known else [])
        if goes:
            del self.tasks[goes[0]]  # at once: another that comes now makes the next one go
            goes[0].cancel()
        return bool(goes)

    async def serve(self, reader, writer):
        users = self.site.users
        uid = None if users is None else uid_of(writer.get_extra_info("socket"))
        known = users is None or uid in users
        if len(self.tasks) >= CONNECTIONS and not self.make_room(known):
            writer.transport.abort()
            return
        task = asyncio.current_task()
        self.tasks[task] = known
        try:
            await asyncio.wait_for(self.talk(reader, writer, uid), SECONDS)
        except (asyncio.TimeoutError, asyncio.CancelledError, OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.tasks.pop(task, None)
            writer.transport.abort()  # all that was to be taken has been

    async def talk(self, reader, writer, uid):
        try:
            request = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            writer.write(refusal("431 Request Header Fields Too Large", f"A request has at most {REQUEST} bytes."))
        else:
            writer.write(self.site.answer(request[:-4], uid))
        # All is on its way before the end of it: a close while bytes are unread would destroy the answer.
        await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
        while await reader.read(REQUEST):
            pass


# ---- the place

def address_of(text):
    """ADDRESS:PORT, [ADDRESS]:PORT. returns: the address; the port"""
    m = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+)|(localhost)):(\d{1,5})", text)
    try:
        address = ipaddress.ip_address("127.0.0.1" if m[3] else m[1] or m[2])
    except (TypeError, ValueError):
        address = None
    if address is None or int(m[4]) > 65535:
        raise Failed(f"--listen {text}: give an address and a port, as {LISTEN} or [::1]:8470, or the path of a socket, as ./web.sock")
    return address, int(m[4])


def listen_at_path(path):
    """A UNIX socket that only this user can connect to."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if stat.S_ISSOCK(os.stat(path).st_mode):
            try:
                s.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)  # left by another that is gone
            s.close()
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError:
        pass
    mask = os.umask(0o177)
    try:
        s.bind(path)
    finally:
        os.umask(mask)
    return s


def listen(args):
    """returns: a socket that listens; where it is, for people; names of the host"""
    hosts = ["localhost", "127.0.0.1", "[::1]", *args.host]
    try:
        if "/" in args.listen:
            s, where = listen_at_path(args.listen), args.listen
        else:
            address, port = address_of(args.listen)
            if not address.is_loopback and not args.everybody:
                raise Failed(f"--listen {args.listen}: a user of another machine is not known here; --everybody lets all look who reach the address")
            six = address.version == 6
            s = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_STREAM)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind((str(address), port))
            hosts.append(f"[{address}]" if six else str(address))
            where = f"http://{hosts[-1]}:{s.getsockname()[1]}/"
        s.listen(CONNECTIONS)
        s.setblocking(False)
        return s, where, hosts
    except OSError as e:
        raise Failed(f"--listen {args.listen}: {e.strerror}") from None


async def run(s, site, say):
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    server = Server(site)
    start = asyncio.start_unix_server if s.family == socket.AF_UNIX else asyncio.start_server
    async with await start(server.serve, sock=s, limit=REQUEST):
        print(say, file=sys.stderr, flush=True)
        await ended.wait()
        for task in list(server.tasks):
            task.cancel()


# ---- options

def interval_of(text):
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0.2 <= value <= 60:
        raise argparse.ArgumentTypeError(f"{text}: give seconds, 0.2 to 60")
    return value


def user_of(text):
    try:
        return int(text) if text.isascii() and text.isdigit() else pwd.getpwnam(text).pw_uid
    except KeyError:
        raise argparse.ArgumentTypeError(f"{clean(text)}: there is no such user") from None


def options():
    p = argparse.ArgumentParser(prog="urnic-web", epilog=EPILOG, allow_abbrev=False,
                                description="Serve a page that shows urnicd at work, live.",
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--listen", metavar="PLACE", default=LISTEN, help=f"ADDRESS:PORT, or the path of a UNIX socket; default {LISTEN}")
    p.add_argument("--socket", metavar="PATH", action="append", help="control socket of a urnicd, or its socket for programs; for several, again")
    p.add_argument("--interval", metavar="SECONDS", type=interval_of, default=1, help="time between looks, 0.2 to 60; default 1")
    p.add_argument("--log", metavar="FILE", action="append", default=[], help="show events of this log_file of a urnicd")
    p.add_argument("--session-log", metavar="FILE", action="append", default=[], help="show fail-overs of this URNIC_SESSION_LOG")
    p.add_argument("--host", metavar="NAME", action="append", default=[], help="also answer browsers that call this machine so")
    who = p.add_mutually_exclusive_group()
    who.add_argument("--user", metavar="NAME", action="append", type=user_of, default=[], help="let this user look, too")
    who.add_argument("--everybody", action="store_true", help="let everybody look who reaches the page")
    p.add_argument("--version", action="version", version=f"urnic-web {VERSION}")
    args = p.parse_args()
    if len(args.socket or []) > DATAPLANES:
        p.error(f"give at most {DATAPLANES} sockets")
    return args


def main():
    args = options()
    try:
        if patience() is None:
            raise Failed(f"URNIC_TIMEOUT is '{clean(os.environ['URNIC_TIMEOUT'])}'; it is a number of seconds, 1 to 86400")
        s, where, hosts = listen(args)
    except Failed as e:
        print(f"urnic-web: {e}", file=sys.stderr)
        return 1
    watch = Watch(args)
    site = Site(watch, hosts, None if args.everybody else {0, os.geteuid(), *args.user})
    watch.start()
    try:
        asyncio.run(run(s, site, f"urnic-web: {where} shows {', '.join(d.path for d in watch.dataplanes)}"))
    finally:
        if s.family == socket.AF_UNIX and os.path.exists(args.listen):
            os.unlink(args.listen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
