#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A live view of urnicd: load of engines, rates of adapters, drops by reason, clients. The view
asks DPDK's telemetry socket, and so sees what dpdk-telemetry.py does: nothing is changed by looking."""

import argparse
import glob
import json
import os
import select
import signal
import socket
import sys
import termios
import time
import tty

VERSION = "@VERSION@"
SOCKET = "dpdk_telemetry.v2"
CLIENTS = 64  # clients looked at, at most: one question each
ANSWER = 1 << 20  # bytes of an answer, at most; DPDK's answers are 16 KiB
PORT_DROPS = ("rx_missed", "rx_errors", "rx_no_mbuf", "tx_errors")

EPILOG = """\
Without --socket and --file-prefix it looks for a urnicd of this user, and of root, in the
folders of runtime files. Keys: q ends, space refreshes at once.

Exit code: 0 ended by q or --once, 1 failed, 2 wrong usage, 128 + N ended by signal N."""


class Failed(Exception):
    """A message that says what is wrong, and what to do."""


def patience():
    """Seconds that a dataplane has for an answer."""
    told = os.environ.get("URNIC_TIMEOUT") or "10"
    if not (told.isascii() and told.isdigit() and 1 <= int(told) <= 86400):
        raise Failed(f"URNIC_TIMEOUT is '{clean(told)}'; it is a number of seconds, 1 to 86400")
    return int(told)


class Silent(Failed):
    """Somebody listens, and does not answer."""


class Telemetry:
    """A connection to a telemetry socket."""

    def __init__(self, path):
        self.path, seconds = path, patience()
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self.sock.settimeout(seconds)
            self.sock.connect(path)
            hello = self.sock.recv(1024)
            if not hello:
                raise OSError("urnicd hung up without a word: ten others are connected (doc/reference/watching.md)")
            hello = json.loads(hello)
            self.size, self.pid = hello["max_output_len"], hello["pid"]
            if not isinstance(self.size, int) or not 0 < self.size <= ANSWER:
                raise ValueError("its greeting makes no sense")
        except TimeoutError:
            self.sock.close()
            raise Silent(f"{path}: the dataplane there has not answered for {seconds} s: is urnicd stopped? (URNIC_TIMEOUT)") from None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as e:
            self.sock.close()
            raise Failed(f"{path}: no telemetry to be had there: {e}") from None

    def ask(self, command):
        """returns: the answer; None: there is no such command or object"""
        try:
            self.sock.send(command.encode())
            reply = self.sock.recv(self.size)
        except (BrokenPipeError, ConnectionResetError):
            reply = b""
        except OSError as e:
            raise Silent(f"{self.path}: the dataplane does not answer: {e}") from None
        if not reply:
            raise Failed(f"{self.path}: the dataplane has ended")
        try:
            answer = json.loads(reply)[command.split(",")[0]]
        except (ValueError, KeyError, TypeError, RecursionError) as e:
            raise Failed(f"{self.path}: an answer that makes no sense: {clean(e)}") from None
        return None if isinstance(answer, dict) and "error" in answer else answer

    def info(self, command):
        """returns: an object's figures and texts; {}: there is no such object"""
        answer = self.ask(command)
        if not isinstance(answer, (dict, type(None))):
            raise Failed(f"{self.path}: an answer that makes no sense, to {command}")
        return {k: v for k, v in (answer or {}).items() if isinstance(v, (int, str))}

    def names(self, command):
        """returns: names or numbers"""
        answer = self.ask(command)
        if not isinstance(answer, (list, type(None))):
            raise Failed(f"{self.path}: an answer that makes no sense, to {command}")
        return [n for n in answer or [] if isinstance(n, (int, str))]


def candidates():
    """Telemetry sockets of processes of this user or of root."""
    bases = [os.environ.get(v) for v in ("RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR", "TMPDIR")]
    found = set()
    for base in [b for b in bases if b] + ["/run", "/run/urnic", "/tmp"]:
        for pattern in (f"dpdk/*/{SOCKET}", f"urnic-rt-*/dpdk/*/{SOCKET}"):
            for path in glob.glob(os.path.join(glob.escape(base), pattern)):
                try:
                    if os.stat(path).st_uid in (0, os.geteuid()):
                        found.add(os.path.realpath(path))
                except OSError:
                    pass
    return sorted(found)


def find():
    """The only urnicd that runs."""
    patience()  # a wrong value is said before anything is looked for
    there, silent = [], None
    for path in candidates():
        try:
            t = Telemetry(path)
            if t.ask("/urnic/version"):
                there.append(t)
        except Silent as e:
            silent = e
        except Failed:
            pass
    if len(there) == 1:
        return there[0]
    if there:
        raise Failed("several dataplanes run; give one of:\n" +
                     "\n".join(f"  --socket {t.path}   (process {t.pid})" for t in there))
    if silent:
        raise silent
    raise Failed("no dataplane found: start urnicd, as this user or as root, or say where its telemetry "
                 "socket is: --socket PATH, --file-prefix NAME")


def prefix_path(prefix):
    """Path of DPDK's socket for a file_prefix, for this user."""
    base = os.environ.get("RUNTIME_DIRECTORY")
    if not base:
        base = "/run" if os.getuid() == 0 else os.environ.get("XDG_RUNTIME_DIR", "/tmp")
    return os.path.join(base, "dpdk", prefix, SOCKET)


# ---- state of urnicd

def look(t):
    """Ask for all figures of this moment."""
    now = {"time": time.monotonic(), "engines": {}, "adapters": {}, "ports": {}, "clients": [], "switches": {},
           "capture": t.info("/urnic/capture")}
    for e in t.names("/urnic/engine/list"):
        now["engines"][e] = t.info(f"/urnic/engine/usage,{e}")
    for a in t.names("/urnic/adapter/list"):
        now["adapters"][a] = {**t.info(f"/urnic/adapter/info,{a}"), "counters": t.info(f"/urnic/adapter/counters,{a}")}
    for p in t.names("/urnic/port/list"):
        now["ports"][p] = t.info(f"/urnic/port/info,{p}")
    for c in t.names("/urnic/client/list")[:CLIENTS]:
        info = t.info(f"/urnic/client/info,{c}")
        if info:  # else the client has gone meanwhile
            now["clients"].append(info)
    for plug in t.names("/urnic/switch/list"):
        now["switches"][plug] = t.info("/urnic/switch/info," + str(plug).replace(":", ",", 1))
    return now


def number(info, key):
    """A figure; 0: the figure is missing"""
    return info[key] if isinstance(info.get(key), int) else 0


def is_drop(name):
    """True for counters of dropped packets and lost events."""
    return name.startswith("drop_") or name in ("no_mbuf", "no_work", "cq_overrun", "event_lost")


def rates(was, now):
    """Rates per second between two looks."""
    seconds = max(now["time"] - was["time"], 1e-9)

    def per_s(new, old, key):
        return max(number(new, key) - number(old, key), 0) / seconds if key in old else 0

    def drops(new, old, names):
        return {k: {"total": number(new, k), "per_s": round(per_s(new, old, k), 1)} for k in names if number(new, k)}

    view = {"seconds": round(seconds, 3), "engines": [], "adapters": [], "ports": [], "switches": [],
            "clients": now["clients"], "capture": now["capture"]}
    for e, new in now["engines"].items():
        old = was["engines"].get(e, new)
        ns = number(new, "ns") - number(old, "ns")
        busy = max(number(new, "busy_ns") - number(old, "busy_ns"), 0)
        view["engines"].append({"engine": e, "load": round(min(busy / ns, 1), 4) if ns > 0 else 0,
                                "turns_per_s": round(per_s(new, old, "turns"))})
    for name, a in now["adapters"].items():
        new, old = a["counters"], was["adapters"].get(name, a)["counters"]
        view["adapters"].append({
            "adapter": name, "node": a.get("node", ""), "link": bool(a.get("link")), "qps": number(a, "qps"),
            "clients": number(a, "clients"),
            "rx_packets_per_s": round(per_s(new, old, "rx_packets")),
            "rx_bits_per_s": round(8 * per_s(new, old, "rx_bytes")),
            "tx_packets_per_s": round(per_s(new, old, "tx_packets")),
            "tx_bits_per_s": round(8 * per_s(new, old, "tx_bytes")),
            "retransmits_per_s": round(per_s(new, old, "retransmits")),
            "timeouts_per_s": round(per_s(new, old, "timeouts")),
            "drops": drops(new, old, filter(is_drop, new))})
    for name, new in now["ports"].items():
        view["ports"].append({"port": name, "link": bool(new.get("link")),
                              "drops": drops(new, was["ports"].get(name, new), PORT_DROPS)})
    for plug, new in now["switches"].items():
        old = was["switches"].get(plug, new)
        names = [k for k in new if "drop_" in k]
        view["switches"].append({"port": plug, "up": bool(new.get("up")),
                                 "rx_packets_per_s": round(per_s(new, old, "rx_packets")),
                                 "tx_packets_per_s": round(per_s(new, old, "tx_packets")),
                                 "drops_per_s": round(sum(per_s(new, old, k) for k in names), 1),
                                 "drops": sum(number(new, k) for k in names)})
    return view


# ---- display

def short(n):
    """1234567 as 1.23 M: always three digits"""
    if n < 999.5:
        return f"{n:.0f}"
    for unit in "kMGTPE":
        n /= 1000
        if n < 999.5 or unit == "E":
            return f"{n:.{2 if n < 9.995 else 1 if n < 99.95 else 0}f} {unit}"
    return ""


def clean(text):
    """Make a name that others chose safe for a terminal."""
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in str(text))


TEXTS = ("ADAPTER", "NODE", "LINK", "DROPS OF", "REASON", "SWITCH PORT", "PROGRAM")


def table(head, rows):
    """Lines with aligned columns; numbers to the right."""
    if not rows:
        return []
    cells = [head] + [[clean(c) for c in r] for r in rows]
    width = [max(len(r[i]) for r in cells) for i in range(len(head))]
    return ["  ".join(c.ljust(w) if h in TEXTS else c.rjust(w) for c, w, h in zip(r, width, head)).rstrip()
            for r in cells] + [""]


def drop_rows(things, name):
    """Drops by reason; those that happen now come first"""
    return [[t[name], k, d["per_s"], d["total"]] for t in things
            for k, d in sorted(t["drops"].items(), key=lambda kd: (-kd[1]["per_s"], -kd[1]["total"], kd[0]))]


def capture_lines(c):
    """The capture that runs, or one that dropped frames"""
    if not number(c, "running") and not number(c, "dropped"):
        return []
    how = "runs" if number(c, "running") and not number(c, "ended") else "has ended"
    return [f"Capture {clean(c.get('file', '?'))} {how}: {short(number(c, 'frames'))} frames written, "
            f"{short(number(c, 'dropped'))} dropped", ""]


def lines(view, version):
    """The whole view as text."""
    count = {"engine": len(view["engines"]), "adapter": len(view["adapters"]),
             "client": sum(a["clients"] for a in view["adapters"])}
    there = ", ".join(f"{n} {k}{'' if n == 1 else 's'}" for k, n in count.items())
    out = [f"urnicd {clean(version.get('urnic', '?'))}, {clean(version.get('dpdk', '?'))}: {there}; "
           f"over {view['seconds']:.1f} s", ""]
    out += table(["ENGINE", "LOAD", "TURNS/s"],
                 [[e["engine"], f"{100 * e['load']:.1f}%", short(e["turns_per_s"])] for e in view["engines"]])
    out += table(["ADAPTER", "NODE", "LINK", "QPS", "CLIENTS", "RX/s", "RX bit/s", "TX/s", "TX bit/s", "AGAIN/s",
                  "TIMEOUTS/s"],
                 [[a["adapter"], a["node"], "up" if a["link"] else "down", a["qps"], a["clients"],
                   short(a["rx_packets_per_s"]), short(a["rx_bits_per_s"]), short(a["tx_packets_per_s"]),
                   short(a["tx_bits_per_s"]), short(a["retransmits_per_s"]), short(a["timeouts_per_s"])]
                  for a in view["adapters"]])
    out += table(["DROPS OF", "REASON", "PER s", "TOTAL"],
                 drop_rows(view["adapters"], "adapter") + drop_rows(view["ports"], "port"))
    out += table(["SWITCH PORT", "LINK", "RX/s", "TX/s", "DROPS/s", "DROPS"],
                 [[s["port"], "up" if s["up"] else "down", short(s["rx_packets_per_s"]),
                   short(s["tx_packets_per_s"]), s["drops_per_s"], s["drops"]] for s in view["switches"]])
    out += capture_lines(view["capture"])
    out += table(["CLIENT", "ADAPTER", "PID", "UID", "PROGRAM", "QPS", "CQS", "MRS", "PINNED"],
                 [[*(c.get(k, "?") for k in ("client", "adapter", "pid", "uid", "program", "qps", "cqs", "mrs")),
                   short(number(c, "pinned_bytes"))] for c in view["clients"]])
    return out[:-1]


class Screen:
    """The terminal; its settings are restored at the end."""

    def __enter__(self):
        self.before = termios.tcgetattr(sys.stdin)
        self.text = []
        # A signal just before select() must be noticed: a signal writes a byte as it arrives, for
        # Python runs the signal's handler only after select().
        self.resized, self.resize = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self.resize, warn_on_full_buffer=False)
        signal.signal(signal.SIGWINCH, lambda *_: None)
        return self

    def begin(self):
        """Take the terminal. From here on every way out restores it."""
        tty.setcbreak(sys.stdin)
        sys.stdout.write("\x1b[?1049h\x1b[?25l")

    def __exit__(self, *_):
        signal.signal(signal.SIGWINCH, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        os.close(self.resized)
        os.close(self.resize)
        try:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self.before)
            sys.stdout.write("\x1b[?25h\x1b[?1049l")
            sys.stdout.flush()
        except (OSError, termios.error):
            pass  # the terminal was hung up: there is nothing to restore

    @staticmethod
    def size():
        """Columns and rows that the terminal has now; the environment does not count."""
        try:
            columns, rows = os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            columns = rows = 0
        return columns or 80, rows or 24

    def show(self, text):
        """Show a text, or as much of it as there is room for."""
        self.text = text
        columns, rows = self.size()
        text = [line[:columns] for line in text[:rows - 1]]
        sys.stdout.write("\x1b[H" + "".join(f"{line}\x1b[K\n" for line in text) + "\x1b[J")
        sys.stdout.flush()

    def wait(self, seconds):
        """Wait until the time is over, or a key is pressed. returns: False when q was pressed"""
        end = time.monotonic() + seconds
        while True:
            ready, _, _ = select.select([sys.stdin, self.resized], [], [], max(end - time.monotonic(), 0))
            if sys.stdin in ready:
                return os.read(sys.stdin.fileno(), 1) not in (b"q", b"Q", b"")
            if not ready:
                return True
            os.read(self.resized, 4096)
            self.show(self.text)


def live(t, version, interval):
    """Show the view until q is pressed."""
    with Screen() as screen:
        screen.begin()
        was = look(t)
        screen.show(lines(rates(was, was), version))
        while screen.wait(interval):
            now = look(t)
            screen.show(lines(rates(was, now), version))
            was = now


def plain(t, version, args):
    """Print to a file or a pipe."""
    was = look(t)
    while True:
        time.sleep(args.interval)
        now = look(t)
        view = rates(was, now)
        if args.json:
            print(json.dumps({"version": version, **view}), flush=True)
        else:
            print("\n".join(lines(view, version)), flush=True)
        if args.once:
            return
        was = now


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def on_signal(number, _):
    """Leave. The way out restores the terminal: no second signal - timeout(1) sends two - must cut it short."""
    for s in SIGNALS:
        signal.signal(s, signal.SIG_IGN)
    raise SystemExit(128 + number)


def interval_of(text):
    """--interval's argument, in seconds"""
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0.1 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"{text}: give seconds, 0.1 to 3600")
    return value


def options():
    p = argparse.ArgumentParser(prog="urnic-top", epilog=EPILOG, allow_abbrev=False,
                                description="Show what urnicd does: rates, load, drops by reason, clients.",
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--once", action="store_true", help="show the rates over one interval, and end")
    p.add_argument("--json", action="store_true", help="a line of JSON for each interval")
    p.add_argument("--interval", metavar="SECONDS", type=interval_of, default=1, help="default 1, at least 0.1")
    where = p.add_mutually_exclusive_group()
    where.add_argument("--socket", metavar="PATH", help=f"the telemetry socket, {SOCKET}")
    where.add_argument("--file-prefix", metavar="NAME", help="file_prefix of its configuration")
    p.add_argument("--version", action="version", version=f"urnic-top {VERSION}")
    return p.parse_args()


def main():
    args = options()
    for s in SIGNALS:
        signal.signal(s, on_signal)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    watch = not args.once and not args.json
    if watch and not all(f is not None and f.isatty() for f in (sys.stdin, sys.stdout)):
        print("urnic-top: this is no terminal; give --once or --json", file=sys.stderr)
        return 2
    if watch and os.environ.get("TERM") == "dumb":
        print("urnic-top: this terminal (TERM=dumb) has no screen to draw on; give --once or --json", file=sys.stderr)
        return 2
    try:
        path = args.socket or (prefix_path(args.file_prefix) if args.file_prefix else None)
        t = Telemetry(path) if path else find()
        version = t.info("/urnic/version")
        if not version:
            raise Failed(f"{t.path}: a DPDK program, but no urnicd that runs")
        if watch:
            live(t, version, args.interval)
        else:
            plain(t, version, args)
        if sys.stdout is not None:
            sys.stdout.flush()
    except Failed as e:
        print(f"urnic-top: {e}", file=sys.stderr)
        return 1
    except OSError as e:  # an error of writing; errors of asking are Failed
        print(f"urnic-top: can't write: {e.strerror}", file=sys.stderr)
        os._exit(1)  # do not retry the write at exit
    return 0


if __name__ == "__main__":
    sys.exit(main())
