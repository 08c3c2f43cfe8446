//! Workloads of files of one size.

use afpa_netlab::load::browser_headers;

use super::order::Order;
use super::{Object, Request, Workload};

/// One file of a size, again and again.
pub(super) fn webstone(size: u64) -> Workload {
    let object = Object::new(format!("/webstone/file{size}.html"), size);
    Workload {
        name: format!("webstone-{size}"),
        family: "webstone".into(),
        title: format!("WebStone, {}", human(size)),
        point: Some(size as f64),
        about: "One file of a fixed size, as the papers used WebStone 2.5. Taken: the range, 64 B \
                to 1 MB, one size a run. Approximated: the sizes between; the generator is not \
                WebStone's."
            .into(),
        requests: vec![Request::get(&object)],
        objects: vec![object],
        order: Order::Mix,
    }
}

/// Content of a full segment of Ethernet's usual frames, with TCP's timestamps.
pub const SEGMENT: u64 = 1448;
/// Room for the head of an answer.
const HEAD: u64 = 256;

/// One file whose answer has so many full segments.
pub(super) fn segments(number: u64) -> Workload {
    let number = number.max(1);
    let object = Object::new(format!("/segments/{number}.jpg"), number * SEGMENT - HEAD);
    Workload {
        name: format!("segments-{number}"),
        family: "segments".into(),
        title: format!("Answers of {number} full segments"),
        point: Some(number as f64),
        about: "Kim and Rixner's packets of the largest size. Approximated: they are answers to requests, where the paper's \
                program only sent; the last segment of an answer is full to within what the server's head is shorter than \
                256 bytes."
            .into(),
        requests: vec![Request::get(&object)],
        objects: vec![object],
        order: Order::Mix,
    }
}

/// As a browser asks. Pictures, so that no server thinks of compressing them.
pub(super) fn browser(size: u64) -> Workload {
    let object = Object::new(format!("/browser/picture{size}.jpg"), size);
    Workload {
        name: format!("browser-{size}"),
        family: "browser".into(),
        title: format!("Browser's header fields, {}", human(size)),
        point: Some(size as f64),
        about: "One picture of a fixed size, asked with the header fields of a browser of today, \
                a kilobyte with cookies."
            .into(),
        requests: vec![Request::get(&object).with_headers(browser_headers())],
        objects: vec![object],
        order: Order::Mix,
    }
}

/// The request of a browser that has a copy already.
pub(super) fn conditional(size: u64) -> Workload {
    let object = Object::new(format!("/conditional/file{size}.html"), size);
    Workload {
        name: format!("conditional-{size}"),
        family: "conditional".into(),
        title: format!("If-Modified-Since, {}", human(size)),
        point: Some(size as f64),
        about: "One file, asked with If-Modified-Since of its own date: each answer is 304.".into(),
        requests: vec![Request::get(&object).if_modified()],
        objects: vec![object],
        order: Order::Mix,
    }
}

/// The smallest file of SPECweb96, sixteen of them.
pub(super) fn proxy() -> Workload {
    let object = |number| Object::new(format!("/proxy/{number}.html"), 102);
    let objects: Vec<Object> = (0..16).map(object).collect();
    Workload {
        name: "proxy-102".into(),
        family: "proxy".into(),
        title: "The papers' proxy run, 102 B".into(),
        point: Some(102.0),
        about: "The papers' clients of the proxy asked for a small set of 102-byte files. \
                Approximated: the set has sixteen, all asked alike."
            .into(),
        requests: objects.iter().map(Request::get).collect(),
        objects,
        order: Order::Mix,
    }
}

/// The caller's files and weights, and nothing else.
pub(super) fn given(parts: Vec<(u32, Object)>) -> Workload {
    let (weights, objects): (Vec<u32>, Vec<Object>) = parts.into_iter().unzip();
    let request = |(object, weight): (&Object, &u32)| Request::get(object).with_weight(*weight);
    Workload {
        name: "given".into(),
        family: "given".into(),
        title: "Given files".into(),
        point: None,
        about: "Files and weights as the command line gave them.".into(),
        requests: objects.iter().zip(&weights).map(request).collect(),
        objects,
        order: Order::Mix,
    }
}

/// Names that lead to nothing.
pub(super) fn absent() -> Workload {
    let request = |number| Request {
        path: format!("/absent/{number}.html"),
        headers: Vec::new(),
        status: 404,
        body: None,
        weight: 1,
    };
    Workload {
        name: "absent".into(),
        family: "absent".into(),
        title: "Files that are not there".into(),
        point: None,
        about: "1,000 names without a file behind them. Each server sends its own page, so that \
                bytes/s cannot be compared."
            .into(),
        requests: (0..1000).map(request).collect(),
        objects: Vec::new(),
        order: Order::Mix,
    }
}

/// Each file once before any comes again: this measures loading. Pictures, which no server compresses,
/// and text, which some servers compress as they load it.
pub(super) fn cold() -> Vec<Workload> {
    let each = |kind: &str, extension: &str, words: &str| {
        let object = |number| {
            let path = format!("/cold-{kind}/{}/{number}.{extension}", number % 100);
            Object::new(path, 4096)
        };
        let objects: Vec<Object> = (0..20_000).map(object).collect();
        Workload {
            name: format!("cold-{kind}-4096"),
            family: "cold".into(),
            title: format!("Each file once, 4 KB, {kind}"),
            point: None,
            about: format!(
                "20,000 files of 4 KB, {words}, asked one after the other in a shuffled order. A \
                 server that keeps them has loaded all after as many requests; a warm-up shortens \
                 what is left. The files are in the kernel's page cache: no disk is measured."
            ),
            requests: objects.iter().map(Request::get).collect(),
            objects,
            order: Order::Sweep,
        }
    };
    vec![
        each("pictures", "jpg", "of a type that is not worth compressing"),
        each("text", "html", "which AFPA compresses as it loads them, and the others do not"),
    ]
}

fn human(size: u64) -> String {
    match size {
        size if size >= 1 << 20 && size.is_multiple_of(1 << 20) => format!("{} MB", size >> 20),
        size if size >= 1 << 10 && size.is_multiple_of(1 << 10) => format!("{} KB", size >> 10),
        size => format!("{size} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_said_as_people_do() {
        let said = [64, 1024, 1500, 1 << 20, 3 << 19].map(human);
        assert_eq!(said, ["64 B", "1 KB", "1500 B", "1 MB", "1536 KB"]);
    }

    #[test]
    fn a_browser_s_request_fits_one_segment() {
        let workload = browser(512);
        let length = workload.all_requests()[0].bytes("10.77.0.1", true).len();
        assert!((1000..1400).contains(&length), "{length}");
    }
}
