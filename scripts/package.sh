#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Build Debian packages: urnic, urnic-verbs, liburnic1, liburnic-dev.
#
# Usage: scripts/package.sh [OPTION...]
#
# Installs missing packages (scripts/setup.sh --package), and builds in a copy of the
# project's folder, without network and without root.
#
#   --to DIR       where the packages go (default: build-packages, in the project's
#                  folder)
#   --quick        compile with the flags of a release build, not those of Debian: a
#                  compiler's cache (ccache) may have the objects from there
#   --no-install   install nothing; print the missing packages
#   --help         this text
#
# The script leaves only the packages. TMPDIR says where the copy goes (default /tmp).
#
# Exit code: 0 built, 1 something failed, 2 wrong usage.

set -eu
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

to=$project/build-packages
quick=
install=yes
while [ $# -gt 0 ]; do
	case $1 in
	--to) need_value "$@"; to=$2; shift ;;
	--to=*) to=${1#*=} ;;
	--quick) quick=yes ;;
	--no-install) install= ;;
	--help | -h) print_help; exit 0 ;;
	*) usage_error "unknown argument '$1'" ;;
	esac
	shift
done

if [ -n "$install" ]; then
	"$project/scripts/setup.sh" --package
else
	"$project/scripts/setup.sh" --package --check
fi
mkdir -p "$to"
to=$(cd "$to" && pwd -P)
work=$(mktemp -d "${TMPDIR:-/tmp}/urnic-package.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The copy has no build folder and nothing of an editor's: all files that git has, where git is.
mkdir "$work/urnic"
cd "$project"
if git rev-parse --git-dir >/dev/null 2>&1; then
	git ls-files -z --cached --others --exclude-standard >"$work/files"
else
	find . -path './build*' -prune -o -type f -print0 >"$work/files"
fi
tar --null --ignore-failed-read -cf - -T "$work/files" 2>/dev/null | tar -xf - -C "$work/urnic"

# Symbols for debuggers stay in no package of their own here: they take a third of the time.
options="nocheck noautodbgsym parallel=$(nproc)"
[ -z "$quick" ] || options+=" same-flags"
if [ -n "$quick" ] && command -v ccache >/dev/null; then
	# meson takes ccache by itself; debhelper sets another HOME.
	CCACHE_DIR=$(ccache --get-config cache_dir)
	export CCACHE_DIR
fi
say "building packages"
cd "$work/urnic"
if ! DEB_BUILD_OPTIONS="$options" dpkg-buildpackage -b -uc -us >"$work/log" 2>&1; then
	tail -n 60 "$work/log" >&2
	die "the packages could not be built; what dpkg-buildpackage said is above"
fi
rm -f "$to"/*urnic*.deb "$to"/urnic_*.changes "$to"/urnic_*.buildinfo
mv "$work"/*.deb "$work"/*.changes "$work"/*.buildinfo "$to"
say "packages are in $to"
