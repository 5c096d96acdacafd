#!/usr/bin/env bash
# Installs the build and builds the embedding example against what was installed, with find_package alone:
#   install_and_find.sh BUILD_DIR CXX_COMPILER LINKER_FLAGS
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d "$1/installed.XXXXXX")
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --prefix "$work/prefix" >"$work/install.log" || { cat "$work/install.log"; exit 1; }
cmake -S "$here/installed" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$2" \
  -DCMAKE_CXX_FLAGS="$3" -DCMAKE_PREFIX_PATH="$work/prefix"
cmake --build "$work/build"
output=$("$work/build/embed" no-such-file.gguf Hello 2>&1) && { echo "a missing file is no error"; exit 1; }
grep -F "no-such-file.gguf" <<<"$output"
