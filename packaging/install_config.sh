#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Install a configuration file unless there is one: install_config.sh FILE FOLDER
# meson calls this script, and says in DESTDIR which folder stands for the system's root.
set -eu
to=${DESTDIR-}$2
if [ -e "$to/${1##*/}" ]; then
	echo "$to/${1##*/} stays as it is"
	exit 0
fi
mkdir -p "$to"
cp "$1" "$to"
chmod 644 "$to/${1##*/}"
