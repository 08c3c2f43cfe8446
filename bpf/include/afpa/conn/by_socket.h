/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The connection of a packet whose segment is not to be seen, because it is wrapped, cut or on another device: its socket
 * knows (E3, E5 in docs/rules).
 */
#ifndef AFPA_CONN_BY_SOCKET_H
#define AFPA_CONN_BY_SOCKET_H

#include <afpa/conn/flow.h>

static __always_inline void key_of_socket(struct afpa_flow_key *key, struct bpf_sock *socket)
{
	if (socket->family == AF_INET) {
		map_ipv4(key->client, socket->dst_ip4);
		map_ipv4(key->server, socket->src_ip4);
	} else {
		__be32 client[4] = { socket->dst_ip6[0], socket->dst_ip6[1], socket->dst_ip6[2], socket->dst_ip6[3] };
		__be32 server[4] = { socket->src_ip6[0], socket->src_ip6[1], socket->src_ip6[2], socket->src_ip6[3] };

		put_ipv6(key->client, client);
		put_ipv6(key->server, server);
	}
	put_ports(key, bpf_ntohs(socket->dst_port), socket->src_port);
}

/* Does the packet belong to a connection with a sequence offset? */
static __always_inline bool socket_has_offset(struct __sk_buff *skb)
{
	struct bpf_sock *socket = (struct bpf_sock *)skb->sk;
	struct afpa_flow_key key __attribute__((aligned(8))) = {};
	struct afpa_flow *flow;

	if (!socket)
		return false;
	socket = bpf_sk_fullsock(socket);
	if (!socket || socket->protocol != IPPROTO_TCP || !port_served(socket->src_port & 0xffff))
		return false;
	key_of_socket(&key, socket);
	flow = bpf_map_lookup_elem(&flows, &key);
	return flow && flow_has_offset(flow);
}

#endif
