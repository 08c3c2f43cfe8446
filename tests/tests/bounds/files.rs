//! `[cache] pinned_limit`, and the tables, which have a fifth of it: the memory of the cache of files, for any paths that clients ask for.

use afpa_testkit::{
    Server, Tree, eventually,
    exclusive::exclusive,
    held::{Growth, MIB},
};

const PINNED: u64 = MIB * 5 / 8;
const TABLES: u64 = PINNED / 5;
/// Buffers, and memory that the allocator has not given back.
const SLACK: u64 = 5 * MIB / 2;

/// The name of a kind of requests, the target and the fields of each, their number, and the status of the answers.
type Kind<'a> = (&'a str, &'a dyn Fn(usize) -> (String, String), usize, u16);

/// Each of these would fill some table. The cache gives up entries of one kind for the next, so that all kinds together hold no
/// more than the limits.
#[test]
fn whatever_paths_clients_ask_for_the_tables_hold_their_limit() {
    let _alone = exclusive();
    let (tree, long) = (Tree::new(), "n".repeat(200));
    let many = [&*long; 12].join("/");
    tree.dir(&many);
    for number in 0..250 {
        tree.file(format!("{many}/{number}{long}.txt"), "content");
    }
    tree.file("one.txt", "content".repeat(500));
    // Each way through these links is another name of the same file.
    let (left, right) = ("l".repeat(200), "r".repeat(200));
    [&left, &right].into_iter().for_each(|link| tree.link(link, "."));
    let way = |number: usize| -> String {
        let turn = |bit: usize| if number >> bit & 1 == 0 { &left } else { &right };
        (0..12).map(|bit| format!("{}/", turn(bit))).collect()
    };
    let server = Server::start(tree.path(), |launch| {
        launch.arg("--workers").arg("2").set(|settings| {
            settings.set("cache.pinned_limit", format!("\"{PINNED}B\""));
            settings.set("cache.pin_threshold", "\"4KiB\"");
            settings.set("site.listing", true);
            settings.set("limits.head", "\"192KiB\"");
        });
    });
    server.settle();
    // Two workers, each with a view of its own.
    let mut clients: Vec<_> = (0..4).map(|_| server.connect()).collect();
    (0..50).for_each(|number| drop(clients[number % 4].get(&format!("/one.txt?warm={number}"))));
    let before = server.held();
    let none = String::new;
    let one = |fields: String| ("/one.txt".to_owned(), fields);
    let path = |n: usize| format!("/{n}{}", "/none".repeat(6000));
    // Few requests, each with so much that all of them are more than the bound.
    let much = "m".repeat(30_000);
    let kinds: [Kind<'_>; 8] = [
        ("files", &|n| (format!("/{many}/{n}{long}.txt"), none()), 250, 200),
        ("names of one file", &|n| (format!("/{}one.txt", way(n)), none()), 120, 200),
        ("names of one listing", &|n| (format!("/{}", way(n)), none()), 5, 200),
        ("paths of nothing", &|n| (path(n), none()), 140, 404),
        ("queries", &|n| (format!("/one.txt?{n}{much}"), none()), 140, 200),
        ("codings", &|n| one(format!("Accept-Encoding: x{n}{much}, gzip;q=0.{n}\r\n")), 140, 200),
        ("ranges", &|n| one(format!("Range: bytes={n}-\r\n")), 140, 206),
        ("validators", &|n| one(format!("If-None-Match: \"{n}{much}\"\r\n")), 140, 200),
    ];
    for (kind, request, count, status) in kinds {
        for number in 0..count {
            let (target, fields) = request(number);
            assert_eq!(clients[number % 4].get_with(&target, &fields).status, status, "{target}");
        }
        let bound = Growth { memory: PINNED + TABLES + SLACK, descriptors: 64, threads: 16 };
        server.held().since(before).is_at_most(kind, bound);
    }
}

/// Memory of a peak is given back when its files are gone, and not with the process.
#[test]
fn memory_of_a_peak_of_files_comes_back() {
    const FILES: usize = 700;
    let _alone = exclusive();
    let tree = Tree::new();
    let name = |number: usize| format!("{number}.bin");
    (0..FILES).for_each(|number| drop(tree.file(name(number), vec![number as u8; 60_000])));
    tree.file("hello.txt", "hello");
    let server = Server::start(tree.path(), |launch| {
        launch.arg("--workers").arg("1").set(|settings| {
            settings.set("cache.pinned_limit", "\"128MiB\"");
            settings.set("compression.enabled", false);
        });
    });
    server.settle();
    let mut client = server.connect();
    assert_eq!(client.get("/hello.txt").text(), "hello");
    let before = server.held();
    for number in 0..FILES {
        assert_eq!(client.get(&format!("/{}", name(number))).body.len(), 60_000);
    }
    let peak = server.held().since(before).memory;
    assert!(peak > 36 * MIB, "{peak} bytes more");
    for number in 0..FILES {
        std::fs::remove_file(tree.at(name(number))).expect("removed");
    }
    eventually("the memory is given back", || server.held().since(before).memory < 4 * MIB);
    assert_eq!(client.get("/0.bin").status, 404);
    assert_eq!(client.get("/hello.txt").text(), "hello");
}
