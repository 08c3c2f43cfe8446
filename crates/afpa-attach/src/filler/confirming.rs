//! Confirming: asks the server whether it still gives the answers that are pinned.

use std::time::Instant;

use super::Filler;
use crate::gather::Ask;
use crate::ledger::Job;

impl Filler {
    /// Has the server confirm one path. Without an answer the path's lease lapses.
    pub(super) fn confirm(&self, server: &mut dyn Ask, job: &Job) {
        let asked = Instant::now();
        let Some(mut claims) = self.lock().claims.get(&job.path).cloned() else { return };
        let mut said = Ok(true);
        for claim in &mut claims {
            said = claim.confirm(server);
            if !matches!(said, Ok(true)) {
                break;
            }
        }
        let mut state = self.lock();
        match said {
            // The turns of names and decoys go on.
            Ok(true) if state.ledger.confirm(job, asked) => {
                state.unfit.forget(&job.path);
                state.claims.insert(job.path.clone(), claims);
            }
            Ok(true) => {}
            Ok(false) => {
                let gone = state.ledger.contradict(job, Instant::now());
                self.unpin(&mut state, &gone);
            }
            Err(error) => {
                state.note(&job.path, &error.to_string());
                state.ledger.confirm_later(job, Instant::now());
            }
        }
    }
}
