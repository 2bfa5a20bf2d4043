#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/lint.sh: its options, and that a finding of each tool counts. The tools
# are fakes: nothing is linted by this test.
# shellcheck source=test/e2e/scripts_common.sh
. "$(dirname "$0")/scripts_common.sh"

check_help lint.sh

# A fake finds something while its file "bad-NAME" is there.
for tool in clang-tidy shellcheck; do
	fake $tool <<E2
echo "$tool \$*" >>"$place/log"
[ ! -e "$place/bad-$tool" ] || { echo "$tool has a finding"; exit 1; }
E2
done
fake clang-format <<<'exit 0'
fake git-clang-format <<<'exit 0'
fake ninja <<E2
echo "ninja \$*" >>"$place/log"
case "\$*" in
*targets*) printf '%s\n' "a/made.h: CUSTOM_COMMAND" "a/made.o: CUSTOM_COMMAND" "a/all: phony" ;;
*) [ ! -e "$place/bad-ninja" ] || { echo "ninja cannot"; exit 1; } ;;
esac
E2
fake git <<E2
case \$1 in
rev-parse) [[ \$* != *nonsense* ]] ;;
clang-format) [ ! -e "$place/bad-format" ] || { echo "-	int  a;"; echo "+	int a;"; } ;;
esac
E2
touch "$place/compile_commands.json"
lint() {
	: >"$place/log"
	try faked "$project/scripts/lint.sh" --build "$place" --jobs 1 "$@"
}

lint
expect "nothing found" 0 "nothing found"
check "libraries are looked at" grep -q "clang-tidy .*dataplane/wire/parse.c" "$place/log"
check "programs are looked at" grep -q "clang-tidy .*apps/urnic-cp/main.c" "$place/log"
check "this script is looked at" grep -q "shellcheck .*test/e2e/scripts_lint.sh" "$place/log"
check "headers that the build makes are there first" grep -qx "ninja -C $place a/made.h" "$place/log"
touch "$place/bad-ninja"
lint
expect "a header cannot be made" 1 "cannot make a/made.h" "ninja cannot"
rm "$place/bad-ninja"
lint
check "all paths are followed" test -z "$(grep max-nodes "$place/log")"
lint --quick
expect "--quick" 0
check "--quick bounds the paths" grep -q "clang-tidy .*--extra-arg=max-nodes=75000" "$place/log"
lint "$project/dataplane/wire/icrc.c"
expect "one file" 0
check "and no other" test "$(grep -c '^clang-tidy' "$place/log")" -eq 1
for what in clang-tidy shellcheck format; do
	touch "$place/bad-$what"
	lint "$project/dataplane/wire/icrc.c"
	expect "a finding of $what" 1 "something was found"
	rm "$place/bad-$what"
done
lint --since nonsense
expect "no such commit" 1 "no commit 'nonsense'"
lint nothing.c
expect "no such file" 1 "no file"
lint "$project/README.md"
expect "no source" 1 "no C source"
lint --jobs 0
expect "--jobs 0" 2 "--jobs"
lint --nonsense
expect "unknown option" 2 "--nonsense" "--help"

# scripts/prose.py reads comments, documents and the texts of programs, not code.
prose() {
	printf '%s\n' "$2" >"$place/prose.$1"
	try "$project/scripts/prose.py" "$place/prose.$1"
}
prose c '/* What is kept. */ const char *s = "// Of";'
expect "a comment that begins with a pronoun" 1 "prose.c:1: begins with What"
prose h '/* The queue is kept. Who reads it waits. */'
expect "a later sentence" 1 "begins with Who"
prose h '/* Is the queue full? */'
expect "a question in a comment" 1 "is a question"
prose c '/* True when the queue is full. */ const char *s = "A queue is full; // Of those";'
expect "a plain comment" 0
prose md '| a cell | of a table |'
expect "a cell of a table" 1 "begins with of"
prose md '## What it does'
expect "a heading" 0
prose c '/* The queue is full. It waits. */'
expect "a sentence that begins with It" 1 "begins with It"
prose c '/* This queue is full. That one waits, because these queues share it. */'
expect "pronouns with nouns, and inside a sentence" 0
prose md 'The queue is full. That costs a turn.'
expect "a sentence that begins with That and a verb" 1 "begins with That costs"
prose md 'The queue is full; who reads it waits.'
expect "a clause that begins with who" 1 "a clause that begins with who"
prose h '/* The queue of a client. who: the owner; what, where: see below */'
expect "parameters named who and what" 0
prose py $'x = "what"  # the queue\n# A comment. Their\n# rows are two lines.'
expect "a comment of Python" 1 "prose.py:2: begins with Their"
prose c $'int a;\nsay("no room: " N\n    "the queue is full.\\nIt waits.");'
expect "a text in parts, of which the second has a second line" 1 "prose.c:2: a text begins with It"
prose c 'say(err, "it is full; give another");'
expect "a message that begins with a pronoun" 1 "a text begins with it"
prose c 'say("the queue is full; who reads waits");'
expect "a message with a clause that begins with who" 1 "a text has a clause that begins with who"
prose c 'say("of those %u", n, "its end is near", "who", "did you mean %s?");'
expect "messages that go on from other words, a word, a question" 0
prose py 'raise ValueError("that is no number")'
expect "a message of Python" 1 "prose.py:1: a text begins with that"
prose py 'def f():
    """Read a row. It is long."""'
expect "a doc string" 1 "prose.py:2: begins with It"
prose sh 'echo "# What" # Whose'
expect "a word in quotes of a script" 0
prose sh 'run # What it does'
expect "a comment of a script" 1 "prose.sh:1: begins with What"
prose ini '# They are two.'
expect "a comment of a configuration" 1 "prose.ini:1: begins with They"
try "$project/scripts/prose.py" --nonsense
expect "prose.py with an unknown option" 2 "--nonsense" "--help"

# scripts/structs.py finds structs of one name in one program, but not in two.
mkdir -p "$place/p/dataplane" "$place/p/apps/one" "$place/p/apps/two"
printf 'struct same {\n};\n' | tee "$place/p/apps/one/a.c" >"$place/p/apps/two/b.c"
structs() {
	try "$project/scripts/structs.py" --project "$place/p"
}
structs
expect "a struct of two programs" 0
printf '\nstruct same {\n};\n' >"$place/p/dataplane/c.h"
structs
expect "a struct of a program and of the dataplane" 1 "struct same" "dataplane/c.h:2" "apps/one/a.c:1"
mkdir -p "$place/p/lib"
printf 'struct urn_qp {\n};\n' | tee "$place/p/dataplane/d.h" >"$place/p/lib/d.h"
structs
expect "a struct of the library and of the dataplane" 1 "struct urn_qp" "dataplane/d.h:1" "lib/d.h:1"
rm -r "$place/p/lib"
mkdir -p "$place/p/lib" "$place/p/test/unit"
printf 'struct one {\n};\n\nint\nmain(void)\n' | tee "$place/p/test/unit/a.c" >"$place/p/test/unit/b.c"
rm "$place/p/apps/one/a.c" "$place/p/apps/two/b.c"
structs
expect "a struct of two programs of test" 0
printf 'struct one {\n};\n' >"$place/p/test/unit/c.h"
structs
expect "a struct of a program of test and of the files beside it" 1 "struct one" "unit/a.c:1" "unit/c.h:1"
mv "$place/p/test/unit/c.h" "$place/p/lib/e.h"
structs
expect "a struct of a program of test and of the library" 1 "struct one" "unit/b.c:1" "lib/e.h:1"
rm "$place/p/lib/e.h"
try "$project/scripts/structs.py" --nonsense
expect "structs.py with an unknown option" 2 "--nonsense" "--help"

# scripts/sizes.py finds functions over 60 lines and files over 600.
function_of() { # NAME LINES
	printf 'static int\n%s(int a,\n\tint b)\n{\n' "$1"
	yes '	a += b;' | head -n "$(($2 - 2))"
	printf '}\n'
}
sizes() {
	try "$project/scripts/sizes.py" --project "$place/p"
}
function_of fits 60 >"$place/p/lib/e.c"
sizes
expect "a function of 60 lines" 0
mkdir -p "$place/p/test"
function_of too_long 61 >"$place/p/test/f.c"
sizes
expect "a function of 61 lines" 1 "test/f.c:4: function too_long has 61 lines"
rm "$place/p/test/f.c"
yes '' | head -n 600 >"$place/p/lib/g.h"
sizes
expect "a file of 600 lines" 0
echo >>"$place/p/lib/g.h"
sizes
expect "a file of 601 lines" 1 "lib/g.h: the file has 601 lines"
try "$project/scripts/sizes.py" --nonsense
expect "sizes.py with an unknown option" 2 "--nonsense" "--help"

# Without one of the tools the script says how to install them. PATH has only the
# commands that the script needs before it looks.
mkdir "$place/few"
for tool in bash cat dirname env grep id mktemp nproc realpath sed stat; do
	ln -s "$(command -v $tool)" "$place/few/"
done
code=0
out=$(PATH=$place/few "$project/scripts/lint.sh" --build "$place" 2>&1) || code=$?
expect "no clang-tidy" 1 "no clang-tidy" "setup.sh --dev"

clean lint.sh
exit $failed
