//! Files that change while they are served: never torn, never stale once the change was seen.

use std::{
    collections::HashMap,
    fs,
    io::Write,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use afpa_testkit::{
    Client, ReceiveError, Response, Server, Tree, eventually_within, exclusive::exclusive, figure,
    tree::patterned,
};
use afpa_tests::codings::{decode, encode};

/// A change must show within this time. Watched files take milliseconds; what cannot be watched is
/// looked at once a second, and the machine may be busy.
const SEEN: Duration = Duration::from_secs(3);

/// Reading a full queue of events takes so long in a debug build on a busy machine.
const FLOOD: Duration = Duration::from_secs(15);

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

/// Version `n` of a file: its number again and again, in a length that depends on it.
fn version(n: u64, scale: usize) -> String {
    format!("{n:08}\n").repeat(scale + (n % 7) as usize * scale / 5)
}

/// The version of a response, all of which must be of that one.
#[track_caller]
fn version_of(response: &Response, scale: usize) -> u64 {
    assert_eq!(response.status, 200, "{response:?}");
    let n = response.text()[..8].parse().expect("a version number");
    assert!(response.text() == version(n, scale), "torn at version {n}: {response:?}");
    n
}

/// Replaces one file again and again while eight clients read it.
fn replaced_under_load(scale: usize) {
    let _alone = exclusive();
    let tree = Tree::new();
    tree.file("f.txt", version(0, scale));
    let server = serve(&tree);
    let stop = AtomicBool::new(false);
    let written = Mutex::new(vec![(Instant::now(), 0)]);
    let tags: Mutex<HashMap<String, u64>> = Mutex::new(HashMap::new());
    let reads = AtomicU64::new(0);
    thread::scope(|scope| {
        for number in 0..8 {
            let (stop, written, tags, reads) = (&stop, &written, &tags, &reads);
            let server = &server;
            scope.spawn(move || {
                let mut client = server.connect();
                let mut seen = 0;
                while !stop.load(Ordering::Relaxed) {
                    // Half of the clients meet another worker from time to time.
                    if number % 2 == 0 && seen % 5 == 0 {
                        client = server.connect();
                    }
                    let floor = oldest_allowed(written);
                    let response = client.get("/f.txt");
                    let n = version_of(&response, scale);
                    assert!(n >= seen, "version {n} after {seen} was seen");
                    assert!(n >= floor, "version {n} a second after {floor} was written");
                    seen = n;
                    let tag = response.field("etag").expect("an entity tag").to_owned();
                    let known = *tags.lock().expect("tags").entry(tag).or_insert(n);
                    assert_eq!(known, n, "one entity tag for two versions");
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let writer = scope.spawn(|| {
            let end = Instant::now() + Duration::from_secs(2);
            let mut n = 0;
            while Instant::now() < end {
                n += 1;
                tree.replace("f.txt", version(n, scale));
                written.lock().expect("writer").push((Instant::now(), n));
                thread::sleep(Duration::from_millis(n % 23));
            }
            stop.store(true, Ordering::Relaxed);
            n
        });
        let last = writer.join().expect("the writer");
        becomes(&server, "/f.txt", 200, &version(last, scale));
        figure!("{last} versions, {} reads", reads.load(Ordering::Relaxed));
    });
    assert!(reads.into_inner() > 50, "there was a load");
}

/// The newest version that is a second old: nobody may get an older one.
fn oldest_allowed(written: &Mutex<Vec<(Instant, u64)>>) -> u64 {
    let now = Instant::now();
    let written = written.lock().expect("written");
    let old = written.iter().rev().find(|(at, _)| now - *at > Duration::from_secs(1));
    old.map_or(0, |(_, n)| *n)
}

#[test]
fn a_pinned_file_replaced_under_load_is_never_torn_and_never_stale() {
    replaced_under_load(200);
}

#[test]
fn a_large_file_replaced_under_load_is_never_torn_and_never_stale() {
    replaced_under_load(40_000);
}

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
fn a_file_removed_and_made_again_is_seen_each_time() {
    let tree = Tree::new();
    let server = serve(&tree);
    for round in 0..5 {
        becomes(&server, "/f.txt", 404, "");
        tree.file("f.txt", format!("round {round}"));
        becomes(&server, "/f.txt", 200, &format!("round {round}"));
        tree.remove("f.txt");
    }
    becomes(&server, "/f.txt", 404, "");
}

#[test]
fn a_renamed_folder_takes_its_files_along() {
    let tree = Tree::new();
    tree.file("a/b/f.txt", "in a");
    let server = serve(&tree);
    assert_eq!(server.get("/a/b/f.txt").text(), "in a");
    tree.rename("a", "z");
    becomes(&server, "/a/b/f.txt", 404, "");
    becomes(&server, "/z/b/f.txt", 200, "in a");
    tree.replace("z/b/f.txt", "changed in z");
    becomes(&server, "/z/b/f.txt", 200, "changed in z");
    // Another folder under the old name is another folder.
    tree.file("a/b/f.txt", "new a");
    becomes(&server, "/a/b/f.txt", 200, "new a");
    tree.replace("z/b/f.txt", "changed again");
    becomes(&server, "/z/b/f.txt", 200, "changed again");
    assert_eq!(server.get("/a/b/f.txt").text(), "new a");
}

#[test]
fn folders_that_change_places_change_what_is_served() {
    let tree = Tree::new();
    tree.file("blue/f.txt", "blue");
    tree.file("green/f.txt", "green");
    let server = serve(&tree);
    assert_eq!(server.get("/blue/f.txt").text(), "blue");
    assert_eq!(server.get("/green/f.txt").text(), "green");
    tree.rename("blue", "spare");
    tree.rename("green", "blue");
    tree.rename("spare", "green");
    becomes(&server, "/blue/f.txt", 200, "green");
    becomes(&server, "/green/f.txt", 200, "blue");
}

#[test]
fn a_new_file_in_a_new_folder_is_served_and_watched() {
    let tree = Tree::new();
    let server = serve(&tree);
    for round in 0..20 {
        // Asked for before: that it was missing must not be remembered too long.
        let target = format!("/{round}/new/er/f.txt");
        assert_eq!(server.get(&target).status, 404);
        let name = format!("{round}/new/er/f.txt");
        tree.file(&name, "made with its folders at once");
        becomes(&server, &target, 200, "made with its folders at once");
        tree.file(&name, "rewritten");
        becomes(&server, &target, 200, "rewritten");
    }
}

#[test]
fn a_tree_moved_in_from_outside_is_served_and_watched() {
    let tree = Tree::new();
    let server = serve(&tree);
    assert_eq!(server.get("/in/deep/f.txt").status, 404);
    let outside = tree.outside("ready/deep/f.txt", "moved in");
    let ready = outside.ancestors().nth(2).expect("ready");
    fs::rename(ready, tree.at("in")).expect("move in");
    becomes(&server, "/in/deep/f.txt", 200, "moved in");
    tree.replace("in/deep/f.txt", "changed");
    becomes(&server, "/in/deep/f.txt", 200, "changed");
    fs::rename(tree.at("in"), ready).expect("move out");
    becomes(&server, "/in/deep/f.txt", 404, "");
}

#[test]
fn a_link_turned_to_another_target_is_followed() {
    let tree = Tree::new();
    tree.file("releases/1/page.txt", "release 1");
    tree.file("releases/2/page.txt", "release 2");
    tree.link("current", "releases/1");
    tree.link("page.txt", "current/page.txt");
    let server = serve(&tree);
    assert_eq!(server.get("/current/page.txt").text(), "release 1");
    assert_eq!(server.get("/page.txt").text(), "release 1");
    tree.link("current", "releases/2");
    becomes(&server, "/current/page.txt", 200, "release 2");
    becomes(&server, "/page.txt", 200, "release 2");
    tree.replace("releases/2/page.txt", "release 2, mended");
    becomes(&server, "/current/page.txt", 200, "release 2, mended");
    becomes(&server, "/page.txt", 200, "release 2, mended");
    tree.file("releases/2/page.txt", "in place");
    becomes(&server, "/page.txt", 200, "in place");
    tree.remove("current");
    becomes(&server, "/page.txt", 404, "");
}

#[test]
fn all_names_of_one_file_show_its_change() {
    let tree = Tree::new();
    tree.file("a/one.txt", "first");
    tree.dir("b");
    fs::hard_link(tree.at("a/one.txt"), tree.at("b/two.txt")).expect("link");
    let outside = tree.outside("three.txt", "");
    fs::remove_file(&outside).expect("remove");
    fs::hard_link(tree.at("a/one.txt"), &outside).expect("link");
    let server = serve(&tree);
    assert_eq!(server.get("/a/one.txt").text(), "first");
    assert_eq!(server.get("/b/two.txt").text(), "first");
    tree.file("a/one.txt", "second version");
    becomes(&server, "/a/one.txt", 200, "second version");
    becomes(&server, "/b/two.txt", 200, "second version");
    // Through a name that no watch sees: only its age tells.
    fs::write(&outside, "third").expect("write");
    becomes(&server, "/a/one.txt", 200, "third");
    becomes(&server, "/b/two.txt", 200, "third");
}

#[test]
fn a_stored_coding_comes_and_goes() {
    let tree = Tree::new();
    let text = "a text of some length\n".repeat(100);
    tree.file("page.html", &text);
    let server = serve(&tree);
    let get = || server.connect().get_with("/page.html", "Accept-Encoding: gzip\r\n");
    let check = |response: &Response| {
        assert!(decode(response.field("content-encoding"), &response.body) == text.as_bytes());
    };
    check(&get());
    afpa_tests::codings::settle(&server, &["/page.html"]);
    assert_eq!(get().field("content-encoding"), Some("gzip"), "made by the server");
    for round in 0..3 {
        let mut stored = encode("gzip", text.as_bytes());
        // The time in the head of gzip tells the stored coding from one made by the server.
        stored[4] = 77 + round;
        tree.file("page.html.gz", &stored);
        eventually_within(SEEN, "the sibling is used", || {
            let response = get();
            check(&response);
            response.body == stored
        });
        tree.remove("page.html.gz");
        eventually_within(SEEN, "the sibling is forgotten", || {
            let response = get();
            check(&response);
            response.body != stored
        });
    }
}

#[test]
fn an_index_comes_and_goes() {
    let tree = Tree::new();
    tree.dir("d");
    let server = serve(&tree);
    for target in ["/", "/d/"] {
        let name = format!("{}index.html", &target[1..]);
        assert_eq!(server.get(target).status, 403);
        tree.file(&name, "index");
        becomes(&server, target, 200, "index");
        tree.replace(&name, "another index");
        becomes(&server, target, 200, "another index");
        tree.remove(&name);
        becomes(&server, target, 403, "");
    }
}

#[test]
fn a_file_and_a_folder_can_take_each_others_place() {
    let tree = Tree::new();
    tree.file("x", "a file");
    let server = serve(&tree);
    assert_eq!(server.get("/x").text(), "a file");
    tree.remove("x");
    tree.file("x/index.html", "a folder");
    becomes(&server, "/x/", 200, "a folder");
    assert_eq!(server.get("/x").status, 301);
    fs::remove_dir_all(tree.at("x")).expect("remove");
    tree.file("x", "a file again");
    becomes(&server, "/x", 200, "a file again");
    assert_eq!(server.get("/x/").status, 404);
}

#[test]
fn more_events_than_the_kernel_keeps_leave_nothing_stale() {
    const FILES: usize = 150;
    let _alone = exclusive();
    let tree = Tree::new();
    tree.dir("noise");
    for n in 0..FILES {
        tree.file(format!("f{n}.txt"), "old");
    }
    let server = serve(&tree);
    let mut client = server.connect();
    for n in 0..FILES {
        assert_eq!(client.get(&format!("/f{n}.txt")).text(), "old");
    }
    // A stopped server reads no events: the queue is sure to overflow.
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events");
    let limit = limit.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(16_384);
    server.signal(rustix::process::Signal::STOP);
    let mut events = 0;
    while events < limit + 1000 {
        let name = format!("noise/{}", events % 1000);
        tree.file(&name, "x");
        tree.remove(&name);
        // At least created, modified, closed and removed, in one watched folder.
        events += 3;
    }
    for n in 0..FILES {
        tree.replace(format!("f{n}.txt"), format!("new {n}"));
    }
    server.signal(rustix::process::Signal::CONT);
    // The word of the overflow stands at the end of the queue, behind all that it holds.
    let took =
        eventually_within(FLOOD, "the flood is over", || server.get("/f0.txt").text() == "new 0");
    figure!("{limit} events read in {took:?}");
    for n in 0..FILES {
        becomes(&server, &format!("/f{n}.txt"), 200, &format!("new {n}"));
    }
    // And the watch goes on.
    tree.replace("f0.txt", "after the flood");
    becomes(&server, "/f0.txt", 200, "after the flood");
}

#[test]
fn a_client_that_leaves_in_the_middle_leaves_nothing_behind() {
    let tree = Tree::new();
    tree.file("large.bin", patterned(20_000_000));
    let server = serve(&tree);
    assert_eq!(server.get("/large.bin").status, 200);
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
