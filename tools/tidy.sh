#!/usr/bin/env bash
# Checks format (clang-format-19) and lints (clang-tidy-19, with the list of .clang-tidy) our own sources.
#   tools/tidy.sh [--fix] [--format] [FILE...]   --fix: rewrites the format; --format: format only
# Without files: all that git tracks. clang-tidy reads the commands of the dev preset.
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$HELIOS_ROOT"

fix=0 lint=1 files=()
for arg in "$@"; do
  case $arg in
    --fix) fix=1 ;;
    --format) lint=0 ;;
    -h | --help) sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) die "unknown option $arg" ;;
    *) files+=("$arg") ;;
  esac
done
((${#files[@]})) || mapfile -t files < <(git ls-files '*.cpp' '*.hpp')
((${#files[@]})) || die "no source file"

if ((fix)); then
  clang-format-19 -i "${files[@]}"
else
  clang-format-19 --dry-run --Werror "${files[@]}" || die "format differs: tools/tidy.sh --fix --format"
fi
echo "format: ${#files[@]} files"
((lint)) || exit 0

cmake --preset dev >/dev/null
ninja -C build/dev -t targets all | sed -n 's/^\(.*cmake_pch\.hxx\.pch\): .*/\1/p' | xargs -r ninja -C build/dev >/dev/null
mapfile -t units < <(printf '%s\n' "${files[@]}" | grep '\.cpp$' | while IFS= read -r file; do
  grep -q "\"file\": \".*/$file\"" build/dev/compile_commands.json && echo "$file"
done)
((${#units[@]})) || die "none of the files is built by the dev preset"
printf '%s\0' "${units[@]}" | xargs -0 -P "$(nproc)" -n 4 clang-tidy-19 -p build/dev --quiet --warnings-as-errors='*'
echo "tidy: ${#units[@]} files"
