#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests through ctest. A second run does only what is needed.
#   tools/test.sh           release build with every test; runtime under the thread sanitizer; runtime and actors
#                           under the address sanitizer.
#   tools/test.sh --full    every folder's tests under both sanitizers, tests labelled slow, long seeds, long
#                           fuzzing, format and tidy.
# Environment: HELIOS_MODELS_DIR (model files), HELIOS_SEEDS and HELIOS_FUZZ_SECONDS (with --full: 20000 seeds, 120 s a
# fuzzer, unless set), HELIOS_JOBS (compilers at once).
# Exit status: 0 when every test that could run passed. Tests whose files are missing are skipped, and counted at the end.
set -uo pipefail
source "$(dirname "$0")/common.sh"

full=0
for arg in "$@"; do
  case $arg in
    --full) full=1 ;;
    -h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) die "unknown option $arg (there is --full)" ;;
  esac
done

summary=()    # what ctest said, repeated at the end
timings=()
skipped=()    # what was skipped and why
skip_count=0
failures=0

# phase NAME COMMAND...: runs it, keeps its time, counts its failure and goes on.
phase() {
  local name=$1 start=$SECONDS status=0
  shift
  say "$name"
  "$@" || status=$?
  timings+=("$(printf '%5d s  %s%s' $((SECONDS - start)) "$name" "$( ((status)) && echo '  FAILED')")")
  if ((status)); then
    failures=$((failures + 1))
    summary+=("$name: FAILED")
  fi
  return "$status"
}

# run_ctest PRESET ARGS...: ctest in a build folder; keeps its summary and what it skipped.
run_ctest() {
  local preset=$1 folder=$HELIOS_ROOT/build/$1 log status=0 line count
  shift
  log=$folder/ctest-output.txt
  ctest --test-dir "$folder" --output-on-failure --no-tests=error "$@" 2>&1 | tee "$log" || status=$?
  summary+=("$preset:")
  while IFS= read -r line; do summary+=("  $line"); done < <(
    grep -E 'tests passed|tests failed|^Total Test time|^[[:space:]]+[0-9]+ - .*\((Skipped|Failed|Timeout|SEGFAULT|.*Exception.*)\)' "$log")
  while read -r count line; do
    skipped+=("$preset: $line$( ((count > 1)) && echo " ($count times)")")
    skip_count=$((skip_count + count))
  done < <(grep -hE '^[[:space:]]*SKIPPED:' "$folder/Testing/Temporary/LastTest.log" 2>/dev/null | sed 's/^[[:space:]]*//' | sort | uniq -c)
  return "$status"
}

# Test programs of a build folder that match a pattern.
test_targets() { ninja -C "$HELIOS_ROOT/build/$1" -t targets all | sed -nE "s/^($2): .*/\1/p" | sort -u; }

sanitized() {  # sanitized PRESET PATTERN: builds and runs the test programs whose names match
  local preset=$1 pattern=$2 targets
  (cd "$HELIOS_ROOT" && cmake --preset "$preset" >/dev/null) || return
  mapfile -t targets < <(test_targets "$preset" "$pattern")
  ((${#targets[@]})) || { echo "no test program matches $pattern"; return 1; }
  build_preset "$preset" "${targets[@]}" || return
  run_ctest "$preset" -R "^($pattern)\$" "${exclude_slow[@]}"
}

obtain_model() {  # no network is no failure: what needs the model is skipped, aloud
  "$HELIOS_ROOT/tools/get_model.sh" && return
  echo "SKIPPED: the model is not there and could not be fetched; tests that need it are skipped"
  skipped+=("the model could not be fetched: tests that need it are skipped")
}

long_fuzzing() {
  local seconds=${HELIOS_FUZZ_SECONDS:-120} program name corpus status=0
  (cd "$HELIOS_ROOT" && cmake --preset fuzz >/dev/null) || return
  mapfile -t programs < <(test_targets fuzz '[a-z0-9_]*fuzz[a-z0-9_]*')
  ((${#programs[@]})) || { echo "the fuzz preset has no fuzzer"; return 1; }
  build_preset fuzz "${programs[@]}" || return
  run_ctest fuzz -L fuzz-smoke || status=1
  for name in "${programs[@]}"; do
    program=$(find "$HELIOS_ROOT/build/fuzz" -type f -name "$name" -perm -u+x | head -n 1)
    corpus=$HELIOS_ROOT/build/fuzz/corpus/$name   # what is found stays here, the stored corpus is only read
    mkdir -p "$corpus"
    local seeds=() stored
    for stored in "$HELIOS_ROOT/test/fuzz/corpus/$name" "$HELIOS_ROOT/test/fuzz/corpus/${name%_fuzz}"; do
      [[ -d $stored ]] && seeds+=("$stored")
    done
    echo "$name: $seconds s"
    "$program" -max_total_time="$seconds" -print_final_stats=0 -verbosity=0 -artifact_prefix="$corpus-crash-" \
      "$corpus" "${seeds[@]}" || status=1
  done
  return "$status"
}

symbolizer=$(command -v llvm-symbolizer-19 || command -v llvm-symbolizer || true)
export ASAN_OPTIONS="detect_stack_use_after_return=1:strict_string_checks=1${symbolizer:+:external_symbolizer_path=$symbolizer}"
export UBSAN_OPTIONS="print_stacktrace=1${symbolizer:+:external_symbolizer_path=$symbolizer}"
export TSAN_OPTIONS="second_deadlock_stack=1${symbolizer:+:external_symbolizer_path=$symbolizer}"

exclude_slow=(-LE slow)
if ((full)); then
  exclude_slow=()
  export HELIOS_SEEDS=${HELIOS_SEEDS:-20000}
fi

phase "set-up" "$HELIOS_ROOT/tools/setup.sh" || exit 1
phase "model" obtain_model

phase "release: build" build_preset release && phase "release: tests" run_ctest release "${exclude_slow[@]}"
threads='test_runtime' addresses='test_(runtime|actors)'
if ((full)); then threads='test_(runtime|gpu|model|actors|protocol|apps)' addresses=$threads; fi
phase "thread sanitizer: build and tests" sanitized tsan "$threads"
phase "address sanitizer: build and tests" sanitized asan "$addresses"
if ((full)); then
  phase "fuzzing" long_fuzzing
  phase "format and tidy" "$HELIOS_ROOT/tools/tidy.sh"
fi

say "time"
printf '%s\n' "${timings[@]}"
printf '%5d s  in all\n' "$SECONDS"
say "skipped: $skip_count"
((${#skipped[@]})) && printf '%s\n' "${skipped[@]}"
say "summary"
printf '%s\n' "${summary[@]}"
((failures == 0))
