//! Files that change while they are served: never torn, never stale once the change was seen.

mod content;
mod growing;
mod includes;
mod includes_beside;
mod listings;
mod load;
mod names;

use std::time::Duration;

use afpa_testkit::{Server, Tree, eventually_within};

/// A change must show within this time. Watched files take milliseconds; files that cannot be watched are
/// looked at once a second, and the machine may be busy.
const SEEN: Duration = Duration::from_secs(3);

/// Waits until `target` gives `status` and `body`; an older answer may come before, a wrong one not.
#[track_caller]
fn becomes(server: &Server, target: &str, status: u16, body: &str) {
    eventually_within(SEEN, &format!("{target} is {status} {body:?}"), || {
        let response = server.get(target);
        response.status == status && (status >= 400 || response.text() == body)
    });
}

fn serve(tree: &Tree) -> Server {
    Server::start(tree.path(), |_| ())
}
