/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One step of the TCP sender, and its whole state as numbers. The worker (worker.c) and a program in the kernel
 * (crates/afpa-bpf/tests/sender) take the same steps; src/step.rs has the same layouts.
 */
#ifndef AFPA_TCP_SIM_STEPS_H
#define AFPA_TCP_SIM_STEPS_H

#include <afpa/tcp/ack.h>

enum what {
	STEP_BEGIN, STEP_ACK, STEP_TIMER, STEP_POLL, STEP_MTU_LOWERED, STEP_REQUEST_ECE,
	STEP_RTT_SAMPLE, STEP_RTO, STEP_PTO, STEP_GROW_CWND, STEP_REDUCE_CWND,
};

struct step {
	__u64 now;
	__u64 last_sent;               /* of the path, for STEP_BEGIN */
	__u32 sender, what;            /* the sender's number; a STEP_ kind */
	__u32 number;                  /* the argument of the steps from STEP_RTT_SAMPLE on */
	__u32 length, segment, window; /* STEP_BEGIN */
	__u32 path[13];                /* STEP_BEGIN, the order of `take_path` */
	__u32 unused;
	struct ack ack;                /* STEP_ACK */
};

#define STATE_NUMBERS 61

struct state {
	__u64 numbers[STATE_NUMBERS];
};

static __always_inline void take_path(struct path *path, const struct step *step)
{
	__builtin_memset(path, 0, sizeof(*path));
	path->last_sent = step->last_sent;
	path->srtt = step->path[0];
	path->rttvar = step->path[1];
	path->min_rtt = step->path[2];
	path->cwnd = step->path[3];
	path->ssthresh = step->path[4];
	path->cwnd_cnt = step->path[5];
	path->undo_cwnd = step->path[6];
	path->undo_ssthresh = step->path[7];
	path->undo_retrans = step->path[8];
	path->reordering_seen = step->path[9];
	path->cwr_pending = step->path[10];
	path->reo_wnd_mult = step->path[11];
	path->reo_wnd_persist = step->path[12];
	if (path->cwnd == 0) /* a connection that has sent nothing yet */
		path_init(path);
}

static __always_inline __u64 *tell_path(__u64 *to, const struct path *path)
{
	*to++ = path->last_sent;
	*to++ = path->srtt;
	*to++ = path->rttvar;
	*to++ = path->min_rtt;
	*to++ = path->cwnd;
	*to++ = path->ssthresh;
	*to++ = path->cwnd_cnt;
	*to++ = path->undo_cwnd;
	*to++ = path->undo_ssthresh;
	*to++ = path->undo_retrans;
	*to++ = path->reordering_seen;
	*to++ = path->cwr_pending;
	*to++ = path->reo_wnd_mult;
	*to++ = path->reo_wnd_persist;
	return to;
}

static __always_inline __u64 *tell_sender(__u64 *to, const struct sender *snd)
{
	*to++ = snd->timer == TIMER_NONE ? 0 : snd->deadline;
	*to++ = snd->timer_base;
	*to++ = snd->last_progress;
	*to++ = snd->sacked.word[0];
	*to++ = snd->sacked.word[1];
	*to++ = snd->lost.word[0];
	*to++ = snd->lost.word[1];
	*to++ = snd->retransmitted.word[0];
	*to++ = snd->retransmitted.word[1];
	*to++ = snd->length;
	*to++ = snd->mss;
	*to++ = snd->snd_una;
	*to++ = snd->snd_wnd_end;
	*to++ = snd->rack_xmit_ts;
	*to++ = snd->rack_rtt;
	*to++ = snd->max_pipe;
	*to++ = snd->segments;
	*to++ = snd->next;
	*to++ = snd->rack_fack;
	*to++ = snd->rack_valid;
	*to++ = snd->rack_segment;
	*to++ = snd->ca_state;
	*to++ = snd->recovery_point;
	*to++ = snd->fast_retransmit;
	*to++ = snd->tlp;
	*to++ = snd->tlp_segment;
	*to++ = snd->window_probe;
	*to++ = snd->timer;
	*to++ = snd->rto_backoff;
	*to++ = snd->cwr_until;
	*to++ = snd->reduced_until;
	*to++ = snd->reo_wnd_until;
	*to++ = snd->mtu_blackhole;
	*to++ = snd->any_retransmitted;
	*to++ = sender_any_delivered(snd);
	*to++ = sender_pipe(snd);
	*to++ = sender_ready(snd);
	*to++ = snd->sent_at[0];
	*to++ = snd->sent_at[snd->next & (SENDER_SEGMENTS - 1)];
	*to++ = snd->sent_at[(snd->next - 1) & (SENDER_SEGMENTS - 1)];
	return to;
}

static __always_inline __u64 step_result(struct sender *snd, struct step *step, struct transmission *t)
{
	struct path path;

	switch (step->what) {
	case STEP_BEGIN:
		take_path(&path, step);
		return sender_begin(snd, step->now, step->length, step->segment, step->window, &path);
	case STEP_ACK:
		return sender_on_ack(snd, step->now, &step->ack);
	case STEP_TIMER:
		return sender_on_timer(snd, step->now);
	case STEP_POLL:
		return sender_poll(snd, step->now, t);
	case STEP_MTU_LOWERED:
		sender_on_mtu_lowered(snd, step->now);
		return 0;
	case STEP_REQUEST_ECE:
		sender_on_request_ece(snd);
		return 0;
	case STEP_RTT_SAMPLE:
		path_rtt_sample(&snd->path, step->number);
		return 0;
	case STEP_RTO:
		return path_rto(&snd->path, step->number);
	case STEP_PTO:
		return path_pto(&snd->path, step->number);
	case STEP_GROW_CWND:
		path_grow_cwnd(&snd->path, step->number);
		return 0;
	case STEP_REDUCE_CWND:
		path_reduce_cwnd(&snd->path);
		return 0;
	}
	return ~0ull;
}

static __always_inline void take_step(struct sender *snd, struct step *step, struct state *state)
{
	struct transmission t = {};
	__u64 *to = state->numbers;

	*to++ = step_result(snd, step, &t);
	*to++ = t.offset;
	*to++ = t.length;
	*to++ = t.retransmitted;
	*to++ = t.cwr;
	*to++ = t.ect;
	*to++ = t.last;
	to = tell_path(to, &snd->path);
	tell_sender(to, snd);
}

#endif
