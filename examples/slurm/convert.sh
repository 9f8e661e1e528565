#!/bin/sh
# Submits a conversion in parts and its finish: PARTS=16 convert.sh [OPTIONS] SRC FORMAT:DST
set -eu
export PARTS="${PARTS:-16}"
here=$(dirname "$0")
job=$(sbatch --parsable --export=ALL --array="1-$PARTS" "$here/part.sh" "$@")
sbatch --export=ALL --dependency="afterok:${job%%;*}" "$here/finish.sh" "$@"
