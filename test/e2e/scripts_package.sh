#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/package.sh: its options, its errors, the copy that is built, and the packages that stay. dpkg-buildpackage is a fake;
# test/e2e/packaging.py builds packages.
# shellcheck source=test/e2e/scripts_common.sh
. "$(dirname "$0")/scripts_common.sh"
package=("$project/scripts/package.sh")

check_help package.sh

try "${package[@]}" --to
expect "no folder" 2 "--to wants a value"
try "${package[@]}" --fast
expect "unknown option" 2 "unknown argument '--fast'"

fake dh </dev/null
fake dpkg-buildpackage <<E2
[ ! -e "$place/broken" ] || { echo "no such thing as a package"; exit 1; }
[ -x debian/rules ] && [ -f lib/urnic.map ] && [ ! -e build ] && [ ! -e .git ] || exit 1
echo "\$*, \$DEB_BUILD_OPTIONS" >"$place/said"
touch ../urnic_1_all.deb ../urnic_1_all.changes ../urnic_1_all.buildinfo
E2
try faked "${package[@]}" --no-install --to "$place/out"
expect "packages" 0 "packages are in $place/out"
check "the packages are there" test -f "$place/out/urnic_1_all.deb" -a -f "$place/out/urnic_1_all.changes"
check "only packages for this machine, unsigned" grep -q -e "-b -uc -us, nocheck" "$place/said"
check "Debian's flags" sh -c "! grep -q same-flags $place/said"
try faked "${package[@]}" --no-install --quick --to "$place/out"
expect "quick" 0
check "the flags of a release" grep -q same-flags "$place/said"
touch "$place/broken"
try faked "${package[@]}" --no-install --to "$place/out"
expect "a failing build" 1 "no such thing as a package" "could not be built"
clean "package.sh"
exit $failed
