//! Profiles of HttpArena, a board of today, as far as servers of files have a part in them.

use super::order::Order;
use super::{Object, Request, Workload};

/// Requests of a connection that its clients close.
const SHORT_LIVED: usize = 10;
/// The files of its page: name and bytes. The board gives kinds, names, ranges and the sum; each one's size is ours.
const PAGE: [(&str, u64); 20] = [
    ("reset.css", 8_000),
    ("layout.css", 25_000),
    ("theme.css", 30_000),
    ("components.css", 60_000),
    ("utilities.css", 70_000),
    ("analytics.js", 12_000),
    ("helpers.js", 18_000),
    ("app.js", 90_000),
    ("vendor.js", 150_000),
    ("router.js", 22_000),
    ("header.html", 55_000),
    ("footer.html", 100_000),
    ("regular.woff2", 18_000),
    ("bold.woff2", 22_000),
    ("logo.svg", 15_000),
    ("icon-sprite.svg", 85_000),
    ("hero.webp", 45_000),
    ("thumb1.webp", 8_000),
    ("thumb2.webp", 6_000),
    ("manifest.json", 3_000),
];

/// `baseline`, `limited-conn` and `static`.
pub(super) fn profiles() -> Vec<Workload> {
    let sum = || Object::new("/arena/baseline11.txt", 2);
    let page =
        || PAGE.map(|(name, bytes)| Object::new(format!("/arena/static/{name}"), bytes)).to_vec();
    let profile = |name: &str, title: &str, about: &str, objects: Vec<Object>, order| Workload {
        name: format!("arena-{name}"),
        family: "arena".into(),
        title: format!("HttpArena's {title}"),
        point: None,
        about: format!("HttpArena, profile {name}. {about}"),
        requests: objects.iter().map(Request::get).collect(),
        objects,
        order,
    };
    vec![
        profile(
            "baseline",
            "baseline",
            "Taken: kept connections, an answer of two bytes. Approximated: the sum of two numbers is a file here, and \
             its share of POST is left out: servers of files do neither.",
            vec![sum()],
            Order::Mix,
        ),
        profile(
            "limited-conn",
            "limited connections",
            "As the baseline; each connection is closed by its client after ten requests.",
            vec![sum()],
            Order::Sessions(vec![vec![0; SHORT_LIVED]]),
        ),
        profile(
            "static",
            "static files",
            "Taken: the names and kinds of twenty files, 842 KB altogether, each as often as the others. Approximated: \
             the size of each; chosen by chance and not in turn; nothing is asked for compressed, which the profile leaves \
             to the server.",
            page(),
            Order::Mix,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_its_files_and_their_sum() {
        let profiles = profiles();
        let page = &profiles[2];
        assert_eq!((page.objects().len(), page.working_set() / 1000), (20, 842));
        assert!(profiles.iter().all(|one| one.name.starts_with("arena-")));
    }

    #[test]
    fn a_short_lived_connection_ends_with_its_tenth_request() {
        let limited = &profiles()[1];
        let last: Vec<bool> = limited.requests(1).take(20).map(|step| step.last).collect();
        let ends: Vec<usize> = (0..20).filter(|step| last[*step]).collect();
        assert_eq!((limited.has_sessions(), ends), (true, vec![9, 19]));
    }
}
