/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The tag of the bytes behind an Ethernet header, computed in the kernel: for BPF_PROG_TEST_RUN. It takes the place of the first of
 * them. Everything but this function is the program's own source.
 */
#include <afpa/kernel.h>
#include <programs/quic.bpf.c>

SEC("tc")
int tag(struct __sk_buff *skb)
{
	__u32 zero = 0, length = skb->len - ETHERNET_LENGTH;
	struct afpa_quic_table *table;
	struct quic_work *work;

	table = bpf_map_lookup_elem(&quic_tables, &zero);
	work = bpf_map_lookup_elem(&quic_works, &zero);
	if (!table || !work || length < 16 || length > QUIC_TAG_TEXT_MAX)
		return 1;
	asm volatile("%0 &= 255" : "+r"(length));
	if (length < 16 || length > QUIC_TAG_TEXT_MAX)
		return 1;
	__builtin_memset(work->out, 0, 160);
	if (bpf_skb_load_bytes(skb, ETHERNET_LENGTH, work->out, length))
		return 1;
	quic_tag(table, work->out, length);
	return bpf_skb_store_bytes(skb, ETHERNET_LENGTH, quic_at(work->out, length), 16, 0) ? 1 : 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
