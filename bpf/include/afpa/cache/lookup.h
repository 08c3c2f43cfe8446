/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Derive cached response: from site and path to the stored bytes.
 *
 * A path is found by its hash and then compared, so a collision costs a miss and never a wrong
 * answer. The current object of a path is one map entry, replaced or deleted whole; the bytes lie in slots
 * that are not rewritten while an answer may still have to be repeated.
 */
#ifndef AFPA_CACHE_H
#define AFPA_CACHE_H

#include <afpa/clock.h>
#include <afpa/scratch.h>

/*
 * The answer that was found.
 *  P4 All bytes read of a slot are of `version`: that is read before anything else of it, and again behind the last byte that
 *     was copied (`holds_version`). Site and path are compared in between. An element of a map that is deleted may be
 *     another's at once, so its content is compared, or the element is looked up twice.
 */
struct cached {
	__u64 version;
	struct afpa_slot *slot;
	__u32 index;
	enum afpa_kind kind;
	__u32 age;       /* of a server's answer */
	bool has_age;    /* it is one */
};

/* The stored coding that user mode chooses by weights, unknown codings and wildcards (Q6). 0: unsure. */
static __always_inline __u32 choose_by_weight(const struct afpa_object *object, const struct afpa_block *block,
					      const __u32 *slot)
{
	__u32 stored = (!!slot[1]) | (!!slot[2]) << 1 | (!!slot[3]) << 2;

	if (!(block->flags & AFPA_BLOCK_CODING_WEIGHED) || !(object->fields & AFPA_WEIGHTS_AS_OURS))
		return 0;
	return slot[block->choices >> (2 * stored) & 3];
}

/* Has the object answers to HTTP/1.0? Those for connections that are kept come when one has been asked for (Q8). */
static __always_inline bool may_be_old(const struct afpa_object *object, const struct afpa_block *block)
{
	if (block->flags & AFPA_BLOCK_CLOSE)
		return object->fields & AFPA_OLD_ALIKE;
	if (!object->old_kept[0] && !*(volatile __u32 *)&shared.old_kept)
		*(volatile __u32 *)&shared.old_kept = 1;
	return true;
}

/* Best stored coding the client names, in the server's order: br, zstd, gzip, identity. 0: unsure. */
static __always_inline __u32 choose_variant(const struct afpa_object *object, const struct request *request)
{
	const struct afpa_block *block = &request->block;
	const __u32 *slot = object->slot;

	if (block->flags & AFPA_BLOCK_CLOSE)
		slot = object->closing;
	else if (request->old)
		slot = object->old_kept;
	if (!(slot[1] | slot[2] | slot[3]))
		return slot[0];
	if (block->flags & AFPA_BLOCK_CODING_UNSURE)
		return choose_by_weight(object, block, slot);
	if (block->codings & 4 && slot[2])
		return slot[2];
	if (block->codings & 8 && slot[3])
		return slot[3];
	if (block->codings & 2 && slot[1])
		return slot[1];
	return slot[0];
}

/* The version in the slot; 0: vacant. Bytes read from the slot afterwards are of this version, or of a later one. */
static __always_inline __u64 slot_version(const struct afpa_slot *slot)
{
	__u64 version = *(const volatile __u64 *)&slot->version;

	load_fence();
	return version;
}

/* Was all that was read of the slot up to here of this version? */
static __always_inline bool holds_version(const struct afpa_slot *slot, __u64 version)
{
	load_fence();
	return *(const volatile __u64 *)&slot->version == version;
}

__noinline int afpa_same_path(struct work *work, struct afpa_slot *slot)
{
	__u32 target;

	if (!work || !slot)
		return false;
	target = work->request.head ? 5 : 4;
	return slot->path_length == work->request.path_length &&
	       equal_text(work->head + target, slot->path_length, slot->path, AFPA_PATH_MAX);
}

#define CONDITION_UNSURE (-1)
#define CONDITION_TAG_ALONE 2

static __always_inline bool same_date(const struct work *work, const struct afpa_slot *slot)
{
	__u32 at = work->request.block_at + work->request.block.modified_since_at;

	opaque(at);
	return at <= AFPA_HEAD_MAX - 32 && equal_text(work->head + at, AFPA_DATE_LENGTH, slot->last_modified, 32);
}

/*
 * RFC 9110 13.2.2 for one entity tag or one date that is literally equal: 1, a 304 is right; 0, the
 * whole answer is; CONDITION_TAG_ALONE: a 304 is, if a tag that matches overrules a date that does not;
 * CONDITION_UNSURE otherwise.
 */
__noinline int afpa_evaluate_conditions(struct work *work, struct afpa_slot *slot)
{
	const struct afpa_block *block;
	__u32 at, length;

	if (!work || !slot)
		return CONDITION_UNSURE;
	block = &work->request.block;
	at = work->request.block_at;
	if (block->flags & AFPA_BLOCK_MATCH_UNSURE)
		return CONDITION_UNSURE;
	if (block->none_match_at) {
		at += block->none_match_at;
		length = block->none_match_length;
		opaque(at);
		if (at > AFPA_HEAD_MAX - AFPA_ETAG_MAX)
			return CONDITION_UNSURE;
		if (length != slot->etag_length || !equal_text(work->head + at, length, slot->etag, AFPA_ETAG_MAX))
			return false;
		return !block->modified_since_at || same_date(work, slot) ? true : CONDITION_TAG_ALONE;
	}
	return same_date(work, slot) ? true : CONDITION_UNSURE;
}

/* Has the entity tag of If-None-Match a `W/`? Where one was passed over, its slash stands before the tag, else white space or the colon. */
static __always_inline bool asks_weakly(const struct work *work)
{
	__u32 at = work->request.block_at + work->request.block.none_match_at - 1;

	opaque(at);
	return at <= AFPA_HEAD_MAX - 32 && work->head[at] == '/';
}

static __always_inline const struct afpa_answer *answer_of(const struct afpa_slot *slot, enum afpa_kind kind)
{
	return kind == AFPA_KIND_NOT_MODIFIED ? &slot->not_modified : &slot->whole;
}

static __always_inline __u32 answer_length(const struct afpa_slot *slot, enum afpa_kind kind)
{
	return kind == AFPA_KIND_HEAD ? slot->whole.head_length : answer_of(slot, kind)->length;
}

/*
 * The object of the request: a file of the site; or else a server's answer for this Host value, which may be of these very
 * codings only. `key` becomes the one that it was found by.
 */
static __always_inline struct afpa_object *find_object(const struct request *request, struct afpa_object_key *key)
{
	struct afpa_object *object = bpf_map_lookup_elem(&objects, key);

	if (object || !request->block.host)
		return object;
	key->site = request->block.host;
	object = bpf_map_lookup_elem(&objects, key);
	if (object || request->block.flags & AFPA_BLOCK_CODING_UNSURE)
		return object;
	key->codings = request->block.codings;
	return bpf_map_lookup_elem(&objects, key);
}

/* Where unsafe requests for a target are noted: its last bytes reach only the first bits of the hash. */
static __always_inline __u32 unsafe_place(__u64 path_hash)
{
	return path_hash >> (64 - AFPA_UNSAFE_BITS);
}

/* Did an unsafe request for this target, or its response, pass since the server was asked (V5)? */
static __always_inline bool is_outdated(const struct afpa_slot *slot, __u64 path_hash)
{
	__u32 place = unsafe_place(path_hash), any = AFPA_UNSAFE_ANY;
	__u64 *mark, *mark_of_any;

	if (!slot->asked)
		return false;
	mark = bpf_map_lookup_elem(&unsafe_marks, &place);
	mark_of_any = bpf_map_lookup_elem(&unsafe_marks, &any);
	return !mark || !mark_of_any || *(volatile __u64 *)mark >= slot->asked || *(volatile __u64 *)mark_of_any >= slot->asked;
}

/*
 * A server's answer is given while it is fresh (V1). The clock is the one that user mode counts ages by, to the
 * nanosecond: neither is a second ahead of the other, and setting the clock on the wall changes nothing. It goes on while
 * the host is suspended.
 */
static __always_inline bool is_fresh(struct cached *cached)
{
	const struct afpa_slot *slot = cached->slot;
	__u64 age;

	cached->has_age = slot->age_digits;
	if (!cached->has_age)
		return true;
	age = (bpf_ktime_get_boot_ns() - slot->born) / SECOND_NS;
	cached->age = age;
	return age < slot->fresh_for;
}

/* AFPA_ANSWERED: `cached` is the answer to send. */
static __always_inline enum afpa_reason derive_cached_response(struct work *work, struct cached *cached)
{
	const struct request *request = &work->request;
	struct afpa_object_key key = {
		.path_hash = request->path_hash,
		.site = request->block.site,
		.path_length = request->path_length,
	};
	struct afpa_object *object = find_object(request, &key);
	__u32 rules;

	if (!object)
		return AFPA_PASS_NOT_PINNED;
	rules = object->fields;
	if (request->block.fields & ~rules)
		return AFPA_PASS_FIELD;
	if (request->old && !may_be_old(object, &request->block))
		return AFPA_PASS_VARIANT;
	cached->index = choose_variant(object, request);
	if (cached->index == 0)
		return AFPA_PASS_VARIANT;
	cached->slot = slot_at(&cached->index);
	if (!cached->slot)
		return AFPA_PASS_NOT_PINNED;
	cached->version = slot_version(cached->slot);
	if (cached->version == 0 || cached->slot->site != key.site || cached->slot->codings != key.codings ||
	    !afpa_same_path(work, cached->slot))
		return AFPA_PASS_NOT_PINNED;
	if (!is_fresh(cached))
		return AFPA_PASS_EXPIRED;
	if (is_outdated(cached->slot, request->path_hash))
		return AFPA_PASS_OUTDATED;
	cached->kind = request->head ? AFPA_KIND_HEAD : AFPA_KIND_WHOLE;
	if (request->block.none_match_at | request->block.modified_since_at) {
		int unmodified = afpa_evaluate_conditions(work, cached->slot);

		if (unmodified == CONDITION_UNSURE ||
		    (unmodified == CONDITION_TAG_ALONE && !(rules & AFPA_TAG_WINS)) ||
		    (!unmodified && !(rules & AFPA_OTHER_TAG_WHOLE)) ||
		    (!(rules & AFPA_TAG_WEAKLY) && request->block.none_match_at && asks_weakly(work)))
			return AFPA_PASS_CONDITION;
		if (unmodified)
			cached->kind = AFPA_KIND_NOT_MODIFIED;
	}
	if (answer_length(cached->slot, cached->kind) == 0)
		return AFPA_PASS_VARIANT;
	if (cached->slot->asked && !cached->slot->used)
		cached->slot->used = true;
	return AFPA_ANSWERED;
}

#endif
