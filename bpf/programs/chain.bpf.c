/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Chain: who stands before our programs at the hooks of an interface? Run by user mode on the interface, never attached.
 * It needs no rights, which asking the kernel about programs would.
 *
 * Input: 14 bytes that are ignored, then the ids of our two programs. Returns a bit for each hook, 1 ingress and 2 egress,
 * at which a program of another owner comes first. Programs of another AFPA do not count: they leave our packets alone.
 */
#include <afpa/kernel.h>

#define CHAIN_MAX 64
#define OURS_BY_NAME 0x5f61706661ULL /* "afpa_", in the order of memory */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct bpf_prog_aux {
	__u32 id;
	char name[16];
};

struct bpf_prog {
	struct bpf_prog_aux *aux;
};

struct bpf_mprog_fp {
	struct bpf_prog *prog;
};

struct bpf_mprog_entry {
	struct bpf_mprog_fp fp_items[64];
};

struct net_device___tcx {
	struct bpf_mprog_entry *tcx_ingress, *tcx_egress;
};

struct sk_buff___tcx {
	struct net_device___tcx *dev;
};

#pragma clang attribute pop

/* Is there a program before the one with this id that is not another AFPA's? */
static __noinline bool is_behind(struct bpf_mprog_entry *chain, __u32 id)
{
	for (int i = 0; i < CHAIN_MAX; i++) {
		struct bpf_prog *program = NULL;
		struct bpf_prog_aux *aux;
		__u64 name = 0;

		if (bpf_core_read(&program, sizeof(program), &chain->fp_items[i].prog) || !program)
			return false;
		aux = BPF_CORE_READ(program, aux);
		if (BPF_CORE_READ(aux, id) == id)
			return false;
		bpf_core_read(&name, sizeof(name), &aux->name);
		if ((name & ((1ULL << 40) - 1)) != OURS_BY_NAME)
			return true;
	}
	return false;
}

SEC("tcx/ingress")
int afpa_chain(struct __sk_buff *skb)
{
	struct sk_buff___tcx *kernel = (void *)skb; /* the context is this within the kernel */
	struct net_device___tcx *device;
	__u32 ids[2];

	if (!bpf_core_field_exists(struct net_device___tcx, tcx_ingress) ||
	    bpf_skb_load_bytes(skb, sizeof(struct ethhdr), ids, sizeof(ids)))
		return 0;
	device = BPF_CORE_READ(kernel, dev);
	return is_behind(BPF_CORE_READ(device, tcx_ingress), ids[0]) |
	       is_behind(BPF_CORE_READ(device, tcx_egress), ids[1]) << 1;
}
