//! The target of afpa-users. It is in a file of its own, so that an ordinary test of that crate can include it.

use afpa_users::{Credentials, Users};

/// A line that is the value of Authorization, and behind it a file of users. Credentials have neither control characters nor
/// a name with a colon. A file has users, or faults at lines that are there; no message shows a password of one.
pub fn users(data: &[u8]) {
    let mut parts = data.splitn(2, |&byte| byte == b'\n');
    let value = parts.next().unwrap_or_default();
    let credentials = Credentials::of(value);
    if let Some(credentials) = &credentials {
        let all = [credentials.user(), credentials.password()].concat();
        assert!(!all.iter().any(u8::is_ascii_control));
        assert!(!credentials.user().contains(&b':'));
        assert!(value.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"basic")));
    }
    let file = parts.next().unwrap_or_default();
    let lines = file.split(|&byte| byte == b'\n').count();
    match Users::read(file) {
        Ok(users) => {
            assert!(users.count() <= lines && users.is_of(file));
            assert!(credentials.is_none_or(|credentials| users.knows(&credentials).is_none()));
        }
        Err(faults) => {
            assert!(!faults.is_empty());
            for fault in faults {
                assert!((1..=lines).contains(&fault.line));
                assert!(!fault.to_string().contains("PASSWORD"), "{fault}");
            }
        }
    }
}
