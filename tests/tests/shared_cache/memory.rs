//! The memory that the process really holds when clients fill places that the limit of the shared cache might not count.

use afpa_testkit::{
    Client,
    held::{Growth, MIB},
};

use crate::origin::{Asked, Origin, ok};

const LIMIT: usize = 4 << 20;
/// Memory of the process beside the shared cache: buffers, pools, memory that the allocator has not given back.
const SLACK: u64 = 6 * MIB;

/// Answers of two bytes that are kept, and vary by the fields that the path names.
fn origin() -> Origin {
    Origin::start(|asked: &Asked| {
        let vary = match asked.target.strip_prefix("/vary/") {
            Some(name) => {
                format!("Vary: {}\r\n", name.split(['/', '?']).next().unwrap_or_default())
            }
            None => String::new(),
        };
        let tags = match asked.target.strip_prefix("/tags/") {
            Some(_) => format!("Cache-Tag: {}\r\n", "t".repeat(1000)),
            None => String::new(),
        };
        let content =
            if asked.target.starts_with("/long/") { "x".repeat(30_000) } else { "ok".to_owned() };
        ok(&format!("Cache-Control: max-age=600\r\n{vary}{tags}"), &content)
    })
}

/// The name of the place that is filled, the target and the fields of each request that fills it, and their number.
type Kind<'a> = (&'a str, &'a dyn Fn(usize) -> (String, String), usize);

fn ask(client: &mut Client, target: &str, fields: &str) {
    assert_eq!(client.get_with(target, fields).status, 200, "{target}");
}

/// Each of these fills the cache with something else of the client's choice. The cache ejects the objects of one kind for
/// the next, so that all kinds together hold no more than the limit.
#[test]
fn the_process_holds_no_more_than_the_limit_whatever_clients_choose() {
    let origin = origin();
    let proxy = origin.proxy_within(LIMIT, "");
    let mut client = proxy.connect();
    (0..50).for_each(|number| ask(&mut client, &format!("/warm/{number}"), ""));
    let before = proxy.held();
    let (long, huge) = ("k".repeat(1500), "k".repeat(7000));
    let vary = |n: usize, value: &str| (format!("/vary/x-a?{n}"), format!("X-A: {value}\r\n"));
    let kinds: [Kind<'_>; 8] = [
        ("content", &|n| (format!("/long/{n}"), String::new()), 300),
        ("short answers", &|n| (format!("/{n}"), String::new()), 4000),
        ("URLs", &|n| (format!("/{n}/{long}"), String::new()), 2500),
        ("URLs beyond what is kept", &|n| (format!("/{n}/{huge}"), String::new()), 1500),
        ("variants", &|n| vary(0, &format!("{n}{long}")), 1500),
        ("URLs with variants", &|n| vary(n, &long), 2500),
        ("variants beyond what is kept", &|n| vary(n, &huge), 1500),
        ("tags", &|n| (format!("/tags/{n}"), String::new()), 2000),
    ];
    for (kind, request, count) in kinds {
        for number in 0..count {
            let (target, fields) = request(number);
            ask(&mut client, &target, &fields);
        }
        let bound = Growth { memory: LIMIT as u64 + SLACK, descriptors: 64, threads: 16 };
        proxy.held().since(before).is_at_most(kind, bound);
    }
}
