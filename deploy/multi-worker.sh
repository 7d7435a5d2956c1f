#!/bin/sh
# Runs a bert-pipeline command as one of several workers that train together: the same command on every
# machine, each with its own index.
#
#   multi-worker.sh HOST:PORT,HOST:PORT[,…] [INDEX] COMMAND [OPTION…]
#   multi-worker.sh node0:2222,node1:2222 0 train --data data --output run --size base
#
# Without an index it is that of the pod of an indexed Kubernetes Job. TF_CONFIG is what TensorFlow reads; worker
# 0 writes checkpoints, metrics and the model.
set -eu

usage() {
  sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

[ "$#" -ge 2 ] || usage
hosts=$1
shift
case $1 in
  *[!0-9]*) index=${JOB_COMPLETION_INDEX:?no index is given, and this is no pod of an indexed Job} ;;
  *) index=$1; shift ;;
esac
[ "$#" -ge 1 ] || usage
command=$1
shift

quoted=$(printf '%s' "$hosts" | sed 's/[^,][^,]*/"&"/g')
TF_CONFIG=$(printf '{"cluster": {"worker": [%s]}, "task": {"type": "worker", "index": %s}}' "$quoted" "$index")
export TF_CONFIG
exec bert-pipeline "$command" --strategy multi-worker "$@"
