# SPDX-License-Identifier: BSD-3-Clause
"""Tells if the machine is quiet. Between rounds a reference loop does the same work on each of the two cores, and a
bare frame goes from one to the other: a round that has other values behind it than in front of it is measured
again, or marked. The processor time of a round that neither the bench nor its children had is other work, also
when that begins and ends between two looks. Without a quiet machine there are no verdicts."""
import glob
import hashlib
import os
import resource
import statistics
import time
from collections import namedtuple

# speed: chunks a second, taken: share of the time that others had, each of every core, while the loop ran; hop_us: half a round trip
# of a bare frame between the cores, None: not measured
Look = namedtuple("Look", "speed taken hop_us")
# before, after: Look; others: share of the cores' time that other work had during the round, None: not known; why: sentences, none for a
# quiet round; kept: False when it was measured again
Round = namedtuple("Round", "round before after others why kept")
# A moment: wall: seconds; busy: seconds of work of the cores; ours: those of the bench and all that it started
Moment = namedtuple("Moment", "wall busy ours")

LOOP_SECONDS = 0.05 # a look takes so much of each core's time
WALL_SECONDS = 2.0 # a look at a core that others have takes no longer
DRIFT = 0.10 # a core's speed before and after a round differs by more: the round drifted
TAKEN = 0.05 # others had more of a core's time: it is not ours
TICKS = 0.05 # seconds of a core by which the kernel's figures of a round, which are in ticks, may be wrong
HOP = 1.5 # a frame's time before and after a round differs by more: the cores moved
SPREAD = 0.20 # a core's speed differs by more between any two rounds
NEAR_US = 0.40 # half a round trip of a bare frame is below this between cores that share a cache
MOVED = 1.2 # cores that are near in one round and far in another: their frames' times differ by more
CHUNK = bytes(65536)


def loop(core):
    """Work on a core. Returns chunks a second of the core's own time, and the share of time that others had."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        chunks, wall, cpu = [], time.perf_counter(), time.thread_time()
        last = cpu
        while last - cpu < LOOP_SECONDS and time.perf_counter() - wall < WALL_SECONDS:
            hashlib.sha256(CHUNK).digest()
            now = time.thread_time()
            chunks.append(now - last)
            last = now
        spent = time.perf_counter() - wall
    finally:
        os.sched_setaffinity(0, before)
    return 1 / max(statistics.median(chunks), 1e-9), max(1 - (last - cpu) / spent, 0.0)


def busy_seconds(cores):
    """Seconds of work of these cores since the machine began: programs, the kernel, and other guests of the host. Interrupts do not
    count: those of the bench's own packets over kernel links do not count as the bench's either. None: the kernel does not say"""
    try:
        with open("/proc/stat", encoding="ascii") as f:
            rows = {words[0]: [int(w) for w in words[1:]] for words in map(str.split, f) if words and words[0].startswith("cpu")}
        found = [rows[f"cpu{core}"] for core in cores]
    except (OSError, KeyError, ValueError):
        return None
    # user, nice, system, idle, iowait, irq, softirq, steal (proc(5)); time of guests is in user's.
    return sum(sum(row[:3]) + sum(row[7:8]) for row in found) / os.sysconf("SC_CLK_TCK")


def children_of(pid):
    """Processes that came from a process, and live."""
    parents = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as f:
                words = f.read().rpartition(")")[2].split()
            parents.setdefault(int(words[1]), []).append((int(path.split("/")[2]), sum(map(int, words[11:15]))))
        except (OSError, IndexError, ValueError):
            continue # it has gone
    found, todo = [], [pid]
    while todo:
        for child in parents.pop(todo.pop(), ()):
            found.append(child)
            todo.append(child[0])
    return found


def own_seconds():
    """Seconds of work of this process and all that it started, those that have ended and were waited for as well."""
    ended = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    living = sum(ticks for _, ticks in children_of(os.getpid())) / os.sysconf("SC_CLK_TCK")
    return sum(r.ru_utime + r.ru_stime for r in ended) + living


def moment(cores):
    """A moment, or None when the kernel does not say."""
    busy = busy_seconds(cores)
    return None if busy is None else Moment(time.monotonic(), busy, own_seconds())


def others(cores, begin, end):
    """Share of the cores' time that neither the bench nor its children had between two moments. None: not known"""
    if begin is None or end is None or end.wall <= begin.wall:
        return None
    seconds = (end.busy - begin.busy) - (end.ours - begin.ours) - TICKS * len(cores)
    return max(seconds, 0.0) / (len(cores) * (end.wall - begin.wall))


def drift(cores, before, after, other=None):
    """The reasons why a round between two looks is not to be believed. other: share of the cores that other work had meanwhile"""
    why = [f"other work had {other:.0%} of the cores during it"] if other is not None and other > TAKEN else []
    for i, core in enumerate(cores):
        change = after.speed[i] / before.speed[i] - 1
        if max(after.speed[i], before.speed[i]) > (1 + DRIFT) * min(after.speed[i], before.speed[i]):
            why.append(f"core {core} was {abs(change):.0%} {'faster' if change > 0 else 'slower'} after it than before")
        taken = max(before.taken[i], after.taken[i])
        if taken > TAKEN:
            why.append(f"other work had {taken:.0%} of core {core} while the reference loop ran")
    if before.hop_us and after.hop_us and \
            max(before.hop_us, after.hop_us) > HOP * min(before.hop_us, after.hop_us):
        why.append(f"a bare frame took {before.hop_us:.2f} us between the cores before it and {after.hop_us:.2f} us after")
    return why


class Watch:
    """Looks between rounds, and at their processor time. hop: a function that gives half a round trip of a bare frame in us, or None"""

    def __init__(self, cores, hop, work=loop, clock=moment):
        self.cores = sorted(set(cores))
        self.hop = hop
        self.work = work
        self.clock = clock
        self.rounds = []
        self.last = self.begun = None

    def look(self):
        found = [self.work(core) for core in self.cores]
        return Look([speed for speed, _ in found], [taken for _, taken in found], self.hop())

    def begin(self):
        """Before a round: the look after the last one is as good."""
        if self.last is None:
            self.last = self.look()
        self.begun = self.clock(self.cores)

    def end(self, number, can_repeat):
        """After a round. Returns True when it drifted and is to be measured again."""
        other = others(self.cores, self.begun, self.clock(self.cores))
        before, self.last = self.last, self.look()
        why = drift(self.cores, before, self.last, other)
        again = bool(why) and can_repeat
        self.rounds.append(Round(number, before, self.last, other, why, not again))
        return again


def listed(numbers):
    return ", ".join(str(n) for n in numbers)


def known_hops(kept):
    return [h for r in kept for h in (r.before.hop_us, r.after.hop_us) if h]


def hops(kept):
    """{"near": [round, ...], "far": [...]}; a round is where its slower look was."""
    found = {}
    for r in kept:
        known = [h for h in (r.before.hop_us, r.after.hop_us) if h]
        if known:
            found.setdefault("near" if max(known) < NEAR_US else "far", []).append(r.round)
    return found


def between_rounds(cores, kept):
    """Reasons that no round has alone."""
    why = []
    for i, core in enumerate(cores):
        speeds = [look.speed[i] for r in kept for look in (r.before, r.after)]
        if max(speeds) > (1 + SPREAD) * min(speeds):
            why.append(f"core {core} was {max(speeds) / min(speeds) - 1:.0%} faster at one time than at another")
    where = hops(kept)
    known = known_hops(kept)
    if len(where) > 1 and max(known) > MOVED * min(known):
        why.append(f"the cores were near each other in round {listed(where['near'])} and far in round {listed(where['far'])}")
    return why


def state(watch):
    """Where the cores are, in words."""
    if len(watch.cores) == 1:
        return "one core for both sides"
    kept = [r for r in watch.rounds if r.kept]
    where = hops(kept)
    known = known_hops(kept)
    if not known:
        return "not known: no bare frame was measured"
    took = f"a bare frame takes {statistics.median(known):.2f} us from core to core, {min(known):.2f} to {max(known):.2f}"
    place = f"near in round {listed(where['near'])}, far in round {listed(where['far'])}" if len(where) > 1 else next(iter(where))
    return f"{place}: {took} (near is below {NEAR_US:.2f})"


def judge(watch):
    """Returns (True when the machine was quiet, a paragraph that says so or why not)."""
    kept = [r for r in watch.rounds if r.kept]
    if not kept:
        return False, ("Nobody knows if this machine was quiet, since no round came to its end. So the tables give no "
                       "verdicts.")
    again = len(watch.rounds) - len(kept)
    repeats = f" {again} round{'s' if again != 1 else ''} that drifted {'were' if again != 1 else 'was'} measured again." \
        if again else ""
    why = [f"round {r.round}: {reason}" for r in kept for reason in r.why] + between_rounds(watch.cores, kept)
    if why:
        return False, ("This machine was NOT QUIET while it was measured, so the tables give no verdicts: the figures say "
                       "little, even about each other. " + "; ".join(why) + "." + repeats)
    taken = max(t for r in kept for look in (r.before, r.after) for t in look.taken)
    known = [r.others for r in kept if r.others is not None]
    meanwhile = f", and at most {max(known):.0%} of the cores during a round" if len(known) == len(kept) else \
        "; work of others during a round is not known"
    return True, (f"The machine was quiet: before and after each round a reference loop ran equally fast on each core (within "
                  f"{DRIFT:.0%}), and other work had at most {taken:.0%} of a core while it ran{meanwhile}." + repeats)


def withhold(verdicts):
    """Verdicts on figures of a machine that was not quiet."""
    return {name: [v._replace(verdict="withheld") if v.median is not None and v.verdict else v for v in found]
            for name, found in verdicts.items()}


def rows(watch):
    """A table of the looks: (title, columns, [(name, [value or None, ...])]), speeds of the first look being 1."""
    columns = [f"core {c}, {what}" for c in watch.cores for what in ("speed before", "after", "taken by others, %")] + \
        ["bare frame before, us", "after", "taken by others during it, %"]
    out = []
    for r in watch.rounds:
        first = watch.rounds[0].before
        cells = []
        for i in range(len(watch.cores)):
            cells += [r.before.speed[i] / first.speed[i], r.after.speed[i] / first.speed[i],
                      100 * max(r.before.taken[i], r.after.taken[i])]
        mark = "measured again" if not r.kept else "DRIFTED" if r.why else "quiet"
        out.append((f"round {r.round}: {mark}", cells + [r.before.hop_us, r.after.hop_us, None if r.others is None else 100 * r.others]))
    return ("The reference loop between rounds", columns, out)


def as_json(watch):
    quiet, text = judge(watch)
    return {"quiet": quiet, "text": text, "cores": state(watch),
            "rounds": [{"round": r.round, "kept": r.kept, "why": r.why, "before": r.before._asdict(),
                        "after": r.after._asdict(), "others": r.others} for r in watch.rounds]}
