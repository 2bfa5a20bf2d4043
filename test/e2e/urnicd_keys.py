#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Keys of [urnicd] and [eal] that concern DPDK, and their effects seen from outside."""

import glob
import os
import signal
import stat
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True  # no cache of urnicd_common
from urnicd_common import Nicd


class Keys(Nicd):
    def files(self):
        """Paths of all files and folders below the folder of runtime files."""
        found = []
        for at, dirs, files in os.walk(self.run):
            found += [os.path.relpath(os.path.join(at, f), self.run) for f in dirs + files]
        return found

    def test_runtime_files_are_private(self):
        p, _ = self.start()
        self.assertEqual([f for f in os.listdir(self.run) if not f.startswith("urnic-rt-")], [])
        self.assertTrue(any(f.endswith("/dpdk/urnic/dpdk_telemetry.v2") for f in self.files()))
        self.assertEqual(self.stop(p)[0], 0)

    def test_file_prefix(self):
        p, _ = self.start(eal="file_prefix = nic-7")
        self.assertIn("dpdk/nic-7/config", self.files())
        self.assertIn("dpdk/nic-7/dpdk_telemetry.v2", self.files())
        # Another urnicd with the same prefix does not start, and removes no file of the first.
        q = subprocess.run([self.NICD, "-c", self.config(daemon=f"pid_file = {self.dir.name}/pid",
                                                         eal="file_prefix = nic-7")],
                           env=self.env, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(q.returncode, 1, q.stderr)
        self.assertIn("nic-7", q.stderr)
        self.assertIn("dpdk/nic-7/config", self.files())
        self.perf("send_lat", "--iters", "10")
        self.assertEqual(self.stop(p)[0], 0)

    def test_file_prefix_after_a_kill(self):
        p, _ = self.start(eal="file_prefix = nic-7")
        p.kill()
        p.wait()
        self.assertIn("dpdk/nic-7/config", self.files())
        p, _ = self.start(eal="file_prefix = nic-7")
        self.assertEqual(self.stop(p)[0], 0)

    def test_neighbours_in_the_folder_stay(self):
        other = os.path.join(self.run, "dpdk", "other")
        os.makedirs(other)
        p, _ = self.start(eal="file_prefix = nic-7")
        p.send_signal(signal.SIGTERM)
        p.communicate(timeout=60)
        self.assertEqual(self.files(), ["dpdk", "dpdk/other"])

    def test_a_failed_start_leaves_nothing(self):
        q = subprocess.run([self.NICD, "-c", self.config(eal="file_prefix = x\nextra = --no-such-thing")],
                           env=self.env, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(q.returncode, 1)
        self.assertIn("DPDK does not start", q.stderr)
        self.assertEqual(self.files(), [])

    def test_telemetry_off(self):
        p, _ = self.start(daemon="telemetry = no")
        self.assertFalse([f for f in self.files() if "telemetry" in f])
        self.assertEqual(self.stop(p)[0], 0)

    def test_log_level(self):
        p, said = self.start()
        self.assertEqual(said, "")
        self.assertEqual(self.stop(p), (0, ""))
        p, said = self.start(daemon="log_level = info")
        self.assertIn("EAL: Detected CPU lcores", said)
        self.assertEqual(self.stop(p)[0], 0)

    def test_cores(self):
        """Every thread of the process, also DPDK's, runs on the given core."""
        cpu = max(os.sched_getaffinity(0))
        p, _ = self.start(eal=f"cores = {cpu}")
        alone = len(os.listdir(f"/proc/{p.pid}/task"))
        self.popen(self.PERF, "write_bw", "--attach", self.socket, "--duration", "60", "--foreign")
        # Each of the program's two clients has a worker for its foreign memory.
        self.assertTrue(self.until(lambda: len(os.listdir(f"/proc/{p.pid}/task")) >= alone + 2))
        for task in glob.glob(f"/proc/{p.pid}/task/*"):
            self.assertEqual(os.sched_getaffinity(int(os.path.basename(task))), {cpu}, task)
        self.assertEqual(self.stop(p)[0], 0)

    def test_cores_that_are_not_there(self):
        free = [c for c in range(128) if c not in os.sched_getaffinity(0)]
        q = subprocess.run([self.NICD, "-c", self.config(eal=f"cores = {free[-1]}")],
                           env=self.env, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(q.returncode, 1)
        self.assertIn("[eal] cores: this process may run on none of them", q.stderr)

    def test_capture_dir(self):
        q = subprocess.run([self.NICD, "-c", self.config(daemon="capture_dir = /nowhere")],
                           env=self.env, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(q.returncode, 1)
        self.assertIn("capture_dir /nowhere: No such file", q.stderr)
        self.assertEqual(self.files(), [])

    def test_sigterm_under_load(self):
        """urnicd ends in order while a program measures, and leaves no file."""
        p, _ = self.start(eal="file_prefix = busy")
        perf = self.popen(self.PERF, "write_bw", "--attach", self.socket, "--duration", "60")
        self.assertTrue(self.until(lambda: any(
            stat.S_ISSOCK(os.stat(f"/proc/{perf.pid}/fd/{fd}").st_mode)
            for fd in os.listdir(f"/proc/{perf.pid}/fd") if os.path.exists(f"/proc/{perf.pid}/fd/{fd}"))))
        self.assertEqual(self.stop(p)[0], 0)


if __name__ == "__main__":
    Nicd.NICD, Nicd.PERF, Nicd.CONFIG = map(os.path.abspath, sys.argv[1:4])
    del sys.argv[1:4]
    unittest.main()
