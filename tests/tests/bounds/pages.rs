//! A fifth of `[cache] pinned_limit`: pages that are made in memory for a response, and that its client does not read.

use afpa_h2::frame::setting;
use afpa_testkit::{
    Server, Tree, eventually,
    exclusive::exclusive,
    held::{Growth, MIB},
};
use afpa_tests::h2::{H2Client, request};

const ARENA: u64 = 10 * MIB;
const LIMIT: u64 = ARENA / 5;
const STREAMS: usize = 24;

/// Each request makes a page of its own: one that shows the time, and a listing.
#[test]
fn pages_that_nobody_reads_hold_their_limit() {
    let _alone = exclusive();
    let tree = Tree::new();
    let content = "z".repeat(150_000);
    tree.file("page.shtml", format!("<!--#echo var=\"DATE_LOCAL\" -->{content}"));
    for number in 0..300 {
        tree.file(format!("many/{number}{}", "n".repeat(200)), "");
    }
    tree.file("small.txt", "small");
    let root = tree.path().display();
    let server = Server::start(tree.path(), |launch| {
        launch.written(|listen| {
            format!(
                "workers = 1\n[http2]\ncleartext = true\n[cache]\npinned_limit = \"{ARENA}B\"\n\
                 [[site]]\nlisten = [\"{listen}\"]\nroot = \"{root}\"\nlisting = true\n\
                 [[site.filter]]\nextensions = [\"shtml\"]\nincludes = true\n"
            )
        });
    });
    server.settle();
    for path in ["/page.shtml", "/many/"] {
        let whole = server.get(path);
        assert!(whole.status == 200 && whole.body.len() > 100_000, "{path}: {}", whole.body.len());
        let before = server.held();
        let none = [(setting::INITIAL_WINDOW_SIZE, 0)];
        let mut client = H2Client::connect_with(server.address(), &none);
        client.opens_windows = false;
        let mut answered = [0, 0];
        for _ in 0..STREAMS {
            let id = client.request(&request("GET", path), b"");
            client.until("its head", |client| !client.so_far(id).fields.is_empty());
            match client.so_far(id).fields[0].1.as_str() {
                "200" => answered[0] += 1,
                "503" => answered[1] += 1,
                other => panic!("{path}: {other}"),
            }
        }
        let pages = LIMIT as usize / whole.body.len();
        // That of the first request may not have been let go at once.
        assert!((pages - 1..=pages).contains(&answered[0]), "{path}: {answered:?} of {pages}");
        assert_eq!(answered[0] + answered[1], STREAMS);
        // Besides, each stream has a little of its content, and helpers make pages.
        let memory = LIMIT + 3 * MIB;
        let bound = Growth { memory, descriptors: pages + 8, threads: 16 };
        server.held().since(before).is_at_most(path, bound);
        assert_eq!(server.get("/small.txt").text(), "small");
        drop(client);
        eventually("there is room again", || server.get(path).status == 200);
    }
}
