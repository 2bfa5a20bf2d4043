#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Attackers and victims on one urnicd, each a user of its own where root starts this.

usage: run.py [OPTION...] [ATTACK...]

An attacker has idle priority (SCHED_IDLE) once it is under way, so that the processor that it burns is
not what its victim feels. A victim moves bytes from node a to node b of the same urnicd,
checks each of them, and fails when one is lost or changed. attacks.h has the attacks.

Without --figures each attack must let its victims finish a number of operations, while
it is under way, stopped, and after it was killed; urnicd must live on, and take back all
that the attacker had. No bound of time is held that a busy machine might break; urnicd's end under
attack has one for the processor time that it uses.

With --figures the victim's worst operation and its rate, of that without an attacker, are
held against their bounds; beside each attack another user has to attach and make 1,000 objects
of each kind, which needs root; and the end of urnicd is timed. A table in the end has the worst
of all attacks. A quiet machine with two processors or more is needed: where the victim alone takes
longer than the bound, the verdict on its worst operation is withheld.

  --build DIR    the build folder (default: build in the project's folder)
  --family NAME  only attacks of this family; "end": only the end of urnicd under attack
  --figures      measure
  --victim KIND  with --figures: writes (default) or messages
  --seconds S    with --figures: time of a run, 0.05 to 600 (default: 2)
  --rounds N     with --figures: runs beside each attack, and alone, 1 to 99 (default: 1); the
                 longest operation counts, and the median of the rates
  --json FILE    with --figures: also write what was measured, an object
  --list         print the attacks
  --help         this text

Exit code: 0 all held, 1 something did not, 2 wrong usage, 128 + N ended by signal N (figures
measured until then are printed).
"""

import argparse
import os
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # no cache of the modules beside this file
import figures
from town import AFTER, MUST_END, PATIENCE, PROJECT, ROOT, Attacker, Fault, Swap, Town, attacks_of, end_under_attack, swapped

WRITES = 300      # operations of a victim beside an attack
MESSAGES = 60
ROUNDS = 2        # times that an attack does its bad thing, at least, while its victims work


def victims(town, family):
    """One run of each victim that the family is about."""
    if family == "tables" and ROOT: # without root all are one user, whose limits both have
        town.victim_of("limits")
    town.victim_of("writes", WRITES)
    town.victim_of("messages", MESSAGES)


def hold(town, name, family):
    """One attack: its victims go on, before and after it ends. returns: False: not allowed here"""
    a = Attacker(town, name)
    try:
        if not a.wait():
            return False
        before, end = a.rounds(), time.time() + PATIENCE
        victims(town, family)
        out = swapped()
        while a.lives() and a.rounds() < before + ROUNDS:
            if time.time() > end:
                raise Fault(f"{name}: no rounds: {a.text()}")
            town.victim_of("writes", AFTER)
            out = max(out, swapped())
        if a.process.poll() is not None:
            return False
        if out:
            print(f"{name}: {out} KiB were swapped out", flush=True)
        a.signal(signal.SIGSTOP)
        town.victim_of("writes", AFTER)
        a.signal(signal.SIGCONT)
    finally:
        a.end()
        town.running.remove(a.process)
    town.victim_of("writes", AFTER)
    town.nobody(name)
    return True


def check(args):
    """The suite: each attack, on one urnicd a family. returns: True when all held"""
    faults, held, skipped = [], 0, []
    town, swap = None, Swap()
    try:
        town = Town(args.build, quiet=False)
        if args.family in (None, "memory"):
            swap.begin()
        for name, family, _ in attacks_of(town):
            if not figures.chosen(args, name, family):
                continue
            began = time.time()
            if hold(town, name, family):
                held += 1
                print(f"{name}: held, {time.time() - began:.1f} s", flush=True)
            else:
                skipped.append(name)
                print(f"{name}: not possible here", flush=True)
        town.end()
        if args.family in (None, "end") and not args.attack:
            took, used, many = end_under_attack(args, quiet=False)
            most = MUST_END * len(os.sched_getaffinity(0))
            if used > most:
                raise Fault(f"urnicd ended {took:.1f} s after SIGTERM under {many} attacks, and used {used:.1f} s of "
                            f"processors; {most} s are allowed")
            print(f"end under {many} attacks: {took:.1f} s, {used:.1f} s of processors (at most {most})", flush=True)
    except Fault as fault:
        faults.append(str(fault))
        print(f"FAILED: {fault}", file=sys.stderr, flush=True)
    finally:
        if town:
            town.close()
        swap.remove()
    print(f"{held} attacks held, {len(faults)} came through, {len(skipped)} are not possible here")
    return not faults


def fail(text):
    print(f"run.py: {text}; see '{sys.argv[0]} --help'", file=sys.stderr)
    sys.exit(2)


def options():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--build", default=os.path.join(PROJECT, "build"))
    parser.add_argument("--family")
    parser.add_argument("--figures", action="store_true")
    parser.add_argument("--victim", default="writes", choices=("writes", "messages"))
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--help", action="store_true")
    parser.add_argument("attack", nargs="*")
    args = parser.parse_args()
    if not 0.05 <= args.seconds <= 600 or not 1 <= args.rounds <= 99:
        fail("--seconds wants 0.05 to 600, and --rounds 1 to 99")
    if args.json is not None and not args.figures:
        fail("--json goes with --figures")
    return args


def known(args):
    """Refuse attacks and families that there are not."""
    rows = [line.split(" ", 2)[:2] for line in
            subprocess.run([figures.program(args), "--list"], capture_output=True, text=True, check=True).stdout.splitlines()]
    for name in args.attack:
        if name not in [row[0] for row in rows]:
            fail(f"there is no attack {name}")
    if args.family not in [None, "end", *(row[1] for row in rows)]:
        fail(f"there is no family {args.family}")


def main():
    args = options()
    if args.help:
        print(__doc__.strip())
        return 0
    if not os.access(figures.program(args), os.X_OK):
        print(f"run.py: {figures.program(args)} is not built", file=sys.stderr)
        return 1
    if args.list:
        return subprocess.run([figures.program(args), "--list"], check=False).returncode
    known(args)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, figures.interrupt) # all that was started ends
    try:
        return 0 if (figures.figures if args.figures else check)(args) else 1
    except figures.Interrupted as e:
        return 128 + e.args[0]


if __name__ == "__main__":
    sys.exit(main())
