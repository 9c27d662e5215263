#!/usr/bin/env bash
# Trains, evaluates and exports the default model on one GPU. Results land in $OUT (default: ./out).
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p "${OUT:=out}"
PYTHONUNBUFFERED=1 python3 train.py --out "$OUT" "$@" 2>&1 | tee "$OUT/log"
