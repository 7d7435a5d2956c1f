#!/bin/sh
# Pretrains on a TPU VM of Google Cloud. Untried: no TPU could be reached where this was written.
#
#   tpu.sh NAME ZONE TYPE BUCKET      tpu.sh bert us-central2-b v4-8 gs://bucket/bert
#
# BUCKET/records has the data; the run goes to BUCKET/run. Needs gcloud, and libtpu in the image of the VM.
set -eu
[ "$#" -eq 4 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
name=$1 zone=$2 type=$3 bucket=$4

gcloud compute tpus tpu-vm create "$name" --zone "$zone" --accelerator-type "$type" --version tpu-vm-tf-2.19.0-pjrt
gcloud compute tpus tpu-vm scp --recurse --zone "$zone" --worker all . "$name:bert-pipeline"
gcloud compute tpus tpu-vm ssh "$name" --zone "$zone" --worker all --command "
  cd bert-pipeline && pip install . &&
  gcloud storage cp --recursive '$bucket/records' data &&
  bert-pipeline train --strategy tpu --tpu-address local --data data --output run --size base
  gcloud storage cp --recursive run '$bucket/'"
