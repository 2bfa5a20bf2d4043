# SPDX-License-Identifier: BSD-3-Clause
"""urnic-cp: files arrive byte for byte, in every form and with every option."""
import json
import os
import shutil
import stat
import subprocess
import time

from cp_common import check, children, embedded_only, expect, once, run_all, verbs_only, wait_until


def test_one_file(p):
    """One command sends a file into received/, verified, with figures, and leaves nothing."""
    a = p.make("a.bin", 5_000_001)
    result = p.run(a)
    expect(result, 0, "sent 1 file, 4.77 MiB", "Gb/s", "SHA-256 verified by the receiver",
           "latency p50/p99/p99.9", "in received/")
    if not p.dataplanes:
        expect(result, 0, "retransmitted", "packets", "drops: ")
    check(result[2] == "", f"standard error: {result[2]}")
    p.same(a, p.path("received", "a.bin"))
    p.clean()


def test_odd_sizes(p):
    """Sizes around those of a packet, a piece of hashing and a chunk, in one run."""
    sizes = [0, 1, 2, 3, 4, 5, 255, 256, 257, 4095, 4096, 4097, 8191, 8192, 8193, 65535, 65536,
             65537, 262143, 262144, 262145, 1 << 20, (1 << 20) + 1]
    files = [p.make(f"src/f{size}", size, seed=size) for size in sizes]
    expect(p.run("--to", p.to, "--chunk", "8K", "--depth", "3", *files), 0,
           f"sent {len(sizes)} files")
    for f in files:
        p.same(f, os.path.join(p.to, os.path.basename(f)))
    p.clean()


def test_many_files(p):
    """Hundreds of small files."""
    files = [p.make(f"src/n{i}", i * 37 % 5000, seed=i) for i in range(300)]
    expect(p.run("--to", p.to, *files), 0, "sent 300 files")
    check(len(os.listdir(p.to)) == 300, "300 copies")
    for f in files:
        p.same(f, os.path.join(p.to, os.path.basename(f)))


def test_names_and_modes(p):
    """Names with spaces, UTF-8, dashes and 255 bytes; permissions, less the bits of the umask."""
    names = ["with space", "gr\u00fc\u00dfe", "-dash", "..dots", "new\nline", "x" * 255, "a,b=c"]
    files = [p.make(os.path.join("src", n), 1000 + i, seed=i) for i, n in enumerate(names)]
    os.chmod(files[0], 0o750)
    os.chmod(files[1], 0o400)
    expect(p.run("--to", p.to, "--", *files), 0)
    for f in files:
        p.same(f, os.path.join(p.to, os.path.basename(f)))
    umask = os.umask(0)
    os.umask(umask)
    for f in files[:2]:
        got = stat.S_IMODE(os.stat(os.path.join(p.to, os.path.basename(f))).st_mode)
        check(got == stat.S_IMODE(os.stat(f).st_mode) & ~umask, f"mode {got:o} of {f}")
    # The same, given as a relative name that begins with a dash.
    shutil.rmtree(p.to)
    shutil.copy(files[2], p.path("-dash"))
    expect(p.run("--to", p.to, "--", "-dash"), 0)


def test_json(p):
    """--json prints one object with the figures and each file's SHA-256."""
    a, b = p.make("a", 300_000), p.make("b", 10)
    rc, out, err = p.run("--json", "--to", p.to, a, b, p.path("missing"))
    check(rc == 1, "a missing file is exit code 1")
    j = json.loads(out)
    check(j["files"] == 3 and j["files_ok"] == 2 and j["ok"] is False, "files")
    check(j["bytes"] == 300_010 and j["checked"] is True, "bytes")
    check(j["attached"] is (p.dataplanes is not None), "attached")
    check(j["messages"] == 3 and j["chunk"] == 262144 and j["depth"] == 16, "messages")
    check(set(j["lat_us"]) == {"min", "p50", "p99", "p999", "max"}, "lat_us")
    check(0 < j["lat_us"]["min"] <= j["lat_us"]["p50"] <= j["lat_us"]["max"], "quantiles")
    check("packets_sent" in j or p.dataplanes, "packets")
    for side in (j, j["peer"]) if not p.dataplanes else ():
        check(side["packets_sent"] > 0 and side["packets_received"] > 0, "packets")
        check(j["icrc"] is True, "ICRC")
        check(isinstance(side["drops"], dict) and side["retransmits"] >= 0, "drops")
        check("drop_neigh" not in side["drops"], f"the two misunderstand each other: {side}")
    check("missing" in j["list"][2]["error"] and j["list"][2]["sent"] is False, "error")
    for f, entry in zip((a, b), j["list"]):
        want = subprocess.run(["sha256sum", f], capture_output=True, text=True).stdout.split()[0]
        check(entry["sha256"] == want and entry["sent"] is True, "sha256")


def test_options(p):
    """Many values of chunk, depth, MTU, idle policy and checks."""
    a = p.make("a", 1_500_000)
    for i, options in enumerate([
            ["--chunk", "4K", "--depth", "2"],
            ["--chunk", "1M" if not p.over else "1020K", "--depth", "2"],
            ["--chunk=64M", "--depth=2"] if not p.over else ["--chunk=1020K", "--depth=64"],
            ["--chunk", "4K", "--depth", "1024"],
            ["--mtu", "256"], ["--mtu", "512"], ["--mtu", "1024"], ["--mtu", "2048"],
            ["--idle", "spin"], ["--idle", "pause"], ["--idle", "sleep"],
            ["--no-icrc"], ["--no-check"]]):
        if p.dataplanes and options == ["--no-icrc"]:
            continue
        to = p.path(f"to{i}")
        result = p.run(*options, "--json", "--to", to, a)
        expect(result, 0)
        j = json.loads(result[1])
        if options[0] == "--mtu":
            check(j["mtu"] == int(options[1]), f"MTU {j['mtu']} with {options}")
        check(p.dataplanes or j["icrc"] == ("--no-icrc" not in options), "icrc")
        check(j["checked"] == ("--no-check" not in options), "checked")
        p.same(a, os.path.join(to, "a"))
        shutil.rmtree(to)
    expect(p.run("--no-check", "--to", p.to, a), 0, "NOT compared")
    if not p.dataplanes:
        expect(p.run("--force", "--no-icrc", "--to", p.to, a), 0, "no ICRC")
    p.clean()


def test_help_and_version(p):
    """--help and --version print and end with 0."""
    result = p.run("--help")
    expect(result, 0, "Usage: urnic-cp")
    for option in ("--to", "--json", "--capture", "--mtu", "--chunk", "--depth", "--no-check",
                   "--no-icrc", "--over", "--idle", "--listen", "--peer", "--force", "--attach", "--node", "--nodes"):
        check(option in result[1], f"{option} is not in the help")
    expect(p.run("--version"), 0, "urnic-cp 0.")


@verbs_only
@embedded_only
def test_capture(p):
    """--capture writes the packets that cross the port: requests and acknowledgements."""
    a = p.make("a", 200_000)
    pcap = p.path("x.pcapng")
    expect(p.run("--capture", pcap, "--to", p.to, a), 0)
    with open(pcap, "rb") as f:
        check(f.read(4) == b"\x0a\x0d\x0d\x0a", "a pcapng file begins with a section header")
    # WRITE first, middle, last with immediate; SEND only; acknowledge.
    judge = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../interop/judge.py")
    done = subprocess.run([judge, "--opcodes", "6,7,9,4,11", pcap], capture_output=True, text=True)
    check(done.returncode == 0, done.stdout + done.stderr)


def peak_memory(pid):
    """The most memory that a process had, in KiB; 0 when the process has ended."""
    try:
        with open(f"/proc/{pid}/status") as f:
            return int(next((x for x in f if x.startswith("VmHWM")), "x 0 kB").split()[1])
    except OSError:
        return 0


@once
def test_sparse(p):
    """Several gigabytes, mostly holes: byte for byte, in bounded memory, and sparse again."""
    size = 3 * (1 << 30) + 12345
    src = p.make_huge("sparse", size)
    with open(src, "r+b") as f:
        for at in (0, 70_000, 1 << 31, (1 << 31) + 262_143, (1 << 32) - size % 4096, size - 5):
            f.seek(min(at, size - 5))
            f.write(b"data!")
    sender = p.start("--to", p.to, src)
    most = 0
    while sender.poll() is None:
        most = max([most] + [peak_memory(pid) for pid in [sender.pid] + children(sender.pid)])
        time.sleep(0.05)
    expect(p.finish(sender), 0, "sent 1 file, 3.00 GiB")
    copy = os.path.join(p.to, "sparse")
    p.same(src, copy)
    check(os.stat(copy).st_blocks * 512 < 64 << 20, "the copy is not sparse")
    if not p.sanitized:
        check(0 < most < 512 << 10, f"{most} KiB of memory for a large file")


def test_two_terminals(p):
    """--listen in one terminal, --peer in another; the listener serves one and ends."""
    a, b = p.make("a", 3_000_000), p.make("b", 0)
    sock = p.path("s")
    listener = p.start("--listen", sock, "--to", p.to)
    wait_until("the socket", lambda: os.path.exists(sock))
    check(stat.S_IMODE(os.stat(sock).st_mode) & 0o077 == 0, "the socket is open to others")
    expect(p.run("--peer", sock, a, b), 0, "sent 2 files", "verified by the receiver")
    expect(p.finish(listener), 0, "received 2 files", "SHA-256 verified", "waiting for a sender")
    p.same(a, os.path.join(p.to, "a"))
    p.same(b, os.path.join(p.to, "b"))
    check(not os.path.exists(sock), "the socket is left")
    p.clean()


def test_stale_socket(p):
    """The socket of a dead listener is replaced; one in use is not, and its listener notices nothing."""
    a, sock = p.make("a", 1000), p.path("s")
    first = p.start("--listen", sock, "--to", p.to)
    wait_until("the socket", lambda: os.path.exists(sock))
    expect(p.run("--listen", sock, "--to", p.to), 1, "listens on")
    expect(p.run("--peer", sock, a), 0, "sent 1 file")
    expect(p.finish(first), 0, "received 1 file")
    os.remove(os.path.join(p.to, "a"))
    first = p.start("--listen", sock, "--to", p.to)
    wait_until("the socket", lambda: os.path.exists(sock))
    first.kill()
    p.finish(first)
    check(os.path.exists(sock), "a killed listener leaves its socket")
    second = p.start("--listen", sock, "--to", p.to)
    second_line = second.stderr.readline()
    check("waiting" in second_line, second_line)
    expect(p.run("--peer", sock, a), 0)
    expect(p.finish(second), 0)


def test_terminal(p):
    """On a terminal there is a progress bar, and the line is wiped at the end."""
    import pty
    a = p.make("a", 30_000_000)
    main, side = pty.openpty()
    child = p.start("--to", p.to, a, stderr=side)
    os.close(side)
    seen = b""
    while True:
        try:
            data = os.read(main, 4096)
        except OSError:
            break
        if not data:
            break
        seen += data
    os.close(main)
    expect(p.finish(child), 0)
    check(b"sending [" in seen and b"%" in seen, f"no progress bar in {seen!r}")
    check(seen.endswith(b"\r\x1b[K"), f"the bar is left: {seen[-60:]!r}")


def test_ordinary_user(p):
    """urnic-cp needs no privilege: when root runs the test, it starts urnic-cp as nobody."""
    if os.geteuid() != 0:
        return
    program = p.path("urnic-cp")
    shutil.copy(p.program, program)
    os.chmod(program, 0o755)
    p.program = program
    p.user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all",
              "--no-new-privs"]
    os.chown(p.tmp, 65534, 65534)
    os.mkdir(p.to)
    os.chown(p.to, 65534, 65534)
    a = p.make("a", 2_000_000)
    expect(p.run("--to", p.to, a), 0, "verified")
    p.same(a, os.path.join(p.to, "a"))
    check(os.stat(os.path.join(p.to, "a")).st_uid == 65534, "not run as nobody")
    os.chmod(a, 0o600)
    expect(p.run("--to", p.to, a), 1, "cannot read", "Permission denied")
    os.chown(p.to, 0, 0)
    os.chmod(a, 0o644)
    expect(p.run("--to", p.to, "--force", a), 1, "cannot write to the folder")
    p.clean()


if __name__ == "__main__":
    run_all(globals())
