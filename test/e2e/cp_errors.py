# SPDX-License-Identifier: BSD-3-Clause
"""urnic-cp: each error has a message of one sentence, and leaves nothing under a final name."""
import os
import resource
import shutil
import socket
import struct
import subprocess

from cp_common import check, embedded_only, expect, once, run_all, verbs_only, wait_until

MAGIC, PROTOCOL = 0x7563706F, 1
OFFER, READY, START, GO, DONE, FAIL = range(1, 7)


def frame(kind, body=b"", magic=MAGIC, protocol=PROTOCOL, length=None):
    return struct.pack("=IHHI", magic, protocol, kind, len(body) if length is None else length) + body


def offer(release=b"0.1.0", mtu=4096, chunk=262144, depth=16, no_check=0, no_icrc=0, over_msg=0):
    return frame(OFFER, struct.pack("=32s6I", release, mtu, chunk, depth, no_check, no_icrc, over_msg))


@embedded_only
def test_usage(p):
    """Bad options: exit code 2, one sentence, nothing started."""
    a = p.make("a", 10)
    for args, text in [
            ([], "Name at least one file"),
            (["--bogus", a], "--bogus is no option"),
            (["--to"], "--to wants a value"),
            (["--to", "", a], "empty"),
            (["--mtu", "1500", a], "--mtu 1500: give"),
            (["--mtu", "8192", a], "--mtu 8192: give"),
            (["--mtu", "-1", a], "--mtu -1: give"),
            (["--mtu", "abc", a], "--mtu abc: give"),
            (["--chunk", "0", a], "--chunk 0: give"),
            (["--chunk", "5000", a], "--chunk 5000: give"),
            (["--chunk", "1G", a], "--chunk 1G: give"),
            (["--chunk", "99999999999999999999", a], "--chunk"),
            (["--depth", "1", a], "--depth 1: give"),
            (["--depth", "1025", a], "--depth 1025: give"),
            (["--chunk", "64M", "--depth", "1024", a], "over 1 GiB"),
            (["--idle", "nap", a], "--idle nap: give"),
            (["--capture", "", a], "--capture"),
            (["--listen", p.path("s"), a], "takes no files"),
            (["--listen", p.path("s"), "--mtu", "1024"], "sender's to say"),
            (["--listen", ""], "empty"),
            (["--peer", p.path("s")], "Name at least one file"),
            (["--peer", p.path("s"), "--to", "x", a], "listener's to say"),
            (["--peer", p.path("s"), "--listen", p.path("t"), a], "one of --listen and --peer"),
            (["--child-fd", "3", a], "belong together"),
            (["--node", "a", a], "go with --attach"),
            (["--attach", "", a], "empty"),
            (["--attach", "auto", "--node", "a", a], "--nodes A,B"),
            (["--attach", "auto", "--nodes", "a", a], "give two names"),
            (["--attach", "auto", "--nodes", "a,b", "--listen", p.path("s")], "give --node"),
            (["--attach", "auto", "--capture", "c", a], "the dataplane's"),
            (["--attach", "auto", "--no-icrc", a], "the dataplane's")]:
        result = p.run(*args)
        expect(result, 2, text)
        check(result[1] == "" and result[2].count("\n") == 1, f"not one sentence: {result}")
    check(not os.path.exists(p.path("received")), "a folder was made")
    p.clean()


def test_bad_files(p):
    """Missing, folder, FIFO, socket, odd names: named one by one; the good ones are sent."""
    good = p.make("good", 5000)
    os.mkdir(p.path("folder"))
    os.mkfifo(p.path("fifo"))
    part = p.make(".urnic-cp-1-1.part", 10)
    result = p.run("--to", p.to, p.path("missing"), p.path("folder"), p.path("folder") + "/",
                   p.path("fifo"), "/dev/zero", part, "", good)
    expect(result, 1, "missing': No such file", "folder' is a folder", "fifo' is not a regular",
           "'/dev/zero' is not a regular", "kept for unfinished", "sent 1 of 8 files")
    p.same(good, os.path.join(p.to, "good"))
    check(os.listdir(p.to) == ["good"], "more than the good file")
    # With nothing to send, nothing is started and no folder made.
    expect(p.run("--to", p.path("none"), p.path("missing")), 1, "missing", "nothing to send")
    check(not os.path.exists(p.path("none")), "a folder was made for nothing")
    p.clean()


def test_unreadable(p):
    """A file that the user may not read; when root runs the test, it starts urnic-cp as another user."""
    a = p.make("a", 10)
    os.chmod(a, 0)
    if os.geteuid() == 0:
        program = p.path("urnic-cp")
        shutil.copy(p.program, program)
        p.program = program
        p.user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    expect(p.run("--to", p.to, a), 1, "cannot read", "Permission denied")


def test_same_name_twice(p):
    """Two files of one name: the second is refused, even with --force."""
    a, b = p.make("d1/x", 1000, seed=1), p.make("d2/x", 1000, seed=2)
    for options in ([], ["--force"]):
        expect(p.run("--to", p.to, *options, a, b, a), 1, "same name", "sent 1 of 3 files")
        p.same(a, os.path.join(p.to, "x"))


def test_exists(p):
    """A file that exists is kept and the sender is told; --force replaces files, but no folders."""
    a = p.make("a", 700_000)
    os.mkdir(p.to)
    old = p.make("to/a", 10, seed=9)
    with open(old, "rb") as f:
        before = f.read()
    b = p.make("b", 100)
    expect(p.run("--to", p.to, a, b), 1, "is in", "--force", "sent 1 of 2 files")
    with open(old, "rb") as f:
        check(f.read() == before, "the old file changed")
    p.same(b, p.path("to", "b"))
    expect(p.run("--to", p.to, "--force", a, b), 0)
    p.same(a, old)
    os.remove(old)
    os.mkdir(old)
    expect(p.run("--to", p.to, "--force", a), 1, "a folder of that name")
    os.rmdir(old)
    os.symlink("/nowhere/at/all", old)
    expect(p.run("--to", p.to, a), 1, "is in")
    expect(p.run("--to", p.to, "--force", a), 0)
    check(not os.path.islink(old), "--force wrote through a symbolic link")
    p.same(a, old)
    check(sorted(os.listdir(p.to)) == ["a", "b"], "something is left beside the copies")
    p.clean()


def test_early_refusal_goes_on(p):
    """Refused files in the middle of many do not disturb those behind them."""
    files = [p.make(f"src/f{i}", 600_000, seed=i) for i in range(12)]
    os.mkdir(p.to)
    for i in range(0, 12, 2):
        p.make(f"to/f{i}", 1)
    expect(p.run("--to", p.to, "--chunk", "4K", "--depth", "4", *files), 1, "sent 6 of 12 files")
    for i in range(1, 12, 2):
        p.same(files[i], p.path("to", f"f{i}"))
    for i in range(0, 12, 2):
        check(os.stat(p.path("to", f"f{i}")).st_size == 1, "a refused file changed")


def test_bad_folder(p):
    """The target is a file, or cannot be made."""
    a = p.make("a", 10)
    expect(p.run("--to", a, a), 1, "is not a folder")
    expect(p.run("--to", p.path("no/such/parent"), a), 1, "cannot make the folder")
    expect(p.run("--listen", p.path("s"), "--to", a), 1, "is not a folder")
    check(not os.path.exists(p.path("s")), "a socket was made")
    p.clean()


def test_grown_file(p):
    """A file that holds more than its size says (as in /proc) is not sent as if it were empty."""
    expect(p.run("--to", p.to, "/proc/self/status"), 1, "became longer")


def full_disk(p, to):
    """Send one file that fits, one that does not, one that fits."""
    a, b, c = p.make("a", 1 << 20), p.make("b", 12 << 20), p.make("c", 1 << 20)
    expect(p.run("--to", to, a, b, c), 1, "did not store", "is full", "sent 2 of 3 files")
    p.same(a, os.path.join(to, "a"))
    p.same(c, os.path.join(to, "c"))
    check(sorted(os.listdir(to)) == ["a", "c"], "something is left of the file that did not fit")
    p.clean()


def test_full_disk(p):
    """A full disk at the receiver: a message, nothing of the file left, and the others arrive."""
    os.mkdir(p.to)
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", p.to]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        print("no right to mount a small file system: the limit on file sizes stands in for it")
        return
    try:
        full_disk(p, p.to)
    finally:
        subprocess.run(["umount", p.to], check=True)


@embedded_only
def test_full_tmpdir(p):
    """No room for runtime files: a message, nothing left. (Writing to mapped files on a full disk would kill.)"""
    a = p.make("a", 1 << 20)
    for size in ("4k", "256k", "1m"):
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=1777", "tmpfs", p.tmp]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
            print("no right to mount a small file system: not tried")
            return
        try:
            expect(p.run("--to", p.to, a), 1, "is full", "TMPDIR")
            p.clean()
        finally:
            subprocess.run(["umount", p.tmp], check=True)
    check(os.listdir(p.to) == [], "a file arrived")


@once
def test_size_limit(p):
    """A limit on file sizes at the receiver (ulimit -f), for a file of mostly holes."""
    limit = 2 << 30  # the EAL's own files stay below
    big = p.make_huge("big", limit + 4096)
    with open(big, "r+b") as f:
        f.seek(limit - 4096)
        f.write(b"x" * 8192)
    small = p.make("small", 100)
    result = p.run("--to", p.to, big, small,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    expect(result, 1, "larger than the file system or the limit", "sent 1 of 2 files")
    check(os.listdir(p.to) == ["small"], "something is left of the file that was too large")
    p.clean()


@embedded_only
def test_no_tmpdir(p):
    """No folder for temporary files, or one with a name too long for sockets."""
    a = p.make("a", 10)
    deep = p.path("tmp", "d" * 60, "e" * 60)
    os.makedirs(deep)
    p.tmp = deep
    rc, out, err = p.run("--to", p.to, a)
    check(rc == 0 or "TMPDIR" in err, f"{rc} {err}")
    check(os.listdir(deep) == [], "left behind")


@embedded_only
def test_capture_fails(p):
    """A capture file that cannot be written stops the program before it sends."""
    a = p.make("a", 10)
    expect(p.run("--capture", p.path("no/such/x.pcapng"), "--to", p.to, a), 1, "x.pcapng")
    check(not os.path.exists(os.path.join(p.to, "a")), "sent all the same")
    p.clean()


def test_summary_unheard(p):
    """Standard output that cannot be written is an error, too."""
    a = p.make("a", 10)
    with open("/dev/full", "w") as full:
        expect(p.run("--to", p.to, a, stdout=full), 1, "standard output")


def test_no_dataplane(p):
    """--attach without a dataplane there, to a node that the dataplane lacks, or on one side only."""
    a = p.make("a", 10)
    if p.dataplanes:
        result = p.run("--to", p.to, "--nodes", "a,nobody", a)
        expect(result, 1, "no node or adapter 'nobody'")
    else:
        result = p.run("--to", p.to, "--attach", p.path("nobody"), a)
        expect(result, 1, "no dataplane at")
    check(result[2].count("\n") == 1, f"not one sentence: {result[2]}")
    p.clean()


def test_no_listener(p):
    """--peer without a listener, --listen at a file that is no socket, names that are too long."""
    a = p.make("a", 10)
    expect(p.run("--peer", p.path("nobody"), a), 1, "nobody listens", "--listen")
    expect(p.run("--listen", a), 1, "is no socket")
    expect(p.run("--listen", p.path("no/folder/s")), 1, "cannot listen")
    expect(p.run("--listen", "/tmp/" + "s" * 120), 1, "shorter")
    check(open(a, "rb").read() != b"", "the file is gone")


def rubbish_to_listener(p, data, text, wait_reply=False):
    sock = p.path("s")
    listener = p.start("--listen", sock, "--to", p.to)
    s = socket.socket(socket.AF_UNIX)
    # Between its bind() and its listen() the socket is there and refuses.
    wait_until("the listener", lambda: s.connect_ex(sock) == 0)
    try:
        s.sendall(data)
    except BrokenPipeError:
        pass
    if wait_reply:
        s.settimeout(60)
        s.recv(65536)
    else:
        s.shutdown(socket.SHUT_WR)
    result = p.finish(listener)
    s.close()
    expect(result, 1, text)
    check(os.listdir(p.to) == [], f"left in the folder: {os.listdir(p.to)}")
    check(not os.path.exists(sock), "the socket is left")
    p.clean()


def test_rubbish_to_listener(p):
    """A sender that sends rubbish, lies or goes away: a message, exit code 1."""
    other, gone = "speaks another protocol", "went away in the middle"
    for data, text in [
            (b"", gone),
            (b"GET / HTTP/1.0\r\n\r\n", other),
            (offer()[:20], gone),
            (os.urandom(4096), other),
            (frame(OFFER, b"x" * 7), other),
            (frame(99), other),
            (frame(0), other),
            (frame(OFFER, protocol=2, body=b"\0" * 56), other),
            (frame(DONE, length=1 << 30), other),
            (frame(GO), "said GO where OFFER was due"),
            (frame(FAIL, b"bad\x1b[31m\nthing\0".ljust(256, b"\0")), "gave up: bad?[31m?thing"),
            (frame(FAIL, b"A" * 256), "gave up: AAAA"),
            (offer(release=b"9.9"), "urnic-cp 9.9"),
            (offer(release=b"A" * 32), "same release"),
            (offer(mtu=1500), "offers values that no urnic-cp would"),
            (offer(chunk=0), "offers values that no urnic-cp would"),
            (offer(chunk=1 << 31), "offers values that no urnic-cp would"),
            (offer(depth=0), "offers values that no urnic-cp would"),
            (offer(depth=0xffffffff), "offers values that no urnic-cp would"),
            (offer(chunk=64 << 20, depth=1024), "offers values that no urnic-cp would"),
            (offer(no_check=2), "offers values that no urnic-cp would"),
            (offer(over_msg=2), "offers values that no urnic-cp would"),
            (offer(over_msg=1, chunk=1 << 20, depth=4), "offers values that no urnic-cp would"),
            (offer(), gone)]:
        rubbish_to_listener(p, data, text)


def test_rubbish_start(p):
    """A sender that gets as far as READY and then sends an impossible address."""
    gid = bytes(10) + b"\xff\xff\x0a\x4d\0\2"
    for qpn, psn, mtu, g in [(0, 1, 5, gid), (1 << 24, 1, 5, gid), (17, 1 << 24, 5, gid),
                             (17, 1, 0, gid), (17, 1, 6, gid), (17, 1, 5, bytes(16))]:
        body = struct.pack("=II16sIIQII", qpn, psn, g, mtu, 0, 0, 0, 0)
        rubbish_to_listener(p, offer() + frame(START, body), "cannot be one", wait_reply=True)
    # A queue where none is used, and none where one is.
    for over, qid, rsvd in [(0, 1 << 32, 0), (1, 0, 0), (1, 1 << 32, 1)]:
        body = struct.pack("=II16sIIQII", 17, 1, gid, 5, 0, qid, 7, rsvd)
        rubbish_to_listener(p, offer(over_msg=over) + frame(START, body), "a receive queue that cannot be one",
                            wait_reply=True)


@verbs_only
@embedded_only
def test_rubbish_to_sender(p):
    """A listener that sends rubbish or goes away: a message, exit code 1."""
    a = p.make("a", 10)
    good = struct.pack("=QIIII16sI108sQII", 4096, 1, 0, 17, 1, bytes(10) + b"\xff\xff\x0a\x4d\0\1", 5,
                       b"/nowhere/memif.sock", 0, 0, 0)
    for data, text in [
            (b"", "went away in the middle"),
            (b"hello", "went away in the middle"),
            (b"x" * 400, "speaks another protocol"),
            (frame(GO), "said GO where READY was due"),
            (frame(FAIL, b"no room".ljust(256, b"\0")), "the receiver gave up: no room"),
            (frame(READY, bytes(len(good))), "cannot be one"),
            (frame(READY, good[:44] + b"relative".ljust(124, b"\0")), "cannot be one"),
            (frame(READY, good[:44] + b"/a,role=server".ljust(124, b"\0")), "cannot be one"),
            (frame(READY, good[:44] + b"/" * 108 + bytes(16)), "cannot be one")]:
        sock = p.path("s")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(sock)
        listener.listen(1)
        sender = p.start("--peer", sock, a)
        s, _ = listener.accept()
        s.recv(65536)
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        expect(p.finish(sender), 1, text)
        s.close()
        listener.close()
        os.remove(sock)
    p.clean()


if __name__ == "__main__":
    run_all(globals())
