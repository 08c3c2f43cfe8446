/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Cuts a head into field lines, eight bytes at a time.
 *
 * Contract: `work->head` holds the head with 64 zero bytes behind it; positions are offsets into it.
 * Stricter than RFC 9112 section 5 allows a server to be: field names of letters, digits and '-', up
 * to 39 bytes; values of visible ASCII and spaces; lines end in CRLF. Everything else is "unsure", and
 * user mode, which knows more, decides. Word tricks: Bit Twiddling Hacks, "zero in word".
 *
 * Functions with loops are global (afpa_...): the verifier looks at each once, and forgets by which
 * turn of a loop it was left; inlined, the turns of all loops would multiply.
 */
#ifndef AFPA_HTTP_LINE_H
#define AFPA_HTTP_LINE_H

#include <afpa/scratch.h>

#define EVERY_BYTE(b) (0x0101010101010101ULL * (b))
#define TOP_BITS EVERY_BYTE(0x80ULL)
#define LINE_MAX 2048
#define LAST_WORD (AFPA_HEAD_MAX + 56) /* last offset at which eight bytes may be read */

/* Top bit of each byte that equals `b`; exact up to and including the first. */
static __always_inline __u64 bytes_equal(__u64 word, __u8 b)
{
	__u64 x = word ^ EVERY_BYTE(b);

	return (x - EVERY_BYTE(1)) & ~x & TOP_BITS;
}

/* Top bit of each byte that is at least `b`; every byte must be below 0x80. */
static __always_inline __u64 bytes_from(__u64 word, __u8 b)
{
	return ((word | TOP_BITS) - EVERY_BYTE(b)) & TOP_BITS;
}

/* Top bit of each byte below 0x20; exact up to the first. */
static __always_inline __u64 bytes_control(__u64 word)
{
	return (word - EVERY_BYTE(0x20)) & ~word & TOP_BITS;
}

/* Top bit of each byte that is a control character, DEL, or (strict) not ASCII; exact up to the first. */
static __always_inline __u64 bytes_not_text(__u64 word, bool strict)
{
	return bytes_control(word) | bytes_equal(word, 0x7f) | (strict ? word & TOP_BITS : 0);
}

/* Top bit of each byte that is within the range; every byte must be below 0x80. Exact for all of them. */
static __always_inline __u64 bytes_within(__u64 word, __u8 first, __u8 last)
{
	return bytes_from(word, first) & ~bytes_from(word, last + 1);
}

/* An ASCII word in lower case; or-ing 0x20 would fold `[` and `{`, `^` and `~`, too. */
static __always_inline __u64 lower_case(__u64 word)
{
	return word | bytes_within(word, 'A', 'Z') >> 2;
}

/* Top bit of each byte of a lower-case ASCII word that is a letter, a digit or '-'. */
static __always_inline __u64 bytes_of_name(__u64 word)
{
	__u64 letter = bytes_within(word, 'a', 'z');
	__u64 digit = bytes_within(word, '0', '9');
	__u64 dash = bytes_within(word, '-', '-');

	return (letter | digit | dash) & ~word;
}

/*
 * Bit position of the first byte whose top bit is set in `marks`. BPF has no count of trailing zeros:
 * the lowest mark, as a power of 256, shifts the table's entry for it to the top.
 */
static __always_inline __u32 first_bit(__u64 marks)
{
	return ((marks & -marks) >> 7) * 0x0008101820283038ULL >> 56;
}

/* The field name at `at` up to its colon, in lower case, into the scan's line. 0: not one we know how to read. */
__noinline int afpa_take_name(struct work *work, __u32 at)
{
	struct line *line;

	if (!work || at > AFPA_HEAD_MAX)
		return false;
	line = &work->scan.line;
	for (int i = 0; i < 5; i++)
		line->name[i] = 0;
	for (int i = 0; i < 5; i++) {
		__u64 word = load8(work->head + at + i * 8);
		__u64 colon = bytes_equal(word, ':');
		__u64 lower = word | EVERY_BYTE(0x20);
		/* Or-ing 0x20 lifts control characters among the digits: they are strangers all the same. */
		__u64 strange = (~bytes_of_name(lower) | bytes_not_text(word, true)) & TOP_BITS;
		__u32 bits = colon ? first_bit(colon) : 64;
		__u64 name = bits == 64 ? ~0ULL : (1ULL << bits) - 1;

		if (strange & name)
			return false;
		line->name[i] = lower & name;
		if (colon) {
			line->name_length = i * 8 + bits / 8;
			return line->name_length != 0;
		}
	}
	return false;
}

/* First control byte (or non-ASCII one, when strict) at or after `at`: the end of a line, one hopes. */
__noinline __u32 afpa_find_end(struct work *work, __u32 at, __u32 strict)
{
	__u64 foreign = -(__u64)(strict & 1) & TOP_BITS; /* without a branch, which the verifier would follow through each turn */

	if (!work)
		return AFPA_HEAD_MAX;
	opaque(foreign);
	for (__u32 i = 0; i < LINE_MAX; i += 8) {
		__u64 word, marks;

		opaque(at);
		if (at > LAST_WORD)
			break;
		word = load8(work->head + at);
		marks = bytes_not_text(word, false) | (word & foreign);
		if (marks)
			return at + first_bit(marks) / 8;
		at += 8;
	}
	return AFPA_HEAD_MAX;
}

static __always_inline bool crlf_at(const struct work *work, __u32 at)
{
	return at <= LAST_WORD && work->head[at] == '\r' && work->head[at + 1] == '\n';
}

/* The field line at `at` into the scan's line. False: unsure. */
static __always_inline bool take_line(struct work *work, __u32 at, bool strict)
{
	struct line *line = &work->scan.line;
	__u32 value, end;

	if (!afpa_take_name(work, at))
		return false;
	value = at + line->name_length + 1;
	opaque(value);
	if (value > LAST_WORD)
		return false;
	if (work->head[value] == ' ')
		value++;
	end = afpa_find_end(work, value, strict);
	if (end < value || !crlf_at(work, end))
		return false;
	line->value_at = value;
	line->value_length = end - value;
	line->next = end + 2;
	return true;
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

/* Names as take_name leaves them, for comparisons of whole words. */
#define N(a, b, c, d, e, f, g, h)                                                             \
	((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 | (__u64)(e) << 32 |  \
	 (__u64)(f) << 40 | (__u64)(g) << 48 | (__u64)(h) << 56)

static __always_inline bool named(const struct line *line, __u64 w0, __u64 w1, __u64 w2)
{
	return line->name[0] == w0 && line->name[1] == w1 && line->name[2] == w2 && line->name_length <= 24;
}

#define NAME_HOST N('h', 'o', 's', 't', 0, 0, 0, 0), 0, 0
#define NAME_RANGE N('r', 'a', 'n', 'g', 'e', 0, 0, 0), 0, 0
#define NAME_EXPECT N('e', 'x', 'p', 'e', 'c', 't', 0, 0), 0, 0
#define NAME_UPGRADE N('u', 'p', 'g', 'r', 'a', 'd', 'e', 0), 0, 0
#define NAME_CONNECTION N('c', 'o', 'n', 'n', 'e', 'c', 't', 'i'), N('o', 'n', 0, 0, 0, 0, 0, 0), 0
#define NAME_AUTHORIZATION N('a', 'u', 't', 'h', 'o', 'r', 'i', 'z'), N('a', 't', 'i', 'o', 'n', 0, 0, 0), 0
#define NAME_CONTENT_LENGTH N('c', 'o', 'n', 't', 'e', 'n', 't', '-'), N('l', 'e', 'n', 'g', 't', 'h', 0, 0), 0
#define NAME_ACCEPT_ENCODING N('a', 'c', 'c', 'e', 'p', 't', '-', 'e'), N('n', 'c', 'o', 'd', 'i', 'n', 'g', 0), 0
#define NAME_IF_MATCH N('i', 'f', '-', 'm', 'a', 't', 'c', 'h'), 0, 0
#define NAME_IF_RANGE N('i', 'f', '-', 'r', 'a', 'n', 'g', 'e'), 0, 0
#define NAME_IF_NONE_MATCH N('i', 'f', '-', 'n', 'o', 'n', 'e', '-'), N('m', 'a', 't', 'c', 'h', 0, 0, 0), 0
#define NAME_IF_MODIFIED_SINCE                                                                \
	N('i', 'f', '-', 'm', 'o', 'd', 'i', 'f'), N('i', 'e', 'd', '-', 's', 'i', 'n', 'c'), N('e', 0, 0, 0, 0, 0, 0, 0)
#define NAME_IF_UNMODIFIED_SINCE                                                              \
	N('i', 'f', '-', 'u', 'n', 'm', 'o', 'd'), N('i', 'f', 'i', 'e', 'd', '-', 's', 'i'), N('n', 'c', 'e', 0, 0, 0, 0, 0)
#define NAME_TRANSFER_ENCODING                                                                \
	N('t', 'r', 'a', 'n', 's', 'f', 'e', 'r'), N('-', 'e', 'n', 'c', 'o', 'd', 'i', 'n'), N('g', 0, 0, 0, 0, 0, 0, 0)

#endif
