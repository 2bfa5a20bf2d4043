#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnicd from the outside: it serves urnic-perf between two of its nodes, says what is
wrong with a configuration, stops in order, and starts over files that a killed one left."""

import glob
import grp
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

NICD = PERF = CONFIG = None
SECONDS = 60


class Urnicd(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(prefix="urnic-test.")
        self.socket = os.path.join(self.dir.name, "sub", "nicd.sock")
        self.running = []

    def tearDown(self):
        for p in self.running:
            if p.poll() is None:
                p.kill()
            p.communicate()
        self.dir.cleanup()

    def config(self, more="", socket=None):
        """two-nodes.ini with a socket of our own, and engines that yield their core."""
        path = os.path.join(self.dir.name, "c.ini")
        with open(os.path.join(CONFIG, "two-nodes.ini"), encoding="utf-8") as f:
            text = f.read()
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"[urnicd]\nsocket = {socket or self.socket}\nlog = off\nidle = pause\nempty_polls = 4\n"
                    f"{more}\n{text}")
        return path

    def start(self, *args, **kwargs):
        p = subprocess.Popen([NICD, "-c", self.config(**kwargs), *args], stderr=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
        self.running.append(p)
        line = p.stderr.readline()
        self.assertIn("listening at", line)
        return p

    def stop(self, p, sig=signal.SIGTERM):
        p.send_signal(sig)
        out, err = p.communicate(timeout=SECONDS)
        self.assertEqual(out + err, "")
        return p.returncode

    def text_of(self, path):
        """A file's text, once there is any: urnicd may write the file a moment after its first line."""
        end = time.time() + SECONDS
        while time.time() < end:
            if os.path.exists(path):
                with open(path, encoding="utf-8") as f:
                    text = f.read()
                if text:
                    return text
            time.sleep(0.01)
        return None

    def perf(self, op, *args, attach=None):
        p = subprocess.run([PERF, op, "--attach", attach or self.socket, "--json", *args],
                           capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(p.returncode, 0, p.stderr)
        r = json.loads(p.stdout)
        self.assertEqual(r["op"], op)
        self.assertTrue(r["checked"])
        return r

    def test_every_operation_between_two_nodes(self):
        p = self.start()
        for op in ("write_bw", "read_bw", "send_bw", "write_lat", "read_lat", "send_lat", "atomic_lat",
                   "atomic_bw"):
            with self.subTest(op):
                self.assertEqual(self.perf(op, "--iters", "300", "--full-check")["messages"], 300)
        self.perf("send_bw", "--iters", "3000", "--size", "64", "--qps", "40")
        self.perf("write_bw", "--iters", "20", "--size", "3M", "--nodes", "b,a")
        for op in ("write_bw", "read_bw", "send_bw", "atomic_bw"):
            self.perf(op, "--iters", "100", "--full-check", "--foreign")
        self.assertEqual(self.stop(p), 0)
        self.assertFalse(os.path.exists(os.path.dirname(self.socket)))

    def test_two_programs_at_a_time(self):
        p = self.start()
        cmd = [PERF, "write_bw", "--attach", self.socket, "--iters", "500", "--json"]
        both = [subprocess.Popen(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for _ in range(2)]
        for one in both:
            self.running.append(one)
            out, err = one.communicate(timeout=SECONDS)
            self.assertEqual(one.returncode, 0, err)
            self.assertEqual(json.loads(out)["messages"], 500)
        self.assertEqual(self.stop(p), 0)

    def test_programs_that_are_killed_disturb_nobody(self):
        p = self.start()
        for _ in range(3):
            one = subprocess.Popen([PERF, "write_bw", "--attach", self.socket, "--duration", "60"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.running.append(one)
            self.perf("send_bw", "--iters", "200")
            one.kill()
            one.wait()
            self.perf("send_bw", "--iters", "200")
        self.assertEqual(self.stop(p), 0)

    def test_the_environment_says_where(self):
        p = self.start()
        env = dict(os.environ, URNIC_SOCKET=self.socket)
        one = subprocess.run([PERF, "send_lat", "--attach", "auto", "--iters", "10"],
                             env=env, capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(one.returncode, 0, one.stderr)
        self.assertEqual(self.stop(p), 0)

    def test_nobody_there(self):
        for args, words in ((("--attach", self.socket), ("no dataplane at", self.socket)),):
            p = subprocess.run([PERF, "send_lat", *args], capture_output=True, text=True, timeout=SECONDS)
            self.assertEqual(p.returncode, 1)
            for w in words:
                self.assertIn(w, p.stderr)

    def listed(self):
        """The nodes of the adapters, in the order in which programs find them (lib/abi/socket.h)."""
        nodes = []
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.connect(self.socket)

            def ask(kind, word):
                s.send(struct.pack("=IHHII2I", 0x6e72752f, 2, kind, 0, 24, word, 0))
                a = s.recv(4096)
                return struct.unpack_from("=i", a, 16)[0], a[144:]

            _, what = ask(1, 0)  # version 0 is wrong; the answer has the right one
            self.assertEqual(ask(1, struct.unpack_from("=I", what)[0])[0], 0)
            while True:
                err, what = ask(2, len(nodes))
                if err:
                    return nodes
                nodes.append(what[32:64].rstrip(b"\0").decode())

    def test_node_of_programs_that_name_none(self):
        for more, nodes in (("", ["a", "b"]), ("node = a", ["a", "b"]), ("node = b", ["b", "a"])):
            p = self.start(more=more)
            self.assertEqual(self.listed(), nodes, more)
            self.assertEqual(self.stop(p), 0)

    def test_no_such_node(self):
        p = self.start()
        one = subprocess.run([PERF, "send_lat", "--attach", self.socket, "--nodes", "a,nobody"],
                             capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(one.returncode, 1)
        self.assertIn("'nobody'", one.stderr)
        self.assertEqual(self.stop(p), 0)

    def test_one_at_a_socket(self):
        p = self.start()
        q = subprocess.run([NICD, "-c", self.config()], capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(q.returncode, 1)
        self.assertIn("another dataplane listens here", q.stderr)
        self.perf("send_lat", "--iters", "10")
        self.assertEqual(self.stop(p), 0)

    def test_sockets_of_other_programs_stay(self):
        """urnicd does not replace a socket of another program when a path was mistyped."""
        path = os.path.join(self.dir.name, "bus")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.bind(path)
            s.listen()
            for key, words in (("control", "of another program"), ("socket", "of another program")):
                config = self.config(**({"socket": path} if key == "socket" else {"more": f"control = {path}"}))
                q = subprocess.run([NICD, "-c", config], capture_output=True, text=True, timeout=SECONDS)
                self.assertEqual(q.returncode, 1, key)
                self.assertIn(words, q.stderr)
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as c:
                    c.connect(path)

    def test_many_at_once_and_one_gets_the_socket(self):
        cmd = [NICD, "-c", self.config()]
        all_ = [subprocess.Popen(cmd, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                for _ in range(4)]
        self.running += all_
        lines = [p.stderr.readline() for p in all_]
        there = [p for p, line in zip(all_, lines) if "urnicd: 1 engine" in line]
        self.assertEqual(len(there), 1, lines)
        for p, line in zip(all_, lines):
            if p not in there:
                self.assertIn("another dataplane listens here", line)
                self.assertEqual(p.wait(timeout=SECONDS), 1)
        self.perf("send_lat", "--iters", "10")
        self.assertEqual(self.stop(there[0]), 0)
        self.assertFalse(os.path.exists(os.path.dirname(self.socket)))

    def test_the_last_to_leave_removes_the_folder(self):
        """The folder stays until the last urnicd stops, even when the one that made the folder stops first."""
        folder = os.path.dirname(self.socket)
        first = self.start()
        other = os.path.join(folder, "other.sock")
        second = subprocess.Popen([NICD, "-c", self.config(socket=other)], stderr=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        self.running.append(second)
        self.assertIn("listening at", second.stderr.readline())
        self.assertEqual(self.stop(first), 0)
        self.perf("send_lat", "--iters", "10", attach=other)
        self.assertEqual(self.stop(second), 0)
        self.assertFalse(os.path.exists(folder))

    def test_a_folder_that_was_there_stays(self):
        folder = os.path.dirname(self.socket)
        os.mkdir(folder)
        self.assertEqual(self.stop(self.start()), 0)
        self.assertEqual(os.listdir(folder), [])

    def test_many_at_once_and_one_gets_the_control_socket(self):
        """Four urnicd start at once with sockets of their own, but one control socket and one pid_file."""
        control, pid = (os.path.join(self.dir.name, name) for name in ("ctl", "pid"))
        before = set(os.listdir(self.dir.name))
        all_, sockets = [], []
        for i in range(4):
            sockets.append(os.path.join(self.dir.name, f"sub{i}", "nicd.sock"))
            config = self.config(socket=sockets[i], more=f"control = {control}\npid_file = {pid}")
            os.rename(config, f"{config}{i}")
            before.add(f"c.ini{i}")
            all_.append(subprocess.Popen([NICD, "-c", f"{config}{i}"], stderr=subprocess.PIPE, stdout=subprocess.PIPE,
                                         text=True))
        self.running += all_
        lines = [p.stderr.readline() for p in all_]
        there = [p for p, line in zip(all_, lines) if "urnicd: 1 engine" in line]
        self.assertEqual(len(there), 1, lines)
        for p, line in zip(all_, lines):
            if p not in there:
                self.assertEqual(line, f"urnicd: {control}: another dataplane listens here; stop it or give another "
                                       "path\n")
                self.assertEqual(p.wait(timeout=SECONDS), 1)
        # The one that got the control socket is undisturbed, and the others left no files.
        self.assertEqual(self.text_of(pid), f"{there[0].pid}\n")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as c:
            c.connect(control)
        attach = sockets[all_.index(there[0])]
        self.perf("send_lat", "--iters", "10", attach=attach)
        self.assertEqual(set(os.listdir(self.dir.name)) - before,
                         {"ctl", "ctl.lock", "pid", os.path.basename(os.path.dirname(attach))})
        self.assertEqual(self.stop(there[0]), 0)
        self.assertEqual(set(os.listdir(self.dir.name)), before)

    def slow_socket(self):
        """A socket whose close waits for an hour. returns: the socket, and its peer that never reads"""
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        slow = socket.create_connection(listener.getsockname())
        other, _ = listener.accept()
        listener.close()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
        slow.setblocking(False)
        with self.assertRaises(BlockingIOError):
            while True:
                slow.send(b"x" * 65536)
        return slow, other

    def stall(self, p, n):
        """Let n programs send descriptors that are slow to close. returns: sockets that must stay open"""
        keep = []
        # urnicd is stopped until all descriptors are closed here, so that its own close is the last and slow one.
        # One stop serves all programs, because a stop would interrupt a close that already waits.
        p.send_signal(signal.SIGSTOP)
        os.waitpid(p.pid, os.WUNTRACED)
        for _ in range(n):
            slow, other = self.slow_socket()
            c = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            c.connect(self.socket)
            socket.send_fds(c, [b"rubbish"], [slow.fileno()])
            slow.close()
            keep += [c, other]
        p.send_signal(signal.SIGCONT)
        return keep

    def test_what_a_program_stalls_holds_up_no_other_and_no_end(self):
        pid_file = os.path.join(self.dir.name, "pid")
        p = self.start(more=f"pid_file = {pid_file}")
        held = self.stall(p, 3)
        self.perf("send_lat", "--iters", "10", "--foreign")
        p.send_signal(signal.SIGTERM)
        out, err = p.communicate(timeout=SECONDS)
        self.assertEqual(out, "")
        self.assertIn("3 programs can't be let go", err)
        self.assertEqual(p.returncode, 0)
        self.assertEqual(os.listdir(self.dir.name), ["c.ini"])
        for s in held:
            s.close()

    def test_a_link_is_no_pid_file(self):
        path = os.path.join(self.dir.name, "pid")
        target = os.path.join(self.dir.name, "precious")
        with open(target, "w", encoding="utf-8") as f:
            f.write("keep")
        for make in (os.symlink, os.link):
            make(target, path)
            q = subprocess.run([NICD, "-c", self.config(f"pid_file = {path}")], capture_output=True, text=True,
                               timeout=SECONDS)
            self.assertEqual(q.returncode, 1)
            self.assertIn("a link, or no file", q.stderr)
            with open(target, encoding="utf-8") as f:
                self.assertEqual(f.read(), "keep")
            os.unlink(path)

    def test_a_pid_file_of_another_stays(self):
        path = os.path.join(self.dir.name, "pid")
        p = self.start(more=f"pid_file = {path}")
        self.assertEqual(self.text_of(path), f"{p.pid}\n")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"{os.getpid()}\n")
        self.assertEqual(self.stop(p), 0)
        self.assertEqual(self.text_of(path), f"{os.getpid()}\n")

    def test_a_pid_file_that_cannot_be_written_goes(self):
        disk = os.path.join(self.dir.name, "disk")
        os.mkdir(disk)
        own = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
        fill = f"mount -t tmpfs -o size=4k none {disk} && head -c 4096 /dev/zero >{disk}/all"
        if subprocess.run([*own, fill], capture_output=True, timeout=SECONDS, check=False).returncode != 0:
            self.skipTest("no file system of our own to be had")
        config = self.config(f"pid_file = {disk}/pid")
        q = subprocess.run([*own, f"{fill} && {NICD} -c {config}; echo code $?; ls {disk}"], capture_output=True,
                           text=True, timeout=SECONDS, check=False)
        self.assertIn("No space left", q.stderr)
        self.assertEqual(q.stdout.split(), ["code", "1", "all"])

    def test_two_signals_that_mean_one(self):
        """A second signal soon after SIGTERM does no harm: closing a terminal, for example, also sends SIGHUP."""
        for second in (signal.SIGHUP, signal.SIGINT):
            pid_file = os.path.join(self.dir.name, "pid")
            p = self.start(more=f"pid_file = {pid_file}")
            self.text_of(pid_file)
            p.send_signal(signal.SIGSTOP)
            os.waitpid(p.pid, os.WUNTRACED)
            p.send_signal(signal.SIGTERM)
            p.send_signal(second)
            p.send_signal(signal.SIGCONT)
            out, err = p.communicate(timeout=SECONDS)
            self.assertEqual(out + err, "")
            self.assertIn(p.returncode, (0, 128 + second))
            self.assertEqual(os.listdir(self.dir.name), ["c.ini"])

    def test_streams_that_are_closed(self):
        """When standard streams are closed, urnicd opens no file in their place that messages would go to."""
        pid_file = os.path.join(self.dir.name, "pid")
        p = subprocess.Popen([NICD, "-c", self.config(more=f"pid_file = {pid_file}")],
                             preexec_fn=lambda: [os.close(fd) for fd in (0, 1, 2)])
        self.running.append(p)
        self.assertEqual(self.text_of(pid_file), f"{p.pid}\n")
        self.assertEqual([os.readlink(f"/proc/{p.pid}/fd/{fd}") for fd in (0, 1, 2)], ["/dev/null"] * 3)
        p.terminate()
        self.assertEqual(p.wait(timeout=SECONDS), 0)

    def test_killed_and_started_again(self):
        p = self.start()
        p.kill()
        p.wait()
        self.assertTrue(os.path.exists(self.socket))
        q = self.start()
        self.perf("send_lat", "--iters", "10")
        self.assertEqual(self.stop(q), 0)

    def test_signals_and_pid_file(self):
        pid = os.path.join(self.dir.name, "pid")
        p = self.start(more=f"pid_file = {pid}")
        self.assertEqual(self.text_of(pid), f"{p.pid}\n")
        self.assertEqual(self.stop(p, signal.SIGINT), 128 + signal.SIGINT)
        self.assertFalse(os.path.exists(pid))
        self.assertFalse(os.path.exists(self.socket))

    def test_mode_of_the_socket(self):
        p = self.start(more="mode = 0660")
        self.assertEqual(os.stat(self.socket).st_mode & 0o777, 0o660)
        self.assertEqual(self.stop(p), 0)

    def test_the_folder_lets_in_who_may_use_the_sockets(self):
        name = grp.getgrgid(os.getgid()).gr_name
        before = os.umask(0o077)
        self.addCleanup(os.umask, before)
        for more, mode in (("", 0o700), ("mode = 0666", 0o755), (f"control_group = {name}", 0o755)):
            p = self.start(more=more)
            self.assertEqual(os.stat(os.path.dirname(self.socket)).st_mode & 0o777, mode, more)
            self.assertEqual(self.stop(p), 0)

    def test_group_of_the_socket(self):
        name = grp.getgrgid(65534 if os.getuid() == 0 else os.getgid()).gr_name
        for more, mode in ((f"group = {name}", 0o660), (f"group = {name}\nmode = 0620", 0o620)):
            p = self.start(more=more)
            st = os.stat(self.socket)
            self.assertEqual((st.st_mode & 0o777, grp.getgrgid(st.st_gid).gr_name), (mode, name))
            # The control socket stays private: group and mode are only for the socket of programs.
            self.assertEqual(os.stat(self.socket + ".ctl").st_mode & 0o777, 0o600)
            self.assertEqual(self.stop(p), 0)

    def test_ready_configurations_have_no_mistakes(self):
        files = sorted(glob.glob(os.path.join(CONFIG, "*.ini")))
        self.assertGreaterEqual(len(files), 6)
        for f in files:
            p = subprocess.run([NICD, "-c", f, "--check"], capture_output=True, text=True, timeout=SECONDS)
            self.assertEqual((p.returncode, p.stderr), (0, ""), f)

    def test_mistakes(self):
        path = os.path.join(self.dir.name, "bad.ini")
        with open(path, "w", encoding="utf-8") as f:
            f.write("[adapter a]\nnode = x\nswitch = gone\nipv4 = 10.0.0.300\n[prot p]\n")
        for more in ((), ("--check",)):
            p = subprocess.run([NICD, "-c", path, *more], capture_output=True, text=True, timeout=SECONDS)
            self.assertEqual(p.returncode, 2)
            for line in (3, 4, 5):
                self.assertIn(f"{path}:{line}: ", p.stderr)

    def test_many_mistakes(self):
        """Ten are said, and how many more there are."""
        path = os.path.join(self.dir.name, "bad.ini")
        for n, more in ((10, ""), (11, "urnicd: and 1 mistake more\n"), (100, "urnicd: and 90 mistakes more\n"),
                        (300, "urnicd: and 290 mistakes more\n")):
            with open(path, "w", encoding="utf-8") as f:
                f.write("[port p]\ndevice = net_null0\n[adapter a]\nport = p\n" + "nonsense = 1\n" * n)
            p = subprocess.run([NICD, "-c", path, "--check"], capture_output=True, text=True, timeout=SECONDS)
            self.assertEqual(p.returncode, 2)
            lines = p.stderr.splitlines(keepends=True)
            self.assertTrue(all(line.startswith(f"{path}:{i + 5}: ") for i, line in enumerate(lines[:10])), p.stderr)
            self.assertEqual("".join(lines[10:]), more)

    def test_bridge_as_device(self):
        path = os.path.join(self.dir.name, "bridge.ini")
        for name, kind, words in (("du7", "dummy", "net_af_packet0,iface=du7"),
                                  ("br7", "bridge", "ip link set urn0 master br7")):
            with open(path, "w", encoding="utf-8") as f:
                f.write(f"[port p]\ndevice = {name}\n[adapter a]\nport = p\n")
            p = subprocess.run(["unshare", "-rn", "sh", "-c", f"ip link add {name} type {kind} && exec {NICD} -c {path} --check"],
                               capture_output=True, text=True, timeout=SECONDS)
            if "Unknown device type" in p.stderr:
                self.skipTest(f"this kernel has no interfaces of type {kind}")
            self.assertEqual(p.returncode, 2, p.stderr)
            self.assertIn(f"{path}:2: ", p.stderr)
            self.assertIn(words, p.stderr)

    def test_usage(self):
        for args, code, words in (((), 2, "give a configuration"), (("-c",), 2, "--help"),
                                  (("--nonsense",), 2, "--help"), (("-c", "x", "y"), 2, "'y'"),
                                  (("-c", "/nowhere"), 2, "/nowhere"), (("--help",), 0, "Usage"),
                                  (("--version",), 0, "urnicd"), (("--help-config",), 0, "[adapter")):
            p = subprocess.run([NICD, *args], capture_output=True, text=True, timeout=SECONDS)
            self.assertEqual(p.returncode, code, args)
            self.assertIn(words, p.stdout + p.stderr)


if __name__ == "__main__":
    NICD, PERF, CONFIG = map(os.path.abspath, sys.argv[1:4])
    del sys.argv[1:4]
    unittest.main()
