/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The target of an unsafe request (RFC 9110, 9.2.1), whatever else the request says: it is enough that some server may read it
 * so. What is done with it stands in notes.h.
 */
#ifndef AFPA_HTTP_UNSAFE_H
#define AFPA_HTTP_UNSAFE_H

#include <afpa/cache/lookup.h>
#include <afpa/http/request.h>

#define METHOD_MAX 32   /* bytes of a method and the space behind it */
#define STRAY_MAX 8     /* empty lines before a request, and spaces before a target, that are passed over (RFC 9112, 2.2 and 3) */
#define UNSAFE_READ 320 /* bytes that are read for a request line: longer targets are not pinned */

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

/* Behind the space that ends the method at `at`; 0: there is none. */
__noinline __u32 afpa_method_end(struct work *work, __u32 at)
{
	if (!work || at > UNSAFE_READ)
		return 0;
	for (__u32 i = 0; i < METHOD_MAX; i += 8) {
		__u64 space = bytes_equal(load8(work->head + at + i), ' ');

		if (space)
			return at + i + first_bit(space) / 8 + 1;
	}
	return 0;
}

/* Where the path of the target at `at` begins; 0: it has none that could be pinned. */
__noinline __u32 afpa_find_path(struct work *work, __u32 at)
{
	__u64 start;

	if (!work || at > UNSAFE_READ)
		return 0;
	start = load8(work->head + at) & 0xffffffffffffff;
	if ((start & 0xff) == '/')
		return at;
	if (start != N('h', 't', 't', 'p', ':', '/', '/', 0) && start != N('h', 't', 't', 'p', 's', ':', '/', 0))
		return 0;
	for (__u32 i = 8; i < 8 + AFPA_HOST_MAX; i++) {
		__u8 here = work->head[at + i], before = work->head[at + i - 1];

		if (here == '/' && before != '/' && before != ':')
			return at + i;
	}
	return 0;
}

/* One more than the place of the path at `at`, which a space ends; 0: it is too long to be pinned. */
__noinline __u32 afpa_place_of_path(struct work *work, __u32 at)
{
	__u64 hash = shared.hash_seed;

	if (!work || at > 2 * UNSAFE_READ)
		return 0;
	for (__u32 i = 0; i < AFPA_PATH_MAX + 8; i += 8) {
		__u64 word = load8(work->head + at + i), space = bytes_equal(word, ' ');
		__u32 bits = first_bit(space);

		if (!space) {
			hash = mix(hash, word);
			continue;
		}
		if (i + bits / 8 > AFPA_PATH_MAX)
			return 0;
		word &= (1ULL << (bits & 63)) - 1;
		return 1 + unsafe_place(word ? mix(hash, word) : hash);
	}
	return 0;
}

/*
 * The request that begins at `work->head`: one more than the place of its target, if it is unsafe; else 0. Any method that is
 * not known to be safe is unsafe. `work->begins_safe`: it is a request, and safe.
 */
__noinline __u32 afpa_unsafe_target(struct work *work)
{
	__u32 at;
	__u64 start;

	if (!work)
		return 0;
	at = afpa_pass_over(work, 0, '\r', '\n');
	opaque(at);
	if (at > STRAY_MAX)
		return 0;
	start = load8(work->head + at);
	work->begins_safe = is_safe(start);
	if (work->begins_safe || (start & 0xff) < 'A' || (start & 0xff) > 'Z')
		return 0;
	at = afpa_method_end(work, at);
	at = at ? afpa_find_path(work, afpa_pass_over(work, at, ' ', ' ')) : 0;
	return at ? afpa_place_of_path(work, at) : 0;
}

#endif
