#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnicd on emulated network cards, through vfio, as an ordinary user with huge pages.

Two guests of qemu's software emulation, left and right, run urnicd behind an emulated IOMMU (guest_pci.py). The cards are on
two Ethernet segments, and this machine is the router between them.

  tutorial   doc/tutorials/two-machines.md, line by line, by virtio-net on left and e1000e on right (tutorial.py)
  pairs      each kind of card to another kind, one pair through the router; right has no huge pages now
  links      the monitor takes the links of left's virtio-net and e1000e down, and up again

usage: pci.py PROJECT BUILD

The test runs in namespaces of its own: all that it starts is removed when it ends, however it ends."""
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True
import guest
import guest_pci
import tutorial

SKIPPED = 77
BEGAN = time.monotonic()
CARDS = {
    "left": {4: ("virtio", "urnbr1"), 5: ("e1000e", "urnbr1"), 6: ("vmxnet3", "urnbr1")},
    "right": {4: ("e1000e", "urnbr1"), 5: ("vmxnet3", "urnbr1"), 6: ("virtio", "urnbr2")},
}
# Card of left, card of right, further words of urnic-perf
PAIRS = ((5, 5, ""), (6, 6, ""))
CTL = "build/apps/urnicctl/urnicctl"
PERF = "build/apps/urnic-perf/urnic-perf"
GROUP = "/dev/vfio/$(basename $(readlink /sys/bus/pci/devices/{}/iommu_group))"
PATIENCE = 900 # seconds for what an emulated machine does, on a busy machine


class Wrong(Exception):
    pass


def say(text):
    print(f"{time.monotonic() - BEGAN:.1f} s: {text}", flush=True)


def must(true, text):
    if not true:
        raise Wrong(text)


def wait_until(true, text):
    """Wait until a function returns something true; returns that."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        got = true()
        if got:
            return got
        time.sleep(0.3)
    raise Wrong(f"{text}, after {PATIENCE} s")


def network():
    """Two segments of cards, and the one by which guests are asked; this namespace routes between them."""
    guest.sh(os.path.join(guest.HERE, "guest.sh"), "net")
    guest_pci.bridge("urnbr1", "10.0.0.254/24")
    guest_pci.bridge("urnbr2", "10.0.1.254/24")
    with open("/proc/sys/net/ipv4/ip_forward", "w", encoding="utf-8") as f:
        f.write("1")


def show(one, what):
    """urnicctl's answer on a guest, from JSON."""
    return json.loads(one.run(f"{CTL} --json show {what}"))


def ip_of(machine, slot):
    return f"10.0.{1 if CARDS[machine][slot][1] == 'urnbr2' else 0}.{(10 if machine == 'left' else 20) + slot}"


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


def config_of(machine, huge):
    text = f"[eal]\nhuge_pages = {huge}\nfile_prefix = nic\n[engine 0]\n[engine 1]\n"
    for slot in CARDS[machine]:
        ip = ip_of(machine, slot)
        text += (f"[port p{slot}]\ndevice = 0000:{slot:02x}:00.0\npath_mtu = 4096\n"
                 f"[adapter a{slot}]\nport = p{slot}\nipv4 = {ip}/24\ngateway = {ip.rpartition('.')[0]}.254\n")
    return text


def all_cards(guests):
    """Start urnicd on all cards of both machines."""
    jobs = {}
    for name, one in guests.items():
        rest = [card.address for slot, card in one.cards.items() if slot != 4]
        one.run(f"dpdk-devbind.py -b vfio-pci {' '.join(rest)}; chown alice {' '.join(GROUP.format(r) for r in rest)}", "root")
        one.run(f"cat >all.ini <<'END'\n{config_of(name, 'auto' if name == 'left' else 'never')}END")
        jobs[name] = one.start("build/apps/urnicd/urnicd -c all.ini")
    for job in jobs.values():
        job.until("listening at")
    return jobs


def check_links(one):
    """Take links down and up. DPDK's driver of a vmxnet3 was not seen to notice."""
    for slot in (slot for slot, card in one.cards.items() if card.kind != "vmxnet3"):
        for up in (False, True):
            one.set_link(slot, up)
            wait_until(lambda up=up, slot=slot: show(one, f"port p{slot}")[0]["link"] is up,
                       f"the {one.cards[slot].kind} has not seen its link {'up' if up else 'down'}")
        say(f"{one.name}'s {one.cards[slot].kind}: link down and up")


def perf(guests, words, here, there):
    """A bench of left with right, each by one of its cards; the data are checked."""
    server = guests["right"].start(f"{PERF} {words.split()[0]} --attach auto --node a{there} --listen 7000 --connect cm --timeout 19")
    server.until("waiting for the other side")
    out = guests["left"].run(f"{PERF} {words} --attach auto --node a{here} --peer {ip_of('right', there)}:7000 --connect cm --timeout 19")
    code, said = server.wait(PATIENCE)
    must(code == 0 and "data checked: yes" in out, f"{words}, from left's card {here} to right's {there}: {out}{said}")
    kinds = [guests[name].cards[slot].kind for name, slot in (("left", here), ("right", there))]
    say(f"{' to '.join(kinds)}: {out.splitlines()[2].strip()}")


def check_pairs(guests):
    for here, there, more in PAIRS:
        perf(guests, f"write_bw --iters 50 {more}", here, there)
    route = [r for r in show(guests["left"], "route a6") if r["via"] == "10.0.0.254"]
    must(route and route[0]["mac"] != "-", f"left's vmxnet3 knows no router: {route}")


def check(guests, project):
    check_tutorial(guests, project)
    say("the tutorial is done")
    jobs = all_cards(guests)
    say("urnicd is up on all cards")
    try:
        check_pairs(guests)
        check_links(guests["left"])
        for one in guests.values():
            stop(one)
    finally:
        for name, job in jobs.items():
            print(f"{name}'s urnicd:", job.wait(PATIENCE if one_ended(guests[name]) else 5), flush=True)


def one_ended(one):
    try:
        return one.run("pgrep -x urnicd || true").strip() == ""
    except (guest.GuestError, OSError):
        return False


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
        except Exception as e: # the consoles tell why, also for what no check foresaw
            traceback.print_exc()
            print(f"FAILED: {e}", flush=True)
            for name, one in guests.items():
                print(f"{name}'s console:\n{one.said()}", flush=True)
            return 1
        finally:
            for one in guests.values():
                one.stop()


if __name__ == "__main__":
    sys.exit(main())
