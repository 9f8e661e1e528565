#!/bin/sh
#SBATCH --job-name=kvferry-part
#SBATCH --requeue
#SBATCH --cpus-per-task=2
#SBATCH --mem=2G
# One part of an array job: convert.sh submits it. PARTS is the number of parts.
exec "${KVFERRY:-kvferry}" convert --part "$SLURM_ARRAY_TASK_ID/$PARTS" --memory 1536MiB --workers 2 "$@"
