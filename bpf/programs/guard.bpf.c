/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Guard: no other way (E5 in docs/rules). Sees the packets of all sockets of the machine, both ways, and stops only
 * packets of a connection with a sequence offset that leave or arrive where no program of ours translates them. Attached
 * to the root of the control groups. TCP recovers from the packets that are dropped here: it sends or asks again.
 */
#include <afpa/conn/by_socket.h>

#define PASS 1
#define STOP 0

/* Is the packet of a port that is served, in the network namespace of the connections? Nearly no packet gets further. */
static __always_inline bool concerns_us(struct __sk_buff *skb)
{
	struct bpf_sock *socket = (struct bpf_sock *)skb->sk;

	return socket && port_served(socket->src_port & 0xffff) && namespace_of(skb) == shared.namespace;
}

/* Is it plain TCP? A packet that IPsec or a tunnel has wrapped is not. */
static __always_inline bool is_tcp(struct __sk_buff *skb)
{
	__u32 at = skb->protocol == bpf_htons(ETH_P_IP) ? offsetof(struct iphdr, protocol) :
							   offsetof(struct ipv6hdr, next_header);
	__u8 protocol = 0;

	if (bpf_skb_load_bytes(skb, at, &protocol, sizeof(protocol)))
		return false;
	/* 0: a hop-by-hop header, which segments of more than 64 KB have */
	return protocol == IPPROTO_TCP || (skb->protocol == bpf_htons(ETH_P_IPV6) && protocol == 0);
}

static __always_inline int stop_if_offset(struct __sk_buff *skb)
{
	if (!socket_has_offset(skb))
		return PASS;
	count_at(place_of(skb->ifindex), AFPA_DROP_NO_WAY);
	return STOP;
}

SEC("cgroup_skb/egress")
int afpa_guard_egress(struct __sk_buff *skb)
{
	if (!concerns_us(skb) || skb->tc_index == MARK_DOWN || (has_programs(skb->ifindex, AFPA_CARRIED_DOWN) && is_tcp(skb)))
		return PASS;
	return stop_if_offset(skb);
}

SEC("cgroup_skb/ingress")
int afpa_guard_ingress(struct __sk_buff *skb)
{
	if (!concerns_us(skb) || skb->tc_index == MARK_UP || has_programs(skb->ifindex, AFPA_CARRIED_UP))
		return PASS;
	return stop_if_offset(skb);
}
