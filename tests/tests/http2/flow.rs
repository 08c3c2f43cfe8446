//! Windows, and which response goes first.

use afpa_h2::frame::{kind, setting};
use afpa_testkit::{Server, Tree, tree::patterned};
use afpa_tests::h2::{H2Client, request};

use crate::{LARGE, server, site};

fn grow(client: &mut H2Client, id: u32, by: u32) {
    client.frame(kind::WINDOW_UPDATE, 0, id, &by.to_be_bytes());
}

#[test]
fn large_files_arrive_whole_beside_each_other() {
    let tree = site();
    let server = server(&tree);
    let mut client = H2Client::connect(&server);
    let ids: Vec<u32> =
        (0..8).map(|_| client.request(&request("GET", "/large.bin"), b"")).collect();
    for id in ids {
        assert!(client.response(id).body == patterned(LARGE));
    }
}

#[test]
fn no_more_is_sent_than_the_windows_allow() {
    let tree = site();
    let server = server(&tree);
    let settings = [(setting::INITIAL_WINDOW_SIZE, 1000)];
    let mut client = H2Client::connect_with(server.address(), &settings);
    client.opens_windows = false;
    let id = client.request(&request("GET", "/medium.bin"), b"");
    client.until("the window is full", |client| client.so_far(id).body.len() >= 1000);
    client.ping();
    assert_eq!(client.so_far(id).body.len(), 1000);
    grow(&mut client, id, 500);
    client.until("the window is full", |client| client.so_far(id).body.len() >= 1500);
    client.ping();
    assert_eq!(client.so_far(id).body.len(), 1500);
    // Then the connection's own window, of 65,535 bytes, is the limit.
    grow(&mut client, id, 1_000_000);
    client.until("the window is full", |client| client.so_far(id).body.len() >= 65_535);
    client.ping();
    assert_eq!(client.so_far(id).body.len(), 65_535);
    assert_eq!(client.request(&request("GET", "/empty.txt"), b""), id + 2);
    assert_eq!(client.response(id + 2).status, 200, "an answer without content needs no window");
    grow(&mut client, 0, 1_000_000);
    assert!(client.response(id).body == patterned(100_000));
}

#[test]
fn a_window_that_shrinks_below_nothing_stops_a_response() {
    let tree = site();
    let server = server(&tree);
    let settings = [(setting::INITIAL_WINDOW_SIZE, 1000)];
    let mut client = H2Client::connect_with(server.address(), &settings);
    client.opens_windows = false;
    let id = client.request(&request("GET", "/medium.bin"), b"");
    client.until("the window is full", |client| client.so_far(id).body.len() >= 1000);
    let mut zero = Vec::new();
    afpa_h2::frame::put_settings(&mut zero, &[(setting::INITIAL_WINDOW_SIZE, 0)]);
    client.send(&zero);
    grow(&mut client, id, 1000);
    client.ping();
    assert_eq!(client.so_far(id).body.len(), 1000, "1000 below nothing, and 1000");
    grow(&mut client, id, 1);
    client.until("one byte comes", |client| client.so_far(id).body.len() == 1001);
}

/// Asks for all of them at once with windows of nothing, then opens the connection's and sees which are complete first.
fn order(priorities: &[(&str, &str)], update: Option<(usize, &str)>) -> Vec<usize> {
    let tree = site();
    let server = server(&tree);
    // The windows of the streams are large, the connection's is used up by the first one.
    let settings = [(setting::INITIAL_WINDOW_SIZE, 0x7fff_0000)];
    let mut client = H2Client::connect_with(server.address(), &settings);
    client.opens_windows = false;
    let blocker = client.request(&request("GET", "/large.bin"), b"");
    client.until("the connection's window is full", |client| {
        client.so_far(blocker).body.len() >= 65_535
    });
    let ids: Vec<u32> = priorities
        .iter()
        .map(|(target, priority)| {
            let mut fields = request("GET", target);
            fields.push(("priority", priority));
            client.request(&fields, b"")
        })
        .collect();
    client.frame(kind::RST_STREAM, 0, blocker, &8_u32.to_be_bytes());
    if let Some((which, priority)) = update {
        let mut payload = ids[which].to_be_bytes().to_vec();
        payload.extend_from_slice(priority.as_bytes());
        client.frame(kind::PRIORITY_UPDATE, 0, 0, &payload);
    }
    client.until("all heads are there", |client| {
        ids.iter().all(|id| !client.so_far(*id).fields.is_empty())
    });
    client.ping();
    grow(&mut client, 0, 0x3fff_0000);
    client.until("all are complete", |client| ids.iter().all(|id| client.so_far(*id).ended));
    let place = |id: &u32| ids.iter().position(|other| other == id);
    client.complete.iter().filter_map(place).collect()
}

#[test]
fn the_urgent_go_first_and_then_the_small() {
    let asked = [
        ("/large.bin", "u=6"),
        ("/large.bin", "u=2"),
        ("/medium.bin", "u=6"),
        ("/hello.txt", "u=7"),
        ("/large.bin", "u=0"),
    ];
    assert_eq!(order(&asked, None), [4, 1, 2, 0, 3]);
    assert_eq!(order(&asked, Some((3, "u=0"))), [3, 4, 1, 2, 0]);
}

#[test]
fn incremental_responses_take_turns() {
    // Of two that are whole, the small one is complete long before the large one has half. Of two that are
    // incremental, the small one has to wait for its turns, but not for the whole of the large one.
    assert_eq!(order(&[("/large.bin", "i"), ("/medium.bin", "i")], None), [1, 0]);
    assert_eq!(order(&[("/medium.bin", "i"), ("/medium.bin", "u=3")], None), [1, 0]);
}

/// How often responses of 60,000 bytes had to wait for a turn. They are so short that only those of low priority do.
fn turns_waited_for(more: &str) -> u64 {
    let tree = Tree::new();
    tree.file("middle.bin", patterned(60_000));
    let root = tree.path().display();
    let server = Server::start(tree.path(), |launch| {
        launch.written(|endpoint| {
            format!(
                "workers = 1\n[http2]\ncleartext = true\n[internals]\nlong_sends = \"16KiB\"\n\
                 [[site]]\nlisten = [\"{endpoint}\"]\nroot = \"{root}\"\n{more}"
            )
        });
    });
    let mut client = H2Client::connect(&server);
    for _ in 0..20 {
        let ids: Vec<u32> =
            (0..4).map(|_| client.request(&request("GET", "/middle.bin"), b"")).collect();
        for id in ids {
            assert!(client.response(id).body == patterned(60_000), "whole");
        }
    }
    let output = server.command(&["stats", "--json"]);
    let stats: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    stats["connections"]["turns_waited_for"].as_u64().expect("a count")
}

#[test]
fn hints_say_which_responses_wait_for_others() {
    assert_eq!(turns_waited_for(""), 0);
    let low = "[[site.hint]]\nprefix = \"/middle\"\npriority = \"low\"\n";
    assert!(turns_waited_for(low) > 0);
}
