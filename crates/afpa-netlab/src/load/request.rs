//! The requests of a load as bytes, and the order in which they come.

use anyhow::{Context, Result, ensure};

use afpa_testkit::Random;

/// Entries of the schedule when there is more than one target: shares are exact to one of these.
const SCHEDULE: usize = 1 << 14;
/// It grows so far when a share would be none otherwise.
const LONGEST_SCHEDULE: usize = 1 << 22;

/// One thing to ask for.
#[derive(Debug, Clone)]
pub struct Target {
    /// Request target, for example `/index.html?x=1`.
    pub path: String,
    /// GET or HEAD.
    pub method: String,
    /// Header fields; a `Host` of the server's address is added when there is none.
    pub headers: Vec<(String, String)>,
    /// Its share among all targets' weights.
    pub weight: u32,
    /// The status that every response must have.
    pub status: u16,
}

impl Target {
    /// GET, weight 1, status 200, no header but Host.
    pub fn get(path: impl Into<String>) -> Self {
        let path = path.into();
        Self { path, method: "GET".into(), headers: Vec::new(), weight: 1, status: 200 }
    }

    /// The request's bytes.
    pub(crate) fn request(&self, host: &str) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            text.push_str(&format!("Host: {host}\r\n"));
        }
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        text.into_bytes()
    }
}

impl std::str::FromStr for Target {
    type Err = anyhow::Error;

    /// `/path`, or `WEIGHT:/path`.
    fn from_str(text: &str) -> Result<Self> {
        let (weight, path) = match text.split_once(':') {
            Some((weight, path)) if !text.starts_with('/') => (weight.parse()?, path),
            _ => (1, text),
        };
        ensure!(path.starts_with('/'), "{text}: a path begins with a slash");
        ensure!(!path.contains(char::is_whitespace), "{text}: a path has no blanks");
        Ok(Self { weight, ..Self::get(path) })
    }
}

/// About 1 KB of header fields as a browser of today sends them, cookies included.
pub fn browser_headers() -> Vec<(String, String)> {
    let cookie = "session=7f3c9a1e5b2d4f608192a3b4c5d6e7f8; theme=dark; consent=analytics%3D0%26ads%3D0; \
         _id=GA1.2.1234567890.1700000000; _gid=GA1.2.987654321.1700000000; lang=en-GB; \
         ab_bucket=control-17; csrftoken=Zm9vYmFyYmF6cXV4MDEyMzQ1Njc4OWFiY2RlZg; \
         cart=eyJpdGVtcyI6W3siaWQiOjQyLCJuIjoxfSx7ImlkIjo3LCJuIjozfV19; \
         seen=1700000000.1700003600.1700007200; layout=wide; currency=EUR; newsletter=dismissed; \
         experiments=hero-b.nav-a.search-c.footer-a; viewport=1440x900";
    let fields = [
        (
            "User-Agent",
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36",
        ),
        (
            "Accept",
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8",
        ),
        ("Accept-Encoding", "gzip, deflate, br, zstd"),
        ("Accept-Language", "en-GB,en;q=0.9,de;q=0.7"),
        ("Connection", "keep-alive"),
        ("Referer", "https://www.example.org/catalogue/spring?page=2&sort=price"),
        ("sec-ch-ua", "\"Chromium\";v=\"124\", \"Not-A.Brand\";v=\"99\""),
        ("sec-ch-ua-mobile", "?0"),
        ("sec-ch-ua-platform", "\"Linux\""),
        ("Sec-Fetch-Dest", "document"),
        ("Sec-Fetch-Mode", "navigate"),
        ("Sec-Fetch-Site", "same-origin"),
        ("Cookie", cookie),
    ];
    fields.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

/// The same request as so many visitors send it: each with a Cookie of its own, of the same length.
pub fn visitors(target: &Target, count: u32) -> Vec<Target> {
    let mut random = Random::new(u64::from(count));
    let mut visitor = || {
        let session = format!("session={:016x}{:016x}", random.next(), random.next());
        let mut target = target.clone();
        let cookie = |(name, _): &&mut (String, String)| name.eq_ignore_ascii_case("cookie");
        match target.headers.iter_mut().find(cookie) {
            Some((_, value)) => {
                let others = value.split("; ").filter(|pair| !pair.starts_with("session="));
                *value =
                    std::iter::once(session.as_str()).chain(others).collect::<Vec<_>>().join("; ");
            }
            None => target.headers.push(("Cookie".into(), session)),
        }
        target
    };
    (0..count).map(|_| visitor()).collect()
}

/// The order of targets: each has its share of the entries, shuffled, the same each time.
pub(crate) fn schedule(weights: &[u32]) -> Result<Vec<u32>> {
    let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
    ensure!(total > 0, "all weights are zero");
    if weights.len() == 1 {
        return Ok(vec![0]);
    }
    let mut length = SCHEDULE;
    let mut entries = loop {
        match fill(weights, total, length) {
            Ok(entries) => break entries,
            Err(error) if length == LONGEST_SCHEDULE => return Err(error),
            Err(_) => length *= 2,
        }
    };
    let mut random = Random::new(0);
    for index in (1..entries.len()).rev() {
        entries.swap(index, (random.next() % (index as u64 + 1)) as usize);
    }
    Ok(entries)
}

/// So many entries, in the order of targets.
fn fill(weights: &[u32], total: u64, length: usize) -> Result<Vec<u32>> {
    let mut entries = Vec::with_capacity(length);
    let mut passed = 0;
    for (target, weight) in weights.iter().enumerate() {
        passed += u64::from(*weight);
        let until = (passed as f64 / total as f64 * length as f64).round() as usize;
        ensure!(*weight == 0 || until > entries.len(), "target {target}: its share is too small");
        entries.resize(until, u32::try_from(target).context("too many targets")?);
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_weights() {
        let schedule = schedule(&[35, 50, 14, 1, 0]).unwrap();
        assert_eq!(schedule.len(), SCHEDULE);
        for (target, share) in [0.35, 0.5, 0.14, 0.01, 0.0].into_iter().enumerate() {
            let found = schedule.iter().filter(|entry| **entry == target as u32).count();
            assert!((found as f64 - share * SCHEDULE as f64).abs() <= 1.0, "{target}: {found}");
        }
        let first_half = schedule[..SCHEDULE / 2].iter().filter(|entry| **entry == 0).count();
        assert!((2700..3040).contains(&first_half), "not shuffled: {first_half}");
    }

    #[test]
    fn small_shares_make_it_longer() {
        let schedule = schedule(&[1_000_000, 5, 5]).unwrap();
        assert!(schedule.len() > SCHEDULE && schedule.len().is_power_of_two());
        assert!([1, 2].iter().all(|target| schedule.contains(target)));
    }

    #[test]
    fn unusable_weights_are_refused() {
        assert!(schedule(&[0, 0]).is_err());
        assert!(schedule(&[1, 1_000_000_000]).is_err());
        assert_eq!(schedule(&[9]).unwrap(), [0]);
    }

    #[test]
    fn targets_are_read_with_and_without_weight() {
        let weighted: Target = "35:/a?b=1:2".parse().unwrap();
        assert_eq!((weighted.weight, weighted.path.as_str()), (35, "/a?b=1:2"));
        assert_eq!("/1:2".parse::<Target>().unwrap().path, "/1:2");
        for wrong in ["x", "3:x", "a:/x", "/a b"] {
            assert!(wrong.parse::<Target>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn browser_headers_make_a_request_of_a_kilobyte() {
        let target = Target { headers: browser_headers(), ..Target::get("/x") };
        let length = target.request("example.org").len();
        assert!((1000..1400).contains(&length), "{length}");
    }

    #[test]
    fn visitors_differ_in_their_session_and_in_nothing_else() {
        let browser = Target { headers: browser_headers(), ..Target::get("/x") };
        for target in [browser, Target::get("/x")] {
            let all = visitors(&target, 3);
            let requests: Vec<_> = all.iter().map(|one| one.request("h")).collect();
            assert_eq!(all.len(), 3);
            assert!(requests[0] != requests[1] && requests[1] != requests[2]);
            assert_eq!(requests[0].len(), requests[1].len());
            let differ = requests[0].iter().zip(&requests[1]).filter(|(a, b)| a != b).count();
            assert!((16..=32).contains(&differ), "{differ}");
        }
    }
}
