#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A live view of urnicd: load of engines, rates of adapters, drops by reason, programs, queue pairs. The view
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
CONTROL = ".ctl"  # behind the name of urnicd's socket: that for urnicctl
CLIENTS = 64  # clients looked at, at most: one question each
QPS = 64  # queue pairs looked at, at most: one question each
PSN_SECONDS = 2  # a queue pair's PSNs, 24 bits, may go round once in a longer time
ANSWER = 1 << 20  # bytes of an answer, at most; DPDK's answers are 16 KiB
PORT_DROPS = ("rx_missed", "rx_errors", "rx_no_mbuf", "tx_errors")

EPILOG = """\
Without --socket and --file-prefix it looks for a urnicd of this user, and of root, in the
folders of runtime files. Keys: 1, 2, 3 show all, programs, queue pairs; s sorts by the next
figure; space refreshes at once; q ends. NO_COLOR in the environment means --color never.

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


def folders():
    """Folders that may have sockets of DPDK processes, in the order in which they are looked at."""
    bases = [os.environ.get(v) for v in ("RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR", "TMPDIR")]
    return list(dict.fromkeys(os.path.join(b, "dpdk") for b in [*filter(None, bases), "/run", "/run/urnic", "/tmp"]))


def candidates():
    """Telemetry sockets of processes of this user or of root. returns: paths, and what is wrong with others: {path: words}"""
    found, wrong = set(), {}
    for folder in folders():
        base = glob.escape(os.path.dirname(folder))
        for path in glob.glob(f"{glob.escape(folder)}/*/{SOCKET}") + glob.glob(f"{base}/urnic-rt-*/dpdk/*/{SOCKET}"):
            try:
                owner = os.stat(path).st_uid
            except OSError as e:
                wrong[path] = e.strerror
                continue
            if owner in (0, os.geteuid()):
                found.add(os.path.realpath(path))
            else:
                wrong[path] = f"of user {owner}, neither this one nor root: --socket PATH asks it all the same"
    return sorted(found), wrong


def state_of(folder):
    """Words about a folder that was looked at."""
    try:
        st = os.stat(folder)
    except PermissionError:
        return f"a folder on the way is closed to user {os.geteuid()}"
    except OSError as e:
        return "not there" if isinstance(e, FileNotFoundError) else e.strerror
    if not os.access(folder, os.R_OK | os.X_OK, effective_ids=True):
        return f"closed to user {os.geteuid()}: it is of user {st.st_uid} and group {st.st_gid}, mode {st.st_mode & 0o7777:04o}"
    return "there, and no telemetry socket of a urnicd that runs"


def find():
    """The only urnicd that runs."""
    patience()  # a wrong value is said before anything is looked for
    there, silent = [], None
    paths, wrong = candidates()
    for path in paths:
        try:
            t = Telemetry(path)
            if t.ask("/urnic/version"):
                there.append(t)
            else:
                wrong[path] = "a DPDK process that is no urnicd"
        except Silent as e:
            silent = e
        except Failed as e:
            refused = isinstance(e.__cause__ or e.__context__, ConnectionRefusedError)
            wrong[path] = "nobody listens there any more" if refused else str(e).removeprefix(f"{path}: ")
    if len(there) == 1:
        return there[0]
    if there:
        raise Failed("several dataplanes run; give one of:\n" +
                     "\n".join(f"  --socket {t.path}   (process {t.pid})" for t in there))
    if silent:
        raise silent
    raise Failed("no dataplane found: start urnicd, as this user or as root, or say where its telemetry "
                 "socket is: --socket PATH, --file-prefix NAME; looked at:\n" +
                 "\n".join(f"  {clean(place)}: {clean(words)}" for place, words in [*((f, state_of(f)) for f in folders()), *wrong.items()]))


def told(path):
    """The path that --socket gives. urnicd's own sockets, which urnicctl takes, would leave a question without an answer."""
    if path.endswith(CONTROL) or os.path.exists(path + CONTROL):
        raise Failed(f"{path}: that is a socket of urnicd's for programs or for urnicctl; give DPDK's telemetry socket, {SOCKET}, "
                     "or --file-prefix NAME, or neither where one urnicd runs")
    return path


def prefix_path(prefix):
    """Path of DPDK's socket for a file_prefix, for this user."""
    base = os.environ.get("RUNTIME_DIRECTORY")
    if not base:
        base = "/run" if os.getuid() == 0 else os.environ.get("XDG_RUNTIME_DIR", "/tmp")
    return os.path.join(base, "dpdk", prefix, SOCKET)


# ---- state of urnicd

def look(t, what):
    """Ask for all figures of this moment. what: the view; queue pairs are asked for in theirs only"""
    now = {"time": time.monotonic(), "engines": {}, "adapters": {}, "ports": {}, "clients": [], "switches": {},
           "qps": {}, "capture": t.info("/urnic/capture")}
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
    for a in now["adapters"] if what == "qps" else ():
        for n in t.names(f"/urnic/qp/list,{a}")[:QPS - len(now["qps"])]:
            info = t.info(f"/urnic/qp/info,{a},{n}")
            if info:
                now["qps"][a, n] = info
    return now


def number(info, key):
    """A figure; 0: the figure is missing"""
    return info[key] if isinstance(info.get(key), int) else 0


def is_drop(name):
    """True for counters of dropped packets and lost events."""
    return name.startswith("drop_") or name in ("no_mbuf", "no_work", "cq_overrun", "event_lost")


def programs(clients):
    """Sums over the clients of each process"""
    found = {}
    for c in clients:
        p = found.setdefault(c.get("pid"), {"program": c.get("program", "?"), "pid": c.get("pid", "?"),
                                            "uid": c.get("uid", "?"), "clients": 0, "adapters": [],
                                            "qps": 0, "cqs": 0, "srqs": 0, "mrs": 0, "pinned_bytes": 0})
        p["clients"] += 1
        if c.get("adapter") not in p["adapters"]:
            p["adapters"].append(c.get("adapter", "?"))
        for k in ("qps", "cqs", "srqs", "mrs", "pinned_bytes"):
            p[k] += number(c, k)
    return list(found.values())


def qp_rates(was, now, seconds):
    """Queue pairs, with the PSNs a second that were acknowledged and received; None: not known"""
    def psns(new, old, key):
        if key not in new or key not in old or seconds > PSN_SECONDS:
            return None
        return round((number(new, key) - number(old, key) & 0xffffff) / seconds)

    keys = ("qpn", "adapter", "program", "pid", "type", "state", "peer", "peer_qpn", "mtu", "sends", "receives",
            "outstanding", "waits_for")
    return [{**{k: new.get(k, "?") for k in keys}, "tx_psns_per_s": psns(new, was["qps"].get(key, {}), "una_psn"),
             "rx_psns_per_s": psns(new, was["qps"].get(key, {}), "expected_psn")}
            for key, new in now["qps"].items()]


def rates(was, now):
    """Rates per second between two looks."""
    seconds = max(now["time"] - was["time"], 1e-9)

    def per_s(new, old, key):
        return max(number(new, key) - number(old, key), 0) / seconds if key in old else 0

    def drops(new, old, names):
        return {k: {"total": number(new, k), "per_s": round(per_s(new, old, k), 1)} for k in names if number(new, k)}

    view = {"seconds": round(seconds, 3), "engines": [], "adapters": [], "ports": [], "switches": [],
            "clients": now["clients"], "programs": programs(now["clients"]),
            "qps": qp_rates(was, now, seconds), "capture": now["capture"]}
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


# ---- display: view.py
# @VIEW@


# ---- the terminal

class Screen:
    """The terminal; its settings are restored at the end."""

    def __init__(self, colored=False):
        self.colored = colored
        self.draw = None

    def __enter__(self):
        self.before = termios.tcgetattr(sys.stdin)
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

    def show(self, draw):
        """Show what draw(columns) gives, or as much of it as there is room for, and the keys below."""
        self.draw = draw
        columns, rows = self.size()
        text, keys = draw(columns)
        hidden = max(len(text) - (rows - 1), 0)
        # A line is erased before it is written: behind its last column that would take the last letter.
        body = "".join(f"\x1b[K{render(line, columns, self.colored)}\n" for line in text[:rows - 1])
        foot = render(keys(hidden), columns, self.colored)
        sys.stdout.write(f"\x1b[H{body}\x1b[J\x1b[{rows};1H{foot}")
        sys.stdout.flush()

    def wait(self, seconds):
        """Wait until the time is over, or a key is pressed. returns: the key, q at the terminal's end, or """""
        end = time.monotonic() + seconds
        while True:
            ready, _, _ = select.select([sys.stdin, self.resized], [], [], max(end - time.monotonic(), 0))
            if sys.stdin in ready:
                return os.read(sys.stdin.fileno(), 1).decode("ascii", "replace").lower() or "q"
            if not ready:
                return ""
            os.read(self.resized, 4096)
            self.show(self.draw)


def live(t, version, args):
    """Show the view until q is pressed."""
    what, sort = args.view, args.sort
    with Screen(wants_color(args.color)) as screen:
        screen.begin()
        was = look(t, what)
        view = rates(was, was)
        while True:
            screen.show(lambda columns: (lines(view, version, what, sort, columns),
                                         lambda hidden: keys_line(what, sort, hidden)))
            key = screen.wait(args.interval)
            if key == "q":
                return
            if key == "s":
                order = SORTS[what]
                sort = order[(order.index(sort) + 1) % len(order)] if sort in order else order[0]
                continue
            what = VIEWS.get(key, what)
            now = look(t, what)
            view, was = rates(was, now), now


def plain(t, version, args):
    """Print to a file or a pipe."""
    colored = wants_color(args.color)
    was = look(t, args.view)
    while True:
        time.sleep(args.interval)
        now = look(t, args.view)
        view = rates(was, now)
        if args.json:
            print(json.dumps({"version": version, **view}), flush=True)
        else:
            print("\n".join(render(line, None, colored) for line in lines(view, version, args.view, args.sort, None)),
                  flush=True)
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
                                description="Show what urnicd does: rates, load, drops by reason, programs, queue pairs.",
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--once", action="store_true", help="show the rates over one interval, and end")
    p.add_argument("--json", action="store_true", help="a line of JSON for each interval")
    p.add_argument("--interval", metavar="SECONDS", type=interval_of, default=1, help="default 1, at least 0.1")
    p.add_argument("--view", choices=VIEWS.values(), default="all", help="the view to begin with (default all)")
    p.add_argument("--sort", choices=sorted({k for v in SORTS.values() for k in v}), help="figure to sort by")
    p.add_argument("--color", choices=("auto", "always", "never"), default="auto",
                   help="auto: where the terminal has colours")
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
        path = told(args.socket) if args.socket else prefix_path(args.file_prefix) if args.file_prefix else None
        t = Telemetry(path) if path else find()
        version = t.info("/urnic/version")
        if not version:
            raise Failed(f"{t.path}: a DPDK program, but no urnicd that runs")
        if watch:
            live(t, version, args)
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
