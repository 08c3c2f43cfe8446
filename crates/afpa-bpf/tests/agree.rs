//! Nothing that user mode would refuse, or answer otherwise, is answered by the programs.
//!
//! The programs' request parser and that of afpa-http are asked about the same bytes: the shared
//! corpus, heads of real clients, and generated heads. The programs' parser runs as a process
//! (`agree/user_space.c`, for very many heads) and in the kernel (`agree/judge.bpf.c`); both are the
//! headers under `bpf/` and a few lines around them. `fuzz/` has the same comparison as a target.

#[path = "../../afpa-http/corpus/reader.rs"]
#[allow(dead_code)]
mod corpus;

#[allow(unreachable_pub)]
mod compiled;

#[allow(dead_code, unreachable_pub)]
#[path = "agree/"]
mod agree {
    pub mod framing;
    pub mod generator;
    pub mod heads;
    pub mod in_kernel;
    pub mod property;
    pub mod segments;
    pub mod unsafe_targets;
    pub mod user_space;
    pub mod world;
}

use agree::framing::Taken;
use agree::generator::{Chance, head};
use agree::heads::{LINES, REQUEST_LINES, browser, closing, for_user_mode, ordinary, padded};
use agree::in_kernel::{How, Judge};
use agree::property::{Certainty, Verdict, agree, user_mode};
use agree::user_space::Parser;
use agree::world::World;

/// Generated heads in the ordinary test.
const GENERATED: usize = 200_000;
/// The programs look at heads of 2,560 bytes at the most; a few longer ones show that.
const LONGEST: usize = 10_000;
/// Heads made and asked about at a time.
const ROUND: usize = 20_000;

/// Every spelling of a path that the corpus has can be pinned, so that its heads can be answered.
fn world() -> World {
    World::new(corpus::all().iter().filter_map(|case| {
        let line = case.head.split(|&byte| byte == b'\r').next()?;
        Some(line.split(|&byte| byte == b' ').nth(1)?.to_vec())
    }))
}

/// Whole wires and heads alone of the corpus, heads of clients, and one head for each odd line.
fn written() -> Vec<Vec<u8>> {
    let mut heads: Vec<Vec<u8>> =
        corpus::all().into_iter().flat_map(|case| [case.wire(), case.head]).collect();
    let clients = ordinary().into_iter().chain(closing()).chain(for_user_mode());
    heads.extend(clients.map(|head| head.bytes));
    let with = |request_line: &str, lines: &[&str]| {
        [&[request_line], lines, &["", ""]].concat().join("\r\n").into_bytes()
    };
    heads.extend(REQUEST_LINES.iter().map(|line| with(line, &["Host: a"])));
    for line in LINES {
        heads.push(with("GET /index.html HTTP/1.1", &[line]));
        heads.push(with("GET /index.html HTTP/1.1", &["Host: a", line]));
        heads.push(with("HEAD /index.html HTTP/1.1", &[line, "Accept-Encoding: br", "Host: a"]));
        heads.push(with("GET / HTTP/1.1", &["Host: a", "If-None-Match: \"1-1\"", line]));
    }
    for count in [62, 63, 64, 65, 99, 100, 101] {
        heads.push(with("GET / HTTP/1.1", &[&["Host: a"][..], &vec!["X: y"; count - 1]].concat()));
    }
    heads.retain(|head| head.len() < LONGEST);
    heads
}

/// Asks both, complains about every difference, and says how often the programs answered.
fn compare(world: &World, heads: &[Vec<u8>], verdicts: &[Verdict]) -> Tally {
    let mut tally = Tally::default();
    let mut differences = 0;
    for (head, verdict) in heads.iter().zip(verdicts) {
        if let Err(difference) = agree(world, head, *verdict) {
            differences += 1;
            if differences <= 10 {
                eprintln!("b\"{}\"\n    {difference}", head.escape_ascii());
            }
        }
        tally.note(*verdict, user_mode(world, head, verdict.may_close).is_ok());
    }
    assert_eq!(differences, 0, "heads on which the parsers differ, of {}", heads.len());
    tally
}

#[derive(Default)]
struct Tally {
    heads: usize,
    one: usize,
    by_programs: usize,
    by_user_mode: usize,
}

impl Tally {
    fn note(&mut self, verdict: Verdict, by_user_mode: bool) {
        self.heads += 1;
        self.one += usize::from(verdict.certainty > Certainty::Unsure);
        self.by_programs += usize::from(verdict.answers());
        self.by_user_mode += usize::from(by_user_mode);
    }

    fn add(&mut self, other: &Self) {
        self.heads += other.heads;
        self.one += other.one;
        self.by_programs += other.by_programs;
        self.by_user_mode += other.by_user_mode;
    }

    fn print(&self, what: &str) {
        println!(
            "{what}: {} heads; user mode would answer {} from its cache, the programs {}; another {} are one request for them",
            self.heads,
            self.by_user_mode,
            self.by_programs,
            self.one - self.by_programs
        );
    }
}

#[test]
fn written_heads() {
    let (folder, world) = (tempfile::tempdir().expect("a folder"), world());
    let heads = written();
    if let Some(mut parser) = Parser::start(folder.path(), &world) {
        let tally = compare(&world, &heads, &parser.judge(&heads));
        tally.print("corpus and odd lines, in user space");
        parser.let_close(true);
        compare(&world, &heads, &parser.judge(&heads)).print("the same without a socket");
        assert!(tally.by_programs > 200, "the comparison is not empty");
    }
    let Some(mut judge) = Judge::load(folder.path(), &world) else { return };
    let heads: Vec<_> = heads.into_iter().filter(|head| fits_a_packet(head)).collect();
    for how in [How::New, How::Known, How::Known] {
        let verdicts: Vec<_> = heads.iter().map(|head| judge.judge(head, how)).collect();
        compare(&world, &heads, &verdicts).print(&format!("the same in the kernel, {how:?}"));
    }
}

/// Fields of no class, and those that matter to the object, are for its server.
#[test]
fn fields_that_may_matter_are_left_to_the_server() {
    let (folder, world) = (tempfile::tempdir().expect("a folder"), world());
    let Some(mut parser) = Parser::start(folder.path(), &world) else { return };
    assert_eq!(afpa_http::request::FieldClasses::UNKNOWN.bits(), afpa_bpf::FIELD_UNKNOWN);
    let mut answered = |target: &str, line: &str| {
        let head = format!("GET {target} HTTP/1.1\r\nHost: a\r\n{line}\r\n\r\n").into_bytes();
        let verdict = parser.judge(&[&head])[0];
        assert_eq!(agree(&world, &head, verdict), Ok(()), "{target} {line}");
        verdict.answers()
    };
    for (target, line, expected) in [
        ("/", "Cookie: a=b", true),
        ("/", "Sec-CH-UA-Form-Factors: x", true),
        ("/", "X-Forwarded-Proto: https", true),
        ("/", "X-HTTP-Method-Override: PUT", false),
        ("/", "X-Forwarded-Protocols: https", false),
        ("/dir/", "Cookie: a=b", false),
        ("/dir/", "Accept-Encoding: gzip", true),
        ("/a%20b.css", "Via: 1.1 x", false),
        ("/a%20b.css", "X-HTTP-Method-Override: PUT", true),
        ("/index.html", "Anything: at all", true),
        ("/", "If-None-Match: \"another\"", false),
        ("/index.html", "If-None-Match: \"another\"", true),
    ] {
        assert_eq!(answered(target, line), expected, "{target} {line}");
    }
}

/// Members of Accept-Encoding, good and bad, and blanks around them.
const CODINGS: [&str; 16] = [
    "gzip",
    "br",
    "zstd",
    "identity",
    "*",
    "deflate",
    "x-gzip",
    "compress",
    "xz",
    "GZip",
    "Br",
    "gzipx",
    "",
    "gz ip",
    "identityx",
    "b",
];
const WEIGHTS: [&str; 24] = [
    "",
    "",
    "",
    ";q=1",
    ";q=0",
    ";q=0.5",
    ";q=0.8",
    "; q=0.3",
    " ;q=0.999",
    ";q=1.0",
    ";q=1.000",
    ";q=1.001",
    ";q=0.001",
    ";Q=0.5",
    ";q=.5",
    ";q=0.",
    ";q=",
    ";",
    ";q=2",
    ";q=0.5;x=1",
    ";x=1",
    ";q = 0.5",
    ";q=0.12a",
    ";q=0.0000",
];

/// Weights, wildcards and unknown codings give the coding that user mode chooses, from each set of stored ones.
#[test]
fn weights_choose_as_user_mode_does() {
    let stored = (0..8).map(|more| format!("/{}", "x".repeat(15 + more)).into_bytes());
    let world = World::new(stored.clone());
    let folder = tempfile::tempdir().expect("a folder");
    let Some(mut parser) = Parser::start(folder.path(), &world) else { return };
    let mut judge = Judge::load(folder.path(), &world);
    let mut chance = Chance(0x1405_7b7e_f767_814f);
    let paths: Vec<String> = stored.map(|path| String::from_utf8(path).expect("ASCII")).collect();
    let (mut asked, mut answered) = (0, 0);
    for _ in 0..40 {
        let heads: Vec<Vec<u8>> = (0..1000)
            .map(|_| {
                let members: Vec<String> = (0..chance.below(7))
                    .map(|_| format!("{}{}", chance.pick(&CODINGS), chance.pick(&WEIGHTS)))
                    .collect();
                let comma = chance.pick(&[",", ", ", " ,"]);
                let (path, list) = (chance.pick(&paths), members.join(comma));
                format!("GET {path} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {list}\r\n\r\n")
                    .into_bytes()
            })
            .collect();
        let verdicts = parser.judge(&heads);
        let tally = compare(&world, &heads, &verdicts);
        (asked, answered) = (asked + tally.heads, answered + tally.by_programs);
        if let Some(judge) = &mut judge {
            same_in_kernel(judge, &heads[..100], &verdicts);
        }
    }
    println!("{answered} of {asked} heads with odd lists are answered by the programs");
    assert_eq!(answered, asked, "whatever the list is, the choice is certain");
}

/// The end of such a request is certain, so the connection does not stay with user mode (H6).
#[test]
fn odd_requests_with_a_certain_end() {
    let (folder, world) = (tempfile::tempdir().expect("a folder"), world());
    let Some(mut parser) = Parser::start(folder.path(), &world) else { return };
    let mut certain = |line: &str, field: &str| {
        let head = format!("{line}\r\nHost: a\r\n{field}\r\n\r\n").into_bytes();
        let verdict = parser.judge(&[&head])[0];
        assert_eq!(agree(&world, &head, verdict), Ok(()), "{line} {field}");
        let framing = parser.frame(&[&[&head[..], &head].concat()])[0];
        let both = framing.is_sure() && framing.requests == 2;
        assert_eq!(
            both,
            verdict.certainty > Certainty::Unsure,
            "{line} {field}: alone and behind one"
        );
        (verdict.certainty, verdict.answers())
    };
    let get = "GET /index.html HTTP/1.1";
    for (line, field, answered) in [
        (get, "Connection: TE", true),
        (get, "Connection:", true),
        (get, "Connection: keep-alive, TE", true),
        (get, "Content-Length: 0", true),
        (
            get,
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk",
            true,
        ),
        ("GET / HTTP/1.1", "Connection: Upgrade\r\nUpgrade: websocket", false),
        ("GET /dir/ HTTP/1.1", "Content-Length: 0", false),
        ("GET /index.html HTTP/1.0", "Connection: Keep-Alive", true),
        ("GET http://a/index.html HTTP/1.1", "X: y", false),
        ("HEAD HTTPS://a:1?b HTTP/1.1", "X: y", false),
    ] {
        let expected = if answered { Certainty::Answerable } else { Certainty::One };
        let (certainty, answers) = certain(line, field);
        assert!(certainty >= expected && answers == answered, "{line} {field}: {certainty:?}");
    }
    for (line, field) in [
        (get, "Connection: close"),
        (get, "Connection: TE, close"),
        (get, "Connection: x"),
        (get, "Content-Length: 1"),
        (get, "Transfer-Encoding: chunked"),
        (get, "Expect: 100-continue"),
        ("GET /index.html HTTP/1.0", "X: y"),
        ("GET /index.html HTTP/1.0", "Connection: keep-alive, close"),
        ("GET ftp://a/ HTTP/1.1", "X: y"),
        ("\r\n\r\nGET / HTTP/1.1", "X: y"),
    ] {
        assert_eq!(certain(line, field), (Certainty::Unsure, false), "{line} {field}");
    }
    let one = b"\r\nGET /index.html HTTP/1.1\r\nHost: a\r\n\r\n";
    let framing = parser.frame(&[one])[0];
    assert!(
        framing.is_sure() && framing.requests == 1,
        "one empty line is passed over: {framing:?}"
    );
    assert_eq!(agree::framing::agree(one, &framing), Ok(()));
}

/// Found by `generated_heads`: word tricks that took a neighbour of a character for the character.
#[test]
fn hosts_of_almost_the_right_characters() {
    let (folder, world) = (tempfile::tempdir().expect("a folder"), world());
    let Some(mut parser) = Parser::start(folder.path(), &world) else { return };
    let answered = |host: &str, parser: &mut Parser| {
        let head = format!("GET /index.html HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes();
        let verdicts = parser.judge(&[&head]);
        assert_eq!(agree(&world, &head, verdicts[0]), Ok(()), "{host}");
        verdicts[0].answers()
    };
    for good in ["[fd99::1]:8080", "[FD99::1]:8080", "A~B", "Under_Score.", "a.b"] {
        assert!(answered(good, &mut parser), "{good}");
    }
    // Or-ing 0x20 folds `{` and `[`, `^` and `~`; a borrow makes the `/` behind a dot look like one.
    for bad in ["{fd99::1}:8080", "a^b", "a./b", "a.//"] {
        assert!(!answered(bad, &mut parser), "{bad}");
    }
    // The dot of the root: user mode knows whose name it is.
    for dotted in ["a.", "a.:80", "other.example."] {
        assert!(!answered(dotted, &mut parser), "{dotted}");
    }
}

#[test]
fn generated_heads() {
    let (folder, world) = (tempfile::tempdir().expect("a folder"), world());
    let seeds: Vec<_> = written().into_iter().filter(|seed| fits_a_packet(seed)).collect();
    let Some(mut parser) = Parser::start(folder.path(), &world) else { return };
    let mut judge = Judge::load(folder.path(), &world);
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    let mut tally = Tally::default();
    while tally.heads < wanted() {
        let heads: Vec<_> = (0..ROUND).map(|_| head(&seeds, &mut chance)).collect();
        parser.let_close(true);
        compare(&world, &heads, &parser.judge(&heads));
        parser.let_close(false);
        let verdicts = parser.judge(&heads);
        tally.add(&compare(&world, &heads, &verdicts));
        if let Some(judge) = &mut judge {
            same_in_kernel(judge, &heads[..ROUND / 10], &verdicts);
        }
    }
    tally.print("generated, in user space, one in ten in the kernel as well");
    assert!(tally.by_programs > tally.heads / 20, "the comparison is not empty");
}

/// Requests together, and with content, in the ordinary test.
const SEGMENTS: usize = 60_000;

#[test]
fn requests_that_go_up_together() {
    let (folder, world) = (tempfile::tempdir().expect("a folder"), world());
    let Some(mut parser) = Parser::start(folder.path(), &world) else { return };
    let mut judge = Judge::load(folder.path(), &world);
    let seeds: Vec<_> = written().into_iter().filter(|seed| fits_a_packet(seed)).collect();
    let mut chance = Chance(0x2545_f491_4f6c_dd1d);
    let segments: Vec<_> =
        (0..SEGMENTS).map(|_| agree::segments::segment(&seeds, &mut chance)).collect();
    let framings = parser.frame(&segments);
    let mut counted = [0; 3]; // segments that end with a request, that end with a part, requests
    for (at, (segment, framing)) in segments.iter().zip(&framings).enumerate() {
        if let Err(difference) = agree::framing::agree(segment, framing) {
            panic!("b\"{}\"\n    {difference}", segment.escape_ascii());
        }
        if let Some(judge) = judge.as_mut().filter(|_| at % 10 == 0) {
            assert_eq!(judge.frame(segment), *framing, "b\"{}\"", segment.escape_ascii());
        }
        counted[0] += usize::from(framing.taken == Taken::Last);
        counted[1] += usize::from(framing.taken == Taken::Part);
        counted[2] += if framing.is_sure() { framing.requests as usize } else { 0 };
    }
    println!("{SEGMENTS} segments; {counted:?} end with a request or a part; requests in these");
    assert!(counted.iter().all(|count| *count > SEGMENTS / 20), "the comparison is not empty");
}

/// Every request that user mode reads as unsafe is noted by its target.
#[test]
fn unsafe_requests_are_noted_by_their_targets() {
    let (folder, world) = (tempfile::tempdir().expect("a folder"), world());
    let Some(mut parser) = Parser::start(folder.path(), &world) else { return };
    let seeds: Vec<_> = written().into_iter().filter(|seed| fits_a_packet(seed)).collect();
    let mut chance = Chance(0x6c62_272e_07bb_0142);
    let mut requests: Vec<Vec<u8>> =
        (0..SEGMENTS).map(|_| agree::segments::segment(&seeds, &mut chance)).collect();
    for length in (1..=160).chain([300, 440]) {
        let path = format!("/{}", "x".repeat(length - 1));
        for start in
            ["POST ", "\r\nPOST ", "LONGEST-METHOD-OF-THIRTY-1-BYTES ", "PUT http://a.example:81"]
        {
            requests.push(format!("{start}{path} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes());
        }
    }
    let mut noted = 0;
    for (request, found) in requests.iter().zip(parser.unsafe_targets(&requests)) {
        match agree::unsafe_targets::agree(request, found) {
            Ok(place) => noted += usize::from(place),
            Err(difference) => panic!("b\"{}\"\n    {difference}", request.escape_ascii()),
        }
    }
    println!("{noted} of {} requests are unsafe, and noted", requests.len());
    assert!(noted > SEGMENTS / 20, "the comparison is not empty");
}

/// `AFPA_AGREE_HEADS` asks for another number of heads.
fn wanted() -> usize {
    let said = std::env::var("AFPA_AGREE_HEADS");
    said.map_or(GENERATED, |number| number.parse().expect("a number"))
}

fn same_in_kernel(judge: &mut Judge, heads: &[Vec<u8>], in_user_space: &[Verdict]) {
    for (head, in_user_space) in heads.iter().zip(in_user_space) {
        for how in [How::New, How::Known] {
            if fits_a_packet(head) {
                let in_kernel = judge.judge(head, how);
                assert_eq!(in_kernel, *in_user_space, "{how:?} b\"{}\"", head.escape_ascii());
            }
        }
    }
}

/// Test packets are a page less their surroundings, and have something behind the Ethernet header.
fn fits_a_packet(head: &[u8]) -> bool {
    (1..3000).contains(&head.len())
}

/// Recorded heads of the programs that people use: which ones the kernel answers.
#[test]
fn real_clients_are_answered() {
    let (folder, world) = (tempfile::tempdir().expect("a folder"), world());
    let Some(mut parser) = Parser::start(folder.path(), &world) else { return };
    let share = |heads: &[agree::heads::Head], parser: &mut Parser| {
        let bytes: Vec<_> = heads.iter().map(|head| head.bytes.clone()).collect();
        let verdicts = parser.judge(&bytes);
        for (head, verdict) in heads.iter().zip(&verdicts) {
            let outcome = if verdict.answers() { "answered" } else { verdict.reason.text() };
            println!("{:44} {:>5} bytes  {outcome}", head.client, head.bytes.len());
        }
        let answered = verdicts.iter().filter(|verdict| verdict.answers()).count();
        let stays = verdicts.iter().filter(|verdict| verdict.certainty > Certainty::Unsure).count();
        (answered, stays)
    };
    let (fit, ends, unfit) = (ordinary(), closing(), for_user_mode());
    println!("with a socket, and without one:");
    assert_eq!(share(&fit, &mut parser).0, fit.len(), "the fast path is for all of them");
    println!("for user mode:");
    let (answered, stays) = share(&unfit, &mut parser);
    assert_eq!(answered, 0, "these ask for what only user mode does");
    assert_eq!(stays, unfit.len(), "and yet the connection comes back");
    println!("for user mode, with a socket:");
    assert_eq!(share(&ends, &mut parser), (0, 0), "their sockets have to be closed");
    parser.let_close(true);
    println!("the same without one:");
    assert_eq!(share(&ends, &mut parser).0, ends.len(), "here the programs close, too");
    let all = fit.len() + ends.len() + unfit.len();
    println!("{} of {all} heads are answered", fit.len() + ends.len());
    assert!((fit.len() + ends.len()) * 100 >= all * 95);
}

#[test]
fn cost_of_deriving_a_request() {
    let (folder, world) = (tempfile::tempdir().expect("a folder"), world());
    let Some(mut judge) = Judge::load(folder.path(), &world) else { return };
    println!("{:28} {:>7} {:>7} {:>7}   ns", "head", "copied", "new", "known");
    let shapes =
        [("two lines, 100 bytes", padded("/", 100)), ("three lines, 500 bytes", padded("/", 500))];
    let browsers = [700, 1024, 1448, 2000].map(|total| ("browser", browser("/", total)));
    for (name, head) in shapes.into_iter().chain(browsers) {
        let [copied, new, known] =
            [How::OnlyLoad, How::New, How::Known].map(|how| judge.time(&head, how).as_nanos());
        let name = format!("{name}, {} bytes", head.len());
        println!(
            "{name:28} {copied:>7} {:>7} {:>7}",
            new.saturating_sub(copied),
            known.saturating_sub(copied)
        );
        assert!(judge.judge(&head, How::Known).answers(), "{name} is answered");
    }
}
