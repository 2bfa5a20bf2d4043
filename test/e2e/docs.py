#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Check that README.md and all pages below doc/ are true.

usage: docs.py PROJECT BUILD

Commands come from fenced blocks that begin with ```sh. All of them run one after the
other, in a folder with links to the project, where `build` is BUILD. Programs can be called
as if they were installed, and /usr/share/urnic is the project's config. All pages share the folder: no command may fail because of a file that another one left.

    ```sh            runs each command; it must succeed
    ```sh terminals  each is started once the one before has said something; a daemon
                     is stopped when the last has ended
    ```sh norun      does not run
    ```c FILE        is written to FILE first, for commands to compile

Options that any of the commands gives to our own programs must be in their --help.
Scripts are not run here, because they install and build; test/e2e/scripts_*.sh run them.

Links must lead to pages and headings that exist. Files, functions, counters and
environment variables that a page names must exist, and so must each error message
that doc/troubleshooting.md explains.
"""
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

TIMEOUT = 240  # seconds for one command; generous, for sanitizers on a busy machine
OURS = re.compile(r"^(urnicd|urnicctl|urnic-[a-z]+|scripts/[\w-]+\.sh|build/apps/.*|build/test/(sim/urnic-sim|peer/urnic-peer-sim)|build/examples/.*|\.ci/run)$")
DAEMON = re.compile(r"^(build/apps/urnicd/)?urnicd -c")
SCRIPT = re.compile(r"^(scripts/|\.ci/)")

TOPS = ("apps", "dataplane", "examples", "lib", "pmd_glue", "scripts", "test")

failures = []


def fail(where, text):
    failures.append(f"{where}: {text}")


class Doc:
    """One page: its text, its fenced blocks, and the text without them."""

    def __init__(self, project, name):
        self.name = name
        with open(os.path.join(project, name), encoding="utf-8") as f:
            self.text = f.read()
        self.blocks = re.findall(r"^```([^\n]*)\n(.*?)^```$", self.text, re.M | re.S)
        self.prose = re.sub(r"^```.*?^```$", "", self.text, flags=re.M | re.S)

    def commands(self):
        """Yields (mode, commands) of each shell block."""
        for info, body in self.blocks:
            words = info.split()
            if not words or words[0] != "sh":
                continue
            mode = words[1] if len(words) > 1 else "run"
            if mode not in ("run", "norun", "terminals"):
                fail(self.name, f"```sh {mode}: run, norun and terminals are all there is")
            body = body.replace("\\\n", " ")
            lines = [l for l in body.splitlines() if l.strip() and not l.startswith("#")]
            yield mode, lines


class Place:
    """The folder where commands run: links to the project, `build`, and a /tmp of its own."""

    def __init__(self, project, build):
        self.dir = tempfile.mkdtemp(prefix="urnic-docs.", dir="/tmp")
        for entry in os.listdir(project):
            if not entry.startswith(("build", ".git")):
                os.symlink(os.path.join(project, entry), os.path.join(self.dir, entry))
        os.symlink(build, os.path.join(self.dir, "build"))
        os.mkdir(os.path.join(self.dir, "tmp"))
        # Programs by their names, as if installed.
        self.bin = os.path.join(self.dir, "bin")
        os.mkdir(self.bin)
        for program in glob.glob(os.path.join(build, "apps/*/urnic*")):
            if os.path.isfile(program) and os.access(program, os.X_OK):
                os.symlink(program, os.path.join(self.bin, os.path.basename(program)))
        self.compiler = compiler(build)
        self.env = dict(os.environ, PATH=f"{self.bin}:{os.environ['PATH']}", TMPDIR=os.path.join(self.dir, "tmp"), LC_ALL="C.UTF-8")

    def program(self, name):
        """Path of a program that a page calls by its path in the project, or by its name."""
        return os.path.join(self.dir if "/" in name else self.bin, name)

    def write(self, doc):
        """Write the sources that a page shows to their files."""
        for info, body in doc.blocks:
            if re.fullmatch(r"c \w+\.c", info.strip()):
                with open(os.path.join(self.dir, info.split()[1]), "w", encoding="utf-8") as f:
                    f.write(body)

    def start(self, command):
        command = command.replace("/tmp/", self.env["TMPDIR"] + "/").replace("/usr/share/urnic/", "config/")
        command = re.sub(r"^cc ", self.compiler + " ", command)
        return subprocess.Popen(["bash", "-c", command], cwd=self.dir, env=self.env,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def close(self):
        shutil.rmtree(self.dir)


def compiler(build):
    """The compiler of the build and its sanitizers, which programs need to link against its archives."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        words = shlex.split(json.load(f)[0]["command"])
    return " ".join([w for w in words[:2] if not w.startswith("-")] +
                    [w for w in words if w.startswith("-fsanitize")])


def finish(doc, command, process):
    """Wait for a command that must succeed. Returns its standard output, or None when the command failed."""
    try:
        out, err = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    if process.returncode != 0:
        fail(doc.name, f"`{command}` ended with {process.returncode}:\n{out}{err}")
        return None
    return out


def run_terminals(doc, place, lines):
    running = []
    for line in lines:
        process = place.start(line)
        if line != lines[-1]:
            process.stderr.readline()
        running.append((line, process))
    for line, process in reversed(running):
        if DAEMON.match(line): # it would run for ever
            process.terminate()
        finish(doc, line, process)


def json_keys(doc, command, out):
    """Check that the page explains every key at the top of the output."""
    result = json.loads(out)
    for key in result:
        if f"`{key}`" not in doc.text:
            fail(doc.name, f"`{command}` prints the key {key}, which is not explained")


def check_commands(doc, place):
    for mode, lines in doc.commands():
        if mode == "terminals":
            run_terminals(doc, place, lines)
        for line in lines if mode == "run" else []:
            if SCRIPT.match(line):
                continue
            out = finish(doc, line, place.start(line))
            if out is not None and "--json" in line and doc.name.startswith(("doc/reference/", "doc/inside/")):
                json_keys(doc, line, out)


def help_of(place, program, cache={}):
    if program not in cache:
        if program == ".ci/run":
            return ""
        path = place.program(program)
        done = subprocess.run([path, "--help"], capture_output=True, text=True, env=place.env,
                              check=False, timeout=TIMEOUT)
        cache[program] = done.stdout if done.returncode == 0 else ""
    return cache[program]


def options_of(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


def check_options(doc, place):
    """Check that our programs have the options that commands give them."""
    for _, lines in doc.commands():
        for line in lines:
            words = shlex.split(line, comments=True)
            if not words or not OURS.match(words[0]):
                continue
            if not os.access(place.program(words[0]), os.X_OK):
                fail(doc.name, f"there is no program {words[0]}")
                continue
            given = options_of(" ".join(words[1:]))
            for option in given - options_of(help_of(place, words[0])) - {"--help"}:
                fail(doc.name, f"{words[0]} has no option {option}")


def check_manual(doc, place, program):
    """Check that the table of a program's page has the options of its --help."""
    table = "\n".join(re.findall(r"^\| (`--.*?) \|", doc.text, re.M))
    here, there = options_of(table), options_of(help_of(place, program))
    if here != there:
        fail(doc.name, f"options here only: {sorted(here - there)}; "
                       f"in {program} --help only: {sorted(there - here)}")


def anchors(doc):
    """Names that a link may have behind its #: GitHub makes them of headings in this way."""
    titles = re.findall(r"^#+ (.*)$", doc.prose, re.M)
    return {re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles}


def check_links(doc, project, docs):
    pages = {d.name: d for d in docs}
    for target in re.findall(r"\]\(([^)\s]+)\)", doc.prose):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, heading = target.partition("#")
        to = os.path.normpath(os.path.join(os.path.dirname(doc.name), path)) if path else doc.name
        if not os.path.exists(os.path.join(project, to)):
            fail(doc.name, f"the link to {target} leads nowhere")
        elif heading and (to not in pages or heading not in anchors(pages[to])):
            fail(doc.name, f"the link to {target} names no heading there")


def check_names(doc, project, source):
    """Check that files and functions that a page names exist."""
    for path in re.findall(r"`((?:apps|config|dataplane|doc|examples|lib|pmd_glue|scripts|test)/[\w./-]+)`",
                           doc.prose):
        if not os.path.exists(os.path.join(project, path)):
            fail(doc.name, f"there is no {path}")
    for path in set(re.findall(r"(?<![\w/.-])doc/[\w/-]+\.md\b", doc.text)):
        if not os.path.exists(os.path.join(project, path)):
            fail(doc.name, f"there is no page {path}")
    files = {n for top in TOPS for _, _, names in os.walk(os.path.join(project, top)) for n in names}
    files.update(info.split()[-1] for info, _ in doc.blocks if info.startswith("c "))
    for span in re.findall(r"`([^`\n]+)`", doc.prose):
        for name in re.findall(r"(?<!infiniband/)(?<!rdma/)\b([\w-]+\.[ch])\b(?!\.\w)", span):
            if name not in files:
                fail(doc.name, f"there is no file {name}")
    for name in set(re.findall(r"\b(urn_\w+)\(\)", doc.text)):
        if not re.search(rf"\b{name}\(", source):
            fail(doc.name, f"there is no function {name}()")
    for name in set(re.findall(r"\bURN_[A-Z0-9_]*[A-Z0-9]\b", doc.text)):
        if name not in source:
            fail(doc.name, f"there is no {name}")


# Files that define counters, and the page and section that lists them.
COUNTERS = (("dataplane/counters_*.h", "doc/reference/counters.md", "Counters"),
            ("dataplane/switch/switch.h", "doc/reference/urnic-switch.md", "Counters of a port"),
            ("dataplane/switch/impair.h", "doc/reference/urnic-switch.md", "Counters of an impairment"),
            ("dataplane/switch/queue.h", "doc/reference/urnic-switch.md", "Counters of a queue"),
            ("dataplane/switch/mark.h", "doc/reference/urnic-switch.md", "Counters of marks"),
            ("dataplane/switch/fabric.h", "doc/reference/urnic-switch.md", "Counters of a device"))

# Pages of programs, each named after its program: their tables have the options of --help.
MANUALS = ("urnic-cp", "urnic-perf", "urnic-pingpong", "urnic-run", "urnic-switch", "urnic-top", "urnic-web", "urnicctl")


def check_counter_list(project, docs, header, page, section):
    """Check that the section's table has every counter of the header once. Returns the names of counters."""
    names = set()
    for path in glob.glob(os.path.join(project, header)):
        with open(path, encoding="utf-8") as f:
            names.update(re.findall(r'^\tX\(\w+, "(\w+)"', f.read(), re.M))
    doc = next(d for d in docs if d.name == page)
    level, text = re.search(rf"^(#+) {section}\n(.*)", doc.text, re.M | re.S).groups()
    text = re.split(rf"^#{{1,{len(level)}}} ", text, flags=re.M)[0]
    listed = re.findall(r"^\| `(\w+)` \|", text, re.M)
    if not names:
        fail(page, f"no counters were found in {header}")
    for name in sorted(names.symmetric_difference(listed)):
        fail(page, f"the counter {name} is " +
             ("not listed" if name in names else f"not in {header}"))
    for name in sorted(n for n in set(listed) if listed.count(n) > 1):
        fail(page, f"the counter {name} is listed twice")
    return names


def check_counters(project, docs):
    real = set().union(*(check_counter_list(project, docs, *where) for where in COUNTERS))
    for doc in docs:
        for name in sorted(set(re.findall(r"\bdrop_\w+", doc.text)) - real):
            fail(doc.name, f"there is no counter {name}")


def check_features(project, docs):
    """Check that the table of link.md has the rows of the list of features."""
    with open(os.path.join(project, "dataplane/wire/features.h"), encoding="utf-8") as f:
        rows = re.findall(r'\bX\((\w+), (\d+), "\w+",\s*"([^"]*)"\)', f.read())
    page = next(d for d in docs if d.name == "doc/inside/link.md")
    listed = re.findall(r"^\| (\d+) \| `URN_LINK_F_(\w+)` \| (.*?)(?: \(\[.*)? \|$", page.text, re.M)
    if not rows or sorted(rows) != sorted((name, bit, text) for bit, name, text in listed):
        fail(page.name, "its features are not those of dataplane/wire/features.h")


def check_environment(docs, source):
    """Check that the table has every variable URNIC_* that the source reads, and that pages name no other."""
    page = next(d for d in docs if d.name == "doc/reference/environment.md")
    listed = set(re.findall(r"^\| `(URNIC_\w+)` \|", page.text, re.M))
    for name in sorted(set(re.findall(r'getenv\("(URNIC_\w+)"\)', source)) - listed):
        fail(page.name, f"{name} is read, and not listed")
    for doc in docs:
        for name in sorted(set(re.findall(r"\bURNIC_[A-Z_]*[A-Z]\b", doc.text)) - listed):
            fail(doc.name, f"{name} is in no table of {page.name}")


def check_messages(docs, source):
    """Check that messages that the page explains are in the source; `...` stands for any text."""
    page = next(d for d in docs if d.name == "doc/troubleshooting.md")
    joined = re.sub(r'(?<!\\)"\s*(?:PRI[a-zX]+\d+\s*)?"', "", source).replace("\\\"", '"')
    found = re.findall(r"^### `(.*)`$", page.text, re.M)
    if not found:
        fail(page.name, "no messages were found")
    for message in found:
        for part in message.split("..."):
            if part.strip() not in joined:
                fail(page.name, f"no source says: {part.strip()}")


def sources(project):
    text = []
    for top in ("apps", "dataplane", "examples", "lib", "pmd_glue"):
        for folder, _, names in os.walk(os.path.join(project, top)):
            for name in names:
                if name.endswith((".c", ".h", ".py")):
                    with open(os.path.join(folder, name), encoding="utf-8") as f:
                        text.append(f.read())
    return "\n".join(text)


def main():
    project, build = (os.path.realpath(a) for a in sys.argv[1:3])
    names = ["README.md"] + sorted(os.path.relpath(os.path.join(folder, n), project)
                                   for folder, _, files in os.walk(os.path.join(project, "doc"))
                                   for n in files if n.endswith(".md"))
    docs = [Doc(project, n) for n in names]
    source = sources(project)
    place = Place(project, build)
    try:
        for doc in docs:
            check_links(doc, project, docs)
            check_names(doc, project, source)
            check_options(doc, place)
            program = os.path.basename(doc.name)[:-len(".md")]
            if program in MANUALS:
                check_manual(doc, place, f"build/apps/{program}/{program}")
            place.write(doc)
            check_commands(doc, place)
    finally:
        place.close()
    check_counters(project, docs)
    check_features(project, docs)
    check_environment(docs, source)
    check_messages(docs, source)
    for text in failures:
        print(f"FAILED: {text}", file=sys.stderr)
    print(f"{len(docs)} pages, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
