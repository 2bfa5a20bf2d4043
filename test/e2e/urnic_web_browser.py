#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The page of urnic-web in Chromium without a window: figures, plots, events, names that are HTML, both sets of colours,
names for readers of screens, keys. Skipped where there is no chromium.

usage: urnic_web_browser.py URNIC_WEB URNICCTL URNICD URNIC_PERF CONFIG_FOLDER

With URNIC_TEST_SHOTS=FOLDER pictures of the page are kept there."""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

sys.dont_write_bytecode = True  # no cache of urnic_web
import urnic_web
from urnicd_common import LONG, SECONDS

CHROMIUM = shutil.which("chromium")

# The contrast of a text with what is behind it, as WCAG 2.2 has it, and the least of all texts on the page.
CONTRAST = """(() => {
	const parse = (c) => c.match(/[\\d.]+/g).map(Number);
	const light = (c) => {
		const [r, g, b] = c.slice(0, 3).map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const behind = (e) => {
		for (; e; e = e.parentElement) {
			const c = parse(getComputedStyle(e).backgroundColor);
			if (c.length < 4 || c[3] > 0)
				return c;
		}
		return [255, 255, 255];
	};
	const found = [];
	for (const e of document.querySelectorAll("body *")) {
		const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
		if (!own || e.closest("script, noscript, option, .hidden, .skip"))
			continue;
		const style = getComputedStyle(e), fore = light(parse(e.namespaceURI.endsWith("svg") ? style.fill : style.color)), back = light(behind(e));
		found.push([(Math.max(fore, back) + 0.05) / (Math.min(fore, back) + 0.05), e.outerHTML.slice(0, 100)]);
	}
	return found.sort((a, b) => a[0] - b[0])[0];
})()"""


class Browser:
    """Chromium, told what to do by its DevTools protocol over two pipes."""

    def __init__(self, folder):
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()

        # Chromium reads commands from descriptor 3 and answers on 4.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}', CHROMIUM, "--headless=new", "--remote-debugging-pipe",
             "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--hide-scrollbars", "--window-size=1280,1700", f"--user-data-dir={folder}", "about:blank"],
            pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=dict(os.environ, HOME=folder, XDG_RUNTIME_DIR=folder), start_new_session=True)
        os.close(theirs_in)
        os.close(theirs_out)
        self.out, self.ours_in, self.rest, self.last, self.events = ours_out, ours_in, b"", 0, []
        self.session = None
        try:
            self.attach()
        except BaseException:
            self.close()  # nobody else knows of the process
            raise

    def attach(self):
        """Find the page, and have its events told."""
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(f"{domain}.enable")

    def message(self):
        end = time.time() + SECONDS
        while b"\0" not in self.rest:
            if not select.select([self.ours_in], [], [], max(end - time.time(), 0))[0]:
                raise AssertionError("chromium does not answer")
            more = os.read(self.ours_in, 1 << 16)
            if not more:
                raise AssertionError("chromium has ended")
            self.rest += more
        one, _, self.rest = self.rest.partition(b"\0")
        return json.loads(one)

    def call(self, method, **params):
        self.last += 1
        call = {"id": self.last, "method": method, "params": params, **({"sessionId": self.session} if self.session else {})}
        data = json.dumps(call).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        while True:
            m = self.message()
            if m.get("id") == self.last:
                if "error" in m:
                    raise AssertionError(f"{method}: {m['error']}")
                return m["result"]
            self.events.append(m)

    def js(self, expression):
        r = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise AssertionError(f"{expression}: {r['exceptionDetails']}")
        return r["result"].get("value")

    def key(self, key, code, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key if key != " " else "Space", windowsVirtualKeyCode=code,
                      **({"text": text} if text and kind == "keyDown" else {}))

    def colours(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def complaints(self):
        """Errors of scripts, and things that the policy of the page did not let in."""
        self.js("1")
        return [e for e in self.events if e.get("method") == "Runtime.exceptionThrown" or
                (e.get("method") == "Log.entryAdded" and e["params"]["entry"]["level"] == "error") or
                (e.get("method") == "Runtime.consoleAPICalled" and e["params"]["type"] in ("error", "assert"))]

    def asked(self):
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def shot(self, name):
        if os.environ.get("URNIC_TEST_SHOTS"):
            data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
            with open(os.path.join(os.environ["URNIC_TEST_SHOTS"], name + ".png"), "wb") as f:
                f.write(base64.b64decode(data))

    def close(self):
        os.close(self.out)
        os.close(self.ours_in)
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


class Leaves(unittest.TestCase):
    def test_nothing(self):
        """A chromium that is of no use is ended: it would work on while the next tests run."""
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "chromium")
            with open(program, "w", encoding="utf-8") as f:
                f.write('#!/bin/sh\necho $$ >"$HOME/pid"\nprintf \'{"id": 1, "error": "no"}\\0\' >&4\nexec sleep 1000\n')
            os.chmod(program, 0o700)
            with unittest.mock.patch.object(sys.modules[__name__], "CHROMIUM", program), self.assertRaisesRegex(AssertionError, "no"):
                Browser(folder)
            with open(os.path.join(folder, "pid"), encoding="utf-8") as f, self.assertRaises(ProcessLookupError):
                os.kill(int(f.read()), 0)


class Seen(urnic_web.Page):
    def setUp(self):
        super().setUp()
        self.browser = None
        self.profile = os.path.join(self.dir.name, "profile")
        os.mkdir(self.profile)

    def tearDown(self):
        if self.browser:
            self.browser.close()
        super().tearDown()

    def open(self):
        self.browser = Browser(self.profile)
        self.browser.call("Page.navigate", url=f"http://127.0.0.1:{self.port}/")
        return self.browser

    def shows(self, expression, why=""):
        """Wait until an expression is true on the page. returns: its value"""
        value = self.until(lambda: self.browser.js(f"(() => {{ try {{ return {expression}; }} catch (e) {{ return false; }} }})()"))
        self.assertTrue(value, why or f"{expression}: {self.browser.js('document.body.innerText')}")
        return value

    def test_live(self):
        """Figures, plots and events come by themselves; a hostile name is a text; nothing is asked of anyone else; both sets
        of colours can be read; a reader of screens has words for all; keys do what the mouse does; a frozen urnicd is said."""
        nicd, _ = self.start(wire="impair a0.in = corrupt=10%, delay=50us, seed=5")
        log = os.path.join(self.dir.name, "s.log")
        web = self.web("--session-log", log)
        link = os.path.join(self.dir.name, urnic_web.EVIL)
        os.symlink(self.PERF, link)
        perf = self.popen(link, "write_bw", "--attach", self.socket, "--duration", LONG, "--qps", "2")
        b = self.open()
        self.shows("document.querySelectorAll('#qps tbody tr').length === 4")
        self.shows("document.querySelector('#clients tbody').innerText.includes('<b id=x>&\ufffd')")
        self.assertEqual(b.js("document.querySelectorAll('#x, td b, bdi > *').length"), 0)
        self.shows("document.querySelectorAll('article.card').length === 2")
        self.shows("/^M[\\d.]+ [\\d.]+(L[\\d.]+ [\\d.]+){3}/.test(document.querySelector('svg.plot path.s0').getAttribute('d'))")
        self.shows("document.querySelector('#wires tbody').innerText.includes('corrupt=10')")
        # Long impairments are folded: no column is beyond the edge of a window of 1280.
        self.shows("(e => e.scrollWidth <= e.clientWidth)(document.querySelector('#wires').parentElement)")
        self.shows("[...document.querySelectorAll('#drops tbody tr')].some((r) => r.innerText.includes('drop_icrc'))")
        self.check_words()
        self.check_colours()
        self.check_events(log)
        self.check_keys()
        self.check_frozen(nicd)
        self.assertEqual(b.complaints(), [])
        self.assertEqual({u.split("/")[2] for u in b.asked() if not u.startswith("data:") and u != "about:blank"}, {f"127.0.0.1:{self.port}"})
        perf.kill()
        perf.communicate()
        self.ends(web)
        self.shows("at('state').innerText === 'urnic-web does not answer: has it ended?'")
        self.assertEqual(self.stop(nicd)[0], 0)

    def check_words(self):
        """Every plot, table, button and region has a name, and tables have heads."""
        b = self.browser
        nodes = b.call("Accessibility.getFullAXTree")["nodes"]
        named = ("image", "img", "button", "combobox", "table", "region", "heading", "columnheader")
        bare = [n for n in nodes if not n["ignored"] and n["role"]["value"] in named and not n.get("name", {}).get("value", "").strip()]
        self.assertEqual([(n["role"]["value"], n.get("properties")) for n in bare], [])
        roles = [n["role"]["value"] for n in nodes if not n["ignored"]]
        self.assertGreaterEqual(roles.count("image") + roles.count("img"), 6)  # two plots of each adapter, one of each wire
        for one in ("main", "banner", "status"):
            self.assertEqual(roles.count(one), 1, one)
        self.assertEqual(b.js("document.documentElement.lang"), "en")
        self.assertEqual(b.js("[...document.querySelectorAll('h1,h2,h3')].map((h) => Number(h.tagName[1])).every((n, i, a) => i === 0 ? n === 1 : n <= a[i - 1] + 1)"), True)

    def check_colours(self):
        """Both sets follow the system, and each text has a contrast of 4.5 at least (WCAG 2.2 AA)."""
        b, backs = self.browser, set()
        for scheme in ("light", "dark"):
            b.colours(scheme)
            self.shows(f"document.documentElement.dataset.theme === '{scheme}'")
            backs.add(b.js("getComputedStyle(document.body).backgroundColor"))
            least = b.js(CONTRAST)
            self.assertGreaterEqual(least[0], 4.5, (scheme, least))
            b.shot(f"live-{scheme}")
        self.assertEqual(len(backs), 2)

    def check_events(self, log):
        """A fail-over is on the page, in the plots, and read aloud."""
        b = self.browser
        with open(log, "w", encoding="utf-8") as f:
            f.write(time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime()) + " session[4711.1] notice session move: connection 17 to 33 moved to its path "
                    "from the backup adapter here to the primary one of its peer in 1.2 ms | conn=17\n")
        self.shows("document.querySelector('#events li.failover bdi').innerText.startsWith('connection 17 to 33 moved to its path from the backup adapter')")
        self.shows("document.querySelectorAll('svg.plot path.mark').length > 0")
        self.shows("at('spoken').innerText.includes('connection 17 to 33 moved')")
        self.ctl("port", "b0", "down")
        self.shows("at('state').innerText === '1 of 2 adapters without a link'")
        b.shot("port-down")
        self.ctl("port", "b0", "up")
        self.shows("/^2 adapters with a link/.test(at('state').innerText)")

    def check_keys(self):
        """Pause by the keyboard: figures stand still, and go on. All that can be scrolled can be reached by tab."""
        b = self.browser
        b.js("at('pause').focus()")
        b.key(" ", 32, " ")
        self.shows("at('pause').getAttribute('aria-pressed') === 'true' && !page.busy")
        seq = b.js("page.seq[0]")
        self.assertTrue(self.until(lambda: self.state()["dataplanes"][0]["samples"][-1][0] > seq + 3))
        self.assertEqual(b.js("page.seq[0]"), seq)
        b.key(" ", 32, " ")
        self.shows(f"page.seq[0] > {seq}")
        self.assertEqual(b.js("[...document.querySelectorAll('*')].filter((e) => ['auto', 'scroll'].includes(getComputedStyle(e).overflowY) && e.tabIndex < 0 && e !== document.documentElement).length"), 0)
        # A narrow window, as with large letters: nothing but tables is wider than it.
        b.call("Emulation.setDeviceMetricsOverride", width=320, height=800, deviceScaleFactor=1, mobile=False)
        self.shows("document.documentElement.scrollWidth <= 320")
        b.shot("narrow")
        b.call("Emulation.clearDeviceMetricsOverride")

    def check_frozen(self, nicd):
        b = self.browser
        nicd.send_signal(signal.SIGSTOP)
        os.waitpid(nicd.pid, os.WUNTRACED)
        self.shows("document.querySelector('.tile .word').innerText === 'does not answer'")
        self.shows("document.querySelectorAll('article.card.stale').length === 2")
        b.shot("frozen")
        least = b.js(CONTRAST)
        self.assertGreaterEqual(least[0], 4.5, least)
        nicd.send_signal(signal.SIGCONT)
        self.shows("document.querySelector('.tile .word').innerText === 'answers'")


if __name__ == "__main__":
    if not CHROMIUM:
        print("skipped: there is no chromium")
        sys.exit(77)
    urnic_web.WEB, urnic_web.CTL, Seen.NICD, Seen.PERF, Seen.CONFIG = map(os.path.abspath, sys.argv[1:6])
    unittest.main(argv=sys.argv[:1], verbosity=2)
