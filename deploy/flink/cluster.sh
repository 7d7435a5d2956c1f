#!/usr/bin/env bash
# A Flink cluster of processes on this machine, from the jars of Flink's own distribution or of the
# Python package apache-flink-libraries (whose deps/ has lib/ and bin/, but no start scripts).
#
#   FLINK_JARS=DIR FLINK_RUN=DIR cluster.sh start N     one job manager, N task managers
#   FLINK_JARS=DIR FLINK_RUN=DIR cluster.sh add NAME    one more task manager
#                  FLINK_RUN=DIR cluster.sh kill NAME   kills one (named 1 to N) as a crash would
#                  FLINK_RUN=DIR cluster.sh stop
#
# FLINK_JARS has lib/*.jar and bin/bash-java-utils.jar. FLINK_RUN is a folder for configuration, logs
# and process ids; FLINK_CONFIG names another configuration than the config.yaml beside this script.
set -eu
run=${FLINK_RUN:?folder for logs and process ids}
conf=$run/conf

# What Flink's own scripts pass to Java 17.
opens=()
for package in java.lang java.net java.io java.nio java.lang.reflect java.text java.time java.util \
    java.util.concurrent java.util.concurrent.atomic java.util.concurrent.locks sun.nio.ch; do
  opens+=("--add-opens=java.base/$package=ALL-UNNAMED")
done
opens+=("--add-exports=java.base/sun.net.util=ALL-UNNAMED")

classpath() {
  local jars=${FLINK_JARS:?folder with lib/ and bin/ of Flink}
  printf '%s\n' "$jars"/lib/flink-dist-*.jar "$jars"/lib/flink-scala_*.jar "$jars"/lib/log4j-*.jar | paste -sd:
}

# launch NAME MAIN [JAVA OPTIONS] -- [ARGUMENTS]
launch() {
  local name=$1 main=$2 options=()
  shift 2
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  nohup java "${options[@]}" "${opens[@]}" \
    -Dlog.file="$run/log/$name.log" -Dlog4j.configurationFile="file:$conf/log4j.properties" \
    -cp "$(classpath)" "$main" --configDir "$conf" "$@" >"$run/log/$name.out" 2>&1 </dev/null &
  echo $! >"$run/$name.pid"
}

add() {
  local params jvm dynamic
  params=$(java -cp "$FLINK_JARS/bin/bash-java-utils.jar:$(classpath)" \
    org.apache.flink.runtime.util.bash.BashJavaUtils GET_TM_RESOURCE_PARAMS --configDir "$conf" \
    2>/dev/null | sed -n 's/^BASH_JAVA_UTILS_EXEC_RESULT://p')
  read -ra jvm <<<"$(sed -n 1p <<<"$params")"
  read -ra dynamic <<<"$(sed -n 2p <<<"$params")"
  launch "taskmanager-$1" org.apache.flink.runtime.taskexecutor.TaskManagerRunner "${jvm[@]}" -- \
    "${dynamic[@]}" -D "taskmanager.resource-id=taskmanager-$1-$$"
}

case ${1:-} in
  start)
    mkdir -p "$conf" "$run/log" "$run/tmp"
    cp "${FLINK_CONFIG:-$(dirname "$0")/config.yaml}" "$conf/config.yaml"
    echo "io.tmp.dirs: $run/tmp" >>"$conf/config.yaml"
    cat >"$conf/log4j.properties" <<END
rootLogger.level = INFO
rootLogger.appenderRef.file.ref = File
appender.file.name = File
appender.file.type = File
appender.file.fileName = \${sys:log.file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{HH:mm:ss,SSS} %-5p %c{1} - %m%n
END
    launch jobmanager org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint \
      -Xmx700m --
    for number in $(seq "${2:-1}"); do add "$number"; done
    ;;
  add) add "$2" ;;
  kill)
    kill -9 "$(cat "$run/taskmanager-$2.pid")"
    rm "$run/taskmanager-$2.pid"
    ;;
  stop)
    for file in "$run"/*.pid; do
      [ -e "$file" ] || continue
      kill "$(cat "$file")" 2>/dev/null || true
      rm "$file"
    done
    ;;
  *)
    sed -n '2,12s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
