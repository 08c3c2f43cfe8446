/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Lists in field values (RFC 9110, 5.6.1), byte by byte: the weights of Accept-Encoding and the options of Connection.
 *
 * Contract: the usual values are read by http/headers.h, which calls these functions for all others, once for each header
 * block, when all of its lines were read. They give what afpa-http gives: a member that is malformed or not known is passed over among codings, and makes
 * options unsure; empty members are passed over in both. RFC 9110, 12.4.2, 12.5.3 and 7.6.1.
 */
#ifndef AFPA_HTTP_LISTS_H
#define AFPA_HTTP_LISTS_H

#include <afpa/http/line.h>

#define LIST_MAX 255   /* bytes of a value: longer ones are unsure */
#define WEIGHT_LENGTH 7 /* "q=0.000" */
#define NO_WEIGHT (~0U)

/* Up to eight bytes as they are taken into a word: the last in the lowest bits. */
#define TAKEN(a, b, c, d, e, f, g, h) N(h, g, f, e, d, c, b, a)

/* "q=" and a weight of at most three decimals, in thousandths; NO_WEIGHT: it is none. */
static __always_inline __u32 weight_of(__u64 parameter, __u32 length)
{
	__u64 bytes = parameter << (8 * (8 - length) & 63);
	__u32 whole = (bytes >> 40 & 0xff) - '0', thousandths = whole;

	if (length < 3 || length > WEIGHT_LENGTH || bytes >> 48 != ('q' << 8 | '=') || whole > 1 ||
	    (length > 3 && (bytes >> 32 & 0xff) != '.'))
		return NO_WEIGHT;
	for (__u32 i = 0; i < 3; i++) {
		__u32 digit = i + 4 < length ? (bytes >> (24 - 8 * i) & 0xff) - '0' : 0;

		if (digit > 9)
			return NO_WEIGHT;
		thousandths = thousandths * 10 + digit;
	}
	return thousandths <= 1000 ? thousandths : NO_WEIGHT;
}

/* The coding that was read. One that is malformed, or not known, changes nothing; of one that is named twice the last counts. */
static __always_inline void take_coding(struct list *l)
{
	__u32 weight = l->has_parameter ? weight_of(l->parameter, l->parameter_length) : 1000;

	if (l->odd || l->before || weight == NO_WEIGHT)
		return;
	switch (l->name) {
	case '*':
		l->others = weight + 1;
		break;
	case TAKEN(0, 0, 0, 0, 'g', 'z', 'i', 'p'):
	case TAKEN(0, 0, 'x', '-', 'g', 'z', 'i', 'p'): /* an old name */
		l->weights[1] = weight + 1;
		break;
	case TAKEN(0, 0, 0, 0, 0, 0, 'b', 'r'):
		l->weights[2] = weight + 1;
		break;
	case TAKEN(0, 0, 0, 0, 'z', 's', 't', 'd'):
		l->weights[3] = weight + 1;
		break;
	case TAKEN('i', 'd', 'e', 'n', 't', 'i', 't', 'y'):
		l->weights[0] = weight + 1;
		break;
	}
}

/* The connection option that was read. False: it may change the connection in ways that are not known here. */
static __always_inline bool take_option(struct scan *scan)
{
	struct list *l = &scan->list;

	if (l->odd)
		return false;
	if (!l->name_length)
		return true;
	if (!l->before && l->name == TAKEN(0, 0, 0, 'c', 'l', 'o', 's', 'e')) {
		scan->block.flags |= AFPA_BLOCK_CLOSE;
		return true;
	}
	if (l->before == TAKEN(0, 0, 0, 0, 0, 0, 'k', 'e') && l->name == TAKEN('e', 'p', '-', 'a', 'l', 'i', 'v', 'e')) {
		scan->block.flags |= AFPA_BLOCK_KEEP;
		return true;
	}
	if ((!l->before && (l->name == TAKEN(0, 0, 0, 0, 0, 0, 't', 'e') || l->name == TAKEN(0, 'u', 'p', 'g', 'r', 'a', 'd', 'e'))))
		return true; /* TE and Upgrade, if they are there, have their own effect */
	scan->block.fields |= AFPA_FIELD_HOP;
	return l->before == TAKEN(0, 0, 'h', 't', 't', 'p', '2', '-') && l->name == TAKEN('s', 'e', 't', 't', 'i', 'n', 'g', 's');
}

static __always_inline void begin_member(struct list *l)
{
	l->name = l->before = l->parameter = 0;
	l->name_length = l->parameter_length = 0;
	l->has_parameter = l->blank = l->odd = false;
}

/* The next byte of a name or parameter. */
static __always_inline void take_byte(struct list *l, __u32 byte)
{
	if (l->blank)
		l->odd = true; /* a blank within it */
	if (byte >= 'A' && byte <= 'Z')
		byte |= 0x20;
	if (l->has_parameter) {
		l->odd |= ++l->parameter_length > WEIGHT_LENGTH;
		l->parameter = l->parameter << 8 | byte;
		return;
	}
	l->odd |= ++l->name_length > 16;
	l->before = l->before << 8 | l->name >> 56;
	l->name = l->name << 8 | byte;
}

/* One byte of the list, or its end. Stops (1) there, and at an option that is not known. */
static long read_list_byte(__u32 index, void *context)
{
	struct work *work = *(struct work **)context; /* bpf_loop hands on stack pointers only */
	struct list *l = &work->scan.list;
	__u32 at = l->at + index, byte;
	bool ends = index >= l->length;

	opaque(at);
	if (at > AFPA_HEAD_MAX)
		return 1;
	byte = ends ? ',' : work->head[at];
	if (byte == ',') {
		if (l->options && !take_option(&work->scan))
			return 1;
		if (!l->options)
			take_coding(l);
		begin_member(l);
		l->sure = ends;
		return ends;
	}
	if (byte == ';' && !l->has_parameter) {
		l->has_parameter = true;
		l->odd |= l->options; /* none has a parameter */
		l->blank = false;
	} else if (byte == ' ') {
		l->blank = l->has_parameter ? l->parameter_length : l->name_length;
	} else {
		take_byte(l, byte);
	}
	return 0;
}

/* Reads a value. */
static __always_inline bool read_list(struct work *work, __u32 at, __u32 length, bool options)
{
	struct list *l = &work->scan.list;

	__builtin_memset(l, 0, sizeof(*l));
	l->at = at;
	l->length = length;
	l->options = options;
	if (l->length > LIST_MAX)
		return false;
	bpf_loop(LIST_MAX + 1, read_list_byte, &work, 0);
	return *(volatile __u8 *)&l->sure;
}

/* Connection with other options than one. False: it is not known what becomes of the connection. */
__noinline int afpa_read_options(struct work *work)
{
	if (!work)
		return false;
	return read_list(work, work->scan.options_at, work->scan.options_length, true);
}

static __always_inline __u32 weight_in(const struct list *l, __u32 coding)
{
	__u32 weight = l->weights[coding & 3] ? l->weights[coding & 3] : l->others;

	return weight ? weight - 1 : 0;
}

/* The best of these stored codings, as user mode chooses: the highest weight, and of equal ones br, zstd, gzip, identity. */
static long choose_of_stored(__u32 stored, void *context)
{
	struct work *work = *(struct work **)context;
	const struct list *l = &work->scan.list;
	__u32 best = weight_in(l, 0), gzip = weight_in(l, 1), br = weight_in(l, 2), zstd = weight_in(l, 3), choice = 0;

	if (stored > 7)
		return 1;
	if (stored & 1 && gzip && gzip >= best) {
		best = gzip;
		choice = 1;
	}
	if (stored & 4 && zstd && zstd >= best) {
		best = zstd;
		choice = 3;
	}
	if (stored & 2 && br && br >= best)
		choice = 2;
	work->scan.block.choices |= choice << 2 * stored;
	return 0;
}

/* Accept-Encoding with weights, wildcards, or codings that are not known: the choice from each set of stored codings. */
__noinline int afpa_weigh_codings(struct work *work)
{
	if (!work || !read_list(work, work->scan.weights_at, work->scan.weights_length, false))
		return 0;
	work->scan.block.choices = 0;
	bpf_loop(8, choose_of_stored, &work, 0);
	work->scan.block.flags |= AFPA_BLOCK_CODING_WEIGHED;
	return 0;
}

#endif
