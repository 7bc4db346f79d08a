#!/usr/bin/env bash
# Runs a Slurm cluster on this machine for tests, in one directory. It works without systemd and
# without root.
#
#     scripts/slurm.sh up FOLDER [NODES]     starts it; `source FOLDER/env` selects it for sbatch
#     scripts/slurm.sh down FOLDER           stops it
#     scripts/slurm.sh kill FOLDER NODE      kills one node immediately, like a power failure
#
# It needs munged, slurmctld, slurmd and sbatch (Debian: slurm-wlm, munge).
set -euo pipefail

[ $# -ge 2 ] || { echo "usage: $0 up|down|kill FOLDER [NODES | NODE]" >&2; exit 2; }
what=$1 folder=$2
export PATH=$PATH:/usr/sbin:/usr/local/sbin SLURM_CONF=$folder/slurm.conf

up() {
    local nodes=$1 host me port
    host=$(hostname -s) me=$(id -un)
    # The ports are random, because other clusters can run on the same machine.
    port=$((20000 + RANDOM % 20000))
    mkdir -p "$folder"/{munge,state,spool,log}
    # With fewer permissions munge reports the socket as "inaccessible".
    chmod 755 "$folder" "$folder/munge"
    dd if=/dev/urandom of="$folder/munge/key" bs=128 count=1 status=none
    chmod 400 "$folder/munge/key"
    cat >"$SLURM_CONF" <<CONF
ClusterName=overtone
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=$me
SlurmdUser=$me
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
MinJobAge=3600
KillWait=5
SlurmdTimeout=10
NodeName=n[1-$nodes] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + nodes))] CPUs=1
PartitionName=all Nodes=n[1-$nodes] Default=YES MaxTime=INFINITE State=UP
CONF
    echo "export SLURM_CONF='$SLURM_CONF'" >"$folder/env"
    munged --socket="$folder/munge/socket" --key-file="$folder/munge/key" --log-file="$folder/munge/log" \
        --pid-file="$folder/munge/pid" --seed-file="$folder/munge/seed"
    slurmctld -c -f "$SLURM_CONF"
    local node
    for ((node = 1; node <= nodes; node++)); do
        mkdir -p "$folder/spool/n$node"
        slurmd -f "$SLURM_CONF" -N "n$node"
    done
    for _ in $(seq 60); do
        [ "$(sinfo --noheader --Node --states=idle | wc -l)" = "$nodes" ] && return
        sleep 0.5
    done
    echo "the nodes are not idle after half a minute; see $folder/log" >&2
    exit 1
}

down() {
    scontrol shutdown >/dev/null 2>&1 || true
    sleep 1
    local file
    for file in "$folder"/slurmd-*.pid "$folder/slurmctld.pid" "$folder/munge/pid"; do
        if [ -f "$file" ]; then kill "$(cat "$file")" 2>/dev/null || true; fi
    done
}

# Kills the node's daemon, all processes of its jobs, and their slurmstepd.
cut_off() {
    kill -9 "$(cat "$folder/slurmd-$1.pid")"
    local place parent
    for place in /proc/[0-9]*; do
        if tr '\0' '\n' 2>/dev/null <"$place/environ" | grep -cxF -e "SLURMD_NODENAME=$1" -e "SLURM_CONF=$SLURM_CONF" | grep -qx 2; then
            parent=$(awk '/^PPid:/ { print $2 }' "$place/status" 2>/dev/null || true)
            if [ "$(cat "/proc/${parent:-none}/comm" 2>/dev/null)" = slurmstepd ]; then kill -9 "$parent" || true; fi
            kill -9 "${place#/proc/}" 2>/dev/null || true
        fi
    done
}

case $what in
up) up "${3:-1}" ;;
down) down ;;
kill) cut_off "$3" ;;
*) echo "$0: $what: expected up, down or kill" >&2; exit 2 ;;
esac
