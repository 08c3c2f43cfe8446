/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The answer to a SYN: the packet in hand becomes a SYN-ACK whose sequence number is a cookie, with options in Linux's own
 * order.
 */
#ifndef AFPA_TX_SYN_ACK_H
#define AFPA_TX_SYN_ACK_H

#include <afpa/conn/cookie.h>
#include <afpa/net/syn.h>
#include <afpa/tx/frame.h>

#define SYN_ACK_OPTIONS 5 /* words */

_Static_assert(FRAME_AT + sizeof(struct ethhdr) + sizeof(struct ipv6hdr) + sizeof(struct tcphdr) + SYN_ACK_OPTIONS * 4 <=
		       FRAME_HEADERS_MAX, "a SYN-ACK in `work->frame`");

/* The options that both sides have agreed on. */
struct agreed {
	__u32 mss;          /* ours */
	__u32 client_mss;   /* the client's, in a cookie's bits */
	__u8 timestamps, sack, scaling;
	__u8 client_scale;
};

static __always_inline void agree(struct agreed *agreed, const struct syn_options *o, __u32 mss)
{
	__u32 allowed = shared.handshake;

	agreed->mss = mss;
	agreed->timestamps = o->timestamps && allowed & AFPA_HANDSHAKE_TIMESTAMPS;
	agreed->sack = o->sack && allowed & AFPA_HANDSHAKE_SACK;
	agreed->scaling = o->scaling && allowed & AFPA_HANDSHAKE_SCALING;
	agreed->client_scale = o->scale;
}

/* The low bits of a cookie. */
static __always_inline __u32 cookie_bits(const struct agreed *agreed)
{
	return agreed->client_mss << COOKIE_MSS_SHIFT | (agreed->timestamps ? COOKIE_TIMESTAMPS : 0) |
	       (agreed->sack ? COOKIE_SACK : 0) | (agreed->scaling ? agreed->client_scale & COOKIE_SCALE : COOKIE_NO_SCALE);
}

/* The first window, in bytes: that of a connection that the kernel makes of a cookie. */
static __always_inline __u32 first_window(__u32 mss)
{
	return mss ? 65535 / mss * mss : 0;
}

/* Our timestamps to a client begin here, as the kernel's do: at another value for each pair of addresses. */
static __always_inline __u32 timestamp_offset(const struct afpa_flow_key *key)
{
	return mix_addresses(shared.cookie_key[1], key) >> 16;
}

static __always_inline __u32 timestamp_now(const struct afpa_flow_key *key)
{
	return milliseconds() + timestamp_offset(key);
}

/* The options. Returns how many words they have; the rest of the array is 0. */
static __always_inline __u32 put_syn_ack_options(__be32 *words, const struct segment *s, const struct agreed *agreed,
						 __u32 ts_echo)
{
	__be32 scale = bpf_htonl(0x01030300 | (shared.window_scale & COOKIE_SCALE));

	words[0] = bpf_htonl(OPTION_MSS << 24 | 4 << 16 | agreed->mss);
	words[1] = words[2] = words[3] = words[4] = 0;
	if (agreed->timestamps) {
		words[1] = bpf_htonl((agreed->sack ? 0x0402u : 0x0101u) << 16 | 0x080a);
		words[2] = bpf_htonl(timestamp_now(&s->key));
		words[3] = bpf_htonl(ts_echo);
		if (!agreed->scaling)
			return 4;
		words[4] = scale;
		return 5;
	}
	if (agreed->sack) {
		words[1] = bpf_htonl(0x01010402);
		words[2] = agreed->scaling ? scale : 0;
		return agreed->scaling ? 3 : 2;
	}
	words[1] = agreed->scaling ? scale : 0;
	return agreed->scaling ? 2 : 1;
}

/*
 * The packet becomes the SYN-ACK; the SYN's headers are in `work->frame`, as if it had come by the way back. False: it is
 * spoilt.
 */
static __always_inline bool make_syn_ack(struct __sk_buff *skb, struct work *work, const struct segment *s,
					 const struct agreed *agreed, __u32 cookie, __u32 ts_echo)
{
	void *ip = work->frame + FRAME_AT + sizeof(struct ethhdr);
	struct tcphdr *tcp = s->ipv6 ? ip + sizeof(struct ipv6hdr) : ip + sizeof(struct iphdr);
	bool partial = checksum_state(skb) == CHECKSUM_PARTIAL;
	__u32 words, tcp_length, headers;
	struct outgoing out = { .swap = true };
	__be32 *options = (__be32 *)(tcp + 1);
	__be16 client = tcp->source;
	__u64 sum;

	words = put_syn_ack_options(options, s, agreed, ts_echo);
	tcp_length = sizeof(*tcp) + words * 4;
	headers = s->tcp_at + tcp_length;
	swap_ethernet(work->frame + FRAME_AT);
	if (s->ipv6)
		build_ipv6(ip, &out, tcp_length);
	else
		build_ipv4(ip, &out, tcp_length);
	tcp->source = tcp->destination;
	tcp->destination = client;
	tcp->seq = bpf_htonl(cookie);
	tcp->ack = bpf_htonl(s->seq + 1);
	tcp->offset = tcp_length / 4 << 4;
	tcp->flags = TCP_SYN | TCP_ACK;
	tcp->window = bpf_htons(first_window(agreed->mss));
	tcp->check = tcp->urgent = 0;
	sum = sum_pseudo(s, tcp_length);
	if (partial)
		tcp->check = fold(sum);
	else
		tcp->check = ~fold(sum + sum_words(tcp, sizeof(*tcp) / 4 + SYN_ACK_OPTIONS));
	if (bpf_skb_change_tail(skb, headers, 0))
		return false;
	if (!is_within(&headers, 58, 94))
		return false;
	return bpf_skb_store_bytes(skb, 0, work->frame + FRAME_AT, headers, 0) == 0;
}

#endif
