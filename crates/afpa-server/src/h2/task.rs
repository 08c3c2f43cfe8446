//! The tasks of streams whose answers come from helper threads or servers.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;

use afpa_framework::Module;
use afpa_h2::{ErrorCode, StreamId};

use super::H2;
use super::mux::Mux;
use super::outcome::Outcome;
use crate::transport::Transport;

/// Resets a stream whose task ends without an outcome.
struct Fuse {
    mux: Rc<RefCell<Mux>>,
    /// `None`: there is an outcome.
    id: Option<StreamId>,
}

impl<M: Module, T: Transport> H2<M, T> {
    /// Gives a stream a task. If it panics, the stream ends, and the connection goes on.
    pub(super) fn spawn(&mut self, id: StreamId, work: impl Future<Output = Outcome<M>> + 'static) {
        let fuse = Fuse { mux: Rc::clone(&self.mux), id: Some(id) };
        self.tasks.spawn_local(async move {
            let outcome = work.await;
            fuse.remove();
            outcome
        });
    }
}

impl Fuse {
    /// There is an outcome.
    fn remove(mut self) {
        self.id = None;
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        if let Some(id) = self.id
            && let Ok(mut mux) = self.mux.try_borrow_mut()
        {
            mux.reset(id, ErrorCode::Internal);
            mux.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use afpa_h2::frame::{flag, kind, put};
    use afpa_h2::request::RequestHead;
    use afpa_h2::{Connection, Limits, PREFACE};

    use super::*;
    use crate::h2::mux::{Pace, StreamState};

    #[test]
    fn a_task_that_panics_ends_its_stream_and_no_other() {
        let mut connection = Connection::new(Limits::default());
        let mut input = PREFACE.to_vec();
        put(&mut input, kind::SETTINGS, 0, 0, &[]);
        let head = b"\x82\x86\x84\x41\x01h";
        for id in [1, 3] {
            put(&mut input, kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, id, head);
        }
        let (mut rest, mut head) = (&input[..], RequestHead::default());
        while let Ok((n @ 1.., _)) = connection.receive(rest, &mut head, 0) {
            rest = &rest[n..];
        }
        let streams = [1, 3].map(|id| (id, StreamState::default()));
        let streams = HashMap::from(streams);
        let pace = Pace { write_ms: 0, least_rate: 0 };
        let (waker, progress_until_ms, is_early) = (None, 0, false);
        let mux = Mux { connection, streams, waker, progress_until_ms, pace, is_early };
        let mux = Rc::new(RefCell::new(mux));
        let fuses = [1, 3].map(|id| Fuse { mux: Rc::clone(&mux), id: Some(id) });
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let [_first, second] = fuses;
            second.remove();
            panic!("as a task might");
        }));
        assert!(panicked.is_err());
        let mut mux = mux.borrow_mut();
        assert_eq!([1, 3].map(|id| mux.connection.has(id)), [false, true]);
        assert_eq!(mux.streams.keys().collect::<Vec<_>>(), [&3]);
        assert!(mux.connection.output().ends_with(&[0, 0, 0, 1, 0, 0, 0, 2]), "a reset of 1");
    }
}
