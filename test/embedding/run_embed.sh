#!/usr/bin/env bash
# Runs the embedding example on the test model: run_embed.sh PROGRAM MODELS_DIR. 77 (skipped) without the model.
set -euo pipefail
model=${HELIOS_MODELS_DIR:-$2}/SmolLM2-135M-Instruct.Q4_1.gguf
if [[ ! -f $model ]]; then
  echo "SKIPPED: $model is not there: tools/get_model.sh fetches it"
  exit 77
fi
output=$("$1" "$model" "What is the capital of France?")
echo "$output"
grep -Eq '^\[[1-9][0-9]* tokens, [0-9.e+]+ tokens/s\]$' <<<"$output"
