# SPDX-License-Identifier: BSD-3-Clause
"""Figures of victims beside each attack, and a table of the worst of all attacks with its marks."""

import json
import os
import signal
import statistics
import sys

from town import MUST_END, ROOT, Attacker, Fault, Swap, Town, attacks_of, end_under_attack

MUST_US, AIM_US = 10000, 2000  # worst operation of a victim
MUST_SHARE, AIM_SHARE = 40, 80 # % of the rate alone
AIM, MUST, WITHHELD, MISSED = "aim reached", "must reached", "withheld", "MISSED" # verdicts, the best one first
LIMITS = "1,000 QPs on each node, 1,000 regions, 1,000 connections, 64 register sets"


class Interrupted(BaseException):
    """A signal ended the run."""


def interrupt(number, _frame):
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    raise Interrupted(number)


def program(args):
    return os.path.join(args.build, "test/hostile/urnic-attack")


def chosen(args, name, family):
    """True when the options ask for an attack."""
    return args.family in (None, family) and (not args.attack or name in args.attack)


# ---- one attack

def verdict_worst(worst, alone):
    """The longest operation beside an attack, and the longest one of the victim alone; us."""
    if worst <= MUST_US:
        return AIM if worst <= AIM_US else MUST
    # The machine takes processors away for that long by itself.
    return WITHHELD if alone > MUST_US else MISSED


def verdict_share(share):
    if share < MUST_SHARE:
        return MISSED
    return AIM if share >= AIM_SHARE else MUST


def worse(*verdicts):
    return max(verdicts, key=(AIM, MUST, WITHHELD, MISSED).index)


def late_user(town):
    """returns: seconds that another user's objects take; False: the user is refused; None: without root all are one user, whose
    limits both have"""
    if not ROOT:
        return None
    try:
        return town.victim_of("limits")["seconds"]
    except Fault as e:
        print(f"the user who comes late: {e}", file=sys.stderr, flush=True)
        return False


def one_round(town, args, name):
    """returns: figures of the victim alone and beside the attack, or None: not possible here"""
    alone = town.victim_of(args.victim, 0, args.seconds)
    a = Attacker(town, name)
    try:
        if not a.wait():
            return None
        before = a.rounds()
        under = town.victim_of(args.victim, 0, args.seconds)
        if not a.lives():
            return None
        rounds = a.rounds() - before
        late = late_user(town)
    finally:
        a.end()
        town.running.remove(a.process)
    town.nobody(name)
    return alone, under, rounds, late


def summed(name, victim, found):
    """The figures of all rounds of an attack."""
    alone, under, rounds, late = zip(*found)
    limits = None if None in late else not any(s is False for s in late) and max(late)
    share = statistics.median(100 * u["rate"] / a["rate"] for a, u in zip(alone, under))
    worst, own = (max(r["worst_us"] for r in runs) for runs in (under, alone))
    verdicts = verdict_worst(worst, own), verdict_share(share)
    return {"attack": name, "victim": victim, "rate_alone": statistics.median(r["rate"] for r in alone),
            "rate": statistics.median(r["rate"] for r in under), "share": round(share, 1), "worst_us": worst, "worst_alone_us": own,
            "over_2ms": sum(r["over_2ms"] for r in under), "over_10ms": sum(r["over_10ms"] for r in under),
            "rounds": sum(rounds), "limits_seconds": limits,
            "verdict_worst": verdicts[0], "verdict_share": verdicts[1], "verdict": worse(*verdicts)}


def measure(town, args, name):
    """returns: figures of one attack, or None: not possible here"""
    found = []
    for _ in range(args.rounds):
        one = one_round(town, args, name)
        if one is None:
            return None
        found.append(one)
    return summed(name, args.victim, found)


def print_one(f):
    limits = f["limits_seconds"]
    late = "" if limits is None else "   another user is refused" if limits is False else f"   1,000 of each in {limits:.2f} s"
    print(f"{f['attack']:<15} {f['rate']:>9.0f}/s {f['share']:>6.1f} % of alone   worst {f['worst_us']:>10.1f} us "
          f"(alone {f['worst_alone_us']:.1f}){late}   {f['rounds']} rounds   {f['verdict']}", flush=True)


# ---- the table

def row(key, what, value, must, aim, verdict):
    return {"key": key, "what": what, "value": value, "must": must, "aim": aim, "verdict": verdict}


def rows_of(attacks, faults, end):
    """The table. attacks: figures of each; faults: attacks that came through; end: seconds and number of attacks, or None"""
    found = []
    if attacks:
        kind = "WRITE" if attacks[0]["victim"] == "writes" else "message or write to remote memory"
        worst, least = max(attacks, key=lambda f: f["worst_us"]), min(attacks, key=lambda f: f["share"])
        found += [row("worst", f"worst {kind} of a victim beside any one attack ({worst['attack']})",
                      f"{worst['worst_us'] / 1000:.2f} ms", f"{MUST_US // 1000} ms", f"{AIM_US // 1000} ms",
                      worse(*(f["verdict_worst"] for f in attacks))),
                  row("share", f"rate of a victim, of alone, least beside any one attack ({least['attack']})",
                      f"{least['share']:.1f} %", f"{MUST_SHARE} %", f"{AIM_SHARE} %", verdict_share(least["share"]))]
        late = [f for f in attacks if f["limits_seconds"] is not None]
        if late:
            held = sum(f["limits_seconds"] is not False for f in late)
            found.append(row("limits", f"another user attaches and makes {LIMITS}", f"{held} of {len(late)}", "always", "",
                             AIM if held == len(late) else MISSED))
    if faults or attacks:
        found.append(row("faults", "attacks that came through, or that took a victim's bytes or objects", str(faults), "0", "",
                         MISSED if faults else AIM))
    if end:
        found.append(row("end", f"SIGTERM of urnicd with {end[1]} attacks under way", f"{end[0]:.2f} s", f"{MUST_END} s", "",
                         AIM if end[0] <= MUST_END else MISSED))
    return found


def print_table(rows):
    wide = max([len(r["what"]) for r in rows] + [10])
    print(f"\n{'what':{wide}} {'value':>10} {'must':>8} {'aim':>8}  verdict")
    for r in rows:
        print(f"{r['what']:{wide}} {r['value']:>10} {r['must']:>8} {r['aim']:>8}  {r['verdict']}")
    if not ROOT:
        print("Not asked: whether another user can attach beside the attacks, for only root can start one.")


class Figures:
    """All that was measured."""

    def __init__(self):
        self.attacks, self.faults, self.missing, self.end = [], [], [], None

    def attack(self, town, args, name):
        try:
            f = measure(town, args, name)
        except Fault as fault:
            if town.nicd.poll() is not None:
                raise
            print(f"{name:<15} FAILED: {fault}", flush=True)
            self.faults.append({"attack": name, "fault": str(fault)})
            return
        if f is None:
            self.missing.append(name)
            print(f"{name:<15} not possible here", flush=True)
            return
        self.attacks.append(f)
        print_one(f)

    def all(self, town, args):
        for name, family, _ in attacks_of(town):
            if chosen(args, name, family):
                self.attack(town, args, name)
        if args.family in (None, "end") and not args.attack:
            town.end()
            took, _, many = end_under_attack(args, quiet=True)
            self.end = took, many

    def tell(self, args):
        """Print the table. returns: True when nothing was missed"""
        rows = rows_of(self.attacks, len(self.faults), self.end)
        print_table(rows)
        if args.json:
            with open(args.json, "w", encoding="utf-8") as f:
                json.dump({"attacks": self.attacks, "faults": self.faults, "not_possible": self.missing, "table": rows}, f, indent=1)
                f.write("\n")
        return bool(rows) and not any(r["verdict"] == MISSED for r in rows)


def figures(args):
    """Measure. returns: True when no must was missed"""
    found, town, swap = Figures(), None, Swap()
    try:
        town = Town(args.build, quiet=True)
        if args.family in (None, "memory"):
            swap.begin()
        found.all(town, args)
    except Fault as fault:
        found.faults.append({"attack": None, "fault": str(fault)})
        print(f"FAILED: {fault}", file=sys.stderr)
    except Interrupted:
        found.tell(args)
        raise
    finally:
        if town:
            town.close()
        swap.remove()
    return found.tell(args)
