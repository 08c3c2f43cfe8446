/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Derive the ends of user-mode responses, for HTTP/1.1: the only part of the egress program that knows
 * the protocol.
 *
 * Contract: the reader goes over the stream of responses as its segments leave, from a place where a
 * response is known to begin. RFC 9112 section 6.3 says where each ends: no content (HEAD, 204, 304),
 * one Content-Length, or chunked. Interim responses are skipped. A head that is not whole in its segment,
 * close-delimited content, connection options and anything odd are unsure, and nothing is read any more.
 */
#ifndef AFPA_HTTP_RESPONSE_H
#define AFPA_HTTP_RESPONSE_H

#include <afpa/http/line.h>

#define RESPONSE_LINES_MAX 49 /* the status line among them */
#define RESPONSE_HEAD_MAX 1024
#define RESPONSE_HEAD_FIRST 512 /* most heads are whole in these bytes, and the rest is not copied out */
#define READ_STEPS 1024 /* responses, chunks, and bytes of chunk sizes in one segment */
#define RESPONSE_MAX (1ULL << 30) /* longer ones could wrap the sequence space before they are acknowledged */

/* Eight bytes of the head in lower case. */
static __always_inline __u64 folded8(const struct work *work, __u32 at)
{
	return load8(work->head + at) | EVERY_BYTE(0x20);
}

#define BYTES(word, count) ((word) & ((1ULL << (count) * 8) - 1))

/*
 * Read the line at `at` for the response's end. The server's own names need no proof, so only their first
 * words are looked at. False: the end cannot be known.
 */
static __always_inline bool read_response_line(struct work *work, __u32 at)
{
	__u64 first = folded8(work, at), second;

	switch (first) {
	case N('t', 'r', 'a', 'n', 's', 'f', 'e', 'r'): /* -Encoding: chunked, and nothing else */
		second = folded8(work, at + 8);
		return second == N('-', 'e', 'n', 'c', 'o', 'd', 'i', 'n') &&
		       folded8(work, at + 16) == N('g', ':', ' ', 'c', 'h', 'u', 'n', 'k') &&
		       BYTES(folded8(work, at + 24), 2) == N('e', 'd', 0, 0, 0, 0, 0, 0) && crlf_at(work, at + 26) &&
		       work->scan.chunked++ == 0;
	case N('u', 'p', 'g', 'r', 'a', 'd', 'e', ':'):
		return false;
	case N('c', 'o', 'n', 'n', 'e', 'c', 't', 'i'): /* Connection: keep-alive, or an end that is near */
		second = folded8(work, at + 8);
		return BYTES(second, 4) != N('o', 'n', ':', ' ', 0, 0, 0, 0) ||
		       folded8(work, at + 12) == N('k', 'e', 'e', 'p', '-', 'a', 'l', 'i');
	case N('c', 'o', 'n', 't', 'e', 'n', 't', '-'):
		second = folded8(work, at + 8);
		return BYTES(second, 7) != N('l', 'e', 'n', 'g', 't', 'h', ':', 0) ||
		       afpa_read_length(work, at + (work->head[at + 15] == ' ' ? 16 : 15));
	}
	return true;
}

/* First control byte at or after `at`: the end of a line, one hopes. */
__noinline __u32 afpa_find_control(struct work *work, __u32 at)
{
	if (!work)
		return AFPA_HEAD_MAX;
	for (__u32 i = 0; i < RESPONSE_HEAD_MAX; i += 8) {
		__u64 marks;

		opaque(at);
		if (at > LAST_WORD)
			break;
		marks = bytes_control(load8(work->head + at));
		if (marks)
			return at + first_bit(marks) / 8;
		at += 8;
	}
	return AFPA_HEAD_MAX;
}

/* One line. Stops (1) at the blank line and where the end cannot be known. */
static long scan_response_line(__u32 index, void *context)
{
	struct work *work = *(struct work **)context; /* bpf_loop hands on stack pointers only */
	struct scan *scan = &work->scan;
	__u32 at = scan->at, end;

	if (at > AFPA_HEAD_MAX)
		return 1;
	if (crlf_at(work, at)) {
		scan->done = at + 2;
		return 1;
	}
	if (!read_response_line(work, at))
		return 1;
	end = afpa_find_control(work, at);
	if (!crlf_at(work, end))
		return 1;
	scan->at = end + 2;
	return 0;
}

/* "HTTP/1.1 200 ": the status, or 0. */
static __always_inline __u32 read_status(const struct work *work)
{
	__u32 a = work->head[9] - '0', b = work->head[10] - '0', c = work->head[11] - '0';

	if (load8(work->head) != N('H', 'T', 'T', 'P', '/', '1', '.', '1') || work->head[8] != ' ')
		return 0;
	if (a > 9 || b > 9 || c > 9 || work->head[12] != ' ')
		return 0;
	return a * 100 + b * 10 + c;
}

enum response {
	RESPONSE_UNSURE,
	RESPONSE_INTERIM, /* 1xx: its head is all of it */
	RESPONSE_LENGTH,  /* `scan.size` bytes, its head included */
	RESPONSE_CHUNKED, /* `scan.size` bytes of head, then chunks */
};

/* The response that begins at `work->head`, where `length` bytes are. */
static __always_inline enum response derive_response(struct work *work, __u32 length, bool to_head)
{
	struct scan *scan = &work->scan;
	__u32 status = read_status(work);

	if (status < 100 || status == 101)
		return RESPONSE_UNSURE;
	scan->at = scan->done = scan->lengths = scan->chunked = 0;
	bpf_loop(RESPONSE_LINES_MAX, scan_response_line, &work, 0);
	if (!scan->done || scan->done > length)
		return RESPONSE_UNSURE;
	scan->size = scan->done;
	if (status < 200)
		return RESPONSE_INTERIM;
	if (to_head || status == 204 || status == 304)
		return RESPONSE_LENGTH;
	if (scan->chunked)
		return scan->lengths ? RESPONSE_UNSURE : RESPONSE_CHUNKED;
	if (scan->lengths != 1 || scan->content_length > RESPONSE_MAX)
		return RESPONSE_UNSURE;
	scan->size += scan->content_length;
	return RESPONSE_LENGTH;
}

/* Reads the responses in one segment. */
struct reader {
	__u32 at, end;            /* kernel numbers: next byte to read, end of the segment */
	__u32 shift;              /* from these to offsets in the packet */
	__u32 chunk, head_bits;
	__u8 phase, responses_pending, unsure;
};

static __always_inline void finish_response(struct reader *r)
{
	r->phase = AFPA_PHASE_HEAD;
	r->head_bits >>= 1;
	r->responses_pending--;
}

/* The response that begins `at` this byte of the packet, by the first `length` bytes of it. An `enum response`. */
__noinline int afpa_look_at_response(struct __sk_buff *skb, struct work *work, __u32 at, __u32 length, __u32 to_head)
{
	if (!work)
		return RESPONSE_UNSURE;
	if (!is_within(&length, 16, RESPONSE_HEAD_MAX) || bpf_skb_load_bytes(skb, at, work->head, length))
		return RESPONSE_UNSURE;
	for (int i = 0; i < 8; i++)
		*(__u64 *)(work->head + length + i * 8) = 0;
	return derive_response(work, length, to_head);
}

/* A head. 1: no further. */
__noinline int afpa_read_head(struct __sk_buff *skb, struct work *work, struct reader *r)
{
	__u32 length, at;
	enum response what;

	if (!work || !r)
		return 1;
	length = r->end - r->at;
	at = r->at + r->shift;
	r->unsure = true;
	if (r->responses_pending == 0)
		return 1;
	if (length > RESPONSE_HEAD_MAX)
		length = RESPONSE_HEAD_MAX;
	what = afpa_look_at_response(skb, work, at, length < RESPONSE_HEAD_FIRST ? length : RESPONSE_HEAD_FIRST,
				     r->head_bits & 1);
	if (what == RESPONSE_UNSURE && length > RESPONSE_HEAD_FIRST)
		what = afpa_look_at_response(skb, work, at, length, r->head_bits & 1);
	if (what == RESPONSE_UNSURE)
		return 1;
	r->unsure = false;
	r->at += work->scan.size;
	if (what == RESPONSE_LENGTH)
		finish_response(r);
	if (what == RESPONSE_CHUNKED)
		r->phase = AFPA_PHASE_SIZE;
	return 0;
}

/* The phase after byte `b` of chunked content, RFC 9112 section 7.1; AFPA_PHASE_HEAD: it may not stand here. */
static __always_inline __u8 next_phase(struct reader *r, __u8 b)
{
	__u32 digit = b >= '0' && b <= '9' ? b - '0' : (b | 32) >= 'a' && (b | 32) <= 'f' ? (b | 32) - 'a' + 10 : 16;

	switch (r->phase) {
	case AFPA_PHASE_SIZE:
		r->chunk = digit;
		return digit < 16 ? AFPA_PHASE_DIGITS : AFPA_PHASE_HEAD;
	case AFPA_PHASE_DIGITS:
		if (digit < 16) {
			r->chunk = r->chunk << 4 | digit;
			return r->chunk < RESPONSE_MAX >> 4 ? AFPA_PHASE_DIGITS : AFPA_PHASE_HEAD;
		}
		if (b == ';' || b == ' ')
			return AFPA_PHASE_EXTENSION;
		return b == '\r' ? AFPA_PHASE_SIZE_END : AFPA_PHASE_HEAD;
	case AFPA_PHASE_EXTENSION:
		if (b == '\r')
			return AFPA_PHASE_SIZE_END;
		return b >= 32 ? AFPA_PHASE_EXTENSION : AFPA_PHASE_HEAD;
	case AFPA_PHASE_SIZE_END:
		if (b != '\n')
			return AFPA_PHASE_HEAD;
		r->at += r->chunk;
		return r->chunk ? AFPA_PHASE_DATA_CR : AFPA_PHASE_TRAILER;
	case AFPA_PHASE_DATA_CR:
		return b == '\r' ? AFPA_PHASE_DATA_LF : AFPA_PHASE_HEAD;
	case AFPA_PHASE_DATA_LF:
		return b == '\n' ? AFPA_PHASE_SIZE : AFPA_PHASE_HEAD;
	case AFPA_PHASE_TRAILER:
		if (b == '\r')
			return AFPA_PHASE_LAST;
		return b > 32 ? AFPA_PHASE_TRAILER_LINE : AFPA_PHASE_HEAD;
	case AFPA_PHASE_TRAILER_LINE:
		if (b == '\r')
			return AFPA_PHASE_TRAILER_END;
		return b >= 32 ? AFPA_PHASE_TRAILER_LINE : AFPA_PHASE_HEAD;
	case AFPA_PHASE_TRAILER_END:
		return b == '\n' ? AFPA_PHASE_TRAILER : AFPA_PHASE_HEAD;
	}
	return AFPA_PHASE_HEAD;
}

/* A byte of chunked content. 1: no further. */
__noinline int afpa_read_framing(struct __sk_buff *skb, struct reader *r)
{
	__u8 byte = 0;

	if (!r)
		return 1;
	if (bpf_skb_load_bytes(skb, r->at + r->shift, &byte, 1)) {
		r->unsure = true;
		return 1;
	}
	r->at++;
	if (r->phase == AFPA_PHASE_LAST && byte == '\n') {
		finish_response(r);
		return 0;
	}
	r->phase = next_phase(r, byte);
	r->unsure = r->phase == AFPA_PHASE_HEAD;
	return r->unsure;
}

/* The context of `read_step`. */
struct reading {
	struct __sk_buff *skb;
	struct work *work;
	struct reader *reader;
};

static long read_step(__u32 index, void *context)
{
	struct reading *reading = context;
	struct reader *r = reading->reader;

	if (!before(r->at, r->end))
		return 1;
	if (r->phase == AFPA_PHASE_HEAD)
		return afpa_read_head(reading->skb, reading->work, r) != 0;
	return afpa_read_framing(reading->skb, r) != 0;
}

/*
 * As far as the segment goes. Then `at` is behind its end, or it is unsure. The functions of this reader are global:
 * the verifier goes through each once, and not for every state of the program that calls it.
 */
__noinline int afpa_read_responses(struct __sk_buff *skb, struct work *work, struct reader *r)
{
	struct reading reading = { .skb = skb, .work = work, .reader = r };

	if (!work || !r)
		return 0;
	if (r->phase == AFPA_PHASE_HEAD && afpa_read_head(skb, work, r))
		return 0;
	if (!before(r->at, r->end))
		return 0; /* nearly all there is: one response, or the beginning of a long one */
	bpf_loop(READ_STEPS, read_step, &reading, 0);
	if (before(r->at, r->end))
		r->unsure = true;
	return 0;
}

#endif
