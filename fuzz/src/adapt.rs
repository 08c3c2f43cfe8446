//! Targets of afpa-adapt. They are in a file of their own, so that an ordinary test of that crate can include it.

/// A configuration of nginx. Nothing panics, no more directives are translated than there are, there are notes where some
/// are not, and the same text gives the same translation.
pub fn adapt(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let run = || {
        let mut files = |path: &str| match path.ends_with("self.conf") {
            true => Ok(vec![(path.to_owned(), text.to_string())]),
            false => Err("it is not here".to_owned()),
        };
        afpa_adapt::adapt("fuzz.conf", &text, &mut files)
    };
    let done = run();
    assert_eq!(done, run());
    match done {
        Ok(done) => {
            assert!(done.translated <= done.directives);
            assert!(done.is_whole() || !done.notes.is_empty());
            assert!(done.notes.iter().all(|note| note.line > 0));
        }
        Err(error) => assert!(error.line > 0 && !error.remedy.is_empty()),
    }
}
