//! Request heads as real clients send them, and field lines that are apt to divide two parsers.

/// A head of an ordinary client.
pub struct Head {
    pub client: &'static str,
    pub bytes: Vec<u8>,
}

/// Heads that the fast path is for: the programs must answer every one of these.
pub fn ordinary() -> Vec<Head> {
    let mut heads = read(include_str!("clients.txt"));
    for (client, total) in [
        ("Chrome, 1 KB", 1024),
        ("Chrome, one segment of IPv4 with timestamps", 1448),
        ("Chrome, over loopback", 2048),
    ] {
        heads.push(Head { client, bytes: browser("/index.html", total) });
    }
    heads
}

/// Heads of clients that ask for things that only user mode does.
pub fn for_user_mode() -> Vec<Head> {
    read(include_str!("clients_for_user_mode.txt"))
}

fn read(text: &'static str) -> Vec<Head> {
    let heads = text.split("\n== ").skip(1).map(|head| {
        let (client, lines) = head.split_once('\n').expect("a name, then lines");
        let bytes = lines.lines().filter(|line| !line.is_empty()).chain([""]);
        Head {
            client,
            bytes: bytes.flat_map(|line| [line, "\r\n"]).collect::<String>().into_bytes(),
        }
    });
    heads.collect()
}

/// Chrome's lines with a cookie that makes the whole head `total` bytes long, when that is enough.
pub fn browser(path: &str, total: usize) -> Vec<u8> {
    let mut text = format!(
        "GET {path} HTTP/1.1\r\nHost: server:8080\r\nConnection: keep-alive\r\n\
         sec-ch-ua: \"Chromium\";v=\"130\", \"Google Chrome\";v=\"130\", \"Not?A_Brand\";v=\"99\"\r\n\
         sec-ch-ua-mobile: ?0\r\nsec-ch-ua-platform: \"Linux\"\r\nUpgrade-Insecure-Requests: 1\r\n\
         User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36\r\n\
         Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8\r\n\
         Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-User: ?1\r\nSec-Fetch-Dest: document\r\n\
         Accept-Encoding: gzip, deflate, br, zstd\r\nAccept-Language: en-GB,en;q=0.9,de;q=0.8\r\nCookie: s="
    );
    while text.len() + 4 < total {
        let serial = text.len() % 10;
        text.push(char::from(b'0' + serial as u8));
    }
    text.push_str("\r\n\r\n");
    text.into_bytes()
}

/// The shortest sensible head of about `total` bytes: one line of padding.
pub fn padded(path: &str, total: usize) -> Vec<u8> {
    let head = format!("GET {path} HTTP/1.1\r\nHost: server:8080\r\nUser-Agent: ");
    let padding = "a".repeat(total.saturating_sub(head.len() + 4));
    format!("{head}{padding}\r\n\r\n").into_bytes()
}

/// Whole lines, good and bad, of which heads are composed.
pub const LINES: &[&str] = &[
    "Host: server",
    "Host: a",
    "HOST: server:8080",
    "Host:server",
    "Host: Other.Example",
    "Host: other.example:80",
    "Host: [fd99::1]:8080",
    "Host: {fd99::1}:8080",
    "Host: [FD99::1]:8080",
    "Host: [::1]",
    "Host: a~b",
    "Host: a^b",
    "Host: under_score.",
    "Host: under\x7fscore.",
    "Host: a_b",
    "Host: a./b",
    "Host: a.//",
    "Host: a.",
    "Host: .",
    "Host: -",
    "Host: a..b",
    "Host: u@a",
    "Host: u:p@a",
    "Host: a:80",
    "Host: a:0",
    "Host: a:",
    "Host: a:00080",
    "Host: a:65536",
    "Host: a:8a",
    "Host: :80",
    "Host: a b",
    "Host: a,b",
    "Host: ",
    "Host:",
    "Host:  a",
    "Host: a ",
    "Host: a\t",
    "Host : a",
    " Host: a",
    "Host: a%20",
    "Host: caf\u{e9}",
    "Host: 1.2.3.4",
    "Host: a/./b",
    "Host: abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvwxyz-0123456789",
    "Host: 12345678",
    "Host: 1234567.",
    "Host: 1234567./",
    "Host: A.B.C:1",
    "Host: a\\b",
    "Host: [a",
    "Host: a]",
    "Connection: keep-alive",
    "connection: Keep-Alive",
    "Connection: close",
    "Connection: CLOSE",
    "Connection: keep-alive, close",
    "Connection: close, keep-alive",
    "Connection: upgrade",
    "Connection: ",
    "Connection: TE",
    "Connection: keep-alivf",
    "Connection: keep-alive ",
    "Connection: keep-alive,",
    "Connection: keep\ralive",
    "Proxy-Connection: close",
    "Keep-Alive: timeout=5",
    "Content-Length: 0",
    "Content-Length: 5",
    "Content-Length: +0",
    "Content-Length: 0, 0",
    "content-length:0",
    "Content-Length : 0",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: identity",
    "TRANSFER-ENCODING: chunked",
    "Transfer_Encoding: chunked",
    "Expect: 100-continue",
    "Expect: 200-ok",
    "Upgrade: websocket",
    "Upgrade: h2c",
    "HTTP2-Settings: AAMAAABk",
    "TE: trailers",
    "Trailer: X",
    "Upgrade-Insecure-Requests: 1",
    "DNT: 1",
    "Sec-Fetch-Mode: navigate",
    "Sec-WebSocket-Version: 13",
    "Authorization: Basic eDp5",
    "Proxy-Authorization: Basic eDp5",
    "Cookie: a=b; c=\"d, e\"",
    "Cookie: a",
    "Cookie:",
    "Cookie: a=\u{e4}",
    "Accept-Encoding: gzip",
    "Accept-Encoding: gzip, deflate, br, zstd",
    "Accept-Encoding: br,gzip",
    "Accept-Encoding: gzip,  br",
    "Accept-Encoding: gzip , br",
    "Accept-Encoding: gzip;q=0",
    "Accept-Encoding: gzip;q=0.5, br;q=0.1",
    "Accept-Encoding: *",
    "Accept-Encoding: *;q=0",
    "Accept-Encoding: identity",
    "Accept-Encoding: identity;q=0",
    "Accept-Encoding:",
    "Accept-Encoding: ",
    "Accept-Encoding: GZIP",
    "Accept-Encoding: x-gzip",
    "Accept-Encoding: gzip,",
    "Accept-Encoding: ,gzip",
    "Accept-Encoding: gzip,,br",
    "Accept-Encoding: gzip br",
    "Accept-Encoding: deflate",
    "Accept-Encoding: zstd",
    "Accept-Encoding: gzipp",
    "Accept-Encoding: identityx",
    "Accept-Encoding: deflate, identity, gzip, deflate, br, zstd",
    "Accept-Encoding: gzip, gzip, gzip, gzip, gzip, gzip, br",
    "Accept-Encoding: compress, gzip",
    "Accept-Encoding: gzip\t, br",
    "accept-encoding: zstd",
    "Accept-Encoding: br ",
    "Accept-Encoding:  br",
    "If-None-Match: \"b-1\"",
    "If-None-Match: \"b-1-br\"",
    "If-None-Match: \"b-1-gzip\"",
    "If-None-Match: \"b-1-zstd\"",
    "If-None-Match: \"1-1\"",
    "If-None-Match: W/\"b-1\"",
    "If-None-Match: W/\"b-1-br\"",
    "If-None-Match: w/\"b-1\"",
    "If-None-Match: *",
    "If-None-Match: \"x\", \"b-1\"",
    "If-None-Match: \"b-1\",\"x\"",
    "If-None-Match: \"b-1\"x\"",
    "If-None-Match: \"b-1\" \"x\"",
    "If-None-Match: \"b-1",
    "If-None-Match: b-1",
    "If-None-Match: \"",
    "If-None-Match: \"\"",
    "If-None-Match: W/\"",
    "If-None-Match: W/",
    "If-None-Match:",
    "If-None-Match:  \"b-1\"",
    "If-None-Match: \"b-1\" ",
    "If-None-Match: \"b,1\"",
    "If-None-Match: \"b 1\"",
    "If-None-Match: \"b-1\",",
    "If-None-Match: ,\"b-1\"",
    "If-None-Match: \"*\"",
    "If-None-Match: W/W/\"b-1\"",
    "If-None-Match: \"b-1\"\"b-1\"",
    "if-none-match: \"2-1\"",
    "If-None-Match: \"0123456789012345678901234567890123456789012345678901234567890123456789\"",
    "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT",
    "If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT",
    "If-Modified-Since: Sun Nov  6 08:49:37 1994",
    "If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT",
    "If-Modified-Since: Mon, 07 Nov 1994 08:49:37 GMT",
    "If-Modified-Since: sun, 06 nov 1994 08:49:37 gmt",
    "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 gmt",
    "If-Modified-Since: 0",
    "If-Modified-Since:",
    "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 UTC",
    "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT ",
    "If-Modified-Since:  Sun, 06 Nov 1994 08:49:37 GMT",
    "If-Modified-Since: Sun, 06 Nov 2094 08:49:37 GMT",
    "If-Match: \"b-1\"",
    "If-Match: *",
    "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT",
    "If-Range: \"b-1\"",
    "Range: bytes=0-1",
    "RANGE: bytes=0-",
    "Range: lines=1",
    "range:bytes=5-4",
    "Range:",
    "X-Range: bytes=0-1",
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64)",
    "Accept: */*",
    "Accept: text/html,application/xml;q=0.9,*/*;q=0.8",
    "Referer: http://a/b?c#d",
    "X: a\tb",
    "X: \t",
    "X:",
    "X: ",
    "X",
    ": x",
    "X y: z",
    "X_y: z",
    "X.y: z",
    "X!: z",
    "X@y: z",
    "X\u{e4}: z",
    "X\0: z",
    "X: a\0b",
    "X: a\rb",
    "X: a\nb",
    "X: a\x7fb",
    "X: \x01",
    " folded",
    "\tfolded",
    "X: a\r\n folded",
    "0: 1",
    "-: -",
    "X-A-Name-That-Is-Very-Long-But-Not-Too-Long: 1",
    "X-A-Name-That-Is-Much-Too-Long-For-Forty-Bytes: 1",
    "sec-ch-ua: \"Chromium\";v=\"130\"",
    "X: {|}~^`",
    "X:::::",
    "GET / HTTP/1.1",
];

/// So many of [`REQUEST_LINES`] are good.
pub const USUAL: usize = 10;

/// Request lines, good and bad.
pub const REQUEST_LINES: &[&str] = &[
    "GET /index.html HTTP/1.1",
    "GET /index.html HTTP/1.1",
    "GET /index.html HTTP/1.1",
    "HEAD /index.html HTTP/1.1",
    "GET / HTTP/1.1",
    "GET /style.css HTTP/1.1",
    "HEAD / HTTP/1.1",
    "GET /a%20b.css HTTP/1.1",
    "GET /data.json?version=3 HTTP/1.1",
    "GET /dir/ HTTP/1.1",
    "GET /index.html HTTP/1.0",
    "GET /index.html HTTP/1.1 ",
    "GET  /index.html HTTP/1.1",
    "GET /index.html  HTTP/1.1",
    "get /index.html HTTP/1.1",
    "GET /index.html http/1.1",
    "GET /index.html HTTP/1.2",
    "GET /index.html HTTP/2.0",
    "GET /index.html",
    "GET\t/index.html HTTP/1.1",
    "GET http://server/index.html HTTP/1.1",
    "GET //index.html HTTP/1.1",
    "GET /./index.html HTTP/1.1",
    "GET /x/../index.html HTTP/1.1",
    "GET /%69ndex.html HTTP/1.1",
    "GET /index.html? HTTP/1.1",
    "GET /index.html?q HTTP/1.1",
    "GET /index.html#f HTTP/1.1",
    "GET /../index.html HTTP/1.1",
    "GET /%2findex.html HTTP/1.1",
    "GET /%00 HTTP/1.1",
    "GET /\u{e4} HTTP/1.1",
    "GET /a b HTTP/1.1",
    "GET /a%20B.css HTTP/1.1",
    "GET * HTTP/1.1",
    "POST /index.html HTTP/1.1",
    "OPTIONS * HTTP/1.1",
    "DELETE / HTTP/1.1",
    "HEADER / HTTP/1.1",
    "GETT / HTTP/1.1",
    "GET /index.html\0 HTTP/1.1",
    "GET /index.htm\r HTTP/1.1",
    "\r\nGET / HTTP/1.1",
    " GET / HTTP/1.1",
    "PRI * HTTP/2.0",
    "GET /\x7f HTTP/1.1",
    "GET /\"x\" HTTP/1.1",
    "GET /0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789 HTTP/1.1",
];
