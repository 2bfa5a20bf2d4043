# SPDX-License-Identifier: BSD-3-Clause
"""Models for spin, and what its verifier says of them."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

# Seconds of one command: only a verifier that hangs takes so long, also where other work has the processors.
SECONDS = 3000


def arguments(model):
    """Take the arguments FOLDER_OF_MODEL HEADER [large] off the command line. returns: the model, the header, and whether it is large"""
    large = sys.argv[-1] == "large"
    if large:
        sys.argv.pop()
    header = pathlib.Path(sys.argv.pop()).resolve()
    return pathlib.Path(sys.argv.pop()).resolve() / model, header, large


def check(model, defines, flags, options):
    """The output of the verifier. flags: of the compiler; options: of the verifier"""
    with tempfile.TemporaryDirectory() as folder:
        def run(*command):
            return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
        p = run("spin", *[f"-D{d}" for d in defines], "-a", str(model))
        if p.returncode:
            raise AssertionError(p.stdout + p.stderr)
        p = run("gcc", "-w", "-DVECTORSZ=2048", *flags, "-o", "pan", "pan.c")
        if p.returncode:
            raise AssertionError(p.stderr)
        return run("./pan", "-m200000", *options).stdout


class Case(unittest.TestCase):
    def good(self, out, defines):
        """No error, and the whole of the states was seen."""
        self.assertIn("errors: 0", out, (defines, out))
        self.assertNotIn("out of memory", out, defines)
        self.assertNotIn("max search depth", out, defines)
