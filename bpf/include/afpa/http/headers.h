/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The header block of a request: all lines after the request line.
 *
 * Contract: check_block says whether the block certainly belongs to one request without a body, and
 * what it asks for: site, codings, conditions. Clients repeat their block, so one that was read once,
 * line by line, is remembered whole, and its next copy, from any connection, is only compared.
 * RFC 9112 sections 5 and 6, RFC 9110 sections 7.2, 8.8, 12.5.3 and 13.
 */
#ifndef AFPA_HTTP_BLOCK_H
#define AFPA_HTTP_BLOCK_H

#include <afpa/http/fields.h>
#include <afpa/http/lists.h>

#define BLOCK_AT_MAX (AFPA_HEAD_MAX - AFPA_CHECKED_MAX)
#define LINES_MAX 64

/* Position of the first byte of a folded host that is no letter, digit, '-' or '.'; `length` if none. */
static __always_inline __u32 host_name_end(const __u8 *host, __u32 length)
{
	for (__u32 i = 0; i < AFPA_HOST_MAX; i += 8) {
		__u64 word = load8(host + i);
		__u64 dot = bytes_from(word, '.') & ~bytes_from(word, '.' + 1); /* bytes_equal is exact for the first only */
		__u64 strange = ~(bytes_of_name(word) | (dot & ~word)) & TOP_BITS;

		if (i >= length)
			break;
		if (strange)
			return i + first_bit(strange) / 8; /* the padding is strange, too */
	}
	return length;
}

/*
 * Host, RFC 9110 7.2: a name or IPv4 address of the usual letters, then perhaps a port. Bytes of the
 * name, or 0: it is none.
 */
__noinline int afpa_plain_host(struct work *work, __u32 length)
{
	__u32 end, port = 0;
	const __u8 *host;

	if (!work)
		return 0;
	host = work->site.host;
	end = host_name_end(host, length);
	opaque(end);
	if (end >= length)
		return length;
	if (end == 0 || end > AFPA_HOST_MAX - 8 || host[end] != ':' || length - end < 2 || length - end > 6)
		return 0;
	for (__u32 i = 1; i <= 5; i++) {
		__u32 digit = host[end + i] - '0';

		if (end + i >= length)
			break;
		if (digit > 9)
			return 0;
		port = port * 10 + digit;
	}
	return port > 0 && port <= 65535 ? end : 0;
}

#define NOT_A_SITE (~0u)

/*
 * The site of `work->site`, or NOT_A_SITE; the number of the host goes into the block. Looked up twice: the element may
 * have become another host's meanwhile (P4). Linux 6.1 takes no argument of a global function for a key.
 */
static __always_inline __u32 look_up_site(void)
{
	struct afpa_site *site;
	struct work *own;
	__u32 zero = 0;
	__u64 word;

	own = bpf_map_lookup_elem(&ingress_work, &zero);
	if (!own)
		return NOT_A_SITE;
	site = bpf_map_lookup_elem(&sites, &own->site);
	if (!site)
		return NOT_A_SITE;
	word = *(volatile __u64 *)site;
	load_fence();
	if (bpf_map_lookup_elem(&sites, &own->site) != site)
		return 0;
	own->scan.block.host = word >> 32; /* both processors that AFPA is for are little-endian */
	return (__u32)word;
}

/* The site of the first `length` bytes of the host, without the port behind them, or NOT_A_SITE. */
static __always_inline __u32 site_of_name(struct work *work, __u32 length)
{
	__u64 *folded = (__u64 *)work->site.host;
	__u32 number;

	for (__u32 i = 0; i < AFPA_HOST_MAX / 8; i++) {
		__u32 rest = length - i * 8;

		if (i * 8 >= length)
			folded[i] = 0;
		else if (rest < 8)
			folded[i] &= (1ULL << rest * 8) - 1;
	}
	work->site.host_length = length;
	number = look_up_site();
	work->scan.block.host = 0; /* with another port it is another host to a server */
	return number;
}

#define NOT_A_HOST (-1)

/* Letters of an ASCII word in lower case, all else as it is: '[' must not become '{'. */
static __always_inline __u64 fold_letters(__u64 word)
{
	__u64 upper = bytes_from(word, 'A') & ~bytes_from(word, 'Z' + 1) & ~word;

	return word | upper >> 2;
}

/* A name with the root's dot behind it. It selects the site of the name without it, which user mode finds. */
static __always_inline bool ends_with_dot(const struct work *work, __u32 length)
{
	__u32 last = length - 1;

	opaque(last);
	return last < AFPA_HOST_MAX && work->site.host[last] == '.';
}

/*
 * The site a Host value selects; 0: none. A registered value is known to be valid, others are looked at.
 * A name is the same with any port, so a registered one is not for the site of all other hosts.
 */
__noinline int afpa_select_site(struct work *work)
{
	__u32 at, length, name, number;
	__u64 *folded;

	if (!work)
		return NOT_A_HOST;
	at = work->scan.line.value_at;
	length = work->scan.line.value_length;
	folded = (__u64 *)work->site.host;
	if (length == 0 || length > AFPA_HOST_MAX || at > AFPA_HEAD_MAX)
		return NOT_A_HOST;
	for (__u32 i = 0; i < AFPA_HOST_MAX / 8; i++) {
		__u32 here = at + i * 8, rest = length - i * 8;
		__u64 word = 0;

		opaque(here);
		if (i * 8 < length && here <= LAST_WORD)
			word = fold_letters(load8(work->head + here));
		folded[i] = rest < 8 ? word & ((1ULL << rest * 8) - 1) : word;
	}
	work->site.listener = work->scan.listener;
	work->site.host_length = length;
	number = look_up_site();
	if (number != NOT_A_SITE)
		return number;
	name = afpa_plain_host(work, length);
	if (name == 0)
		return NOT_A_HOST;
	if (ends_with_dot(work, name))
		return 0;
	if (name < length && work->scan.any_host_site) {
		number = site_of_name(work, name);
		if (number != NOT_A_SITE)
			return number;
	}
	return work->scan.any_host_site;
}

static __always_inline __u32 coding_bit(__u64 token)
{
	switch (token) {
	case N('g', 'z', 'i', 'p', 0, 0, 0, 0):
		return 2;
	case N('b', 'r', 0, 0, 0, 0, 0, 0):
		return 4;
	case N('z', 's', 't', 'd', 0, 0, 0, 0):
		return 8;
	case N('d', 'e', 'f', 'l', 'a', 't', 'e', 0): /* this and the next matter to servers' answers alone */
		return 16;
	case N('i', 'd', 'e', 'n', 't', 'i', 't', 'y'):
		return 32;
	}
	return 0;
}

#define CODING_TOKENS 6

/*
 * Accept-Encoding without weights, wildcards or repetitions: the set of codings it names. The set and the place are kept
 * in memory: in registers the verifier would follow each sequence of codings by itself.
 */
__noinline int afpa_read_codings(struct work *work)
{
	bool sure = false, first;
	struct scan *scan;
	__u32 end;

	if (!work)
		return 0;
	scan = &work->scan;
	end = scan->line.value_at + scan->line.value_length;
	first = scan->block.codings == 1 && !(scan->block.flags & AFPA_BLOCK_CODING_UNSURE);
	scan->block.codings = 1;
	scan->coding_at = scan->line.value_at;
	for (int i = 0; i < CODING_TOKENS; i++) {
		__u32 at = *(volatile __u32 *)&scan->coding_at, bits, bit;
		__u64 word, strange;

		if (at > AFPA_HEAD_MAX)
			break;
		word = load8(work->head + at);
		strange = ~(bytes_from(word, 'a') & ~bytes_from(word, 'z' + 1) & ~word) & TOP_BITS;
		bits = strange ? first_bit(strange) : 64;
		bit = coding_bit(bits == 64 ? word : word & ((1ULL << bits) - 1));
		if (!bit || *(volatile __u32 *)&scan->block.codings & bit)
			break;
		*(volatile __u32 *)&scan->block.codings |= bit;
		at += bits / 8;
		sure = at == end;
		if (sure || work->head[at] != ',')
			break;
		*(volatile __u32 *)&scan->coding_at = at + (work->head[at + 1] == ' ' ? 2 : 1);
	}
	if (sure && first)
		return 0;
	scan->block.flags |= AFPA_BLOCK_CODING_UNSURE;
	scan->weights_at = first ? scan->line.value_at : 0;
	scan->weights_length = scan->line.value_length;
	return 0;
}

/* If-None-Match that is one entity tag: remember where. Lists, "*" and repetitions need user mode. */
__noinline int afpa_read_none_match(struct work *work)
{
	__u32 at, length, last;
	struct scan *scan;
	bool unsure;

	if (!work)
		return false;
	scan = &work->scan;
	at = scan->line.value_at;
	length = scan->line.value_length;
	last = at + length - 1;
	unsure = scan->block.none_match_at != 0 || length < 2 || length > AFPA_ETAG_MAX;
	opaque(at);
	opaque(last);
	if (at > LAST_WORD - AFPA_ETAG_MAX || last > LAST_WORD)
		return false;
	for (__u32 i = 0; i < AFPA_ETAG_MAX; i += 8) {
		__u64 comma = bytes_equal(load8(work->head + at + i), ',');

		if (i < length && comma && i + first_bit(comma) / 8 < length)
			unsure = true;
	}
	if (work->head[last] != '"')
		unsure = true;
	if (work->head[at] == 'W' && work->head[at + 1] == '/') { /* weak comparison: RFC 9110 13.1.2 */
		at += 2;
		length -= 2;
	}
	if (work->head[at] != '"' || length < 2)
		unsure = true;
	scan->block.none_match_at = at - scan->start;
	scan->block.none_match_length = length;
	if (unsure)
		scan->block.flags |= AFPA_BLOCK_MATCH_UNSURE;
	return true;
}

static __always_inline void read_modified_since(struct scan *scan)
{
	if (scan->block.modified_since_at || scan->line.value_length != AFPA_DATE_LENGTH)
		scan->block.flags |= AFPA_BLOCK_MATCH_UNSURE;
	scan->block.modified_since_at = scan->line.value_at - scan->start;
	scan->block.modified_since_length = scan->line.value_length;
}

/*
 * "keep-alive", the default, or "close", in any case; or a list of these and of options that say nothing about the connection's end
 * (H6), which `read_lists` reads. False: there are two such lists.
 */
static __always_inline bool read_connection(struct work *work, struct scan *scan)
{
	const struct line *line = &scan->line;
	__u32 at = line->value_at;

	if (at > LAST_WORD - 8)
		return false;
	if (line->value_length == 10 &&
	    (load8(work->head + at) | EVERY_BYTE(0x20)) == N('k', 'e', 'e', 'p', '-', 'a', 'l', 'i') &&
	    (work->head[at + 8] | 0x20) == 'v' && (work->head[at + 9] | 0x20) == 'e') {
		scan->block.flags |= AFPA_BLOCK_KEEP;
		return true;
	}
	if (line->value_length == 5 &&
	    ((load8(work->head + at) | EVERY_BYTE(0x20)) & 0xffffffffffULL) == N('c', 'l', 'o', 's', 'e', 0, 0, 0)) {
		scan->block.flags |= AFPA_BLOCK_CLOSE;
		return true;
	}
	if (scan->options_at)
		return false;
	scan->options_at = at;
	scan->options_length = line->value_length;
	return true;
}

/* Content-Length: of a method that has no content it may be 0, which says the same. Others may matter to a server as any field. */
static __always_inline bool read_content_length(struct work *work, struct scan *scan)
{
	if (!afpa_read_length(work, scan->line.value_at))
		return false;
	if (scan->framed)
		return true;
	scan->block.fields |= field_classes();
	return scan->content_length == 0;
}

/* Take one field's effect on the request. False: not certainly one request without a body. */
static __always_inline bool read_field(struct work *work, struct scan *scan)
{
	const struct line *line = &scan->line;
	int site;

	if (named(line, NAME_HOST)) {
		if (scan->block.flags & AFPA_BLOCK_HOST)
			return false;
		site = afpa_select_site(work);
		if (site == NOT_A_HOST)
			return false;
		scan->block.flags |= AFPA_BLOCK_HOST;
		scan->block.site = site;
	} else if (named(line, NAME_CONNECTION)) {
		return read_connection(work, scan);
	} else if (named(line, NAME_ACCEPT_ENCODING)) {
		afpa_read_codings(work);
	} else if (named(line, NAME_IF_NONE_MATCH)) {
		return afpa_read_none_match(work);
	} else if (named(line, NAME_IF_MODIFIED_SINCE)) {
		read_modified_since(scan);
	} else if (named(line, NAME_RANGE) || named(line, NAME_IF_RANGE) || named(line, NAME_IF_MATCH) ||
		   named(line, NAME_IF_UNMODIFIED_SINCE) || named(line, NAME_AUTHORIZATION)) {
		scan->block.flags &= ~AFPA_BLOCK_ANSWERABLE;
	} else if (named(line, NAME_CONTENT_LENGTH)) {
		return read_content_length(work, scan);
	} else if (named(line, NAME_TRANSFER_ENCODING) || named(line, NAME_EXPECT)) {
		return false;
	} else if (named(line, NAME_UPGRADE)) {
		scan->block.fields |= AFPA_FIELD_HOP; /* an offer: the response says whether the protocol changes */
	} else {
		scan->block.fields |= field_classes();
	}
	return true;
}

/* One line of the block; stops (1) at the blank line and at any line that is not sure. */
static long scan_request_line(__u32 index, void *context)
{
	struct work *work = *(struct work **)context; /* bpf_loop hands on stack pointers only */
	struct scan *scan = &work->scan;
	__u32 at = scan->at;

	if (at > AFPA_HEAD_MAX)
		return 1;
	if (crlf_at(work, at)) {
		scan->done = at + 2 == scan->end;
		return 1;
	}
	if (!take_line(work, at, true) || !read_field(work, scan))
		return 1;
	scan->at = scan->line.next;
	return 0;
}

/*
 * The lists that were put off. Linux 6.1 adds up the stack of all calls, and lines are read deep down. False: the block has an option
 * that may change the connection in ways that are not known here.
 */
static __always_inline bool read_lists(struct work *work)
{
	struct scan *scan = &work->scan;

	if (scan->options_at && !afpa_read_options(work))
		return false;
	if (scan->weights_at)
		afpa_weigh_codings(work);
	return true;
}

/* Read the block line by line into `work->scan.block`. */
static __noinline int scan_block(struct work *work, const struct afpa_listener *listener, __u32 framed)
{
	struct scan *scan = &work->scan;

	__builtin_memset(&scan->block, 0, sizeof(scan->block));
	scan->at = scan->start = work->request.block_at;
	scan->end = work->request.block_at + work->request.block_length;
	scan->listener = listener->id;
	scan->any_host_site = listener->any_host_site;
	scan->done = scan->lengths = scan->options_at = scan->weights_at = 0;
	scan->framed = framed;
	scan->content_length = 0;
	scan->block.codings = 1;
	scan->block.flags = AFPA_BLOCK_ANSWERABLE;
	bpf_loop(LINES_MAX, scan_request_line, &work, 0);
	if (!scan->done || !(scan->block.flags & AFPA_BLOCK_HOST) || !read_lists(work))
		scan->block.flags = 0;
	else
		scan->block.flags |= AFPA_BLOCK_ONE_REQUEST;
	return 0;
}

/*
 * Where in `checked` a copy of the block would be: every fourth word decides. A listener's verdicts are its own: those of
 * two on one block would push each other out.
 */
__noinline __u32 afpa_block_index(struct work *work, __u32 at, __u32 length, __u32 listener)
{
	__u64 hash = shared.hash_seed ^ length ^ (__u64)listener << 32;

	if (!work || at > BLOCK_AT_MAX)
		return 0;
	for (__u32 i = 0; i < AFPA_CHECKED_MAX; i += 32) {
		if (i >= length)
			break;
		hash = mix(hash, load8(work->head + at + i));
	}
	return (hash ^ hash >> 17) & shared.checked_mask;
}

/* Whole words: both copies are padded with zeros to a multiple of 32 bytes. */
__noinline int afpa_same_block(struct work *work, __u32 at, struct afpa_checked *entry)
{
	const __u8 *a, *b;
	__u32 length;

	if (!work || !entry || at > BLOCK_AT_MAX)
		return false;
	length = entry->length;
	a = work->head + at;
	b = entry->bytes;
	for (__u32 i = 0; i < AFPA_CHECKED_MAX; i += 32) {
		__u64 differ;

		if (i >= length)
			break;
		differ = load8(a + i) ^ load8(b + i);
		differ |= load8(a + i + 8) ^ load8(b + i + 8);
		differ |= load8(a + i + 16) ^ load8(b + i + 16);
		differ |= load8(a + i + 24) ^ load8(b + i + 24);
		if (differ)
			return false;
	}
	return true;
}

/* A remembered verdict. Another CPU may be writing the entry: an odd or moved sequence spoils it. */
static __always_inline bool recall_block(struct work *work, struct afpa_checked *entry, __u32 listener)
{
	const struct request *request = &work->request;
	__u32 sequence = *(volatile __u32 *)&entry->sequence;

	load_fence();
	if (sequence & 1 || entry->length != request->block_length || entry->listener != listener ||
	    entry->generation != shared.generation)
		return false;
	if (!afpa_same_block(work, request->block_at, entry))
		return false;
	work->request.block = entry->block;
	load_fence();
	return *(volatile __u32 *)&entry->sequence == sequence;
}

/*
 * Remember the verdict in `work`. The entry's sequence then, or 0: another CPU writes the entry, the next
 * request tries again.
 */
__noinline int afpa_remember_block(struct work *work, struct afpa_checked *entry, __u32 listener)
{
	__u32 sequence, at, length;

	if (!work || !entry)
		return 0;
	sequence = entry->sequence;
	at = work->request.block_at;
	length = work->request.block_length;
	opaque(at);
	if (at > BLOCK_AT_MAX || sequence & 1 ||
	    __sync_val_compare_and_swap(&entry->sequence, sequence, sequence + 1) != sequence)
		return 0;
	entry->length = length;
	entry->listener = listener;
	entry->generation = work->scan.generation;
	entry->block = work->request.block;
	for (__u32 i = 0; i < AFPA_CHECKED_MAX; i += 8) {
		if (i >= length + 24)
			break;
		*(__u64 *)(entry->bytes + i) = load8(work->head + at + i);
	}
	__sync_fetch_and_add(&entry->sequence, 1);
	return sequence + 2;
}

/* The verdict on the header block, from memory or by reading it. */
static __always_inline enum afpa_reason check_block(struct work *work, const struct afpa_listener *listener)
{
	__u32 length = work->request.block_length, index;
	struct afpa_checked *entry;

	if (length < 4 || length > AFPA_CHECKED_MAX - 32)
		return AFPA_PASS_HEAD_LENGTH;
	index = afpa_block_index(work, work->request.block_at, length, listener->id);
	entry = bpf_map_lookup_elem(&checked, &index);
	if (!entry)
		return AFPA_PASS_HEADER;
	work->request.entry = index;
	work->request.entry_sequence = *(volatile __u32 *)&entry->sequence;
	if (recall_block(work, entry, listener->id)) {
		count(AFPA_BLOCK_COMPARED);
	} else {
		count(AFPA_BLOCK_SCANNED);
		scan_block(work, listener, false);
		work->request.block = work->scan.block;
		work->request.entry_sequence = afpa_remember_block(work, entry, listener->id);
	}
	return work->request.block.flags & AFPA_BLOCK_ONE_REQUEST ? AFPA_ANSWERED : AFPA_PASS_HEADER;
}

#endif
