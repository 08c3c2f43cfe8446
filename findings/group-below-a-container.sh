#!/usr/bin/env bash
# 0::/machine.slice/libpod-<64 digits>.scope/container, in /proc/self/cgroup
#
# The kernel's manual of control groups, version 2: a line of this file is the whole path of the process's group; a container may
# make groups of its own below that which it was given. Podman's crun makes `container`, and an init its own.
# Guess: a library that finds the container in such a path looks at each part of it.
# Seen: container-info 1.1.0 (npm) looks at the last part for the container, and at the one before for the pod. It finds none of
# Podman's containers in this form, and neither the pod in the form of containerd with systemd.
# Logs and traces lack the name of the container, in these places only.
# shellcheck disable=SC2016 # expressions of JavaScript
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
CONTAINER=$(printf 'ab%.0s' {1..32})
POD=12345678_1234_1234_1234_123456789012

npm_install container-info@1.1.0
find_ids() {
    node -p '
        const { containerId, podId } = require("container-info").parse(process.argv[1]);
        `${containerId ? "container" : "no container"}, ${podId ? "pod" : "no pod"}`' "$1"
}
seen 'docker-ID.scope' 'container, no pod' "$(find_ids "0::/system.slice/docker-$CONTAINER.scope")"
seen 'libpod-ID.scope' 'container, no pod' "$(find_ids "0::/machine.slice/libpod-$CONTAINER.scope")"
seen 'libpod-ID.scope/container' 'no container, no pod' "$(find_ids "0::/machine.slice/libpod-$CONTAINER.scope/container")"
seen 'docker/ID/init' 'no container, no pod' "$(find_ids "0::/docker/$CONTAINER/init")"
seen 'kubepods-podID.slice/cri-containerd-ID.scope' 'container, pod' \
    "$(find_ids "0::/kubepods.slice/kubepods-pod$POD.slice/cri-containerd-$CONTAINER.scope")"
seen 'kubepods-podID.slice:cri-containerd:ID' 'container, no pod' \
    "$(find_ids "0::/system.slice/containerd.service/kubepods-pod$POD.slice:cri-containerd:$CONTAINER")"
