use super::*;

/// K6 of docs/rules: a purge is remembered, and not its URL.
#[test]
fn what_is_remembered_of_long_purges_is_short_and_means_no_less() {
    let mut journal = Journal::default();
    let long = vec![b'u'; 32 << 10];
    for number in 1..=1_000 {
        journal.add(number, Labels::BeginWith(long.as_slice().into()));
    }
    assert!(journal.bytes() <= 1_000 * BEGINNING, "{}", journal.bytes());
    let since = |number: u64| Moment(number);
    let whole = [&long[..], b"/rest\n"].concat();
    assert!(journal.means(since(0), &[&whole], &|_| false));
    assert!(!journal.means(since(1_000), &[&whole], &|_| false), "it was asked for later");
    assert!(!journal.means(since(0), &[b"t\n"], &|_| false), "none has forgotten");
    let rules = REMEMBERED_RULES as u64;
    for number in 1_001..=1_001 + rules {
        journal.add(number, Labels::Fit(Arc::new(|label| label == b"t\n")));
    }
    assert_eq!(journal.rules, REMEMBERED_RULES);
    assert!(journal.means(since(1_000), &[b"x\n"], &|_| false), "the first rule is forgotten");
    assert!(!journal.means(since(1_001), &[b"x\n"], &|_| false));
    assert!(journal.means(since(1_001), &[b"t\n"], &|_| false));
}
