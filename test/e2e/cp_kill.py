# SPDX-License-Identifier: BSD-3-Clause
"""urnic-cp: when one side dies in the middle, the other says so and nothing is left."""
import os
import shutil
import signal

from cp_common import alive, attached_only, check, children, expect, is_receiving, run_all, wait_until


def start_pair(p):
    """Start a transfer with one command. Returns the sender and the receiver's pid in its middle."""
    sender = p.start("--to", p.to, p.make_huge("huge"))
    pid = wait_until("the receiver", lambda: children(sender.pid))[0]
    wait_until("a file under way", lambda: is_receiving(pid, p.to))
    return sender, pid


def start_two(p):
    """Start a transfer with two commands. Returns sender and listener in its middle."""
    sock = p.path("s")
    listener = p.start("--listen", sock, "--to", p.to)
    wait_until("the socket", lambda: os.path.exists(sock))
    sender = p.start("--peer", sock, p.make_huge("huge"))
    wait_until("a file under way", lambda: is_receiving(listener.pid, p.to))
    return sender, listener


def nothing_left(p, tmp=True):
    check(os.listdir(p.to) == [], f"left in the folder: {os.listdir(p.to)}")
    if tmp:
        p.clean()


def test_receiver_killed(p):
    """SIGKILL for the receiver of a pair."""
    sender, pid = start_pair(p)
    os.kill(pid, signal.SIGKILL)
    expect(p.finish(sender), 1, "the receiver went away", "killed by signal 9", "sent 0 of 1")
    nothing_left(p)


def test_sender_killed(p):
    """SIGKILL for the sender of a pair: the receiver says so, ends and tidies up for both."""
    sender, pid = start_pair(p)
    os.kill(sender.pid, signal.SIGKILL)
    # Standard error ends when the receiver has ended.
    expect(p.finish(sender), -signal.SIGKILL, "receiver: the sender went away")
    wait_until("the receiver's end", lambda: not alive(pid))
    nothing_left(p)


def test_listener_killed(p):
    """SIGKILL for a listener."""
    sender, listener = start_two(p)
    listener.kill()
    expect(p.finish(sender), 1, "the receiver went away")
    p.finish(listener)
    # Runtime files of a killed process go at the next start; its file never had a name.
    nothing_left(p, tmp=False)


@attached_only
def test_dataplane_killed(p):
    """SIGKILL for the dataplane of both: a message says so."""
    sender, pid = start_pair(p)
    dataplane = p.dataplanes.running.pop("two")
    dataplane.kill()
    dataplane.communicate()
    expect(p.finish(sender), 1, "the dataplane that this side is attached to is gone", "sent 0 of 1")
    wait_until("the receiver's end", lambda: not alive(pid))
    shutil.rmtree(p.dataplanes.dir)
    os.mkdir(p.dataplanes.dir)
    nothing_left(p)


def test_peer_killed(p):
    """SIGKILL for a sender in its own terminal: the listener says so, exit code 1."""
    sender, listener = start_two(p)
    sender.kill()
    expect(p.finish(listener), 1, "the sender went away", "received 0 of 1 file")
    p.finish(sender)
    nothing_left(p, tmp=False)


def test_interrupt(p):
    """Ctrl-C, SIGTERM and SIGHUP to the sender, and Ctrl-C to both as a terminal does."""
    for sig, group in [(signal.SIGINT, False), (signal.SIGTERM, False), (signal.SIGHUP, False),
                       (signal.SIGINT, True)]:
        sender, pid = start_pair(p)
        if group:
            os.killpg(sender.pid, sig)
        else:
            os.kill(sender.pid, sig)
        result = p.finish(sender)
        expect(result, 1, "interrupted")
        check(result[2].count("\n") == 1, f"more than one sentence: {result[2]!r}")
        check(not alive(pid), "the receiver lives on")
        nothing_left(p)


def test_terminate_receiver(p):
    """SIGTERM to the receiver of a pair: it tells the sender."""
    sender, pid = start_pair(p)
    os.kill(pid, signal.SIGTERM)
    expect(p.finish(sender), 1, "the receiver gave up: interrupted")
    nothing_left(p)


def test_interrupt_two(p):
    """Signals in two terminals: each side tells the other."""
    sender, listener = start_two(p)
    sender.send_signal(signal.SIGINT)
    expect(p.finish(sender), 1, "interrupted")
    expect(p.finish(listener), 1, "the sender gave up: interrupted")
    nothing_left(p)
    sender, listener = start_two(p)
    listener.send_signal(signal.SIGTERM)
    expect(p.finish(listener), 1, "interrupted")
    expect(p.finish(sender), 1, "the receiver gave up: interrupted")
    nothing_left(p)


def test_interrupt_listener_waiting(p):
    """A listener that waits for a sender ends at Ctrl-C and takes its socket along."""
    sock = p.path("s")
    listener = p.start("--listen", sock, "--to", p.to)
    wait_until("the socket", lambda: os.path.exists(sock))
    listener.send_signal(signal.SIGINT)
    expect(p.finish(listener), 1, "interrupted")
    check(not os.path.exists(sock), "the socket is left")
    nothing_left(p)


def test_stopped_receiver(p):
    """A receiver that is stopped for a while loses nothing: the transfer goes on."""
    size = 400 << 20
    src = p.make_huge("zeros", size)
    sender = p.start("--to", p.to, src)
    pid = wait_until("the receiver", lambda: children(sender.pid))[0]
    wait_until("a file under way", lambda: is_receiving(pid, p.to) or not alive(pid))
    os.kill(pid, signal.SIGSTOP)
    try:
        # Longer than one acknowledgement timeout, much shorter than all retries.
        try:
            sender.wait(1.5)
        except Exception:
            pass
    finally:
        os.kill(pid, signal.SIGCONT)
    expect(p.finish(sender), 0, "verified")
    p.same(src, os.path.join(p.to, "zeros"))


if __name__ == "__main__":
    run_all(globals())
