#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnicd on emulated network cards, through vfio, as an ordinary user with huge pages.

Two guests of qemu's software emulation, left and right, run urnicd behind an emulated IOMMU (guest_pci.py). Both cards are on
one Ethernet segment.

  tutorial   doc/tutorials/two-machines.md, line by line, by virtio-net on left and e1000e on right (tutorial.py)

usage: pci.py PROJECT BUILD

The test runs in namespaces of its own: all that it starts is removed when it
ends, however it ends."""
import json
import os
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import guest
import guest_pci
import tutorial

SKIPPED = 77
BEGAN = time.monotonic()
CARDS = {
    "left": {4: ("virtio", "urnbr1")},
    "right": {4: ("e1000e", "urnbr1")},
}
CTL = "build/apps/urnicctl/urnicctl"


class Wrong(Exception):
    pass


def say(text):
    print(f"{time.monotonic() - BEGAN:.1f} s: {text}", flush=True)


def must(true, text):
    if not true:
        raise Wrong(text)


def network():
    """The segment of cards, and the one by which guests are asked; this namespace is a host of both."""
    guest.sh(os.path.join(guest.HERE, "guest.sh"), "net")
    guest_pci.bridge("urnbr1", "10.0.0.254/24")


def show(one, what):
    """urnicctl's answer on a guest, from JSON."""
    return json.loads(one.run(f"{CTL} --json show {what}"))


def check_tutorial(guests, project):
    page = tutorial.Tutorial(project, guests)
    page.run()
    for name, one in guests.items():
        must("0000:04:00.0 Ethernet controller" in page.output(name, "lspci"), "lspci does not show the card")
        free = int(page.output(name, "cat /sys/kernel"))
        left = int(one.run("cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"))
        must(free == 256 and left < free, f"of {free} huge pages {left} are free, {name}'s urnicd took none")
        must(page.output(name, "ulimit -l").strip() == "1048576", "the limit of locked memory is another one")
        port = show(one, "port")[0]
        must(port["link"] is True and port["path_mtu"] == 4096 and port["mtu"] == 4392, f"{name}'s port: {port}")
        status = one.run("cat /proc/$(pgrep -x urnicd)/status").split("\n")
        must("CapEff:\t0000000000000000" in status and "Uid:\t1000\t1000\t1000\t1000" in status, f"rights of {name}'s urnicd: {status}")
    for bench in ("send_lat", "write_bw"):
        must("data checked: yes" in page.output("left", f"urnic-perf {bench}"), f"{bench} checked no data")
    peer = [n for n in show(guests["left"], "neigh") if n["address"] == "10.0.0.2"]
    must(peer and peer[0]["mac"] == guests["right"].cards[4].mac and peer[0]["peer"] == "known", f"left's neighbour: {peer}")
    drops = [l for l in page.output("left", "show counters").split("\n") if l.startswith("drop_") and "drop_not_roce" not in l]
    must(not drops, f"left drops frames: {drops}")
    guest.sh("ping", "-q", "-c", "2", "-W", "60", "10.0.0.1")
    for one in guests.values():
        stop(one)


def stop(one):
    """End a guest's urnicd as a person does."""
    one.run("pkill -x urnicd; while pgrep -x urnicd >/dev/null; do sleep 0.2; done")


def check(guests, project):
    check_tutorial(guests, project)
    say("the tutorial is done")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    project, build = map(os.path.abspath, sys.argv[1:])
    if os.geteuid() != 0:
        print("skipped: guests on taps want root")
        return SKIPPED
    guest.enter()
    guests = {}
    with tempfile.TemporaryDirectory(prefix="urnic-pci.") as folder:
        try:
            network()
            image = subprocess.run([os.path.join(guest.HERE, "guest-build.sh")], check=True, capture_output=True, text=True).stdout.strip()
            for number, (name, cards) in enumerate(CARDS.items(), 1):
                guests[name] = guest_pci.PciGuest(name, number, cards, build, folder)
                guests[name].boot(image)
            for one in guests.values():
                one.ready()
            say("the guests are up")
            check(guests, project)
            say("all done")
            return 0
        except (Wrong, guest.GuestError, OSError) as e:
            print(f"FAILED: {e}", flush=True)
            for name, one in guests.items():
                print(f"{name}'s console:\n{one.said()}", flush=True)
            return 1
        finally:
            for one in guests.values():
                one.stop()


if __name__ == "__main__":
    sys.exit(main())
