/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The first request of a connection: prove that the segment belongs to it, and learn its parameters.
 *
 * A segment is answered only when the server's own TCP has an established connection in exactly the
 * state the segment expects; this keeps forged ones from being answered (reflection), so no
 * check here may be weakened. The connection must be one of a listener that is served (conn/served.h), and fresh: when
 * requests went to user mode unseen, it is not known whether a response is still pending.
 */
#ifndef AFPA_CONN_SOCKET_H
#define AFPA_CONN_SOCKET_H

#include <afpa/conn/admit.h>
#include <afpa/conn/flow.h>
#include <afpa/conn/served.h>

/* In `ecn_flags`. */
#define ECN_NEGOTIATED 0x01
#define WINDOW_SCALE_MAX 14 /* RFC 7323, 2.3 */
#define ECN_ACCURATE 0x10 /* Accurate ECN: its flags are counters, and RFC 3168 does not hold for them */


/* Are its timestamps in microseconds? Kernels before 6.7 cannot do that. */
static __always_inline bool has_microseconds(const struct tcp_sock *tcp)
{
	return bpf_core_field_exists(tcp->tcp_usec_ts) && BPF_CORE_READ_BITFIELD(tcp, tcp_usec_ts);
}

/* To read pointers of. */
static __always_inline const struct tcp_sock *untrusted(const struct tcp_sock *tcp)
{
	return bpf_ksym_exists(bpf_rdonly_cast) ? read_only(tcp, struct tcp_sock) : tcp;
}

/* Does it drop packets from too far away (RFC 5082: IP_MINTTL, IPV6_MINHOPCOUNT)? The programs look at no TTL. */
static __always_inline bool wants_near_peers(const struct tcp_sock *tcp)
{
	const struct inet_sock *inet = &untrusted(tcp)->inet_conn.icsk_inet;

	return inet->min_ttl || (bpf_core_field_exists(inet->pinet6) && inet->pinet6 && inet->pinet6->min_hopcount);
}

/*
 * Is the socket idle, and at exactly the numbers of the segment? All that it has sent is acknowledged, by this segment at
 * the latest.
 */
static __always_inline enum afpa_reason prove(const struct tcp_sock *tcp, const struct segment *s)
{
	const struct sock *sock = &tcp->inet_conn.icsk_inet.sk;

	if (sock->__sk_common.skc_state != TCP_ESTABLISHED || sock->sk_shutdown)
		return AFPA_PASS_NO_SOCKET;
	if (tcp->rcv_nxt != s->seq || tcp->copied_seq != s->seq)
		return AFPA_PASS_NO_SOCKET;
	if (tcp->snd_nxt != s->ack || tcp->write_seq != s->ack)
		return AFPA_PASS_NO_SOCKET;
	/* Kernel TLS, microsecond timestamps, a socket under repair: the programs are not made for these. */
	if (untrusted(tcp)->inet_conn.icsk_ulp_ops || has_microseconds(tcp) || BPF_CORE_READ_BITFIELD(tcp, repair) ||
	    wants_near_peers(tcp))
		return AFPA_PASS_NO_SOCKET;
	if (BPF_CORE_READ_BITFIELD(tcp, rx_opt.tstamp_ok) != s->timestamps)
		return AFPA_PASS_NO_SOCKET;
	/* Bytes that overtook this segment wait in the socket, under numbers that an answer would make wrong. */
	if (untrusted(tcp)->out_of_order_queue.rb_node || sock->sk_backlog.len)
		return AFPA_PASS_OLD_CONNECTION;
	return AFPA_ANSWERED;
}

/* Flags of a flow that the handshake decides. */
static __always_inline __u8 negotiated(const struct tcp_sock *tcp)
{
	__u8 ecn = BPF_CORE_READ_BITFIELD(tcp, ecn_flags) & (ECN_NEGOTIATED | ECN_ACCURATE), flags = 0;

	if (BPF_CORE_READ_BITFIELD(tcp, rx_opt.sack_ok) && !(ecn & ECN_ACCURATE)) /* loss recovery needs SACK */
		flags |= AFPA_FLOW_MULTI_SEGMENT;
	if (ecn == ECN_NEGOTIATED)
		flags |= AFPA_FLOW_ECN;
	return flags;
}

/* The flow takes the state that answers need from the connection's socket. */
static __always_inline void learn(struct afpa_flow *flow, const struct tcp_sock *tcp, const struct segment *s)
{
	__u32 receive_scale = BPF_CORE_READ_BITFIELD(tcp, rx_opt.wscale_ok) ?
			      BPF_CORE_READ_BITFIELD(tcp, rx_opt.rcv_wscale) : 0;
	__u32 window = tcp->rcv_wnd >> receive_scale;

	flow->flags &= AFPA_FLOW_CLIENT_FIN | AFPA_FLOW_SERVER_FIN;
	flow->flags |= s->timestamps ? AFPA_FLOW_TIMESTAMPS : 0;
	flow->flags |= negotiated(tcp);
	path_learn(flow, tcp->srtt_us >> 3);
	flow->client_scale = BPF_CORE_READ_BITFIELD(tcp, rx_opt.snd_wscale);
	flow->server_scale = receive_scale;
	flow->window = bpf_htons(window > 0xffff ? 0xffff : window);
	flow->mss = tcp->mss_cache > 0xffff ? 0xffff : tcp->mss_cache;
	flow->ts_offset = tcp->tsoffset;
	/* The kernel's timestamps come from a finer clock than ours: start at its value, so as never to be behind. */
	flow->ts_sent = milliseconds() + tcp->tsoffset;
}

/* The flow as it starts: no sequence offset, nothing pending. */
static __always_inline void adopt(struct afpa_flow *flow, const struct segment *s, __u32 listener, __u64 now)
{
	flow->owner = AFPA_OWNER_NONE;
	flow->client_next = flow->kernel_received = s->seq;
	flow->kernel_next = flow->stale_below = flow->acked_to_kernel = s->ack;
	flow->listener = listener;
	flow->used_ns = flow->user_ns = now;
}

/*
 * Nothing was sent or received on the connection yet. So its TCP's clock, in microseconds, stands where the client's
 * last acknowledgement came in, unless a keep-alive probe was sent.
 */
static __always_inline void admit_fresh(const struct tcp_sock *tcp, const struct segment *s)
{
	if (!tcp->inet_conn.icsk_probes_out)
		afpa_admit(&s->key, rtx_clock(tcp->tcp_mstamp * 1000));
}

/* Ports of a tuple stand next to each other in network order. */
static __always_inline void fill_tuple(struct bpf_sock_tuple *tuple, const struct afpa_flow_key *key, bool ipv6)
{
	const __be32 *client = (const __be32 *)key->client, *server = (const __be32 *)key->server;

	if (ipv6) {
		copy_address((__u8 *)tuple->ipv6.saddr, client);
		copy_address((__u8 *)tuple->ipv6.daddr, server);
		tuple->ipv6.sport = bpf_htons(key->client_port);
		tuple->ipv6.dport = bpf_htons(key->server_port);
	} else {
		tuple->ipv4.saddr = client[3];
		tuple->ipv4.daddr = server[3];
		tuple->ipv4.sport = bpf_htons(key->client_port);
		tuple->ipv4.dport = bpf_htons(key->server_port);
	}
}

/* The socket of a connection, which the caller releases, or NULL. */
static __noinline struct bpf_sock *find_socket(struct __sk_buff *skb, const struct segment *s)
{
	struct bpf_sock_tuple tuple = {};

	fill_tuple(&tuple, &s->key, s->ipv6);
	return bpf_skc_lookup_tcp(skb, &tuple, s->ipv6 ? sizeof(tuple.ipv6) : sizeof(tuple.ipv4),
				  BPF_F_CURRENT_NETNS, 0);
}

/* Does the segment acknowledge a SYN-ACK of the kernel's TCP that was a cookie as well? Of its connection there is no socket yet. */
static __always_inline bool is_cookie_of_kernel(struct __sk_buff *skb, const struct segment *s, struct bpf_sock *listener)
{
	__u8 ip[sizeof(struct ipv6hdr)] __attribute__((aligned(8))); /* of IPv4, and what follows it */
	struct tcphdr tcp;

	if (bpf_skb_load_bytes(skb, s->ip_at, ip, sizeof(ip)) || bpf_skb_load_bytes(skb, s->tcp_at, &tcp, sizeof(tcp)))
		return false;
	if (s->ipv6)
		return !bpf_tcp_check_syncookie(listener, ip, sizeof(struct ipv6hdr), &tcp, sizeof(tcp));
	return !bpf_tcp_check_syncookie(listener, ip, sizeof(struct iphdr), &tcp, sizeof(tcp));
}

/*
 * Can a listener be given a connection in the middle, as if the kernel's TCP had begun it? Not one of Multipath TCP, whose
 * connections are other sockets; not one that wants signed segments; and not one with a receive buffer of its own size,
 * whose first window would be another one.
 */
static __always_inline bool takes_connections(struct bpf_sock *found, const struct tcp_sock *tcp)
{
	const struct sock *sock = &tcp->inet_conn.icsk_inet.sk;

	if (!is_served(found))
		return false;
	if (wants_near_peers(tcp))
		return false;
	if (bpf_core_field_exists(tcp->is_mptcp) && tcp->is_mptcp)
		return false;
	if (bpf_core_field_exists(tcp->md5sig_info) && untrusted(tcp)->md5sig_info)
		return false;
	if (bpf_core_field_exists(tcp->ao_info) && untrusted(tcp)->ao_info)
		return false;
	return !(BPF_CORE_READ_BITFIELD(sock, sk_userlocks) & SOCK_RCVBUF_LOCK);
}

/* Has its queue room for one more connection? A full one loses the request, and resets the client at the segment behind it. */
static __always_inline bool has_room(const struct tcp_sock *listener)
{
	const struct sock *sock = &listener->inet_conn.icsk_inet.sk;

	return sock->sk_ack_backlog <= sock->sk_max_ack_backlog;
}

/*
 * A server that defers accepting (TCP_DEFER_ACCEPT) has no socket before the first request is there, only the
 * handshake's request socket, which knows both first numbers. That request goes up; later ones are answered when
 * there is a socket to prove them by, and to see whose it is (`confirm_socket`).
 */
static __always_inline enum afpa_reason prove_request_sock(struct bpf_sock *found, const struct segment *s, __u32 listener,
						     __u64 now, struct afpa_flow *flow)
{
	struct tcp_request_sock *request = bpf_skc_to_tcp_request_sock(found);

	if (!request || request->rcv_isn + 1 != s->seq || request->rcv_nxt != s->seq || request->snt_isn + 1 != s->ack)
		return AFPA_PASS_NO_SOCKET;
	adopt(flow, s, listener, now);
	flow->flags = AFPA_FLOW_REQUEST_SOCK;
	flow->server_scale = WINDOW_SCALE_MAX;
	return AFPA_ANSWERED;
}

/* Prove the connection and fill `flow`. AFPA_ANSWERED: done; else the reason. */
static __always_inline enum afpa_reason prove_socket(struct __sk_buff *skb, const struct segment *s, __u32 listener,
						      __u64 now, struct afpa_flow *flow)
{
	enum afpa_reason reason = AFPA_PASS_NO_SOCKET;
	struct bpf_sock *found = find_socket(skb, s);
	struct tcp_sock *tcp;

	if (!found)
		return reason;
	if (found->state == TCP_NEW_SYN_RECV) {
		reason = prove_request_sock(found, s, listener, now, flow);
		bpf_sk_release(found);
		return reason;
	}
	tcp = bpf_skc_to_tcp_sock(found);
	if (tcp && !is_served(found)) {
		reason = AFPA_PASS_OTHER_SOCKET;
	} else if (tcp) {
		reason = tcp->bytes_received || tcp->bytes_sent ? AFPA_PASS_OLD_CONNECTION : prove(tcp, s);
		if (reason == AFPA_ANSWERED) {
			learn(flow, tcp, s);
			adopt(flow, s, listener, now);
			admit_fresh(tcp, s);
		}
	}
	bpf_sk_release(found);
	return reason;
}

/*
 * Prove the request behind that one by the socket that exists now. Nothing was answered on the connection yet, so the
 * numbers of the socket are those of the wire. A client that asks again at once acknowledges the response with its next
 * request, and by nothing before it: then the socket waits for that acknowledgement, and `commit` sends it up.
 */
static __always_inline enum afpa_reason confirm_socket(struct __sk_buff *skb, const struct segment *s,
							struct afpa_flow *flow)
{
	enum afpa_reason reason = AFPA_PASS_NO_SOCKET;
	struct bpf_sock *found = find_socket(skb, s);
	struct tcp_sock *tcp;

	if (!found)
		return reason;
	tcp = bpf_skc_to_tcp_sock(found);
	if (tcp && !is_served(found)) {
		reason = AFPA_PASS_OTHER_SOCKET;
	} else if (tcp) {
		reason = prove(tcp, s);
		if (reason == AFPA_ANSWERED) {
			learn(flow, tcp, s);
			flow->acked_to_kernel = tcp->snd_una;
		}
	}
	bpf_sk_release(found);
	return reason;
}

#endif
