/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* One object: the programs share their maps. */
#include <afpa/kernel.h>
#include "programs/ingress.bpf.c"
#include "programs/handshake.bpf.c"
#include "programs/socketless.bpf.c"
#include "programs/transfer.bpf.c"
#include "programs/icmp.bpf.c"
#include "programs/egress.bpf.c"
#include "programs/socket_probe.bpf.c"
#include "programs/rtx_timer.bpf.c"
#include "programs/served.bpf.c"
#include "programs/unusual.bpf.c"
#include "programs/tunnel.bpf.c"
#include "programs/guard.bpf.c"
#include "programs/chain.bpf.c"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
