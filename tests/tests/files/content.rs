//! Another content under the same name, also while the old one is being sent.

use std::{
    collections::{HashMap, HashSet},
    fs,
    io::Write,
    time::{Duration, Instant},
};

use afpa_testkit::{
    Client, ReceiveError, Response, Server, Tree, eventually_within, figure, skip, tree::patterned,
};

use crate::{SEEN, becomes, serve};

#[test]
fn a_file_rewritten_in_place_is_seen() {
    let tree = Tree::new();
    tree.file("f.txt", "first");
    let server = serve(&tree);
    assert_eq!(server.get("/f.txt").text(), "first");
    tree.file("f.txt", "second, longer");
    becomes(&server, "/f.txt", 200, "second, longer");
    fs::File::options()
        .append(true)
        .open(tree.at("f.txt"))
        .and_then(|mut file| file.write_all(b" and appended"))
        .expect("append");
    becomes(&server, "/f.txt", 200, "second, longer and appended");
}

#[test]
fn rewriting_faster_than_the_clock_of_the_file_system_ticks_is_seen() {
    // Same length, and often the same modification time: no stamp tells these versions apart.
    let tree = Tree::new();
    tree.file("f.txt", "000");
    let server = serve(&tree);
    let mut client = server.connect();
    for round in 0..20 {
        for n in 0..50 {
            tree.file("f.txt", format!("{n:03}"));
            if n % 10 == round % 10 {
                client.get("/f.txt");
            }
        }
        becomes(&server, "/f.txt", 200, "049");
        assert_eq!(client.get("/f.txt").text(), "049", "and on every connection");
    }
}

/// Whether each version of a file has a time of its own here, if somebody looks between two changes.
fn has_fine_times(tree: &Tree) -> bool {
    use std::os::unix::fs::MetadataExt;
    let changed = |n| {
        tree.file("times", format!("{n:04}"));
        let found = fs::metadata(tree.at("times")).expect("the file");
        (found.ctime(), found.ctime_nsec())
    };
    (0..100).map(changed).collect::<HashSet<_>>().len() == 100
}

#[test]
fn the_first_request_after_a_change_does_not_wait_for_the_clock_of_the_file_system() {
    /// The shortest of the usual ones.
    const TICK: Duration = Duration::from_millis(4);
    let tree = Tree::new();
    if !has_fine_times(&tree) {
        skip!("the times of this file system are coarse");
    }
    tree.file("f.txt", "00");
    let server = serve(&tree);
    let mut client = server.connect();
    let mut times: Vec<Duration> = (1..60)
        .map(|n| {
            tree.file("f.txt", format!("{n:02}"));
            loop {
                let asked = Instant::now();
                let response = client.get("/f.txt");
                if response.text() == format!("{n:02}") {
                    break asked.elapsed();
                }
            }
        })
        .collect();
    times.sort();
    let (fastest, median) = (times[0], times[times.len() / 2]);
    figure!("the first answer after a change: {fastest:?} at best, {median:?} in the median");
    // A server that waits for the clock answers at a tick, and the file changes just after it: every wait but the first
    // is a whole tick. A busy machine makes many of the answers slow, and not all of them.
    assert!(times[1] < TICK / 2, "{times:?}");
}

#[test]
fn versions_of_one_length_within_a_tick_have_an_entity_tag_each() {
    let tree = Tree::new();
    if !has_fine_times(&tree) {
        skip!("the times of this file system are coarse");
    }
    tree.file("f.txt", "0000");
    let server = serve(&tree);
    let mut client = server.connect();
    let mut tags: HashMap<String, String> = HashMap::new();
    for n in 1..400 {
        tree.file("f.txt", format!("{n:04}"));
        eventually_within(SEEN, &format!("version {n}"), || {
            let response = client.get("/f.txt");
            let tag = response.field("etag").expect("an entity tag").to_owned();
            let content = tags.entry(tag).or_insert_with(|| response.text().to_owned());
            assert_eq!(*content, response.text(), "one entity tag for two versions");
            response.text() == format!("{n:04}")
        });
    }
}

/// A client that has asked for `/large.bin`, read its head and the first bytes, and stopped.
fn stalled_download(server: &Server) -> (Client, Vec<u8>) {
    let mut client = Client::connect_narrow(server.address(), 4096).expect("connect");
    client.send("GET /large.bin HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    let mut got = vec![0; 100_000];
    let mut filled = 0;
    while filled < got.len() {
        filled += client.read_raw(&mut got[filled..]).expect("the first bytes");
    }
    (client, got)
}

fn body_of(mut got: Vec<u8>, rest: Vec<u8>) -> Vec<u8> {
    got.extend(rest);
    let end = got.windows(4).position(|window| window == b"\r\n\r\n").expect("end of the head");
    got.split_off(end + 4)
}

#[test]
fn a_file_that_shrinks_while_it_is_sent_ends_early_and_is_never_padded() {
    let tree = Tree::new();
    let large = patterned(40_000_000);
    tree.file("large.bin", &large);
    let server = serve(&tree);
    let (mut client, got) = stalled_download(&server);
    let file = fs::File::options().write(true).open(tree.at("large.bin")).expect("open");
    // At the border of the largest folio: the kernel blanks the rest of one that is cut, although
    // its pages already wait in the socket.
    file.set_len(2 << 20).expect("truncate");
    let body = body_of(got, client.read_to_close().expect("the server closes"));
    assert!(body.len() < large.len(), "all {} bytes came", body.len());
    let differs = body.iter().zip(&large).position(|(got, was)| got != was);
    assert_eq!(differs, None, "of {} bytes: what came is what was there", body.len());
    becomes_length(&server, 2 << 20);
}

#[track_caller]
fn becomes_length(server: &Server, length: usize) {
    eventually_within(SEEN, "the new length", || server.get("/large.bin").body.len() == length);
}

#[test]
fn a_download_in_progress_keeps_the_version_it_began_with() {
    let tree = Tree::new();
    let large = patterned(30_000_000);
    tree.file("large.bin", &large);
    let server = serve(&tree);
    let (mut first, got_first) = stalled_download(&server);
    tree.replace("large.bin", vec![b'n'; 5_000_000]);
    becomes_length(&server, 5_000_000);
    let (mut second, got_second) = stalled_download(&server);
    tree.remove("large.bin");
    becomes(&server, "/large.bin", 404, "");
    let body = body_of(got_first, first.read_to_close().expect("the old version"));
    assert!(body == large, "{} bytes", body.len());
    let body = body_of(got_second, second.read_to_close().expect("the removed version"));
    assert!(body == vec![b'n'; 5_000_000], "{} bytes", body.len());
}

#[test]
fn a_client_that_leaves_in_the_middle_leaves_nothing_behind() {
    let tree = Tree::new();
    tree.file("large.bin", patterned(20_000_000));
    let server = serve(&tree);
    assert_eq!(server.get("/large.bin").status, 200);
    server.settle();
    let before = server.process().descriptors().expect("descriptors");
    for round in 0..50 {
        let (client, _) = stalled_download(&server);
        if round % 2 == 0 {
            client.abort().expect("abort");
        }
    }
    eventually_within(SEEN, "descriptors come back", || {
        server.process().descriptors().expect("descriptors") <= before + 2
    });
    let mut client = server.connect();
    let result = client.try_send("GET /large.bin HTTP/1.1\r\nHost: h\r\n\r\n");
    result.expect("send");
    let response = client.try_receive(afpa_testkit::Asked::Body);
    let whole =
        |r: &Result<Response, ReceiveError>| r.as_ref().is_ok_and(|r| r.body.len() == 20_000_000);
    assert!(whole(&response));
}
