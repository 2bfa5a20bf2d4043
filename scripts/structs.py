#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Find structs of one name in one program, which a debugger and a reader can't tell apart.

usage: structs.py [--help] [--project DIR]

A program is a folder of apps, apps/common, and all of the dataplane, the library and
pmd_glue, because a program may embed a dataplane. A program of test is a file with a
main() there, the files of its folder without one, and the same of the others. Looks at
every "struct NAME {" at the start of a line.

  --project DIR  look at this copy of the project (default: the script's own)
  --help         this text

Exit code: 0 nothing found, 1 something was, 2 wrong usage.
"""
import pathlib
import re
import sys

SHARED = ['dataplane', 'lib', 'pmd_glue', 'apps/common']
DEFINED = re.compile(r'^struct (\w+) \{', re.M)
MAIN = re.compile(r'^main\(', re.M)


def of_file(project, path):
    """Names of structs and where they are defined, in a file; and True when the file has a main()."""
    text = path.read_text(encoding='utf-8', errors='replace')
    found = [(m.group(1), f'{path.relative_to(project)}:{text.count(chr(10), 0, m.start()) + 1}')
             for m in DEFINED.finditer(text)]
    return found, bool(MAIN.search(text))


def definitions(project, folder):
    """Names of structs and where they are defined, in a folder and those inside."""
    return [d for path in sorted((project / folder).rglob('*.[ch]')) for d in of_file(project, path)[0]]


def programs_of_test(project):
    """The names of structs and where they are defined, of each program of test."""
    for folder in sorted({p.parent for p in (project / 'test').rglob('*.[ch]')}):
        files = [of_file(project, path) for path in sorted(folder.glob('*.[ch]'))]
        helpers = [d for found, has_main in files if not has_main for d in found]
        for own in [found for found, has_main in files if has_main] or [[]]:
            yield helpers + own


def twice(found):
    """The names with more than one definition, and where."""
    where = {}
    for name, place in found:
        where.setdefault(name, []).append(place)
    return {name: places for name, places in where.items() if len(places) > 1}


def main(args):
    project = pathlib.Path(__file__).resolve().parent.parent
    if args[:1] == ['--help']:
        print(__doc__.strip())
        return 0
    if len(args) == 2 and args[0] == '--project':
        project = pathlib.Path(args[1])
    elif args:
        print(f"structs.py: unknown option '{args[0]}'; see --help", file=sys.stderr)
        return 2
    shared = [d for folder in SHARED for d in definitions(project, folder)]
    bad = twice(shared)
    apps = sorted(p for p in (project / 'apps').iterdir() if p.is_dir() and p.name != 'common')
    programs = [definitions(project, app.relative_to(project)) for app in apps]
    for own in [*programs, *programs_of_test(project)]:
        for name, places in twice(shared + own).items():
            bad[name] = sorted({*bad.get(name, []), *places})
    for name, places in sorted(bad.items()):
        print(f'struct {name} is defined more than once in a program: {", ".join(places)}')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
