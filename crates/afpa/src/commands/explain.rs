//! `afpa explain REQUEST-FILE`: whether the kernel would answer a request, and why not.
//!
//! The verdict is the programs' own (`afpa_bpf::explain`). A field is blamed where the same request without all other
//! fields but Host goes up as well.

mod log;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use afpa_bpf::explain::{Assumed, Explained, explain as judge};
use afpa_bpf::{Coding, Reason, words};
use afpa_http::request::CLASSED;
use anyhow::{Context as _, bail};

use clap::Args;

use crate::fast_path::connections;
use afpa_config::Connections;

/// Bytes that are read of a file of requests.
const LONGEST: u64 = 4 << 20;
/// A date that no request has.
const NO_DATE: &[u8; 29] = b"Thu, 01 Jan 1970 00:00:00 GMT";

/// `afpa explain`.
#[derive(Args, Debug)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub struct Explain {
    /// File with the head of a request, or several; `-` for standard input
    #[arg(value_name = "REQUEST-FILE", required_unless_present = "from_log")]
    pub request: Option<PathBuf>,
    /// Count the requests of this access log instead; `-` for standard input
    #[arg(long, value_name = "ACCESS-LOG", conflicts_with = "request")]
    pub from_log: Option<PathBuf>,
    /// As before a server that `afpa attach` accelerates, where fields without decoys may matter
    #[arg(long)]
    pub attached: bool,
    /// As with this option of `afpa attach`; may be repeated
    #[arg(long, value_name = "NAME", requires = "attached")]
    pub allow_field: Vec<String>,
    /// Codings in which the file is stored, besides none at all
    #[arg(long, value_name = "CODING,...", value_delimiter = ',', default_value = "gzip,br", value_parser = coding)]
    pub stored: Vec<Coding>,
    /// Where connections begin, as with the same option of `afpa attach`
    #[arg(long, value_name = "CLIENTS", default_value = "kernel", value_parser = connections)]
    pub connections: Connections,
}

/// The lines of `afpa explain`.
///
/// # Errors
/// When the file cannot be read, or has no request.
pub fn explain(options: &Explain) -> anyhow::Result<String> {
    let fields = options.attached.then(|| classes(&options.allow_field));
    let assumed = Assumed {
        codings: &options.stored,
        fields: fields.as_deref(),
        may_close: options.connections != Connections::Kernel,
    };
    match (&options.from_log, &options.request) {
        (Some(file), _) => log::explain(file, &assumed),
        (None, Some(file)) => explained(&read(file)?, &assumed),
        (None, None) => bail!("name a file with a request, `-` for standard input, or --from-log"),
    }
}

/// The fields that have decoys, and those that the operator knows.
fn classes(allowed: &[String]) -> Vec<(String, u32)> {
    let classed = CLASSED.iter().map(|(name, class)| ((*name).to_owned(), 1 << *class as u32));
    classed.chain(allowed.iter().map(|name| (name.to_ascii_lowercase(), 0))).collect()
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let outcome = match file == Path::new("-") {
        true => std::io::stdin().take(LONGEST).read_to_end(&mut bytes),
        false => {
            std::fs::File::open(file).and_then(|file| file.take(LONGEST).read_to_end(&mut bytes))
        }
    };
    outcome.with_context(|| format!("cannot read {}", file.display()))?;
    Ok(bytes)
}

/// The lines about all requests of a file.
fn explained(bytes: &[u8], assumed: &Assumed<'_>) -> anyhow::Result<String> {
    let heads = heads(bytes);
    if heads.is_empty() {
        bail!("there is no request: write its lines, such as GET / HTTP/1.1 and Host: a");
    }
    let told: Vec<String> = heads.iter().map(|head| about(head, assumed)).collect();
    Ok(told.concat())
}

/// The heads, each with its empty line. Lines that an editor ended with LF end with CRLF, as a client sends them.
fn heads(bytes: &[u8]) -> Vec<Vec<u8>> {
    let by_hand = !bytes.windows(2).any(|two| two == b"\r\n");
    let mut heads = Vec::new();
    let mut head: Vec<u8> = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").filter(|_| !by_hand).unwrap_or(line);
        match line {
            b"" if head.is_empty() => {}
            b"" => {
                head.extend_from_slice(b"\r\n");
                heads.push(std::mem::take(&mut head));
            }
            line => {
                head.extend_from_slice(line);
                head.extend_from_slice(b"\r\n");
            }
        }
    }
    if !head.is_empty() {
        head.extend_from_slice(b"\r\n");
        heads.push(head);
    }
    heads
}

/// The verdict on one request, and the lines to blame.
fn about(head: &[u8], assumed: &Assumed<'_>) -> String {
    let first = shown(lines(head).next().unwrap_or_default());
    let Some(found) = verdict(head, assumed) else {
        return format!("{first}\n  there is no memory for the programs' tables\n");
    };
    if found.is_answered() {
        let answer = if found.is_not_modified() { ", with 304" } else { "" };
        return format!("{first}\n  the kernel answers{answer}, if the file is pinned\n");
    }
    let mut text = format!("{first}\n  the server answers: {}\n", because(found.reason));
    for (line, reason) in blamed(head, found, assumed) {
        let own =
            if reason == found.reason { String::new() } else { format!(": {}", because(reason)) };
        text.push_str(&format!("  because of {}{own}\n", shown(line)));
    }
    if !found.certain && is_get_or_head(head) {
        text.push_str("  and all later requests of its connection\n");
    }
    text
}

/// The verdict, with the target pinned if a file can stand behind it, as old as the request wants it to be.
fn verdict(head: &[u8], assumed: &Assumed<'_>) -> Option<Explained> {
    let target = lines(head).next()?.split(|byte| *byte == b' ').nth(1);
    let target = target.filter(|target| !target.contains(&b'?'));
    let since = lines(head).find_map(|line| {
        let (name, value) = line.split_at_checked(line.iter().position(|byte| *byte == b':')?)?;
        name.eq_ignore_ascii_case(b"if-modified-since").then(|| value.get(1..))?
    });
    let since = since.and_then(|value| <&[u8; 29]>::try_from(value.trim_ascii()).ok());
    judge(head, target, since.unwrap_or(NO_DATE), assumed)
}

/// Field lines that send the request up without the others, and why.
fn blamed<'h>(head: &'h [u8], found: Explained, assumed: &Assumed<'_>) -> Vec<(&'h [u8], Reason)> {
    let mut all = lines(head);
    let first = all.next().unwrap_or_default();
    let bare = |line: &[u8]| {
        let host: &[u8] = if named(line, b"host") { b"" } else { b"Host: a\r\n" };
        let end: &[u8] = if line.is_empty() { b"\r\n" } else { b"\r\n\r\n" };
        verdict(&[first, b"\r\n", host, line, end].concat(), assumed)
    };
    // The request line alone is enough.
    if bare(b"").is_none_or(|alone| alone.reason == found.reason) {
        return Vec::new();
    }
    let guilty = all.filter_map(|line| {
        let alone = bare(line)?;
        (!alone.is_answered()).then_some((line, alone.reason))
    });
    guilty.collect()
}

fn named(line: &[u8], name: &[u8]) -> bool {
    let colon = line.iter().position(|byte| *byte == b':').unwrap_or_default();
    line.get(..colon).is_some_and(|have| have.eq_ignore_ascii_case(name))
}

fn is_get_or_head(head: &[u8]) -> bool {
    head.starts_with(b"GET ") || head.starts_with(b"HEAD ")
}

/// The lines of a head without their ends, and without the empty one.
fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = head.split(|byte| *byte == b'\n');
    lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line)).filter(|line| !line.is_empty())
}

/// The number of a reason, and its words.
fn because(reason: Reason) -> String {
    let text = words(reason).unwrap_or_else(|| reason.text());
    format!("{text} [{}]", reason as u32)
}

/// For a terminal: without control characters, and not longer than a line or two.
fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let text = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
    let mut text: String = text.take(SHOWN + 1).collect();
    if text.chars().count() > SHOWN {
        text.pop();
        text.push_str("...");
    }
    text
}

const SHOWN: usize = 120;

/// A coding of `--stored`.
///
/// # Errors
/// When the programs have no such coding.
pub fn coding(text: &str) -> Result<Coding, String> {
    match text {
        "gzip" => Ok(Coding::Gzip),
        "br" => Ok(Coding::Brotli),
        "zstd" => Ok(Coding::Zstd),
        "none" => Ok(Coding::Identity),
        _ => Err("write gzip, br, zstd or none".to_owned()),
    }
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  printf 'GET /a.css HTTP/1.1\\nHost: a\\nRange: bytes=0-9\\n' | afpa explain -
  afpa explain --attached --allow-field X-Tenant request.txt
  afpa explain --from-log /var/log/nginx/access.log";

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, attached: bool) -> String {
        let fields = attached.then(|| classes(&["X-Known".to_owned()]));
        let assumed = Assumed {
            codings: &[Coding::Gzip, Coding::Brotli],
            fields: fields.as_deref(),
            may_close: false,
        };
        explained(text.as_bytes(), &assumed).unwrap()
    }

    #[test]
    fn requests_of_a_file_are_told_one_by_one() {
        let text = told(
            "GET /a HTTP/1.1\nHost: a\nCookie: a=b\n\nPOST /a HTTP/1.1\nHost: a\n\n\nGET /b?c HTTP/1.1\nHost: a",
            false,
        );
        let expected = "GET /a HTTP/1.1\n  the kernel answers, if the file is pinned\n\
                        POST /a HTTP/1.1\n  the server answers: its method is not GET or HEAD (nothing to change) [19]\n\
                        GET /b?c HTTP/1.1\n  the server answers: its path is not in the kernel \
                        (no file, a query, or refused: see the reasons of URLs; --ext, --cache) [25]\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_field_to_blame_is_named() {
        let text = told(
            "GET /a HTTP/1.1\r\nHost: a\r\nX-Known: 1\r\nX-Odd: 1\r\nAccept: */*\r\nRange: bytes=0-1\r\n\r\n",
            true,
        );
        let blamed: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("  because of ")).collect();
        assert_eq!(blamed, ["X-Odd: 1", "Range: bytes=0-1"], "{text}");
        assert!(text.contains("[23]") && text.contains("--allow-field NAME"), "{text}");
        let own = told("GET /a HTTP/1.1\nHost: a\nX-Odd: 1\n", false);
        assert!(own.contains("the kernel answers"), "{own}");
    }

    #[test]
    fn conditions_are_those_of_an_unchanged_file() {
        let text = told(
            "GET /a HTTP/1.1\nHost: a\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\n",
            false,
        );
        assert!(text.contains("the kernel answers, with 304"), "{text}");
        let text = told("GET /a HTTP/1.1\nHost: a\nConnection: upgrade\n\u{1b}[31m: x\n", false);
        assert!(text.contains("all later requests of its connection"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn nothing_is_no_request() {
        let assumed = Assumed { codings: &[], fields: None, may_close: false };
        assert!(explained(b"\r\n\r\n", &assumed).is_err());
        assert!(coding("compress").is_err() && coding("br").is_ok());
    }
}
