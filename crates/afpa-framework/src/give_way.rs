//! A task that lets the others go first.

use std::future::poll_fn;
use std::task::Poll;

/// Lets the tasks that are ready run first. The runtime's own way of yielding would look at epoll each time.
pub async fn give_way() {
    let mut given = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut given, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
