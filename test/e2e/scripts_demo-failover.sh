#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/demo-failover.sh: a copy over two kills (FO-19), and nothing is left of it.
# $2 is the build folder of this run of the tests.
# shellcheck source=test/e2e/scripts_common.sh
. "$(dirname "$0")/scripts_common.sh"
demo=("$project/scripts/demo-failover.sh" --build "$2")

check_help demo-failover.sh
try "${demo[@]}" --size 12X
expect "bad size" 2 "--size" "12X"
try "${demo[@]}" --size 1K
expect "a size of one chunk" 2 "64K"
try "${demo[@]}" --build
expect "option without its value" 2 "--build wants a value"
clean "wrong use"

# Programs that do as much as the script looks at.
for name in urnicd urnic-switch urnic-cp; do
	mkdir -p "$place/stubs/apps/$name"
	install -m 755 "$project/test/e2e/demo_stub.py" "$place/stubs/apps/$name/$name"
done
try env STUB=fails timeout 60 "$project/scripts/demo-failover.sh" --build "$place/stubs" --size 64K
expect "a sender that fails before the first kill" 1 "the stub can't be sent" "the sender failed"
clean "a sender that fails"
try env STUB=late "$project/scripts/demo-failover.sh" --build "$place/stubs" --size 64K
expect "a copy that ends at the second kill" 0 "once more with twice the size" "after 2 migrations"
clean "a copy that ends at the second kill"

# If the copy is over too soon, the script takes a larger file.
try "${demo[@]}" --size 64M
expect "a copy over two kills" 0 "is dead" "killing the urnicd of a's backup" "byte for byte" "detection:" "rate after"
clean "a copy over two kills"

# A signal in the middle.
setsid "${demo[@]}" --size 64M >/dev/null 2>&1 </dev/null &
child=$!
for _ in $(seq 1000); do
	ls "$place"/tmp/urnic-demo.*/random.bin >/dev/null 2>&1 && break
	sleep 0.02
done
kill -TERM -- -$child
wait $child
check "a signal ends it" test $? -ne 0
clean "a signal"
check "no process is left" test -z "$(pgrep -f "$place/tmp/urnic-demo" || :)"
exit $failed
