/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Derive the end of a user-mode response, for HTTP/1.1: the only part of the egress program that
 * knows the protocol.
 *
 * Contract: `work->head` holds the first bytes of the response. The end is known when the whole head
 * is there and RFC 9112 section 6.3 gives the length beforehand: no content (HEAD, 204, 304) or one
 * Content-Length. Chunked or close-delimited content, interim responses, connection options and
 * anything odd leave it unknown.
 */
#ifndef AFPA_HTTP_RESPONSE_H
#define AFPA_HTTP_RESPONSE_H

#include <afpa/http_line.h>

#define RESPONSE_LINES_MAX 48
#define RESPONSE_HEAD_MAX 1024
#define RESPONSE_END_UNKNOWN 0
#define RESPONSE_MAX (1ULL << 30) /* longer ones could wrap the sequence space before they are acknowledged */

/* Eight bytes of the head in lower case. */
static __always_inline __u64 folded8(const struct work *work, __u32 at)
{
	return load8(work->head + at) | EVERY_BYTE(0x20);
}

/* Content-Length at `at`: decimal digits up to the end of the line, at most 10, and only once. */
__noinline int afpa_read_length(struct work *work, __u32 at)
{
	__u64 value = 0;

	if (!work)
		return false;
	for (__u32 i = 0; i <= 10; i++) {
		__u32 digit;

		opaque(at);
		if (at >= AFPA_HEAD_MAX)
			return false;
		digit = work->head[at++] - '0';
		if (digit > 9) {
			work->scan.content_length = value;
			return i > 0 && digit == (__u32)('\r' - '0') && work->scan.lengths++ == 0;
		}
		value = value * 10 + digit;
	}
	return false;
}

#define BYTES(word, count) ((word) & ((1ULL << (count) * 8) - 1))

/*
 * One line. The server's own names need no proof, so only their first words are looked at. Stops (1)
 * at the blank line and where the end cannot be known.
 */
static long scan_response_line(__u32 index, void *context)
{
	struct work *work = *(struct work **)context; /* bpf_loop hands on stack pointers only */
	struct scan *scan = &work->scan;
	__u32 at = scan->at, end;
	__u64 first, second;

	if (at > AFPA_HEAD_MAX)
		return 1;
	if (crlf_at(work, at)) {
		scan->done = at + 2;
		return 1;
	}
	first = folded8(work, at);
	second = folded8(work, at + 8);
	switch (first) {
	case N('t', 'r', 'a', 'n', 's', 'f', 'e', 'r'):
	case N('u', 'p', 'g', 'r', 'a', 'd', 'e', ':'):
		return 1;
	case N('c', 'o', 'n', 'n', 'e', 'c', 't', 'i'): /* Connection: keep-alive, or an end that is near */
		if (BYTES(second, 4) == N('o', 'n', ':', ' ', 0, 0, 0, 0) &&
		    folded8(work, at + 12) != N('k', 'e', 'e', 'p', '-', 'a', 'l', 'i'))
			return 1;
		break;
	case N('c', 'o', 'n', 't', 'e', 'n', 't', '-'):
		if (BYTES(second, 7) == N('l', 'e', 'n', 'g', 't', 'h', ':', 0) &&
		    !afpa_read_length(work, at + (work->head[at + 15] == ' ' ? 16 : 15)))
			return 1;
	}
	end = afpa_find_end(work, at, false);
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

/* Bytes from the start of the response to its end, or RESPONSE_END_UNKNOWN. `length` bytes are in `work->head`. */
static __noinline __u64 derive_response_length(struct work *work, __u32 length, __u32 to_head)
{
	struct scan *scan = &work->scan;
	__u32 status = read_status(work), line;

	if (status < 200)
		return RESPONSE_END_UNKNOWN;
	line = afpa_find_end(work, 12, false);
	if (!crlf_at(work, line))
		return RESPONSE_END_UNKNOWN;
	scan->at = line + 2;
	scan->done = scan->lengths = 0;
	bpf_loop(RESPONSE_LINES_MAX, scan_response_line, &work, 0);
	if (!scan->done || scan->done > length)
		return RESPONSE_END_UNKNOWN;
	if (to_head || status == 204 || status == 304)
		return scan->done;
	if (scan->lengths != 1 || scan->content_length > RESPONSE_MAX)
		return RESPONSE_END_UNKNOWN;
	return scan->done + scan->content_length;
}

#endif
