#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two urnicd in two network namespaces, with a Linux router between them: connections, datagrams and their management go
through it, IPv4 and IPv6, and a reload gives a route; and with a wire between them, in a VLAN (doc/reference/urnicd.md
"Routes", "VLANs")."""

import json
import os
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
