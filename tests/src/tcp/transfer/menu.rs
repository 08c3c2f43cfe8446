//! The requests of a load, and nginx's own answers to them.

use afpa_bpf::FastPath;
use afpa_testkit::{Client, Random};

use crate::tcp::response::blank_date;
use crate::tcp::sample::{field, pin_reply};

/// One request, and nginx's own answer to it, its Date made blank.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// As it is sent.
    pub request: Vec<u8>,
    /// The whole response.
    pub expected: Vec<u8>,
}

/// Everything that is asked for.
#[derive(Debug, Default)]
pub struct Menu {
    /// May be answered by the kernel, once pinned: GET, HEAD, validators.
    pub pinned: Vec<Exchange>,
    /// Requests that only nginx can answer: large files, missing ones.
    pub other: Vec<Exchange>,
    /// With content.
    pub posts: Vec<Exchange>,
    /// Path, response to GET where it may be pinned, 304.
    objects: Vec<(String, Option<Vec<u8>>, Vec<u8>)>,
}

/// Answers that fit into one segment of every connection. Of longer ones whole answers are the point.
const ONE_SEGMENT: usize = 1400;

/// Files of the menu: name and content.
pub fn files(seed: u64) -> Vec<(String, Vec<u8>)> {
    let mut random = Random::new(seed);
    let mut files = Vec::new();
    for (number, size) in [0, 1, 2, 63, 64, 255, 512, 700, 901, 1024, 1100].into_iter().enumerate()
    {
        files.push((format!("small-{number}.html"), random.bytes(size)));
    }
    for (number, size) in [3_000, 20_000, 150_001].into_iter().enumerate() {
        files.push((format!("large-{number}.html"), random.bytes(size)));
    }
    files
}

/// Files whose responses take several segments, up to the most that the kernel gives.
pub fn long_files(seed: u64) -> Vec<(String, Vec<u8>)> {
    const SIZES: [usize; 14] = [
        1_200, 1_461, 2_000, 2_896, 4_096, 6_000, 8_192, 12_288, 14_336, 20_000, 32_768, 45_001,
        60_000, 65_536,
    ];
    let mut random = Random::new(seed);
    let file = |(number, size)| (format!("long-{number}.html"), random.bytes(size));
    SIZES.into_iter().enumerate().map(file).collect()
}

impl Menu {
    /// Ask nginx for everything. The fast path must not be there yet, nor the network bad.
    pub fn record(client: Client, files: &[(String, Vec<u8>)]) -> Self {
        Self::record_up_to(ONE_SEGMENT, client, files)
    }

    /// The same, and whole responses of up to `longest` bytes may be pinned.
    pub fn record_up_to(longest: usize, mut client: Client, files: &[(String, Vec<u8>)]) -> Self {
        let mut menu = Self::default();
        let mut ask = |request: Vec<u8>| {
            let expected = blank_date(&client.exchange_bytes(&request)).expect("a Date");
            Exchange { request, expected }
        };
        for (name, content) in files {
            let path = format!("/{name}");
            let whole = ask(request("GET", &path, ""));
            let tag = field(&whole.expected, "ETag").to_owned();
            let date = field(&whole.expected, "Last-Modified").to_owned();
            let matched = ask(request("GET", &path, &format!("If-None-Match: {tag}\r\n")));
            let since = ask(request("GET", &path, &format!("If-Modified-Since: {date}\r\n")));
            let fits = whole.expected.len() <= longest;
            let kept = fits.then(|| whole.expected.clone());
            menu.objects.push((path.clone(), kept, matched.expected.clone()));
            menu.pinned.extend([ask(request("HEAD", &path, "")), matched, since]);
            if fits {
                menu.pinned.push(ask(request("GET", &path, BROWSER)));
                let times = if whole.expected.len() > ONE_SEGMENT { 4 } else { 1 };
                menu.pinned.extend(std::iter::repeat_n(whole, times));
            } else {
                let range = format!("Range: bytes=7-{}\r\n", content.len() / 2);
                menu.other.push(ask(request("GET", &path, &range)));
                menu.other.push(whole);
            }
        }
        menu.other.push(ask(request("GET", "/missing.html", "")));
        menu.other.push(ask(request("GET", "/small-5.html?query", "")));
        for size in [0, 1, 700, 5_000, 40_000] {
            menu.posts.push(ask(post(size)));
        }
        menu
    }

    /// The request of connection `number` at this turn: mostly for pinned objects.
    pub fn pick(&self, number: usize, turn: usize) -> &Exchange {
        let mut random = Random::new((number * 1_000_003 + turn) as u64);
        match random.below(20) {
            0 => random.pick(&self.other),
            _ => random.pick(&self.pinned),
        }
    }

    /// Pin what may be.
    pub fn pin(&self, fast_path: &FastPath) {
        for (path, whole, not_modified) in &self.objects {
            pin_reply(fast_path, path, whole.as_deref(), not_modified);
        }
    }
}

/// Request fields of a browser that do not change the answer.
const BROWSER: &str = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
    Accept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br\r\n\
    Cookie: session=0123456789abcdef0123456789abcdef; theme=dark; seen=yes\r\n\
    Sec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\n";

fn request(method: &str, path: &str, fields: &str) -> Vec<u8> {
    format!("{method} {path} HTTP/1.1\r\nHost: server\r\n{fields}\r\n").into_bytes()
}

fn post(size: usize) -> Vec<u8> {
    let mut bytes = request("POST", "/post", &format!("Content-Length: {size}\r\n"));
    bytes.resize(bytes.len() + size, b'p');
    bytes
}

/// One GET on a fresh connection, compared with nginx's own response.
pub fn matches(client: &mut Client, exchange: &Exchange) -> bool {
    client.send(&exchange.request);
    blank_date(&client.take(exchange.expected.len())).is_ok_and(|got| got == exchange.expected)
}
