//! Reading multipart/byteranges (RFC 9110, 14.6; RFC 2046, 5.1).

use afpa_testkit::Response;

/// One part: its range, inclusive, of a representation of `complete` bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// First position.
    pub first: usize,
    /// Last position.
    pub last: usize,
    /// Length of the whole representation.
    pub complete: usize,
    /// Content-Type of the part.
    pub media_type: Option<String>,
    /// The bytes between the part's head and the next delimiter.
    pub bytes: Vec<u8>,
}

/// The parts of a response.
///
/// # Errors
/// A message that names the fault.
pub fn parts(response: &Response) -> Result<Vec<Part>, String> {
    let media_type = response.field("content-type").unwrap_or_default();
    let boundary = media_type
        .strip_prefix("multipart/byteranges; boundary=")
        .ok_or_else(|| format!("Content-Type {media_type:?}"))?
        .trim_matches('"');
    let delimiter = format!("\r\n--{boundary}");
    // The first delimiter may stand at the very beginning, without its CRLF.
    let mut body = b"\r\n".to_vec();
    body.extend(&response.body);
    let start = find(&body, delimiter.as_bytes()).ok_or("no delimiter")?;
    if !matches!(start, 0 | 2) {
        return Err(format!("a preamble of {start} bytes"));
    }
    let mut rest = &body[start + delimiter.len()..];
    let mut parts = Vec::new();
    loop {
        if let Some(end) = rest.strip_prefix(b"--") {
            return match end {
                b"" | b"\r\n" => Ok(parts),
                _ => Err("bytes after the closing delimiter".to_owned()),
            };
        }
        let content = rest.strip_prefix(b"\r\n").ok_or("no line end after a delimiter")?;
        let (part, after) = part(content, delimiter.as_bytes())?;
        parts.push(part);
        rest = after;
    }
}

/// Checks a response to a request for several `ranges` of `whole`. A server may send the whole, or
/// join ranges; it may not leave one out, nor send a byte from another place.
///
/// # Errors
/// What is wrong.
pub fn check(response: &Response, ranges: &[(usize, usize)], whole: &[u8]) -> Result<(), String> {
    if response.status == 200 {
        return if response.body == whole { Ok(()) } else { Err("the whole differs".to_owned()) };
    }
    let sent = match response.field("content-range") {
        Some(value) => {
            let (first, last, complete) = content_range(value)?;
            let bytes = response.body.clone();
            vec![Part { first, last, complete, media_type: None, bytes }]
        }
        None => parts(response)?,
    };
    for part in &sent {
        if part.complete != whole.len() || whole.get(part.first..=part.last) != Some(&part.bytes) {
            return Err(format!("part {}-{}/{} differs", part.first, part.last, part.complete));
        }
    }
    let covered = |at: usize| sent.iter().any(|part| (part.first..=part.last).contains(&at));
    for (first, last) in ranges {
        if !covered(*first) || !covered(*last) {
            return Err(format!("{first}-{last} was asked for and not sent"));
        }
    }
    Ok(())
}

fn part<'b>(content: &'b [u8], delimiter: &[u8]) -> Result<(Part, &'b [u8]), String> {
    let head_end = find(content, b"\r\n\r\n").ok_or("a part without the end of its head")?;
    let head = String::from_utf8_lossy(&content[..head_end]).into_owned();
    let field = |name: &str| {
        head.split("\r\n").find_map(|line| {
            let (have, value) = line.split_once(':')?;
            have.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    };
    let range = field("content-range").ok_or("a part without Content-Range")?;
    let (first, last, complete) = content_range(&range)?;
    let bytes = &content[head_end + 4..];
    // The length is known: bytes that look like a delimiter must not end a part.
    let count = (last + 1).checked_sub(first).ok_or("an inverted Content-Range")?;
    let end = bytes.get(count..).ok_or("a part shorter than its range")?;
    let after = end.strip_prefix(delimiter).ok_or("a part longer than its range")?;
    let bytes = bytes[..count].to_vec();
    Ok((Part { first, last, complete, media_type: field("content-type"), bytes }, after))
}

fn content_range(value: &str) -> Result<(usize, usize, usize), String> {
    let numbers = || {
        let (span, complete) = value.strip_prefix("bytes ")?.split_once('/')?;
        let (first, last) = span.split_once('-')?;
        Some((first.parse().ok()?, last.parse().ok()?, complete.parse().ok()?))
    };
    numbers().ok_or_else(|| format!("Content-Range {value:?}"))
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
