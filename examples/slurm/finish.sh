#!/bin/sh
#SBATCH --job-name=kvferry-finish
#SBATCH --requeue
#SBATCH --cpus-per-task=2
#SBATCH --mem=2G
exec "${KVFERRY:-kvferry}" convert --finish --memory 1536MiB --workers 2 "$@"
