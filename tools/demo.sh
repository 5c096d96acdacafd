#!/usr/bin/env bash
# From a bare Debian 12 to a chat answer: installs what is missing, builds the release, fetches the model, starts the
# server, sends one prompt over the line protocol, prints what happened, stops the server.
#   tools/demo.sh [--keep] [--prompt TEXT] [-- ARGS...]
#     --keep      leaves the server running and says how to talk to it and how to stop it
#     --prompt    what to ask
#     -- ARGS     more options of `helios serve`, such as -- --exit-layer 18
# As root, or as a user with sudo.
set -euo pipefail
source "$(dirname "$0")/common.sh"

keep=0 prompt="Tell me about the sea in three sentences." serve_args=()
while (($#)); do
  case $1 in
    --keep) keep=1 ;;
    --prompt) (($# > 1)) || die "--prompt needs a text"; prompt=$2; shift ;;
    --) shift; serve_args=("$@"); break ;;
    -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) die "unknown option $1 (see --help)" ;;
  esac
  shift
done

"$HELIOS_ROOT/tools/setup.sh" --models
say "building (build/release; a first build takes some minutes)"
build_preset release apps/helios

trace=$HELIOS_ROOT/build/demo-trace.json
output=$HELIOS_ROOT/build/demo-server.txt   # READY line
log=$HELIOS_ROOT/build/demo-server.log
say "starting the server"
: >"$output"
"$HELIOS_ROOT/build/release/apps/helios" serve --model "$(models_dir)/$HELIOS_MODEL_NAME" --port 0 --trace "$trace" \
  "${serve_args[@]}" >"$output" 2>"$log" &
server=$!

stop_server() {
  if kill -TERM "$server" 2>/dev/null; then
    local status=0
    wait "$server" || status=$?
    ((status == 0)) || die "the server ended with status $status: see $log"
  fi
}
trap 'kill -TERM "$server" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM

address=
for ((i = 0; i < 600 && ${#address} == 0; ++i)); do
  address=$(sed -n 's/^READY line=\([^ ]*\).*/\1/p' "$output")
  [[ -n $address ]] && break
  kill -0 "$server" 2>/dev/null || { cat "$log" >&2; die "the server did not start"; }
  sleep 0.1
done
[[ -n $address ]] || { cat "$log" >&2; die "the server was not ready within a minute"; }
echo "READY line=$address"

python3 "$HELIOS_ROOT/tools/demo_client.py" "$address" "$prompt"

if ((keep)); then
  trap - EXIT
  say "the server keeps running (process $server, log $log)"
  printf '%s\n' "talk to it:  printf 'GEN t1 \"Tell me a joke.\" mode=chat max_tokens=64\\n' | nc -N ${address%:*} ${address##*:}" \
    "stop it:     kill $server"
  exit 0
fi
say "stopping the server"
stop_server
trap - EXIT
echo "stopped cleanly"
if [[ -s $trace ]] && python3 "$HELIOS_ROOT/tools/trace_to_svg.py" "$trace" --output "${trace%.json}.svg"; then
  echo "open the trace in https://ui.perfetto.dev: $trace"
fi
