# SPDX-License-Identifier: BSD-3-Clause
"""Guests that run urnicd on emulated network cards behind an emulated IOMMU, by qemu's software emulation (guest-pci-init.sh).

A guest has one interface that stays with the kernel, for the agent, and cards behind PCI Express ports: the card that is
`n` in the list has the PCI address 0000:0n:00.0."""
import json
import os
import shlex
import socket
import subprocess
import time

import guest

USER = "alice"
PATIENCE = 900 # seconds; a guest alone boots in 15, and does most in a second
# Offloads of the kernel's would make frames that are on no wire.
PLAIN = "csum=off,gso=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ufo=off,host_tso4=off,host_tso6=off,host_ufo=off"
CARDS = {
    "virtio": "virtio-net-pci,disable-legacy=on,iommu_platform=on,mq=on,rss=on,vectors=8," + PLAIN,
    "e1000e": "e1000e",
    "vmxnet3": "vmxnet3",
}


def sh(*words):
    subprocess.run(words, check=True)


def bridge(name, address, mtu=9000):
    """An Ethernet segment of cards; its address is the router's. address: with the length of the prefix, or None"""
    sh("ip", "link", "add", name, "type", "bridge", "mcast_snooping", "0")
    sh("ip", "link", "set", name, "mtu", str(mtu), "up")
    if address:
        sh("ip", "addr", "add", address, "dev", name)


class Card:
    """An emulated network card: its place, segment and MAC address."""

    def __init__(self, kind, segment, slot, mac):
        self.kind, self.segment, self.slot, self.mac = kind, segment, slot, mac
        self.address = f"0000:{slot:02x}:00.0"
        self.id = f"card{slot}"
        self.tap = f"urn{mac[-2:]}{slot}"

    def options(self):
        """Words of qemu's command line; makes the card's tap."""
        queues = 2 if self.kind == "virtio" else 1
        sh("ip", "tuntap", "add", "dev", self.tap, "mode", "tap", *(["multi_queue"] if queues > 1 else []))
        sh("ip", "link", "set", self.tap, "mtu", "9000", "txqueuelen", "10000", "master", self.segment, "up")
        return ["-netdev", f"tap,id=net{self.slot},ifname={self.tap},script=no,downscript=no,vhost=off,queues={queues}",
                "-device", f"{CARDS[self.kind]},id={self.id},netdev=net{self.slot},mac={self.mac},bus=port{self.slot},romfile="]


class PciJob(guest.Job):
    """A job that others wait for before it ends."""
    CONNECT = PATIENCE

    def until(self, words, timeout=PATIENCE):
        """Wait for words of its output."""
        end = time.monotonic() + timeout
        while words.encode() not in self.text:
            self.socket.settimeout(max(0.01, end - time.monotonic()))
            try:
                more = self.socket.recv(65536)
            except TimeoutError:
                more = b""
            if not more:
                raise guest.GuestError(f"a program did not say `{words}`: {self.text.decode(errors='replace')}")
            self.text += more


class PciGuest:
    """A guest that boots from boot() on, and is there once ready() has returned."""
    MACHINE = ["-m", "1536", "-smp", "3"] # words of qemu's command line: memory, processors, and what else a kind of guest has

    def __init__(self, name, number, cards, build, folder):
        """number: of the guest, 1 to 9. cards: {slot: (kind, segment)}. folder: for console and monitor"""
        self.name, self.address = name, f"10.77.0.{20 + number}"
        self.mac = f"02:77:00:00:01:{number:02x}"
        self.cards = {slot: Card(kind, segment, slot, f"02:04:00:00:{slot:02x}:{number:02x}")
                      for slot, (kind, segment) in cards.items()}
        self.build, self.folder = build, folder
        self.console = os.path.join(folder, f"{name}.console")
        self.qmp_path = os.path.join(folder, f"{name}.qmp")
        self.qemu = self.monitor = None

    def boot(self, image):
        """image: folder of the guest's kernel and files, as guest-build.sh prints it"""
        tap = f"urnpci{self.mac[-1]}"
        sh("ip", "tuntap", "add", "dev", tap, "mode", "tap")
        sh("ip", "link", "set", tap, "master", "urnbr0", "up")
        ports = [word for slot in range(1, max(self.cards, default=0) + 1) for word in
                 ("-device", f"pcie-root-port,id=port{slot},chassis={slot},slot={slot},bus=pcie.0,addr={15 + slot:x}")]
        cards = [word for card in self.cards.values() for word in card.options()]
        self.qemu = subprocess.Popen(
            ["qemu-system-x86_64", "-name", self.name, "-accel", "tcg,tb-size=256", "-cpu", "max",
             "-M", "q35,usb=off,vmport=off,kernel-irqchip=split", "-device", "intel-iommu,intremap=on,aw-bits=48",
             *self.MACHINE, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
             "-serial", f"file:{self.console}", "-qmp", f"unix:{self.qmp_path},server=on,wait=off",
             "-kernel", f"{image}/kernel", "-initrd", f"{image}/root",
             "-fsdev", "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap",
             "-device", "virtio-9p-pci,fsdev=host,mount_tag=host", "-device", "virtio-rng-pci",
             "-netdev", f"tap,id=own,ifname={tap},script=no,downscript=no,vhost=off",
             "-device", f"virtio-net-pci,netdev=own,mac={self.mac},romfile=,{PLAIN}", *ports, *cards,
             # An emulated processor of a busy machine may not see a timer's ticks in the time that Linux gives them.
             "-append", "console=ttyS0 quiet panic=-1 net.ifnames=0 mitigations=off intel_iommu=on no_timer_check rdinit=/pci-init "
             f"GUEST_IP4={self.address}/24 GUEST_BUILD={self.build}"], stdin=subprocess.DEVNULL)

    def said(self):
        """All that the console has said; qemu makes its file some time after its start."""
        if not os.path.exists(self.console):
            return ""
        with open(self.console, encoding="utf-8", errors="replace") as f:
            return f.read()

    def ready(self):
        end = time.monotonic() + PATIENCE
        while "guest: ready" not in self.said():
            if self.qemu.poll() is not None or "guest: failed" in self.said() or time.monotonic() > end:
                raise guest.GuestError(f"{self.name} has not booted; its console:\n{self.said()}")
            time.sleep(0.1)

    def start(self, script, user=USER):
        """A script that bash runs for a user who has logged in, in the project's folder. returns: PciJob"""
        words = f"cd ~{USER}/urnic; {script}"
        if user == "root":
            words = f"export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root; bash -c {shlex.quote(words)}"
        else:
            # pam_limits gives the user the limits of a login. The agent's own are without bounds.
            words = f"export PATH=/usr/bin:/bin; ulimit -l 8192; su - {user} -c {shlex.quote(words)}"
        return PciJob(words, self.address)

    def run(self, script, user=USER, timeout=PATIENCE):
        """Run a script, which must succeed; returns its output."""
        code, out = self.start(script, user).wait(timeout)
        if code != 0:
            raise guest.GuestError(f"on {self.name}, {user}'s `{script}` ended with {code}: {out}")
        return out

    def ask(self, command, **arguments):
        """One command to qemu's monitor."""
        if self.monitor is None:
            link = socket.socket(socket.AF_UNIX)
            link.connect(self.qmp_path)
            self.monitor = link.makefile("rw")
            self.monitor.readline()
            self.ask("qmp_capabilities")
        self.monitor.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.monitor.flush()
        while True:
            answer = json.loads(self.monitor.readline())
            if "error" in answer:
                raise guest.GuestError(f"the monitor of {self.name} refuses {command}: {answer['error']}")
            if "return" in answer:
                return answer["return"]

    def set_link(self, slot, up):
        self.ask("set_link", name=self.cards[slot].id, up=up)

    def stop(self):
        if self.qemu is not None:
            self.qemu.kill()
            self.qemu.wait()
