//! Ten thousand random requests, each answered as the naive reference says.

use afpa_testkit::{
    Asked, Client, Random, ReceiveError, Response, Server, Tree, figure, response::excerpt,
    tree::patterned,
};
use afpa_tests::{
    codings::{encode, settle},
    dates::http_date,
    h2::{self, H2Client},
    reference::{Expected, Reference, Request, target_of},
    tls::{Authority, TlsServer},
};

const REQUESTS: usize = 10_000;

/// Every file was changed last around this time.
const MODIFIED: u64 = 1_600_000_000;

const FILES: [&str; 12] = [
    "index.html",
    "page.html",
    "page.html.gz",
    "style.css",
    "data.json",
    "small.txt",
    "empty.txt",
    "picture.png",
    "large.bin",
    "folder/index.html",
    "folder/in ner/ünï.txt",
    "100% ~x!.txt",
];

#[test]
fn ten_thousand_random_requests_are_answered_as_the_reference_says() {
    let tree = site();
    let server = Server::start(tree.path(), |_| ());
    compare(&tree, &server, || server.connect(), REQUESTS);
}

#[test]
fn random_requests_over_tls_are_answered_as_the_reference_says() {
    let (tree, authority) = (site(), Authority::new());
    let server = TlsServer::start(&authority, tree.path());
    let way = authority.way(&server);
    compare(&tree, &server.server, || way.connect(), REQUESTS / 5);
}

/// Sends `requests` by connections that `connect` makes.
#[track_caller]
fn compare(tree: &Tree, server: &Server, connect: impl Fn() -> Client, requests: usize) {
    let seed = Random::seed_or(20_040_614);
    figure!("seed {seed}; AFPA_SEED chooses another");
    settle(server, &FILES.map(target_of));
    // Objects of their own, though the files are the same.
    settle(server, &["/", "/folder/"]);
    let mut teacher = connect();
    let reference = Reference::learn(tree.path(), &FILES, |target, coding| {
        teacher.get_with(target, &format!("Accept-Encoding: {coding}\r\n"))
    });
    let mut random = Random::new(seed);
    let maker = Maker { tags: reference.tags() };
    let mut client = None;
    let (mut sent, mut done) = (0, 0);
    while done < requests {
        let count = if random.one_in(3) { 1 + random.below(12) } else { 1 };
        let batch: Vec<Request> = (0..count).map(|_| maker.request(&mut random)).collect();
        let connection = client.get_or_insert_with(&connect);
        let answered = exchange(connection, &batch, &reference, &mut random)
            .unwrap_or_else(|failure| panic!("seed {seed}, after {done} requests: {failure}"));
        sent += batch.len();
        done += answered.count;
        if answered.closed || random.one_in(50) {
            client = None;
        }
    }
    figure!("{done} responses compared, {sent} requests sent");
}

#[test]
fn ten_thousand_random_requests_over_http_2_are_answered_the_same_way() {
    let seed = Random::seed_or(20_150_514);
    figure!("seed {seed}; AFPA_SEED chooses another");
    let tree = site();
    let server = Server::start(tree.path(), |launch| {
        launch.set(|settings| {
            settings.set("http2.cleartext", true);
        });
    });
    settle(&server, &FILES.map(target_of));
    settle(&server, &["/", "/folder/"]);
    let mut teacher = server.connect();
    let reference = Reference::learn(tree.path(), &FILES, |target, coding| {
        teacher.get_with(target, &format!("Accept-Encoding: {coding}\r\n"))
    });
    let mut random = Random::new(seed);
    let maker = Maker { tags: reference.tags() };
    let mut client = H2Client::connect(&server);
    let mut done = 0;
    while done < REQUESTS {
        let count = 1 + random.below(40);
        let batch: Vec<Request> = (0..count).map(|_| stream_request(&maker, &mut random)).collect();
        let ids: Vec<u32> = batch.iter().map(|request| send(&mut client, request)).collect();
        for (request, id) in batch.iter().zip(ids) {
            let expected = reference.answer(request);
            let response = client.response(id);
            expected.check(&response).unwrap_or_else(|why| {
                let sent = excerpt(&request.bytes());
                panic!("seed {seed}: {why}\n{sent}\n{response:?}\nexpected {}", short(&expected))
            });
        }
        done += count;
        if random.one_in(20) {
            client = H2Client::connect(&server);
        }
    }
    figure!("{done} responses compared");
}

/// A request that HTTP/2 can say: it has no version, and no field about the connection.
fn stream_request(maker: &Maker, random: &mut Random) -> Request {
    let mut request = maker.request(random);
    request.minor_version = 1;
    request.fields.retain(|(name, _)| *name != "Connection");
    request
}

fn send(client: &mut H2Client, request: &Request) -> u32 {
    let length = request.body.len().to_string();
    let mut fields = h2::request(&request.method, &request.target);
    let names: Vec<String> =
        request.fields.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
    for (name, (_, value)) in names.iter().zip(&request.fields) {
        fields.push((name, value));
    }
    if !request.body.is_empty() {
        fields.push(("content-length", &length));
    }
    client.request(&fields, &request.body)
}

struct Answered {
    count: usize,
    closed: bool,
}

/// Sends a batch in one go or in pieces, and compares every response that must come.
fn exchange(
    client: &mut Client,
    batch: &[Request],
    reference: &Reference,
    random: &mut Random,
) -> Result<Answered, String> {
    let bytes: Vec<u8> = batch.iter().flat_map(Request::bytes).collect();
    let sending = match random.below(4) {
        0 => client.send_split(&bytes, random.below(bytes.len())),
        _ => client.try_send(&bytes),
    };
    sending.map_err(|error| format!("{error} while sending {batch:#?}"))?;
    for (index, request) in batch.iter().enumerate() {
        let expected = reference.answer(request);
        let asked = if request.method == "HEAD" { Asked::Head } else { Asked::Body };
        let received = client.try_receive(asked);
        let response = received.map_err(|error| lost(batch, index, &expected, &error))?;
        judge(request, &expected, &response)
            .map_err(|why| differs(batch, index, &expected, &response, &why))?;
        if response.says_close() {
            client.assert_closed();
            return Ok(Answered { count: index + 1, closed: true });
        }
    }
    Ok(Answered { count: batch.len(), closed: false })
}

fn judge(request: &Request, expected: &Expected, response: &Response) -> Result<(), String> {
    expected.check(response)?;
    if request.closes() && !response.says_close() {
        return Err("does not close".to_owned());
    }
    // Only what cannot be understood ends a connection that was to go on.
    if response.says_close() && !request.closes() && response.status < 400 {
        return Err("closes without need".to_owned());
    }
    Ok(())
}

fn lost(batch: &[Request], index: usize, expected: &Expected, error: &ReceiveError) -> String {
    format!("no response to request {index} of {batch:#?}\n{error}\nexpected {}", short(expected))
}

fn differs(
    batch: &[Request],
    index: usize,
    expected: &Expected,
    response: &Response,
    why: &str,
) -> String {
    let request = excerpt(&batch[index].bytes());
    format!(
        "{why}\nrequest {index} of {}: {request}\nresponse: {response:?}\nexpected {}",
        batch.len(),
        short(expected)
    )
}

fn short(expected: &Expected) -> String {
    let body = expected.body.as_deref().map(excerpt);
    let ranges = expected.ranges.as_ref().map(|ranges| &ranges.spans);
    format!("{:?} {:?} {ranges:?} {body:?}", expected.statuses, expected.fields)
}

/// Files that differ in all that matters: size, media type, siblings, name.
fn site() -> Tree {
    let tree = Tree::new();
    let text: String = (0..600).map(|n| format!("<p>paragraph {n}</p>\n")).collect();
    tree.file("index.html", &text);
    tree.file("page.html", &text);
    tree.file("page.html.gz", encode("gzip", text.as_bytes()));
    tree.file("page.html.br", encode("br", text.as_bytes()));
    tree.file("page.html.zst", encode("zstd", text.as_bytes()));
    tree.file("style.css", &text);
    tree.file("style.css.gz", encode("gzip", text.as_bytes()));
    tree.file("data.json", &text);
    tree.file("small.txt", "small");
    tree.file("empty.txt", "");
    tree.file("picture.png", patterned(20_000));
    tree.file("large.bin", patterned(700_000));
    tree.file("folder/index.html", "folder");
    tree.file("folder/in ner/ünï.txt", "inner");
    tree.file("100% ~x!.txt", "marks");
    tree.file(".hidden/file.txt", "secret");
    for name in FILES {
        tree.set_modified(name, MODIFIED + name.len() as u64 % 3);
    }
    for suffix in ["br", "zst"] {
        tree.set_modified(format!("page.html.{suffix}"), MODIFIED + 5);
    }
    tree.set_modified("style.css.gz", MODIFIED + 5);
    tree
}

/// Makes the value of one field.
type MakeValue = fn(&Maker, &mut Random) -> String;

/// Makes requests.
struct Maker {
    tags: Vec<String>,
}

impl Maker {
    fn request(&self, random: &mut Random) -> Request {
        let method = self.method(random);
        let minor_version = if random.one_in(8) { 0 } else { 1 };
        let has_body = method != "GET" && method != "HEAD" && random.one_in(2);
        let size = if has_body { 1 + random.below(3000) } else { 0 };
        Request {
            method: method.to_owned(),
            target: target(random),
            minor_version,
            fields: self.fields(random, minor_version),
            body: random.bytes(size),
        }
    }

    fn method(&self, random: &mut Random) -> &'static str {
        if !random.one_in(10) {
            return if random.one_in(5) { "HEAD" } else { "GET" };
        }
        random.pick::<&str>(&["OPTIONS", "POST", "PUT", "DELETE", "PATCH", "TRACE", "BREW", "gEt"])
    }

    fn fields(&self, random: &mut Random, minor_version: u8) -> Vec<(&'static str, String)> {
        let mut fields = Vec::new();
        let makers: [(usize, &'static str, MakeValue); 7] = [
            (3, "Accept-Encoding", |_, random| accept_encoding(random)),
            (8, "If-None-Match", Self::tag_list),
            (16, "If-Match", Self::tag_list),
            (10, "If-Modified-Since", |_, random| date(random)),
            (16, "If-Unmodified-Since", |_, random| date(random)),
            (4, "Range", |_, random| range(random)),
            (9, "If-Range", |maker, random| match random.one_in(2) {
                true => random.pick(&maker.tags).clone(),
                false => date(random),
            }),
        ];
        for (rarity, name, make) in makers {
            if random.one_in(rarity) {
                fields.push((name, make(self, random)));
            }
        }
        let stay = if minor_version == 0 { 2 } else { 25 };
        if random.one_in(stay) {
            let option = if minor_version == 0 { "keep-alive" } else { "close" };
            fields.push(("Connection", option.to_owned()));
        }
        if random.one_in(4) {
            fields.push(("User-Agent", "x".repeat(random.below(200))));
        }
        fields
    }

    fn tag_list(&self, random: &mut Random) -> String {
        match random.below(6) {
            0 => "*".to_owned(),
            1 => "\"no such tag\"".to_owned(),
            2 => format!("W/{}", random.pick(&self.tags)),
            3 => format!("\"x\", {} ,\"y\"", random.pick(&self.tags)),
            _ => random.pick(&self.tags).clone(),
        }
    }
}

fn target(random: &mut Random) -> String {
    let known = [
        "/",
        "/index.html",
        "/page.html",
        "/page.html",
        "/style.css",
        "/data.json",
        "/small.txt",
        "/empty.txt",
        "/picture.png",
        "/large.bin",
        "/folder/",
        "/folder",
        "/folder/index.html",
        "/folder/in%20ner",
        "/folder/in%20ner/",
        "/folder/in%20ner/%C3%BCn%C3%AF.txt",
        "/100%25%20~x!.txt",
        "/page.html.gz",
        "/none",
        "/folder/none",
        "/small.txt/",
        "/.hidden/file.txt",
        "/.hidden",
    ];
    let mut target = match random.below(12) {
        0 => random.pick(&ODD).to_string(),
        _ => random.pick(&known).to_string(),
    };
    if random.one_in(6) {
        target = disguise(&target, random);
    }
    if random.one_in(6) {
        target += *random.pick::<&str>(&["?", "?a=b", "?a=%zz&b=..%2f", "?/../x", "?x?y"]);
    }
    target
}

/// Targets that are wrong, or right in an unusual way.
const ODD: [&str; 20] = [
    "/..",
    "/../index.html",
    "/%2e%2e/index.html",
    "/%2E./x",
    "/folder/../../x",
    "/a%",
    "/a%2",
    "/a%g0",
    "/%00",
    "/small%0atxt",
    "/%7f",
    "/small%2Ftxt",
    "/folder%2findex.html",
    "/%252e",
    "/small.txt%20",
    "/%C3%28",
    "/folder/./../small.txt",
    "/%2e/small.txt",
    "/folder/..",
    "/folder/.",
];

/// Writes the same target in another way: letters escaped, slashes doubled, dots put in.
fn disguise(target: &str, random: &mut Random) -> String {
    match random.below(4) {
        0 => target.replacen('/', "//", 1),
        1 => target.replacen('/', "/./", 1),
        2 => target.replacen('/', "/folder/../", 1),
        _ => {
            let mut disguised = String::new();
            let mut escape = 0;
            for letter in target.chars() {
                // Letters within an escape, or in the target's structure, stay as they are.
                escape = if letter == '%' { 2 } else { i32::max(escape - 1, -1) };
                match letter.is_ascii_lowercase() && escape < 0 && random.one_in(3) {
                    true => disguised += &format!("%{:02x}", u32::from(letter)),
                    false => disguised.push(letter),
                }
            }
            disguised
        }
    }
}

fn accept_encoding(random: &mut Random) -> String {
    let mut names = vec!["gzip", "br", "zstd", "*", "deflate", "x-gzip"];
    let mut items = Vec::new();
    for _ in 0..random.below(5) {
        let name = names.remove(random.below(names.len()));
        // The two names of one coding do not stand together: no rule says which counts.
        names.retain(|other| !(name.ends_with("gzip") && other.ends_with("gzip")));
        let quality =
            random.pick(&["", ";q=1", ";q=0.5", "; q=0.25", ";q=0", ";q=0.001", ";q=1.000"]);
        items.push(format!("{name}{quality}"));
    }
    items.join(*random.pick::<&str>(&[",", ", ", " , "]))
}

fn date(random: &mut Random) -> String {
    match random.below(8) {
        0 => "not a date".to_owned(),
        1 => "Sunday, 13-Sep-20 12:26:40 GMT".to_owned(),
        2 => http_date(0),
        _ => http_date(MODIFIED - 2 + random.below(8) as u64),
    }
}

fn range(random: &mut Random) -> String {
    let unit = match random.below(12) {
        0 => "BYTES",
        1 => "lines",
        _ => "bytes",
    };
    let count = if random.one_in(4) { 2 + random.below(4) } else { 1 };
    let specs: Vec<String> = (0..count).map(|_| range_spec(random)).collect();
    format!("{unit}={}", specs.join(if random.one_in(2) { "," } else { ", " }))
}

fn range_spec(random: &mut Random) -> String {
    let reach = *random.pick(&[3, 100, 10_000, 1_000_000]);
    let first = random.below(reach);
    match random.below(12) {
        0 => "x-y".to_owned(),
        1 => format!("{}-{first}", first + 1),
        2 | 3 => format!("{first}-"),
        4 | 5 => format!("-{}", 1 + random.below(reach)),
        _ => format!("{first}-{}", first + random.below(reach)),
    }
}
