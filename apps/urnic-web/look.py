# SPDX-License-Identifier: BSD-3-Clause
"""Looks at one urnicd by its control socket: tables of objects, and rates between two looks."""

import json
import os
import socket
import stat
import struct
import time

# ---- the module

# The protocol of the control socket (lib/abi/admin.h).
ADMIN_MAGIC, ADMIN_VERSION, ADMIN_PIECE = 0x55524E43, 1, 16384
ADMIN_HEAD = struct.Struct("=IHH")
ADMIN_OUT, ADMIN_END = 1, 2
ROWS = 256  # rows of a table that are looked at, at most
PORTS = 32  # ports whose counters are looked at, at most: one question each
ANSWER = 4 << 20  # bytes of an answer, at most
WORDS = 600  # signs of a text that a page gets, at most
PORT_DROPS = ("rx_missed", "rx_errors", "rx_no_mbuf", "tx_errors")


class Away(Exception):
    """No urnicd is there."""


class Silent(Exception):
    """Somebody listens, and does not answer."""


class Refused(Exception):
    """A urnicd does not answer this question, and says why."""


def clean(text):
    """Replace signs of a name that others chose which are not shown, or change how others are: orders of reading, line ends."""
    return "".join(c if c.isprintable() else "\ufffd" for c in str(text))[:WORDS]


def patience():
    """Seconds that a urnicd has for an answer. returns: None: URNIC_TIMEOUT is wrong"""
    told = os.environ.get("URNIC_TIMEOUT") or "10"
    return int(told) if told.isascii() and told.isdigit() and 1 <= int(told) <= 86400 else None


def find_socket():
    """The socket of the usual dataplane, as programs find theirs (doc/reference/urnicd.md)."""
    told, own = os.environ.get("URNIC_SOCKET"), os.environ.get("XDG_RUNTIME_DIR")
    if told:
        return told
    try:
        if own and os.stat(own).st_uid == os.geteuid() and is_socket(f"{own}/urnic/urnicd.sock"):
            return f"{own}/urnic/urnicd.sock"
    except OSError:
        pass
    return "/run/urnic/urnicd.sock"


def is_socket(path):
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def control_of(path):
    """The control socket beside a socket for programs, if there is one, or the path itself."""
    return path + ".ctl" if is_socket(path + ".ctl") else path


def dial(s, path):
    """Connect to a control socket."""
    try:
        s.connect(path)
    except (FileNotFoundError, ConnectionRefusedError):
        raise Away(f"no urnicd is at {path}") from None
    except (TimeoutError, BlockingIOError):
        raise Silent() from None
    except OSError as e:
        raise Away(f"can't connect to {path}: {e.strerror}") from None


def answer_of(s, path, seconds):
    """Yields the pieces of an answer, which may end with a refusal."""
    end, reset = time.monotonic() + seconds, False
    while True:
        try:
            s.settimeout(max(end - time.monotonic(), 0.001))
            piece = s.recv(ADMIN_PIECE + ADMIN_HEAD.size)
        except ConnectionResetError:
            # A urnicd that turns us away without reading the question resets the connection; the reason follows, once.
            if reset:
                raise Away(f"the urnicd at {path} hung up") from None
            reset = True
            continue
        except (TimeoutError, BlockingIOError):
            raise Silent() from None
        except OSError as e:
            raise Away(f"{path}: {e.strerror}") from None
        if len(piece) < ADMIN_HEAD.size:
            raise Away(f"the urnicd at {path} hung up")
        magic, kind, status = ADMIN_HEAD.unpack_from(piece)
        if magic != ADMIN_MAGIC or kind not in (ADMIN_OUT, ADMIN_END):
            raise Away(f"{path}: the answer is not urnicd's")
        if kind == ADMIN_END and status:
            raise Refused(clean(piece[ADMIN_HEAD.size:].decode("utf-8", "replace")))
        if kind == ADMIN_END:
            return
        yield piece[ADMIN_HEAD.size:]


def row_of(line):
    """An object of a line of JSON: its texts, numbers and flags. returns: None: it is none"""
    try:
        row = json.loads(line.rstrip(b", \n"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict):
        return None
    return {clean(k): clean(v) if isinstance(v, str) else v for k, v in row.items() if isinstance(v, (str, int))}


def ask(path, *words, seconds, most=ROWS):
    """Ask a urnicd for a table. returns: the rows, `most` at most; whether there are more"""
    rows, rest, size = [], b"", 0
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.settimeout(seconds)
        dial(s, path)
        try:
            s.send(ADMIN_HEAD.pack(ADMIN_MAGIC, ADMIN_VERSION, 1) + b"".join(w.encode() + b"\0" for w in words))
        except (BrokenPipeError, ConnectionResetError):
            pass  # the reason can be read still
        except OSError:
            raise Silent() from None
        for piece in answer_of(s, path, seconds):
            size += len(piece)
            # Each object has a line of its own: json_begin() of dataplane/report/report_json.c
            *lines, rest = (rest + piece).split(b"\n")
            for row in filter(None, (row_of(line) for line in lines if line.startswith(b"{"))):
                if len(rows) == most:
                    return rows, True
                rows.append(row)
            if size > ANSWER:
                return rows, True
    return rows, False


# ---- a look

TABLES = ("adapter", "client", "qp", "errors", "switch", "capture")


def look(path, seconds):
    """Ask for all tables of this moment. returns: {table: rows}, with "more": names of tables that were cut, "time": of the
    question for counters, and "ended": of the last answer"""
    now, path = {"more": [], "refused": {}}, control_of(path)

    def table(name, *words):
        try:
            now[name], more = ask(path, "show", *words, seconds=seconds)
        except Refused as e:
            now[name], more = [], False
            now["refused"][name] = str(e)
        if more:
            now["more"].append(name)

    table("version", "version")
    table("port", "port")
    now["time"] = time.monotonic()
    table("counters", "counters")
    for name in TABLES:
        table(name, name)
    for port in now["port"][:PORTS]:
        table("card", "port", str(port.get("name", "")))
        port["card"] = now["card"][0] if now["card"] else {}
    now["ended"] = time.monotonic()
    return now


def number(row, key):
    """A figure; 0: the figure is missing"""
    return row[key] if isinstance(row.get(key), int) else 0


def keyed(rows, *keys):
    return {":".join(str(r.get(k, "")) for k in keys): r for r in rows}


def is_drop(name):
    """True for counters of dropped packets and lost events."""
    return name.startswith("drop_") or name in ("no_mbuf", "no_work", "cq_overrun", "event_lost")


class Rates:
    """Rates per second between two looks. A counter that fell was cleared, or is another process's: its rate is 0."""

    def __init__(self, was, now):
        self.seconds = max(now["time"] - was["time"], 1e-3)

    def of(self, new, old, key):
        if old is None or key not in old:
            return 0
        return max(number(new, key) - number(old, key), 0) / self.seconds

    def drops(self, of, new, old, names):
        return [{"of": of, "reason": k, "per_s": round(self.of(new, old, k), 1), "total": number(new, k)}
                for k in names if number(new, k)]


def adapters(r, was, now, drops):
    """Adapters with their rates; adds to drops."""
    counts, before, out = keyed(now["counters"], "adapter"), keyed(was["counters"], "adapter"), []
    for a in now["adapter"]:
        name = a.get("name", "")
        new = counts.get(name, {})
        # A counter that is 0 is not in the table: until now it was 0.
        old = {**dict.fromkeys(new, 0), **before[name]} if name in before else None
        lost = r.drops(name, new, old, filter(is_drop, new))
        drops += lost
        row = {k: a.get(k, "") for k in ("name", "node", "port", "link", "ipv4", "ipv6", "clients", "qps")}
        row.update({k: round(f * r.of(new, old, c)) for k, f, c in (
            ("tx_bits_per_s", 8, "tx_bytes"), ("rx_bits_per_s", 8, "rx_bytes"), ("tx_packets_per_s", 1, "tx_packets"),
            ("rx_packets_per_s", 1, "rx_packets"), ("again_per_s", 1, "retransmits"), ("timeouts_per_s", 1, "timeouts"))})
        row["drops_per_s"] = round(sum(d["per_s"] for d in lost), 1)
        row["left_qps"] = number(new, "left_qps")
        out.append(row)
    return out


def ports(r, was, now, drops):
    before, out = keyed(was["port"], "name"), []
    for p in now["port"]:
        name, card = p.get("name", ""), p.get("card", {})
        drops += r.drops(name, card, before.get(name, {}).get("card"), PORT_DROPS)
        row = {k: p.get(k, "") for k in ("name", "adapter", "state", "link", "speed_mbps", "mac", "mtu", "device", "rx_mbps",
                                         "tx_mbps", "rx_pps", "tx_pps")}
        row.update(mbufs=number(card, "mbufs"), mbufs_free=number(card, "mbufs_free"))
        out.append(row)
    return out


def wires(r, was, now):
    """Ports of switches with their rates and the impairments of the wire that is plugged there."""
    before, out = keyed(was["switch"], "switch", "port"), []
    for key, s in keyed(now["switch"], "switch", "port").items():
        old = before.get(key)
        row = {k: s.get(k, "") for k in ("switch", "port", "up", "impair_in", "impair_out", "drops", "ecn_marked", "queue_bytes",
                                         "queue_peak", "pause_tx", "pause_rx")}
        row.update({f"{k}_per_s": round(r.of(s, old, k), 1) for k in ("rx_packets", "tx_packets", "drops")})
        out.append(row)
    return out


def view_of(was, now):
    """All that a page shows of two looks."""
    r, drops = Rates(was, now), []
    programs = {c.get("client"): c.get("program", "") for c in now["client"]}
    view = {"version": now["version"][0] if now["version"] else {}, "seconds": round(r.seconds, 2),
            "adapters": adapters(r, was, now, drops), "ports": ports(r, was, now, drops), "wires": wires(r, was, now),
            "clients": now["client"], "errors": now["errors"], "capture": now["capture"][0] if now["capture"] else {},
            "qps": [{**q, "program": programs.get(q.get("client"), "")} for q in now["qp"]],
            "more": now["more"], "refused": now["refused"]}
    view["drops"] = sorted(drops, key=lambda d: (-d["per_s"], -d["total"], d["of"], d["reason"]))
    return view
