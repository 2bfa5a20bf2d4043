#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Attacks on pages, in a guest that has what the machine lacks: version 2 of control groups, two NUMA nodes, swap.

usage: in_guest.py [--build DIR] [ATTACK...]

Boots a guest of qemu's software emulation (test/interop/guest_pci.py) and runs run.py there for each attack, by default
reclaim, migrate and pageout: their victims have to go on. Then the kernel's counts are looked at, because an attack that moved
no page shows nothing: pages swapped out, those of reclaim also in again, and pages that went to another place. To be run by hand, as root: the guest
takes minutes, and the kernel's package is fetched for the driver of its disk.

  --build DIR  the build folder (default: build in the project's folder); with the programs of the tests
  --help       this text

Exit code: 0 all held and pages moved, 1 something did not, 2 wrong usage, 77 not root."""

import argparse
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROJECT = os.path.dirname(os.path.dirname(HERE))
sys.dont_write_bytecode = True  # no cache of the modules beside this file
sys.path.insert(0, os.path.join(PROJECT, "test", "interop"))
import guest
import guest_pci

SKIPPED = 77
SWAP = 256 << 20 # bytes of the guest's disk
SWAPPED, MOVED = ("pswpout", "pswpin"), ("pgmigrate_success",)
ATTACKS = {"reclaim": SWAPPED, "migrate": MOVED, "pageout": SWAPPED[:1]} # counts of /proc/vmstat that have to grow
SETUP = """set -e
mkdir -p {project} {build} /sys/fs/cgroup
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 project {project}
[ -d {build}/test ] || mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 build {build}
mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=262144 given /mnt
insmod /mnt/virtio_blk.ko
mkswap /dev/vda >/dev/null
swapon /dev/vda
mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
echo 0 >/proc/sys/kernel/numa_balancing # only the attack moves pages
cat /sys/devices/system/node/online
"""


class Guest(guest_pci.PciGuest):
    """A guest of two nodes, with a disk to swap to."""

    def __init__(self, build, folder):
        super().__init__("hostile", 1, {}, build, folder)
        disk = os.path.join(folder, "swap")
        with open(disk, "wb") as f:
            f.truncate(SWAP)
        self.MACHINE = [
            "-m", "1536", "-smp", "2,sockets=2", "-object", "memory-backend-ram,id=m0,size=768M",
            "-object", "memory-backend-ram,id=m1,size=768M", "-numa", "node,nodeid=0,cpus=0,memdev=m0",
            "-numa", "node,nodeid=1,cpus=1,memdev=m1",
            "-drive", f"file={disk},if=none,id=swap,format=raw", "-device", "virtio-blk-pci,drive=swap"]
        for tag, path in (("project", PROJECT), ("build", build), ("given", folder)):
            self.MACHINE += ["-fsdev", f"local,id={tag},path={path},security_model=none,readonly=on,multidevs=remap",
                             "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]

    def counts(self):
        """Counts of the guest's kernel about pages."""
        return {k: int(v) for k, v in (line.split() for line in self.run("cat /proc/vmstat", "root").strip().split("\n"))}


def image_folder():
    return subprocess.run([os.path.join(guest.HERE, "guest-build.sh")], check=True, capture_output=True, text=True).stdout.strip()


def driver_of(image):
    """returns: the driver of the guest's disk, which its image lacks; fetched beside the image where it is not there"""
    kernel = os.path.basename(image)[len("image-"):].rpartition("-")[0]
    kept = os.path.join(os.path.dirname(image), f"virtio_blk-{kernel}.ko")
    if os.path.exists(kept):
        return kept
    with tempfile.TemporaryDirectory(prefix="urnic-hostile.") as folder:
        subprocess.run(["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", f"linux-image-{kernel}"], cwd=folder, check=True)
        deb, = glob.glob(os.path.join(folder, "linux-image-*.deb"))
        subprocess.run(["dpkg", "-x", deb, folder], check=True)
        driver, = glob.glob(os.path.join(folder, "lib/modules/*/kernel/drivers/block/virtio_blk.ko*"))
        if driver.endswith(".xz"):
            subprocess.run(["xz", "-d", driver], check=True)
        shutil.move(driver.removesuffix(".xz"), kept)
    return kept


def attack(one, build, name):
    """Run an attack in the guest. returns: True when it held, and the guest's counts of pages grew"""
    before, began = one.counts(), time.monotonic()
    code, out = one.start(f"cd {PROJECT}; python3 test/hostile/run.py --build {build} {name} 2>&1", "root").wait(guest_pci.PATIENCE)
    after = one.counts()
    grown = {k: after[k] - before[k] for k in SWAPPED + MOVED}
    print(f"{name}: {time.monotonic() - began:.0f} s, ended with {code}; pages: {grown}\n{out.strip()}", flush=True)
    return code == 0 and "not possible here" not in out.split("\n")[0] and all(grown[k] for k in ATTACKS[name])


def run(build, attacks, folder):
    """Boot the guest, and run attacks in it. returns: an exit code"""
    image = image_folder()
    shutil.copy(driver_of(image), os.path.join(folder, "virtio_blk.ko"))
    guest.sh(os.path.join(guest.HERE, "guest.sh"), "net")
    one = Guest(build, folder)
    try:
        one.boot(image)
        one.ready()
        print("the guest is up; NUMA nodes:", one.run(SETUP.format(project=PROJECT, build=build), "root").strip(), flush=True)
        held = [attack(one, build, name) for name in attacks]
    except guest.GuestError as e:
        print(f"FAILED: {e}\nconsole:\n{one.said()}", file=sys.stderr, flush=True)
        return 1
    finally:
        one.stop()
    print(f"{sum(held)} of {len(held)} attacks: the victims went on, and the guest's counts of pages grew")
    return 0 if all(held) else 1


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--build", default=os.path.join(PROJECT, "build"))
    parser.add_argument("--help", action="store_true")
    parser.add_argument("attack", nargs="*")
    args = parser.parse_args()
    if args.help:
        print(__doc__)
        return 0
    for name in args.attack:
        if name not in ATTACKS:
            parser.error(f"{name} is none of {', '.join(ATTACKS)}")
    if os.geteuid() != 0:
        print("skipped: guests on taps want root")
        return SKIPPED
    build = os.path.abspath(args.build)
    if not os.environ.get(guest.INSIDE):
        driver_of(image_folder()) # Debian's packages cannot be reached from inside the namespaces
    guest.enter()
    with tempfile.TemporaryDirectory(prefix="urnic-hostile.") as folder:
        return run(build, args.attack or list(ATTACKS), folder)


if __name__ == "__main__":
    sys.exit(main())
