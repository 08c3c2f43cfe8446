//! Waits on behalf of a client, for as long as the client stays.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use afpa_framework::ClientStream;

use super::HalfClosed;

/// Why a wait ended without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupted {
    /// The client went away.
    ClientGone,
    /// It took too long.
    Over,
}

/// Whether the client is gone, or counts as gone.
pub(super) fn has_left<C: ClientStream + ?Sized>(
    client: &mut C,
    half_closed: HalfClosed,
    cx: &mut Context<'_>,
) -> bool {
    client.poll_gone(cx).is_ready() || (half_closed == HalfClosed::Cancel && client.has_ended())
}

/// Waits for `future`, until `deadline` at the latest, or until the client goes away.
pub(super) async fn while_client_stays<C: ClientStream + ?Sized, F: Future + Unpin>(
    (client, half_closed): (&mut C, HalfClosed),
    deadline: u64,
    mut future: F,
) -> Result<F::Output, Interrupted> {
    let mut armed = false;
    poll_fn(|cx| {
        if let Poll::Ready(output) = Pin::new(&mut future).poll(cx) {
            return Poll::Ready(Ok(output));
        }
        if has_left(client, half_closed, cx) {
            return Poll::Ready(Err(Interrupted::ClientGone));
        }
        if !std::mem::replace(&mut armed, true) {
            client.wait_until(Some(deadline));
        }
        match client.is_over(cx) {
            true => Poll::Ready(Err(Interrupted::Over)),
            false => Poll::Pending,
        }
    })
    .await
}
