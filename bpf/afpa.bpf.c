/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* One object: the programs share their maps. */
#include <afpa/kernel.h>
#include "programs/ingress.bpf.c"
#include "programs/flight.bpf.c"
#include "programs/quote.bpf.c"
#include "programs/egress.bpf.c"
#include "programs/probe.bpf.c"
#include "programs/tend.bpf.c"
#include "programs/watch.bpf.c"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
