/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The packet in hand becomes another one: headers of the connection, and perhaps a response behind them.
 *
 * All headers are built in scratch and stored with one call, the response with a second, its Date with a third.
 * Checksums: a packet that came in with a partial sum leaves with one, and the device or the receiver finishes it;
 * otherwise the stored sum of the response is added to that of the headers.
 */
#ifndef AFPA_TX_FRAME_H
#define AFPA_TX_FRAME_H

#include <afpa/clock.h>
#include <afpa/net/segment.h>

#define HOPS 64

/* A packet that leaves: numbers only, so that a global function may have it. */
struct outgoing {
	__u32 length;            /* of the payload */
	__u32 date_offset, date_length; /* of the Date, or of the Age that a server's answer has in its place */
	__u32 sum;               /* of the payload, with the Date or Age */
	__u32 seq, ack;
	__u32 ts_value, ts_echo;
	__be16 window;
	__u8 flags;
	__be16 id;               /* IPv4: routers may fragment the packet, under this number; 0: they may not */
	__u8 ecn;                /* of the IP header: may the packet be marked? */
	__u8 swap;               /* source and destination of `work->frame` change places */
};

_Static_assert(AFPA_TTL_DIGITS + AFPA_BEFORE_AGE + AFPA_AGE_DIGITS <= AFPA_DATE_LENGTH, "the place of the longest Age");

/* Bytes of the text that is patched into the answers of a slot. */
static __always_inline __u32 date_length(const struct afpa_slot *slot)
{
	__u32 digits = slot->age_digits, ttl = slot->ttl_digits;

	if (!digits)
		return AFPA_DATE_LENGTH;
	return ttl ? ttl + AFPA_BEFORE_AGE + digits : digits;
}

/* An age of so many digits into `work->age`. */
static __always_inline void write_age(struct work *work, __u32 age, __u32 digits)
{
	__u64 word = 0;
	__u32 rest = age;
	__u16 sum;

	for (__u32 i = 0; i < AFPA_AGE_DIGITS; i++) {
		if (i >= digits)
			break;
		word = word << 8 | ('0' + rest % 10);
		rest /= 10;
	}
	sum = fold(word);
	work->age.second = age;
	*(__u64 *)work->age.text = word;
	work->age.sum_even = sum;
	work->age.sum_odd = (__u16)(sum << 8 | sum >> 8);
}

/* A number of so many digits that end before `end`. The index wraps around in `text`: the verifier has to see a bound. */
static __always_inline void put_digits(__u8 *text, __u32 end, __u32 number, __u32 digits)
{
	for (__u32 i = 0; i < AFPA_TTL_DIGITS; i++) {
		if (i >= digits)
			break;
		text[(end - 1 - i) & 31] = '0' + number % 10;
		number /= 10;
	}
}

/*
 * The rest of a lifetime, which Cache-Status calls `ttl` (RFC 9211, 2.2.3), the end of that line, and the Age in the next one, into
 * `work->age`. The bytes between them are written with them, so that there is one place as in any other answer.
 */
static __always_inline void write_ttl_and_age(struct work *work, const struct afpa_slot *slot, __u32 age)
{
	const char between[AFPA_BEFORE_AGE + 1] = "\r\nAge: ";
	__u32 ttl_digits, age_digits;
	__u8 *text;
	__u16 sum;

	text = work->age.text;
	ttl_digits = slot->ttl_digits;
	age_digits = slot->age_digits;
	__builtin_memset(text, 0, sizeof(work->age.text));
	put_digits(text, ttl_digits, slot->lifetime - age, ttl_digits);
	for (__u32 i = 0; i < AFPA_BEFORE_AGE; i++)
		text[(ttl_digits + i) & 31] = between[i];
	put_digits(text, ttl_digits + AFPA_BEFORE_AGE + age_digits, age, age_digits);
	sum = fold(sum_words(text, sizeof(work->age.text) / 4));
	work->age.second = age;
	work->age.sum_even = sum;
	work->age.sum_odd = (__u16)(sum << 8 | sum >> 8);
}

/*
 * The Age of an answer of the slot, perhaps behind a `ttl`; `digits`: those of the Age, as the caller has read them. A global
 * function: its branches would multiply with its callers'.
 */
__noinline int afpa_write_age(struct work *work, struct afpa_slot *slot, __u32 age, __u32 digits)
{
	if (!work || !slot)
		return 0;
	if (slot->ttl_digits)
		write_ttl_and_age(work, slot, age);
	else
		write_age(work, age, digits);
	return 0;
}

/* The text that is patched into an answer of the slot: the Date of a Unix second, or an Age, perhaps behind a `ttl`. */
static __always_inline const struct afpa_date *date_or_age(struct work *work, struct afpa_slot *slot, __u32 value)
{
	__u32 digits = slot->age_digits;

	if (!digits)
		return date_entry(value);
	afpa_write_age(work, slot, value, digits);
	return &work->age;
}

/* An answer of a slot under a Date. */
static __always_inline void outgoing_answer(struct outgoing *out, const struct afpa_slot *slot,
					    const struct afpa_answer *answer, bool head_only, const struct afpa_date *date)
{
	out->date_length = date_length(slot);
	out->length = head_only ? answer->head_length : answer->length;
	out->date_offset = answer->date_offset;
	out->sum = (head_only ? answer->head_sum : answer->sum) +
		   (answer->date_offset & 1 ? date->sum_odd : date->sum_even);
}

static __always_inline void swap_ethernet(__u8 *frame)
{
	struct ethhdr *ethernet = (void *)frame;
	struct ethhdr old = *ethernet;

	__builtin_memcpy(ethernet->destination, old.source, 6);
	__builtin_memcpy(ethernet->source, old.destination, 6);
}

static __always_inline void build_ipv4(struct iphdr *ip, const struct outgoing *out, __u32 tcp_length)
{
	__be32 source = ip->source;

	ip->tos = out->ecn;
	ip->total_length = bpf_htons(tcp_length + sizeof(*ip));
	ip->id = out->id;
	ip->fragment = out->id ? 0 : bpf_htons(0x4000);
	ip->ttl = HOPS;
	if (out->swap) {
		ip->source = ip->destination;
		ip->destination = source;
	}
	ip->check = 0;
	ip->check = ~fold(sum_words(ip, sizeof(*ip) / 4));
}

static __always_inline void build_ipv6(struct ipv6hdr *ip, const struct outgoing *out, __u32 tcp_length)
{
	*(__be32 *)ip = bpf_htonl(6 << 28 | out->ecn << 20);
	ip->payload_length = bpf_htons(tcp_length);
	ip->hop_limit = HOPS;
	for (int i = 0; out->swap && i < 4; i++) {
		__be32 source = ip->source[i];

		ip->source[i] = ip->destination[i];
		ip->destination[i] = source;
	}
}

static __always_inline void build_tcp(struct tcphdr *tcp, const struct segment *s, const struct outgoing *out)
{
	__be32 *options = (__be32 *)(tcp + 1);
	__be16 source = tcp->source;

	if (out->swap) {
		tcp->source = tcp->destination;
		tcp->destination = source;
	}
	tcp->seq = bpf_htonl(out->seq);
	tcp->ack = bpf_htonl(out->ack);
	tcp->offset = (sizeof(*tcp) + (s->timestamps ? TIMESTAMP_SIZE : 0)) / 4 << 4;
	tcp->flags = out->flags;
	tcp->window = out->window;
	tcp->check = tcp->urgent = 0;
	if (s->timestamps) {
		options[0] = bpf_htonl(TIMESTAMP_LAYOUT);
		options[1] = bpf_htonl(out->ts_value);
		options[2] = bpf_htonl(out->ts_echo);
	}
}

static __always_inline void checksum_tcp(struct tcphdr *tcp, const struct segment *s, const struct outgoing *out,
					 __u32 tcp_length, bool partial)
{
	__u64 sum = sum_pseudo(s, tcp_length);

	if (partial) {
		tcp->check = fold(sum);
		return;
	}
	sum += sum_words(tcp, sizeof(*tcp) / 4) + out->sum;
	if (s->timestamps)
		sum += sum_words(tcp + 1, 3);
	tcp->check = ~fold(sum);
}

/*
 * The headers of `out` in `work->frame`. Returns their length. A global function, verified once: its branches would
 * multiply with those of every caller.
 */
__noinline int afpa_build_frame(struct work *work, const struct segment *s, const struct outgoing *out, int partial)
{
	__u32 headers, tcp_length;
	struct tcphdr *tcp;
	void *ip;

	if (!work || !s || !out)
		return 0;
	ip = work->frame + FRAME_AT + sizeof(struct ethhdr);
	tcp = s->ipv6 ? ip + sizeof(struct ipv6hdr) : ip + sizeof(struct iphdr);
	headers = plain_headers(s);
	tcp_length = headers - s->tcp_at + out->length;
	if (out->swap)
		swap_ethernet(work->frame + FRAME_AT);
	if (s->ipv6)
		build_ipv6(ip, out, tcp_length);
	else
		build_ipv4(ip, out, tcp_length);
	build_tcp(tcp, s, out);
	checksum_tcp(tcp, s, out, tcp_length, partial);
	return headers;
}

/* Turn the packet into `out`, headers only. False: it is spoilt, drop it. */
static __always_inline bool make_packet(struct __sk_buff *skb, struct work *work, const struct segment *s,
					const struct outgoing *out, bool partial)
{
	__u32 headers = afpa_build_frame(work, s, out, partial);

	if (!is_within(&headers, 54, 86) || bpf_skb_change_tail(skb, headers + out->length, 0))
		return false;
	return bpf_skb_store_bytes(skb, 0, work->frame + FRAME_AT, headers, 0) == 0;
}

/*
 * Headers from server to client in `work->frame`, where no packet of the connection came in to be the model.
 * `make_packet` adds lengths, numbers and sums.
 */
static __always_inline void build_headers(struct work *work, const struct segment *s, const __u8 *ethernet)
{
	const __be32 *client = (const __be32 *)s->key.client, *server = (const __be32 *)s->key.server;
	__u8 *frame = work->frame + FRAME_AT;
	struct ipv6hdr *six = (void *)frame + sizeof(struct ethhdr);
	struct iphdr *four = (void *)frame + sizeof(struct ethhdr);
	struct tcphdr *tcp = (void *)(four + 1);

	__builtin_memcpy(frame, ethernet, sizeof(struct ethhdr));
	if (s->ipv6) {
		tcp = (void *)(six + 1);
		six->next_header = IPPROTO_TCP;
		copy_address((__u8 *)six->source, server);
		copy_address((__u8 *)six->destination, client);
	} else {
		four->version_ihl = 0x45;
		four->protocol = IPPROTO_TCP;
		four->source = server[3];
		four->destination = client[3];
	}
	tcp->source = bpf_htons(s->key.server_port);
	tcp->destination = bpf_htons(s->key.client_port);
}

/* The response behind the headers, its Date in its place; `max` is the room that `bytes` has. */
static __always_inline bool store_payload(struct __sk_buff *skb, const struct segment *s, const struct outgoing *out,
					  const __u8 *bytes, __u32 max, const struct afpa_date *date)
{
	__u32 length = out->length, date_length, at = plain_headers(s);

	if (!is_within(&length, AFPA_DATE_LENGTH, max))
		return false;
	if (bpf_skb_store_bytes(skb, at, bytes, length, 0))
		return false;
	/* Looked at behind the call, across which old verifiers forget the bounds of a number. */
	date_length = *(const volatile __u32 *)&out->date_length;
	if (!is_within(&date_length, 1, AFPA_DATE_LENGTH))
		return false;
	return bpf_skb_store_bytes(skb, at + out->date_offset, date->text, date_length, 0) == 0;
}

#endif
