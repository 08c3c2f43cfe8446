/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The programs' verdict on one head, packed into a word that both test harnesses can return. */
#ifndef AFPA_AGREE_VERDICT_H
#define AFPA_AGREE_VERDICT_H

#define VERDICT_CHANGED (1U << 10) /* the second reading, from memory, differed */

/*
 * `length` bytes of head lie in `work->head`, zeros behind them. Bits: 0 certainty, 2 reason, 8 kind,
 * 12 site, 16 slot; the last three only when the reason is AFPA_ANSWERED.
 */
static __always_inline __u32 judge(struct work *work, __u32 length)
{
	struct afpa_listener listener = { .id = 1, .any_host_site = 1 };
	struct cached cached = {};
	enum certainty certainty;
	enum afpa_reason reason;

	work->scan.generation = shared.generation;
	certainty = derive_request(work, length, &listener, &reason);

	if (certainty == REQUEST_ANSWERABLE)
		reason = derive_cached_response(work, &cached);
	if (certainty != REQUEST_ANSWERABLE || reason != AFPA_ANSWERED)
		return certainty | reason << 2;
	return certainty | reason << 2 | cached.kind << 8 | (work->request.block.site & 15) << 12 | cached.index << 16;
}

#endif
