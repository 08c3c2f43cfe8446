/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* One step of the engine by numbers, and its whole state as numbers: how the model is compared with it. */
#ifndef AFPA_TEST_STEPS_H
#define AFPA_TEST_STEPS_H

#include <afpa/tcp/ack.h>

enum what { STEP_BEGIN, STEP_ACK, STEP_TIME, STEP_SEND, STEP_NARROWED };

/* What happens. */
struct step {
	__u64 now;
	__u32 what;
	__u32 length, segment, window; /* STEP_BEGIN */
	struct ack ack;    /* STEP_ACK */
};

/* What came of it: `result`, a transmission, and the state behind it. */
#define STATE_NUMBERS 49

struct state {
	__u64 result;
	__u64 offset, length, again, reduced, markable, last;
	__u64 numbers[STATE_NUMBERS];
};

static __always_inline void tell(const struct sender *f, struct state *state)
{
	__u64 *to = state->numbers;
	__u32 i = 0;

	to[i++] = f->timer == TIMER_NONE ? 0 : f->deadline;
	to[i++] = f->timer_base;
	to[i++] = f->last_progress;
	to[i++] = f->path.last_sent;
	to[i++] = f->path.srtt;
	to[i++] = f->path.rttvar;
	to[i++] = f->path.min_rtt;
	to[i++] = f->path.cwnd;
	to[i++] = f->path.ssthresh;
	to[i++] = f->path.reordering_seen;
	to[i++] = f->path.reo_wnd_mult;
	to[i++] = f->path.reo_wnd_persist;
	to[i++] = f->sacked.word[0];
	to[i++] = f->sacked.word[1];
	to[i++] = f->lost.word[0];
	to[i++] = f->lost.word[1];
	to[i++] = f->retransmitted.word[0];
	to[i++] = f->retransmitted.word[1];
	to[i++] = f->length;
	to[i++] = f->mss;
	to[i++] = f->snd_una;
	to[i++] = f->snd_wnd_end;
	to[i++] = f->rack_xmit_ts;
	to[i++] = f->rack_rtt;
	to[i++] = f->path.cwnd_cnt;
	to[i++] = f->max_pipe;
	to[i++] = f->path.undo_cwnd;
	to[i++] = f->path.undo_ssthresh;
	to[i++] = f->path.undo_retrans;
	to[i++] = f->segments;
	to[i++] = f->next;
	to[i++] = f->rack_fack;
	to[i++] = f->rack_valid;
	to[i++] = f->rack_segment;
	to[i++] = f->ca_state;
	to[i++] = f->recovery_point;
	to[i++] = f->fast_retransmit;
	to[i++] = f->tlp;
	to[i++] = f->tlp_segment;
	to[i++] = f->window_probe;
	to[i++] = f->timer;
	to[i++] = f->rto_backoff;
	to[i++] = f->path.cwr_pending;
	to[i++] = f->cwr_until;
	to[i++] = f->reo_wnd_until;
	to[i++] = f->mtu_blackhole;
	to[i++] = f->sent_at[0];
	to[i++] = f->sent_at[f->next & (SENDER_SEGMENTS - 1)];
	to[i++] = f->sent_at[(f->next - 1) & (SENDER_SEGMENTS - 1)];
}

static __always_inline void take_step(struct sender *f, struct step *step, struct state *state)
{
	struct transmission t = {};
	struct path path;

	switch (step->what) {
	case STEP_BEGIN:
		path_init(&path);
		state->result = sender_begin(f, step->now, step->length, step->segment, step->window, &path);
		break;
	case STEP_ACK:
		state->result = sender_on_ack(f, step->now, &step->ack);
		break;
	case STEP_TIME:
		state->result = sender_on_timer(f, step->now);
		break;
	case STEP_NARROWED:
		sender_on_mtu_lowered(f, step->now);
		state->result = PROGRESS_GOING;
		break;
	case STEP_SEND:
		state->result = sender_poll(f, step->now, &t);
		break;
	}
	state->offset = t.offset;
	state->length = t.length;
	state->again = t.retransmitted;
	state->reduced = t.cwr;
	state->markable = t.ect;
	state->last = t.last;
	tell(f, state);
}

#endif
