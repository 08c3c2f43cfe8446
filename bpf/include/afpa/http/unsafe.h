/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The target of an unsafe request (RFC 9110, 9.2.1), by its line alone: it is enough that some server may read it
 * so. Its use is in notes.h.
 *
 * A target is hashed as it lies. One whose path is not in its simplest spelling (RFC 3986, 6.2.2: a dot segment, an empty
 * segment, an escape that is not needed or has small letters), or has a fragment, may be any target to the server.
 */
#ifndef AFPA_HTTP_UNSAFE_H
#define AFPA_HTTP_UNSAFE_H

#include <afpa/cache/lookup.h>
#include <afpa/http/request.h>

#define METHOD_MAX 32   /* bytes of a method and the blank behind it */
#define STRAY_MAX 64    /* empty lines before a request, and blanks before a target, that are passed over (RFC 9112, 2.2 and 3) */
#define UNSAFE_READ 320 /* bytes that are read for a request line: longer targets are not pinned */

/* Instead of a place, and of an offset. */
#define TARGET_NONE 0
#define TARGET_ANY (1 + AFPA_UNSAFE_ANY)
#define TARGET_CUT (~0U)   /* the bytes end before that is known */

/* Is it a method that changes nothing? */
static __always_inline bool is_safe(__u64 start)
{
	return (start & 0xffffffff) == SPACE_GET || (start & 0xffffffffff) == SPACE_HEAD ||
	       start == N('O', 'P', 'T', 'I', 'O', 'N', 'S', ' ') ||
	       (start & 0xffffffffffff) == N('T', 'R', 'A', 'C', 'E', ' ', 0, 0);
}

/* The first byte from `at` on that is neither of these two. */
__noinline __u32 afpa_pass_over(struct work *work, __u32 at, __u32 first, __u32 second)
{
	if (!work)
		return at;
	for (int i = 0; i < STRAY_MAX; i++) {
		opaque(at);
		if (at > UNSAFE_READ || (work->head[at] != first && work->head[at] != second))
			break;
		at++;
	}
	return at;
}

/* Behind the blank that ends the method at `at`, or any byte that a lenient server takes for one; or TARGET_NONE, or TARGET_CUT. */
__noinline __u32 afpa_method_end(struct work *work, __u32 at)
{
	if (!work || at > STRAY_MAX)
		return TARGET_NONE;
	for (__u32 i = 0; i < METHOD_MAX; i++) {
		__u8 here = work->head[at + i];

		if (here > ' ' && here < 0x7f)
			continue;
		if (here == 0)
			return i ? TARGET_CUT : TARGET_NONE;
		return i && here <= ' ' && here != '\r' && here != '\n' ? at + i + 1 : TARGET_NONE;
	}
	return TARGET_NONE;
}

/* Begins a walk by `bpf_loop`: a plain loop has too many states. It hands on stack pointers only. */
static __always_inline __u32 walk_target(struct work *work, __u32 at, __u32 found, long (*turn)(__u32, void *))
{
	work->walk = (struct target_walk){ .at = at, .found = found };
	bpf_loop(UNSAFE_READ, turn, &work, 0);
	return work->walk.found;
}

static long find_path_here(__u32 i, void *context)
{
	struct work *work = *(struct work **)context;
	struct target_walk *w = &work->walk;
	__u32 at = w->at + i;
	__u8 here;

	if (at > 2 * UNSAFE_READ)
		return 1;
	here = work->head[at];
	if (here == 0)
		w->found = TARGET_CUT;
	else if (here == '/' && (i == 0 || w->authority))
		w->found = at;
	else if (here <= ' ' || here == '?' || here == '#')
		w->found = w->authority ? TARGET_ANY : TARGET_NONE; /* no path is the path "/" */
	else {
		w->last = w->last << 8 | here;
		w->authority |= (w->last & 0xffffff) == (':' << 16 | '/' << 8 | '/');
		return 0;
	}
	return 1;
}

/* Where the path of the target at `at` begins, in absolute form as well, with any scheme (RFC 9112, 3.2); or TARGET_... */
__noinline __u32 afpa_find_path(struct work *work, __u32 at)
{
	if (!work || at > UNSAFE_READ)
		return TARGET_NONE;
	return walk_target(work, at, TARGET_NONE, find_path_here);
}

/* The value of a hexadecimal digit in capitals; 16: it is none. */
static __always_inline __u32 hex_digit(__u32 byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	return byte >= 'A' && byte <= 'F' ? byte - 'A' + 10 : 16;
}

/* Is the escape of these two digits needed, and in capitals? Escapes of unreserved characters are not (RFC 3986, 2.3). */
static __always_inline bool is_simple_escape(__u32 high, __u32 low)
{
	__u32 byte = hex_digit(high) << 4 | hex_digit(low), letter = byte | 0x20;

	if (hex_digit(high) > 15 || hex_digit(low) > 15)
		return false;
	return !((letter >= 'a' && letter <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' ||
		 byte == '_' || byte == '~');
}

/* Does a segment end here that is empty, or one of dots? `last` has the bytes before, the nearest in its lowest bits. */
static __always_inline bool ends_odd_segment(__u32 last, bool path_ends)
{
	return ((last & 0xff) == '/' && !path_ends) || (last & 0xffff) == ('/' << 8 | '.') ||
	       (last & 0xffffff) == ('/' << 16 | '.' << 8 | '.');
}

static long is_odd_here(__u32 i, void *context)
{
	struct work *work = *(struct work **)context;
	struct target_walk *w = &work->walk;
	__u32 at = w->at + i, last = w->last, here;
	bool ends;

	if (at > 3 * UNSAFE_READ)
		return 1;
	here = work->head[at];
	ends = here <= ' ' || here == '?';
	if (here == 0) {
		w->found = TARGET_CUT;
		return 1;
	}
	if (((ends || here == '/') && ends_odd_segment(last, ends)) ||
	    ((last & 0xff) == '%' && (ends || hex_digit(here) > 15)) ||
	    ((last >> 8 & 0xff) == '%' && !is_simple_escape(last & 0xff, here)) || here == '#' || here >= 0x7f)
		return 1;
	if (ends) {
		w->found = TARGET_NONE;
		return 1;
	}
	w->last = last << 8 | here;
	return 0;
}

/* Is the path at `at` in its simplest spelling? TARGET_NONE: it is. Else TARGET_ANY, or TARGET_CUT. */
__noinline __u32 afpa_is_odd_path(struct work *work, __u32 at)
{
	if (!work || at > 2 * UNSAFE_READ)
		return TARGET_ANY;
	return walk_target(work, at, TARGET_ANY, is_odd_here);
}

/* One more than the place of the target whose path is at `at`; or TARGET_NONE, since it is too long to be pinned, or TARGET_CUT. */
__noinline __u32 afpa_place_of_path(struct work *work, __u32 at)
{
	__u64 hash = shared.hash_seed;

	if (!work || at > 2 * UNSAFE_READ)
		return TARGET_NONE;
	for (__u32 i = 0; i < AFPA_PATH_MAX + 8; i += 8) {
		__u64 word = load8(work->head + at + i), blank = bytes_not_text(word, true) | bytes_equal(word, ' ');
		__u32 bits = first_bit(blank);

		if (!blank) {
			hash = mix(hash, word);
			continue;
		}
		if (i + bits / 8 > AFPA_PATH_MAX)
			return TARGET_NONE;
		if (!(word >> (bits & 56) & 0xff))
			return TARGET_CUT;
		word &= (1ULL << (bits & 63)) - 1;
		return 1 + unsafe_place(word ? mix(hash, word) : hash);
	}
	return TARGET_NONE;
}

/*
 * The request that begins at `work->head`: one more than the place of its target, if it is unsafe; or TARGET_... Any method
 * that is not known to be safe is unsafe. `work->begins_safe`: it is a request, and safe.
 */
__noinline __u32 afpa_unsafe_target(struct work *work)
{
	__u32 at, odd;

	if (!work)
		return TARGET_NONE;
	at = afpa_pass_over(work, 0, '\r', '\n');
	opaque(at);
	if (at > STRAY_MAX)
		return TARGET_NONE;
	work->begins_safe = is_safe(load8(work->head + at));
	if (work->begins_safe)
		return TARGET_NONE;
	at = afpa_method_end(work, at);
	if (at == TARGET_NONE || at == TARGET_CUT)
		return at;
	at = afpa_find_path(work, afpa_pass_over(work, at, ' ', '\t'));
	if (at == TARGET_NONE || at == TARGET_CUT || at == TARGET_ANY)
		return at;
	odd = afpa_is_odd_path(work, at);
	return odd == TARGET_NONE ? afpa_place_of_path(work, at) : odd;
}

#endif
