# SPDX-License-Identifier: BSD-3-Clause
"""Events: differences between two looks, lines of the log of events, steps of sessions."""

import calendar
import collections
import os
import re
import stat
import threading
import time

from look import clean, keyed, number

# ---- the module

EVENTS = 500  # events that are kept, at most
BURST = 40  # events of one look or one file in one interval, at most; the others are counted
TAIL = 65536  # bytes of a file that are read in one interval, at most
SLACK = 1000  # milliseconds by which an engine's clock may be behind, at most
BEGIN = 8192  # bytes at the end of a log that are shown from the start on

# A line of the log of events (doc/reference/log.md) and of a session's (doc/reference/sessions.md). A file may be
# another's, and have any words: a time is one that a browser can show.
LOG = re.compile(r"(?:<\d>)?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{3})Z (urnicd\[\d+\]) (\w+) (\w+) ([\w-]+): (.*)", re.ASCII)
SESSION = re.compile(r"(?:<\d>)?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{6})Z (session\[\d+\.\d+\]) (\w+) session ([\w-]+): (.*?)(?: \| .*)?", re.ASCII)
# Events of a session that are no fail-over: steps in between, messages, numbers.
QUIET = {"begin", "end", "queue", "refuse", "step", "message", "atomics", "counts", "left-out"}


class Events:
    """The latest events, each with a number; the numbers go up."""

    def __init__(self):
        self.lock = threading.Lock()
        self.last, self.kept = 0, collections.deque(maxlen=EVENTS)

    def add(self, where, kind, text, at=None):
        """where: the socket, file or process that the event is of; kind: a word that the page has a name for"""
        with self.lock:
            self.last += 1
            self.kept.append({"id": self.last, "time": round(time.time() if at is None else at, 3), "where": clean(where),
                              "kind": kind, "text": text[:800]})

    def add_all(self, where, events):
        """Add (kind, text, time) of a list, and the number of those that are too many."""
        if len(events) > BURST:
            self.add(where, "more", f"{len(events) - BURST} more events came within this interval, before those that follow")
        for kind, text, at in events[-BURST:]:
            self.add(where, kind, text, at)

    def after(self, number):
        with self.lock:
            return [e for e in self.kept if e["id"] > number]


# ---- what changed between two looks

def program_of(c):
    return f"program {c.get('program', '') or '?'} (process {c.get('pid', '?')}, client {c.get('client', '?')})"


def links(was, now):
    """Ports that lost their link, or have it again."""
    before = keyed(was["port"], "name")
    for p in now["port"]:
        old = before.get(p.get("name", ""))
        if old and (old.get("link"), old.get("state")) != (p.get("link"), p.get("state")):
            up = p.get("link") and p.get("state") == "up"
            yield "port", (f"port {p.get('name')} " + ("has a link again" if up else
                           f"is {p.get('state')} by a command" if p.get("state") != "up" else "has no link")), None


def comings(was, now):
    """Programs that came and went. A table that was cut tells nothing of those that it lacks."""
    if "client" in was["more"] + now["more"] or "client" in {**was["refused"], **now["refused"]}:
        return
    old, new = keyed(was["client"], "client"), keyed(now["client"], "client")
    for key in new.keys() - old.keys():
        yield "client", f"{program_of(new[key])} attached to adapter {new[key].get('adapter')}", None
    for key in old.keys() - new.keys():
        yield "client", f"{program_of(old[key])} has left adapter {old[key].get('adapter')}", None


def failures(was, now):
    """Errors of queue pairs that were not there before. Some are old: of a table that was refused in the look before, or
    was cut then, and has a program less now."""
    since = 1000 * (now["ended"] - was["time"]) + SLACK

    def count(rows):
        return collections.Counter((e.get("adapter"), e.get("client"), e.get("pid"), e.get("qpn"), e.get("why")) for e in rows)

    late = count(e for e in now["errors"] if number(e, "ago_ms") <= since)
    for (_, client, pid, _, why), n in ((count(now["errors"]) - count(was["errors"])) & late).items():
        yield "error", f"process {pid}, client {client}: {why}" + (f" ({n} times)" if n > 1 else ""), None


def left(was, now):
    """Queue pairs that programs gave up because their dataplane had been silent: sessions moved away from it."""
    before = keyed(was["counters"], "adapter")
    for c in now["counters"]:
        name = c.get("adapter", "")
        n = number(c, "left_qps") - number(before.get(name, {}), "left_qps")
        if name in before and n > 0:
            yield "failover", f"{n} queue pairs of adapter {name} were given up by their sessions, which had moved to another adapter", None


def changes(was, now, logged):
    """returns: a list of (kind, text, time). logged: the log of events tells of all of them"""
    return [] if logged else [*left(was, now), *links(was, now), *comings(was, now), *failures(was, now)]


# ---- files

class Tail:
    """The lines that are appended to a file, which may be moved away and made anew."""

    def __init__(self, path):
        self.path, self.file, self.rest, self.trouble = path, None, b"", ""
        self.first = True  # a file that is there from the start on has old lines

    def open(self):
        """Open the file, or its successor. A pipe, or a device, is no file that can be read without waiting."""
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as e:
            self.trouble = f"can't read {self.path}: {e.strerror}"
            return
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            os.close(fd)
            self.trouble = f"can't read {self.path}: it is no plain file"
            return
        self.file, self.rest, self.trouble = os.fdopen(fd, "rb", buffering=0), b"", ""
        if self.first and found.st_size > BEGIN:
            # The first line there is most likely cut.
            self.file.seek(found.st_size - BEGIN)
            self.rest = self.file.read(BEGIN).partition(b"\n")[2]

    def moved(self):
        """True when the path leads to another file, or to a shorter one."""
        try:
            there, ours = os.stat(self.path), os.fstat(self.file.fileno())
        except OSError:
            return True
        return (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino) or ours.st_size < self.file.tell()

    def lines(self):
        """The whole lines that came since the last call."""
        if self.file is None:
            self.open()
            self.first = False
        if self.file is None:
            return []
        try:
            more = self.file.read(TAIL)
            data = self.rest + more
            if len(more) < TAIL and self.moved():
                self.file.close()
                self.file = None
        except OSError as e:
            self.trouble = f"can't read {self.path}: {e.strerror}"
            return []
        *whole, self.rest = data.split(b"\n")
        self.rest = self.rest[:TAIL]  # a line without an end
        return [clean_line(line) for line in whole if line]


def clean_line(line):
    """A line of a log, whose words others may have chosen."""
    return "".join(c if c.isprintable() else "\ufffd" for c in line[:1000].decode("utf-8", "replace"))


def time_of(day, fraction):
    """Seconds since 1970; None: there is no such time"""
    try:
        return calendar.timegm(time.strptime(day, "%Y-%m-%dT%H:%M:%S")) + float(f"0.{fraction}")
    except ValueError:
        return None


def event_of_log(line):
    """An event of a line of the log. returns: where, kind, text, time"""
    m = LOG.fullmatch(line)
    if not m:
        return "log", "log", line, None
    kind = {"port": "port", "client": "client", "qp": "error", "daemon": "dataplane", "session": "failover"}.get(m[5], "log")
    return m[3], kind, f"{m[4]} {m[5]} {m[6]}: {m[7]}", time_of(m[1], m[2])


def event_of_session(line):
    """An event of a line of a session's log, in the library's own words. returns: where, kind, text, time; None: the line is none"""
    m = SESSION.fullmatch(line)
    return (m[3], "failover", m[6], time_of(m[1], m[2])) if m and m[5] not in QUIET else None


class Files(threading.Thread):
    """Reads the logs."""

    def __init__(self, logs, sessions, interval, events):
        super().__init__(daemon=True, name="logs")
        self.logs, self.sessions = [Tail(p) for p in logs], [Tail(p) for p in sessions]
        self.interval, self.events = interval, events

    def troubles(self):
        return [t.trouble for t in self.logs + self.sessions if t.trouble]

    def read(self):
        """Tell what came. A log with a line that nobody thought of mutes neither itself nor others."""
        for tail, event_of in [*((t, event_of_log) for t in self.logs), *((t, event_of_session) for t in self.sessions)]:
            try:
                self.tell(filter(None, map(event_of, tail.lines())))
            except (ArithmeticError, LookupError, OSError, TypeError, ValueError) as e:
                tail.trouble = f"not all lines of {tail.path} are shown: {e}"

    def tell(self, found):
        by = collections.defaultdict(list)
        for where, *event in found:
            by[where].append(event)
        for where, those in by.items():
            self.events.add_all(where, those)

    def run(self):
        while self.logs or self.sessions:
            self.read()
            time.sleep(self.interval)
