# SPDX-License-Identifier: BSD-3-Clause
# The text of urnic-top: meson puts this file into urnic-top.py, where it says so.

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


# Views by their keys. SORTS: figures to sort by; a table that has no such figure keeps its order.
VIEWS = {"1": "all", "2": "programs", "3": "qps"}
SORTS = {"all": ("name", "tx", "rx", "drops", "qps", "memory"), "programs": ("name", "qps", "memory"),
         "qps": ("name", "tx", "rx", "waiting")}
TEXTS = ("ADAPTER", "ADAPTERS", "NODE", "LINK", "DROPS OF", "REASON", "SWITCH PORT", "PROGRAM", "TYPE", "STATE",
         "PEER", "WAITS FOR")
NARROW = 4  # letters that a shortened name keeps, at least
# SGR codes. A word, or a figure that is not 0, has a colour by the head of its column.
HEAD, FOOT, BAD, WARN = "1", "7", "31", "33"
COLORS = {("LINK", "down"): BAD, ("STATE", "ERR"): BAD, ("STATE", "SQE"): BAD, ("STATE", "SQD"): WARN,
          ("PER s",): BAD, ("DROPS/s",): BAD, ("AGAIN/s",): WARN, ("TOUT/s",): BAD}


def color_of(head, cell):
    """The colour of a cell; None: the terminal's own"""
    return COLORS.get((head, cell)) or (None if cell in ("0", "0.0", "-") else COLORS.get((head,)))


def fit(head, cells, width, spare):
    """Make a table as narrow as the terminal: leave out spare columns, the first ones first, then shorten
    the longest texts. returns: the columns that stay, and their widths"""
    size = [max(len(r[i]) for r in cells) for i in range(len(head))]
    stay = list(range(len(head)))

    def too_wide():
        return width and sum(size[i] + 2 for i in stay) - 2 > width

    for name in spare:
        if too_wide():
            stay.remove(head.index(name))
    while too_wide():
        longest = max((i for i in stay if head[i] in TEXTS), key=lambda i: size[i], default=None)
        if longest is None or size[longest] <= NARROW:
            break
        size[longest] -= 1
    return stay, size


def table(head, rows, width, spare=()):
    """Lines of aligned columns, each a list of texts and their colours; numbers to the right."""
    if not rows:
        return []
    cells = [head] + [[clean(c) for c in r] for r in rows]
    stay, size = fit(head, cells, width, spare)
    out = []
    for r in cells:
        line = []
        for i in stay:
            text = r[i] if len(r[i]) <= size[i] else r[i][:size[i] - 1] + "~"
            text = text.ljust(size[i]) if head[i] in TEXTS else text.rjust(size[i])
            line.append((text, HEAD if r is head else color_of(head[i], r[i])))
            line.append(("  ", None))
        out.append(line[:-1])
    return out + [[]]


def plain_line(text):
    return [(text, None)]


def render(line, columns, colored):
    """A line for the terminal, cut to its width (None: not cut)"""
    out, room = "", sum(len(t) for t, _ in line) if columns is None else columns
    for text, color in line:
        text = text[:room]
        room -= len(text)
        out += f"\x1b[{color}m{text}\x1b[0m" if colored and color and text else text
    return out if colored else out.rstrip()


def ordered(things, key, figures):
    """Things by a figure, the largest first, or by name; in their own order when they have no such figure"""
    if key not in figures:
        return things
    of = figures[key]
    return sorted(things, key=of if key == "name" else lambda x: -of(x))


def drop_rows(things, name):
    """Drops by reason; those that happen now come first"""
    return [[t[name], k, d["per_s"], d["total"]] for t in things
            for k, d in sorted(t["drops"].items(), key=lambda kd: (-kd[1]["per_s"], -kd[1]["total"], kd[0]))]


def capture_lines(c):
    """The capture that runs, or one that dropped frames"""
    if not number(c, "running") and not number(c, "dropped"):
        return []
    how = "runs" if number(c, "running") and not number(c, "ended") else "has ended"
    return [plain_line(f"Capture {clean(c.get('file', '?'))} {how}: {short(number(c, 'frames'))} frames written, "
                       f"{short(number(c, 'dropped'))} dropped"), []]


def drops_now(adapter):
    return sum(d["per_s"] for d in adapter["drops"].values())


def all_lines(view, sort, width):
    """Engines, adapters, drops, switches, clients"""
    adapters = ordered(view["adapters"], sort, {
        "name": lambda a: str(a["adapter"]), "tx": lambda a: a["tx_bits_per_s"], "rx": lambda a: a["rx_bits_per_s"],
        "drops": drops_now, "qps": lambda a: a["qps"]})
    switches = ordered(view["switches"], sort, {
        "name": lambda p: str(p["port"]), "tx": lambda p: p["tx_packets_per_s"],
        "rx": lambda p: p["rx_packets_per_s"], "drops": lambda p: p["drops_per_s"]})
    clients = ordered(view["clients"], sort, {
        "name": lambda c: str(c.get("program")), "qps": lambda c: number(c, "qps"),
        "memory": lambda c: number(c, "pinned_bytes")})
    out = table(["ENGINE", "LOAD", "TURNS/s"],
                [[e["engine"], f"{100 * e['load']:.1f}%", short(e["turns_per_s"])] for e in view["engines"]], width)
    out += table(["ADAPTER", "NODE", "LINK", "QPS", "CLI", "RX/s", "RX b/s", "TX/s", "TX b/s", "AGAIN/s", "TOUT/s"],
                 [[a["adapter"], a["node"], "up" if a["link"] else "down", a["qps"], a["clients"],
                   short(a["rx_packets_per_s"]), short(a["rx_bits_per_s"]), short(a["tx_packets_per_s"]),
                   short(a["tx_bits_per_s"]), short(a["retransmits_per_s"]), short(a["timeouts_per_s"])]
                  for a in adapters], width, ("CLI", "NODE"))
    out += table(["DROPS OF", "REASON", "PER s", "TOTAL"],
                 drop_rows(adapters, "adapter") + drop_rows(view["ports"], "port"), width)
    out += table(["SWITCH PORT", "LINK", "RX/s", "TX/s", "DROPS/s", "DROPS"],
                 [[s["port"], "up" if s["up"] else "down", short(s["rx_packets_per_s"]),
                   short(s["tx_packets_per_s"]), s["drops_per_s"], s["drops"]] for s in switches], width)
    out += capture_lines(view["capture"])
    out += table(["CLIENT", "ADAPTER", "PID", "UID", "PROGRAM", "QPS", "CQS", "MRS", "PINNED"],
                 [[*(c.get(k, "?") for k in ("client", "adapter", "pid", "uid", "program", "qps", "cqs", "mrs")),
                   short(number(c, "pinned_bytes"))] for c in clients], width, ("CQS", "CLIENT", "UID"))
    return out


def program_lines(view, sort, width):
    found = ordered(view["programs"], sort, {
        "name": lambda p: str(p["program"]), "qps": lambda p: p["qps"], "memory": lambda p: p["pinned_bytes"]})
    return table(["PROGRAM", "PID", "UID", "CLIENTS", "ADAPTERS", "QPS", "CQS", "SRQS", "MRS", "PINNED"],
                 [[*(p[k] for k in ("program", "pid", "uid", "clients")), ",".join(map(str, p["adapters"])),
                   *(p[k] for k in ("qps", "cqs", "srqs", "mrs")), short(p["pinned_bytes"])] for p in found],
                 width, ("SRQS", "CQS", "UID")) or [plain_line("No program is attached."), []]


def rate_text(n):
    return "-" if n is None else short(n)


def qp_lines(view, sort, width):
    found = ordered(view["qps"], sort, {
        "name": lambda q: str(q["program"]), "tx": lambda q: q["tx_psns_per_s"] or 0,
        "rx": lambda q: q["rx_psns_per_s"] or 0, "waiting": lambda q: number(q, "outstanding")})
    out = table(["QP", "ADAPTER", "PROGRAM", "PID", "TYPE", "STATE", "PEER", "PEER QP", "MTU", "TX/s", "RX/s", "OUT",
                 "WAITS FOR"],
                [[*(q[k] for k in ("qpn", "adapter", "program", "pid", "type", "state", "peer", "peer_qpn", "mtu")),
                  rate_text(q["tx_psns_per_s"]), rate_text(q["rx_psns_per_s"]), q["outstanding"], q["waits_for"]]
                 for q in found], width, ("MTU", "TYPE", "PID", "ADAPTER", "PEER QP"))
    there = sum(a["qps"] for a in view["adapters"])
    if there > len(found):
        out.insert(0, plain_line(f"The first {len(found)} queue pairs of {there}:"))
    return out or [plain_line("There is no queue pair."), []]


def lines(view, version, what="all", sort=None, width=None):
    """The whole view, line by line; width: columns of the terminal, or None: nothing is left out or shortened"""
    count = {"engine": len(view["engines"]), "adapter": len(view["adapters"]),
             "client": sum(a["clients"] for a in view["adapters"])}
    there = ", ".join(f"{n} {k}{'' if n == 1 else 's'}" for k, n in count.items())
    body = {"all": all_lines, "programs": program_lines, "qps": qp_lines}[what]
    return [plain_line(f"urnicd {clean(version.get('urnic', '?'))}, {clean(version.get('dpdk', '?'))}: {there}; "
                       f"over {view['seconds']:.1f} s"), []] + body(view, sort, width)[:-1]


def keys_line(what, sort, hidden):
    """The line of keys at the bottom; hidden: lines of the view for which there is no room"""
    views = "  ".join(f"[{k} {name}]" if name == what else f"{k} {name}" for k, name in VIEWS.items())
    return [(f"q end  {views}  s sort: {sort or 'none'}  space now" + (f"  {hidden} more lines" if hidden else ""), FOOT)]


def terminal_colors():
    """True when the terminal that TERM names has colours."""
    try:
        import curses  # not in a minimal Python
        curses.setupterm()
        return curses.tigetnum("colors") >= 8
    except Exception:  # curses.error, but curses may be missing
        return False


def wants_color(choice):
    """--color's word decides, then NO_COLOR (no-color.org), then the terminal."""
    if choice != "auto":
        return choice == "always"
    return not os.environ.get("NO_COLOR") and sys.stdout is not None and sys.stdout.isatty() and terminal_colors()
