/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One segment of a flight: what leaves next, and the packet in hand made into it.
 *
 * The bytes come out of one page: pages repeat the beginning of the next one, so that no segment lies in
 * two. All headers are made anew from the flight's key; the packet gives nothing but its memory.
 */
#ifndef AFPA_PIECE_H
#define AFPA_PIECE_H

#include <afpa/tx/reply.h>

enum built {
	BUILT_NOT,  /* the packet is spoilt; what it should have been is lost, and comes again */
	BUILT,
	BUILT_GONE, /* the bytes are not there any more */
};

/* No more than the path takes; the rest is the next piece. What begins within the Date will begin with the answer. */
static __always_inline void cut_piece(struct sending *sending)
{
	__u32 begin = sending->offset < AFPA_UNIT_MIN ? 0 : sending->offset, end = sending->offset + sending->length;
	__u32 most = sending->payload_max < AFPA_UNIT_MIN ? AFPA_UNIT_MIN : sending->payload_max;

	sending->rest = 0;
	if (end <= begin + most)
		return;
	sending->rest = end - begin - most;
	sending->length -= sending->rest;
}

/* Ask the engine what leaves now. False: nothing may. After the last one, `afpa_sent_now`. */
__noinline int afpa_next_piece(struct work *work, struct afpa_transfer *transfer)
{
	struct transmission t = {};

	if (!work || !transfer)
		return false;
	if (work->sending.rest) {
		work->sending.offset += work->sending.length;
		work->sending.length = work->sending.rest;
		work->sending.cwr = false;
		cut_piece(&work->sending);
		return true;
	}
	if (!sender_next(sender_of(transfer), work->sending.now, &t))
		return false;
	work->sending.offset = t.offset;
	work->sending.length = t.length;
	work->sending.retransmitted = t.retransmitted;
	work->sending.markable = t.ect;
	work->sending.cwr = t.cwr;
	work->sending.last = t.last;
	cut_piece(&work->sending);
	return true;
}

/* The four bytes of a TCP payload's sum that `bpf_csum_diff` does not take: fewer than a word. */
static __always_inline __u32 sum_rest(const __u8 *bytes, __u32 length)
{
	__u32 whole = length & ~3u, rest = length & 3;

	opaque(whole);
	if (rest == 0 || whole > UNIT_MAX)
		return 0;
	return *(const __u32 *)(bytes + whole) & ((1u << rest * 8) - 1);
}

/* Sum of a piece that begins `at` its page; chunks as in `sum_bytes`. */
static __always_inline __u64 sum_piece(struct afpa_page *page, __u32 at, __u32 length)
{
	__u32 sum = 0, whole = length & ~3u;

	for (__u32 i = 0; i < 3; i++) {
		__u32 most = i == 2 ? UNIT_MAX - 2 * SUM_CHUNK : SUM_CHUNK, rest = whole - i * SUM_CHUNK;

		if (i * SUM_CHUNK >= whole)
			break;
		rest = rest > most ? most : rest;
		opaque(rest);
		if (rest > most)
			break;
		sum = bpf_csum_diff(0, 0, (__be32 *)(page->bytes + at + i * SUM_CHUNK), rest, sum);
	}
	return (__u64)sum + sum_rest(page->bytes + at, length);
}

/*
 * The same, from the page if it was computed before. A remembered sum stands behind what it is of: 27 bits
 * of the version, the place in its quarter of the page, the length. Who writes a page that is somebody
 * else's by then leaves what nobody takes for his own.
 */
static __always_inline __u32 sum_remembered(struct afpa_page *page, __u64 version, __u32 at, __u32 length)
{
	const __u32 quarter = AFPA_PAGE / AFPA_PAGE_SUMS;
	__u64 what = version << 37 | (__u64)(at % quarter) << 27 | (__u64)length << 16, known;
	volatile __u64 *place = &page->sums[at / quarter % AFPA_PAGE_SUMS];

	known = *place;
	if (known >> 16 != what >> 16) {
		known = what | fold(sum_piece(page, at, length));
		*place = known;
	}
	return known & 0xffff;
}

/* Headers from server to client; lengths, numbers and sums are `make_packet`'s. */
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

/* A segment of the flight's connection with nothing in it but its place. */
static __always_inline void segment_of(struct segment *s, const struct afpa_flow_key *key, const struct sending *sending)
{
	s->key = *key;
	s->ipv6 = sending->ipv6;
	s->timestamps = sending->timestamps;
	s->ip_at = sizeof(struct ethhdr);
	s->tcp_at = sizeof(struct ethhdr) + (s->ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr));
	s->place = sending->place;
}

/*
 * The Date is not cut: what would begin before its end begins with the answer, and what would end within
 * it ends before it. A client takes what it has once more. True: the piece has the Date.
 */
static __always_inline bool with_date(__u32 *offset, __u32 *length, __u32 date_offset)
{
	__u32 end = *offset + *length, behind = date_offset + AFPA_DATE_LENGTH;

	if (*length == 0 || *offset >= behind)
		return false;
	*offset = 0;
	if (end < behind && end > date_offset)
		end = date_offset;
	*length = end;
	return end >= behind;
}

/* The payload behind `headers`, the Date in its place. */
static __always_inline bool store_piece(struct __sk_buff *skb, __u32 headers, struct afpa_page *page, __u32 at,
					__u32 length, __u32 date_offset, const struct afpa_date *date)
{
	opaque(length);
	if (length < 1 || length > UNIT_MAX)
		return false;
	if (bpf_skb_store_bytes(skb, headers, page->bytes + (at & (AFPA_PAGE - 1)), length, 0))
		return false;
	return !date || bpf_skb_store_bytes(skb, headers + date_offset, date->text, AFPA_DATE_LENGTH, 0) == 0;
}

/* The packet becomes the piece that `work->sending` names. An `enum built`. */
__noinline int afpa_build_piece(struct __sk_buff *skb, struct work *work, struct afpa_transfer *transfer)
{
	struct outgoing out = { .flags = TCP_ACK };
	const struct afpa_date *date = NULL;
	__u32 index, offset, length, at;
	struct afpa_page *page = NULL;
	struct segment s = {};
	struct afpa_slot *slot;

	if (!work || !transfer)
		return BUILT_NOT;
	index = transfer->slot;
	slot = bpf_map_lookup_elem(&slots, &index);
	if (!slot || slot->version != transfer->version)
		return BUILT_GONE;
	offset = work->sending.offset;
	length = work->sending.length;
	if (with_date(&offset, &length, slot->whole.date_offset)) {
		date = date_entry(transfer->date);
		if (date->second != transfer->date)
			return BUILT_GONE;
	}
	at = offset & (AFPA_PAGE - 1);
	opaque(length);
	if (length > UNIT_MAX)
		return BUILT_NOT;
	if (length) {
		index = offset / AFPA_PAGE;
		opaque(index);
		if (index >= AFPA_PAGES_MAX)
			return BUILT_NOT;
		index = slot->pages[index];
		page = bpf_map_lookup_elem(&pages, &index);
		if (!page || index == 0)
			return BUILT_GONE;
		if (!work->sending.partial)
			out.sum = fold((__u64)sum_remembered(page, transfer->version, at, length) +
				       (!date ? 0 : slot->whole.date_offset & 1 ? date->sum_odd : date->sum_even));
		if (work->sending.last && !work->sending.rest)
			out.flags |= TCP_PSH;
	} else {
		offset--; /* nothing, one byte below: the client says where it stands */
	}
	segment_of(&s, &transfer->flow, &work->sending);
	out.length = length;
	if (work->sending.ecn && work->sending.markable)
		out.ecn = ECN_CAPABLE;
	if (work->sending.cwr)
		out.flags |= TCP_CWR;
	if (sender_of(transfer)->mtu_blackhole) /* routers may cut it, with IPv4 */
		out.id = bpf_get_prandom_u32() | 1;
	out.seq = transfer->at + offset;
	out.ack = work->sending.ack;
	out.ts_value = work->sending.ts_value;
	out.ts_echo = work->sending.ts_echo;
	out.window = work->sending.window;
	build_headers(work, &s, transfer->ethernet);
	if (!make_packet(skb, work, &s, &out, work->sending.partial))
		return BUILT_NOT;
	if (page && !store_piece(skb, headers_out(&s), page, at, length, slot->whole.date_offset, date))
		return BUILT_NOT;
	/* Were these the bytes of this version still, when they were copied? */
	return *(volatile __u64 *)&slot->version == transfer->version ? BUILT : BUILT_GONE;
}

#endif
