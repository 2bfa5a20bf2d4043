# SPDX-License-Identifier: BSD-3-Clause
"""The table of figures of unmodified programs: its marks, what each run starts, with programs made up here.
usage: test_dropin.py MODULES"""
import os
import sys
import unittest

MODULES = sys.argv.pop(1)
sys.path.insert(0, MODULES)
import attached # pylint: disable=wrong-import-position
import dropin # pylint: disable=wrong-import-position
import runner # pylint: disable=wrong-import-position
import speed # pylint: disable=wrong-import-position
import stats # pylint: disable=wrong-import-position

DATA = os.path.join(os.environ["URNIC_TEST_DATA"], "bench")
# Each writes its command line into LOG. A dataplane says that it listens, and waits to be ended.
NICD = '''#!/bin/sh
echo "urnicd $(grep ^idle "$2")" >>"$LOG"
echo "urnicd: listening at nowhere" >&2
exec sleep 600
'''
PERF = '''#!/bin/sh
case "$*" in
*--listen*) echo "waiting for the other side" >&2; sleep 0.1 ;;
*) echo '{"gbps": 20, "msg_rate": 3, "lat_us": {"p50": 1.5}}' ;;
esac
'''
RUN = '''#!/bin/sh
echo "run $* tls:$UCX_TLS" >>"$LOG"
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
'''
# A program of two sides: it listens at the port of -p, or prints what a file has.
PAIR = '''#!{python}
import os, socket, sys
open(os.environ["LOG"], "a").write(" ".join(sys.argv).rsplit("/", 1)[1] + " tls:" + os.environ.get("UCX_TLS", "") + "\\n")
port = int(sys.argv[sys.argv.index("-p") + 1])
if sys.argv[-1] != "127.0.0.1":
    s = socket.create_server(("127.0.0.1", port))
    peer = s.accept()[0]
    print("{server}", file=sys.stderr, flush=True)
    sys.exit({code})
socket.create_connection(("127.0.0.1", port)).recv(1) # the server has said its words, and ends
print(open({data!r}).read())
print("{client}", file=sys.stderr)
sys.exit({code})
'''
COMPILER = '''#!/bin/sh
echo "compile $*" >>"$LOG"
printf '#!/bin/sh\\nprintf "%s"\\n' '{says}' >"$3"
chmod +x "$3"
'''
MPIRUN = '''#!/bin/sh
echo "mpirun $* tls:$UCX_TLS" >>"$LOG"
while [ ! -x "$1" ]; do shift; done
exec "$@"
'''


def verdict(key, found):
    raw = [stats.Row(1, "dropin", key, run, key, metric, value) for run, (metric, value) in found.items()]
    return next(v for v in speed.verdicts(raw, "dropin", dropin.ROWS) if v.row.key == key).verdict


class Table(unittest.TestCase):
    def test_marks(self):
        def ratio(key, metric, run, other, values):
            return [verdict(key, {run: (metric, v), other: (metric, 1)}) for v in values]

        want = ["MISSED", "must reached", "aim reached"]
        self.assertEqual(ratio("write", "gbps", "ib_write_bw", dropin.PERF_BW, (0.34, 0.35, 1)), want)
        self.assertEqual(ratio("write_share", "gbps", "ib_write_bw --share", dropin.PERF_BW, (0.79, 0.8, 1)), want)
        self.assertEqual(ratio("ucx_bw", "gbps", "tag_bw rc_v", "tag_bw tcp", (1.4, 1.5, 4)), want)
        self.assertEqual(ratio("ucx_lat_share", "us", "tag_lat tcp", "tag_lat rc_v --share", (2.9, 3, 5)), want)
        for way in dropin.WAYS:
            self.assertEqual(ratio(dropin.name_of("lat", way), "us", "ib_send_lat" + way, dropin.PERF_LAT, (1.4, 1.3, 1.1)), want)
        self.assertEqual(ratio("mpi_lat", "us", "Open MPI tcp", "Open MPI rc_v", (1, 3)), ["", "aim reached"])
        self.assertEqual(ratio("mpi_bw", "gbps", "Open MPI rc_v", "Open MPI tcp", (1, 3)), ["", "aim reached"])
        for key, run, aim in (("reg_4k", "reg_mr 4 KiB", 5), ("reg_1m_share", "reg_mr 1 MiB --share", 20), ("reg_1g", "reg_mr 1 GiB", 1000)):
            self.assertEqual([verdict(key, {run: ("us", v)}) for v in (aim + 1, aim)], ["", "aim reached"])

    def test_spans(self):
        self.assertEqual([dropin.span(v) for v in (4.56, 999, 1000, 250000)], ["4.6 us", "999.0 us", "1.0 ms", "250.0 ms"])


class Runs(unittest.TestCase):
    def setUp(self):
        self.runner = runner.Runner()
        self.addCleanup(self.runner.close)
        self.project = os.path.join(self.runner.dir, "project")
        self.log = os.environ["LOG"] = os.path.join(self.runner.dir, "log")
        self.bin = os.path.join(self.project, "bin")
        for name, text in (("config/two-nodes.ini", "[switch wire]\n"), ("build/apps/urnicd/urnicd", NICD),
                           ("build/apps/urnicctl/urnicctl", "#!/bin/sh\n"), ("build/perf", PERF),
                           ("build/apps/urnic-run/urnic-run", RUN), ("bin/mpirun.openmpi", MPIRUN),
                           ("bin/cc", COMPILER.format(says=r"first_us 9\nreg_us 2\ndereg_us 1\n")),
                           ("bin/mpicc.openmpi", COMPILER.format(says=r"latency_us 4\nbandwidth_gbps 8\n"))):
            self.put(name, text)
        self.pairs(0, "", "")
        path = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        os.environ["PATH"] = self.bin + ":" + path
        programs = attached.Programs(self.project, os.path.join(self.project, "build"), "perf")
        self.measures = dropin.measures(self.runner, programs, 0.1)

    def put(self, name, text):
        path = os.path.join(self.project, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o755)

    def pairs(self, code, server, client):
        for name, data in (("ib_write_bw", "perftest_bw.txt"), ("ib_send_lat", "perftest_lat.txt"), ("ucx_perftest", "ucx_tag_lat.txt")):
            self.put("bin/" + name, PAIR.format(python=sys.executable, data=os.path.join(DATA, data), code=code, server=server,
                                                client=client))

    def measure(self, name, key):
        return {metric: value for _, metric, value in self.measures[name](key)}

    def ran(self, word=""):
        with open(self.log, encoding="utf-8") as f:
            return [l for l in f.read().splitlines() if l.startswith(word)]

    def test_every_row_has_its_runs(self):
        dropin.free_memory, real = lambda: 1 << 60, dropin.free_memory
        self.addCleanup(setattr, dropin, "free_memory", real)
        for row in dropin.ROWS:
            found = {name: self.measure(name, row.key) for name in row.runs}
            row.form(row.figure(found))
            self.assertEqual(self.runner.running, [], row.key)
        self.assertEqual(self.measures["ib_write_bw"]("lat"), [])
        # Each program of the bench is compiled once.
        self.assertEqual(len(self.ran("compile")), 2)
        self.assertEqual(set(self.ran("urnicd")), {"urnicd idle = pause"})

    def test_perftest(self):
        self.assertEqual(self.measure("ib_write_bw", "write")["msg_rate"], 12772)
        server, client = self.ran("run")
        self.assertIn("--node b -- ib_write_bw -p", server)
        self.assertIn("--node a -- ib_write_bw -p", client)
        self.assertIn("-s 65536 -D 1 ", client)
        self.assertNotIn("--share", server + client)
        self.measure("ib_write_bw --share", "write_share")
        self.assertTrue(all(l.startswith("run --share --socket") for l in self.ran("run")[2:]))

    def test_ucx(self):
        self.assertEqual(set(self.measure("tag_lat tcp", "ucx_lat")), {"us"})
        self.assertEqual(self.ran("run") + self.ran("urnicd"), [])
        self.assertTrue(all(l.endswith("tls:tcp,self") for l in self.ran()))
        self.measure("tag_lat rc_v", "ucx_lat")
        self.assertEqual(len([l for l in self.ran("run") if l.endswith("tls:rc_v,self")]), 2)

    def test_mpi(self):
        self.assertEqual(self.measure("Open MPI rc_v --share", "mpi_lat_share"), {"us": 4, "gbps": 8})
        self.assertIn("--mca pml ucx", self.ran("mpirun")[0])
        self.assertRegex(self.ran("run")[0], r"^run --share .*--node a,b -- .*mpi_lat 0.1 tls:rc_v,self$")
        self.measure("Open MPI tcp", "mpi_lat")
        self.assertIn("--mca btl tcp,self", self.ran("mpirun")[1])
        self.assertEqual(len(self.ran("run")), 1)

    def test_memory(self):
        self.assertEqual(self.measure("reg_mr 1 MiB --share", "reg_1m_share"),
                         {"first_us": 9, "reg_us": 2, "dereg_us": 1, "us": 3})
        self.assertRegex(self.ran("run")[0], r"-- .*/reg_mr 1048576 0.1 ")
        dropin.free_memory, real = lambda: 1 << 30, dropin.free_memory
        self.addCleanup(setattr, dropin, "free_memory", real)
        with self.assertRaisesRegex(runner.Missing, "less than 3072 MiB"):
            self.measure("reg_mr 1 GiB", "reg_1g")

    def test_failures_name_the_program_and_its_words(self):
        self.pairs(3, "the server broke", "the client broke")
        with self.assertRaisesRegex(runner.Failed, "^urnic-run --share ib_write_bw ended with 3: the client broke; "
                                                   "the server said: the server broke$"):
            self.measure("ib_write_bw --share", "write_share")
        with self.assertRaisesRegex(runner.Failed, "^ucx_perftest ended with 3: the client broke; "):
            self.measure("tag_bw tcp", "ucx_bw")
        self.assertEqual(self.runner.running, [])

    def test_a_server_that_ends(self):
        self.put("bin/ib_send_lat", "#!/bin/sh\necho no device\nexit 1\n")
        with self.assertRaisesRegex(runner.Failed, r"^urnic-run ib_send_lat \(server\) as a server ended with 1: no device$"):
            self.measure("ib_send_lat", "lat")
        self.assertEqual(self.runner.running, [])

    def test_babble(self):
        self.put("bin/cc", COMPILER.format(says="babble"))
        with self.assertRaisesRegex(runner.Failed, "urnic-run reg_mr printed no result that can be read: no first_us"):
            self.measure("reg_mr 4 KiB", "reg_4k")

    def test_what_is_missing(self):
        os.environ["PATH"] = os.path.join(self.project, "nothing")
        for run, key, name in (("ib_write_bw", "write", "ib_write_bw"), ("tag_lat tcp", "ucx_lat", "ucx_perftest"),
                               ("Open MPI tcp", "mpi_lat", "mpicc.openmpi"), ("reg_mr 4 KiB", "reg_4k", "cc")):
            with self.assertRaisesRegex(runner.Missing, f"there is no {name}; "):
                self.measure(run, key)
        os.unlink(os.path.join(self.project, "build/apps/urnic-run/urnic-run"))
        with self.assertRaisesRegex(runner.Missing, "there is no urnic-run"):
            self.measure("ib_write_bw", "write")
        self.assertEqual(self.runner.running, [])


if __name__ == "__main__":
    unittest.main()
