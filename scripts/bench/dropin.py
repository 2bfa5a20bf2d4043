# SPDX-License-Identifier: BSD-3-Clause
"""The figures that unmodified programs under urnic-run must reach, beside urnic-perf and beside TCP: the runs and marks
of each. Rows, ratios and verdicts are those of speed."""
import os
import shutil

import parse
import peers
from attached import PATIENCE, Nicd
from runner import Failed, Missing, free_port
from speed import Row, percent, share, times
from urnicd import figures

IDLE = "pause"      # the engine of urnicd shares two cores with two programs that poll
SERVER, CLIENT = "b", "a"
SIZES = {"4k": ("4 KiB", 4096), "1m": ("1 MiB", 1 << 20), "1g": ("1 GiB", 1 << 30)}
ROOM = 3            # a region moves to shared memory page by page; free memory wanted, in regions
RC = {"UCX_TLS": "rc_v,self"}
WAYS = ("", " --share")
PERF_BW, PERF_LAT = "urnic-perf WRITE", "urnic-perf ping-pong"
UCX_LAT, UCX_BW, MPI = "tag_lat", "tag_bw", "Open MPI"
# Open MPI starts no ranks as root, and none beyond the number of cores, unless it is told to.
MPI_ENV = {"OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
MPI_TCP = ("--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo")
MPI_RC = ("--mca", "pml", "ucx", "--mca", "osc", "ucx")


def span(us):
    return f"{us:.1f} us" if us < 1000 else f"{us / 1000:.1f} ms"


def name_of(key, way):
    """A row's key; plain and with --share."""
    return key + ("_share" if way else "")


def of_perf(way):
    """Rows of perftest against urnic-perf."""
    bw, lat = "ib_write_bw" + way, "ib_send_lat" + way
    return [
        Row(name_of("write", way), f"ib_write_bw{way} 64 KiB, of urnic-perf --attach", 0.8 if way else 0.35, 1.0, percent,
            True, (PERF_BW, bw), share("gbps", bw, PERF_BW)),
        Row(name_of("lat", way), f"ib_send_lat{way} 64 B typical, against urnic-perf --attach", 1.3, 1.1, times,
            False, (PERF_LAT, lat), share("us", lat, PERF_LAT)),
    ]


def of_tcp(key, what, run, metric, must, aim):
    """Rows of a program over rc_v against the same over TCP: how often the one is better than the other."""
    found = []
    for way in WAYS:
        ours, tcp = f"{run} rc_v{way}", f"{run} tcp"
        ratio = share("gbps", ours, tcp) if metric == "gbps" else share("us", tcp, ours)
        found.append(Row(name_of(key, way), what + way, must, aim, times, True, (tcp, ours), ratio))
    return found


def of_memory(size, aim):
    found = []
    for way in WAYS:
        run = f"reg_mr {SIZES[size][0]}{way}"
        found.append(Row(name_of(f"reg_{size}", way), f"ibv_reg_mr and dereg, {SIZES[size][0]}{way}", None, aim, span,
                         False, (run,), lambda r, run=run: r[run]["us"], size == "1g"))
    return found


ROWS = [
    *of_perf(WAYS[0]), *of_perf(WAYS[1]),
    *of_tcp("ucx_lat", "tag_lat 8 B: tcp, of rc_v", UCX_LAT, "us", 3, 5),
    *of_tcp("ucx_bw", "tag_bw 1 MiB: rc_v, of tcp", UCX_BW, "gbps", 1.5, 4),
    *of_tcp("mpi_lat", "Open MPI, 8 B latency: btl tcp, of ucx rc_v", MPI, "us", None, 3),
    *of_tcp("mpi_bw", "Open MPI, 1 MiB bandwidth: ucx rc_v, of btl tcp", MPI, "gbps", None, 3),
    *of_memory("4k", 5), *of_memory("1m", 20), *of_memory("1g", 1000),
]


def free_memory():
    with open("/proc/meminfo", encoding="ascii") as f:
        return 1024 * next(int(l.split()[1]) for l in f if l.startswith("MemAvailable:"))


class Unmodified:
    """Programs as they are, two on the nodes of one urnicd, or without urnic over TCP."""

    def __init__(self, runner, programs, seconds):
        self.runner = runner
        self.programs = programs
        self.seconds = seconds
        self.patience = 60 + 20 * seconds
        self.compiled = {}

    def nicd(self):
        if not os.access(self.programs.run, os.X_OK):
            raise Missing("not built: there is no urnic-run")
        return Nicd(self.runner, self.programs, IDLE)

    def under(self, nicd, way, node, command):
        """(command line, name for messages) of a program under urnic-run; nicd None: without urnic."""
        if shutil.which(command[0]) is None:
            raise Missing(f"there is no {os.path.basename(command[0])}; scripts/setup.sh --bench installs it")
        name = os.path.basename(command[0])
        if nicd is None:
            return command, name
        run = [self.programs.run, *way.split(), "--socket", nicd.socket, "--node", node, "--"]
        return run + command, f"urnic-run{way} {name}"

    def two(self, nicd, way, server, client, env=None):
        """Run a server, and a client once the server listens; `-p PORT` is added to both. returns: the client's output"""
        port = free_port()
        both = [self.under(nicd, way, node, [command[0], "-p", str(port), *command[1:]])
                for node, command in ((SERVER, server), (CLIENT, client))]
        process = self.runner.start(both[0][0], env=env, name=both[0][1] + " (server)")
        try:
            self.runner.wait_listening(process, port)
            try:
                out = self.runner.run(both[1][0], self.patience, env=env, name=both[1][1])
            except Failed as e:
                said = self.runner.end(process)
                raise Failed(f"{e}; the server said: {last_words(*said)}") from None
            self.runner.finish(process, PATIENCE)
        finally:
            self.runner.end(process)
        if nicd is not None:
            nicd.alive()
        return out

    def attached(self, op, size):
        with self.nicd() as nicd:
            found = figures(nicd.pair(op, self.seconds, "--size", str(size)))
        return {"us": found["us"]} if op.endswith("_lat") else {m: found[m] for m in ("gbps", "msg_rate")}

    def perftest(self, program, way, *options):
        # Without -F the programs read CPU frequencies, which differ; with -x 1 they use the IPv4 address.
        command = [program, "-F", "-x", "1", *options]
        with self.nicd() as nicd:
            out = self.two(nicd, way, command, command + [peers.HOST])
        return peers.parsed(f"urnic-run{way} {program}", parse.perftest, out)

    def bandwidth(self, way):
        """The program counts whole seconds."""
        return self.perftest("ib_write_bw", way, "-s", "65536", "-D", str(max(1, round(self.seconds))))

    def latency(self, way):
        """The program counts messages: of 10 us a round trip in the time, and it knows medians of no others."""
        return self.perftest("ib_send_lat", way, "-s", "64", "-n", str(peers.count(self.seconds, 10, 64, 1)))

    def ucx(self, way, test, size):
        """ucx_perftest over rc_v; way None: over TCP."""
        n = peers.count(self.seconds, 15, size, 2)
        client = ["ucx_perftest", "-t", test, "-s", str(size), "-n", str(n), "-w", str(n // 10), "-v", "-R", "50", peers.HOST]
        if way is None:
            out, name = self.two(None, "", client[:1], client, peers.TCP), "ucx_perftest over tcp"
        else:
            with self.nicd() as nicd:
                out, name = self.two(nicd, way, client[:1], client, RC), f"urnic-run{way} ucx_perftest"
        found = peers.parsed(name, parse.ucx, out, size)
        # The last line of a bandwidth test has times of windows.
        return {"us": found["percentile"]} if test.endswith("_lat") else {m: found[m] for m in ("gbps", "msg_rate")}

    def built(self, source, compiler, *libraries):
        """The path of a program of the bench's folder, which is compiled once."""
        if source not in self.compiled:
            path = os.path.join(self.runner.dir, source[:-2])
            code = os.path.join(self.programs.project, "scripts/bench", source)
            self.runner.run([compiler, "-O2", "-o", path, code, *libraries], PATIENCE)
            self.compiled[source] = path
        return self.compiled[source]

    def mpi(self, way):
        """Two ranks; way None: over TCP."""
        program = self.built("mpi_lat.c", "mpicc.openmpi")
        start = ["mpirun.openmpi", "-np", "2", "--bind-to", "none"]
        tail = [program, f"{self.seconds:g}"]
        # Files of a job are in TMPDIR, those of a user in HOME.
        env = dict(MPI_ENV, HOME=self.runner.dir)
        if way is None:
            out, name = self.runner.run(start + list(MPI_TCP) + tail, self.patience, env=env), "mpirun over tcp"
        else:
            with self.nicd() as nicd:
                command, name = self.under(nicd, way, "a,b", tail)
                out = self.runner.run(start + list(MPI_RC) + command, self.patience, env=dict(env, **RC), name=name)
                nicd.alive()
        found = peers.parsed(name, parse.named, out, "latency_us", "bandwidth_gbps")
        return {"us": found["latency_us"], "gbps": found["bandwidth_gbps"]}

    def memory(self, way, size):
        if free_memory() < ROOM * size:
            raise Missing(f"less than {ROOM * size >> 20} MiB of memory are free")
        program = self.built("reg_mr.c", "cc", "-libverbs")
        with self.nicd() as nicd:
            command, name = self.under(nicd, way, CLIENT, [program, str(size), f"{self.seconds:g}"])
            out = self.runner.run(command, self.patience, name=name)
            nicd.alive()
        found = peers.parsed(name, parse.named, out, "first_us", "reg_us", "dereg_us")
        return dict(found, us=found["reg_us"] + found["dereg_us"])


def last_words(out, err):
    """The last line that a program printed, on either stream."""
    for text in (err, out):
        lines = [l.strip() for l in (text or "").splitlines() if l.strip(" -\t")]
        if lines:
            return lines[-1][:200]
    return "nothing"


def runs_of(programs):
    """{run: function without arguments}"""
    runs = {
        PERF_BW: lambda: programs.attached("write_bw", 65536),
        PERF_LAT: lambda: programs.attached("send_lat", 64),
        f"{UCX_LAT} tcp": lambda: programs.ucx(None, "tag_lat", 8),
        f"{UCX_BW} tcp": lambda: programs.ucx(None, "tag_bw", 1 << 20),
        f"{MPI} tcp": lambda: programs.mpi(None),
    }
    for way in WAYS:
        runs["ib_write_bw" + way] = lambda way=way: programs.bandwidth(way)
        runs["ib_send_lat" + way] = lambda way=way: programs.latency(way)
        runs[f"{UCX_LAT} rc_v{way}"] = lambda way=way: programs.ucx(way, "tag_lat", 8)
        runs[f"{UCX_BW} rc_v{way}"] = lambda way=way: programs.ucx(way, "tag_bw", 1 << 20)
        runs[f"{MPI} rc_v{way}"] = lambda way=way: programs.mpi(way)
        for name, size in SIZES.values():
            runs[f"reg_mr {name}{way}"] = lambda way=way, size=size: programs.memory(way, size)
    return runs


def measures(runner, programs, t):
    """{run: function of a row's key}: the function measures, unless the row does not need the run."""
    wanted = {row.key: row.runs for row in ROWS}

    def series(name, run):
        def measure(key):
            if name not in wanted[key]:
                return []
            try:
                return [(key, m, v) for m, v in run().items()]
            except (KeyError, ValueError) as e:
                raise Failed(f"urnic-perf printed no result that can be read: {e!r}") from None
        return measure

    return {name: series(name, run) for name, run in runs_of(Unmodified(runner, programs, t)).items()}
