/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The answer to a first packet: that packet, turned round. It goes back by the way on which the packet came.
 *
 *  RT3 An answer is shorter than the packet that it answers: nobody can have more sent to another than he sends himself.
 */
#ifndef AFPA_QUIC_REPLY_H
#define AFPA_QUIC_REPLY_H

#include <afpa/quic/packet.h>
#include <afpa/quic/tag.h>

#define QUIC_ANSWER_LEAST 11   /* bytes of the shortest answer: the version, for two ids of no bytes */
#define QUIC_ANSWER_MAX 160    /* more than the longest: a Retry of 116 bytes */

_Static_assert(QUIC_ANSWER_MAX < AFPA_QUIC_LEAST, "RT3");
/* 6 + 20 of the header, 9 of our id, the token, the tag. */
_Static_assert(6 + AFPA_QUIC_ID_MAX + 9 + AFPA_QUIC_TOKEN_MAX + 16 <= QUIC_ANSWER_MAX, "a Retry has room");
_Static_assert(1 + AFPA_QUIC_ID_MAX + 6 + AFPA_QUIC_ID_MAX + 9 + AFPA_QUIC_TOKEN_MAX <= QUIC_TAG_TEXT_MAX, "its tag is of all of it");

/*
 * Retry (RFC 9000, 17.2.5), of a packet whose beginning is in `work->in`; there is a key for this second. 1: it is made. A global
 * function, which is verified once, as the one that checks tokens.
 */
__noinline int afpa_quic_make_retry(struct quic_work *work, const struct datagram *d, __u64 second)
{
	const struct afpa_quic_config *config;
	const struct afpa_quic_token_key *key;
	const struct afpa_quic_table *table;
	__u32 zero = 0, first, own, at;
	struct quic_client client;
	__u8 *in, *out;
	__u64 id;

	config = bpf_map_lookup_elem(&quic_configs, &zero);
	table = bpf_map_lookup_elem(&quic_tables, &zero);
	if (!work || !d || !config || !table)
		return 0;
	key = quic_token_key(config, second);
	client = (struct quic_client){ .address = d->source, .port = d->source_port };
	in = work->in;
	out = work->out;
	first = in[5];
	if (first > AFPA_QUIC_ID_MAX)
		return 0;
	own = *quic_at(in, 6 + first);
	if (own > AFPA_QUIC_ID_MAX)
		return 0;
	id = quic_make_id(config->retry_key, bpf_get_prandom_u32(), 0);
	/* The pseudo-packet: the id that the first packet was sent to, then the Retry. */
	out[0] = first;
	quic_put_id(out + 1, in + 6);
	at = work->answer.at = 1 + first;
	*quic_at(out, at) = QUIC_LONG | QUIC_FIXED | QUIC_TYPE | (id & 15);
	QUIC_U32(quic_at(out, at + 1)) = bpf_htonl(QUIC_VERSION);
	*quic_at(out, at + 5) = own;
	quic_put_id(quic_at(out, at + 6), quic_at(in, 7 + first));
	at += 6 + own;
	*quic_at(out, at) = AFPA_QUIC_ID;
	QUIC_U64(quic_at(out, at + 1)) = id;
	at = quic_put_token(out, at + 9, &client, in + 6, first, second, id, key->words);
	QUIC_U64(quic_at(out, at)) = 0;
	QUIC_U64(quic_at(out, at + 8)) = 0;
	quic_tag(table, out, at);
	work->answer.length = at + 16 - work->answer.at;
	return 1;
}

/* Version Negotiation (RFC 8999, 6): both ids change places. */
static __always_inline bool quic_make_versions(struct quic_work *work)
{
	__u8 *in = work->in, *out = work->out;
	__u32 first = in[5], own, at;

	if (first > AFPA_QUIC_ID_MAX)
		return false;
	own = *quic_at(in, 6 + first);
	if (own > AFPA_QUIC_ID_MAX)
		return false;
	out[0] = QUIC_LONG | QUIC_FIXED | (bpf_get_prandom_u32() & 0x3f);
	QUIC_U32(out + 1) = 0;
	out[5] = own;
	quic_put_id(out + 6, quic_at(in, 7 + first));
	at = 6 + own;
	*quic_at(out, at) = first;
	quic_put_id(quic_at(out, at + 1), in + 6);
	at += 1 + first;
	QUIC_U32(quic_at(out, at)) = bpf_htonl(QUIC_VERSION);
	work->answer.at = 0;
	work->answer.length = at + 4;
	return true;
}

static __always_inline void quic_turn_ethernet(struct ethhdr *ethernet)
{
	__u8 other[6];

	__builtin_memcpy(other, ethernet->destination, 6);
	__builtin_memcpy(ethernet->destination, ethernet->source, 6);
	__builtin_memcpy(ethernet->source, other, 6);
}

/* `sum`: of both addresses. */
static __always_inline void quic_turn_udp(struct udphdr *udp, const struct quic_answer *answer, __u64 sum, __u32 content, bool partial)
{
	__be16 port = udp->source;
	__u16 check;

	udp->source = udp->destination;
	udp->destination = port;
	udp->length = bpf_htons(UDP_LENGTH + answer->length);
	sum += bpf_htons(IPPROTO_UDP) + udp->length;
	if (partial) {
		udp->check = datagram_fold(sum); /* the device adds the rest */
		return;
	}
	check = ~datagram_fold(sum + udp->source + udp->destination + udp->length + content);
	udp->check = check ? check : 0xffff;
}

static __always_inline bool quic_turn_v4(struct __sk_buff *skb, struct quic_work *work, __u32 content, bool partial)
{
	struct quic_frame_v4 *frame = &work->v4;
	const struct quic_answer *answer = &work->answer;
	struct iphdr *ip = &frame->ip;
	__be32 source;

	if (bpf_skb_load_bytes(skb, 0, &frame->ethernet, sizeof(*frame) - 2))
		return false;
	quic_turn_ethernet(&frame->ethernet);
	source = ip->source;
	ip->source = ip->destination;
	ip->destination = source;
	ip->tos = 0;
	ip->id = 0;
	ip->fragment = bpf_htons(0x4000);
	ip->ttl = 64;
	ip->total_length = bpf_htons(IPV4_LENGTH + UDP_LENGTH + answer->length);
	ip->check = 0;
	ip->check = ~datagram_fold((__u64)ip->source + ip->destination + bpf_htons(0x4500) + ip->total_length +
				   bpf_htons(0x4000) + bpf_htons(64 << 8 | IPPROTO_UDP));
	quic_turn_udp(&frame->udp, answer, (__u64)ip->source + ip->destination, content, partial);
	return !bpf_skb_store_bytes(skb, 0, &frame->ethernet, sizeof(*frame) - 2, 0);
}

static __always_inline bool quic_turn_v6(struct __sk_buff *skb, struct quic_work *work, __u32 content, bool partial)
{
	struct quic_frame_v6 *frame = &work->v6;
	const struct quic_answer *answer = &work->answer;
	struct ipv6hdr *ip = &frame->ip;
	__u64 sum = 0;

	if (bpf_skb_load_bytes(skb, 0, &frame->ethernet, sizeof(*frame) - 2))
		return false;
	quic_turn_ethernet(&frame->ethernet);
	for (int i = 0; i < 4; i++) {
		__be32 source = ip->source[i];

		sum += (__u64)source + ip->destination[i];
		ip->source[i] = ip->destination[i];
		ip->destination[i] = source;
	}
	ip->version_class = 0x60;
	ip->class_label &= 0x0f;
	ip->hop_limit = 64;
	ip->payload_length = bpf_htons(UDP_LENGTH + answer->length);
	quic_turn_udp(&frame->udp, answer, sum, content, partial);
	return !bpf_skb_store_bytes(skb, 0, &frame->ethernet, sizeof(*frame) - 2, 0);
}

/* Turns the packet round. False: it is none any more. */
static __always_inline bool quic_send(struct __sk_buff *skb, const struct datagram *d, struct quic_work *work)
{
	bool partial = skb_bits(skb, ip_summed) == CHECKSUM_PARTIAL;
	__u32 length = work->answer.length, at = work->answer.at;
	__u8 *content;
	__s64 sum;

	if (length < QUIC_ANSWER_LEAST || length > QUIC_ANSWER_MAX || at > 1 + AFPA_QUIC_ID_MAX)
		return false;
	asm volatile("%0 &= 31" : "+r"(at)); /* for the verifier */
	content = work->out + at;
	QUIC_U32(quic_at(work->out, at + length)) = 0;
	sum = bpf_csum_diff(0, 0, (__be32 *)content, (length + 3) & 0xfc, 0);
	if (bpf_skb_change_tail(skb, d->udp_at + UDP_LENGTH + length, 0) ||
	    !(d->ipv6 ? quic_turn_v6(skb, work, sum, partial) : quic_turn_v4(skb, work, sum, partial)))
		return false;
	return !bpf_skb_store_bytes(skb, d->udp_at + UDP_LENGTH, content, length, 0);
}

#endif
