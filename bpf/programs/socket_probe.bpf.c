/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Probe: run by user mode's sweep, never attached. Removes a flow whose socket is gone.
 *
 * Input: 14 bytes that are ignored (a test run wants an Ethernet header), then the flow's key.
 * Returns 1 when the flow was removed. TIME_WAIT counts as a socket: it still needs translation.
 */
#include <afpa/conn/socket.h>

SEC("tcx/ingress")
int afpa_probe(struct __sk_buff *skb)
{
	const __be32 mapped = bpf_htonl(0xffff);
	struct bpf_sock_tuple tuple = {};
	struct afpa_flow_key key;
	struct bpf_sock *found;
	const __be32 *client = (const __be32 *)key.client;
	bool gone = true, ipv6;

	if (bpf_skb_load_bytes(skb, sizeof(struct ethhdr), &key, sizeof(key)))
		return 0;
	ipv6 = client[0] || client[1] || client[2] != mapped;
	fill_tuple(&tuple, &key, ipv6);
	found = bpf_skc_lookup_tcp(skb, &tuple, ipv6 ? sizeof(tuple.ipv6) : sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
	if (found) {
		gone = found->state == TCP_LISTEN;
		bpf_sk_release(found);
	}
	if (!gone)
		return 0;
	flow_remove(&key);
	return 1;
}
