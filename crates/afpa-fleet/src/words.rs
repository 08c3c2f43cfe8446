//! A roll-out in words, for people.

use std::fmt;

use crate::rollout::{Phase, Rollout, Stage};

impl fmt::Display for Rollout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (target, names) = (self.target, self.chosen.join(", "));
        let who = match self.stage {
            Stage::One => format!("the first machine ({names})"),
            Stage::Quarter => format!("a quarter of the machines ({names})"),
            Stage::All => format!("each machine ({names})"),
        };
        match &self.phase {
            Phase::Taking => write!(f, "revision {target}: {who} takes it"),
            Phase::Watching => write!(f, "revision {target}: {who} runs it, and is watched"),
            Phase::Done => write!(f, "revision {target} is for all machines"),
            Phase::Back { why } => {
                let base = self.base.map_or("none".to_owned(), |base| format!("revision {base}"));
                write!(f, "revision {target} was rolled back to {base}: {why}")
            }
        }
    }
}
