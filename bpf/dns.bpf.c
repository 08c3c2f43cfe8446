/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* An object of its own: nothing of the programs that answer HTTP changes with it, and its maps exist only where DNS is answered. */
#include <afpa/kernel.h>
#include "programs/dns.bpf.c"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
