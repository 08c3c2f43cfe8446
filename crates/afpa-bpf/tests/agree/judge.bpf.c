/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The head behind an Ethernet header, judged in the kernel: for BPF_PROG_TEST_RUN. Everything but this
 * function is the programs' own source. The protocol field says how.
 */
#include <afpa/kernel.h>
#include <programs/ingress.bpf.c>
#include "verdict.h"

#define JUDGE_KNOWN 0x88b5 /* a block that was read before is compared */
#define JUDGE_NEW 0x88b6   /* every block is read line by line */
#define ONLY_LOAD 0x88b7   /* the work that both share: the head is copied out of the packet */

/* The whole payload into scratch. */
static __always_inline bool load_head(struct __sk_buff *skb, struct work *work, const struct segment *s)
{
	return s->length >= 16 && s->length <= AFPA_HEAD_MAX && load_bytes(skb, work, s->payload_at, s->length, 0);
}

SEC("tc")
int agree(struct __sk_buff *skb)
{
	struct segment s = { .payload_at = sizeof(struct ethhdr), .length = skb->len - sizeof(struct ethhdr) };
	__u32 zero = 0, how = bpf_ntohs(skb->protocol);
	struct work *work = bpf_map_lookup_elem(&ingress_work, &zero);

	if (!work || !load_head(skb, work, &s))
		return REQUEST_UNSURE | AFPA_PASS_HEAD_LENGTH << 2;
	if (how == ONLY_LOAD)
		return 0;
	if (how == JUDGE_NEW)
		shared.generation++;
	return judge(work, s.length);
}

/* Requests that go up together: the packet's first words become the results of the reader. */
SEC("tc")
int agree_framing(struct __sk_buff *skb)
{
	struct segment s = { .payload_at = sizeof(struct ethhdr), .length = skb->len - sizeof(struct ethhdr) };
	__u32 zero = 0, taken = TAKEN_ONE, words[3];
	struct work *work = bpf_map_lookup_elem(&ingress_work, &zero);
	struct passing *p;

	if (!work || load_bytes(skb, work, s.payload_at, s.length, 0) == 0)
		return TAKEN_UNSURE;
	p = &work->passing;
	p->payload_at = s.payload_at;
	p->length = s.length;
	p->have = p->requests = p->head_bits = 0;
	p->at = empty_line(work, p->length);
	p->listener = p->any_host_site = 1;
	for (int i = 0; i < PIPELINED_MAX && taken == TAKEN_ONE; i++)
		taken = afpa_take_request(skb, work);
	words[0] = p->requests;
	words[1] = p->head_bits;
	words[2] = p->at;
	if (bpf_skb_store_bytes(skb, 0, words, sizeof(words), 0))
		return TAKEN_UNSURE;
	return taken;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
