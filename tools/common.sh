# Shared by the scripts of this folder; sourced, not run.
# shellcheck shell=bash disable=SC2034  # used by the scripts that source it

HELIOS_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
HELIOS_MODEL_NAME=SmolLM2-135M-Instruct.Q4_1.gguf
HELIOS_MODEL_SHA256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

say() { printf '\n== %s\n' "$*"; }

die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# Where the tests look for model files.
models_dir() { printf '%s\n' "${HELIOS_MODELS_DIR:-$HELIOS_ROOT/models}"; }

# Configures a preset if needed and builds the targets given (none: all). Does nothing quickly when all is built.
# HELIOS_JOBS bounds the compilers that run at once.
build_preset() {
  local preset=$1 jobs=()
  shift
  [[ -n ${HELIOS_JOBS:-} ]] && jobs=(-j "$HELIOS_JOBS")
  if [[ ! -f $HELIOS_ROOT/build/$preset/build.ninja ]]; then
    (cd "$HELIOS_ROOT" && cmake --preset "$preset") || return
  fi
  ninja -C "$HELIOS_ROOT/build/$preset" "${jobs[@]}" "$@"
}
