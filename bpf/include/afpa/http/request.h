/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Derive request, for HTTP/1.1: the only part of the ingress program that knows the protocol.
 *
 * Contract: derive_request looks at one segment's payload in `work->head` and says whether it is
 * certainly one whole GET or HEAD without a body (so that exactly one response will follow), and
 * whether the cached answer is certainly the right one. A request that the user-mode parser would
 * refuse is never certain here. RFC 9112 sections 2.2 and 3; http/headers.h has the rest.
 */
#ifndef AFPA_HTTP_REQUEST_H
#define AFPA_HTTP_REQUEST_H

#include <afpa/http/headers.h>

#define TARGET_MAX 448 /* request lines longer than 512 bytes go to user mode for good */

#define REQUEST_CONTENT_MAX (1ULL << 30) /* longer content could wrap the sequence space */
#define SPACE_GET N('G', 'E', 'T', ' ', 0, 0, 0, 0)
#define SPACE_HEAD N('H', 'E', 'A', 'D', ' ', 0, 0, 0)
#define VERSION_HTTP N('H', 'T', 'T', 'P', '/', '1', '.', '1')
#define VERSION_OLD N('H', 'T', 'T', 'P', '/', '1', '.', '0')

/* Does a target of these first bytes begin as an absolute form does (RFC 9112, 3.2.2), in letters of any case? */
static __always_inline bool is_absolute(__u64 start)
{
	__u64 folded = start | EVERY_BYTE(0x20);

	return (folded & 0xffffffffffffffULL) == N('h', 't', 't', 'p', ':', '/', '/', 0) ||
	       folded == N('h', 't', 't', 'p', 's', ':', '/', '/');
}

/* Bytes of the method and the space behind it. Methods that may have content count only if `framed`. */
static __always_inline __u32 method_size(__u64 start, bool framed)
{
	if ((start & 0xffffffff) == SPACE_GET)
		return 4;
	if ((start & 0xffffffffff) == SPACE_HEAD)
		return 5;
	if (!framed)
		return 0;
	if ((start & 0xffffffffff) == N('P', 'O', 'S', 'T', ' ', 0, 0, 0))
		return 5;
	if ((start & 0xffffffff) == N('P', 'U', 'T', ' ', 0, 0, 0, 0))
		return 4;
	if ((start & 0xffffffffffff) == N('P', 'A', 'T', 'C', 'H', ' ', 0, 0))
		return 6;
	if ((start & 0xffffffffffffff) == N('D', 'E', 'L', 'E', 'T', 'E', ' ', 0))
		return 7;
	return start == N('O', 'P', 'T', 'I', 'O', 'N', 'S', ' ') ? 8 : 0;
}

/*
 * "GET /target HTTP/1.1\r\n", or HTTP/1.0, or a target in absolute form. The target is hashed as it lies, not decoded: an object pinned under a
 * path answers exactly these bytes, any other spelling goes to user mode. AFPA_ANSWERED: parsed.
 */
__noinline int afpa_parse_request_line(struct work *work, __u32 length, __u32 framed)
{
	__u64 start, last, here, hash = shared.hash_seed;
	__u32 target, size, bits, at;
	struct request *request;

	if (!work)
		return AFPA_PASS_REQUEST_LINE;
	request = &work->request;
	start = load8(work->head);
	request->head = (start & 0xffffffffff) == SPACE_HEAD;
	target = method_size(start, framed);
	if (target == 0)
		return AFPA_PASS_METHOD;
	/* Out of memory, so that the verifier does not go on for each method by itself. */
	request->path_length = target;
	target = *(volatile __u32 *)&request->path_length;
	opaque(target);
	target &= 15; /* the compiler keeps a copy from before the comparison, whose bound Linux 6.1 would not know */
	if (target > 8)
		return AFPA_PASS_METHOD;
	request->absolute = work->head[target] != '/';
	if (request->absolute && !is_absolute(load8(work->head + target)))
		return AFPA_PASS_REQUEST_LINE;
	request->path_length = TARGET_MAX;
	for (__u32 i = 0; i < TARGET_MAX; i += 8) {
		__u64 word = load8(work->head + target + i);

		if (bytes_equal(word, ' ')) {
			request->path_length = i;
			break;
		}
		if (bytes_not_text(word, true))
			return AFPA_PASS_REQUEST_LINE;
		hash = mix(hash, word);
	}
	/* Likewise for each turn of the loop. */
	size = *(volatile __u32 *)&request->path_length;
	opaque(size);
	if (size >= TARGET_MAX)
		return AFPA_PASS_REQUEST_LINE;
	last = load8(work->head + target + size);
	bits = first_bit(bytes_equal(last, ' '));
	opaque(bits);
	here = (1ULL << (bits & 63)) - 1;
	if (bytes_not_text(last, true) & here)
		return AFPA_PASS_REQUEST_LINE;
	if (bits)
		hash = mix(hash, last & here);
	size += bits / 8;
	at = target + size + 1;
	opaque(at);
	if (size == 0 || at > BLOCK_AT_MAX - 10)
		return AFPA_PASS_REQUEST_LINE;
	request->old = load8(work->head + at) == VERSION_OLD;
	if ((load8(work->head + at) != VERSION_HTTP && !request->old) || !crlf_at(work, at + 8))
		return AFPA_PASS_REQUEST_LINE;
	request->path_hash = hash;
	request->path_length = size;
	request->block_at = at + 10;
	request->block_length = length - request->block_at;
	return AFPA_ANSWERED;
}

/*
 * May the connection stay, or be closed here, as the request wants? HTTP/1.0 wants it closed, unless it says otherwise
 * (RFC 9112, 9.3).
 */
static __always_inline bool ends_as_it_may(struct request *request)
{
	if (request->old && !(request->block.flags & AFPA_BLOCK_KEEP))
		request->block.flags |= AFPA_BLOCK_CLOSE;
	if (request->block.flags & AFPA_BLOCK_CLOSE)
		return request->may_close && !(request->block.flags & AFPA_BLOCK_KEEP);
	return true;
}

/* Is anything pinned under this hash, on any site? Almost always right, one load. */
static __always_inline bool path_may_be_pinned(__u64 hash)
{
	__u32 bit = hash & (AFPA_PATH_FILTER_BITS - 1);

	return shared.paths[bit / 64] >> (bit % 64) & 1;
}

/*
 * Derive request: `length` bytes of payload lie in `work->head`. `reason` says why when the result is
 * not REQUEST_ANSWERABLE.
 */
static __always_inline enum certainty derive_request(struct work *work, __u32 length,
						      const struct afpa_listener *listener, enum afpa_reason *reason)
{
	*reason = afpa_parse_request_line(work, length, false);
	if (*reason != AFPA_ANSWERED)
		return REQUEST_UNSURE;
	*reason = check_block(work, listener);
	if (*reason != AFPA_ANSWERED)
		return REQUEST_UNSURE;
	if (!ends_as_it_may(&work->request)) {
		*reason = AFPA_PASS_HEADER;
		return REQUEST_UNSURE; /* its socket must be closed, which is user mode's */
	}
	if (work->request.absolute)
		*reason = AFPA_PASS_REQUEST_LINE; /* it names its host itself */
	else if (!path_may_be_pinned(work->request.path_hash))
		*reason = AFPA_PASS_NOT_PINNED;
	else if (!(work->request.block.flags & AFPA_BLOCK_ANSWERABLE))
		*reason = AFPA_PASS_FIELD;
	else if (work->request.block.site == 0)
		*reason = AFPA_PASS_SITE;
	else
		return REQUEST_ANSWERABLE;
	return REQUEST_ONE;
}

#define NO_FRAMING (~0ULL)
#define CRLF_CRLF 0x0a0d0a0d

/* Where `afpa_find_blank` stands. */
struct blank_search {
	struct work *work;
	__u32 length, end;
};

/* Does it begin in the `index`th eight bytes? Stops (1) there, and behind the last. */
static long look_for_blank(__u32 index, void *context)
{
	struct blank_search *search = context;
	__u32 from = index * 8;

	opaque(from);
	if (from >= search->length || from > AFPA_HEAD_MAX)
		return 1;
	if (!bytes_equal(load8(search->work->head + from), '\r'))
		return 0;
	for (__u32 i = 0; i < 8; i++) {
		if (*(__u32 *)(search->work->head + from + i) == CRLF_CRLF) {
			__u32 end = from + i + 4;

			search->end = end <= search->length ? end : 0;
			return 1;
		}
	}
	return 0;
}

/* Where the first blank line of `work->head` ends, at most at `length`; 0: there is none. */
__noinline __u32 afpa_find_blank(struct work *work, __u32 length)
{
	struct blank_search search = { .work = work, .length = length };

	if (!work || length > AFPA_HEAD_MAX)
		return 0;
	bpf_loop(AFPA_HEAD_MAX / 8, look_for_blank, &search, 0);
	return search.end;
}

/*
 * The head of `length` bytes at `work->head` as a request that goes to user mode: bytes of its content,
 * 0 without any; NO_FRAMING, when it is not certain that exactly one final response will follow, or where
 * the next request begins. GET and HEAD have no content here: servers differ in whether they read it.
 */
static __always_inline __u64 derive_framing(struct work *work, __u32 length, const struct afpa_listener *listener)
{
	struct scan *scan = &work->scan;
	bool content;

	if (afpa_parse_request_line(work, length, true) != AFPA_ANSWERED || work->request.block_length < 4 ||
	    work->request.block_length > AFPA_CHECKED_MAX - 32)
		return NO_FRAMING;
	content = method_size(load8(work->head), false) == 0;
	scan_block(work, listener, content);
	if ((scan->block.flags & (AFPA_BLOCK_ONE_REQUEST | AFPA_BLOCK_CLOSE)) != AFPA_BLOCK_ONE_REQUEST ||
	    (work->request.old && !(scan->block.flags & AFPA_BLOCK_KEEP)) ||
	    scan->content_length > REQUEST_CONTENT_MAX)
		return NO_FRAMING;
	return content ? scan->content_length : 0;
}

/* Bytes of the empty line before the first request in `work->head`: one is passed over (RFC 9112, 2.2). */
static __always_inline __u32 empty_line(const struct work *work, __u32 length)
{
	return length > 2 && crlf_at(work, 0) ? 2 : 0;
}

#define PIPELINED_MAX 8 /* requests of one segment that are counted */

enum taken { TAKEN_LAST, TAKEN_ONE, TAKEN_PART, TAKEN_UNSURE };

/* The request of `work->passing` whose first `there` bytes are at `work->head`: one more, and where is its end? */
static __always_inline enum taken take_request(struct work *work, __u32 there)
{
	struct passing *p = &work->passing;
	struct afpa_listener listener;
	__u32 head = afpa_find_blank(work, there);
	__u64 content;

	if (head == 0)
		return p->length - p->at < AFPA_HEAD_MAX ? TAKEN_PART : TAKEN_UNSURE;
	if (p->at == 0 && head == p->length && method_size(load8(work->head), false))
		return TAKEN_UNSURE; /* derive_request has said so */
	listener.id = p->listener;
	listener.any_host_site = p->any_host_site;
	content = derive_framing(work, head, &listener);
	if (content == NO_FRAMING || p->requests >= AFPA_RESPONSES_PENDING_MAX)
		return TAKEN_UNSURE;
	p->head_bits |= work->request.head << (p->requests & 15);
	p->requests++;
	p->at += head + (__u32)content;
	return p->at < p->length ? TAKEN_ONE : TAKEN_LAST;
}

#endif
