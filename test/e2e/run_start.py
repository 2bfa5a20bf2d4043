#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urnic-run --start: a urnicd for the time of one command (doc/reference/urnic-run.md).

usage: run_start.py urnicd urnic-run CONFIG_FOLDER [TEST...]"""

import fcntl
import glob
import os
import signal
import subprocess
import sys
import termios
import unittest

import dropin_common
import urnicd_common

START = ("--start", "two-nodes", "--")


class Start(urnicd_common.Nicd):
    RUN = None  # set by the script

    def setUp(self):
        super().setUp()
        # LD_LIBRARY_PATH has a folder of others, which is to stay.
        self.env.update(RUN=self.RUN, LD_LIBRARY_PATH="/else")
        for name in ("URNIC_SOCKET", "URNIC_NODE"):
            self.env.pop(name, None)

    def tearDown(self):
        try:
            self.assertTrue(self.until(lambda: os.listdir(self.run) == [] and self.nicds() == []),
                            (os.listdir(self.run), self.nicds()))
        finally:
            for pid in self.nicds():
                os.kill(pid, signal.SIGKILL)
            super().tearDown()

    def nicds(self):
        """The urnicd of this test's folder."""
        found = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(path, "rb") as f:
                    words = f.read().split(b"\0")
            except OSError:
                continue  # ended
            if words[0] == b"urnicd" and self.run.encode() in b" ".join(words):
                found.append(int(path.split("/")[2]))
        return found

    def start(self, *args, **env):
        p = subprocess.Popen([self.RUN, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env={**self.env, **env})
        self.running.append(p)
        return p

    def ends(self, p):
        out, err = p.communicate(timeout=dropin_common.SECONDS)
        return p.returncode, out, err

    def all(self, *args, **env):
        return self.ends(self.start(*args, **env))

    def test_command(self):
        """The command finds both nodes, each program in it its own; then all is gone."""
        code, out, err = self.all(*START, "sh", "-c",
                                  'ibv_devices; "$RUN" --node b ibv_devices; echo "$URNIC_SOCKET"; ls "$XDG_RUNTIME_DIR"')
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"(?s)\n +a0 .*\n +b0 .*-\n +b0 ")
        *_, path, folder = out.splitlines()
        self.assertEqual(path, f"{self.run}/{folder}/nicd.sock")
        self.assertEqual(os.listdir(self.run), [])
        self.assertEqual(self.nicds(), [])

    def test_traffic(self):
        port = dropin_common.free_port()
        code, out, err = self.all(*START, "sh", "-c", f"""
            "$RUN" --node a ibv_rc_pingpong -c -g 1 -n 100 -p {port} & server=$!
            for i in $(seq 100); do
                "$RUN" --node b ibv_rc_pingpong -c -g 1 -n 100 -p {port} 127.0.0.1 && break
                sleep 0.1
            done
            wait $server""")
        self.assertEqual(code, 0, (out, err))
        self.assertEqual(out.count("100 iters in"), 2, (out, err))

    def test_exit(self):
        """The exit code is the command's, and its end by a signal, too."""
        self.assertEqual(self.all(*START, "sh", "-c", "exit 7"), (7, "", ""))
        self.assertEqual(self.all(*START, "sh", "-c", "kill -9 $$"), (-9, "", ""))
        self.assertEqual(self.all(*START, "sh", "-c", "kill -TERM $$"), (-15, "", ""))
        code, _, err = self.all(*START, "/nowhere/program")
        self.assertEqual(code, 127)
        self.assertIn("urnic-run: /nowhere/program can't be run", err)
        code, _, err = self.all(*START, "/dev/null")
        self.assertEqual(code, 126)

    def test_signal(self):
        """A signal goes to the command, and urnicd lives until the command has ended."""
        for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            with self.subTest(signal=sig.name):
                p = self.start(*START, "sh", "-c", f"trap 'sleep 0.3; ibv_devices; exit 9' {sig.name[3:]}; echo ready; "
                               "while :; do sleep 0.05; done")
                self.assertEqual(p.stdout.readline(), "ready\n")
                p.send_signal(sig)
                code, out, err = self.ends(p)
                self.assertEqual((code, err), (9, ""))
                self.assertRegex(out, r"\n +a0 .*\n +b0 ")

    def test_terminal(self):
        """Ctrl-C of a terminal comes to the command once, and not to urnicd."""
        terminal, end = os.openpty()

        def own_terminal():
            os.setsid()
            fcntl.ioctl(end, termios.TIOCSCTTY, 0)

        try:
            # A signal that is pending already is lost, and shells merge those that come before a trap runs.
            p = subprocess.Popen([self.RUN, *START, sys.executable, "-c", "import signal, subprocess\n"
                                  "print(signal.pthread_sigmask(signal.SIG_BLOCK, [2]), flush=True)\n"
                                  "print(signal.sigwaitinfo([2]).si_code > 0, signal.sigtimedwait([2], 0.5), flush=True)\n"
                                  "subprocess.run('ibv_devices')"], env=self.env,
                                 stdin=end, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=own_terminal)
            self.running.append(p)
            self.assertEqual(p.stdout.readline(), "set()\n")
            os.write(terminal, b"\x03")
            code, out, err = self.ends(p)
            self.assertEqual((code, err), (0, ""))
            self.assertRegex(out, r"\ATrue None\n(?s:.*)\n +a0 .*\n +b0 ")
        finally:
            os.close(terminal)
            os.close(end)

    def test_killed(self):
        """urnic-run is killed: the command dies, urnicd ends and the folder goes."""
        p = self.start(*START, "sh", "-c", "echo $$; exec sleep 1000")
        command = int(p.stdout.readline())
        self.assertEqual(len(self.nicds()), 1)
        p.kill()
        self.assertEqual(self.ends(p)[0], -9)
        self.assertTrue(self.until(lambda: os.listdir(self.run) == [] and self.nicds() == []))
        self.assertTrue(self.until(lambda: not os.path.exists(f"/proc/{command}")))

    def test_urnicd_killed(self):
        """urnicd is killed: the command goes on, and afterwards people hear of it."""
        p = self.start(*START, "sh", "-c", f"echo ready; while [ ! -e {self.dir.name}/on ]; do sleep 0.05; done; echo on")
        self.assertEqual(p.stdout.readline(), "ready\n")
        os.kill(self.nicds()[0], signal.SIGKILL)
        self.assertTrue(self.until(lambda: self.nicds() == []))
        with open(os.path.join(self.dir.name, "on"), "w", encoding="utf-8"):
            pass
        code, out, err = self.ends(p)
        self.assertEqual((code, out), (1, "on\n"))
        self.assertIn("urnic-run: urnicd ended before the command\n", err)
        self.assertIn("the last messages of urnicd:\nurnicd: 1 engine, 2 adapters, listening at", err)

    def test_several(self):
        """Several at once, each with nodes of its own."""
        # Each waits until all of them have looked.
        wait = ('ibv_devices >/dev/null || exit 1; : >"$D/$N"; for i in $(seq 1000); do '
                '[ "$(ls "$D" | wc -l)" = 4 ] && break; sleep 0.05; done; "$RUN" -n b ibv_devinfo | grep -c hca_id; '
                'echo "$URNIC_SOCKET"')
        folder = os.path.join(self.dir.name, "here")
        os.mkdir(folder)
        all_of = [self.start(*START, "sh", "-c", wait, D=folder, N=str(i)) for i in range(4)]
        got = [self.ends(p) for p in all_of]
        for code, out, err in got:
            self.assertEqual((code, out.splitlines()[0], err), (0, "1", ""))
        self.assertEqual(len({out for _, out, _ in got}), 4)

    def test_inside(self):
        """urnicd has the system's libraries, even when urnic-run is itself on urnic; other folders stay."""
        look = ("exec 2>/dev/null; for p in /proc/[0-9]*; do tr '\\0' '\\n' 2>/dev/null <$p/cmdline | grep -qxF \"$URNIC_SOCKET\" && "
                "tr '\\0' '\\n' <$p/environ | grep ^LD_ && grep -q libibverbs $p/maps && grep lib/dropin $p/maps; done; "
                "echo looked")
        code, out, err = self.all("--sockets", "--verbs", *START, self.RUN, "--sockets", "--verbs", *START, "bash", "-c", look)
        self.assertEqual((code, out, err), (0, "LD_LIBRARY_PATH=/else\nlooked\n", ""))

    def test_file(self):
        """The path of a file: its socket, control socket and PID file are not used."""
        with open(os.path.join(self.CONFIG, "two-nodes.ini"), encoding="utf-8") as f:
            text = f.read()
        path = os.path.join(self.dir.name, "own.ini")
        with open(path, "w", encoding="utf-8") as f:
            f.write("[urnicd]\nsocket = /nowhere/s\ncontrol = /nowhere/c\npid_file = /nowhere/p\n" + text.replace("a0", "zz"))
        code, out, err = self.all("--start", path, "ibv_devices")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"\n +zz .*\n +b0 ")

    def test_mistakes(self):
        """The reason is told, nothing runs, and nothing is left."""
        def fails(want, *args, code=1, **env):
            got, out, err = self.all(*args, **env)
            self.assertEqual((got, out), (code, ""), err)
            self.assertRegex(err, want)
            self.assertEqual(os.listdir(self.run), [])
        fails(r"no configuration nowhere\.ini of urnic's", "--start", "nowhere", "--", "echo", "run")
        fails(r"/nowhere/c\.ini can't be read: No such file", "--start", "/nowhere/c.ini", "--", "echo", "run")
        bad = os.path.join(self.dir.name, "bad.ini")
        with open(bad, "w", encoding="utf-8") as f:
            f.write("[adapter a0]\nswicth = wire\n[switch wire]\n")
        fails(r"(?s)urnicd -c \S*bad\.ini ended at its start\n.*the last messages of urnicd:\n.*bad\.ini:2: swicth", "--start", bad,
              "--", "echo", "run")
        fails("no node or adapter 'nowhere'", "--node", "nowhere", *START, "echo", "run")
        fails("no node or adapter 'nowhere', which URNIC_NODE names: it has ", *START, "echo", "run", URNIC_NODE="nowhere")
        fails("give no --socket", "--socket", "/s", *START, "echo", "run", code=2)
        fails("no PROGRAM", *START, code=2)
        self.assertIn("--start", self.all("--help")[1])


if __name__ == "__main__":
    # A shell can't trap what was ignored when it began, as nohup and shells' background jobs have it.
    for ignored in (signal.SIGHUP, signal.SIGINT):
        signal.signal(ignored, signal.SIG_DFL)
    Start.NICD, Start.RUN, Start.CONFIG = map(os.path.abspath, sys.argv[1:4])
    dropin_common.ordinary_user(Start.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=2)
