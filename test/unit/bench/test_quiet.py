# SPDX-License-Identifier: BSD-3-Clause
"""A machine that is not quiet is said, in words; rounds that drift are measured again or marked; then there are no
verdicts. usage: test_quiet.py MODULES"""
import json
import os
import sys
import time
import types
import unittest

sys.path.insert(0, sys.argv.pop(1))
import am # pylint: disable=wrong-import-position
import main # pylint: disable=wrong-import-position
import page # pylint: disable=wrong-import-position
import quiet # pylint: disable=wrong-import-position
import report # pylint: disable=wrong-import-position
import sections # pylint: disable=wrong-import-position
import speed # pylint: disable=wrong-import-position
import stats # pylint: disable=wrong-import-position
import terms # pylint: disable=wrong-import-position

CALM = (1000.0, 0.0)


def watch(*looks, cores=(0, 1), clock=None):
    """A watch that sees these looks in turn, the last one for ever: ((speed, taken) of each core, ..., hop). clock: gives moments"""
    todo = list(looks)

    def next_look():
        return todo[0] if len(todo) == 1 else todo.pop(0)

    state = {}

    def work(core):
        if core == min(cores):
            state["now"] = next_look()
        return state["now"][sorted(set(cores)).index(core)]

    return quiet.Watch(cores, lambda: state["now"][-1], work, clock or (lambda cores: None))


def measured(found, repeats=0, rounds=3):
    """Run rounds. Returns the watch"""
    done = number = 0
    while done < rounds:
        number += 1
        found.begin()
        if found.end(number, repeats > 0):
            repeats -= 1
        else:
            done += 1
    return found


class Section:
    """A section with one series, whose values are the number of the measurement"""

    def __init__(self, first=False):
        self.calls = 0
        self.name, self.points, self.rows = "size", [1], []
        self.series = [sections.Series("urnic", self.measure, first=first)]

    def measure(self, point):
        self.calls += 1
        return [(point, "gbps", self.calls)]


class Quiet(unittest.TestCase):
    def test_calm(self):
        """A few percent are no drift, and the state of the cores is told."""
        for hop, word in ((0.17, "near: a bare frame takes 0.17 us"), (0.75, "far: a bare frame takes 0.75 us")):
            w = measured(watch((CALM, CALM, hop), ((1050.0, 0.01), CALM, hop)))
            is_quiet, said = quiet.judge(w)
            self.assertTrue(is_quiet, said)
            self.assertIn("The machine was quiet", said)
            self.assertIn("at most 1% of a core while it ran", said)
            self.assertIn(word, quiet.state(w))

    def test_each_kind_of_noise(self):
        """A core that slows down or speeds up, one that others have, cores that move."""
        for second, words in (((CALM, (800.0, 0), 0.2), "core 1 was 20% slower after it than before"),
                              ((CALM, (1200.0, 0), 0.2), "core 1 was 20% faster after it than before"),
                              (((1000.0, 0.3), CALM, 0.2), "other work had 30% of core 0 while the reference loop ran"),
                              ((CALM, CALM, 0.8), "a bare frame took 0.20 us between the cores before it and 0.80 us after")):
            w = measured(watch((CALM, CALM, 0.2), second))
            is_quiet, said = quiet.judge(w)
            self.assertFalse(is_quiet)
            self.assertIn("NOT QUIET", said)
            self.assertIn("no verdicts", said)
            self.assertIn("round 1: " + words, said)

    def test_work_within_a_round(self):
        """Work that begins and ends between two looks is seen by the processor time that nobody of the bench had."""
        for other, noisy in ((0.0, False), (8.0, False), (30.0, True)): # seconds of 200, two cores for 100
            now = [quiet.Moment(100.0 * i, 1000 + i * (150 + other), i * 150.0) for i in range(10)]
            # A round of the watch has two moments.
            moments = iter([m for a, b in zip(now, now[1:]) for m in (a, b)])
            is_quiet, said = quiet.judge(measured(watch((CALM, CALM, 0.2), clock=lambda cores, m=moments: next(m))))
            self.assertEqual(is_quiet, not noisy, said)
            self.assertIn("round 1: other work had 15% of the cores during it" if noisy else f"at most {other / 200:.0%} of the cores during a round", said)
        self.assertIn("is not known", quiet.judge(measured(watch((CALM, CALM, 0.2))))[1])

    def test_own_work_is_no_other(self):
        """Seconds of a child are the bench's, while it lives and when it has ended, and the machine's figures have them."""
        cores = sorted(os.sched_getaffinity(0))
        begin = quiet.moment(cores)
        child = os.fork()
        if child == 0:
            end = time.thread_time() + 0.5
            while time.thread_time() < end:
                pass
            os.kill(os.getpid(), 19) # stops, and is not waited for
            os._exit(0)
        os.waitpid(child, os.WUNTRACED)
        living = quiet.own_seconds()
        os.kill(child, 9)
        os.waitpid(child, 0)
        self.assertGreaterEqual(living - begin.ours, 0.45)
        self.assertGreaterEqual(quiet.own_seconds() - begin.ours, 0.45)
        if begin.busy: # a sandbox may have no figures of the machine
            self.assertGreaterEqual(quiet.busy_seconds(cores) - begin.busy, 0.3)

    def test_sentences_are_withheld(self):
        """Which way is the better one is a verdict."""
        rows = [stats.Row(1, "am", 64, way, size, "gbps", 1.0) for way in am.WAYS for size in (64, 128)]
        summary = stats.summarize(rows)
        self.assertIn(" against ", am.said(summary, "am"))
        self.assertIn("withheld", am.said(summary, "am", is_quiet=False))
        self.assertNotIn(" against ", am.said(summary, "am", is_quiet=False))

    def test_slow_drift_over_rounds(self):
        """No two neighbours differ by much, the first and the last do."""
        looks = [((1000.0 * 0.92 ** i, 0), CALM, 0.2) for i in range(4)]
        is_quiet, said = quiet.judge(measured(watch(*looks)))
        self.assertFalse(is_quiet)
        self.assertIn("core 0 was 28% faster at one time than at another", said)

    def test_near_then_far(self):
        w = measured(watch((CALM, CALM, 0.30), (CALM, CALM, 0.30), (CALM, CALM, 0.44)))
        is_quiet, said = quiet.judge(w)
        self.assertFalse(is_quiet)
        self.assertIn("the cores were near each other in round 1 and far in round 2, 3", said)
        self.assertIn("near in round 1, far in round 2, 3", quiet.state(w))

    def test_on_the_line(self):
        """Cores whose frames take about as long in all rounds did not move, on whichever side of near they are."""
        for low, high, moved in ((0.39, 0.41, False), (0.36, 0.42, False), (0.35, 0.43, True)):
            is_quiet, said = quiet.judge(measured(watch((CALM, CALM, low), (CALM, CALM, low), (CALM, CALM, high))))
            self.assertEqual(is_quiet, not moved, said)
            self.assertEqual("the cores were near" in said, moved)

    def test_nothing_known(self):
        w = watch((CALM, CALM, None))
        self.assertFalse(quiet.judge(w)[0])
        self.assertIn("no round came to its end", quiet.judge(w)[1])
        self.assertIn("not known", quiet.state(measured(w)))
        self.assertTrue(quiet.judge(w)[0])
        self.assertIn("one core", quiet.state(measured(watch((CALM, None), cores=(3, 3)))))
        json.dumps(quiet.as_json(w))

    def test_real_loop(self):
        """The loop comes back, with possible figures, and leaves the thread where it may run."""
        before = os.sched_getaffinity(0)
        found, taken = quiet.loop(min(before))
        self.assertGreater(found, 0)
        self.assertTrue(0 <= taken < 1, taken)
        self.assertEqual(os.sched_getaffinity(0), before)

    def test_other_work_is_seen(self):
        """A child that works on the same core takes a share of it, whatever else runs."""
        core = min(os.sched_getaffinity(0))
        child = os.fork()
        if child == 0:
            os.sched_setaffinity(0, {core})
            end = time.monotonic() + 60 # should nobody end it
            while time.monotonic() < end:
                pass
            os._exit(0)
        try:
            self.assertGreater(max(quiet.loop(core)[1] for _ in range(5)), quiet.TAKEN)
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)


class Rounds(unittest.TestCase):
    def bench(self, section, rounds, *looks):
        written = []
        b = main.Bench([section], rounds, types.SimpleNamespace(write=written.append), watch(*looks))
        b.progress.live, b.progress.said = False, None
        stderr, sys.stderr = sys.stderr, open(os.devnull, "w", encoding="utf-8")
        try:
            b.run()
        finally:
            sys.stderr.close()
            sys.stderr = stderr
        return b, written

    def test_a_round_that_drifted_is_measured_again(self):
        slow = ((500.0, 0), CALM, 0.2)
        calm = (CALM, CALM, 0.2)
        b, written = self.bench(Section(), 4, calm, slow, slow, slow, slow, slow)
        self.assertEqual([r.value for r in b.rows], [2, 3, 4, 5])
        self.assertEqual([r.round for r in written], [1, 2, 3, 4, 5])  # raw.csv has all
        self.assertEqual([(r.kept, bool(r.why)) for r in b.watch.rounds], [(False, True)] + 4 * [(True, False)])
        is_quiet, said = quiet.judge(b.watch)
        self.assertTrue(is_quiet)
        self.assertIn("1 round that drifted was measured again", said)
        self.assertIn("round 1: measured again", [name for name, _ in quiet.rows(b.watch)[2]])

    def test_repeats_have_a_bound(self):
        """On a machine that is never quiet half of the rounds are measured again, and the others marked."""
        busy = ((1000.0, 0.5), CALM, 0.2)
        for rounds in (1, 2, 4, 5):
            section = Section()
            b, _ = self.bench(section, rounds, busy)
            self.assertEqual(section.calls, rounds + rounds // 2)
            self.assertEqual(len(b.rows), rounds)
            self.assertIn("DRIFTED", quiet.rows(b.watch)[2][-1][0])

    def test_what_the_first_round_alone_has(self):
        """A figure of the first round is measured again with it."""
        b, _ = self.bench(Section(first=True), 3, (CALM, CALM, 0.2), ((500.0, 0), CALM, 0.2))
        self.assertEqual([r.value for r in b.rows], [2])


class Page(unittest.TestCase):
    def text(self, w):
        """Page and text of a table with a figure that misses its mark"""
        urnic = types.SimpleNamespace(switch=None, programs=None)
        table = sections.ALL["speed"](urnic, None, 1, False)
        raw = [stats.Row(1, "speed", "write_limit", "WRITE beside limit", "write_limit", "ratio", 0.5)]
        verdicts = {"speed": speed.verdicts(raw)}
        is_quiet, said = quiet.judge(w)
        if not is_quiet:
            verdicts = quiet.withhold(verdicts)
        args = ({"machine": "x"}, [table], stats.summarize(raw), verdicts, {})
        looks = quiet.rows(w)
        return page.page(*args, 1, is_quiet, said, looks), report.text(*args, said, looks)

    def test_verdicts_are_withheld(self):
        for found in self.text(measured(watch((CALM, CALM, 0.2), ((500.0, 0), CALM, 0.2)))):
            self.assertIn("NOT QUIET", found)
            self.assertLess(found.index("NOT QUIET"), found.index("64 KiB WRITE"))
            self.assertIn("withheld", found)
            self.assertNotRegex(found, r"of limit.*(>| )MISSED(<|$)")
            self.assertNotIn("reached<", found)
            self.assertIn("not measured", found)  # this stays true of the others

    def test_verdicts_of_a_quiet_machine(self):
        html, text = self.text(measured(watch((CALM, CALM, 0.2))))
        self.assertIn('class="MISSED"', html)
        self.assertNotIn('class="unquiet"', html)
        self.assertRegex(text, r"of limit.* MISSED")

    def test_terms_are_explained_where_they_stand(self):
        html, text = self.text(measured(watch((CALM, CALM, 0.2))))
        for term in ("must", "aim", "of limit", "posix"):
            self.assertIn(f"<b>{term}</b>: ", html)
            self.assertIn(f"\n  {term}: {terms.TERMS[term]}", text)
        self.assertNotIn("<b>withheld</b>", html)
        self.assertEqual(list(terms.used(["nothing of that"])), [])
        self.assertEqual(list(terms.used(["limit: no protocol", "ucx tag_bw, posix"])), ["limit", "posix"])


if __name__ == "__main__":
    unittest.main()
