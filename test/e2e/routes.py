#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two urnicd in two network namespaces, with a Linux router between them: connections, datagrams and their management go
through it, IPv4 and IPv6, and a reload gives a route, or the router advertises itself; and with a wire between them, in a VLAN (doc/reference/urnicd.md
"Routes", "VLANs")."""

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import unittest

INSIDE = "URNIC_TEST_INSIDE"
sys.dont_write_bytecode = True  # no cache of urnicd_common
from urnicd_common import Nicd, SECONDS

CTL = None
HOPS = 64  # hop limit of frames that no router passed on
MADE = ("ip link add ra type veth peer name a0", "ip link add rb type veth peer name b0",
        "ip netns add a", "ip netns add b", "ip link set a0 netns a", "ip link set b0 netns b",
        "ip addr add 10.0.1.254/24 dev ra", "ip addr add fd00:1::fe/64 dev ra nodad",
        "ip addr add 10.0.2.254/24 dev rb", "ip addr add fd00:2::fe/64 dev rb nodad",
        "ip link set ra up", "ip link set rb up", "ip -n a link set a0 up", "ip -n b link set b0 up",
        "ip link add a1 type veth peer name b1", "ip link set a1 netns a", "ip link set b1 netns b",
        "ip -n a link set a1 up", "ip -n b link set b1 up",
        # Two routers, by their addresses.
        "ip addr add fe80::fd/64 dev ra nodad", "ip addr add fe80::fe/64 dev ra nodad",
        "sysctl -q net.ipv4.ip_forward=1", "sysctl -q net.ipv6.conf.all.forwarding=1")


# A switch of two ports: frames of the first have no tag, those of the second that of a VLAN, which the kernel keeps beside a frame.
RELAY = r"""
import select, socket, struct, sys
def port(name):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.bind((name, 0))
    s.setsockopt(263, 8, 1)  # SOL_PACKET, PACKET_AUXDATA
    return s
plain, tagged, vlan = port(sys.argv[1]), port(sys.argv[2]), int(sys.argv[3])
print("ready", file=sys.stderr, flush=True)
while True:
    for s in select.select([plain, tagged], [], [])[0]:
        data, extra, _, address = s.recvmsg(2048, 256)
        status, tci = struct.unpack_from("=I12xH", extra[0][2])
        if address[2] == socket.PACKET_OUTGOING:
            continue
        if s is plain:
            tagged.send(data[:12] + struct.pack("!HH", 0x8100, vlan) + data[12:])
        elif status & 0x10 and tci & 0xfff == vlan:  # TP_STATUS_VLAN_VALID
            plain.send(data)
"""


def enter():
    """Start this script again in namespaces of its own, which end with it; returns only inside them."""
    if not os.environ.get(INSIDE):
        os.environ[INSIDE] = "1"
        can = subprocess.run(["unshare", "--net", "--pid", "--mount", "--fork", "--mount-proc", "true"],
                             capture_output=True, check=False).returncode == 0
        if os.geteuid() != 0 or not can:
            print("skipped: needs root, and network namespaces")
            sys.exit(77)
        os.execvp("unshare", ["unshare", "--net", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc",
                              sys.executable, *sys.argv])
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    for line in MADE:
        subprocess.run(line.split(), check=True)


class Advertiser:
    """A router on the interface ra that says what it is told to."""

    def __init__(self, test, address):
        self.sock = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
        test.addCleanup(self.sock.close)
        self.sock.settimeout(SECONDS)
        self.index = socket.if_nametoindex("ra")
        self.sock.bind((address, 0, 0, self.index))
        self.sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, self.index)

    def advertise(self, lifetime, flags=0, prefix=None, valid=0, hops=255):
        """To all nodes; flags: 0x08: of high preference; prefix: on the link"""
        message = struct.pack("!BBHBBHII", 134, 0, 0, 64, flags, lifetime, 0, 0)
        if prefix:
            message += struct.pack("!BBBBIII16s", 3, 4, 64, 0x80, valid, valid, 0, socket.inet_pton(socket.AF_INET6, prefix))
        self.sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, hops)
        self.sock.sendto(message, ("ff02::1", 0, 0, self.index))  # the kernel makes the checksum


class Routes(Nicd):
    def setUp(self):
        super().setUp()
        self.socks = {}
        self.port = 20000

    def write(self, name, n, more, wire=0):
        path = os.path.join(self.dir.name, name + ".ini")
        self.socks[name] = os.path.join(self.dir.name, name + ".sock")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[urnicd]\nsocket = {self.socks[name]}\n{self.QUIET}idle = pause\nempty_polls = 4\n"
                    f"capture_dir = {self.dir.name}\n"
                    f"[port p0]\ndevice = net_af_packet0,iface={name}{wire}\n"
                    f"[adapter {name}]\nport = p0\nipv4 = 10.0.{n}.1/{16 if wire else 24}\n"
                    f"ipv6 = fd00:{n}::1/{16 if wire else 64}\n{more}")
        return path

    def nicd(self, name, n, more, wire=0):
        p = self.popen("ip", "netns", "exec", name, self.NICD, "-c", self.write(name, n, more, wire))
        said = p.stderr.readline()
        self.assertIn("listening at", said, said)
        return p

    def ctl(self, name, *words):
        p = subprocess.run([CTL, "--socket", self.socks[name], "--json", *words], env=self.env, capture_output=True,
                           text=True, timeout=SECONDS, check=False)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout or "[]")

    def through(self, host, *args):
        """A measurement from a to b, which meet by connection management. returns: its result"""
        self.port += 1
        listener = self.popen(self.PERF, "send_lat", "--attach", self.socks["b"], "--listen", str(self.port),
                              "--connect", "cm", "--json")
        self.assertIn("waiting for the other side", listener.stderr.readline())
        p = subprocess.run([self.PERF, "send_lat", "--attach", self.socks["a"], "--peer", f"{host}:{self.port}",
                            "--connect", "cm", "--json", "--iters", "50", "--mtu", "1024",
                            "--ip", "6" if ":" in host else "4", *args], env=self.env,
                           capture_output=True, text=True, timeout=SECONDS, check=False)
        self.assertEqual(p.returncode, 0, p.stderr)
        out, err = listener.communicate(timeout=SECONDS)
        self.assertEqual(listener.returncode, 0, out + err)
        self.assertTrue(json.loads(p.stdout)["checked"])

    def fields(self, name, show, *fields):
        """Fields of each frame of a capture that the filter `show` has."""
        p = subprocess.run(["tshark", "-r", os.path.join(self.dir.name, name), "-Y", show, "-T", "fields",
                            *(w for f in fields for w in ("-e", f))],
                           env=dict(os.environ, LC_ALL="C"), capture_output=True, text=True, timeout=SECONDS, check=True)
        return [line.split("\t") for line in p.stdout.splitlines()]

    def frames(self, name):
        """(direction, source MAC, hop limit) of each RoCEv2 frame of a capture."""
        return [(int(d, 16), mac, int(v4 or v6)) for d, mac, v4, v6 in
                self.fields(name, "infiniband", "frame.packet_flags_direction", "eth.src", "ip.ttl", "ipv6.hlim")]

    @staticmethod
    def mac(interface):
        shown = subprocess.run(["ip", "-j", "link", "show", interface], capture_output=True, check=True).stdout
        return json.loads(shown)[0]["address"]

    def hop(self, host, *args):
        """Measure, and look at b's frames: those that came have the router's MAC and one hop less."""
        self.ctl("b", "capture", "start", "p0", "x.pcapng", "snap", "128")
        self.through(host, *args)
        self.ctl("b", "capture", "stop")
        got = self.frames("x.pcapng")
        os.remove(os.path.join(self.dir.name, "x.pcapng"))
        self.assertGreaterEqual(len(got), 100)
        self.assertEqual({(mac, hops) for d, mac, hops in got if d == 1}, {(self.mac("rb"), HOPS - 1)})
        self.assertEqual({hops for d, _, hops in got if d == 2}, {HOPS})

    def test_through_a_router(self):
        b = self.nicd("b", 2, "gateway = 10.0.2.254, fd00:2::fe\n")
        a = self.nicd("a", 1, "route fd00:2::/64 = fd00:1::fe\n")
        self.hop("[fd00:2::1]")
        self.hop("[fd00:2::1]", "--ud")
        # IPv4 has no route yet; a reload brings one.
        self.assertNotIn("10.0.1.254", [r["via"] for r in self.ctl("a", "show", "route")])
        self.write("a", 1, "route fd00:2::/64 = fd00:1::fe\nroute 10.0.2.0/24 = 10.0.1.254\n")
        self.assertEqual([(c["key"], c["to"], c["when"]) for c in self.ctl("a", "reload")],
                         [("route 10.0.2.0/24", "10.0.1.254", "now")])
        self.hop("10.0.2.1")
        self.hop("10.0.2.1", "--ud")
        routes = {r["prefix"]: r for r in self.ctl("a", "show", "route")}
        self.assertEqual({p: (r["via"], r["from"]) for p, r in routes.items()},
                         {"10.0.1.0/24": ("", "prefix"), "fd00:1::/64": ("", "prefix"),
                          "10.0.2.0/24": ("10.0.1.254", "route"), "fd00:2::/64": ("fd00:1::fe", "route")})
        self.assertEqual((routes["10.0.2.0/24"]["mac"], routes["10.0.2.0/24"]["state"]), (self.mac("ra"), "reachable"))
        # The router alone was asked for, and the peer behind it never.
        neighbours = {n["address"]: n["routes"] for n in self.ctl("a", "show", "neigh")}
        self.assertEqual({n for n in neighbours if not n.startswith("fe80")}, {"10.0.1.254", "fd00:1::fe"})
        self.assertEqual(neighbours["10.0.1.254"], 1)
        self.end(a, b)

    def routes(self):
        """Routes of a that are advertised: (prefix, router, mac) in their order, and their lifetimes."""
        got = [r for r in self.ctl("a", "show", "route") if r["from"] == "ra"]
        return [(r["prefix"], r["via"]) for r in got], {r["prefix"] + r["via"]: r["lifetime_s"] for r in got}

    def log(self, event):
        with open(os.path.join(self.dir.name, "a.log"), encoding="ascii") as f:
            return [line.split(f" route {event}: ")[1].rstrip("\n") for line in f if f" route {event}: " in line]

    def logged(self, event, *lines):
        self.assertTrue(self.until(lambda: self.log(event)[-len(lines):] == list(lines)), (event, lines, self.log(event)))

    def discover(self):
        """A urnicd a that looks for routers, with a log."""
        self.QUIET = f"log = notice\nlog_file = {os.path.join(self.dir.name, 'a.log')}\n"
        return self.nicd("a", 1, "accept_ra = yes\n")

    def test_router_discovery(self):
        """A router advertises itself and is used; so is another that is better, until it ends; then time ends the first."""
        first, second = Advertiser(self, "fe80::fe"), Advertiser(self, "fe80::fd")
        heard = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
        self.addCleanup(heard.close)
        heard.settimeout(SECONDS)
        group = socket.inet_pton(socket.AF_INET6, "ff02::2") + struct.pack("=I", first.index)
        heard.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, group)
        heard.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
        b = self.nicd("b", 2, "gateway = fd00:2::fe\n")
        a = self.discover()
        asked = self.ctl("a", "show", "adapter", "a")[0]
        self.assertEqual(asked["accept_ra"], True)
        # The adapter asks; so does the kernel of its namespace, by another address.
        while True:
            data, more, _, source = heard.recvmsg(256, 256)
            if data[0] == 133 and source[0].split("%")[0] == asked["gid_link_local"]:
                break
        self.assertEqual(struct.unpack("=i", more[0][2])[0], 255)
        self.assertEqual(data[8:10], b"\1\1")
        self.assertEqual(data[10:16].hex(":"), asked["mac"])
        first.advertise(1800, prefix="fd00:9::", valid=600)
        self.assertTrue(self.until(lambda: self.routes()[0]))
        routes, left = self.routes()
        self.assertEqual(routes, [("fd00:9::/64", ""), ("::/0", "fe80::fe")])
        self.assertIn(left["::/0fe80::fe"], range(1800 - SECONDS, 1801))
        self.assertIn(left["fd00:9::/64"], range(600 - SECONDS, 601))
        self.hop("[fd00:2::1]")
        self.hop("[fd00:2::1]", "--ud")
        rows = {r["prefix"]: r for r in self.ctl("a", "show", "route")}
        self.assertEqual((rows["::/0"]["mac"], rows["::/0"]["state"]), (self.mac("ra"), "reachable"))
        self.assertEqual((rows["fd00:1::/64"]["from"], rows["fd00:1::/64"]["lifetime_s"]), ("prefix", 0))
        self.logged("come", "adapter a: router fe80::fe is advertised for 1800 s", "adapter a: prefix fd00:9::/64 is advertised for 600 s")
        self.logged("use", "adapter a uses router fe80::fe from now on")
        second.advertise(1800, flags=0x08)
        self.logged("use", "adapter a uses router fe80::fe from now on", "adapter a uses router fe80::fd from now on instead of fe80::fe")
        self.assertEqual(self.routes()[0][1:], [("::/0", "fe80::fd"), ("::/0", "fe80::fe")])
        self.through("[fd00:2::1]")
        # One that a router passed on is no word of a router of this link.
        second.advertise(0, hops=64)
        self.assertTrue(self.until(lambda: self.ctl("a", "show", "counters", "a")[0].get("drop_ra_far", 0) == 1))
        second.advertise(0)
        self.logged("go", "adapter a: router fe80::fd is gone: an advertisement ended it")
        self.through("[fd00:2::1]")
        # A gateway of the configuration goes first, and comes by a reload.
        self.write("a", 1, "accept_ra = yes\ngateway = fd00:1::fe\n")
        self.ctl("a", "reload")
        self.assertEqual([(r["via"], r["from"]) for r in self.ctl("a", "show", "route") if r["prefix"] == "::/0"],
                         [("fd00:1::fe", "gateway"), ("fe80::fe", "ra")])
        self.through("[fd00:2::1]")
        first.advertise(1)
        self.logged("go", "adapter a: router fe80::fd is gone: an advertisement ended it",
                    "adapter a: router fe80::fe is gone: no advertisement came in time")
        self.assertEqual(self.routes()[0], [("fd00:9::/64", "")])
        self.assertEqual(self.ctl("a", "show", "counters", "a")[0]["rx_ra"], 4)
        self.end(a, b)

    @unittest.skipUnless(shutil.which("radvd"), "radvd is not installed")
    def test_radvd(self):
        """The daemon that routers run: it answers the solicitation, and takes its word back when it ends."""
        conf = os.path.join(self.dir.name, "radvd.conf")
        with open(conf, "w", encoding="utf-8") as f:
            f.write("interface ra { AdvSendAdvert on; AdvDefaultPreference high; AdvLinkMTU 1400;\n"
                    "  prefix fd00:1::/64 { AdvOnLink on; AdvAutonomous off; };\n  route fd00:7::/64 { }; };\n")
        os.chmod(self.dir.name, 0o755)
        radvd = self.popen("radvd", "-n", "-m", "stderr", "-C", conf, "-p", os.path.join(self.dir.name, "radvd.pid"))
        b = self.nicd("b", 2, "gateway = fd00:2::fe\n")
        a = self.discover()
        self.assertTrue(self.until(lambda: "::/0" in [p for p, _ in self.routes()[0]]))
        self.assertEqual([p for p, _ in self.routes()[0]], ["fd00:1::/64", "::/0"])
        self.hop("[fd00:2::1]")
        radvd.terminate()
        radvd.communicate(timeout=SECONDS)
        self.assertTrue(self.until(lambda: "::/0" not in [p for p, _ in self.routes()[0]]))
        self.logged("go", f"adapter a: router {self.log('use')[0].split()[4]} is gone: an advertisement ended it")
        self.end(a, b)

    def end(self, *nicds):
        for p in nicds:
            p.terminate()
            err = p.communicate(timeout=SECONDS)[1]
            self.assertEqual((p.returncode, err), (0, ""))

    def test_vlan(self):
        """Both ends in a VLAN, by a wire: all their frames have its tag, each with the priority of its sender."""
        b = self.nicd("b", 2, "vlan = 100\npriority = 5\n", 1)
        a = self.nicd("a", 1, "vlan = 100\npriority = 3\n", 1)
        self.assertEqual([(n["vlan"], n["priority"]) for n in self.ctl("b", "show", "adapter", "b")], [(100, 5)])
        self.ctl("b", "capture", "start", "p0", "x.pcapng", "snap", "128")
        self.through("10.0.2.1")
        self.through("[fd00:2::1]", "--ud")
        self.ctl("b", "capture", "stop")
        got = self.fields("x.pcapng", "eth", "frame.packet_flags_direction", "vlan.id", "vlan.priority", "frame.protocols")
        self.assertGreaterEqual(len(got), 200)
        self.assertEqual({(int(d, 16), vlan, priority) for d, vlan, priority, _ in got}, {(1, "100", "3"), (2, "100", "5")})
        for protocol in ("ip:udp:infiniband", "ipv6:udp:infiniband"):
            self.assertTrue([p for _, _, _, p in got if protocol in p], protocol)
        # Another VLAN needs a new adapter.
        self.write("b", 2, "vlan = 101\npriority = 5\n", 1)
        self.assertEqual([(c["key"], c["to"], c["when"]) for c in self.ctl("b", "reload")], [("vlan", "101", "with the next start of urnicd")])
        self.end(a, b)

    def kernel(self, *args):
        subprocess.run(["ip", "-n", "a", *args], check=True, timeout=SECONDS)

    def vlan_interface(self, vlan):
        """Make an interface of a's kernel in a VLAN of the wire: the kernel's own or, where it has none, a veth and a
        process that puts in and takes off the tag."""
        name, far = f"v{vlan}", f"t{vlan}"
        self.addCleanup(self.kernel, "link", "del", name)
        if subprocess.run(["ip", "-n", "a", "link", "add", "link", "a1", "name", name, "type", "vlan", "id", str(vlan)],
                          capture_output=True, check=False).returncode == 0:
            return
        self.kernel("link", "add", name, "type", "veth", "peer", "name", far)
        self.kernel("link", "set", far, "up")
        relay = self.popen("ip", "netns", "exec", "a", sys.executable, "-c", RELAY, far, "a1", str(vlan))
        self.assertEqual(relay.stderr.readline(), "ready\n")

    def answers(self, *addresses):
        """The kernel of a gets answers to echo requests."""
        for address in addresses:
            # The kernel gives a neighbour up after three seconds.
            ping = ["ip", "netns", "exec", "a", "ping", "-n", "-c", "1", "-W", "5", address]
            self.assertTrue(self.until(lambda ping=ping: subprocess.run(
                ping, capture_output=True, timeout=SECONDS, check=False).returncode == 0), address)

    def test_vlans_of_a_switch(self):
        """Adapters of two VLANs and of none on one port, by a switch: a kernel's VLAN interfaces reach each, and an adapter
        drops and counts the frames of the others."""
        path = os.path.join(self.dir.name, "b.ini")
        self.socks["b"] = os.path.join(self.dir.name, "b.sock")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[urnicd]\nsocket = {self.socks['b']}\n{self.QUIET}idle = pause\nempty_polls = 4\n"
                    "[port p0]\ndevice = net_af_packet0,iface=b1\n[switch w]\nports = p0\n"
                    "[adapter red]\nswitch = w\nipv4 = 10.0.3.1\nipv6 = fd00:3::1\nvlan = 100\n"
                    "[adapter blue]\nswitch = w\nipv4 = 10.0.4.1\nvlan = 4094\npriority = 7\n"
                    "[adapter plain]\nswitch = w\nipv4 = 10.0.5.1\n")
        b = self.popen("ip", "netns", "exec", "b", self.NICD, "-c", path)
        self.assertIn("listening at", b.stderr.readline())
        for n, vlan in ((3, 100), (4, 4094)):
            self.vlan_interface(vlan)
            self.kernel("addr", "add", f"10.0.{n}.9/24", "dev", f"v{vlan}")
            self.kernel("addr", "add", f"fd00:{n}::9/64", "dev", f"v{vlan}", "nodad")
            self.kernel("link", "set", f"v{vlan}", "up")
        self.kernel("addr", "add", "10.0.5.9/24", "dev", "a1")
        self.addCleanup(self.kernel, "addr", "del", "10.0.5.9/24", "dev", "a1")
        self.answers("10.0.3.1", "fd00:3::1", "10.0.4.1", "10.0.5.1")
        # Questions of ARP are for all: each adapter saw those of the other two.
        for adapter in ("red", "blue", "plain"):
            self.assertTrue(self.until(lambda: self.ctl("b", "show", "counters", adapter)[0].get("drop_vlan", 0) >= 2))
        self.end(b)


if __name__ == "__main__":
    enter()
    CTL, Nicd.NICD, Nicd.PERF = sys.argv[1:4]
    unittest.main(argv=sys.argv[:1])
