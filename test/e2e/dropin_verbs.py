#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The drop-in libibverbs.so.1 under Debian's ibverbs-utils, by urnic-run (doc/reference/dropin.md).

usage: dropin_verbs.py urnicd urnic-run CONFIG_FOLDER libibverbs.so.1 [TEST...]"""

import glob
import os
import subprocess
import sys
import unittest

import dropin_common

LIBRARY = None
PYTHON = "/usr/bin/python3"

HEAD = """
import ctypes, errno, os
lib = ctypes.CDLL("libibverbs.so.1", use_errno=True)
libc = ctypes.CDLL(None)
libc.dlvsym.restype = ctypes.c_void_p
libc.dlvsym.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
def sym(name, version, result=ctypes.c_int, *args):
    at = libc.dlvsym(lib._handle, name.encode(), version.encode())
    assert at is not None, (name, version)
    return ctypes.CFUNCTYPE(result, *args, use_errno=True)(at)
PTR = ctypes.c_void_p
def devices():
    n = ctypes.c_int(-1)
    list = sym("ibv_get_device_list", "IBVERBS_1.1", ctypes.POINTER(PTR), ctypes.POINTER(ctypes.c_int))(n)
    return n.value, list
name = sym("ibv_get_device_name", "IBVERBS_1.1", ctypes.c_char_p, PTR)
"""


def exports(path):
    """The versioned names that a library exports."""
    out = subprocess.run(["objdump", "-T", path], capture_output=True, text=True, check=True).stdout
    return {(words[-2].strip("()"), words[-1], words[-2][0] == "(") for words in map(str.split, out.splitlines())
            if len(words) >= 6 and "*UND*" not in words and "IBVERBS_" in words[-2]}


class Verbs(dropin_common.Dropin):
    def python(self, text, *options):
        p = subprocess.run([self.RUN, *options, PYTHON, "-c", HEAD + text], env=self.env, capture_output=True, text=True,
                           timeout=dropin_common.SECONDS, check=False)
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout

    def test_names(self):
        """Each name of Debian's library is there in the same version, and in the same way asked for without one."""
        theirs = exports(glob.glob("/usr/lib/*/libibverbs.so.1")[0])
        self.assertGreater(len(theirs), 150)
        ours = exports(LIBRARY)
        self.assertEqual(theirs - ours, set())
        self.assertEqual({v for v, _, _ in ours} - {v for v, _, _ in theirs}, {"IBVERBS_PRIVATE_59", "IBVERBS_PRIVATE_64"})
        self.assertIn(("IBVERBS_PRIVATE_64", "verbs_register_driver_64", True), ours)
        self.assertIn(("IBVERBS_PRIVATE_34", "verbs_register_driver_34", False), ours)

    def test_devices(self):
        """ibv_devices lists the devices of both nodes, or those of one node."""
        p = subprocess.run([self.RUN, "ibv_devices"], env=self.env, capture_output=True, text=True, check=False,
                           timeout=dropin_common.SECONDS)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertRegex(p.stdout, r"(?s)\n +a0 +\t[0-9a-f]{16}\n +b0 +\t[0-9a-f]{16}\n$")
        code, out = self.ends(self.on("b", "ibv_devices"))
        self.assertEqual(code, 0, out)
        # A GUID may well have "a0" in it.
        self.assertRegex(out, r"(?s)-\n +b0 +\t[0-9a-f]{16}\n$")

    def test_devinfo(self):
        code, out = self.ends(self.on("a", "ibv_devinfo", "-v"))
        self.assertEqual(code, 0, out)
        for want in (r"hca_id:\ta0", r"transport:\t+InfiniBand \(0\)", r"max_qp:\t+65536", r"state:\t+PORT_ACTIVE \(4\)",
                     r"active_mtu:\t+4096", r"hca_core_clock:\t+1000000", r"link_layer:\t+Ethernet", r"GID\[ +0\]:\t+fe80:.*, RoCE v2",
                     r"GID\[ +1\]:\t+::ffff:10\.0\.0\.1, RoCE v2"):
            self.assertRegex(out, want)

    def test_rc(self):
        """RC: polled, with bytes checked, with events, by ibv_wr_*, with a message that is many packets."""
        for more in ((), ("-c",), ("-e", "-c"), ("-N", "-c"), ("-c", "-s", "100000", "-n", "20"), ("-m", "1024", "-c")):
            with self.subTest(more=more):
                for out in self.pair("ibv_rc_pingpong", "-g", "1", "-n", "100", *more):
                    self.assertRegex(out, r"\d+ iters in [\d.]+ seconds")
                    self.assertIn("GID ::ffff:10.0.0.1", out)

    def test_uc(self):
        """UC: polled, with bytes checked, with events, with messages of many packets at two path MTUs."""
        for more in ((), ("-c",), ("-e", "-c"), ("-c", "-s", "20000", "-n", "20"), ("-m", "1024", "-c")):
            with self.subTest(more=more):
                for out in self.pair("ibv_uc_pingpong", "-g", "1", "-n", "100", *more):
                    self.assertRegex(out, r"\d+ iters in [\d.]+ seconds")
                    self.assertIn("GID ::ffff:10.0.0.1", out)

    def test_timestamps(self):
        """Completions have times, which ibv_rc_pingpong -t wants to come from a clock that does not go back."""
        for out in self.pair("ibv_rc_pingpong", "-g", "1", "-n", "100", "-t", "-c"):
            self.assertRegex(out, r"100 iters in [\d.]+ seconds")
            self.assertRegex(out, r"(?i)average|Max receive completion clock cycles|clock")

    def test_ud(self):
        for more in ((), ("-e",), ("-c",)):
            with self.subTest(more=more):
                for out in self.pair("ibv_ud_pingpong", "-g", "1", "-n", "100", *more):
                    self.assertRegex(out, r"100 iters in [\d.]+ seconds")

    def test_srq(self):
        for more in ((), ("-e",), ("-c", "-q", "3")):
            with self.subTest(more=more):
                for out in self.pair("ibv_srq_pingpong", "-g", "1", "-n", "100", *more):
                    self.assertRegex(out, r"100 iters in [\d.]+ seconds")

    def test_refused(self):
        """Programs that need what urnic has not end with an error, and with urnic's reason."""
        for command, want in (
                (("ibv_xsrq_pingpong", "-g", "1"), "Couldn't Open the XRC Domain"),
                (("ibv_rc_pingpong", "-g", "1", "-j"), "doesn't support dm allocation"),
                (("ibv_rc_pingpong", "-g", "1", "-o"), "The device isn't ODP capable|doesn't support ODP|ODP")):
            with self.subTest(command=command):
                self.assertRegex(self.refused(*command), want)

    def test_dlvsym(self):
        """A program that loads the library by hand gets ours, whatever version it asks for."""
        self.assertEqual(self.python("""
n, list = devices()
assert n == 2 and [name(list[i]) for i in range(2)] == [b"a0", b"b0"] and list[2] is None, n
# Structs of before 2007: nothing, and said so.
old = sym("ibv_get_device_list", "IBVERBS_1.0", PTR, PTR)
assert old(None) is None and ctypes.get_errno() == errno.EOPNOTSUPP
# Private names, in all nodes.
for node in ("34", "59", "64"):
    v = "IBVERBS_PRIVATE_" + node
    assert sym("ibv_cmd_reg_mr", v)() == errno.EOPNOTSUPP
    assert sym("verbs_open_device", v, PTR)() is None and ctypes.get_errno() == errno.EOPNOTSUPP
    sym("verbs_register_driver_" + node, v, None)()
    assert libc.dlvsym(lib._handle, b"verbs_allow_disassociate_destroy", v.encode())
# Provider libraries look behind struct ibv_device: 2 ints and pointers, and four names.
end = list[0] + 8 + 16 + 64 + 64 + 256 + 256
assert ctypes.string_at(end, 512) == bytes(512)
print("good")
"""), "good\n")

    def test_sysfs(self):
        """Calls around sysfs, which urnic's devices are not in."""
        with open(os.path.join(self.dir.name, "f"), "w", encoding="utf-8") as f:
            f.write("12 ab\n")
        self.assertEqual(self.python(f"""
read = sym("ibv_read_sysfs_file", "IBVERBS_1.0", ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)
b = ctypes.create_string_buffer(b"x" * 20)
assert read({self.dir.name!r}.encode(), b"f", b, 20) == 5 and b.value == b"12 ab", b.value
assert read({self.dir.name!r}.encode(), b"none", b, 20) == -1 and ctypes.get_errno() == errno.ENOENT
assert read(b"d" * 5000, b"f", b, 20) == -1 and ctypes.get_errno() == errno.ENAMETOOLONG
path = sym("ibv_get_sysfs_path", "IBVERBS_1.0", ctypes.c_char_p)
assert path() == b"/sys"
_, list = devices()
c = sym("ibv_open_device", "IBVERBS_1.1", PTR, PTR)(list[0])
type = ctypes.c_int(-1)
ask = sym("ibv_query_gid_type", "IBVERBS_PRIVATE_34", ctypes.c_int, PTR, ctypes.c_uint8, ctypes.c_uint, PTR)
assert ask(c, 1, 1, ctypes.addressof(type)) == 0 and type.value == 1
assert ask(c, 2, 1, ctypes.addressof(type)) == -1 and ctypes.get_errno() == errno.EINVAL
assert sym("ibv_close_device", "IBVERBS_1.1", ctypes.c_int, PTR)(c) == 0
print("good")
"""), "good\n")

    def test_stays(self):
        """The libraries stay in memory after dlclose(): threads run in them."""
        self.assertEqual(self.python("""
n, list = devices()
for lib in ("libibverbs.so.1", "liburnic.so.1"):
    assert lib in open("/proc/self/maps").read()
h = lib = ctypes.CDLL("libibverbs.so.1")._handle
libc.dlclose.argtypes = [PTR]
for i in range(3):
    libc.dlclose(h)
maps = open("/proc/self/maps").read()
assert "libibverbs.so.1" in maps and "liburnic.so.1" in maps
print("good")
"""), "good\n")

    def test_run(self):
        """urnic-run: without urnicd the program is not run; paths, messages and exit codes."""
        def run(*args, **env):
            p = subprocess.run([self.RUN, *args], capture_output=True, text=True, env={**self.env, **env},
                               timeout=dropin_common.SECONDS, check=False)
            return p.returncode, p.stdout, p.stderr
        code, out, err = run("--socket", "/nowhere/s", "echo", "run")
        self.assertEqual((code, out), (1, ""))
        self.assertRegex(err, r"^urnic-run: no dataplane at /nowhere/s .*\nurnic-run: the program would find no RDMA device.*\n.*urnic-run --start two-nodes")
        code, out, err = run("--node", "nowhere", "echo", "run")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("no node or adapter 'nowhere'", err)
        code, out, err = run("--folder", "/nowhere", "echo", "run")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("no libibverbs.so.1 of urnic in /nowhere", err)
        folder = os.path.realpath(os.path.dirname(LIBRARY))
        code, out, err = run("--verbs", "-n", "a", "env", LD_LIBRARY_PATH="/else")
        self.assertEqual((code, err), (0, ""))
        self.assertIn(f"LD_LIBRARY_PATH={folder}:/else\n", out)
        self.assertIn("URNIC_EXPLAIN=1\n", out)
        # The run-time of an address sanitizer refuses to stand behind other libraries.
        self.assertIn("ASAN_OPTIONS=verify_asan_link_order=0\n", out)
        self.assertIn("ASAN_OPTIONS=a=1:verify_asan_link_order=0\n", run("--verbs", "env", ASAN_OPTIONS="a=1")[1])
        self.assertIn("ASAN_OPTIONS=verify_asan_link_order=1\n", run("--verbs", "env", ASAN_OPTIONS="verify_asan_link_order=1")[1])
        self.assertIn(f"LD_PRELOAD={folder}/liburnic-paths.so\n", out)
        code, out, err = run("--verbs", "--sockets", "env")
        self.assertEqual((code, err), (0, ""))
        self.assertIn(f"LD_LIBRARY_PATH={folder}\n", out)
        self.assertRegex(out, r"LD_PRELOAD=/\S*/liburnic-paths.so:/\S*liburnic-sockets.so\n")
        self.assertNotIn("LD_LIBRARY_PATH", run("--sockets", "-s", "/nowhere/s", "env")[1])
        self.assertEqual(run("sh", "-c", "exit 7")[0], 7)
        self.assertEqual(run("/nowhere/program")[0], 127)
        self.assertEqual(run()[0], 2)
        self.assertIn("--verbs", run("--help")[1])


if __name__ == "__main__":
    Verbs.NICD, Verbs.RUN, Verbs.CONFIG, LIBRARY = map(os.path.abspath, sys.argv[1:5])
    dropin_common.ordinary_user(Verbs.RUN)
    unittest.main(argv=[sys.argv[0]] + sys.argv[5:], verbosity=2)
