/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One segment of a transfer: the TCP sender chooses it, and the packet in hand is made into it.
 *
 * The bytes come out of one page: pages repeat the beginning of the next one, so that no segment lies in two. All
 * headers are made anew from the transfer's key; the packet gives nothing but its memory.
 */
#ifndef AFPA_RTX_SEGMENTER_H
#define AFPA_RTX_SEGMENTER_H

#include <afpa/tcp/ack.h>
#include <afpa/tcp/sender.h>
#include <afpa/cache/lookup.h>
#include <afpa/conn/flow.h>
#include <afpa/tx/frame.h>

_Static_assert(sizeof(struct sender) == AFPA_SENDER_WORDS * 8, "AFPA_SENDER_WORDS");

#define UNIT_MAX 1460 /* no longer than AFPA_PAGE_REACH */

static __always_inline struct sender *sender_of(struct afpa_transfer *transfer)
{
	return (struct sender *)transfer->sender;
}

/* The fields of a segment of the connection that `make_packet` needs. */
static __always_inline void segment_of(struct segment *s, const struct afpa_flow_key *key, const struct sending *sending)
{
	s->key = *key;
	s->ipv6 = sending->ipv6;
	s->timestamps = sending->timestamps;
	s->ip_at = sizeof(struct ethhdr);
	s->tcp_at = sizeof(struct ethhdr) + (s->ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr));
	s->place = sending->place;
}

enum built {
	BUILT_NOT,  /* the packet is spoilt: the segment is lost, and will be retransmitted */
	BUILT,
	BUILT_GONE, /* the bytes are not there any more */
};

/*
 * Cut off the bytes that are too many for the path: they are the next piece. A piece that would begin within the Date will
 * begin with the answer (`with_date`).
 */
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

/* Ask the TCP sender for the piece that leaves now. False: none may. After the last one, call `afpa_sent_now`. */
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

/* Sum of the last bytes of a payload, fewer than four: `bpf_csum_diff` takes whole words only. */
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
 * The same, from the page if it was computed before, for another client. With a sum the page remembers its source:
 * 27 bits of the version, the place in its quarter of the page, the length. If the page has become another
 * object's meanwhile, the version differs, and the sum is not used. A global function: the verifier walks its ways once, and not
 * once for each way of its caller.
 */
__noinline __u32 afpa_sum_remembered(struct afpa_page *page, __u64 version, __u32 at, __u32 length)
{
	const __u32 quarter = AFPA_PAGE / AFPA_PAGE_SUMS;
	volatile __u64 *place;
	__u64 what, known;

	if (!page)
		return 0;
	at &= AFPA_PAGE - 1;
	opaque(length);
	if (length > UNIT_MAX)
		return 0;
	what = version << 37 | (__u64)(at % quarter) << 27 | (__u64)length << 16;
	place = &page->sums[at / quarter % AFPA_PAGE_SUMS];
	known = *place;
	if (known >> 16 != what >> 16) {
		known = what | fold(sum_piece(page, at, length));
		*place = known;
	}
	return known & 0xffff;
}

/*
 * A segment has the whole Date (or Age) or nothing of it: one that would begin before the Date's end begins with the answer
 * (the client gets some bytes twice), and one that would end within the Date ends before it. True: the piece has the
 * Date.
 */
static __always_inline bool with_date(__u32 *offset, __u32 *length, __u32 date_offset, __u32 date_length)
{
	__u32 end = *offset + *length, behind = date_offset + date_length;

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
					__u32 length, __u32 date_offset, __u32 date_length, const struct afpa_date *date)
{
	if (!is_within(&length, 1, UNIT_MAX) || !is_within(&date_length, 1, AFPA_DATE_LENGTH))
		return false;
	if (bpf_skb_store_bytes(skb, headers, page->bytes + (at & (AFPA_PAGE - 1)), length, 0))
		return false;
	return !date || bpf_skb_store_bytes(skb, headers + date_offset, date->text, date_length, 0) == 0;
}

/* The packet becomes the piece that `work->sending` describes. Returns an `enum built`. */
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
	slot = slot_at(&index);
	if (!slot || slot_version(slot) != transfer->version)
		return BUILT_GONE;
	offset = work->sending.offset;
	length = work->sending.length;
	if (with_date(&offset, &length, slot->whole.date_offset, date_length(slot))) {
		date = date_or_age(work, slot, transfer->date);
		if (date->second != transfer->date)
			return BUILT_GONE;
	}
	work->sending.from = offset;
	work->sending.bytes = length;
	offset = *(volatile __u32 *)&work->sending.from;
	length = *(volatile __u32 *)&work->sending.bytes;
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
		page = page_at(&index);
		if (!page || index == 0)
			return BUILT_GONE;
		if (!work->sending.partial)
			out.sum = fold((__u64)afpa_sum_remembered(page, transfer->version, at, length) +
				       (!date ? 0 : slot->whole.date_offset & 1 ? date->sum_odd : date->sum_even));
		if (work->sending.last && !work->sending.rest)
			out.flags |= work->sending.closes ? TCP_PSH | TCP_FIN : TCP_PSH;
	} else {
		offset--; /* a window probe: an empty segment one byte below, which the client answers with its window */
	}
	segment_of(&s, &transfer->flow, &work->sending);
	out.length = length;
	if (work->sending.ecn && work->sending.markable)
		out.ecn = ECN_CAPABLE;
	if (work->sending.cwr)
		out.flags |= TCP_CWR;
	if (sender_of(transfer)->mtu_blackhole) /* IPv4 routers may fragment it */
		out.id = bpf_get_prandom_u32() | 1;
	out.seq = transfer->at + offset;
	out.ack = work->sending.ack;
	out.ts_value = work->sending.ts_value;
	out.ts_echo = work->sending.ts_echo;
	out.window = work->sending.window;
	build_headers(work, &s, transfer->ethernet);
	if (!make_packet(skb, work, &s, &out, work->sending.partial))
		return BUILT_NOT;
	if (page && !store_piece(skb, plain_headers(&s), page, at, length, slot->whole.date_offset, date_length(slot), date))
		return BUILT_NOT;
	/* The slot may have got another version while bytes were copied, and the Date's place another second. */
	if (!holds_version(slot, transfer->version) || (date && *(volatile __u64 *)&date->second != transfer->date))
		return BUILT_GONE;
	return BUILT;
}

#endif
