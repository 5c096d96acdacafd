#!/usr/bin/env bash
# Installs what the build, the tests and the demo need on Debian 12, from bare. As root, or as a user with sudo.
# A second run finds everything there and does nothing.
#   tools/setup.sh [--models]     --models: the model of the tests and the demo too (see get_model.sh)
set -euo pipefail
source "$(dirname "$0")/common.sh"

packages=(
  clang-19 lld-19 libclang-rt-19-dev llvm-19          # the compiler, its linker, sanitizers, symbolizer
  clang-format-19 clang-tidy-19                       # tools/tidy.sh
  cmake ninja-build ccache pkg-config git
  libboost1.81-dev libboost-json1.81-dev              # Asio, Result; JSON
  libconcurrentqueue-dev libspdlog-dev libfmt-dev libcli11-dev libhwy-dev
  libutf8proc-dev                                     # NFC in tokenizers
  catch2 libcaf-dev                                   # tests; the peer of runtime_bench
  python3-venv unzip ca-certificates netcat-openbsd   # the model package; the line protocol by hand
)

models=0
for arg in "$@"; do
  case $arg in
    --models) models=1 ;;
    -h | --help) sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) die "unknown option $arg (there is --models)" ;;
  esac
done

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null || true)
  [[ $status == ii* ]] || missing+=("$package")
done

if ((${#missing[@]} == 0)); then
  echo "setup: all ${#packages[@]} Debian packages are installed"
else
  command -v apt-get >/dev/null || die "this script knows Debian only; install the equivalents of: ${missing[*]}"
  as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "needs root to install: ${missing[*]}. Run it as root, or install sudo."
    as_root=(sudo)
  fi
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0
    install --no-install-recommends "${missing[@]}")
  "${as_root[@]}" apt-get -q update || die "apt-get update failed: is the network there?"
  "${install[@]}" || die "apt-get could not install them: is this Debian 12 with its main and security archives?"
fi

if ((models)); then "$HELIOS_ROOT/tools/get_model.sh"; fi
