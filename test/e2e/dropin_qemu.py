#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Debian's qemu: a guest's live migration over rdma:, from node to node, by urnic-run (doc/reference/dropin.md).

usage: dropin_qemu.py urnicd urnic-run CONFIG_FOLDER guest_counts.S [TEST...]"""

import json
import os
import re
import socket
import struct
import subprocess
import sys
import unittest

import dropin_common

GUEST = None
MIB = 1 << 20
RAM = 32 * MIB
PAGE = 4096
FILLED = range(1 * MIB, 16 * MIB, PAGE)  # pages whose words are their addresses
COUNTING = range(1 * MIB, 4 * MIB, PAGE)  # ... and of these the first words count
TRIES = 5


class Machine:
    """A qemu on a node, and its control socket."""

    def __init__(self, case, node, *options):
        self.path = os.path.join(case.dir.name, node)
        self.trace = self.path + ".trace"
        self.case = case
        self.process = case.on(node, "qemu-system-x86_64", "-accel", "tcg", "-M", "pc", "-m", str(RAM // MIB), "-nodefaults",
                               "-no-user-config", "-display", "none", "-bios", case.bios, "-qmp",
                               f"unix:{self.path}.qmp,server=on,wait=off", "-D", self.trace, "-trace", "vm_state_notify",
                               "-trace", "qemu_rdma_write_one_post", *options)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(dropin_common.SECONDS)
        if not case.until(self.connect):
            case.fail(f"no qemu on {node}: {case.ends(self.process)}")
        self.file = self.socket.makefile("rw", encoding="utf-8")
        self.file.readline()  # greeting
        self.ask("qmp_capabilities")

    def connect(self):
        if self.process.poll() is not None:
            return False
        try:
            self.socket.connect(self.path + ".qmp")
        except OSError:
            return False
        return True

    def ask(self, command, **arguments):
        """Run a command. returns: its answer"""
        self.file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.file.flush()
        while True:
            answer = json.loads(self.file.readline())
            self.case.assertNotIn("error", answer, (command, arguments))
            if "return" in answer:
                return answer["return"]

    def memory(self, at=0, size=RAM):
        self.ask("pmemsave", val=at, size=size, filename=self.path + ".memory")
        with open(self.path + ".memory", "rb") as f:
            return f.read()

    def turns(self):
        """How often the guest has counted up its first page."""
        return (struct.unpack("<I", self.memory(COUNTING.start, 4))[0] - COUNTING.start) % 2**32

    def forgotten(self):
        """The MiBs of RAM that were not sent after the guest's stop."""
        with open(self.trace, encoding="utf-8") as f:
            posts = f.read().split("vm_state_notify running 0")[-1]
        return set(range(RAM // MIB)) - {int(chunk) for chunk in re.findall(r"Posting chunk: (\d+),", posts)}

    def quit(self):
        self.ask("quit")
        self.socket.close()
        self.case.assertEqual(self.case.ends(self.process)[0], 0)


class Qemu(dropin_common.Dropin):
    def setUp(self):
        super().setUp()
        self.bios = os.path.join(self.dir.name, "bios")
        subprocess.run(["as", "--32", "-o", self.bios + ".o", GUEST], check=True)
        subprocess.run(["objcopy", "-O", "binary", "-j", ".text", self.bios + ".o", self.bios], check=True)

    def look(self, memory):
        """Look at a stopped guest's memory: all words are as the guest wrote them."""
        words = struct.iter_unpack("<I", b"".join(memory[page:page + 4] for page in COUNTING))
        counts = [(word - page) % 2**32 for (word,), page in zip(words, COUNTING)]
        # The guest is somewhere in a turn: pages behind that place are one ahead of pages in front of it.
        self.assertEqual(counts, sorted(counts, reverse=True))
        self.assertLessEqual(counts[0] - counts[-1], 1)
        for page in FILLED:
            first = 4 if page in COUNTING else 0
            want = struct.pack("<1024I", *range(page, page + PAGE, 4))
            self.assertEqual(memory[page + first:page + PAGE], want[first:], hex(page))

    def migrate(self, *capabilities):
        """Migrate a guest that writes. returns: the source's state"""
        for _ in range(TRIES):
            # The destination's guest waits for "cont", so that nothing changes what came.
            source = Machine(self, "a")
            self.assertTrue(self.until(lambda: 0 < source.turns() < 2**31))
            target = Machine(self, "b", "-S", "-incoming", "defer")
            state = self.send(source, target, capabilities)
            whole = self.compare(source, target)
            if whole:
                self.go_on(target)
            source.quit()
            target.quit()
            if whole:
                return state
        return self.fail("qemu has not sent all pages that the guest wrote to")

    def send(self, source, target, capabilities):
        port = dropin_common.free_port()
        for machine in (source, target):
            machine.ask("migrate-set-capabilities", capabilities=[{"capability": c, "state": True} for c in capabilities])
        # On a machine without a free core the last round may be slow.
        source.ask("migrate-set-parameters", **{"downtime-limit": 30000, "max-bandwidth": 1 << 32})
        target.ask("migrate-incoming", uri=f"rdma:10.0.0.2:{port}")
        source.ask("migrate", uri=f"rdma:10.0.0.2:{port}")
        self.assertTrue(self.until(lambda: source.ask("query-migrate").get("status") in ("completed", "failed")))
        state = source.ask("query-migrate")
        self.assertEqual(state["status"], "completed", state)
        self.assertTrue(self.until(lambda: target.ask("query-migrate").get("status") == "completed"))
        self.assertEqual(target.ask("query-status")["status"], "paused")
        return state

    def compare(self, source, target):
        """Compare what came with what the source has. returns: False if qemu has not sent all of it"""
        sent, came = source.memory(), target.memory()
        differ = {page // MIB for page in range(0, RAM, PAGE) if sent[page:page + PAGE] != came[page:page + PAGE]}
        # Now and then qemu 7.2's emulated CPU (tcg) goes on to write to a MiB that no round takes for changed; its trace has
        # no post of that MiB then. All that it posts after the guest's stop must be the same there.
        self.assertLessEqual(differ, source.forgotten())
        if not differ:
            self.look(came)
        return not differ

    def go_on(self, target):
        before = target.turns()
        target.ask("cont")
        self.assertTrue(self.until(lambda: target.turns() > before + 10))
        target.ask("stop")
        self.look(target.memory())

    def test_migrate(self):
        """By default, memory is registered when pages of it are sent."""
        state = self.migrate()
        self.assertGreater(state["ram"]["normal"], len(FILLED))

    def test_pin_all(self):
        """All memory is registered at the beginning."""
        state = self.migrate("rdma-pin-all")
        self.assertGreater(state["ram"]["normal"], len(FILLED))


if __name__ == "__main__":
    Qemu.NICD, Qemu.RUN, Qemu.CONFIG, GUEST = map(os.path.abspath, sys.argv[1:5])
    dropin_common.ordinary_user(Qemu.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[5:], verbosity=2)
