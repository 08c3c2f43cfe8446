//! A browser behind which nobody stands: it opens a page from the cache, talks over a WebSocket and
//! hears server-sent events through the proxy, and reports what came of it.

use std::time::Duration;

use afpa_testkit::{Endpoint, Server, Tree, eventually, skip};
use afpa_tests::browser::{Browser, recorder};
use afpa_tests::proxy::{Backend, Kind, server_row};

/// Reports with `/report/NAME?TEXT`. Short and long messages are echoed; five events come, some
/// 100 ms from each other.
const PAGE: &str = r#"<!doctype html>
<title>page</title>
<script>
"use strict";
const report = (name, text) => fetch(`/report/${name}?${encodeURIComponent(text)}`);

const messages = ["short", "l".repeat(125), "x".repeat(126), "y".repeat(60000), "\u00fc"];
const socket = new WebSocket(`ws://${location.host}/socket`);
let echoed = 0;
socket.onopen = () => socket.send(messages[0]);
socket.onmessage = (event) => {
  if (event.data !== messages[echoed]) { report("socket", `message ${echoed} came back otherwise`); }
  else if (++echoed < messages.length) { socket.send(messages[echoed]); }
  else { socket.close(1000, "done"); }
};
socket.onclose = (event) => report("socket", `${echoed} echoed, ${event.wasClean} ${event.code}`);

const heard = [], times = [];
const events = new EventSource("/events");
events.onmessage = (event) => {
  heard.push(`${event.lastEventId}=${event.data}`);
  times.push(performance.now());
  if (heard.length < 5) { return; }
  events.close();
  report("events", heard.join());
  report("spread", Math.round(times[4] - times[0]));
};
</script>
"#;

#[test]
fn a_browser_converses_and_listens() {
    let app = match Backend::start(Kind::Node, "node") {
        Ok(server) => server,
        Err(why) => skip!("{why}"),
    };
    let (recorder, reports) = recorder();
    let tree = Tree::new();
    tree.file("page.html", PAGE);
    let server = Server::start("/", |launch| {
        launch.written(|listen: &Endpoint| {
            format!(
                "[[site]]\nlisten = [\"{listen}\"]\nroot = \"{}\"\nto = \"{}\"\ncached = [\"html\"]\n\
                 [[site.path]]\nprefix = \"/report/\"\nto = \"{}\"\n",
                tree.path().display(),
                app.to(),
                recorder.to()
            )
        });
    });
    let browser = match Browser::chromium(&format!("{}/page.html", server.url())) {
        Ok(browser) => browser,
        Err(why) => skip!("{why}"),
    };
    let report = || reports.recv_timeout(Duration::from_secs(40)).expect("a report of the page");
    let mut all = [report(), report(), report()];
    drop(browser);
    all.sort();
    let [events, socket, spread] = &all;
    assert_eq!(socket, "/report/socket?5%20echoed%2C%20true%201000");
    let heard = events.replace("%3D", "=").replace("%2C", ",").replace("%20", " ");
    assert_eq!(heard, "/report/events?0=event 0,1=event 1,2=event 2,3=event 3,4=event 4");
    // A proxy that gathered the events would deliver them all at once.
    let spread = spread.strip_prefix("/report/spread?").and_then(|spread| spread.parse().ok());
    assert!(spread.is_some_and(|spread: u32| spread > 250), "{all:?}");
    eventually("nothing is left open", || server_row(&server, &app.to())["in_flight"] == 0);
}
