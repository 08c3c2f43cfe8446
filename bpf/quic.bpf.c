/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* An object of its own: it is small, is there where no hit of the kernel's can be, and changes nothing of the others. */
#include <afpa/kernel.h>
#include "programs/quic.bpf.c"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
