/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A set of segment numbers, 0 to 127, in two 64-bit words.
 *
 * The BPF instruction set shifts and masks words of 64 bits, but cannot count their bits or find the first one;
 * `word_count`, `word_first` and `word_last` do that with arithmetic.
 */
#ifndef AFPA_TCP_BITSET_H
#define AFPA_TCP_BITSET_H

#define SENDER_SEGMENTS 128
#define SENDER_NO_SEGMENT 255

struct bitset {
	__u64 word[2];
};

/*
 * The lowest `to` bits of one word; none when `to` is negative, all from 64 on. Without branches: the verifier follows
 * both ways of each, and every set is made of four of these. Not inlined: they would fill the stack frames of callers.
 */
static __noinline __u64 word_below(__s64 to)
{
	__s64 negative = to >> 63, beyond = (63 - to) >> 63;

	return (((1ULL << (to & 63)) - 1) | beyond) & ~negative;
}

/* The segments from `from` up to, but without, `to`. */
static __always_inline struct bitset bitset_range(__u32 from, __u32 to)
{
	struct bitset set = { {
		word_below((__s32)to) & ~word_below((__s32)from),
		word_below((__s64)(__s32)to - 64) & ~word_below((__s64)(__s32)from - 64),
	} };

	return set;
}

/* One segment; none from 128 on. */
static __always_inline struct bitset bitset_of(__u32 segment)
{
	__u64 bit = 1ULL << (segment & 63);
	__s64 first = ((__s64)segment - 64) >> 63, second = (((__s64)segment - 128) >> 63) & ~first;
	struct bitset set = { { bit & first, bit & second } };

	return set;
}

static __always_inline bool bitset_has(struct bitset set, __u32 segment)
{
	return segment < SENDER_SEGMENTS && ((segment < 64 ? set.word[0] : set.word[1]) >> (segment & 63) & 1);
}

static __always_inline struct bitset bitset_and(struct bitset a, struct bitset b)
{
	struct bitset set = { { a.word[0] & b.word[0], a.word[1] & b.word[1] } };

	return set;
}

static __always_inline struct bitset bitset_or(struct bitset a, struct bitset b)
{
	struct bitset set = { { a.word[0] | b.word[0], a.word[1] | b.word[1] } };

	return set;
}

/* The members of `a` that are not in `b`. */
static __always_inline struct bitset bitset_without(struct bitset a, struct bitset b)
{
	struct bitset set = { { a.word[0] & ~b.word[0], a.word[1] & ~b.word[1] } };

	return set;
}

static __always_inline bool bitset_empty(struct bitset set)
{
	return !(set.word[0] | set.word[1]);
}

static __always_inline void bitset_set(struct bitset *set, __u32 segment)
{
	*set = bitset_or(*set, bitset_of(segment));
}

static __always_inline void bitset_clear(struct bitset *set, __u32 segment)
{
	*set = bitset_without(*set, bitset_of(segment));
}

/* The number of bits that are set. Not inlined: its constants would fill the stack frames of its callers. */
static __noinline __u32 word_count(__u64 word)
{
	word -= word >> 1 & 0x5555555555555555ULL;
	word = (word & 0x3333333333333333ULL) + (word >> 2 & 0x3333333333333333ULL);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return word * 0x0101010101010101ULL >> 56;
}

/* The lowest bit of a word that is not zero. */
static __always_inline __u32 word_first(__u64 word)
{
	return word_count((word & -word) - 1);
}

/* The highest bit of a word that is not zero. */
static __always_inline __u32 word_last(__u64 word)
{
	word |= word >> 1;
	word |= word >> 2;
	word |= word >> 4;
	word |= word >> 8;
	word |= word >> 16;
	word |= word >> 32;
	return word_count(word) - 1;
}

static __always_inline __u32 bitset_count(struct bitset set)
{
	return word_count(set.word[0]) + word_count(set.word[1]);
}

/* The lowest member; SENDER_NO_SEGMENT when the set is empty. */
static __always_inline __u32 bitset_first(struct bitset set)
{
	if (set.word[0])
		return word_first(set.word[0]);
	return set.word[1] ? 64 + word_first(set.word[1]) : SENDER_NO_SEGMENT;
}

/* The highest member; SENDER_NO_SEGMENT when the set is empty. */
static __always_inline __u32 bitset_last(struct bitset set)
{
	if (set.word[1])
		return 64 + word_last(set.word[1]);
	return set.word[0] ? word_last(set.word[0]) : SENDER_NO_SEGMENT;
}

#endif
