# SPDX-License-Identifier: BSD-3-Clause
"""The guest of guest.sh, from Python: scripts in it, its counters, the wire to it."""
import base64
import os
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ADDRESS = {4: "10.77.0.11", 6: "fd77::b"}
HOST = {4: "10.77.0.1", 6: "fd77::1"}
GID = {4: 1, 6: 2}
AGENT = 2323
INSIDE = "URNIC_INTEROP_INSIDE" # set in the namespaces of a test
# A command that prints the counters of soft-RoCE, for parse_counters().
COUNT = "grep . /sys/class/infiniband/rxe0/ports/1/hw_counters/*"


def sh(*words):
    subprocess.run(words, check=True)


def build():
    """Make the guest's image unless the image is there."""
    sh(os.path.join(HERE, "guest-build.sh"))


def enter():
    """Start this script again in namespaces of its own; returns only inside them."""
    if os.environ.get(INSIDE):
        sh("mount", "-t", "sysfs", "sysfs", "/sys")
        sh("ip", "link", "set", "lo", "up")
        return
    # The image is made before, because Debian's packages cannot be reached from inside the namespaces.
    build()
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", "--net", "--pid", "--mount", "--fork", "--kill-child",
                          "--mount-proc", "/usr/bin/python3", *sys.argv])


def interfaces():
    """The other ends of urnic's two ports, on the guest's bridge."""
    sh("ip", "link", "add", "urnveth0", "mtu", "4200", "type", "veth", "peer", "name", "urnveth1",
       "mtu", "4200")
    sh("ip", "tuntap", "add", "dev", "urnp0", "mode", "tap", "multi_queue")
    for name in ("urnveth1", "urnp0"):
        sh("ip", "link", "set", name, "master", "urnbr0", "up")
    sh("ip", "link", "set", "urnveth0", "up")


# Only RoCEv2 is impaired. A qdisc of eth0 impairs packets that leave the guest; packets that arrive
# are redirected through ifb0, whose qdisc impairs them.
IMPAIR = """
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc del dev eth0 ingress 2>/dev/null
[ -n "{0}" ] || exit 0
set -e
[ -e /sys/class/net/ifb0 ] || modprobe ifb numifbs=1
ip link set ifb0 mtu 4200 up
tc qdisc replace dev ifb0 root netem {0}
tc qdisc add dev eth0 root handle 1: prio bands 4
tc qdisc add dev eth0 parent 1:4 handle 40: netem {0}
tc qdisc add dev eth0 handle ffff: ingress
for family in "ip ip" "ipv6 ip6"; do
	set -- $family
	tc filter add dev eth0 parent 1: protocol $1 u32 match $2 dport 4791 0xffff flowid 1:4
	tc filter add dev eth0 parent ffff: protocol $1 u32 match $2 dport 4791 0xffff \\
		action mirred egress redirect dev ifb0
done
"""


class GuestError(Exception):
    pass


class Job:
    """A script that runs in the guest, or in the one of an address."""
    CONNECT = 30 # seconds until the agent must answer

    def __init__(self, script, address=ADDRESS[4]):
        self.text = b""
        self.socket = socket.create_connection((address, AGENT), timeout=self.CONNECT)
        self.socket.sendall(base64.b64encode(script.encode()) + b"\n")

    def wait(self, timeout):
        """Returns (exit code, output); exit code None when it has not ended in time."""
        limit = time.monotonic() + timeout
        try:
            while True:
                self.socket.settimeout(max(0.01, limit - time.monotonic()))
                more = self.socket.recv(65536)
                if not more:
                    break
                self.text += more
        except TimeoutError:
            return None, self.text.decode(errors="replace")
        finally:
            self.socket.close()
        out, _, code = self.text.decode(errors="replace").rpartition("\nguest: exit ")
        if not code.strip().isdigit():
            raise GuestError(f"the guest's agent gave up; it said: {self.text!r}")
        return int(code), out


def parse_counters(text):
    return {os.path.basename(path): int(value) for path, value in
            (line.split(":") for line in text.split())}


class Guest:
    """A guest that boots at once and ends with its process namespace at the latest."""

    def __init__(self, state):
        self.env = dict(os.environ, GUEST_STATE=state)
        self.programs, self.netem = {}, ""
        self.sh("net")
        self.sh("start")

    def sh(self, *words):
        done = subprocess.run([os.path.join(HERE, "guest.sh"), *words], env=self.env,
                              capture_output=True, text=True, check=False, timeout=900)
        if done.returncode != 0:
            raise GuestError(f"guest.sh {words[0]} failed: {done.stderr}{done.stdout}")
        return done.stdout

    def run(self, script, timeout=60):
        """Run a script, which must succeed; returns its output."""
        code, out = Job(script).wait(timeout)
        if code != 0:
            raise GuestError(f"in the guest, `{script}` ended with {code}: {out}")
        return out

    def put(self, path, name):
        """Copy a program into the guest's /tmp."""
        self.programs[name] = path
        with open(path, "rb") as f:
            text = base64.encodebytes(f.read()).decode()
        self.run(f"base64 -d >/tmp/{name} <<E\n{text}E\nchmod 755 /tmp/{name}")

    def impair(self, netem):
        """Impair RoCEv2 to and from the guest from now on. netem: options of tc's netem; empty: no impairment."""
        self.netem = netem
        self.run(IMPAIR.format(netem))

    def counters(self):
        return parse_counters(self.run(COUNT))

    def alive(self):
        try:
            self.run("true", 20)
            return True
        except (GuestError, OSError):
            return False

    def again(self):
        """Boot the guest again, with its programs and impairment."""
        self.sh("stop")
        self.sh("start")
        for name, path in dict(self.programs).items():
            self.put(path, name)
        self.impair(self.netem)

    def stop(self):
        self.sh("stop")
