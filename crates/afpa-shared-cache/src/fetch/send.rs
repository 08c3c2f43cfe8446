//! Sends to a client of an answer that did not come by its own exchange.

use std::future::poll_fn;
use std::task::Poll;

use afpa_framework::ClientStream;

/// Sends some of the bytes, of which there are any. `None`: the client went away, or has taken nothing for too long.
pub(crate) async fn send_some<C: ClientStream + ?Sized>(
    client: &mut C,
    bytes: &[u8],
) -> Option<usize> {
    let mut armed = false;
    poll_fn(|cx| match client.poll_send(cx, bytes, false) {
        Poll::Ready(Ok(n)) if n > 0 => Poll::Ready(Some(n)),
        Poll::Ready(_) => Poll::Ready(None),
        Poll::Pending => {
            if !std::mem::replace(&mut armed, true) {
                client.wait_until(Some(write_deadline(client)));
            }
            match client.is_over(cx) {
                true => Poll::Ready(None),
                false => Poll::Pending,
            }
        }
    })
    .await
}

/// Sends all of it. `false`: the client went away, or stopped reading.
pub(crate) async fn send<C: ClientStream + ?Sized>(client: &mut C, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        let Some(n) = send_some(client, bytes).await else { return false };
        bytes = bytes.get(n..).unwrap_or_default();
    }
    true
}

/// Until when a client has to take something, in steady milliseconds.
fn write_deadline<C: ClientStream + ?Sized>(client: &C) -> u64 {
    let timeout = u64::try_from(client.timeouts().write.as_millis()).unwrap_or(u64::MAX / 4);
    client.now().steady_ms().saturating_add(timeout)
}
