# SPDX-License-Identifier: BSD-3-Clause
"""Two nodes with a virtual device each, above two adapters: four urnicd on one switch (FO-5)."""

import os
import signal
import subprocess
import time

import dropin_common
import urnicd_common

# Adapters: the primary and the backup of a, and of b.
ADAPTERS = ("ap", "as", "bp", "bs")


class Session(urnicd_common.Nicd):
    RUN = CTL = SWITCH = None  # set by the script
    SILENCE = 30000 # ms: adapters are not lost because the machine is busy

    def setUp(self):
        super().setUp()
        self.switches = self.begin_switches()
        # All at once, because each waits more than it computes.
        self.nicd = {name: self.launch(name=name) for name in ADAPTERS}
        for p in self.nicd.values():
            self.listens(p)
        self.assertTrue(self.until(lambda: all(self.linked(name) for name in ADAPTERS)))

    def begin_switches(self):
        """Start the switch of all adapters. returns: the switches, when adapters can be plugged in"""
        switch = self.popen(self.SWITCH, *self.ports(), cwd=self.dir.name)
        self.assertTrue(self.until(lambda: all(os.path.exists(self.path(name, "memif")) for name in ADAPTERS)))
        return [switch]

    def path(self, name, what):
        return os.path.join(self.dir.name, f"{name}.{what}")

    def ports(self):
        for name in ADAPTERS:
            yield from ("--port", f"{name}=memif:{self.path(name, 'memif')}")

    FIXED = False # adapters have the same MAC address in each life, as hardware does
    limits = {} # by adapter: lines of the section [limits]

    def config(self, name=None, **lines):
        path = self.path(name, "ini")
        mac = f",mac=02:00:00:00:00:{ADAPTERS.index(name) + 1:02x}" if self.FIXED else ""
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[urnicd]\nsocket = {self.path(name, 'sock')}\nlog = off\nidle = pause\nempty_polls = 4\n"
                    f"[port p0]\ndevice = net_memif0,role=client,socket={self.path(name, 'memif')}{mac}\n"
                    f"[adapter {name}]\nnode = {name[0]}\nport = p0\nipv4 = 10.0.0.{ADAPTERS.index(name) + 1}\n")
            if name in self.limits:
                f.write(f"[limits]\n{self.limits[name]}\n")
        return path

    def begin(self, name):
        return self.start(name=name)[0]

    def linked(self, name):
        """True when an adapter's port is connected to the switch."""
        ports = dropin_common.Dropin.show(self.at(name), "port")
        return all(port["link"] for port in ports)

    def at(self, name):
        """The test as Dropin.show() wants it, with one urnicd's socket."""
        return type("At", (), {"CTL": self.CTL, "env": dict(self.env, URNIC_SOCKET=self.path(name, "sock"))})

    def tearDown(self):
        for p in self.running[:]:
            if p not in self.nicd.values() and p not in self.switches:
                p.kill()
                p.communicate()
                self.running.remove(p)
        # The clients of the switches go first. Objects of programs that have ended are taken back before: on a busy machine
        # that takes longer than a urnicd waits when it ends.
        alive = [p for p in self.nicd.values() if p.poll() is None]
        for p in alive:
            p.send_signal(signal.SIGCONT) # a test that failed may have left it stopped
        end = time.monotonic() + 20
        for name, p in self.nicd.items():
            while p in alive and time.monotonic() < end and not self.is_alone(name):
                time.sleep(0.05)
        for p in alive:
            p.terminate()
        for p in self.nicd.values():
            if p in alive:
                out, err = p.communicate(timeout=dropin_common.SECONDS)
                self.assertEqual((p.returncode, self.complaints(err)), (0, ""), out)
            self.running.remove(p)
        for switch in self.switches:
            switch.terminate()
            switch.communicate(timeout=dropin_common.SECONDS)
            self.running.remove(switch)
        super().tearDown()

    def is_alone(self, name):
        """True when an adapter's urnicd has no programs, or says nothing any more."""
        try:
            at = self.at(name)
            at.env["URNIC_TIMEOUT"] = "5"
            return not dropin_common.Dropin.show(at, "client")
        except subprocess.CalledProcessError:
            return True

    def complaints(self, err):
        """Find the words of a urnicd that has ended which are a mistake. returns: these"""
        return err

    def device(self, node):
        """The value of URNIC_SESSION for a node."""
        return ",".join(f"{self.path(node + which, 'sock')}:{node}{which}" for which in "ps")

    def on(self, node, *command, plain=False, stdin=False, which="p"):
        """Start a program on a node, with the virtual device, or plain: with the primary or another adapter alone."""
        env = dict(self.env, URNIC_SOCKET=self.path(node + which, "sock"))
        if not plain:
            env["URNIC_SESSION"] = self.device(node)
            env["URNIC_SESSION_SILENCE"] = str(self.SILENCE)
        old, self.env = self.env, env
        try:
            return self.popen(self.RUN, "--node", node, *command, **({"stdin": subprocess.PIPE} if stdin else {}))
        finally:
            self.env = old

    def ends(self, p):
        """Wait for a program's end. returns: its exit code and output"""
        out, err = p.communicate(timeout=dropin_common.SECONDS)
        self.running.remove(p)
        return p.returncode, out + err
