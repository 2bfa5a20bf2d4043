#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/run.sh: its options, its errors, what it does and what it leaves.
# $2 is the build folder of this run of the tests.
# shellcheck source=test/e2e/scripts_common.sh
. "$(dirname "$0")/scripts_common.sh"
run=("$project/scripts/run.sh" --no-install --build "$2")

check_help run.sh

# ---- wrong use, said before anything is built
try "${run[@]}" --size 12X
expect "bad size" 2 "--size" "12X"
try "${run[@]}" --to
expect "option without its value" 2 "--to wants a value"
try "${run[@]}" nowhere.bin
expect "missing file" 1 "there is no file 'nowhere.bin'"
mkdir folder
try "${run[@]}" folder
expect "folder" 1 "'folder' is a folder"
mkfifo pipe
try "${run[@]}" pipe
expect "pipe" 1 "'pipe' is not a regular file"
clean "wrong use"

# ---- the job
try "${run[@]}" --size 3M
expect "a file of its own" 0 "3M random bytes" "two dataplanes" "sent 1 file" "have stopped" "byte for byte"
clean "a file of its own"
head -c 100000 /dev/urandom >"a b"
head -c 1 /dev/urandom >-dash
try "${run[@]}" "a b" -- -dash
expect "files given" 0 "sent 2 files" "byte for byte"
clean "files given"
check "nothing in the current folder" test ! -e received
try "${run[@]}" --to=kept "a b"
expect "--to" 0 "every copy in kept"
check "the copy is kept" cmp "a b" "kept/a b"
try "${run[@]}" --to kept "a b"
expect "a copy in the way" 1 "urnic-cp failed"
mkdir other
cp "a b" other
try "${run[@]}" "a b" "other/a b"
expect "twice the same name" 1 "same name" "urnic-cp failed"
try "${run[@]}" --size 1000000G
expect "no room" 1 "has room for"
clean "failures"

# A signal in the middle.
setsid "${run[@]}" --size 1G >/dev/null 2>&1 </dev/null &
child=$!
for _ in $(seq 1000); do
	ls "$place"/tmp/urnic-run.*/random.bin >/dev/null 2>&1 && break
	sleep 0.02
done
kill -TERM -- -$child
wait $child
check "a signal ends it" test $? -ne 0
clean "a signal"

# ---- cases that need fakes: a build folder whose urnic-cp makes a wrong copy
mkdir -p fake-build/apps/urnic-cp fake-build/apps/urnicd
touch fake-build/build.ninja
fake ninja <<<'[ ! -e broken-build ] || { echo "error: it does not compile"; exit 1; }'
# The fake urnicd only makes its socket, and waits for SIGTERM.
cat >fake-build/apps/urnicd/urnicd <<'E2'
#!/usr/bin/python3
# -c FILE
import signal, socket, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
path = [l.split("=")[1].strip() for l in open(sys.argv[2]) if l.startswith("socket")][0]
if "broken" in open("dataplane").read():
    sys.exit("urnicd: nothing works")
s = socket.socket(socket.AF_UNIX)
s.bind(path)
signal.pause()
E2
cat >fake-build/apps/urnic-cp/urnic-cp <<'E2'
#!/bin/bash
# --attach S --listen SOCKET --to DIR, or --attach S --peer SOCKET -- FILE
if [ "$3" = --listen ]; then
	python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$4"
	echo "$6" >dir
	while [ ! -e sent ]; do sleep 0.02; done
	rm sent
	exit
fi
while [ ! -e dir ]; do sleep 0.02; done
to=$(cat dir)
rm dir
mkdir -p "$to" && cp "$6" "$to" && printf x | dd of="$to/$6" bs=1 seek=5 conv=notrunc 2>/dev/null
touch sent
E2
chmod 755 fake-build/apps/urnic-cp/urnic-cp fake-build/apps/urnicd/urnicd
echo works >dataplane
echo "some text" >text
try faked "$project/scripts/run.sh" --no-install --build fake-build text
expect "a copy that differs is found" 1 "the copy of text is not what was sent"
echo broken >dataplane
try faked "$project/scripts/run.sh" --no-install --build fake-build text
expect "a dataplane that does not start" 1 "nothing works" "node a did not start"
clean "a dataplane that does not start"
touch broken-build
try faked "$project/scripts/run.sh" --no-install --build fake-build text
expect "a build that fails" 1 "it does not compile" "the build failed"
rm broken-build
fake pkg-config <<<'exit 1'
try faked "$project/scripts/run.sh" --no-install --build fake-build text
expect "--no-install with something missing" 1 "libdpdk-dev" "scripts/setup.sh"
rm "$place/bin/pkg-config"
if [ "$(id -u)" -eq 0 ]; then
	cp -r "$project/scripts" .
	try faked nobody scripts/run.sh --no-install --build fake-build text
	expect "a build folder of another user" 1 "build folder" "--build DIR"
fi
clean "everything"
exit $failed
