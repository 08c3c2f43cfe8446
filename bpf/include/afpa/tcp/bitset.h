/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sets of segments, as two words.
 *
 * The model of everything in this folder is the crate afpa-send; names are the same there, and a test
 * holds the two against each other step by step.
 */
#ifndef AFPA_TCP_BITSET_H
#define AFPA_TCP_BITSET_H

#define SENDER_SEGMENTS 128
#define SENDER_NO_SEGMENT 255

struct bitset {
	__u64 word[2];
};

/* Those of one word that are below `to`; `to` counts from the word's own first one. */
static __always_inline __u64 word_below(__s32 to)
{
	if (to <= 0)
		return 0;
	return to >= 64 ? ~0ULL : (1ULL << (to & 63)) - 1;
}

/* From `from` on, and below `to`. */
static __always_inline struct bitset bitset_range(__u32 from, __u32 to)
{
	struct bitset set = { {
		word_below(to) & ~word_below(from),
		word_below((__s32)to - 64) & ~word_below((__s32)from - 64),
	} };

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
	*set = bitset_or(*set, bitset_range(segment, segment + 1));
}

static __always_inline void bitset_clear(struct bitset *set, __u32 segment)
{
	*set = bitset_without(*set, bitset_range(segment, segment + 1));
}

/*
 * The instruction set has none of these three. Counting is a function of its own, or its constants would
 * fill the callers' stacks.
 */
static __noinline __u32 word_count(__u64 word)
{
	word -= word >> 1 & 0x5555555555555555ULL;
	word = (word & 0x3333333333333333ULL) + (word >> 2 & 0x3333333333333333ULL);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return word * 0x0101010101010101ULL >> 56;
}

/* `word` is not zero. */
static __always_inline __u32 word_first(__u64 word)
{
	return word_count((word & -word) - 1);
}

/* `word` is not zero. */
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

/* ENGINE_NO_SEGMENT when there is none. */
static __always_inline __u32 bitset_first(struct bitset set)
{
	if (set.word[0])
		return word_first(set.word[0]);
	return set.word[1] ? 64 + word_first(set.word[1]) : SENDER_NO_SEGMENT;
}

/* ENGINE_NO_SEGMENT when there is none. */
static __always_inline __u32 bitset_last(struct bitset set)
{
	if (set.word[1])
		return 64 + word_last(set.word[1]);
	return set.word[0] ? word_last(set.word[0]) : SENDER_NO_SEGMENT;
}

#endif
