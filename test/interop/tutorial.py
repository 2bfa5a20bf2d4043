# SPDX-License-Identifier: BSD-3-Clause
"""The commands of doc/tutorials/two-machines.md, line by line, on two guests.

A block ```sh norun WHO [MACHINE] is run by WHO, root or alice, on the machine, left or right, or on both. Blocks without WHO
(a ConnectX) are not run. The block ```ini is the file that alice writes, nic.ini; a value behind "# on right:" is that of
right. Both machines do a line before either does the next one. Only one thing differs from a person's typing: urnic-perf
gets --timeout 19, because an emulated processor of a busy machine may be silent for a second."""
import os
import re

import guest
import guest_pci

PAGE = "doc/tutorials/two-machines.md"
WHO = ("root", "alice")
MACHINES = ("left", "right")


def blocks(project):
    """Yields (who, machines, lines); for the file: ("file", machines, text of the file)"""
    with open(os.path.join(project, PAGE), encoding="utf-8") as f:
        text = f.read()
    for info, body in re.findall(r"^```([^\n]*)\n(.*?)^```$", text, re.M | re.S):
        words = info.split()
        if words == ["ini"]:
            yield "file", MACHINES, body
        elif words[:2] == ["sh", "norun"] and len(words) > 2:
            who, machines = words[2], tuple(words[3:]) or MACHINES
            if who not in WHO or set(machines) - set(MACHINES):
                raise guest.GuestError(f"{PAGE}: ```{info} names neither who runs it nor where")
            yield who, machines, body.replace("\\\n", " ").splitlines()


def file_of(text, machine):
    if machine == "right":
        text = re.sub(r"(= )\S+( *)# on right: (\S+)", r"\1\3", text)
    return text


class Tutorial:
    """Runs the page. guests: {name: PciGuest}"""

    def __init__(self, project, guests):
        self.project, self.guests = project, guests
        self.outputs = [] # (machine, line, output), in order
        self.servers = []  # jobs of programs that wait for the other machine
        self.daemons = {}  # machine: the job of its urnicd

    def run(self):
        for who, machines, what in blocks(self.project):
            if who == "file":
                for machine in machines:
                    self.guests[machine].run(f"cat >nic.ini <<'END'\n{file_of(what, machine)}END")
                continue
            for line in what:
                self.line(who, machines, line)
            if machines == ("left",):
                self.join()

    def line(self, who, machines, line):
        print(f"{'+'.join(machines)}: {who}: {line}", flush=True)
        if line.split()[0].endswith("urnic-perf"):
            line += " --timeout 19"
        jobs = [(machine, self.guests[machine].start(line, who)) for machine in machines]
        for machine, job in jobs:
            if re.search(r"urnicd -c \S+$", line):
                job.until("listening at")
                self.daemons[machine] = job
            elif " --listen " in line:
                job.until("waiting for the other side")
                self.servers.append((machine, line, job))
            else:
                self.end(machine, line, job)

    def end(self, machine, line, job):
        code, out = job.wait(guest_pci.PATIENCE)
        self.outputs.append((machine, line, out))
        if code != 0:
            raise guest.GuestError(f"on {machine}, `{line}` of {PAGE} ended with {code}: {out}")

    def join(self):
        """Wait for the programs that waited for the other machine."""
        while self.servers:
            self.end(*self.servers.pop())

    def output(self, machine, part):
        """Output of the last line with these words."""
        return [out for m, line, out in self.outputs if m == machine and part in line][-1]
